package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// costOfWeights measures how far the golden, of dequantised weights, is from the reference on the
// weights as they were, and how far the rounding of inputs carries it. Where a row was left out of the
// comparison this is of all rows.
func (p *Port) costOfWeights() {
	if p.Unquantised == nil || !p.Judged() || !p.Golden.DType().IsFloat() || p.printed != nil {
		return
	}
	off := func(from *tensor.Tensor) (compare.Result, bool) {
		if from == nil || !slices.Equal(from.Shape(), p.Golden.Shape()) {
			return compare.Result{}, false
		}
		r, err := compare.Tensors(from, p.Golden, compare.Tolerance{})
		return r, err == nil
	}
	r, ok := off(p.Unquantised)
	if !ok {
		return
	}
	q := &report.Quantisation{Cost: report.Float(r.RelL2), RowCost: report.Float(r.WorstRow.RelL2)}
	if r, ok := off(p.Unrounded); ok {
		rounded := report.Float(r.RelL2)
		q.Activations = &rounded
	}
	p.quantisation = q
}

// noteRounding notes what makes a right engine fail: it rounds the inputs of products, and the golden
// on dequantised weights does not.
func (c *Comparison) noteRounding() {
	if c.Verdict == nil {
		return
	}
	for _, k := range c.Cases {
		if k.Unquantised != nil && k.Golden.Info.Activations == nil && k.Encoding() == tensor.Invalid {
			c.Note(fmt.Sprintf("case %s: engines that run %s also round the inputs of products to int8, which is off by about 1 %% a product "+
				"and is no error: a reference that does so too judges what is left: {variant: dequantised, activations: int8/256} for "+
				"K-quants, int8/32 for q4_0 and q8_0", k.Name, k.Actual.Info.Encoding))
		}
	}
}
