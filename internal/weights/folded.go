package weights

import (
	"slices"

	"github.com/goparity/goparity/tensor"
)

// consumers are the roles that read what a norm of the layer returns.
var consumers = map[string][]string{
	"norm1": {"attn.q", "attn.k", "attn.v", "attn.qkv"},
	"norm2": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm3": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm":  {"lmhead"},
}

// foldedStep is the name of a step in which the weight of a norm is multiplied into the columns of
// what reads it; unfoldedStep of the other way round.
const (
	foldedStep   = "norm folded"
	unfoldedStep = "norm unfolded"
)

// foldedNorm is a norm of which one side has only ones.
type foldedNorm struct {
	step   string
	column []float64
}

// findFolded returns the norms that may be folded, by layer and consumer.
func findFolded(pairs []*pair) map[[2]string]foldedNorm {
	out := map[[2]string]foldedNorm{}
	for _, p := range pairs {
		if len(consumers[p.ref.role]) == 0 || p.ref.param != "weight" || p.ref.t.Len() != p.cand.t.Len() {
			continue
		}
		isOne := func(v float64) bool { return v == 1 }
		ones := all(p.ref.t, isOne)
		if ones == all(p.cand.t, isOne) {
			continue
		}
		f := foldedNorm{step: foldedStep, column: numbers(p.ref.t, p.ref.t.Len())}
		if ones {
			f = foldedNorm{step: unfoldedStep, column: numbers(p.cand.t, p.cand.t.Len())}
			for i, v := range f.column {
				f.column[i] = 1 / v
			}
		}
		for _, role := range consumers[p.ref.role] {
			out[[2]string{p.ref.layer, role}] = f
		}
	}
	return out
}

// numbers are the first of the elements, at most n.
func numbers(t *tensor.Tensor, n int) []float64 {
	v := make([]float64, min(t.Len(), n))
	t.Float64s(v, 0)
	return v
}

// withFolded adds the step by which a norm is folded into a weight.
func (j *judge) withFolded(p *pair) {
	f, ok := j.folded[[2]string{p.ref.layer, p.ref.role}]
	if ok && p.ref.param == "weight" && p.cand.t.RowLen() == len(f.column) {
		p.steps = append(p.steps, step{names: []string{f.step}, lay: asIs,
			number: func(i int, v float64) float64 { return v * f.column[i%len(f.column)] }})
	}
}

// foldedNorms accepts norms of ones where all that reads them has their weights.
func (j *judge) foldedNorms(pairs []*pair) {
	for _, p := range pairs {
		if len(consumers[p.ref.role]) == 0 || len(p.fits) > 0 || p.result.Detail != "" {
			continue
		}
		holding, all := 0, 0
		for _, o := range pairs {
			f, ok := j.folded[[2]string{o.ref.layer, o.ref.role}]
			if !ok || o.ref.layer != p.ref.layer || o.ref.param != "weight" || !slices.Contains(consumers[p.ref.role], o.ref.role) {
				continue
			}
			all++
			if len(o.fits) > 0 && o.steps[o.fits[0]].name() == f.step {
				holding++
			}
		}
		if all > 0 && holding == all {
			p.folded = true
		}
	}
}
