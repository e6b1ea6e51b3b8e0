package weights

import (
	"math"
	"slices"
	"strings"
)

// The parameters of a normalisation by running statistics, and the numbers that engines add to the variance.
var (
	running  = []string{".running_mean", ".running_var", ".weight", ".bias"}
	epsilons = []float64{1e-5, 1e-3, 1e-6, 1e-4}
)

// mergeNorms finds the layers into which the candidate folded a normalisation by running statistics, of which it has
// nothing left.
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

// normalised is what a normalisation does to each row: by what it is multiplied, what is added, and the size of the
// largest number that is.
func normalised(stats [][]float64, eps float64) (scale, shift []float64, size float64) {
	for i, mean := range stats[0] {
		s, add := stats[2][i]/math.Sqrt(stats[1][i]+eps), stats[3][i]
		scale, shift = append(scale, s), append(shift, add-mean*s)
		size = max(size, math.Abs(mean*s), math.Abs(add))
	}
	return scale, shift, size
}
