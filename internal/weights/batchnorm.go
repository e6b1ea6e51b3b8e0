package weights

import (
	"math"
	"slices"
	"strings"
)

// affine is v·scale + shift.
type affine struct{ scale, shift float64 }

// The parameters of a normalisation by running statistics, and the numbers that engines add to the variance.
var (
	running  = []string{".running_mean", ".running_var", ".weight", ".bias"}
	epsilons = []float64{1e-5, 1e-3, 1e-6, 1e-4}
)

// mergeNorms pairs what the candidate has of a layer into which it folded a normalisation by running
// statistics, of which it has nothing left.
func (n *joiner) mergeNorms() {
	for _, mean := range sorted(n.ref) {
		layer, ok := strings.CutSuffix(mean.name, running[0])
		if !ok {
			continue
		}
		var stats [4][]float64
		var folded []*weight
		for i, param := range running {
			if w := endsWith(n.ref, layer+param); w != nil && w.t.Len() == mean.t.Len() {
				stats[i], folded = numbers(w.t, w.t.Len()), append(folded, w)
			}
		}
		if stats[1] == nil || !n.mergedInto(stats) {
			continue
		}
		for _, w := range folded {
			one := *w
			n.pairs = append(n.pairs, &pair{ref: w, cand: &one, merged: true})
			drop(n.ref, w)
		}
	}
}

// mergedInto finds the layer whose rows have a normalisation in them, by its weight, and adds the step to it.
func (n *joiner) mergedInto(stats [4][]float64) bool {
	for _, p := range n.pairs {
		if p.ref.param != "weight" || len(p.ref.t.Shape()) < 2 || firstAxis(p.ref.t) != len(stats[0]) || p.also != nil {
			continue
		}
		for _, eps := range epsilons {
			s := mergedStep(stats, eps, p.ref.t.Len()/len(stats[0]), 1)
			if t := newTrial(p.ref.t, p.cand.t, &s); t == nil || t.sample().Mismatches > 0 {
				continue
			}
			p.also = &s
			n.mergeBias(p, stats, eps)
			return true
		}
	}
	return false
}

// mergeBias adds the step to the bias of a layer. One that the reference has not is zeros.
func (n *joiner) mergeBias(of *pair, stats [4][]float64, eps float64) {
	s := mergedStep(stats, eps, 0, 1)
	want := strings.TrimSuffix(of.ref.name, "weight") + "bias"
	for _, p := range n.pairs {
		if p.ref.name == want {
			p.also = &s
			return
		}
	}
	have := strings.TrimSuffix(of.cand.name, "weight") + "bias"
	if c := endsWith(n.cand, have); c != nil {
		s = mergedStep(stats, eps, 0, 0)
		zero := *c
		zero.name = want
		zero.t, _ = c.t.Slice(0, 0, firstAxis(c.t))
		n.pairs = append(n.pairs, &pair{ref: &zero, cand: c, also: &s})
		drop(n.cand, c)
	}
}

// mergedStep is what a normalisation does to each row of a weight, of some width, or to a bias, whose is 0; of is 0 for
// a bias that is not there.
func mergedStep(stats [4][]float64, eps float64, width int, of float64) step {
	bias := width == 0
	width = max(width, 1)
	s := step{names: []string{"norm folded"}, lay: asIs, ulps: normUlps}
	rows := make([]affine, len(stats[0]))
	for i, mean := range stats[0] {
		a := affine{scale: 1 / math.Sqrt(stats[1][i]+eps)}
		if stats[2] != nil {
			a.scale *= stats[2][i]
		}
		if bias {
			a.shift = -mean * a.scale
			s.size = max(s.size, math.Abs(a.shift))
			if stats[3] != nil {
				a.shift += stats[3][i]
				s.size = max(s.size, math.Abs(stats[3][i]))
			}
		}
		a.scale *= of
		rows[i] = a
	}
	s.number = func(i int, v float64) float64 { return v*rows[i/width].scale + rows[i/width].shift }
	return s
}

// withMerged adds the step by which a normalisation is folded into a layer.
func (p *pair) withMerged() {
	if p.also != nil {
		p.steps = append(slices.Clone(p.steps), *p.also)
	}
}
