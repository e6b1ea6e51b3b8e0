package serving_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/internal/serving"
)

// What a number of draws is said to show is what it shows of simulated draws, and no right ones are accused.
func TestPower(t *testing.T) {
	const runs = 1000
	for _, c := range []struct {
		p      []float64
		draws  int
		noise  float64
		reason string
	}{
		{[]float64{0.5, 0.2, 0.15, 0.1, 0.05}, 200, 0, "few draws of few tokens"},
		{[]float64{0.5, 0.2, 0.15, 0.1, 0.05}, 2000, 0, "many draws"},
		{tilted(slices.Repeat([]float64{1. / 30}, 30), 0.5), 2000, 0, "many tokens"},
		{[]float64{0.9, 0.04, 0.03, 0.02, 0.01}, 700, 0, "all but certain"},
		{[]float64{0.5, 0.2, 0.15, 0.1, 0.05}, 2000, 0.05, "noise of 16 bits"},
	} {
		r := rand.New(rand.NewPCG(3, uint64(c.draws)))
		far := serving.Power(len(c.p), c.draws, c.noise)
		other, nearly := tilted(c.p, far), tilted(c.p, far/8)
		accused, suspected, shown, below := 0, 0, 0, 0
		for range runs {
			right := serving.Tail(c.p, multinomial(c.p, c.draws, r), c.noise)
			if right < serving.SurelyOther {
				accused++
			}
			if right < serving.PerhapsOther {
				suspected++
			}
			if serving.Tail(c.p, multinomial(other, c.draws, r), c.noise) < serving.SurelyOther {
				shown++
			}
			if serving.Tail(c.p, multinomial(nearly, c.draws, r), c.noise) < serving.SurelyOther {
				below++
			}
		}
		t.Logf("%s: %.3g nats show in %.3g of %d runs", c.reason, far, float64(shown)/runs, runs)
		assert.Zero(t, accused, c.reason)
		assert.LessOrEqual(t, suspected, 5, "%s: once in a thousand", c.reason)
		assert.InDelta(t, 0.8, float64(shown)/runs, 0.12, "%s: %.3g nats", c.reason, far)
		assert.Less(t, float64(below)/runs, 0.05, "%s: an eighth of it hardly shows", c.reason)
	}
}

func normalised(p []float64) []float64 {
	floats.Scale(1/floats.Sum(p), p)
	return p
}

// tilted is the distribution whose first tokens are less probable, so many nats off.
func tilted(p []float64, nats float64) []float64 {
	low, high := 0.0, 5.0
	by := func(x float64) []float64 {
		q := make([]float64, len(p))
		for i := range q {
			q[i] = p[i] * math.Exp(-x*math.Cos(float64(3*i)))
		}
		return normalised(q)
	}
	for range 60 {
		if middle := (low + high) / 2; stat.KullbackLeibler(by(middle), p) < nats {
			low = middle
		} else {
			high = middle
		}
	}
	return by(low)
}

func multinomial(p []float64, n int, r *rand.Rand) []int {
	counts := make([]int, len(p))
	for range n {
		x := r.Float64()
		for i := range p {
			if x -= p[i]; x < 0 || i == len(p)-1 {
				counts[i]++
				break
			}
		}
	}
	return counts
}
