package serving

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// gTest compares counts with a distribution:
//
//	G = 2 Σ O ln(O/E)
//
// over the tokens that are expected fivefold, all others together being one, which is χ² with a degree of freedom for
// each but one. The noise of logits moves √G by √n · noise at most; that is allowed.
type gTest struct {
	g, tail    float64 // G, and how probable a larger one is
	bins       int
	few        bool   // there is nothing to compare: one number of draws and no others
	impossible string // what was drawn and may not be
}

func test(expected map[string]float64, rest float64, drawn map[string]int, noise float64) (t gTest) {
	n, never, as, certain, seen := 0, 0, "", 0.0, 0.0
	for name, o := range drawn {
		if n += o; expected[name] > 0 || rest > 0 {
			continue
		}
		if never += o; drawn[as] < o || drawn[as] == o && name < as {
			as = name
		}
	}
	if never > 0 {
		t.impossible = fmt.Sprintf("%d are of tokens that cannot come, %d of them %s", never, drawn[as], strings.TrimPrefix(as, "text "))
	}
	t.bins = 1
	for name, p := range expected {
		e, o := p*float64(n), float64(drawn[name])
		if e < leastExpected {
			continue
		}
		t.bins++
		certain, seen = certain+e, seen+o
		if o > 0 {
			t.g += 2 * o * math.Log(o/e)
		}
	}
	if o := float64(n) - seen; o > 0 {
		t.g += 2 * o * math.Log(o/max(float64(n)-certain, smallestRest))
	}
	t.few = tooFew(t.bins, float64(n)-certain)
	root := max(math.Sqrt(max(t.g, 0))-math.Sqrt(float64(n))*noise, 0)
	t.tail = distuv.ChiSquared{K: float64(max(t.bins-1, 1))}.Survival(root * root)
	return t
}

// divergence is how far a distribution is from another in nats, as far as n draws of it tell: by the tokens that [test]
// compares, which are so many.
func (d distribution) divergence(from distribution, n float64) (nats float64, bins int) {
	is := map[int]float64{}
	for _, x := range d.shares {
		is[x.id] = x.p
	}
	add := func(p, q float64) {
		if p > 0 {
			nats += p * math.Log(p/q)
		}
	}
	certain, seen, never := 0.0, 0.0, 1.0
	bins = 1
	for _, x := range from.shares {
		if never -= is[x.id]; x.p*n < leastExpected {
			continue
		}
		bins, certain, seen = bins+1, certain+x.p, seen+is[x.id]
		add(is[x.id], x.p)
	}
	add(1-seen, max(1-certain, smallestRest/n))
	switch {
	case from.rest == 0 && never*n > leastExpected:
		nats = math.Inf(1)
	case tooFew(bins, n*(1-certain)):
		nats = 0
	}
	return nats, bins
}

// tooFew reports whether a test has less than two numbers of draws to compare: others counts as one where it is enough.
func tooFew(bins int, others float64) bool { return bins < 2 || bins == 2 && others < leastExpected }

// shows is the Kullback-Leibler divergence, in nats, of a distribution that n draws tell from the reference's in 8 of
// 10 cases: G is then normal, nearly, around df + 2n·KL with variance 2·(df + 4n·KL). What noise may do is allowed.
func shows(df int, n, noise float64) float64 {
	chi, z := distuv.ChiSquared{K: float64(max(df, 1))}, 0.8416
	critical := math.Sqrt(chi.Quantile(1-surelyOther)) + math.Sqrt(n)*noise
	// K + λ − z·√(2·(K + 2λ)) = critical², by the root of K + 2λ.
	root := z*math.Sqrt2 + math.Sqrt(2*z*z-chi.K+2*critical*critical)
	return (root*root - chi.K) / (4 * n)
}
