package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// standsFor reports whether the edit is of a sum or product with whole numbers that stand for others, code · step + zero.
func (c *surroundings) standsFor() bool {
	return (c.takesTwo() || c.Kind == "scalar") && c.madeBy(func(o program.Op) bool { return o.Name == "round" })
}

// addsLowRank reports whether the edit is of what adds an adapter of low rank, or scales it.
func (c *surroundings) addsLowRank() bool {
	return (c.takesTwo() || c.Kind == "scalar") && c.madeBy(c.ofLowRank)
}

// madeBy reports whether an operand is what an operator of some kind made, maybe times a number, cut off, in
// another shape or type.
func (c *surroundings) madeBy(is func(o program.Op) bool) bool {
	return slices.ContainsFunc(c.op.Operands(), func(id program.ID) bool {
		for i := c.Maker(id); i >= 0; i = c.Maker(c.Ops[i].Operands()[0]) {
			if is(c.Ops[i]) {
				return true
			}
			if !slices.Contains([]string{"mul", "clamp", "view", "_to_copy"}, c.Ops[i].Name) {
				return false
			}
		}
		return false
	})
}

// ofLowRank reports whether an operator multiplies what a product made that has less than half as many
// columns as goes into the one and comes out of the other.
func (c *surroundings) ofLowRank(o program.Op) bool {
	if o.Name != "mm" {
		return false
	}
	for i := c.Maker(o.Operands()[0]); i >= 0; i = c.Maker(c.Ops[i].Operands()[0]) {
		switch last := c.Ops[i]; last.Name {
		case "mm":
			columns := func(id program.ID) int { s := c.Values[id].Shape; return s[len(s)-1] }
			return 2*columns(last.Out[0]) < min(columns(last.Operands()[0]), columns(o.Out[0]))
		case "view", "_to_copy":
		default:
			return false
		}
	}
	return false
}
