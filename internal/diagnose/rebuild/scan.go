package rebuild

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
)

// span is some columns of a value.
type span struct {
	*Value
	at, n int
}

func (s span) all(e *Evaluation) []float64 {
	x := e.all(s.Value)
	if x == nil {
		return nil
	}
	return part(x, s.Width, s.at, s.n)
}

// Scan is the op of that name, of what the layers of a mixer put out. In Mamba-2 the bias of dt is
// added behind its projection, and the gate is no part of it.
type Scan struct {
	Made
	op.Scan
	DtBias       []float64 // of each channel; nil for none
	Biases       float64   // how often it is added: 1 where the projection of dt has none
	Normed       bool      // B and C are divided by their root mean square, as in FalconMamba
	KeepB, KeepC bool      // but this one is not

	x, dt, b, c, z span // z of no value: no gate
}

func (o *Scan) Inputs() []*Value { return []*Value{o.x.Value, o.dt.Value, o.b.Value, o.z.Value} }

func (o *Scan) Eval(e *Evaluation, rows []int) []float64 {
	x, dt, b, c := o.x.all(e), o.dt.all(e), o.b.all(e), o.c.all(e)
	if x == nil || dt == nil || b == nil || c == nil || !e.g.Spend(o.Work(o.Out.Rows)) {
		return nil
	}
	var z []float64
	if o.z.Value != nil {
		if z = o.z.all(e); z == nil {
			return nil
		}
	}
	if o.Normed {
		norm := op.Norm{Width: o.b.n, Eps: mixerEps}
		if !o.KeepB {
			b = norm.Of(b)
		}
		if !o.KeepC {
			c = norm.Of(c)
		}
	}
	d := o.Channels
	each := d / o.dt.n // channels of a head
	steps := make([]float64, len(x))
	for i := range steps {
		steps[i] = dt[i/d*o.dt.n+i%d/each]
		if o.DtBias != nil {
			steps[i] += o.Biases * o.DtBias[i%d]
		}
	}
	tokens := Length(o.Out.golden.Shape())
	var all []float64
	for t := 0; t < o.Out.Rows; t += tokens {
		of := func(x []float64, n int) []float64 {
			if x == nil {
				return nil
			}
			return x[t*n : (t+tokens)*n]
		}
		all = append(all, o.Of(of(x, d), of(steps, d), of(z, d), of(b, o.b.n), of(c, o.c.n))...)
	}
	out := make([]float64, 0, len(rows)*d)
	for _, r := range rows {
		out = append(out, all[r*d:(r+1)*d]...)
	}
	return out
}

// IsGated reports whether the scan ends with a gate.
func (o *Scan) IsGated() bool { return o.z.Value != nil }

// Shared reports whether all states of a channel have one A, as in Mamba-2.
func (o *Scan) Shared() bool { return o.Heads > 0 }

// findScan takes v for what the last projection of a mixer, or the norm in front of it, is given.
func findScan(g *Graph, v *Value) []Op {
	scope := label.Parent(label.Name(v.Taker()))
	_, aLog := g.Scene.Weights.Of(scope, "A_log")
	_, skip := g.Scene.Weights.Of(scope, "D")
	if aLog == nil || skip == nil || v.Width == 0 {
		return nil
	}
	find := func(layer string, width int) *Value {
		p := g.Scene.Output(scope + "." + layer)
		if p == nil || p.Rows() != v.Rows || p.Width() < width {
			return nil
		}
		return g.find(p)
	}
	d := v.Width
	in := find("in_proj", d)
	switch {
	case in == nil || d%aLog.Shape()[0] != 0 || d%skip.Len() != 0:
		return nil
	case len(aLog.Shape()) == 2 && aLog.Shape()[0] == d && skip.Len() == d:
		return g.scan1(v, scope, op.ReadAll(aLog), op.ReadAll(skip), aLog.Shape()[1], in, find)
	case len(aLog.Shape()) == 1 && skip.Len() == aLog.Len():
		return g.scan2(v, scope, op.ReadAll(aLog), op.ReadAll(skip), in, find)
	}
	return nil
}

// scan1 is that of Mamba.
func (g *Graph) scan1(v *Value, scope string, aLog, skip []float64, states int, in *Value, find func(string, int) *Value) []Op {
	d := v.Width
	x, dt, bc := g.InputOf(scope+".x_proj"), find("dt_proj", d), find("x_proj", 2*states)
	if x == nil || !x.IsLike(v) || dt == nil || dt.Width != d || bc == nil || in.Width < 2*d {
		return nil
	}
	o := &Scan{Made: Made{v}, Scan: op.Scan{Channels: d, States: states, ALog: aLog, D: skip}, x: span{x, 0, d}, dt: span{dt, 0, d},
		b: span{bc, bc.Width - 2*states, states}, c: span{bc, bc.Width - states, states}, z: span{in, in.Width - d, d}}
	if _, b := g.Scene.Weights.Of(dt.Layer(), "bias"); b != nil && b.Len() == d {
		o.DtBias = op.ReadAll(b)
	}
	normed := *o
	normed.Normed = true
	return []Op{o, &normed}
}

// scan2 is that of Mamba-2: heads of channels, whose groups share B and C.
func (g *Graph) scan2(v *Value, scope string, aLog, skip []float64, in *Value, find func(string, int) *Value) (ops []Op) {
	d, heads := v.Width, len(aLog)
	each := d / heads
	spread := func(x []float64, states int) []float64 { // from heads to channels
		out := make([]float64, 0, d*states)
		for _, a := range x {
			out = append(out, slices.Repeat([]float64{a}, each*states)...)
		}
		return out
	}
	x := find("act", d+2)
	if x == nil || in.Width < x.Width+heads {
		return nil
	}
	var bias []float64
	if _, b := g.Scene.Weights.Of(scope, "dt_bias"); b != nil && b.Len() == heads {
		bias = spread(op.ReadAll(b), 1)
	}
	width := (x.Width - d) / 2
	for _, groups := range groupCounts(g, heads) {
		if width%groups != 0 || heads%groups != 0 {
			continue
		}
		n := width / groups
		o := &Scan{Made: Made{v}, Scan: op.Scan{Channels: d, States: n, Heads: heads, Groups: groups, ALog: spread(aLog, n), D: spread(skip, 1)},
			DtBias: bias, Biases: 1, x: span{x, 0, d}, dt: span{in, in.Width - heads, heads}, b: span{x, d, width}, c: span{x, d + width, width}}
		gated := *o
		gated.z = span{in, in.Width - x.Width - heads - d, d}
		ops = append(ops, o)
		if gated.z.at >= 0 {
			ops = append(ops, &gated)
		}
	}
	return ops
}

// groupCounts are how many groups heads may have: what the config says, else the usual.
func groupCounts(g *Graph, heads int) (out []int) {
	if n, ok := g.Scene.Config.Int("n_groups", "mamba_n_groups", "mamba_ngroups"); ok && n > 0 {
		return []int{n}
	}
	for n := 1; n <= heads; n *= 2 {
		out = append(out, n)
	}
	return out
}

// WKV is the op of that name, multiplied by the sigmoid of the receptance.
type WKV struct {
	Made
	op.WKV
	Raw     []float64 // the decay as the weights have it
	K, V, R *Value
	Gate    func(r float64) float64
}

func (o *WKV) Inputs() []*Value { return []*Value{o.K, o.V, o.R} }

func (o *WKV) Eval(e *Evaluation, rows []int) []float64 {
	k, v, r := e.all(o.K), e.all(o.V), e.Get(o.R, rows)
	if k == nil || v == nil || r == nil || !e.g.Spend(float64(8*len(k))) {
		return nil
	}
	w := o.Out.Width
	n := Length(o.Out.golden.Shape()) * w
	var all []float64
	for at := 0; at < len(k); at += n {
		all = append(all, o.Of(k[at:at+n], v[at:at+n])...)
	}
	out := make([]float64, 0, len(rows)*w)
	for i, row := range rows {
		for c := range w {
			out = append(out, o.Gate(r[i*w+c])*all[row*w+c])
		}
	}
	return out
}

// TimeMix is out = in·Mix + before·(1 − Mix), before being in of the token before.
type TimeMix struct {
	From
	Mix    []float64
	Others map[string][]float64 // by the names of other weights
	Shift  int                  // how many tokens before is: 1
}

func (o *TimeMix) Eval(e *Evaluation, rows []int) []float64 {
	w, n := o.Out.Width, Length(o.Out.golden.Shape())
	before := make([]int, len(rows))
	for i, r := range rows {
		before[i] = min(max(r-o.Shift, 0), o.Out.Rows-1)
	}
	x, y := e.Get(o.In, rows), e.Get(o.In, before)
	if x == nil || y == nil {
		return nil
	}
	out := make([]float64, 0, len(rows)*w)
	for i, r := range rows {
		t := r%n - o.Shift
		for c := range w {
			z := o.Mix[c] * x[i*w+c]
			if t >= 0 && t < n {
				z += (1 - o.Mix[c]) * y[i*w+c]
			}
			out = append(out, z)
		}
	}
	return out
}

// findRWKV takes v for what a projection of RWKV is given.
func findRWKV(g *Graph, v *Value) (ops []Op) {
	scope := label.Parent(label.Name(v.Taker()))
	weight := func(name string) []float64 {
		if _, w := g.Scene.Weights.Of(scope, name); w != nil && w.Len() == v.Width {
			return op.ReadAll(w)
		}
		return nil
	}
	mixes := map[string][]float64{}
	for _, name := range []string{"key", "value", "receptance"} {
		if m := weight("time_mix_" + name); m != nil {
			mixes[name] = m
		}
	}
	if own := mixes[label.Last(label.Name(v.Taker()))]; own != nil {
		for _, x := range g.Alikes(v) {
			if x.Taker() == scope+".time_shift" || slices.ContainsFunc(x.ports, func(p *diagnose.Port) bool { return strings.HasPrefix(p.Layer, scope) }) {
				ops = append(ops, &TimeMix{From: From{Made{v}, x, ""}, Mix: own, Others: mixes, Shift: 1})
			}
		}
		return ops
	}
	decay, first := weight("time_decay"), weight("time_first")
	out := func(name string) *Value {
		if p := g.Scene.Output(scope + "." + name); p != nil {
			return g.find(p)
		}
		return nil
	}
	k, val, r := out("key"), out("value"), out("receptance")
	if decay == nil || first == nil || k == nil || val == nil || r == nil || !k.IsLike(v) || !val.IsLike(v) || !r.IsLike(v) {
		return nil
	}
	used := make([]float64, len(decay))
	for i, x := range decay {
		used[i] = -math.Exp(x)
	}
	return []Op{&WKV{Made: Made{v}, WKV: op.WKV{Decay: used, First: first}, Raw: decay, K: k, V: val, R: r, Gate: op.Sigmoid}}
}
