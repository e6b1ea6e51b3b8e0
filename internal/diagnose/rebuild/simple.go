package rebuild

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Made is what all ops have: the value that they make.
type Made struct{ Out *Value }

// Graph is the graph of the value.
func (m Made) Graph() *Graph { return m.Out.g }

// Scene is the scene of the value.
func (m Made) Scene() *diagnose.Scene { return m.Out.g.Scene }

// From is an op on one value, of a layer if it is known which.
type From struct {
	Made
	In    *Value
	Layer string
}

func (f From) Inputs() []*Value { return []*Value{f.In} }

func same(i int) int { return i }

// Same is a calculation that returns a value as it is.
func Same(v *Value) Eval {
	return func(e *Evaluation, rows []int) []float64 { return e.Get(v, rows) }
}

// Then is a calculation on the result of another one.
func (f Eval) Then(g func([]float64) []float64) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		if x := f(e, rows); x != nil {
			return g(x)
		}
		return nil
	}
}

// Times is a calculation whose result is multiplied.
func (f Eval) Times(factor float64) Eval {
	return f.Then(func(x []float64) []float64 { return op.Scaled(x, factor) })
}

// Alias is out = in: a layer is given what another one put out.
type Alias struct{ From }

func (o *Alias) Eval(e *Evaluation, rows []int) []float64 { return e.Get(o.In, rows) }

func findAlias(g *Graph, v *Value) []Op {
	var ops []Op
	for _, x := range g.Alikes(v) {
		if g.Scene.IsSame(x.golden, v.golden) {
			ops = append(ops, &Alias{From{Made{v}, x, ""}})
		}
	}
	return ops
}

// Unary is out = F(in), element by element.
type Unary struct {
	From
	op.Activation
}

func (o *Unary) Eval(e *Evaluation, rows []int) []float64 { return o.Of(e.Get(o.In, rows)) }

// Capped is out = Limit·tanh(in / Limit): logits with a soft cap.
type Capped struct {
	From
	Limit float64
}

func (o *Capped) Eval(e *Evaluation, rows []int) []float64 {
	return op.Map(e.Get(o.In, rows), func(x float64) float64 { return op.SoftCap(x, o.Limit) })
}

func unaries(from From) (ops []Op) {
	for _, a := range op.Activations {
		ops = append(ops, &Unary{from, a})
	}
	return ops
}

// findUnary tries activations and multiples of earlier values: those between children, without a
// module of their own.
func findUnary(g *Graph, v *Value) []Op {
	var ops []Op
	for _, x := range g.Alikes(v) {
		from := From{Made{v}, x, ""}
		ops = append(ops, unaries(from)...)
		some := op.Spread(v.Rows, ProbeRows)
		in := x.Golden(some)
		ops = append(ops, &Sum{from.Made, []*Value{x}, []float64{floats.Dot(in, v.Golden(some)) / floats.Dot(in, in)}})
		if c, ok := g.Scene.Config.Float("final_logit_softcapping"); ok && c > 0 {
			ops = append(ops, &Capped{from, c})
		} else if g.Scene.Config == nil && module.Head.Has(x.Layer()) {
			ops = append(ops, &Capped{from, capOf(in, v.Golden(some))})
		}
	}
	return ops
}

// capOf is the limit whose soft cap brings in nearest to out.
func capOf(in, out []float64) float64 {
	most := op.MaxAbs(out)
	if most == 0 || !op.All(out, op.IsFinite) {
		return 1
	}
	return math.Exp(op.Minimum(math.Log(most), math.Log(most*mostBend), func(c float64) float64 {
		return op.Relative(op.Map(in, func(x float64) float64 { return op.SoftCap(x, math.Exp(c)) }), out)
	}))
}

// Row is one row of each sequence of Tokens: the last token's for a head, the first one's for a
// pooler.
type Row struct {
	From
	Tokens int
	At     []int // the token of each row
}

func (o *Row) Eval(e *Evaluation, rows []int) []float64 { return o.Pick(same)(e, rows) }

// Pick is Eval with other tokens than the right ones.
func (o *Row) Pick(token func(right int) int) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		own := make([]int, len(rows))
		for i, r := range rows {
			own[i] = r*o.Tokens + min(max(token(o.At[r]), 0), o.Tokens-1)
		}
		return e.Get(o.In, own)
	}
}

func findRow(g *Graph, v *Value) (ops []Op) {
	golden, w := v.Golden(op.Sequence(v.Rows)), v.Width
	for _, x := range g.before(v) {
		if x.Width != w || x.Rows <= v.Rows || x.Rows%v.Rows != 0 || !g.Spend(float64(x.golden.Len())) {
			continue
		}
		o := &Row{From{Made{v}, x, ""}, x.Rows / v.Rows, make([]int, v.Rows)}
		all := x.Golden(op.Sequence(x.Rows))
		for r := range o.At {
			o.At[r] = slices.IndexFunc(op.Sequence(o.Tokens), func(k int) bool {
				at := (r*o.Tokens + k) * w
				return at < len(all) && op.Relative(all[at:at+w], golden[r*w:(r+1)*w]) <= v.Noise()
			})
		}
		if !slices.Contains(o.At, -1) {
			ops = append(ops, o)
		}
	}
	return ops
}

// Turned is out = F(in) with the axes of tokens and channels exchanged, as around a convolution of one
// dimension: columns, or rows, from First on, and the tokens from Shift on.
type Turned struct {
	From
	op.Activation
	First, Shift int
	Channels     bool // in is [batch, channels, tokens], and out [batch, tokens, channels]; else the other way
	Cut          bool // both are [batch, channels, tokens], and out has fewer tokens
}

func (o *Turned) Eval(e *Evaluation, rows []int) []float64 {
	in, w := o.In.golden.Shape(), o.Out.Width
	x, n := e.all(o.In), o.Out.golden.Shape()[1]
	if x == nil || !e.g.Spend(float64(len(x))) {
		return nil
	}
	out := make([]float64, 0, len(rows)*w)
	for _, r := range rows {
		for c := range w {
			y := 0.0
			if at := o.at(in, r/n, r%n, c); at >= 0 {
				y = o.F(x[at])
			}
			out = append(out, y)
		}
	}
	return out
}

// at is where element c of row i of image b is taken from an input of a shape; −1 for beyond its ends.
func (o *Turned) at(in []int, b, i, c int) int {
	channel, t, tokens := c+o.First, i+o.Shift, in[2]
	switch {
	case o.Cut:
		channel, t = i, c+o.Shift
	case !o.Channels:
		channel, t, tokens = o.First+i, c+o.Shift, in[1]
	}
	switch {
	case t < 0 || t >= tokens:
		return -1
	case o.Channels || o.Cut:
		return (b*in[1]+channel)*in[2] + t
	}
	return (b*in[1]+t)*in[2] + channel
}

// element is one of the value, made of the golden input.
func (o *Turned) element(k int) float64 {
	shape, w := o.Out.golden.Shape(), o.Out.Width
	if at := o.at(o.In.golden.Shape(), k/w/shape[1], k/w%shape[1], k%w); at >= 0 {
		return o.F(o.In.golden.At(at))
	}
	return 0
}

// Size is the number of channels, and Parts how many times as wide the input is.
func (o *Turned) Size() int {
	if o.Channels {
		return o.Out.Width
	}
	return o.Out.golden.Shape()[1]
}

// Parts is how many values of the size of this one the input has side by side.
func (o *Turned) Parts() int {
	if o.Channels || o.Cut {
		return 1
	}
	return o.In.Width / o.Size()
}

// findTurned tries the values with as many tokens, or some more, and as many channels.
func findTurned(g *Graph, v *Value) (ops []Op) {
	shape := v.golden.Shape()
	if len(shape) != 3 || v.golden.Len() > op.DecodeMax {
		return nil
	}
	// likely looks at some elements, which are cheap to read.
	likely := func(o *Turned) bool {
		for _, at := range op.Spread(v.golden.Len(), turnedElements) {
			want, got := v.golden.At(at), o.element(at)
			if math.Abs(got-want) > v.Noise()*(1+math.Abs(want)) {
				return false
			}
		}
		return true
	}
	for _, x := range g.before(v) {
		s := x.golden.Shape()
		if len(s) != 3 || s[0] != shape[0] || x.golden.Len() > op.DecodeMax || slices.Equal(s, shape) && s[1] != s[2] {
			continue
		}
		base := Turned{From: From{Made{v}, x, ""}}
		add := func(o Turned) {
			for _, o.Activation = range append([]op.Activation{op.Identity}, op.Activations...) {
				if own := o; likely(&own) {
					ops = append(ops, &own)
				}
			}
		}
		cut, channels := base, base
		cut.Cut, channels.Channels = true, true
		if s[1] == shape[1] && s[2] > shape[2] && s[2]-shape[2] < widestKernel {
			add(cut)
		}
		if s[1] == shape[2] && s[2] >= shape[1] && s[2]-shape[1] < widestKernel {
			add(channels)
		}
		if s[1] == shape[2] && s[2]%shape[1] == 0 {
			for base.First = 0; base.First < s[2]; base.First += shape[1] {
				add(base)
			}
		}
	}
	return ops
}

// Part is out = columns of in from First on: gate or up of a fused projection.
type Part struct {
	From
	First int
}

func (o *Part) Eval(e *Evaluation, rows []int) []float64 {
	return part(e.Get(o.In, rows), o.In.Width, o.First, o.Out.Width)
}

// part returns n columns, from first on, of rows of a width.
func part(x []float64, width, first, n int) []float64 {
	columns := op.Sequence(first + n)
	return op.Select(x, width, columns[first:])
}

// halves returns gate and up of a fused projection as two ports of their own, "….gate_up_proj.gate"
// and "….gate_up_proj.up", so that what is made of one of them has a name. nil for other ports.
func halves(p *diagnose.Port) []*diagnose.Port {
	if !module.FusedGateUp.Has(p.Layer) || !p.IsOutput() || p.Golden.RowLen()%2 != 0 || p.Golden.RowLen() == 0 {
		return nil
	}
	half := func(t *tensor.Tensor, k int) *tensor.Tensor {
		if t == nil || t.RowLen() != p.Golden.RowLen() {
			return nil
		}
		n := t.RowLen() / 2
		part, _ := t.Slice(len(t.Shape())-1, k*n, (k+1)*n) // nil if it fails
		return part
	}
	var out []*diagnose.Port
	for k, name := range []string{"gate", "up"} {
		q := *p
		q.Layer = label.Name(p.Layer) + "." + name + p.Layer[len(label.Name(p.Layer)):]
		q.Golden, q.Actual, q.Injected = half(p.Golden, k), half(p.Actual, k), half(p.Injected, k)
		out = append(out, &q)
	}
	return out
}

// Given is a layer whose arithmetic is not known: without its weights, only what its golden output
// shows.
type Given struct{ From }

// Eval returns the golden output, where it must be the candidate's as well.
func (o *Given) Eval(e *Evaluation, rows []int) []float64 {
	if e.candidate && e.isDirty(o.In) {
		return nil
	}
	return o.Out.Golden(rows)
}
