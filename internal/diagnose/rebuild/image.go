package rebuild

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// plane is the shape of an image or feature map: [batch, channels, height, width]; false for others.
func plane(v *Value) (s [4]int, ok bool) {
	shape := v.golden.Shape()
	if len(shape) != 4 || v.golden.Len() == 0 || v.golden.Len() > op.DecodeMax {
		return s, false
	}
	return [4]int(shape), true
}

// GroupNorm is the op of that name (arXiv 1803.08494): a layer norm of each group of channels of an
// image, with a weight and a bias for each channel.
type GroupNorm struct {
	From
	Groups       int
	Eps          float64
	Weight, Bias []float64
	Uncentered   bool // the mean is not subtracted
}

func (o *GroupNorm) Eval(e *Evaluation, rows []int) []float64 {
	s, ok := plane(o.Out)
	if !ok || s[1]%o.Groups != 0 {
		return nil
	}
	each := s[1] / o.Groups * s[2] // rows of a group
	n := op.Norm{Width: each * s[3], Center: !o.Uncentered, Eps: o.Eps}
	known := map[int][]float64{}
	out := make([]float64, 0, len(rows)*s[3])
	for _, r := range rows {
		group, c := r/each, r/s[2]%s[1]
		if known[group] == nil {
			x := e.Get(o.In, op.Sequence((group + 1) * each)[group*each:])
			if x == nil || !e.g.Spend(float64(4*len(x))) {
				return nil
			}
			known[group] = n.Of(x)
		}
		for _, y := range known[group][(r-group*each)*s[3]:][:s[3]] {
			if o.Weight != nil {
				y *= o.Weight[c]
			}
			if o.Bias != nil {
				y += o.Bias[c]
			}
			out = append(out, y)
		}
	}
	return out
}

// findGroupNorm tries the numbers of groups with the weights of a layer, or with those that the golden
// tensors show.
func findGroupNorm(g *Graph, from From, w, b *tensor.Tensor) (ops []Op) {
	s, ok := plane(from.Out)
	if !ok || w != nil && (len(w.Shape()) != 1 || w.Len() != s[1]) || b != nil && b.Len() != s[1] {
		return nil
	}
	if w == nil && (len(g.Scene.Weights) > 0 || from.Out.golden.Len() > learnPlane || s[0]*s[2]*s[3] < learnLeast) {
		return nil
	}
	counts := []int{32, 16, 8, 4, 2, 1, s[1]}
	if n, ok := g.Scene.Config.Int("norm_num_groups"); ok && n > 0 {
		counts = append([]int{n}, counts...)
	}
	for _, n := range counts {
		if s[1]%n != 0 {
			continue
		}
		for _, eps := range g.epsilons() {
			o := &GroupNorm{From: from, Groups: n, Eps: eps, Weight: op.ReadAll(w), Bias: op.ReadAll(b)}
			if w == nil {
				o.learn(s)
			}
			ops = append(ops, o)
		}
	}
	return ops
}

// learn takes the weight and the bias that bring each channel nearest to the golden one.
func (o *GroupNorm) learn(s [4]int) {
	rows := op.Sequence(o.Out.Rows)
	x, y := o.Eval(o.Graph().goldenly(), rows), o.Out.Golden(rows)
	if x == nil {
		return
	}
	size := s[2] * s[3]
	o.Weight, o.Bias = make([]float64, s[1]), make([]float64, s[1])
	for c := range s[1] {
		var n, sx, sy, sxx, sxy float64
		for at := c * size; at < len(x); at += s[1] * size {
			for i := at; i < at+size; i++ {
				n, sx, sy, sxx, sxy = n+1, sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
			}
		}
		o.Weight[c] = (n*sxy - sx*sy) / (n*sxx - sx*sx)
		o.Bias[c] = (sy - o.Weight[c]*sx) / n
	}
}

// ChannelSum is out = in + a number for each channel of each image: the time in a U-Net.
type ChannelSum struct {
	From
	Term *Value // [batch, channels]
}

func (o *ChannelSum) Inputs() []*Value { return []*Value{o.In, o.Term} }

func (o *ChannelSum) Eval(e *Evaluation, rows []int) []float64 { return o.Times(1)(e, rows) }

// Times is Eval with a multiple of the term.
func (o *ChannelSum) Times(factor float64) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		s, ok := plane(o.Out)
		x, t := slices.Clone(e.Get(o.In, rows)), e.all(o.Term)
		if !ok || x == nil || t == nil {
			return nil
		}
		for i := range x {
			x[i] += factor * t[rows[i/s[3]]/s[2]]
		}
		return x
	}
}

func findChannelSum(g *Graph, v *Value) (ops []Op) {
	s, ok := plane(v)
	if !ok {
		return nil
	}
	for _, t := range g.before(v) {
		if !slices.Equal(t.golden.Shape(), s[:2]) {
			continue
		}
		for _, x := range g.Alikes(v) {
			ops = append(ops, &ChannelSum{From{Made{v}, x, ""}, t})
		}
	}
	return ops
}

// Upsampled is an image brought to another size.
type Upsampled struct {
	From
	Way op.Resizing
}

func (o *Upsampled) Eval(e *Evaluation, rows []int) []float64 {
	s, ok := plane(o.Out)
	in, fine := plane(o.In)
	if !ok || !fine {
		return nil
	}
	known := map[int][]float64{}
	out := make([]float64, 0, len(rows)*s[3])
	for _, r := range rows {
		image := r / s[2]
		if known[image] == nil {
			x := e.Get(o.In, op.Sequence((image + 1) * in[2])[image*in[2]:])
			if x == nil || !e.g.Spend(float64(16*s[2]*s[3])) {
				return nil
			}
			known[image] = o.Way.Of(x, in[2], in[3], s[2], s[3], 1)
		}
		out = append(out, known[image][(r-image*s[2])*s[3]:][:s[3]]...)
	}
	return out
}

func findUpsampled(g *Graph, v *Value) (ops []Op) {
	s, ok := plane(v)
	if !ok {
		return nil
	}
	for _, x := range g.before(v) {
		in, ok := plane(x)
		if !ok || in[0] != s[0] || in[1] != s[1] || in[2] == s[2] || in[3] == s[3] || in[2] < 2 || in[3] < 2 {
			continue
		}
		for _, way := range op.Resizings {
			ops = append(ops, &Upsampled{From{Made{v}, x, ""}, way})
		}
	}
	return ops
}

// Times is the embedding of the times of a diffusion model: cosines and sines of Scale·t·fᵢ, side by
// side, with fᵢ = Period^(−i/(n−Shift)) for i < n.
type Times struct {
	From
	Period, Scale float64
	Shift         int
	SinesFirst    bool
	Paired        bool // cosine and sine of each frequency stand side by side
}

func (o *Times) Eval(e *Evaluation, rows []int) []float64 {
	t, w := e.ids(o.In), o.Out.Width
	n := w / 2
	if len(t) != o.Out.Rows || n <= o.Shift {
		return nil
	}
	out := make([]float64, len(rows)*w)
	for i, r := range rows {
		for k := range n {
			s, c := math.Sincos(o.Scale * t[r] * math.Pow(o.Period, -float64(k)/float64(n-o.Shift)))
			if o.SinesFirst {
				s, c = c, s
			}
			first, second := k, k+n
			if o.Paired {
				first, second = 2*k, 2*k+1
			}
			out[i*w+first], out[i*w+second] = c, s
		}
	}
	return out
}

func findTimes(g *Graph, v *Value) (ops []Op) {
	shape := v.golden.Shape()
	if len(shape) != 2 || v.Width < 4 || v.Width%2 != 0 || !isFront(v) ||
		!op.All(v.Golden(op.Spread(v.Rows, ProbeRows)), func(x float64) bool { return math.Abs(x) <= cosineMost }) {
		return nil
	}
	for _, p := range g.Scene.Pass() { // a container's input may be noted behind what is made of it
		if !p.IsInput() || p.Golden.Len() != v.Rows || v.Rows != shape[0] || p.Golden.Len() > op.DecodeMax || strings.Contains(p.Port, "mask") ||
			!label.Within(v.Taker(), p.Layer) {
			continue
		}
		x := g.find(p)
		if x == nil {
			x = g.value(p, 0)
			x.tried = true
			x.add(p)
		}
		for _, scale := range []float64{1, 1000} {
			for shift := range 2 {
				for _, sines := range []bool{false, true} {
					ops = append(ops, &Times{From: From{Made{v}, x, ""}, Period: 1e4, Scale: scale, Shift: shift, SinesFirst: sines})
				}
			}
		}
	}
	return ops
}

// Split is the part of a projection as heads: [batch, heads, tokens, elements], or with Behind [batch,
// tokens, heads, elements].
type Split struct {
	From
	Part, Parts int
	Grouped     bool // the projection is [heads, parts, elements], and not [parts, heads, elements]
	Behind      bool
}

func (o *Split) Eval(e *Evaluation, rows []int) []float64 {
	shape, d := o.Out.golden.Shape(), o.Out.Width
	heads, tokens := shape[1], shape[2]
	if o.Behind {
		heads, tokens = tokens, heads
	}
	own, first := make([]int, len(rows)), make([]int, len(rows))
	for k, r := range rows {
		b, h, t := r/(heads*tokens), r/shape[2]%shape[1], r%shape[2]
		if o.Behind {
			h, t = t, h
		}
		own[k], first[k] = b*tokens+t, (o.Part*heads+h)*d
		if o.Grouped {
			first[k] = (h*o.Parts + o.Part) * d
		}
	}
	x := e.Get(o.In, own)
	if x == nil {
		return nil
	}
	out := make([]float64, 0, len(rows)*d)
	for k, at := range first {
		out = append(out, x[k*o.In.Width+at:][:d]...)
	}
	return out
}

// findSplit tries the projections of as many tokens whose width is a whole number of times that of the
// heads.
func findSplit(g *Graph, v *Value) (ops []Op) {
	s, ok := plane(v)
	if !ok {
		return nil
	}
	for _, x := range g.before(v) {
		in := x.golden.Shape()
		if len(in) != 3 || in[0] != s[0] || x.golden.Len() > op.DecodeMax {
			continue
		}
		for _, behind := range []bool{false, true} {
			heads, tokens := s[1], s[2]
			if behind {
				heads, tokens = tokens, heads
			}
			parts := in[2] / (heads * s[3])
			if in[1] != tokens || parts == 0 || in[2] != parts*heads*s[3] || parts > 3 {
				continue
			}
			for part := range parts {
				for _, grouped := range []bool{false, true} {
					if parts > 1 || !grouped {
						ops = append(ops, &Split{From{Made{v}, x, ""}, part, parts, grouped, behind})
					}
				}
			}
		}
	}
	return ops
}

// findPart tries the first and the last columns of wider values, and each whole number of times as far.
func findPart(g *Graph, v *Value) (ops []Op) {
	for _, x := range g.before(v) {
		if x.Rows != v.Rows || x.Width <= v.Width || v.Width == 0 {
			continue
		}
		for _, first := range partsOf(x.Width, v.Width) {
			ops = append(ops, &Part{From{Made{v}, x, ""}, first})
		}
	}
	return ops
}

// partsOf lists where n columns may begin in a width.
func partsOf(width, n int) (out []int) {
	for first := 0; first+n <= width && len(out) < partsMost; first += n {
		out = append(out, first)
	}
	if last := width - n; !slices.Contains(out, last) {
		out = append(out, last)
	}
	return out
}

// Others lists where else the columns of a part may be taken from.
func (o *Part) Others() []int {
	return slices.DeleteFunc(partsOf(o.In.Width, o.Out.Width), func(first int) bool { return first == o.First })
}
