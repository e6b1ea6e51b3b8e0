package piece_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

var weights = []edit.Weight{{Name: "0.up.weight", Shape: []int{16, 8}, DType: tensor.F32}, {Name: "1.up.weight", Shape: []int{16, 8}, DType: tensor.F32},
	{Name: "1.norm.weight", Shape: []int{8}, DType: tensor.F32}, {Name: "1.gate.weight", Shape: []int{16, 8}, DType: tensor.F32},
	{Name: "1.down.weight", Shape: []int{8, 16}, DType: tensor.F32}}

// groupsOf are quantised weights, and how large their groups are.
var groupsOf = map[string]int{"q.whole": 16, "q.centred": 16, "q.blocks": 32}

// linear is a product with a weight.
func linear(name, rows, in string) *program.Piece {
	return sample("linear", "NAME", name, "OUT", rows, "IN", in)
}

// quantised are the numbers of such a weight: with zero points, with the same one for all, or in blocks of 256 whose
// scales and minima are whole numbers of 6 bits.
func quantised(name string, rows, in, size int) (w []float64) {
	for i := range rows * in {
		r, c := i/in, i%in
		k := c / size
		q := []float64{0, 15, float64((r*5 + c*c*7 + k) % 16)}[min(c%size, 2)] // each group has the lowest and the highest
		scale, zero := math.Sqrt(float64(2+(r*7+k*3)%11))/64, 8.0
		switch name {
		case "q.whole":
			zero = float64((3*r + 5*k) % 16)
		case "q.blocks":
			d, least := float64(1+(r+c/256)%3)/1024, float64(1+(2*r+c/256)%3)/128
			six := func(of int) float64 { return []float64{63, float64(1 + (of*11+r*3)%63)}[min(k%8, 1)] }
			scale, zero = d*six(k), least*six(k+5)/(d*six(k))
		}
		w = append(w, scale*(q-zero))
	}
	return w
}

// load returns numbers that are the same for the same value.
func load(v *program.Value) (*replay.Array, error) {
	if v.Data != nil {
		t, err := tensor.New(v.DType, v.Shape, v.Data)
		if err != nil {
			return nil, err
		}
		return replay.FromTensor(t)
	}
	if size := groupsOf[v.Weight]; size > 0 {
		return replay.Of(tensor.F32, v.Shape, quantised(v.Weight, v.Shape[0], v.Shape[1], size))
	}
	seed := uint64(v.Record)
	for _, c := range v.Weight {
		seed = seed*31 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	if v.Weight == "padded.weight" {
		clear(x[:v.Shape[1]])
	}
	return replay.Of(tensor.F32, v.Shape, x)
}

// site is a piece whose candidate is what a base makes with a patch.
func site(t *testing.T, p *program.Piece, patch replay.Patch) *piece.Search {
	t.Helper()
	base := baseOf(t, p, load)
	a, err := base.Run(patch)
	require.NoError(t, err)
	return &piece.Search{Piece: p, Load: load, Weights: weights, Off: off(a.Floats(), (*replay.Array).Floats), Numbers: (*replay.Array).Floats}
}

// off is how far numbers are off, in units of 2e-6 and as relative L2.
func off(want []float64, numbers func(*replay.Array) []float64) func(*replay.Array) (units, relative float64) {
	return func(a *replay.Array) (units, relative float64) {
		var d, n float64
		for i, v := range numbers(a) {
			d, n = d+(v-want[i])*(v-want[i]), n+want[i]*want[i]
		}
		e := math.Sqrt(d / n)
		return e / 2e-6, e
	}
}

// baseOf is a piece that was run.
func baseOf(t *testing.T, p *program.Piece, load replay.Load) *replay.Base {
	t.Helper()
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	return base
}

// find searches at a site.
func find(t *testing.T, s *piece.Search) *piece.Found {
	t.Helper()
	r, err := piece.Find(t.Context(), s)
	require.NoError(t, err)
	return r
}

// planted is an edit of a piece, by its text.
func planted(t *testing.T, p *program.Piece, others []edit.Weight, text string) edit.Edit {
	t.Helper()
	base := baseOf(t, p, load)
	edits := listed(base, others, nil)
	i := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Text == text })
	require.GreaterOrEqual(t, i, 0, text)
	return edits[i]
}

// found is what the search finds in a piece in which an edit is made.
func found(t *testing.T, p *program.Piece, others []edit.Weight, e edit.Edit) *piece.Found {
	t.Helper()
	s := site(t, p, e.Patch)
	s.Weights = others
	r, err := piece.Find(t.Context(), s)
	require.NoError(t, err, e.Text)
	require.NotEmpty(t, r.Fits, e.Text)
	return r
}

// Whatever edit a candidate has, the search finds it, or one of the same function.
func TestFindsEveryEdit(t *testing.T) {
	p := sample("block")
	base := baseOf(t, p, load)
	edits := listed(base, weights, nil)
	require.Greater(t, len(edits), 500)
	rng := rand.New(rand.NewPCG(1, 2))
	tried := map[string]int{}
	for _, i := range rng.Perm(len(edits)) {
		e := edits[i]
		if tried[e.Kind] == 3 {
			continue
		}
		a, err := base.Run(e.Patch)
		if err != nil || slices.ContainsFunc(a.Floats(), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			continue
		}
		s := site(t, p, e.Patch)
		r := find(t, s)
		if r.Off <= 1 {
			continue // it changes nothing
		}
		tried[e.Kind]++
		assert.Contains(t, edit.IDs(), "edit/"+e.Kind, "docs/causes.md has no such kind")
		if assert.NotEmpty(t, r.Fits, "%s: %s", e.Kind, e.Text) {
			assert.LessOrEqual(t, r.Fits[0].Cost, e.Cost, "%s: %s is found as %s", e.Kind, e.Text, r.Fits[0].Text)
			assert.LessOrEqual(t, r.Fits[0].Off, 1.0)
		}
	}
	assert.Greater(t, len(tried), 8, tried)
}

// What does the same at many places is proven where it is one cause wherever it is.
func TestPlaces(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		piece, text string
		proven      bool
		reason      string
	}{
		{"negated", "bfloat16: the result of neg", true, "all of a line come first"},
		{"negated", "2 times the result of neg", true, "in one of two lines"},
		{"negated-6", "bfloat16: the result of neg", true, "whichever is rounded, the type is the cause"},
		{"negated-6", "2 times the result of neg", false, "a factor, somewhere"},
	} {
		p := sample(tt.piece)
		r := found(t, p, nil, planted(t, p, nil, tt.text))
		assert.Equal(t, tt.proven, r.Proven, tt.reason)
		said(&all, tt.text, r)
	}
	toy.Kept(t, "places.txt", all.String())
}

// Edits are found again and proven, and named by what stands around them.
func TestLabels(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		piece            *program.Piece
		text, id, reason string
	}{
		{sample("recurrent"), "the state is empty again after run 2 of the loop", "ssm/state", "a scan in chunks that begins anew"},
		{sample("gated"), "add before mul", "edit/order", "the second operand is made of two"},
		{sample("paired"), "what goes into view, as 2×4 → 4×2, and back after it", "rope/layout", "halves are turned, where the reference turns neighbours"},
		{sample("pooled"), "mean from 1 to 6 → from 0 to 6", "edit/slice", "the first token is one of those that are pooled"},
		{sample("pooled"), "mean from 1 to 6 → from 1 to 5", "edit/slice", "the last one is none"},
		{sample("sparse"), "0, 1, 2 and so on in place of sort", "rope/offset", "and not 0 times the scores, after which the first ones are chosen"},
		{sample("sparse"), "the first of axis 0 of sort everywhere", "rope/offset", "the places of one row for all"},
		{sample("block"), "silu → gelu", "activation/gelu", "another activation"},
		{sample("block"), "silu left out", "activation/missing", "nothing in its place"},
		{sample("block"), "other of add: 1e-06 → 1e-05", "norm/eps", "what is added below the root"},
		{sample("block"), "0.up.weight → 1.up.weight", "linear/other-layer", "the same role in another layer"},
		{sample("block"), "mul left out", "norm/missing", "the root is not taken"},
		{sample("attention"), "mask false everywhere", "attention/causal", "all see all"},
		{sample("attention"), "mask → lower triangle at -1", "attention/causal", "a number away"},
		{sample("attention"), "the result of add is the mm before", "rope/applied", "q as it came from its projection"},
		{sample("attention"), "2 times bias", "linear/bias-twice", "what is added"},
		{sample("attention"), "transpose left out", "linear/transposed", "a weight that is read as it lies"},
		{sample("block"), "silu → relu", "activation/relu", "another activation"},
		{sample("block"), "silu → leaky_relu", "activation/leaky-relu", "whose name has two words"},
		{sample("block"), "silu → gelu (tanh)", "activation/gelu-tanh", "another one, of two forms"},
		{sample("block"), "other of add: 1e-06 → 0.01", "norm/eps", "what is added below the root"},
		{sample("block"), "0.norm.weight → 1.norm.weight", "norm/weight", "a weight of one axis"},
		{sample("block"), "0 → 1", "linear/other-layer", "all weights of a block"},
		{sample("attention"), "other of mul: 0.3 → 3", "residual/scale", "a factor of what is added"},
		{sample("window"), "mask true everywhere", "attention/mask", "the window, one of two masks"},
		{sample("routed"), "divided by its sum, the result of topk", "moe/renorm", "the first of two results"},
		{sample("angles", "FREQUENCIES", "1,0.1,0.01,0.001"), "base of the constant of mul: 1e+04 → 5e+05", "rope/theta", "other frequencies"},
		{sample("angles", "FREQUENCIES", "1,0.10009765625,0.010009765625,0.00099945068359375"), "base of the constant of mul: 1.001e+04 → 5e+05", "rope/theta",
			"those that were rounded to bfloat16"},
		{sample("angles", "FREQUENCIES", "1,0.1,0.002,0.0001"), "the constant of mul without its scaling", "rope/scaling", "those for long contexts"},
		{sample("angles", "FREQUENCIES", "100,10,0.125,0.0125"), "the constant of mul scaled by 4 and not 8", "rope/scaling", "the last are divided by another factor"},
		{sample("headed"), "2 heads of 4 → 4 of 2, scaled by 0.7071", "attention/heads", "more heads, which are smaller"},
		{sample("headed"), "2 heads of 4 → 1 of 8, scaled by 0.5", "attention/heads", "one head, by the scale of two"},
		{sample("partly"), "all 8 columns are turned and not 4", "rope/applied", "a rotation of all columns"},
		{sample("partly"), "2 columns are turned and not 4", "rope/applied", "a rotation of half of them"},
		{sample("headed"), "queries and keys are turned, by angles of base 10000", "rope/applied", "a layer without positions"},
		{sample("attention"), "queries and keys are turned, by angles of base 500000, as neighbours", "rope/applied", "the same of keys that lie along the last axis"},
		{sample("resized"), "resized cubic, corners aligned", "image/resize", "a matrix that is another"},
		{sample("repeated"), "upsample_nearest2d → linear", "image/resize", "points between those that are there"},
		{sample("sectioned"), "sections [2 3 3] → [4 2 2]", "rope/sections", "columns of other positions"},
		{sample("sectioned"), "all sections of 0", "rope/sections", "one position for all"},
		{sample("convolved"), "padding of convolution: all before axis 0", "conv/padding", "what sees the past alone"},
		{sample("convolved"), "padding of convolution: from the other side", "conv/padding", "an image that is a ring"},
		{sample("convolved"), "padding of convolution: the edge again", "conv/padding", "an edge that goes on"},
		{sample("reflected"), "padding of convolution: zeros", "conv/padding", "nothing beyond the edges, which go on by indices"},
		{sample("coordinates"), "points of linspace: from end to end → middles of parts", "embedding/position", "the middles of pixels, along both axes"},
		{sample("convolved"), "dilation of convolution: [1] → 2, padded on both sides", "edit/integer", "taps further apart"},
		{sample("coordinates"), "from 0 to 1 → from -1 to 1", "embedding/position", "another stretch, along both axes"},
		{sample("begun"), "from 0 to 0.619 → from 0 to 1", "embedding/position", "as many points as there are of the whole stretch"},
		{sample("fourier"), "padding of axis 1: [0 6] → [6 0]", "layout/shifted", "all of it before the rows"},
		{sample("headed-fused"), "scale of scaled_dot_product_attention: 0.5 → 0.25", "attention/scale", "a scale, where the reference gives none"},
		{linear("0.up.weight", "16", "8"), "8 bits, a step for each 8 numbers: 0.up.weight", "dtype/downcast", "a weight in 8 bits, by row"},
		{linear("padded.weight", "16", "8"), "8 bits, a step for each 8 numbers: padded.weight", "dtype/downcast", "one with a row of zeros"},
		{sample("convolved"), "bias of convolution left out", "linear/bias-missing", "of a convolution"},
		{sample("fourier"), "the convolution wraps around", "conv/padding", "nothing was padded for it"},
		{sample("convolved"), "axis 2 flipped of c.weight", "conv/flipped", "the taps from the end"},
		{sample("convolved"), "axis 1 flipped of c.weight", "image/channels", "the channels from the end"},
		{sample("convolved"), "min of clamp: none → -0.5", "value/clipped", "bounded on both sides"},
		{sample("convolved"), "sigmoid → tanh", "activation/tanh", "another gate"},
		{sample("counted"), "add left out", "embedding/position", "rows of a table, by positions that the model counts"},
		{sample("convolved"), "gate(x) left out", "activation/missing", "a call that is left out"},
		{sample("block"), "bfloat16: the result of silu", "dtype/downcast", "a result that is rounded is tried first where little is wrong"},
		{sample("attention"), "all of it in float16", "dtype/downcast", "all are"},
	} {
		r := found(t, tt.piece, weights, planted(t, tt.piece, weights, tt.text))
		said(&all, tt.text, r)
		assert.True(t, r.Proven, tt.reason)
		assert.Equal(t, tt.id, edit.Label(tt.piece, r.Fits[0].Edit), "%s: %s", tt.reason, r.Fits[0].Text)
		for _, other := range r.Also {
			assert.NotContains(t, other.Text, "0 times the result of sigmoid", tt.reason)
		}
	}
	toy.Kept(t, "found.txt", all.String())
}

func TestNothingFits(t *testing.T) {
	p := sample("block")
	s := site(t, p, replay.Patch{})
	r := find(t, s)
	assert.Empty(t, r.Fits, "the piece is right as it is")

	base := baseOf(t, p, load)
	rng := rand.New(rand.NewPCG(3, 4))
	noise := base.Value(p.Out).Floats()
	for i := range noise {
		noise[i] *= 1 + 0.1*rng.NormFloat64()
	}
	s.Off = off(noise, (*replay.Array).Floats)
	r = find(t, s)
	assert.Empty(t, r.Fits, "noise is no edit")
	assert.False(t, r.Proven)
	assert.Nil(t, r.Near)
	assert.Equal(t, r.Listed, r.Tried)

	a, err := base.Run(planted(t, p, weights, "silu → gelu").Patch)
	require.NoError(t, err)
	for i, v := range a.Floats() {
		noise[i] = v * (1 + 1e-5*rng.NormFloat64())
	}
	s.Off = off(noise, (*replay.Array).Floats)
	r = find(t, s)
	assert.Empty(t, r.Fits, "an edit and noise is no edit")
	require.NotNil(t, r.Near)
	assert.Equal(t, "silu → gelu", r.Near.Text, "but it is told")
	assert.Less(t, 100*r.Near.Off, r.Off)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	_, err = piece.Find(ctx, s)
	assert.ErrorIs(t, err, assert.AnError)

	_, err = piece.Find(t.Context(), &piece.Search{Piece: p, Load: func(v *program.Value) (*replay.Array, error) {
		if strings.Contains(v.Weight, "down") {
			return nil, assert.AnError
		}
		return load(v)
	}, Off: s.Off})
	assert.ErrorIs(t, err, assert.AnError, "a weight that is not at hand")
}

// Of a piece whose weights are not at hand, edits are found that need none, where the golden says that it is wrong.
func TestFindsWithoutWeights(t *testing.T) {
	var missing error
	without := func(v *program.Value) (*replay.Array, error) {
		if v.Weight != "" {
			return nil, missing
		}
		return load(v)
	}
	for _, tt := range []struct {
		piece, planted string
		proven         bool
		missing        error
		reason         string
	}{
		{"block", "the result of add is what was recorded", true, assert.AnError, "x alone needs no weight"},
		{"counted", "add left out", true, assert.AnError, "no more does what is added to a table"},
		{"counted", "add left out", true, &replay.OpaqueError{Reason: "unknown"}, "nor where an operator is not known"},
		{"gain", "mul left out", false, assert.AnError, "a factor may have been folded into what follows"},
		{"block", "silu → gelu", false, assert.AnError, "what needs them is not found"},
	} {
		t.Run(tt.piece+" "+tt.planted, func(t *testing.T) {
			missing = tt.missing
			p := sample(tt.piece)
			s := site(t, p, planted(t, p, weights, tt.planted).Patch)
			s.Load = without
			_, err := piece.Find(t.Context(), s)
			require.Error(t, err, "no golden says that it is wrong")

			s.Without = [2]float64{1e5, 0.2}
			r := find(t, s)
			assert.Equal(t, tt.proven, r.Proven, tt.reason)
			assert.Equal(t, s.Without, [2]float64{r.Off, r.Relative})
			if tt.planted == "silu → gelu" {
				assert.Empty(t, r.Fits)
				return
			}
			require.NotEmpty(t, r.Fits, tt.reason)
		})
	}
}

// What is found hangs on no number of processors: the work is counted before edits run side by side.
func TestSameOnAnyMachine(t *testing.T) {
	p := sample("attention")
	e := planted(t, p, weights, "mask → lower triangle at -1")
	before := runtime.GOMAXPROCS(1)
	alone := found(t, p, weights, e)
	runtime.GOMAXPROCS(3)
	r := found(t, p, weights, e)
	runtime.GOMAXPROCS(before)
	assert.Equal(t, alone.Tried, r.Tried)
	assert.Equal(t, alone.Fits[0].Text, r.Fits[0].Text)
	assert.Len(t, r.Also, len(alone.Also))
}

// One line may work on values of several shapes: an edit of all of them is no reason to fail.
func TestShapesOfOneLine(t *testing.T) {
	p := sample("one-line")
	base := baseOf(t, p, load)
	edits := listed(base, nil, nil)
	i := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Text == "sin → cos" && len(e.At) == 2 })
	require.GreaterOrEqual(t, i, 0)
	r := find(t, site(t, p, edits[i].Patch))
	require.NotEmpty(t, r.Fits)
	assert.Equal(t, "sin → cos", r.Fits[0].Text)
	assert.True(t, r.Proven)

	s := site(t, p, replay.Patch{})
	s.Off = func(a *replay.Array) (units, relative float64) {
		for _, v := range a.Floats() {
			units += math.Abs(v) * 1e6
		}
		return units, units
	}
	r = find(t, s)
	require.NotEmpty(t, r.Fits)
	assert.False(t, r.Proven, "many things make zero")
}

// What cannot be listed is solved: a factor that nobody writes, the order of columns, a record from elsewhere.
func TestSolves(t *testing.T) {
	p := sample("block")
	base := baseOf(t, p, load)
	out := base.Value(p.Out).Floats()
	x, err := load(&program.Value{Record: 7, Shape: []int{6, 8}})
	require.NoError(t, err)
	order := []int{3, 0, 1, 2, 5, 4, 7, 6}
	var all strings.Builder
	for _, tt := range []struct {
		make   func(i int, v float64) float64
		kind   string
		id     string
		reason string
	}{
		{func(i int, v float64) float64 { return 1.3717 * v }, "scalar", "residual/scale", "a factor of the sum"},
		{func(i int, v float64) float64 { return out[i-i%8+order[i%8]] }, "layout", "layout/permuted", "columns in another order"},
		{func(i int, v float64) float64 { return out[[]int{2, 0, 1, 5, 4, 3}[i/8]*8+i%8] }, "layout", "layout/permuted", "rows in another order"},
		{func(i int, v float64) float64 { return v + x.Floats()[i] }, "term", "residual/source", "what another layer made, besides"},
	} {
		want := make([]float64, len(out))
		for i, v := range out {
			want[i] = tt.make(i, v)
		}
		s := &piece.Search{Piece: p, Load: load, Weights: append(slices.Clone(weights), edit.Weight{Name: "far", Shape: []int{6, 8}, DType: tensor.F32, Record: 7}),
			Want: want, Numbers: (*replay.Array).Floats, Off: off(want, (*replay.Array).Floats)}
		r := find(t, s)
		said(&all, tt.reason, r)
		if assert.NotEmpty(t, r.Fits, tt.reason) {
			assert.Equal(t, tt.kind, r.Fits[0].Kind, "%s: %s", tt.reason, r.Fits[0].Text)
			assert.Equal(t, tt.id, edit.Label(p, r.Fits[0].Edit), tt.reason)
			assert.False(t, r.Twin, tt.reason)
			s.Known = []string{edit.Key(p, r.Fits[0].Edit)}
			again := find(t, s)
			assert.Equal(t, r.Proven, again.Twin, "%s, which was proven in another layer", tt.reason)
			said(&all, tt.reason+", again", again)
			s.KnownOnly = true
			if again, err = piece.Find(t.Context(), s); assert.NoError(t, err) {
				said(&all, tt.reason+", and nothing else is tried", again)
			}
			s.KnownOnly, s.Left = false, new(float64)
			assert.Zero(t, find(t, s).Tried, "%s, where other places took all work", tt.reason)
		}
	}
	toy.Kept(t, "solved.txt", all.String())
}

// listed lists the edits of a piece, of which no kind may be skipped.
func listed(b *replay.Base, weights []edit.Weight, fed *edit.Fed) []edit.Edit {
	edits, skipped := edit.List(b, weights, fed)
	if skipped > 0 {
		panic("a kind of edits was skipped")
	}
	return edits
}

// A piece may be made of values that the candidate did not record, but would have.
func TestFindsWhatWasMadeElsewhere(t *testing.T) {
	of := func(record int, shape ...int) edit.Weight {
		return edit.Weight{Name: "x + attn(x)", Shape: shape, DType: tensor.F32, Layer: "block", Code: "model.py:3",
			Made: func() (*replay.Array, error) { return load(&program.Value{Record: record, Shape: shape}) }}
	}
	instead := func(w edit.Weight, record int) edit.Weight { w.For = record; return w }
	gone := of(7, 3, 8)
	gone.Made = func() (*replay.Array, error) { return nil, &replay.OpaqueError{Reason: errors.ErrUnsupported.Error()} }
	for _, tt := range []struct {
		piece            *program.Piece
		others           []edit.Weight
		text, id, reason string
	}{
		{sample("elsewhere"), []edit.Weight{of(7, 3, 8)}, "tanh takes x + attn(x) in the place of what was recorded", "residual/source", "another sum"},
		{sample("elsewhere"), []edit.Weight{gone, instead(of(7, 3, 8), 2)}, "mul takes x + attn(x) in the place of what was recorded", "residual/source",
			"in the place of the second record alone; what cannot be made is no edit"},
		{sample("elsewhere"), []edit.Weight{of(7, 3, 1)}, "the result is multiplied with x + attn(x)", "edit/term", "a number for each row"},
		{sample("given"), []edit.Weight{instead(of(7, 3, 8), 2)}, "the result is x + attn(x)", "residual/source", "what a layer is given, had it been made of that"},
	} {
		r := found(t, tt.piece, tt.others, planted(t, tt.piece, tt.others[len(tt.others)-1:], tt.text))
		assert.Equal(t, tt.text, r.Fits[0].Text, tt.reason)
		assert.Equal(t, tt.id, edit.Label(tt.piece, r.Fits[0].Edit), tt.reason)
		assert.Equal(t, "model.py:3", r.Fits[0].Code, tt.reason)
		assert.True(t, r.Proven, tt.reason)
	}
}

// Two edits in one piece are named together, where one of them alone leaves little.
func TestFindsPairs(t *testing.T) {
	p := sample("block")
	named := func(text string) *edit.Edit { e := planted(t, p, weights, text); return &e }
	var all strings.Builder
	for _, tt := range []struct{ a, b, reason string }{
		{"0.up.weight → 1.up.weight", "silu → gelu", "a weight, and the function beside it"},
		{"0.up.weight → 1.up.weight", "other of add: 1e-06 → 0.01", "a weight, and a number before it"},
	} {
		both := edit.Both(p, named(tt.a), named(tt.b))
		require.NotNil(t, both, tt.reason)
		r := found(t, p, weights, *both)
		said(&all, tt.reason, r)
		if assert.Len(t, r.Fits[0].Parts, 2, "%s: %s", tt.reason, r.Fits[0].Text) {
			assert.True(t, r.Proven, tt.reason)
			assert.ElementsMatch(t, []string{tt.a, tt.b}, []string{r.Fits[0].Parts[0].Text, r.Fits[0].Parts[1].Text}, tt.reason)
			assert.NotZero(t, r.Pairs, tt.reason)
		}
	}
	toy.Kept(t, "pairs.txt", all.String())
	assert.Nil(t, edit.Both(p, named("silu → gelu"), named("silu → relu")), "one operator is changed once")
}

const fedRows, fedFrom, fedTo = 7, 3, 6 // of the sequence, and what the forward pass fed

// fedLoad returns the records of a sequence; another one's queries, keys and values are others.
func fedLoad(other int) replay.Load {
	return func(v *program.Value) (*replay.Array, error) {
		row := func(f func(r, c int) float64) (*replay.Array, error) {
			n := v.Shape[len(v.Shape)-1]
			x := make([]float64, fedRows*n)
			for i := range x {
				x[i] = f(i/n, i%n)
			}
			return replay.Of(tensor.F32, v.Shape, x)
		}
		angle := func(r, c int) float64 { return float64(r) * []float64{1, 0.1}[c%2] }
		switch v.Record {
		case 4:
			return row(func(r, c int) float64 { return math.Cos(angle(r, c)) })
		case 5:
			return row(func(r, c int) float64 { return math.Sin(angle(r, c)) })
		case 6:
			return row(func(r, c int) float64 { return map[bool]float64{true: 0, false: -1e9}[c <= r] })
		}
		at := *v
		at.Record += 20 * other
		return load(&at)
	}
}

// fedSite is such an attention, of which one forward pass is wrong, beside another sequence and padding.
func fedSite(t *testing.T, fused bool) *piece.Search {
	t.Helper()
	p := sample(map[bool]string{false: "fed", true: "fed-fused"}[fused])
	beside := baseOf(t, p, fedLoad(1))
	return &piece.Search{Piece: p, Load: fedLoad(0), Fed: &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo, Padding: 2,
		Others: []edit.Other{{ID: "state/sequence", Text: "sequence 1", Base: beside, Len: fedRows, Cached: fedRows},
			{ID: "mask/padding", Text: "padding", Base: beside, Len: 2, Left: true}}}}
}

// fedCounted counts the sequence, of which one forward pass is wrong.
func fedCounted() *piece.Search {
	return &piece.Search{Piece: sample("fed-counted"), Load: load, Fed: fedRange()}
}

// fedRange is the forward pass.
func fedRange() *edit.Fed {
	return &edit.Fed{Lines: 1, Rows: fedRows, At: []int{0, 1, 2, 3, 4, 5, 6}, From: fedFrom, To: fedTo}
}

// Whatever a forward pass gets wrong of those before it, the search finds it, or what is the same in its rows.
func TestFindsStates(t *testing.T) {
	for _, fused := range []bool{false, true} {
		site := fedSite(t, fused)
		p, fed := site.Piece, site.Fed
		base := baseOf(t, p, site.Load)
		compared := func(a *replay.Array) (x []float64) {
			all := a.Floats()
			for head := range 2 {
				x = append(x, all[(head*fedRows+fedFrom)*4:(head*fedRows+fedTo)*4]...)
			}
			return x
		}
		tried := map[string]int{}
		for _, e := range listed(base, nil, fed) {
			if e.Kind != "state" || tried[e.ID] == 4 {
				continue
			}
			a, err := base.Run(e.Patch)
			require.NoError(t, err, e.Text)
			r := find(t, &piece.Search{Piece: p, Load: fedLoad(0), Fed: fed, Off: off(compared(a), compared), Numbers: compared})
			if r.Off <= 1 {
				continue // the rows do not show it
			}
			tried[e.ID]++
			if assert.NotEmpty(t, r.Fits, "fused %t: %s", fused, e.Text) {
				assert.LessOrEqual(t, r.Fits[0].Cost, e.Cost, "%s is found as %s", e.Text, r.Fits[0].Text)
				assert.Contains(t, edit.IDs(), edit.Label(p, r.Fits[0].Edit), e.Text)
			}
		}
		for _, id := range []string{"state/chunk", "state/slot", "state/position", "state/sequence", "mask/padding"} {
			assert.NotZero(t, tried[id], "fused %t: %s: %v", fused, id, tried)
		}
	}
}

// A forward pass of several tokens that does what a step of one does with a convolution: found, and written by hand.
func TestPassesAsOneStep(t *testing.T) {
	p := sample("fed-convolved")
	base := baseOf(t, p, load)
	fed := fedRange()
	written := edit.Written{Layer: "layer", Op: 3, Kind: "state", What: "all rows of the forward pass are its last"}
	_, err := written.Find(base, nil, nil, 2)
	require.Error(t, err, "no pass is wrong")
	e, err := written.Find(base, nil, fed, 2)
	require.NoError(t, err)
	assert.Empty(t, e.Patch.Late, "a program holds its numbers")
	r := find(t, func() *piece.Search { s := site(t, p, e.Patch); s.Fed = fed; return s }())
	require.NotEmpty(t, r.Fits)
	assert.Equal(t, e.Text, r.Fits[0].Text)
	assert.Equal(t, "state/chunk", edit.Label(p, r.Fits[0].Edit))
	assert.True(t, r.Proven)
}
