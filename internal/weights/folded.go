package weights

import (
	"math"
	"slices"
	"strings"
)

// consumers are the roles that read what a norm of the layer returns.
var consumers = map[string][]string{
	"norm1": {"attn.q", "attn.k", "attn.v", "attn.qkv"},
	"norm2": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm3": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm":  {"lmhead"},
}

// findFolded finds the norms of which one side has only ones: they may be in the columns of what reads them.
func (c *comparison) findFolded() {
	isOne := func(v float64) bool { return v == 1 }
	for _, p := range c.pairs {
		if consumers[p.ref.role] == nil || p.ref.param != "weight" || p.ref.t.Len() != p.cand.t.Len() {
			continue
		}
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
		p.column = &calc{name: name, number: func(i int, v float64) float64 { return v * column[i%len(column)] }}
		for _, o := range c.pairs {
			reads := slices.Contains(consumers[p.ref.role], o.ref.role)
			if reads && o.ref.layer == p.ref.layer && o.ref.param == "weight" {
				p.readers = append(p.readers, o)
				if o.cand.t.RowLen() == len(column) {
					o.more = append(o.more, p.column)
				}
			}
		}
	}
}

// folded reports whether a norm is one of ones, and all that reads it has its numbers.
func (p *pair) folded() bool {
	lacks := func(o *pair) bool { return !o.exact() || o.may[0].calc != p.column }
	return len(p.may) == 0 && p.result.Detail == "" && len(p.readers) > 0 && !slices.ContainsFunc(p.readers, lacks)
}

// The parameters of a normalisation by running statistics, and the numbers that engines add to the variance.
var (
	running  = []string{".running_mean", ".running_var", ".weight", ".bias"}
	epsilons = []float64{1e-5, 1e-3, 1e-6, 1e-4}
)

// mergeNorms finds the layers into which the candidate folded a normalisation by running
// statistics, of which it has nothing left.
func (c *comparison) mergeNorms() {
	for _, mean := range c.ref.left() {
		layer, ok := strings.CutSuffix(mean.name, running[0])
		if !ok {
			continue
		}
		n := mean.t.Len()
		stats := [][]float64{nil, nil, slices.Repeat([]float64{1}, n), make([]float64, n)}
		var folded []*weight
		for i, param := range running {
			if w := c.ref.find(layer + param); w != nil && w.t.Len() == n {
				stats[i], folded = numbers(w.t, w.t.Len()), append(folded, w)
			}
		}
		if stats[1] == nil || !c.mergedInto(stats) {
			continue
		}
		for _, w := range folded {
			steps := []string{"folded into the layer before it"}
			c.rest = append(c.rest, Result{Status: Step, Steps: steps, Reference: w.name})
			w.taken = true
		}
	}
}

// mergedInto finds the layer whose rows have a normalisation in them, by its weight, and adds the step to it.
func (c *comparison) mergedInto(stats [][]float64) bool {
	for _, p := range c.pairs {
		if p.ref.param != "weight" || len(p.ref.t.Shape()) < 2 || firstAxis(p.ref.t) != len(stats[0]) || p.more != nil {
			continue
		}
		for _, eps := range epsilons {
			scale, shift, size := normalised(stats, eps)
			width := p.ref.t.Len() / len(scale)
			times := func(i int, v float64) float64 { return v * scale[i/width] }
			k := &calc{name: "norm folded", ulps: normUlps, number: times}
			if t := newTrial(p.ref.t, p.cand.t, asIs, k); t != nil && t.sample().Mismatches == 0 {
				p.more = append(p.more, k)
				moved := func(i int, v float64) float64 { return v*scale[i] + shift[i] }
				c.mergeBias(p, &calc{name: k.name, ulps: normUlps, size: size, number: moved})
				return true
			}
		}
	}
	return false
}

// mergeBias adds the step to the bias of a layer. One that the reference has not is zeros.
func (c *comparison) mergeBias(of *pair, k *calc) {
	want := strings.TrimSuffix(of.ref.name, "weight") + "bias"
	if i := slices.IndexFunc(c.pairs, func(p *pair) bool { return p.ref.name == want }); i >= 0 {
		c.pairs[i].more = append(c.pairs[i].more, k)
		return
	}
	if b := c.cand.find(strings.TrimSuffix(of.cand.name, "weight") + "bias"); b != nil {
		zeros := *b
		zeros.name, zeros.number, zeros.t = want, of.ref.number, filled(b.t, 0)
		c.pairs = append(c.pairs, &pair{ref: &zeros, cand: b, more: []*calc{k}})
		b.taken = true
	}
}

// normalised is what a normalisation does to each row: by what it is multiplied, what is added, and
// the size of the largest number that is.
func normalised(stats [][]float64, eps float64) (scale, shift []float64, size float64) {
	for i, mean := range stats[0] {
		s, add := stats[2][i]/math.Sqrt(stats[1][i]+eps), stats[3][i]
		scale, shift = append(scale, s), append(shift, add-mean*s)
		size = max(size, math.Abs(mean*s), math.Abs(add))
	}
	return scale, shift, size
}
