package pattern

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// Dropout is zeros strewn over the tensor, with the rest scaled by 1/(1−p): a dropout that is still
// on. It is looked for in the target and in each term of a sum that makes it.
func Dropout(p *Pair) (out []diagnose.Prediction) {
	const text = "dropout%s is on: %.3g of the elements are 0, the others are multiplied by %.4g"
	if v, rate := dropped(p.Right, p.Actual); v != nil {
		out = append(out, p.says("dropout", v, 1, 0, text, "", rate, 1/(1-rate)))
	}
	for _, a := range p.additions() {
		if v, rate := dropped(a.term, op.Minus(p.Actual, a.rest)); v != nil {
			floats.Add(v, a.rest)
			out = append(out, p.says("dropout", v, 1, 0, text, " of "+a.name, rate, 1/(1-rate)))
		}
	}
	return out
}

// dropped returns g after a dropout of which a shows the mask, and its rate; nil if a is something
// else. The zeros must come at the rate that the factor of the others tells.
func dropped(g, a []float64) ([]float64, float64) {
	zeros, n := 0, 0
	var xy, xx float64
	scale := op.RootMeanSquare(g)
	isZero := func(i int) bool { return math.Abs(a[i]) < droppedBelow*scale }
	for i, x := range g {
		switch {
		case math.Abs(x) < tellsNothing*scale:
			continue
		case isZero(i):
			zeros++
		default:
			xy, xx = xy+x*a[i], xx+x*x
		}
		n++
	}
	if n < diagnose.PerParam || zeros == 0 || zeros == n || xx == 0 {
		return nil, 0
	}
	factor := xy / xx
	rate := 1 - 1/factor
	if !isRate(float64(zeros)/float64(n), rate, n) {
		return nil, 0
	}
	out := make([]float64, len(g))
	for i, x := range g {
		if !isZero(i) {
			out[i] = factor * x
		}
	}
	return out, rate
}

// isRate reports whether a share of n is what a dropout of a rate leaves: within four standard
// deviations of a binomial share, and one element.
func isRate(share, rate float64, n int) bool {
	return rate > 0 && rate < 1 && math.Abs(share-rate) <= deviations*math.Sqrt(rate*(1-rate)/float64(n))+1/float64(n)
}

// DroppedWeights is a dropout of the attention's weights. The weights w that the candidate used
// follow from the context c = w·v where there are no more keys than a head has elements; each must
// be 0 or 1/(1−p) times that of the softmax.
func DroppedWeights(s *diagnose.Scene) []diagnose.Prediction {
	g := rebuild.Of(s)
	if g == nil {
		return nil
	}
	o, ok := g.Explain(g.Target).(*rebuild.Attention)
	if !ok || o.OfWeights || o.Write != op.ByHead || o.Roll != 0 || o.ValueDim != 0 || o.Keys != 0 || o.Tokens > o.Dim || o.Width() != g.Target.Width {
		return nil
	}
	w := o.Weigh(g.With(g.Target, nil))
	solves := float64(o.Sequences * o.Heads * o.Tokens * o.Tokens * o.Tokens * o.Dim)
	if w == nil || !g.Spend(4*solves) {
		return nil
	}
	d := &droppedWeights{o: o, w: w}
	actual := s.Array(s.Target.Actual)
	if !op.All(actual.Data, op.IsFinite) || !d.solve(s, actual) {
		return nil
	}
	rate, share, ok := d.rate()
	if !ok {
		return nil
	}
	factor := 1 / (1 - rate)
	p := guess("dropout", 0, "dropout of the attention weights is on: %.3g of them are 0, "+
		"the others are multiplied by %.4g", share, factor)
	p.Params, p.Value = 1, actual.With(d.context(len(actual.Data), factor))
	return []diagnose.Prediction{p}
}

type droppedWeights struct {
	o   *rebuild.Attention
	w   *op.Weighed
	all []headWeights
}

// headWeights are the weights of one query in one head: the candidate's, and those of the softmax.
type headWeights struct {
	b, h, t    int
	has, right []float64
}

// solve finds the candidate's weights by least squares.
func (d *droppedWeights) solve(s *diagnose.Scene, actual *diagnose.Array) bool {
	o := d.o
	for b := range o.Sequences {
		for h := range o.Heads {
			v := mat.NewDense(o.Dim, o.Tokens, nil)
			for key := range o.Tokens {
				v.SetCol(key, d.w.Value(b, h, key))
			}
			var qr mat.QR
			if qr.Factorize(v); qr.Cond() > valuesCond {
				return false
			}
			for t := range o.Tokens {
				row := b*o.Tokens + t
				if s.Target.Pads(row) || s.Late() {
					continue
				}
				var w mat.VecDense
				head := slices.Clone(actual.Row(row)[h*o.Dim : (h+1)*o.Dim])
				if qr.SolveVecTo(&w, false, mat.NewVecDense(o.Dim, head)) != nil {
					return false
				}
				d.all = append(d.all, headWeights{b, h, t, w.RawVector().Data, d.w.Weights(b, h, t)})
			}
		}
	}
	return true
}

func isDropped(x float64) bool { return math.Abs(x) <= weightError }

// rate is p, if every weight that is large enough is 0 or 1/(1−p) times what it should be, and the
// share that is 0 is what p says.
func (d *droppedWeights) rate() (rate, share float64, ok bool) {
	var kept []float64
	n := 0
	for _, w := range d.all {
		for key, right := range w.right {
			if right > largeEnough {
				n++
				if r := w.has[key] / right; !isDropped(r) {
					kept = append(kept, r)
				}
			}
		}
	}
	if len(kept) < diagnose.PerParam || len(kept) == n {
		return 0, 0, false
	}
	slices.Sort(kept)
	factor := kept[len(kept)/2]
	rate, share = 1-1/factor, 1-float64(len(kept))/float64(n)
	alike := op.All(kept, func(x float64) bool { return isDropped(x/factor - 1) })
	return rate, share, alike && rate >= leastRate && rate <= mostRate && isRate(share, rate, n)
}

// context is that of the attention with these weights, each 0 or a factor times what it should
// be, whichever is nearer.
func (d *droppedWeights) context(n int, factor float64) []float64 {
	out := make([]float64, n)
	for _, w := range d.all {
		at := ((w.b*d.o.Tokens+w.t)*d.o.Heads + w.h) * d.o.Dim
		for key, right := range w.right {
			if right <= tooSmall || w.has[key] >= right*factor/2 {
				floats.AddScaled(out[at:at+d.o.Dim], factor*right, d.w.Value(w.b, w.h, key))
			}
		}
	}
	return out
}
