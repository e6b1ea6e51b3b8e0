package rebuild

import (
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Conv is the op of that name, with the weights of a layer.
type Conv struct {
	From
	Key string // of the weight
	op.Conv
}

func (o *Conv) Eval(e *Evaluation, rows []int) []float64 {
	return o.Of(func(x []float64) []float64 { return x })(e, rows)
}

// Of is Eval of another input, made of the right one.
func (o *Conv) Of(change func(x []float64) []float64) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		x := e.all(o.In)
		if x == nil || !e.g.Spend(o.Work(len(rows))) {
			return nil
		}
		x = change(x)
		var out []float64
		size := o.InChannels * o.Height * o.Width
		for _, r := range rows {
			y, channel, b := r%o.OutHeight, r/o.OutHeight%o.OutChannels, r/o.OutHeight/o.OutChannels
			out = append(out, o.Row(x[b*size:(b+1)*size], channel, y)...)
		}
		return out
	}
}

// findConv tries the strides and paddings that give the shape of v.
func findConv(from From, key string, w, b *tensor.Tensor) (ops []Op) {
	kernel, in, out := w.Shape(), from.In.golden.Shape(), from.Out.golden.Shape()
	axes := len(kernel)
	if axes < 3 || axes > 4 || len(in) != axes || len(out) != axes || in[0] != out[0] || out[1] != kernel[0] || in[1]%kernel[1] != 0 ||
		w.Len() > op.DecodeMax {
		return nil
	}
	base := op.Conv{InChannels: in[1], OutChannels: out[1], Height: 1, OutHeight: 1, KernelHeight: 1, Width: in[axes-1], OutWidth: out[axes-1],
		KernelWidth: kernel[axes-1], Groups: in[1] / kernel[1], W: op.ReadAll(w), B: op.ReadAll(b)}
	if axes == 4 {
		base.Height, base.OutHeight, base.KernelHeight = in[2], out[2], kernel[2]
	}
	if base.OutChannels%base.Groups != 0 || b != nil && b.Len() != base.OutChannels {
		return nil
	}
	for _, v := range strides(base.Height, base.OutHeight, base.KernelHeight) {
		for _, h := range strides(base.Width, base.OutWidth, base.KernelWidth) {
			c := base
			c.Stride, c.Pad = [2]int{v[0], h[0]}, [2]int{v[1], h[1]}
			ops = append(ops, &Conv{from, key, c})
		}
	}
	return ops
}

// learnConv finds the kernels of a causal convolution with one for each channel, by least squares of the
// golden tensors, where there are clearly more tokens than taps: [batch, channels, tokens].
func learnConv(g *Graph, from From) []Op {
	in, out := from.In.golden.Shape(), from.Out.golden.Shape()
	if len(in) != 3 || len(out) != 3 || in[0] != out[0] || in[1] != out[1] || out[2] <= in[2] || from.In.golden.Len() > op.DecodeMax {
		return nil
	}
	k, channels, tokens := out[2]-in[2]+1, in[1], out[2]
	n := in[0] * tokens
	if n < 2*(k+1) || k > widestKernel || !g.Spend(float64(channels*n*k*k)) {
		return nil
	}
	x, y := op.ReadAll(from.In.golden), op.ReadAll(from.Out.golden)
	c := op.Conv{InChannels: channels, OutChannels: channels, Height: 1, OutHeight: 1, KernelHeight: 1, Width: in[2], OutWidth: tokens,
		KernelWidth: k, Groups: channels, Stride: [2]int{1, 1}, Pad: [2]int{0, k - 1}}
	for ch := range channels {
		rows, values := make([]float64, 0, n*k), make([]float64, 0, n)
		for b := range in[0] {
			for t := range tokens {
				for j := range k {
					v := 0.0
					if at := t - (k - 1) + j; at >= 0 && at < in[2] {
						v = x[(b*channels+ch)*in[2]+at]
					}
					rows = append(rows, v)
				}
				values = append(values, y[(b*channels+ch)*tokens+t])
			}
		}
		l, ok := op.FitLinear(rows, values, n, k, 1)
		if !ok {
			return nil
		}
		bias := 0.0
		if l.B != nil {
			bias = l.B[0]
		}
		c.W, c.B = append(c.W, op.ReadAll(l.W.Tensor)...), append(c.B, bias)
	}
	if op.MaxAbs(c.B) == 0 {
		c.B = nil
	}
	return []Op{&Conv{from, "", c}}
}

// strides lists the strides and paddings that make out places of n with a kernel of k.
func strides(n, out, k int) (all [][2]int) {
	for s := 1; s <= max(k, 2); s++ {
		for pad := range k {
			if n+2*pad >= k && (n+2*pad-k)/s+1 == out {
				all = append(all, [2]int{s, pad})
			}
		}
	}
	return all
}

// Patches is a sequence of tokens of an image: Class tokens in front, then its patches, and a table of
// positions on all of them.
type Patches struct {
	From
	Class   []float64 // of each class token, without its position
	Turned  bool      // patches are [channels, height, width], and not [tokens, channels]
	Tokens  int       // of a sequence
	Table   []float64 // a row for each token; nil for none
	Height  int       // of the grid of patches
	Columns int
	Grid    *Grid // of which the positions of the patches were made; nil where they are as the weights have them
}

// Grid is a table of positions of another size than an image has: rows of the class tokens, then a square
// of patches.
type Grid struct {
	Size  int
	Class []float64
	Rows  []float64
	Way   op.Resizing
}

// Resized is the table for an image of the size of the patches.
func (o *Patches) Resized(way op.Resizing) []float64 {
	g := o.Grid
	return slices.Concat(g.Class, way.Of(g.Rows, g.Size, g.Size, o.Height, o.Columns, o.Out.Width))
}

func (o *Patches) Eval(e *Evaluation, rows []int) []float64 {
	return o.With(1, same, same, 1)(e, rows)
}

// Front is the number of class tokens.
func (o *Patches) Front() int { return len(o.Class) / o.Out.Width }

// With adds a multiple of other rows of the table, and takes other patches; both count from 0, with
// −1 for none. The class tokens are multiplied by class.
func (o *Patches) With(factor float64, position, patch func(at int) int, class float64) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		x := e.all(o.In)
		if x == nil {
			return nil
		}
		w, front := o.Out.Width, o.Front()
		n := o.Tokens - front
		out := make([]float64, len(rows)*w)
		for i, r := range rows {
			row, b, t := out[i*w:(i+1)*w], r/o.Tokens, r%o.Tokens
			if t < front {
				floats.AddScaled(row, class, o.Class[t*w:(t+1)*w])
			} else if at := patch(t - front); at >= 0 && at < n && o.Turned {
				for c := range row {
					row[c] = x[(b*w+c)*n+at]
				}
			} else if at >= 0 && at < n {
				copy(row, x[(b*n+at)*w:(b*n+at+1)*w])
			}
			if p := position(t); o.Table != nil && p >= 0 && p < len(o.Table)/w {
				floats.AddScaled(row, factor, o.Table[p*w:(p+1)*w])
			}
		}
		return out
	}
}

// findPatches looks for patches, and for a table of positions among the weights and the recorded
// values. What stands in front of the patches is read from the reference.
func findPatches(g *Graph, v *Value) (ops []Op) {
	shape := v.golden.Shape()
	if len(shape) != 3 || !isFront(v) || v.golden.Len() > op.DecodeMax {
		return nil
	}
	tokens, w := shape[1], v.Width
	var tables, grids [][]float64
	for _, key := range g.Scene.Weights.Keys(func(key string, t *tensor.Tensor) bool {
		return strings.Contains(key, "pos") && t.RowLen() == w && t.Len() <= op.DecodeMax
	}) {
		switch x := op.ReadAll(g.Scene.Weights[key]); {
		case len(x) == tokens*w:
			tables = append(tables, x)
		default:
			grids = append(grids, x)
		}
	}
	for _, x := range g.before(v) {
		if x.golden.Len() == tokens*w && x.Width == w && module.Positions.Has(x.Layer()) {
			tables = append(tables, op.ReadAll(x.golden))
		}
	}
	for _, x := range g.before(v) {
		s := x.golden.Shape()
		o := Patches{From: From{Made{v}, x, ""}, Tokens: tokens}
		switch {
		case len(s) == 3 && s[2] == w && s[0] == shape[0] && s[1] < tokens && tokens-s[1] <= mostClass:
			o.Height, o.Columns = square(s[1])
		case len(s) == 4 && s[1] == w && s[0] == shape[0] && s[2]*s[3] <= tokens && tokens-s[2]*s[3] <= mostClass:
			o.Turned, o.Height, o.Columns = true, s[2], s[3]
		default:
			continue
		}
		n := x.golden.Len() / (shape[0] * w)
		first := op.Sequence(tokens - n)
		add := func(table []float64, grid *Grid) {
			o := o
			o.Table, o.Grid = table, grid
			o.Class = slices.Clone(v.Golden(first))
			if table != nil && len(first) > 0 {
				floats.Sub(o.Class, table[:len(o.Class)])
			}
			ops = append(ops, &o)
		}
		add(nil, nil)
		for _, table := range tables {
			add(table, nil)
		}
		for _, rows := range grids {
			front := (tokens - n) * w
			size, _ := square((len(rows) - front) / w)
			if o.Height == 0 || len(rows) <= front || size == 0 {
				continue
			}
			grid := &Grid{Size: size, Class: rows[:front], Rows: rows[front:]}
			for _, grid.Way = range op.Resizings {
				own := *grid
				with := o
				with.Grid = &own
				add(with.Resized(grid.Way), &own)
			}
		}
		if len(g.Scene.Weights) == 0 && len(tables) == 0 { // what the reference adds, the positions of the class tokens aside
			o := o
			zero := o
			zero.Class = make([]float64, len(first)*w)
			own := zero.With(0, same, same, 0)(g.goldenly(), op.Sequence(tokens))
			if own == nil {
				continue
			}
			table := op.Minus(v.Golden(op.Sequence(tokens)), own)
			clear(table[:len(first)*w])
			o.Table, o.Class = table, v.Golden(first)
			ops = append(ops, &o)
		}
	}
	return ops
}

// square is the grid of n patches of a square image; 0 for others.
func square(n int) (height, columns int) {
	for k := 1; k*k <= n; k++ {
		if k*k == n {
			return k, k
		}
	}
	return 0, 0
}

// AddedRow is out = in + a row: a bias that no layer of its own holds.
type AddedRow struct {
	From
	Row []float64
}

func (o *AddedRow) Eval(e *Evaluation, rows []int) []float64 { return o.Times(1)(e, rows) }

// Times adds a multiple of the row.
func (o *AddedRow) Times(factor float64) Eval {
	return Same(o.In).Then(func(x []float64) []float64 {
		x = slices.Clone(x)
		for i := 0; i < len(x); i += len(o.Row) {
			floats.AddScaled(x[i:i+len(o.Row)], factor, o.Row)
		}
		return x
	})
}

// findAddedRow tries the weights of the width of v whose name says bias.
func findAddedRow(g *Graph, v *Value) (ops []Op) {
	keys := g.Scene.Weights.Keys(func(key string, w *tensor.Tensor) bool {
		return strings.HasSuffix(key, "bias") && w.Len() == v.Width
	})
	if len(keys) > mostBiases {
		return nil
	}
	alikes := g.Alikes(v)
	for _, key := range keys {
		row := op.ReadAll(g.Scene.Weights[key])
		for _, x := range alikes {
			ops = append(ops, &AddedRow{From{Made{v}, x, ""}, row})
		}
	}
	return ops
}
