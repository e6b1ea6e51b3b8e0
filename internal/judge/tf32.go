package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// onlyTF32 reports whether a float32 run in which no layer made the error differs as one whose matrix
// products are TF32, and then judges it as such: by the limits of float16, which has as many bits. A
// GPU rounds the operands of float32 products to 10 bits of mantissa where it is allowed to.
//
// It asks for all of this: each product of inputs that agree is off, by as much as rounding both
// operands makes, and there are so many; what is no product (norms, activations, tables) is right on inputs that agree; no
// error is more than the limits of float16.
func (c *Comparison) onlyTF32(least int) bool {
	wrong := map[*trace.Pass]map[string]bool{} // layers that were given something else
	for _, flow := range c.flow().Passes {
		wrong[flow] = map[string]bool{}
		for i := range flow.Events {
			if e := &flow.Events[i]; e.Input && c.Ports[e.Index].differs() {
				wrong[flow][e.Layer] = true
			}
		}
	}
	limits := compare.Default(tensor.F16).Limits()
	var failing []*Port
	products := 0
	for _, p := range c.Ports {
		if !p.Judged() || p.misfit() || !p.comparable() {
			continue
		}
		r := p.Base.Result
		if !p.differs() {
			if flow := c.flow().Pass(p.Case, p.Step); flow.Leaf(p.Layer) && isProduct(p.Layer) && p.DType == tensor.F32 &&
				p.Golden.Len() >= trace.LeastFloats && !wrong[flow][p.Layer] && c.givenOne(flow, p.Layer) {
				return false // a product that is right
			}
			continue
		}
		if !p.byDefault || p.DType != tensor.F32 || p.downcast != tensor.Invalid || !r.Agrees(limits) {
			return false
		}
		failing = append(failing, p)
		flow := c.flow().Pass(p.Case, p.Step)
		switch own := !wrong[flow][p.Layer] && flow.Leaf(p.Layer) && c.givenOne(flow, p.Layer); {
		case !own:
		case !isProduct(p.Layer) || r.RelL2 < leastTF32 || r.RelL2 > mostTF32 || math.Abs(p.along()) > max(unlikeTF32, byChance/math.Sqrt(float64(p.Golden.Len()))):
			return false
		default:
			products++
		}
	}
	if products < least {
		return false
	}
	for _, p := range failing {
		if p.again(limits.Criteria(), "float16's: the products are TF32, which has as many bits") != nil {
			return false
		}
		p.Agrees = true
	}
	c.Note(fmt.Sprintf("%d outputs are off as if the operands of all products were rounded to the 10 bits of TF32: %d products of inputs "+
		"that agree are, nothing else is, and no layer is wrong; turn TF32 off on that side to compare in full float32", len(failing), products))
	return true
}

// givenOne reports whether both sides recorded the one float input of a layer.
func (c *Comparison) givenOne(flow *trace.Pass, layer string) bool {
	n := 0
	for _, i := range flow.Ports(layer) {
		if e := &flow.Events[i]; e.Input {
			if p := c.Ports[e.Index]; !p.comparable() {
				return false
			}
			n++
		}
	}
	return n == 1
}

// isProduct reports whether a layer without others inside may multiply by a matrix, by its name.
func isProduct(layer string) bool {
	last := strings.ToLower(label.Last(layer))
	return !module.IsNorm(layer) && !module.Table.Has(layer) && !strings.Contains(last, "act") && !strings.Contains(last, "elu") &&
		!strings.Contains(last, "drop") && !strings.Contains(last, "rotary")
}

// along is the cosine of error and golden.
func (p *Port) along() float64 {
	b := p.Base.Result
	if d := 2 * b.NormGolden * b.NormDiff; d > 0 && !math.IsInf(d, 0) {
		return (b.NormActual*b.NormActual - b.NormGolden*b.NormGolden - b.NormDiff*b.NormDiff) / d
	}
	return 0
}
