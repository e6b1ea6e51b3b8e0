package judge

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/trace"
)

// noteDoubts notes what makes a comparison worth less than it looks, whatever its verdict: goldens that
// cannot show an error, and a dump that is a copy of the other.
func (c *Comparison) noteDoubts() {
	var nan, strange []string
	outputs, equal := 0, 0
	for _, p := range c.Ports {
		if !p.Comparable() || !p.Judged() || !p.Golden.DType().IsFloat() || p.Golden.Len() < trace.LeastFloats {
			continue
		}
		outputs++
		if r := p.Base.Result; r.MaxAbs.Value == 0 && r.BadNonFinite == 0 {
			equal++
		}
		if p.Base.Result.NaNGolden > 0 {
			nan = append(nan, p.Layer+" "+p.Port)
		}
		if p.strange != nil {
			strange = append(strange, p.Layer+" "+p.Port)
		}
	}
	if len(nan) > 0 {
		c.Note("the golden itself has NaN, so that nothing after it can be judged: " + label.Few(nan))
	}
	if len(strange) > 0 {
		c.Note("the float64 golden is not of this run, or not finite, and was not used: " + label.Few(strange))
	}
	switch {
	case outputs <= 1 || equal < outputs || c.Cases[0].alone || c.otherRecordings():
	case c.otherEngines():
		c.copied = fmt.Sprintf("all %d compared outputs are equal bit for bit, though the engines are not: is one dump a copy of the other?", outputs)
	case c.Cases[0].Golden.Path != c.Cases[0].Actual.Path: // else that is noted
		c.copied = fmt.Sprintf("all %d compared outputs are equal bit for bit: if one dump is a copy of the other, this shows only that it can be read", outputs)
	}
}

// IsCopy reports whether the candidate may be the golden itself: nothing tells the two apart, every
// output of floats is equal bit for bit, and the runs name neither two engines nor two recordings. One
// output is enough where both name the same engine.
func (c *Comparison) IsCopy() bool {
	least := 1
	for _, k := range c.Cases {
		if k.Golden.Info.Engine == "" || k.Actual.Info.Engine == "" {
			least = 2
		}
	}
	outputs := 0
	for _, p := range c.Ports {
		if !p.Comparable() || !p.Judged() || !p.Golden.DType().IsFloat() || p.Golden.Len() == 0 {
			continue
		}
		if r := p.Base.Result; r.MaxAbs.Value != 0 || r.BadNonFinite > 0 {
			return false
		}
		outputs++
	}
	return outputs >= least && !c.otherEngines() && !c.otherRecordings()
}

// otherRecordings reports whether both sides say which recording they are, and it is not the same: the
// candidate ran, whatever it is equal to.
func (c *Comparison) otherRecordings() bool {
	for _, k := range c.Cases {
		if g, a := k.Golden.Info.Nonce, k.Actual.Info.Nonce; g != "" && a != "" && g != a {
			return true
		}
	}
	return false
}

// otherEngines reports whether both sides name their engine and the two differ.
func (c *Comparison) otherEngines() bool {
	for _, k := range c.Cases {
		if g, a := k.Golden.Info.Engine, k.Actual.Info.Engine; g != "" && a != "" && !strings.EqualFold(g, a) {
			return true
		}
	}
	return false
}
