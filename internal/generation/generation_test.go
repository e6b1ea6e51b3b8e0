package generation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/tensor"
)

// logits returns n numbers with a standard deviation of about 1, and some of them set: as[token] = value.
func logits(n int, as map[int]float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Sqrt2 * math.Sin(float64(i)*2.4)
	}
	for token, v := range as {
		x[token] = v
	}
	return x
}

func with(x []float64, f func(i int, v float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(i, v)
	}
	return out
}

// kept is a row as a golden keeps it.
func kept(r generation.Row) generation.Row { return generation.Largest(r.Top, r.LSE, r.Spread) }

func TestRow(t *testing.T) {
	r := generation.NewRow(logits(200, map[int]float64{7: 9, 9: 9, 3: math.Inf(-1), 4: -3e38}))
	assert.Equal(t, generation.Logit{Token: 7, Value: 9}, r.Top[0], "of equal ones the lower token")
	assert.Len(t, r.Top, generation.Kept)
	assert.InDelta(t, 1.4, r.Spread, 0.2, "hidden tokens do not count")
	assert.Zero(t, r.Bad())
	k := kept(r)
	assert.False(t, k.Whole())
	assert.InDelta(t, r.LogProb(9), k.LogProb(9), 1e-12, "kept logits keep the sum over all")
	_, known := k.Logit(3)
	assert.False(t, known)
	assert.Equal(t, 2, generation.NewRow([]float64{math.NaN(), 1, math.Inf(1)}).Bad())
	l := generation.Largest([]generation.Logit{{5, -3}, {2, -0.1}}, math.NaN(), 0)
	assert.Equal(t, 2, l.Top[0].Token, "in any order")
	assert.InDelta(t, -0.1, l.LogProb(2), 1e-12, "log-probabilities are their own sum")
	assert.InDelta(t, 1.45, l.Spread, 1e-12, "half of the range stands for a spread that is not known")
}

func TestDecide(t *testing.T) {
	golden := logits(300, map[int]float64{10: 8, 20: 7.98, 30: 5})
	for _, tt := range []struct {
		actual    map[int]float64
		candidate int
		d         tensor.DType
		want      generation.Choice
		reason    string
	}{
		{nil, 10, tensor.F32, generation.Same, "the reference's token"},
		{map[int]float64{20: 8.01}, 20, tensor.BF16, generation.Tie, "a near-tie, turned by less than the noise of bfloat16"},
		{map[int]float64{20: 9}, 20, tensor.BF16, generation.Diverged, "near in the golden, and far in the candidate"},
		{map[int]float64{30: 8.01}, 30, tensor.BF16, generation.Diverged, "a confident token that is another one"},
		{map[int]float64{20: 8.01}, 20, tensor.F16, generation.Diverged, "float16 has an eighth of the noise"},
		{map[int]float64{20: math.NaN()}, 20, tensor.BF16, generation.Diverged, "NaN decides nothing"},
		{nil, 400, tensor.BF16, generation.Diverged, "a token beyond the golden's vocabulary"},
	} {
		a := append([]float64(nil), golden...)
		for token, v := range tt.actual {
			a[token] = v
		}
		assert.Equal(t, tt.want, generation.Decide(generation.NewRow(golden), generation.NewRow(a), 10, tt.candidate, tt.d), tt.reason)
		if tt.candidate < 300 {
			assert.Equal(t, tt.want, generation.Decide(kept(generation.NewRow(golden)), generation.NewRow(a), 10, tt.candidate, tt.d), "kept: "+tt.reason)
		}
	}
}

func TestCompare(t *testing.T) {
	golden := logits(1000, map[int]float64{10: 8, 20: 7.98})
	same := func(i int, v float64) float64 { return v }
	noise := func(i int, v float64) float64 { return v + 1e-6*math.Sin(float64(i)*1.7) }
	for _, tt := range []struct {
		actual   func(i int, v float64) float64
		said     int
		d        tensor.DType
		choice   generation.Choice
		wrong    []int
		fails    bool // by the limits of float32
		reason   string
		saidElse int
	}{
		{same, 10, tensor.F32, generation.Same, nil, false, "the same", -1},
		{noise, -1, tensor.F32, generation.Same, nil, false, "roundings of float32", -1},
		{func(_ int, v float64) float64 { return v + 3 }, -1, tensor.F32, generation.Same, nil, false, "a number added to all changes no probability", -1},
		{func(_ int, v float64) float64 { return 0.8 * v }, -1, tensor.F32, generation.Same, nil, true, "scaled", -1},
		{exchanged(golden, 500, 600), -1, tensor.BF16, generation.Same, []int{500, 600}, true, "two logits that decide nothing, exchanged", -1},
		{exchanged(golden, 10, 20), -1, tensor.F32, generation.Diverged, []int{10, 20}, true, "the two largest, exchanged", -1},
		{exchanged(golden, 10, 20), -1, tensor.BF16, generation.Tie, nil, false, "that is a tie in bfloat16", -1},
		{same, 20, tensor.F32, generation.Diverged, nil, false, "the engine says another one than its logits", 20},
		{same, 20, tensor.BF16, generation.Tie, nil, false, "as it may, where its own logits cannot tell the two", -1},
		{same, 77, tensor.BF16, generation.Diverged, nil, false, "but not where they can", 77},
		{func(i int, v float64) float64 {
			if i == 3 {
				return math.NaN()
			}
			return v
		}, -1, tensor.F32, generation.Diverged, nil, true, "NaN", -1},
		{func(i int, v float64) float64 {
			if i > 990 {
				return math.Inf(-1)
			}
			return v
		}, -1, tensor.F32, generation.Same, nil, true, "tokens are hidden that have some of the probability", -1},
	} {
		p := generation.Compare(generation.NewRow(golden), generation.NewRow(with(golden, tt.actual)), 10, tt.said, tt.d)
		assert.Equal(t, tt.choice, p.Choice, tt.reason)
		assert.Equal(t, tt.wrong, p.Outliers, tt.reason)
		assert.Equal(t, tt.saidElse, p.Said, tt.reason)
		assert.Equal(t, tt.d == tensor.BF16, p.Flat, "%s: of the golden", tt.reason)
		p.Flat = false
		r := generation.Judge([]generation.Position{p}, tt.d, compare.Limits{RelL2: 1e-4, RowRelL2: 1e-4})
		if tt.choice == generation.Same {
			assert.Equal(t, tt.fails, r.Verdict == generation.Logits, tt.reason)
		}
	}
	more := append(append([]float64(nil), golden...), 1, 2, 3)
	p := generation.Compare(generation.NewRow(golden), generation.NewRow(more), 10, -1, tensor.F32)
	assert.Equal(t, generation.Same, p.Choice, "a vocabulary that was padded")
	assert.Zero(t, p.Hidden)
	whole, q := 0.0, generation.NewRow(with(golden, func(_ int, v float64) float64 { return 0.8 * v }))
	p = generation.Compare(generation.NewRow(golden), q, 10, -1, tensor.F32)
	assert.InDelta(t, 0.2, p.Error, 1e-9)
	for i := range golden {
		pi := math.Exp(generation.NewRow(golden).LogProb(i))
		whole += pi * (math.Log(pi) - q.LogProb(i))
	}
	assert.InEpsilon(t, whole, p.KL, 0.05, "64 logits and a rest have nearly all of the divergence")
	assert.LessOrEqual(t, p.KL, whole, "a coarser partition never has more")
}

// What is said of a position beside its choice.
func TestMetrics(t *testing.T) {
	golden := generation.NewRow(logits(100, map[int]float64{10: 8, 20: 7.5, 30: math.Inf(-1)}))
	actual := generation.NewRow(logits(100, map[int]float64{10: 8, 20: 9, 30: math.Inf(-1)}))
	p := generation.Compare(golden, actual, 10, -1, tensor.F32)
	noise := generation.Noise(tensor.F32, golden.Spread, 8)
	assert.Equal(t, noise, p.Noise)
	assert.InDelta(t, 0.5, p.Gap*noise, 1e-9)
	assert.InDelta(t, -1, p.CandidateGap*noise, 1e-9)
	assert.Equal(t, []int{1, 20}, []int{p.Rank, p.Candidate})
	assert.Equal(t, []float64{golden.LogProb(10), actual.LogProb(10)}, []float64{p.LogProb, p.CandidateLogProb})
	assert.Zero(t, p.Hidden, "what both sides hide")
	p = generation.Compare(golden, golden, 10, -1, tensor.F32)
	assert.InDelta(t, 0.5, p.Gap*p.Noise, 1e-9, "before the second")
	assert.Equal(t, []float64{0, 0, 0}, []float64{p.Error, p.KL, float64(p.Rank)})

	few := func(v ...float64) generation.Row {
		return generation.Largest([]generation.Logit{{10, v[0]}, {20, v[1]}, {30, v[2]}}, 0, 0.5)
	}
	p = generation.Compare(few(-0.1, -3, -4), few(-0.1, -3, -4.3), 10, -1, tensor.F32)
	assert.InEpsilon(t, 0.3/math.Sqrt(0.1*0.1+3*3+4*4), p.Error, 1e-9, "of few tokens, relative to their log-probabilities")
	x := logits(100, nil)
	p = generation.Compare(generation.NewRow(x), generation.NewRow(with(x, func(i int, v float64) float64 { return v + 3 + 0.01*math.Sin(float64(i)) })), 0, -1, tensor.F32)
	mean, sine, off, size := floats.Sum(x)/100, with(x, func(i int, _ float64) float64 { return math.Sin(float64(i)) }), 0.0, 0.0
	for i, v := range x {
		off, size = off+math.Pow(0.01*(sine[i]-floats.Sum(sine)/100), 2), size+math.Pow(v-mean, 2)
	}
	assert.InEpsilon(t, math.Sqrt(off/size), p.Error, 1e-9, "a shift of all changes nothing")

	part := golden.Of(15)
	assert.True(t, generation.NewRow(logits(100, map[int]float64{20: 9})).Of(15).Beyond)
	assert.False(t, part.Beyond, "the largest logit is among those that count")
	assert.Equal(t, golden.All, part.All)
	assert.Less(t, part.LSE, part.All)
	assert.Equal(t, golden, golden.Of(100), "all count")
	assert.Equal(t, golden, golden.Of(0), "not known")
	assert.Equal(t, math.Inf(1), generation.NewRow([]float64{3}).Gap(), "of one token")
}

func exchanged(x []float64, i, j int) func(int, float64) float64 {
	return func(k int, v float64) float64 {
		switch k {
		case i:
			return x[j]
		case j:
			return x[i]
		}
		return v
	}
}

func TestJudge(t *testing.T) {
	positions := func(n int, f func(k int, p *generation.Position)) []generation.Position {
		out := make([]generation.Position, n)
		for k := range out {
			out[k] = generation.Position{Choice: generation.Same, Said: -1, Error: 1e-6}
			f(k, &out[k])
		}
		return out
	}
	limits := compare.Limits{RelL2: 1e-4, RowRelL2: 1e-4}
	for _, tt := range []struct {
		n      int
		f      func(k int, p *generation.Position)
		want   generation.Verdict
		at     int
		reason string
	}{
		{20, func(int, *generation.Position) {}, generation.Identical, -1, "all the same"},
		{20, func(k int, p *generation.Position) { p.Flat = k < 4 }, generation.Identical, -1, "a fifth within the noise is not flat"},
		{20, func(k int, p *generation.Position) { p.Flat = k < 7 }, generation.Identical, -1, "a third, and every other token is the reference's"},
		{20, func(k int, p *generation.Position) {
			if p.Flat = k < 7; k == 3 {
				p.Choice = generation.Tie
			}
		}, generation.Ties, 3, "one of them a tie"},
		{20, func(k int, p *generation.Position) {
			if p.Flat = k < 7; k == 9 {
				p.Choice = generation.Tie
			}
		}, generation.Uninformative, -1, "a token that the golden decides is none"},
		{20, func(k int, p *generation.Position) { p.Flat = k < 8 }, generation.Uninformative, -1, "more than that"},
		{20, func(k int, p *generation.Position) {
			p.Flat = true
			if k == 4 {
				p.Choice = generation.Diverged
			}
		}, generation.Uninformative, -1, "where it is flat, another token tells little"},
		{20, func(k int, p *generation.Position) { p.Flat, p.Error = true, 0.3 }, generation.Logits, 0, "wrong logits are wrong all the same"},
		{20, func(k int, p *generation.Position) {
			if k == 7 || k == 9 {
				p.Choice = generation.Tie
			}
		}, generation.Ties, 7, "ties"},
		{20, func(k int, p *generation.Position) {
			if k > 6 {
				p.Choice = generation.Tie
			}
			if k == 9 {
				p.Choice = generation.Diverged
			}
		}, generation.Divergent, 9, "one that is none, among ties"},
		{20, func(k int, p *generation.Position) {
			if k == 3 {
				p.Error = 2e-4
			}
		}, generation.Logits, 3, "right tokens, wrong logits"},
		{20, func(_ int, p *generation.Position) { p.Hidden = 1e-3 }, generation.Identical, -1, "a thousandth is hidden: tokens that no one has"},
		{20, func(_ int, p *generation.Position) { p.Hidden = 1.1e-3 }, generation.Logits, 0, "more than that"},
		{20, func(k int, p *generation.Position) { p.Error = 1e-6 * math.Pow(1.26, float64(k)) }, generation.Logits, 19, "an error that grows out of the noise"},
		{20, func(k int, p *generation.Position) { p.Error = 1e-8 * math.Pow(1.26, float64(k)) }, generation.Identical, -1, "one that stays below it"},
		{20, func(k int, p *generation.Position) { p.Error = 6e-5 }, generation.Identical, -1, "one that does not grow"},
		{6, func(k int, p *generation.Position) { p.Error = 1e-7 * math.Pow(3.5, float64(k)) }, generation.Identical, -1, "too few positions tell no growth"},
		{20, func(k int, p *generation.Position) {
			if k == 5 {
				p.Error = math.Inf(1)
			}
		}, generation.Logits, 5, "an error that is not finite"},
	} {
		r := generation.Judge(positions(tt.n, tt.f), tensor.F32, limits)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
		assert.Equal(t, tt.at, r.At, tt.reason)
	}
}

func TestSums(t *testing.T) {
	var positions []generation.Position
	half := math.Log(0.5)
	for k, e := range []float64{1, 1, 1, 1, 7, 1, 3, 1, 3} {
		p := generation.Position{Choice: generation.Same, Said: -1, Error: e, KL: e / 10, Flat: k < 1, LogProb: half, CandidateLogProb: 2 * half}
		if k == 1 {
			p.Choice = generation.Tie
		}
		positions = append(positions, p)
	}
	r := generation.Judge(positions, tensor.F32, compare.Limits{RelL2: 9, RowRelL2: 9})
	assert.Equal(t, []int{8, 1, 4, 1}, []int{r.Agree, r.Ties, r.Worst, r.At})
	assert.InDeltaSlice(t, []float64{1.0 / 9, 0.7, math.Sqrt(73.0 / 9), 3}, []float64{r.Flat, r.KL, r.RelL2, r.Growth}, 1e-12)
	assert.InDeltaSlice(t, []float64{2, 4}, r.Perplexity[:], 1e-12, "tokens with half of the probability, and with a quarter")
	assert.True(t, math.IsNaN(generation.Judge(positions[:8], tensor.F32, r.Limits).Growth), "so few do not grow")
	assert.False(t, r.Fails())
	assert.Equal(t, 1.0, generation.Judge(make([]generation.Position, 9), tensor.F32, r.Limits).Growth, "none of none")
	r = generation.Judge(positions, tensor.F32, compare.Limits{RelL2: 2, RowRelL2: 9})
	assert.True(t, r.Fails(), "all of them are beyond the limit, and no row is")
	assert.Equal(t, 4, r.At, "the worst one stands for them")
}

// A row of equal logits chooses no token, so that it is never the reference's choice.
func TestConstantRow(t *testing.T) {
	level := make([]float64, 200)
	golden := generation.NewRow(logits(200, map[int]float64{0: 9}))
	for i := range level {
		level[i] = 0.1 // whose mean is rounded
	}
	for _, row := range []generation.Row{generation.NewRow(level), kept(generation.NewRow(level))} {
		assert.True(t, row.Constant())
		assert.Equal(t, generation.Diverged, generation.Compare(golden, row, 0, -1, tensor.F32).Choice)
	}
	none := generation.NewRow(make([]float64, 200))
	assert.Zero(t, generation.Compare(none, none, 0, -1, tensor.F32).Error, "beside itself")
	far := generation.NewRow([]float64{9, 8, -900})
	assert.Zero(t, generation.Compare(far, far, 0, -1, tensor.F32).KL, "a token without any probability")
	assert.False(t, golden.Constant())
	assert.False(t, generation.NewRow([]float64{math.Inf(-1), 3, math.Inf(-1)}).Constant(), "one token is allowed")
}
