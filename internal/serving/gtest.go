package serving

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// gTest compares counts with a distribution:
//
//	G = 2 Σ O ln(O/E)
//
// over the tokens that are expected fivefold, all others together being one, which is χ² with a degree of freedom for
// each but one. The noise of logits moves √G by √n · noise at most; that is allowed.
type gTest struct {
	outcome
	expected   map[string]float64
	g, tail    float64 // G, and how probable a larger one is
	bins       int
	few        bool   // there is nothing to compare: one number of draws and no others
	impossible string // what was drawn and may not be
}

func test(expected map[string]float64, rest float64, drawn map[string]int, noise float64) gTest {
	t, n, never, most, is := gTest{expected: expected}, 0, 0, "", map[string]float64{}
	for _, o := range drawn {
		n += o
	}
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		o := drawn[name]
		if is[name] = float64(o) / float64(n); expected[name] > 0 || rest > 0 {
			continue
		}
		if never += o; o > drawn[most] {
			most = name
		}
	}
	if never > 0 {
		t.impossible = fmt.Sprintf("%d are of tokens that cannot come, %d of them %s", never, drawn[most], most)
	}
	t.g, t.bins, t.few = divergence(is, expected, float64(n))
	t.g *= 2 * float64(n)
	root := max(math.Sqrt(max(t.g, 0))-math.Sqrt(float64(n))*noise, 0)
	t.tail = distuv.ChiSquared{K: float64(max(t.bins-1, 1))}.Survival(root * root)
	return t
}

// divergence is the Kullback-Leibler divergence of shares from others, in nats, as far as n draws tell it: by those that
// are expected fivefold, and all others together. few says that these are less than two numbers to compare.
func divergence[K comparable](is, from map[K]float64, n float64) (nats float64, bins int, few bool) {
	add := func(p, q float64) {
		if p > 0 {
			nats += p * math.Log(p/q)
		}
	}
	certain, seen := 0.0, 0.0
	bins = 1
	for k, p := range from {
		if p*n >= leastExpected {
			bins, certain, seen = bins+1, certain+p, seen+is[k]
			add(is[k], p)
		}
	}
	if others := 1 - seen; others > 1e-9 { // else it is rounding of the sums
		add(others, max(1-certain, smallestRest/n))
	}
	return nats, bins, bins < 2 || bins == 2 && n*(1-certain) < leastExpected
}

// apart is how far a distribution is from another, as far as n draws of it tell: infinitely, where tokens would be drawn
// that the other has not.
func (d distribution) apart(from distribution, n float64) float64 {
	is, of := d.byID(), from.byID()
	nats, _, few := divergence(is, of, n)
	never := 1.0
	for id := range of {
		never -= is[id]
	}
	switch {
	case from.rest == 0 && never*n > leastExpected:
		return math.Inf(1)
	case few:
		return 0
	}
	return nats
}

// shows is the Kullback-Leibler divergence, in nats, of a distribution that n draws tell from the reference's in 8 of
// 10 cases: G is then normal, nearly, around df + 2n·KL with variance 2·(df + 4n·KL). What noise may do is allowed.
func shows(df int, n, noise float64) float64 {
	chi, z := distuv.ChiSquared{K: float64(max(df, 1))}, 0.8416
	critical := math.Sqrt(chi.Quantile(1-surelyOther)) + math.Sqrt(n)*noise
	// K + λ − z·√(2·(K + 2λ)) = critical², by the root of K + 2λ.
	root := z*math.Sqrt2 + math.Sqrt(2*z*z-chi.K+2*critical*critical)
	return (root*root - chi.K) / (4 * n)
}
