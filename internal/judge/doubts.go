package judge

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// noteDoubts notes what makes a comparison worth less than it looks, whatever its verdict: tensors
// that cannot show an error, and a dump that is a copy of the other.
func (c *Comparison) noteDoubts() {
	var zero, nan, dead, constant, strange []string
	outputs, equal := 0, 0
	for _, p := range c.Ports {
		if !p.comparable() || !p.Judged() || !p.Golden.DType().IsFloat() || p.Golden.Len() < trace.LeastFloats {
			continue
		}
		r := p.Base.Result
		outputs++
		if p.strange != nil {
			strange = append(strange, p.Layer+" "+p.Port)
		}
		if r.MaxAbs.Value == 0 && r.BadNonFinite == 0 {
			equal++
		}
		switch name := p.Layer + " " + p.Port; {
		case r.NaNGolden > 0:
			nan = append(nan, name)
		case r.NormGolden == 0 && r.InfGolden == 0:
			zero = append(zero, name)
		case p.Agrees:
		case r.NormActual == 0 && r.Finite == r.N:
			dead = append(dead, name)
		case isConstant(p.Actual) && !isConstant(p.Golden):
			constant = append(constant, name)
		}
	}
	list := func(names []string, text string) {
		if len(names) > 0 {
			c.Note(fmt.Sprintf(text, label.Few(names)))
		}
	}
	list(nan, "the golden itself has NaN, so that nothing after it can be judged: %s")
	list(zero, "the golden is all zero, where a layer that does nothing passes too: %s")
	list(strange, "the float64 golden is not of this run, or not finite, and was not used: %s")
	list(dead, "all zero in the candidate, and not in the golden: %s")
	list(constant, "one value everywhere in the candidate, and not in the golden: %s")
	switch {
	case outputs <= 1 || equal < outputs:
	case c.otherEngines():
		c.copied = fmt.Sprintf("all %d compared outputs are equal bit for bit, though the engines are not: is one dump a copy of the other?", outputs)
	case c.Cases[0].Golden.Path != c.Cases[0].Actual.Path: // else that is noted
		c.copied = fmt.Sprintf("all %d compared outputs are equal bit for bit: if one dump is a copy of the other, this shows only that it can be read", outputs)
	}
}

// IsCopy reports whether the candidate may be the golden itself: nothing tells the two apart, every
// output of floats is equal bit for bit, and no run names another engine than the other. One output
// is enough where both name the same.
func (c *Comparison) IsCopy() bool {
	least := 1
	for _, k := range c.Cases {
		if k.Golden.Info.Engine == "" || k.Actual.Info.Engine == "" {
			least = 2
		}
	}
	outputs := 0
	for _, p := range c.Ports {
		if !p.comparable() || !p.Judged() || !p.Golden.DType().IsFloat() || p.Golden.Len() == 0 {
			continue
		}
		if r := p.Base.Result; r.MaxAbs.Value != 0 || r.BadNonFinite > 0 {
			return false
		}
		outputs++
	}
	return outputs >= least && !c.otherEngines()
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

func isConstant(t *tensor.Tensor) bool {
	_, ok := t.Bytes()
	return ok && !trace.Telling(t)
}
