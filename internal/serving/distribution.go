package serving

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// share is what a token has of the probability, among those that may be drawn.
type share struct {
	id int
	p  float64
}

// distribution is what tokens may be drawn, and what is left for all others; 0: none may.
type distribution struct {
	shares []share
	rest   float64
}

// drawable reports whether a token can be chosen: those that the tokenizer does not have cannot.
func (m *Model) drawable(id int) bool { return m.Vocab == nil || m.Vocab.has(id) }

// distribution is that of a row at a temperature, of the tokens that are known and can be drawn, with their logits
// changed. All others are as they were at temperature 1; at a lower one they are at most what is taken for them.
func (m *Model) distribution(row Row, temperature float64, change func(x float64, id int) float64) (d distribution) {
	others, least, most := 1.0, math.Inf(1), math.Inf(-1)
	for id, x := range row.Known() {
		if row.Whole() && !m.drawable(id) {
			continue
		}
		others, least = others-math.Exp(x-row.LSE), min(least, x)
		if change != nil {
			x = change(x, id)
		}
		x /= temperature
		d.shares, most = append(d.shares, share{id, x}), max(most, x)
	}
	if len(d.shares) == 0 {
		return distribution{rest: 1}
	}
	if !row.Whole() && others > 0 {
		x := row.LSE + math.Log(others) + least*(1/temperature-1) // of all others
		most = max(most, x)
		d.rest = math.Exp(x - most)
	}
	all := d.rest
	for i := range d.shares {
		d.shares[i].p = math.Exp(d.shares[i].p - most)
		all += d.shares[i].p
	}
	d.rest /= all
	for i := range d.shares {
		d.shares[i].p /= all
	}
	return d
}

// ranked is a distribution with the largest shares first.
func (d distribution) ranked() distribution {
	slices.SortStableFunc(d.shares, func(a, b share) int { return cmp.Compare(b.p, a.p) })
	return d
}

// byID are the shares of the tokens that are known.
func (d distribution) byID() map[int]float64 {
	p := make(map[int]float64, len(d.shares))
	for _, x := range d.shares {
		p[x.id] = x.p
	}
	return p
}

// of is the share of one token; 0 where it is not among those that are known.
func (d distribution) of(id int) float64 {
	if i := slices.IndexFunc(d.shares, func(x share) bool { return x.id == id }); i >= 0 {
		return d.shares[i].p
	}
	return 0
}

// after is what remains of a distribution after tokens that come so often: all else is another text.
func (d distribution) after(reach float64) (out distribution) {
	for _, x := range d.shares {
		out.shares = append(out.shares, share{x.id, reach * x.p})
	}
	out.rest = 1 - reach + reach*d.rest
	return out
}

// first is the distribution of its first tokens alone, ranked.
func (d distribution) first(n int) distribution {
	out := distribution{shares: d.shares[:n]}.after(1 / d.mass(n))
	out.rest = 0
	return out
}

// mass is the probability of the first tokens.
func (d distribution) mass(n int) (sum float64) {
	for _, x := range d.shares[:n] {
		sum += x.p
	}
	return sum
}

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

// apart is how far shares are from others, as far as n draws of them tell: infinitely, where tokens would be drawn that
// the others have not. rest is what these leave to tokens that are not known.
func apart(is, from map[int]float64, rest, n float64) float64 {
	nats, _, few := divergence(is, from, n)
	never := 1.0
	for id := range from {
		never -= is[id]
	}
	switch {
	case rest == 0 && never*n > leastExpected:
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
