package pattern

import (
	"math"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/vec"
)

// dropout is zeros strewn over the tensor, with the rest scaled by 1/(1−p): a dropout that is still
// on.
func dropout(p *pair) (out []diagnose.Prediction) {
	const text = "dropout is on: %.3g of the elements are 0, the others are multiplied by %.4g"
	if v, rate := dropped(p.Right, p.Actual); v != nil {
		out = append(out, p.says("dropout", v, 1, 0, text, rate, 1/(1-rate)))
	}
	return out
}

// dropped returns g after a dropout of which a shows the mask, and its rate; nil if a is something
// else. The zeros must come at the rate that the factor of the others tells.
func dropped(g, a []float64) ([]float64, float64) {
	zeros, n := 0, 0
	var xy, xx float64
	scale := vec.RootMeanSquare(g)
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
