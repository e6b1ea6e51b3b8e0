package rebuild

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/op"
)

// Fault is an op done wrong.
type Fault struct {
	ID, Text string
	Rank     int
	// Eval is what the candidate does in place of the op; nil for a guess, which is named after all
	// that is predicted.
	Eval Eval
	// Params is how many numbers Eval takes from the candidate's target: then it works on the
	// target only.
	Params int
	// Number is one of them, for the text; nil for none.
	Number *float64
	// Anywhere is true if Eval finds its number at any value, by the distance of the target.
	Anywhere bool
	// Unless names what the candidate did not record and whose own error would look the same; ""
	// for nothing.
	Unless string
	// Refine returns variants, which are tried if this fits better than the golden by far.
	Refine func() []Fault
}

// Predict tries the faults of each op between what the candidate recorded and the target. A fault
// that looks good on some rows is predicted in full, the best first.
func (g *Graph) Predict(faults func(*Value) []Fault) []diagnose.Prediction {
	sample, marks := g.Scene.Rows()
	if len(sample) == 0 {
		return nil
	}
	type tried struct {
		v   *Value
		f   Fault
		fit float64
	}
	var good []tried
	var out []diagnose.Prediction
	probe := g.worst(sample)
	actual := g.Target.Wrong(probe)
	far := op.Relative(actual, g.Target.Golden(probe))
	cone := g.cone()
	reserve := g.work / fullShare // for what looks good
	g.work -= reserve
	for _, v := range cone {
		all := faults(v)
		for i := 0; i < len(all) && !g.isOver(); i++ {
			f := all[i]
			switch {
			case (f.Eval == nil || f.Params > 0 && !f.Anywhere) && v != g.Target:
				continue
			case f.Eval == nil:
				out = append(out, diagnose.Prediction{ID: f.ID, Text: f.Text, Rank: f.Rank})
				continue
			}
			fit := op.Relative(actual, g.With(v, f.Eval).Get(g.Target, probe))
			if fit < far*looksGood {
				good = append(good, tried{v, f, fit})
				if f.Refine != nil && fit < far*looksSure {
					all = append(all, f.Refine()...)
				}
			}
		}
	}
	g.work = max(g.work, 0) + reserve
	if g.Target.Op == nil && isFront(g.Target) {
		out = append(out, g.unadded(probe)...)
	}
	slices.SortStableFunc(good, func(a, b tried) int { return cmp.Compare(a.fit, b.fit) })
	rival := slices.ContainsFunc(good, func(t tried) bool { // says the same of what was recorded
		return t.v == g.Target && t.f.Params == 0 && t.fit <= g.Target.Noise()
	})
	shown := map[string]int{}
	for _, t := range good {
		if shown[t.f.ID]++; shown[t.f.ID] > sameID || len(out) >= inFull {
			continue
		}
		if got := g.With(t.v, t.f.Eval).Get(g.Target, sample); got != nil {
			p := diagnose.Prediction{ID: t.f.ID, Text: t.f.Text, Params: t.f.Params, Rows: marks,
				Rank:  t.f.Rank - 1, // a known mechanism before a pattern of the values
				Value: &diagnose.Array{Shape: []int{len(sample), g.Target.Width}, Data: got}}
			if t.f.Number != nil {
				p.Text += fmt.Sprintf(", %.4g", *t.f.Number)
			}
			if t.f.Unless != "" {
				p.Doubtful = true
				p.Text += fmt.Sprintf(", unless it is %s that is wrong, which the candidate did not record", t.f.Unless)
			}
			if t.v != g.Target {
				p.Layer, p.Doubtful = t.v.Owner(), p.Doubtful || rival || g.isRight(t.v)
			}
			out = append(out, p)
		}
	}
	return out
}

// FaultFree predicts the target by the op that makes it in the reference, of what the candidate was
// given; nil where that op is not known.
func (g *Graph) FaultFree() *diagnose.Prediction {
	sample, marks := g.Scene.Rows()
	if _, given := g.Explain(g.Target).(*Given); given || len(sample) == 0 || g.Target.Op == nil {
		return nil
	}
	got := g.With(g.Target, g.Target.Op.Eval).Get(g.Target, sample)
	if got == nil {
		return nil
	}
	return &diagnose.Prediction{Rows: marks, Value: &diagnose.Array{Shape: []int{len(sample), g.Target.Width}, Data: got}}
}

// isRight reports whether the candidate has something right that is made of a value by a layer that
// takes it: then the value is right too, though it was not recorded.
func (g *Graph) isRight(v *Value) bool {
	return slices.ContainsFunc(v.ports, func(p *diagnose.Port) bool {
		if !p.IsInput() {
			return false
		}
		made := g.Scene.Output(p.Layer)
		if made == nil || made == g.Scene.Target {
			return false
		}
		w := g.find(made)
		return w != nil && w.at > v.at && (w.actual != nil && w.agrees || w.actual == nil && g.isRight(w))
	})
}

// unadded guesses what is missing where the reference makes the target in an unknown way in front
// of the blocks, and the candidate just takes the output of an embedding.
func (g *Graph) unadded(probe []int) []diagnose.Prediction {
	for _, x := range g.Alikes(g.Target) {
		if strings.Contains(x.Layer(), "embed") &&
			op.Relative(g.Target.Wrong(probe), g.With(g.Target, nil).Get(x, probe)) <= g.Target.Rounding() {
			return []diagnose.Prediction{{ID: "embedding/position",
				Text: "it is " + x.String() + " itself: what the reference adds to it, positions perhaps, is missing"}}
		}
	}
	return nil
}

// worst picks the rows in which the candidate is furthest from the golden, and some of the others,
// in order.
func (g *Graph) worst(rows []int) []int {
	if len(rows) <= ProbeRows {
		return rows
	}
	golden, actual, w := g.Target.Golden(rows), g.Target.Wrong(rows), g.Target.Width
	far := make([]float64, len(rows))
	for i := range rows {
		far[i] = op.Relative(actual[i*w:(i+1)*w], golden[i*w:(i+1)*w])
	}
	byFar := op.Sequence(len(rows))
	slices.SortStableFunc(byFar, func(a, b int) int { return cmp.Compare(far[b], far[a]) })
	pick := append(slices.Clone(byFar[:ProbeRows*3/4]), byFar[len(byFar)-ProbeRows/4:]...)
	slices.Sort(pick)
	for i, at := range pick {
		pick[i] = rows[at]
	}
	return pick
}

// Searched is a fault with one number of its own, between low and high: the one at which the target
// is nearest to the candidate's. It is searched for by its logarithm if it is positive. work is
// what n rows cost, in multiplications; nil for little.
func (v *Value) Searched(text string, low, high float64, work func(n int) float64, of func(x float64) Eval) Fault {
	number := math.NaN()
	g := v.g
	real := func(x float64) float64 { return x }
	if low > 0 {
		low, high, real = math.Log(low), math.Log(high), math.Exp
	}
	eval := func(e *Evaluation, want []int) []float64 {
		if !e.candidate || work != nil && work(searchRows)*searchSteps > workLimit/searchShare {
			return nil
		}
		if math.IsNaN(number) {
			all, _ := g.Scene.Rows()
			some := g.worst(all)
			if step := len(some) / searchRows; step > 1 {
				for i := range searchRows {
					some[i] = some[i*step]
				}
				some = some[:searchRows]
			}
			actual := g.Target.Wrong(some)
			number = real(op.Minimum(low, high, func(x float64) float64 {
				return op.Relative(g.With(v, of(real(x))).Get(g.Target, some), actual)
			}))
		}
		return of(number)(e, want)
	}
	return Fault{Text: text, Rank: 2, Params: 1, Number: &number, Anywhere: true, Eval: eval}
}

// Parts calculates parts of rows of a value, and the rest: the value is their sum.
type Parts func(e *Evaluation, rows []int) (parts [][]float64, rest []float64)

// Scaled is a fault that multiplies parts of the target by factors, which are fitted to the
// candidate on n rows: rest + Σ fₚ·partₚ.
func (v *Value) Scaled(text string, n int, parts Parts) Fault {
	number := 0.0
	return Fault{Text: text, Params: 1, Number: &number, Eval: func(e *Evaluation, rows []int) []float64 {
		some := op.Spread(v.Rows, n)
		columns, rest := parts(e, some)
		if columns == nil {
			return nil
		}
		f := op.LeastSquares(columns, op.Minus(v.Wrong(some), rest))
		columns, out := parts(e, rows)
		if f == nil || columns == nil {
			return nil
		}
		number = f[0]
		for p, column := range columns {
			for i, x := range column {
				out[i] += f[p] * x
			}
		}
		return out
	}}
}
