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
	root := max(math.Sqrt(max(t.g, 0))-math.Sqrt(float64(n))*noise, 0)
	t.tail = distuv.ChiSquared{K: float64(max(t.bins-1, 1))}.Survival(root * root)
	return t
}

// shows is the Kullback-Leibler divergence, in nats, of a distribution that n draws tell from the reference's in 8 of
// 10 cases: G is then normal, nearly, around df + 2n·KL with variance 2·(df + 4n·KL).
func shows(df, n int) float64 {
	chi, z := distuv.ChiSquared{K: float64(df)}, 0.8416
	critical, lambda := chi.Quantile(1-surelyOther), 0.0
	for chi.K+lambda-z*math.Sqrt(2*(chi.K+2*lambda)) < critical {
		lambda += 0.1
	}
	return lambda / (2 * float64(n))
}
