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
		KernelWidth: kernel[axes-1], Groups: in[1] / kernel[1], W: op.ReadAll(w), B: op.ReadAll(b), Biases: 1}
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
	tables := [][]float64{nil}
	for _, key := range g.Scene.Weights.Keys(func(key string, t *tensor.Tensor) bool {
		return strings.Contains(key, "pos") && t.RowLen() == w && t.Len() == tokens*w
	}) {
		tables = append(tables, op.ReadAll(g.Scene.Weights[key]))
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
		for _, o.Table = range tables {
			o := o
			o.Class = slices.Clone(v.Golden(first))
			if o.Table != nil && len(first) > 0 {
				floats.Sub(o.Class, o.Table[:len(o.Class)])
			}
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
