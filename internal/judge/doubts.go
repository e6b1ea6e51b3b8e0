package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
)

// noteDoubts notes what makes a comparison worth less than it looks, whatever its verdict: goldens that
// cannot show an error, and a dump that is a copy of the other.
func (c *Comparison) noteDoubts() {
	var nan, strange []string
	for _, p := range c.Ports {
		if !p.Comparable() || !p.Judged() || !p.Golden.DType().IsFloat() {
			continue
		}
		if p.Base.Result.NaNGolden > 0 {
			nan = append(nan, p.Layer+" "+p.Port)
		}
		if p.float64Err != nil {
			strange = append(strange, p.Layer+" "+p.Port)
		}
	}
	if len(nan) > 0 {
		c.Note("the golden itself has NaN, so that nothing after it can be judged: " + label.Few(nan))
	}
	if len(strange) > 0 {
		c.Note("the float64 golden is not of this run, or not finite, and was not used: " + label.Few(strange))
	}
	same := c.Cases[0].Golden.Path == c.Cases[0].Actual.Path && !c.otherEngines() // which is noted
	if n, equal := c.equalOutputs(); n > 1 && equal && !c.Cases[0].alone && !c.otherRecordings() && !same {
		c.find(whenRight, fmt.Sprintf("all %d compared outputs are equal bit for bit: if one dump is a copy of the other, "+
			"this shows only that it can be read", n))
	}
}

// equalOutputs counts the outputs of floats, and reports whether all of them are equal bit for bit.
func (c *Comparison) equalOutputs() (n int, equal bool) {
	equal = true
	for _, p := range c.Ports {
		if p.Comparable() && p.Judged() && p.Golden.DType().IsFloat() && p.Golden.Len() > 0 {
			n, equal = n+1, equal && p.sameValues()
		}
	}
	return n, equal
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
	n, equal := c.equalOutputs()
	return n >= least && equal && !c.otherEngines() && !c.otherRecordings()
}

// otherRecordings reports whether both sides say which recording they are, and it is not the same: the
// candidate ran, whatever it is equal to.
func (c *Comparison) otherRecordings() bool {
	return c.differ(func(r *dump.Run) string { return r.Info.Nonce })
}

// otherEngines reports whether both sides name their engine and the two differ.
func (c *Comparison) otherEngines() bool {
	return c.differ(func(r *dump.Run) string { return strings.ToLower(r.Info.Engine) })
}

// differ reports whether the two runs of a case say something, and not the same.
func (c *Comparison) differ(of func(*dump.Run) string) bool {
	return slices.ContainsFunc(c.Cases, func(k Case) bool {
		g, a := of(k.Golden), of(k.Actual)
		return g != "" && a != "" && g != a
	})
}
