package search_test

import (
	"context"
	"encoding/binary"
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
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// builder makes a piece.
type builder struct {
	values []program.Value
	ops    []program.Op
}

func (b *builder) value(v program.Value) program.ID {
	if v.DType == tensor.Invalid {
		v.DType = tensor.F32
	}
	b.values = append(b.values, v)
	return program.ID(len(b.values) - 1)
}

func (b *builder) weight(name string, shape ...int) program.ID {
	return b.value(program.Value{Weight: name, Shape: shape})
}

func (b *builder) op(name string, shape []int, args ...any) program.ID {
	out := b.value(program.Value{Shape: shape})
	o := program.Op{Name: name, Full: "aten." + name, Out: []program.ID{out}, Stack: -1, Layer: "layer"}
	for i := 0; i+1 < len(args); i += 2 {
		o.Args = append(o.Args, program.Arg{Name: args[i].(string), Value: args[i+1]})
	}
	b.ops = append(b.ops, o)
	return out
}

func (b *builder) piece(out program.ID) *program.Piece {
	p := &program.Piece{Program: (&program.Program{}).With(b.values, b.ops), Out: out}
	for i := range b.ops {
		p.Origin = append(p.Origin, i)
	}
	return p
}

// block is x + down(silu(gate(n))·up(n)) with n the RMS norm of x.
func block() *program.Piece {
	var b builder
	rows, wide, inner := []int{6, 8}, []int{6, 16}, 16
	x := b.value(program.Value{Record: 1, Shape: rows})
	n := b.op("pow", rows, "self", x, "exponent", 2)
	n = b.op("mean", []int{6, 1}, "self", n, "dim", []int{-1}, "keepdim", true)
	n = b.op("add", []int{6, 1}, "self", n, "other", 1e-6, "alpha", 1)
	n = b.op("rsqrt", []int{6, 1}, "self", n)
	n = b.op("mul", rows, "self", x, "other", n)
	n = b.op("mul", rows, "self", b.weight("0.norm.weight", 8), "other", n)
	project := func(name string, of program.ID, in, out int) program.ID {
		w := b.op("transpose", []int{in, out}, "self", b.weight(name, out, in), "dim0", 0, "dim1", 1)
		return b.op("mm", []int{6, out}, "self", of, "mat2", w)
	}
	gate := b.op("silu", wide, "self", project("0.gate.weight", n, 8, inner))
	h := b.op("mul", wide, "self", gate, "other", project("0.up.weight", n, 8, inner))
	return b.piece(b.op("add", rows, "self", x, "other", project("0.down.weight", h, inner, 8), "alpha", 1))
}

// counted is x + the first rows of a table.
func counted() *program.Piece {
	var b builder
	at := b.op("arange", []int{6}, "end", 6)
	rows := b.op("embedding", []int{6, 8}, "weight", b.weight("wpe.weight", 20, 8), "indices", at)
	return b.piece(b.op("add", []int{6, 8}, "self", b.value(program.Value{Record: 1, Shape: []int{6, 8}}), "other", rows, "alpha", 1))
}

var weights = []edit.Weight{{Name: "0.up.weight", Shape: []int{16, 8}, DType: tensor.F32}, {Name: "1.up.weight", Shape: []int{16, 8}, DType: tensor.F32},
	{Name: "1.norm.weight", Shape: []int{8}, DType: tensor.F32}}

// groupsOf are quantised weights, and how large their groups are.
var groupsOf = map[string]int{"q.whole": 16, "q.centred": 16, "q.blocks": 32}

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

// linear is a product with a weight.
func linear(name string, rows, in int) *program.Piece {
	var b builder
	w := b.op("transpose", []int{in, rows}, "self", b.weight(name, rows, in), "dim0", 0, "dim1", 1)
	return b.piece(b.op("mm", []int{3, rows}, "self", b.value(program.Value{Record: 1, Shape: []int{3, in}}), "mat2", w))
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
	return replay.Of(tensor.F32, v.Shape, x)
}

// site is a piece whose candidate is what a base makes with a patch.
func site(t *testing.T, p *program.Piece, patch replay.Patch) *search.Site {
	t.Helper()
	base, err := replay.NewBase(context.Background(), p, load, replay.Mode{})
	require.NoError(t, err)
	a, err := base.Run(patch)
	require.NoError(t, err)
	return &search.Site{Piece: p, Load: load, Weights: weights, Off: off(a.Floats(), (*replay.Array).Floats), Numbers: (*replay.Array).Floats}
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

// planted is an edit of a piece, by its text.
func planted(t *testing.T, p *program.Piece, others []edit.Weight, text string) edit.Edit {
	t.Helper()
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	edits := listed(base, others, nil)
	i := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Text == text })
	require.GreaterOrEqual(t, i, 0, text)
	return edits[i]
}

// found is what the search finds in a piece in which an edit is made.
func found(t *testing.T, p *program.Piece, others []edit.Weight, e edit.Edit) *search.Result {
	t.Helper()
	s := site(t, p, e.Patch)
	s.Weights = others
	r, err := search.Find(t.Context(), s)
	require.NoError(t, err, e.Text)
	require.NotEmpty(t, r.Fits, e.Text)
	return r
}

// Whatever edit a candidate has, the search finds it, or one of the same function.
func TestFindsEveryEdit(t *testing.T) {
	p := block()
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
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
		r, err := search.Find(t.Context(), s)
		require.NoError(t, err)
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

// attention is softmax(q·kᵀ + mask)·v + x, where q is turned, each token sees those before it, and the result is scaled.
func attention() *program.Piece {
	var b builder
	rows, square, half := []int{6, 8}, []int{6, 6}, []int{6, 4}
	x, cos, sin := b.value(program.Value{Record: 1, Shape: rows}), b.value(program.Value{Record: 2, Shape: rows}), b.value(program.Value{Record: 3, Shape: rows})
	project := func(name string) program.ID {
		w := b.op("transpose", []int{8, 8}, "self", b.weight(name, 8, 8), "dim0", 0, "dim1", 1)
		return b.op("mm", rows, "self", x, "mat2", w)
	}
	q, k, v := project("q"), project("k"), project("v")
	first := b.op("slice", half, "self", q, "dim", 1, "start", 0, "end", 4, "step", 1)
	second := b.op("slice", half, "self", q, "dim", 1, "start", 4, "end", 8, "step", 1)
	turned := b.op("cat", rows, "tensors", []program.ID{b.op("neg", half, "self", second), first}, "dim", 1)
	q = b.op("add", rows, "self", b.op("mul", rows, "self", q, "other", cos), "other", b.op("mul", rows, "self", turned, "other", sin), "alpha", 1)
	positions := func(shape ...int) program.ID {
		n := b.op("arange", []int{6}, "start", 0, "end", 6, "step", 1)
		b.values[n].DType = tensor.I64
		id := b.op("view", shape, "self", n, "size", shape)
		b.values[id].DType = tensor.I64
		return id
	}
	sees := b.op("le", square, "self", positions(1, 6), "other", positions(6, 1))
	b.values[sees].DType = tensor.Bool
	hidden := b.op("bitwise_not", square, "self", sees)
	b.values[hidden].DType = tensor.Bool
	mask := b.op("masked_fill", square, "self", b.op("full", square, "size", square, "fill_value", 0.0), "mask", hidden, "value", -1e9)
	scores := b.op("mm", square, "self", q, "mat2", b.op("transpose", []int{8, 6}, "self", k, "dim0", 0, "dim1", 1))
	scores = b.op("add", square, "self", scores, "other", mask, "alpha", 1)
	out := b.op("mm", rows, "self", b.op("_softmax", square, "self", scores, "dim", -1), "mat2", v)
	out = b.op("add", rows, "self", out, "other", b.weight("bias", 8), "alpha", 1)
	return b.piece(b.op("add", rows, "self", x, "other", b.op("mul", rows, "self", out, "other", 0.3), "alpha", 1))
}

// angles is the cosine of positions times frequencies.
func angles(frequencies ...float32) *program.Piece {
	var b builder
	n := len(frequencies)
	var data []byte
	for _, f := range frequencies {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	table := b.value(program.Value{Data: data, Shape: []int{n}})
	at := b.op("mul", []int{16, n}, "self", b.value(program.Value{Record: 1, Shape: []int{16, 1}}), "other", table)
	return b.piece(b.op("cos", []int{16, n}, "self", at))
}

// routed is x times the shares of the two best of four experts, by a softmax over all.
func routed() *program.Piece {
	var b builder
	all, chosen := []int{6, 4}, []int{6, 2}
	shares := b.op("topk", chosen, "self", b.op("_softmax", all, "self", b.value(program.Value{Record: 1, Shape: all}), "dim", -1, "half_to_float", false),
		"k", 2, "dim", -1, "largest", true, "sorted", true)
	b.ops[1].Out = append(b.ops[1].Out, b.value(program.Value{Shape: chosen, DType: tensor.I64}))
	return b.piece(b.op("mul", chosen, "self", shares, "other", b.value(program.Value{Record: 2, Shape: chosen})))
}

// chosenFirst are the shares of the two best of four, by a softmax over these, times what another operator cuts into three.
func chosenFirst() *program.Piece {
	var b builder
	best := []int{6, 2}
	x := b.op("topk", best, "self", b.value(program.Value{Record: 1, Shape: []int{6, 4}}), "k", 2, "dim", -1, "largest", true, "sorted", true)
	b.ops[0].Out = append(b.ops[0].Out, b.value(program.Value{Shape: best, DType: tensor.I64}))
	x = b.op("_softmax", best, "self", x, "dim", -1, "half_to_float", false)
	first := b.op("unbind", best, "self", b.value(program.Value{Record: 2, Shape: []int{6, 3, 2}}), "dim", 1)
	second, third := b.value(program.Value{Shape: best}), b.value(program.Value{Shape: best})
	b.ops[2].Out = append(b.ops[2].Out, second, third)
	x = b.op("add", best, "self", b.op("mul", best, "self", x, "other", first), "other", second, "alpha", 1)
	return b.piece(b.op("sub", best, "self", x, "other", b.op("sin", best, "self", third), "alpha", 1))
}

// window is a mask of those before a token, and not too far before it.
func window() *program.Piece {
	var b builder
	rows, square := []int{6, 1}, []int{6, 6}
	positions := func(shape ...int) program.ID {
		n := b.op("arange", []int{6}, "start", 0, "end", 6, "step", 1)
		id := b.op("view", shape, "self", n, "size", shape)
		b.values[n].DType, b.values[id].DType = tensor.I64, tensor.I64
		return id
	}
	q, k := positions(6, 1), positions(1, 6)
	first := b.op("sub", rows, "self", q, "other", 3, "alpha", 1)
	near := b.op("gt", square, "self", k, "other", first)
	both := b.op("bitwise_and", square, "self", near, "other", b.op("le", square, "self", k, "other", q))
	for _, o := range b.ops[4:] {
		b.values[o.Out[0]].DType = tensor.Bool
	}
	b.values[first].DType = tensor.I64
	return b.piece(b.op("mul", square, "self", b.value(program.Value{Record: 1, Shape: square}), "other", both))
}

// fourier is a convolution of rows by Fourier transforms, of which half is padding.
func fourier() *program.Piece {
	var b builder
	rows, padded := []int{4, 6}, []int{4, 12}
	transform := func(x program.ID) program.ID {
		x = b.op("constant_pad_nd", padded, "self", x, "pad", []int{0, 6, 0, 0}, "value", 0)
		x = b.op("_fft_r2c", []int{4, 7}, "self", x, "dim", []int{1}, "normalization", 0, "onesided", true)
		b.values[x].DType, b.values[x].Type = tensor.Invalid, "complex64"
		return x
	}
	x := transform(b.value(program.Value{Record: 1, Shape: rows}))
	x = b.op("mul", []int{4, 7}, "self", x, "other", transform(b.weight("filter", 4, 6)))
	b.values[x].DType, b.values[x].Type = tensor.Invalid, "complex64"
	x = b.op("_fft_c2r", padded, "self", x, "dim", []int{1}, "normalization", 2, "last_dim_size", 12)
	return b.piece(b.op("slice", rows, "self", x, "dim", 1, "start", 0, "end", 6, "step", 1))
}

// convolved is what a convolution makes, bounded above, through a function that is called.
func convolved() *program.Piece {
	var b builder
	shape := []int{1, 4, 12}
	x := b.op("convolution", shape, "input", b.value(program.Value{Record: 1, Shape: shape}), "weight", b.weight("c.weight", 4, 4, 3), "bias", b.weight("c.bias", 4),
		"stride", []int{1}, "padding", []int{1}, "dilation", []int{1}, "transposed", false, "output_padding", []int{0}, "groups", 1)
	x = b.op("clamp", shape, "self", x, "min", nil, "max", 0.5)
	y := b.op("sigmoid", shape, "self", x)
	y = b.op("silu", shape, "self", y)
	for i := range b.ops {
		b.ops[i].Stack = i
	}
	p := b.piece(b.op("mul", shape, "self", y, "other", 1.5))
	p.Frames = []program.Frame{{Line: 1}, {Line: 2}, {Line: 3}, {Line: 4}, {Line: 5, Text: "gate(x)"}}
	p.Stacks = [][]int{{0}, {1}, {2, 4}, {3, 4}}
	return p
}

// resized is an image whose width is made 5 of 3, as the recorder writes it: by a matrix.
func resized() *program.Piece {
	var b builder
	var data []byte
	for _, x := range []float32{1, 0.6, 0, 0, 0, 0, 0.4, 1, 0.4, 0, 0, 0, 0, 0.6, 1} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	matrix := b.op("expand", []int{2, 3, 5}, "self", b.value(program.Value{Data: data, Shape: []int{3, 5}}), "size", []int{2, 3, 5})
	return b.piece(b.op("bmm", []int{2, 4, 5}, "self", b.value(program.Value{Record: 1, Shape: []int{2, 4, 3}}), "mat2", matrix))
}

// repeated is an image each of whose points becomes four.
func repeated() *program.Piece {
	var b builder
	return b.piece(b.op("upsample_nearest2d", []int{1, 2, 6, 8}, "self", b.value(program.Value{Record: 1, Shape: []int{1, 2, 3, 4}}), "output_size", []int{6, 8}))
}

// sectioned are angles of three positions, from each of which a part of the columns is taken.
func sectioned() *program.Piece {
	var b builder
	sizes := []int{2, 3, 3}
	x := b.value(program.Value{Record: 1, Shape: []int{3, 5, 8}})
	b.op("split_with_sizes", []int{3, 5, 2}, "self", x, "split_sizes", sizes, "dim", -1)
	for _, n := range sizes[1:] {
		b.ops[0].Out = append(b.ops[0].Out, b.value(program.Value{Shape: []int{3, 5, n}}))
	}
	var parts []program.ID
	for k, id := range b.ops[0].Out {
		parts = append(parts, b.op("select", []int{5, sizes[k]}, "self", id, "dim", 0, "index", k))
	}
	return b.piece(b.op("cat", []int{5, 8}, "tensors", parts, "dim", -1))
}

// headed is an attention of two heads of four, fused or not.
func headed(fused bool) *program.Piece {
	var b builder
	split := func(record int) program.ID {
		id := b.op("view", []int{1, 6, 2, 4}, "self", b.value(program.Value{Record: record, Shape: []int{1, 6, 8}}), "size", []int{1, 6, 2, 4})
		return b.op("transpose", []int{1, 2, 6, 4}, "self", id, "dim0", 1, "dim1", 2)
	}
	view := func(id program.ID, shape ...int) program.ID { return b.op("view", shape, "self", id, "size", shape) }
	q, k, v := split(1), split(2), split(3)
	if fused {
		x := b.op("scaled_dot_product_attention", []int{1, 2, 6, 4}, "query", q, "key", k, "value", v, "attn_mask", nil, "dropout_p", 0.0, "is_causal", false)
		return b.piece(view(b.op("transpose", []int{1, 6, 2, 4}, "self", x, "dim0", 1, "dim1", 2), 1, 6, 8))
	}
	k = b.op("transpose", []int{1, 2, 4, 6}, "self", k, "dim0", -2, "dim1", -1)
	x := view(b.op("bmm", []int{2, 6, 6}, "self", view(q, 2, 6, 4), "mat2", view(k, 2, 4, 6)), 1, 2, 6, 6)
	x = b.op("_softmax", []int{1, 2, 6, 6}, "self", b.op("mul", []int{1, 2, 6, 6}, "self", x, "other", 0.5), "dim", -1, "half_to_float", false)
	x = view(b.op("bmm", []int{2, 6, 4}, "self", view(x, 2, 6, 6), "mat2", view(v, 2, 6, 4)), 1, 2, 6, 4)
	return b.piece(view(b.op("transpose", []int{1, 6, 2, 4}, "self", x, "dim0", 1, "dim1", 2), 1, 6, 8))
}

// partly is rows of eight columns of which the first four are turned.
func partly() *program.Piece {
	var b builder
	half := []int{1, 6, 2}
	at := b.op("view", []int{6, 1}, "self", b.op("arange", []int{6}, "start", 0, "end", 6, "step", 1), "size", []int{6, 1})
	b.values[b.ops[0].Out[0]].DType, b.values[at].DType = tensor.I64, tensor.I64
	var data []byte
	for _, f := range []float32{1, 0.01} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	angle := b.op("mul", []int{6, 2}, "self", at, "other", b.value(program.Value{Data: data, Shape: []int{2}}))
	angle = b.op("cat", []int{6, 4}, "tensors", []program.ID{angle, angle}, "dim", -1)
	cos, sin := b.op("cos", []int{6, 4}, "self", angle), b.op("sin", []int{6, 4}, "self", angle)
	cut := func(x program.ID, from, to int) program.ID {
		return b.op("slice", []int{1, 6, to - from}, "self", x, "dim", 2, "start", from, "end", to, "step", 1)
	}
	x := b.value(program.Value{Record: 1, Shape: []int{1, 6, 8}})
	first, rest := cut(x, 0, 4), cut(x, 4, 8)
	turned := b.op("cat", []int{1, 6, 4}, "tensors", []program.ID{b.op("neg", half, "self", cut(first, 2, 4)), cut(first, 0, 2)}, "dim", -1)
	out := b.op("add", []int{1, 6, 4}, "self", b.op("mul", []int{1, 6, 4}, "self", first, "other", cos), "other", b.op("mul", []int{1, 6, 4}, "self", turned, "other", sin), "alpha", 1)
	return b.piece(b.op("cat", []int{1, 6, 8}, "tensors", []program.ID{out, rest}, "dim", -1))
}

// coordinates are those of the points of an image of 4×6, projected.
func coordinates() *program.Piece {
	var b builder
	at := func(n int, shape ...int) program.ID {
		x := b.op("linspace", []int{n}, "start", 0, "end", 1, "steps", n)
		return b.op("expand", []int{4, 6}, "self", b.op("view", shape, "self", x, "size", shape), "size", []int{4, 6})
	}
	grid := b.op("stack", []int{4, 6, 2}, "tensors", []program.ID{at(4, 4, 1), at(6, 1, 6)}, "dim", -1)
	for i := range b.ops {
		b.ops[i].Stack = 0
	}
	p := b.piece(b.op("mm", []int{24, 3}, "self", b.op("view", []int{24, 2}, "self", grid, "size", []int{24, 2}), "mat2", b.weight("pe", 2, 3)))
	p.Frames, p.Stacks = []program.Frame{{Line: 1}}, [][]int{{0}}
	return p
}

// reflected is an image that goes on beyond its edges as a mirror, convolved.
func reflected() *program.Piece {
	var b builder
	x := b.value(program.Value{Record: 1, Shape: []int{1, 2, 5}})
	index := constant(1, 0, 1, 2, 3, 4, 3)
	at := b.value(program.Value{Data: index, Shape: []int{7}, DType: tensor.I64})
	padded := b.op("index", []int{1, 2, 7}, "self", x, "indices", []program.ID{program.None, program.None, at})
	return b.piece(b.op("convolution", []int{1, 3, 5}, "input", padded, "weight", b.weight("c.weight", 3, 2, 3), "bias", nil,
		"stride", []int{1}, "padding", []int{0}, "dilation", []int{1}, "transposed", false, "output_padding", []int{0}, "groups", 1))
}

// constant are the bytes of whole numbers.
func constant(x ...uint64) (data []byte) {
	for _, v := range x {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}

// recurrent is the last state of four runs of h ← decay·h, h ← h + x·cos(h).
func recurrent() *program.Piece {
	var b builder
	row := []int{3, 8}
	h := b.value(program.Value{Record: 1, Shape: row})
	for i := range 4 {
		h = b.op("mul", row, "self", h, "other", b.weight("decay", 8))
		x := b.op("mul", row, "self", b.value(program.Value{Record: 2 + i, Shape: row}), "other", b.op("cos", row, "self", h))
		h = b.op("add", row, "self", h, "other", x, "alpha", 1)
		for k := range 4 {
			b.ops[4*i+k].Stack = min(k, 1)
		}
	}
	p := b.piece(h)
	p.Stacks, p.Frames = [][]int{{0}, {1}}, []program.Frame{{Line: 1}, {Line: 2}}
	return p
}

// negated is the sine of what is negated six times, in a loop of some lines, or in as many lines.
func negated(lines int) *program.Piece {
	var b builder
	row := []int{3, 8}
	x := b.value(program.Value{Record: 1, Shape: row})
	for i := range 6 {
		x = b.op("neg", row, "self", x)
		b.ops[i].Stack = i % lines
	}
	p := b.piece(b.op("sin", row, "self", x))
	for i := range lines {
		p.Stacks, p.Frames = append(p.Stacks, []int{i}), append(p.Frames, program.Frame{Line: 1 + i})
	}
	return p
}

// What does the same at many places is proven where it is one cause wherever it is.
func TestPlaces(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		lines  int
		text   string
		proven bool
		reason string
	}{
		{2, "bfloat16: the result of neg", true, "all of a line come first"},
		{2, "2 times the result of neg", true, "in one of two lines"},
		{6, "bfloat16: the result of neg", true, "whichever is rounded, the type is the cause"},
		{6, "2 times the result of neg", false, "a factor, somewhere"},
	} {
		p := negated(tt.lines)
		r := found(t, p, nil, planted(t, p, nil, tt.text))
		assert.Equal(t, tt.proven, r.Proven, tt.reason)
		said(&all, tt.text, r)
	}
	toy.Kept(t, "places.txt", all.String())
}

// gated is tanh(x + r·h), as a gated unit makes it.
func gated() *program.Piece {
	var b builder
	row := []int{3, 8}
	record := func(n int) program.ID { return b.value(program.Value{Record: n, Shape: row}) }
	sum := b.op("add", row, "self", record(1), "other", b.op("mul", row, "self", record(2), "other", record(3)), "alpha", 1)
	return b.piece(b.op("tanh", row, "self", sum))
}

// sparse are the sines of the places of the four best of six, in order.
func sparse() *program.Piece {
	var b builder
	places := []int{3, 4}
	b.op("topk", places, "self", b.op("sigmoid", []int{3, 6}, "self", b.value(program.Value{Record: 1, Shape: []int{3, 6}})), "k", 4, "dim", -1, "largest", true, "sorted", true)
	b.ops[1].Out = append(b.ops[1].Out, b.value(program.Value{Shape: places, DType: tensor.I64}))
	at := b.op("sort", places, "self", b.ops[1].Out[1], "dim", -1, "descending", false)
	b.ops[2].Out = append(b.ops[2].Out, b.value(program.Value{Shape: places, DType: tensor.I64}))
	b.values[at].DType = tensor.I64
	return b.piece(b.op("sin", places, "self", b.op("_to_copy", places, "self", at, "dtype", tensor.F32)))
}

// masked is attention of two heads over two sequences of which each token sees itself and the two before it, fused, or with a mask of
// what is hidden.
func masked(fused bool) *program.Piece {
	var b builder
	rows, scores := []int{2, 2, 6, 4}, []int{2, 2, 6, 6}
	var data []byte
	for i := range 36 {
		sees := i%6 <= i/6 && i/6-i%6 < 3
		data = append(data, map[bool]byte{true: 1}[sees == fused])
	}
	mask := b.value(program.Value{Data: data, Shape: []int{1, 1, 6, 6}, DType: tensor.Bool})
	record := func(n int) program.ID { return b.value(program.Value{Record: n, Shape: rows}) }
	if fused {
		return b.piece(b.op("scaled_dot_product_attention", rows, "query", record(1), "key", record(2), "value", record(3), "attn_mask", mask, "dropout_p", 0.0,
			"is_causal", false))
	}
	view := func(x program.ID, shape ...int) program.ID { return b.op("view", shape, "self", x, "size", shape) }
	keys := b.op("transpose", []int{4, 4, 6}, "self", view(record(2), 4, 6, 4), "dim0", 1, "dim1", 2)
	x := view(b.op("bmm", []int{4, 6, 6}, "self", view(record(1), 4, 6, 4), "mat2", keys), scores...)
	x = b.op("_softmax", scores, "self", b.op("masked_fill", scores, "self", x, "mask", mask, "value", -1e9), "dim", -1, "half_to_float", false)
	return b.piece(b.op("bmm", []int{4, 6, 4}, "self", view(x, 4, 6, 6), "mat2", view(record(3), 4, 6, 4)))
}

// bounded is 0.5·x/0.5 between −0.5 and 0.5.
func bounded() *program.Piece {
	var b builder
	shape := []int{4, 8}
	x := b.op("div", shape, "self", b.value(program.Value{Record: 1, Shape: shape}), "other", 0.5)
	return b.piece(b.op("mul", shape, "self", b.op("clamp", shape, "self", x, "min", -0.5, "max", 0.5), "other", 0.5))
}

// scanned is a state that decays by a step, what is given on beside it, and a gate.
func scanned() *program.Piece {
	var b builder
	shape := []int{1, 5, 8}
	record := func(n int) program.ID { return b.value(program.Value{Record: n, Shape: shape}) }
	mul := func(x, y program.ID) program.ID { return b.op("mul", shape, "self", x, "other", y) }
	step := b.op("softplus", shape, "self", record(1), "beta", 1, "threshold", 20)
	state := mul(record(2), b.op("exp", shape, "self", mul(step, b.weight("A", 8))))
	x := record(3)
	y := b.op("add", shape, "self", mul(state, step), "other", mul(x, b.weight("D", 8)), "alpha", 1)
	return b.piece(mul(y, b.op("silu", shape, "self", record(4))))
}

// paired is rows of which every two neighbours are turned, and put side by side again by stack and a view.
func paired() *program.Piece {
	var b builder
	half, rows := []int{1, 6, 4}, []int{1, 6, 8}
	x := b.value(program.Value{Record: 1, Shape: rows})
	cos, sin := b.value(program.Value{Record: 2, Shape: []int{6, 4}}), b.value(program.Value{Record: 3, Shape: []int{6, 4}})
	cut := func(from int) program.ID {
		return b.op("slice", half, "self", x, "dim", 2, "start", from, "end", 8, "step", 2)
	}
	u, w := cut(0), cut(1)
	mul := func(a, by program.ID) program.ID { return b.op("mul", half, "self", a, "other", by) }
	re := b.op("sub", half, "self", mul(u, cos), "other", mul(w, sin), "alpha", 1)
	im := b.op("add", half, "self", mul(w, cos), "other", mul(u, sin), "alpha", 1)
	both := b.op("stack", []int{1, 6, 4, 2}, "tensors", []program.ID{re, im}, "dim", -1)
	return b.piece(b.op("tanh", rows, "self", b.op("view", rows, "self", both, "size", rows)))
}

// Edits are found again and proven, and named by what stands around them.
func TestLabels(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		piece            *program.Piece
		text, id, reason string
	}{
		{recurrent(), "the state is empty again behind run 2 of the loop", "ssm/state", "a scan in chunks that begins anew"},
		{gated(), "add before mul", "edit/order", "the second operand is made of two"},
		{paired(), "what goes into view, as 2×4 → 4×2, and back behind it", "rope/layout", "halves are turned, where the reference turns neighbours"},
		{sparse(), "0, 1, 2 and so on in place of sort", "rope/offset", "and not 0 times the scores, after which the first ones are chosen"},
		{block(), "silu → gelu", "activation/gelu", "another activation"},
		{block(), "silu left out", "activation/missing", "nothing in its place"},
		{block(), "other of add: 1e-06 → 1e-05", "norm/eps", "what is added below the root"},
		{block(), "0.up.weight → 1.up.weight", "linear/other-layer", "the same role in another layer"},
		{block(), "mul left out", "norm/missing", "the root is not taken"},
		{attention(), "mask false everywhere", "attention/causal", "all see all"},
		{attention(), "mask → lower triangle at -1", "attention/causal", "a number away"},
		{attention(), "the result of add is the mm before", "rope/applied", "q as it came from its projection"},
		{attention(), "2 times bias", "linear/bias-twice", "what is added"},
		{attention(), "transpose left out", "linear/transposed", "a weight that is read as it lies"},
		{block(), "silu → relu", "activation/relu", "another activation"},
		{block(), "silu → leaky_relu", "activation/leaky-relu", "whose name has two words"},
		{block(), "silu → gelu (tanh)", "activation/gelu-tanh", "another one, of two forms"},
		{block(), "other of add: 1e-06 → 0.01", "norm/eps", "what is added below the root"},
		{block(), "0.norm.weight → 1.norm.weight", "norm/weight", "a weight of one axis"},
		{attention(), "other of mul: 0.3 → 3", "residual/scale", "a factor of what is added"},
		{window(), "mask true everywhere", "attention/mask", "the window, one of two masks"},
		{routed(), "divided by its sum, the result of topk", "moe/renorm", "the first of two results"},
		{angles(1, 0.1, 0.01, 0.001), "base of the constant of mul: 1e+04 → 5e+05", "rope/theta", "other frequencies"},
		{angles(1, 0.1, 0.002, 0.0001), "the constant of mul without its scaling", "rope/scaling", "those for long contexts"},
		{angles(100, 10, 0.125, 0.0125), "the constant of mul scaled by 4 and not 8", "rope/scaling", "the last are divided by another factor"},
		{headed(false), "2 heads of 4 → 4 of 2, scaled by 0.7071", "attention/heads", "more heads, which are smaller"},
		{headed(false), "2 heads of 4 → 1 of 8, scaled by 0.5", "attention/heads", "one head, by the scale of two"},
		{partly(), "all 8 columns are turned and not 4", "rope/applied", "a rotation of all columns"},
		{headed(false), "queries and keys are turned, by angles of base 10000", "rope/applied", "a layer without positions"},
		{attention(), "queries and keys are turned, by angles of base 500000, as neighbours", "rope/applied", "the same of keys that lie along the last axis"},
		{resized(), "resized cubic, corners aligned", "image/resize", "a matrix that is another"},
		{repeated(), "upsample_nearest2d → linear", "image/resize", "points between those that are there"},
		{sectioned(), "sections [2 3 3] → [4 2 2]", "rope/sections", "columns of other positions"},
		{sectioned(), "all sections of 0", "rope/sections", "one position for all"},
		{convolved(), "padding of convolution: all before axis 0", "conv/padding", "what sees the past alone"},
		{convolved(), "padding of convolution: from the other side", "conv/padding", "an image that is a ring"},
		{convolved(), "padding of convolution: the edge again", "conv/padding", "an edge that goes on"},
		{reflected(), "padding of convolution: zeros", "conv/padding", "nothing beyond the edges, which go on by indices"},
		{coordinates(), "points of linspace: from end to end → middles of parts", "embedding/position", "the middles of pixels, along both axes"},
		{convolved(), "bias of convolution left out", "linear/bias-missing", "of a convolution"},
		{fourier(), "the convolution wraps around", "conv/padding", "nothing was padded for it"},
		{convolved(), "axis 2 flipped of c.weight", "conv/flipped", "the taps from behind"},
		{convolved(), "axis 1 flipped of c.weight", "image/channels", "the channels from behind"},
		{convolved(), "min of clamp: none → -0.5", "value/clipped", "bounded on both sides"},
		{convolved(), "sigmoid → tanh", "activation/tanh", "another gate"},
		{counted(), "add left out", "embedding/position", "rows of a table, by positions that the model counts"},
		{convolved(), "gate(x) left out", "activation/missing", "a call that is left out"},
		{block(), "bfloat16: the result of silu", "dtype/downcast", "a result that is rounded is tried first where little is wrong"},
		{attention(), "all of it in float16", "dtype/downcast", "all are"},
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
	p := block()
	s := site(t, p, replay.Patch{})
	r, err := search.Find(t.Context(), s)
	require.NoError(t, err)
	assert.Empty(t, r.Fits, "the piece is right as it is")

	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	noise := base.Value(p.Out).Floats()
	for i := range noise {
		noise[i] *= 1 + 0.1*rng.NormFloat64()
	}
	s.Off = off(noise, (*replay.Array).Floats)
	r, err = search.Find(t.Context(), s)
	require.NoError(t, err)
	assert.Empty(t, r.Fits, "noise is no edit")
	assert.False(t, r.Proven)
	assert.Nil(t, r.Near)
	assert.Equal(t, r.Listed, r.Tried)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	_, err = search.Find(ctx, s)
	assert.ErrorIs(t, err, assert.AnError)

	_, err = search.Find(t.Context(), &search.Site{Piece: p, Load: func(v *program.Value) (*replay.Array, error) {
		if strings.Contains(v.Weight, "down") {
			return nil, assert.AnError
		}
		return load(v)
	}, Off: s.Off})
	assert.ErrorIs(t, err, assert.AnError, "a weight that is not at hand")
}

// What is found hangs on no number of processors: the work is counted before edits run side by side.
func TestSameOnAnyMachine(t *testing.T) {
	p := attention()
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
	var b builder
	x, y := b.value(program.Value{Record: 1, Shape: []int{2, 3, 8}}), b.value(program.Value{Record: 2, Shape: []int{8}})
	x, y = b.op("sin", []int{2, 3, 8}, "self", x), b.op("sin", []int{8}, "self", y)
	for i, layer := range []string{"a", "b"} {
		b.ops[i].Stack, b.ops[i].Layer = 0, layer
	}
	p := b.piece(b.op("mul", []int{2, 3, 8}, "self", x, "other", y))
	p.Stacks, p.Frames = [][]int{{0}}, []program.Frame{{}}
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
	edits := listed(base, nil, nil)
	i := slices.IndexFunc(edits, func(e edit.Edit) bool { return e.Text == "sin → cos" && len(e.At) == 2 })
	require.GreaterOrEqual(t, i, 0)
	r, err := search.Find(t.Context(), site(t, p, edits[i].Patch))
	require.NoError(t, err)
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
	r, err = search.Find(t.Context(), s)
	require.NoError(t, err)
	require.NotEmpty(t, r.Fits)
	assert.False(t, r.Proven, "many things make zero")
}

// What cannot be listed is solved: a factor that nobody writes, the order of columns, a record from elsewhere.
func TestSolves(t *testing.T) {
	p := block()
	base, err := replay.NewBase(t.Context(), p, load, replay.Mode{})
	require.NoError(t, err)
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
		s := &search.Site{Piece: p, Load: load, Weights: append(slices.Clone(weights), edit.Weight{Name: "far", Shape: []int{6, 8}, DType: tensor.F32, Record: 7}),
			Want: want, Numbers: (*replay.Array).Floats, Off: off(want, (*replay.Array).Floats)}
		r, err := search.Find(t.Context(), s)
		require.NoError(t, err)
		said(&all, tt.reason, r)
		if assert.NotEmpty(t, r.Fits, tt.reason) {
			assert.Equal(t, tt.kind, r.Fits[0].Kind, "%s: %s", tt.reason, r.Fits[0].Text)
			assert.Equal(t, tt.id, edit.Label(p, r.Fits[0].Edit), tt.reason)
			assert.False(t, r.Twin, tt.reason)
			s.Known = []string{edit.Key(p, r.Fits[0].Edit)}
			again, err := search.Find(t.Context(), s)
			require.NoError(t, err)
			assert.Equal(t, r.Proven, again.Twin, "%s, which was proven in another layer", tt.reason)
			said(&all, tt.reason+", again", again)
			s.KnownOnly = true
			if again, err = search.Find(t.Context(), s); assert.NoError(t, err) {
				said(&all, tt.reason+", and nothing else is tried", again)
			}
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
	rows := []int{3, 8}
	piece := func() *program.Piece {
		var b builder
		x := b.value(program.Value{Record: 1, Shape: rows})
		return b.piece(b.op("mul", rows, "self", b.op("tanh", rows, "self", x), "other", b.value(program.Value{Record: 2, Shape: rows})))
	}()
	of := func(record int, shape ...int) edit.Weight {
		return edit.Weight{Name: "x + attn(x)", Shape: shape, DType: tensor.F32, Layer: "block", Code: "model.py:3",
			Made: func() (*replay.Array, error) { return load(&program.Value{Record: record, Shape: shape}) }}
	}
	instead := func(w edit.Weight, record int) edit.Weight { w.For = record; return w }
	gone := of(7, 3, 8)
	gone.Made = func() (*replay.Array, error) { return nil, &replay.OpaqueError{Reason: errors.ErrUnsupported.Error()} }
	var b builder
	given := b.piece(b.value(program.Value{Record: 2, Shape: rows}))
	for _, tt := range []struct {
		piece            *program.Piece
		others           []edit.Weight
		text, id, reason string
	}{
		{piece, []edit.Weight{of(7, 3, 8)}, "tanh takes x + attn(x) in the place of what was recorded", "residual/source", "another sum"},
		{piece, []edit.Weight{gone, instead(of(7, 3, 8), 2)}, "mul takes x + attn(x) in the place of what was recorded", "residual/source",
			"in the place of the second record alone; what cannot be made is no edit"},
		{piece, []edit.Weight{of(7, 3, 1)}, "the result is multiplied with x + attn(x)", "edit/term", "a number for each row"},
		{given, []edit.Weight{instead(of(7, 3, 8), 2)}, "the result is x + attn(x)", "residual/source", "what a layer is given, had it been made of that"},
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
	p := block()
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
