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

// folding is a norm of which one side has only ones, in the columns of what reads it.
type folding struct {
	calc
	columns int
}

// findFolded returns the norms that may be folded, by layer and consumer.
func findFolded(pairs []*pair) map[[2]string]*folding {
	out := map[[2]string]*folding{}
	for _, p := range pairs {
		if len(consumers[p.ref.role]) == 0 || p.ref.param != "weight" || p.ref.t.Len() != p.cand.t.Len() {
			continue
		}
		isOne := func(v float64) bool { return v == 1 }
		ones := all(p.ref.t, isOne)
		if ones == all(p.cand.t, isOne) {
			continue
		}
		name, column := "norm folded", numbers(p.ref.t, p.ref.t.Len())
		if ones {
			name, column = "norm unfolded", numbers(p.cand.t, p.cand.t.Len())
			for i, v := range column {
				column[i] = 1 / v
			}
		}
		f := &folding{calc{name: name, number: func(i int, v float64) float64 { return v * column[i%len(column)] }}, len(column)}
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

// foldedInto is the norm that may be folded into a weight; nil for none.
func (j *judge) foldedInto(p *pair) *folding {
	f := j.folded[[2]string{p.ref.layer, p.ref.role}]
	if f == nil || p.ref.param != "weight" {
		return nil
	}
	return f
}

// foldedNorms accepts norms of ones where all that reads them has their weights.
func (j *judge) foldedNorms(pairs []*pair) {
	for _, p := range pairs {
		if consumers[p.ref.role] == nil || len(p.may) > 0 || p.result.Detail != "" {
			continue
		}
		readers := slices.DeleteFunc(slices.Clone(pairs), func(o *pair) bool {
			return o.ref.layer != p.ref.layer || !slices.Contains(consumers[p.ref.role], o.ref.role) || j.foldedInto(o) == nil
		})
		p.folded = len(readers) > 0 && !slices.ContainsFunc(readers, func(o *pair) bool {
			return !o.exact() || o.may[0].name() != j.foldedInto(o).name
		})
	}
}
