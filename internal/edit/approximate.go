package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// ofApproximate names what is wrong with whole numbers that stand for others, code · step + zero, and with
// an adapter of low rank.
func ofApproximate(c *surroundings) string {
	sum := c.op.Name == "add" || c.op.Name == "sub"
	switch {
	case !sum && c.op.Name != "mul" || !c.takesTwo() && c.Kind != "scalar":
		return ""
	case c.madeBy(func(o program.Op) bool { return o.Name == "round" }):
		if sum {
			return quantZero
		}
		return quantScale
	case c.madeBy(c.ofLowRank):
		return "weights/lora"
	}
	return ""
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
