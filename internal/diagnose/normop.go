package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// normed is out = n(in)·w + b, with n(x) = x/√(mean x² + eps) (RMS) or (x − mean)/√(var + eps) (layer).
type normed struct {
	in, out *value
	layer   string
	w, b    []float64 // nil for none
	center  bool      // layer norm
	onePlus bool      // the weight is kept as w − 1
	eps     float64
	sample  bool // the mean square is divided by width − 1
	outside bool // eps is added to the root, and not below it
}

func isNormName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "norm") || strings.HasPrefix(name, "ln_") || name == "ln"
}

func (o *normed) inputs() []*value { return []*value{o.in} }

func (o *normed) eval(e *evaluation, rows []int) []float64 { return o.of(e.get(o.in, rows)) }

func (o *normed) of(x []float64) []float64 {
	if x == nil {
		return nil
	}
	width := o.out.width
	out := make([]float64, len(x))
	for r := 0; r < len(x); r += width {
		in, dst := x[r:r+width], out[r:r+width]
		mean, square := 0.0, 0.0
		if o.center {
			for _, v := range in {
				mean += v / float64(width)
			}
		}
		for _, v := range in {
			square += (v - mean) * (v - mean)
		}
		n := float64(width)
		if o.sample {
			n--
		}
		f := 1 / math.Sqrt(square/n+o.eps)
		if o.outside {
			f = 1 / (math.Sqrt(square/n) + o.eps)
		}
		for c, v := range in {
			y := (v - mean) * f
			switch {
			case o.w != nil && o.onePlus:
				y *= 1 + o.w[c]
			case o.w != nil:
				y *= o.w[c]
			}
			if o.b != nil {
				y += o.b[c]
			}
			dst[c] = y
		}
	}
	return out
}

// epsilons in use.
var epsilons = []float64{1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 1e-7, 1e-4, 1e-2, 1e-1}

// findNorm tries the kinds of norm with the weights, or with those that the golden tensors show.
func findNorm(g *graph, in, v *value, layer string, w, b *tensor.Tensor) []op {
	if w != nil && (len(w.Shape()) != 1 || w.Len() != v.width) {
		return nil
	}
	eps := epsilons
	if e, ok := g.s.Config.Float("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon", "layernorm_epsilon"); ok {
		eps = append([]float64{e}, eps...)
	}
	vector := func(t *tensor.Tensor) []float64 {
		if t == nil || t.Len() != v.width {
			return nil
		}
		return read(t, v.width, []int{0})
	}
	var ops []op
	for _, center := range []bool{false, true} {
		for _, e := range eps {
			base := normed{in: in, out: v, layer: layer, center: center, eps: e, b: vector(b), w: vector(w)}
			ops = append(ops, &base)
			if w != nil {
				plus := base
				plus.onePlus = true
				ops = append(ops, &plus)
			} else if learned := base.learn(g); learned != nil {
				ops = append(ops, learned)
			}
		}
	}
	return ops
}

// learn finds the weight and the bias of each column in the golden rows.
func (o normed) learn(g *graph) op {
	rows := spread(o.out.rows, 64)
	if len(rows) < 6 {
		return nil
	}
	x, y := o.of(read(o.in.golden, o.out.width, rows)), read(o.out.golden, o.out.width, rows)
	width, n := o.out.width, float64(len(rows))
	o.w = make([]float64, width)
	if o.center {
		o.b = make([]float64, width)
	}
	for c := range width {
		var sx, sy, sxx, sxy float64
		for i := c; i < len(x); i += width {
			sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
		}
		if !o.center {
			o.w[c] = sxy / sxx
			continue
		}
		o.w[c] = (n*sxy - sx*sy) / (n*sxx - sx*sx)
		o.b[c] = (sy - o.w[c]*sx) / n
	}
	return &o
}

func (o *normed) faults(g *graph, v *value) []fault {
	var out []fault
	add := func(id, text string, rank int, change func(n *normed)) {
		n := *o
		change(&n)
		out = append(out, fault{id: id, text: text, rank: rank, eval: func(e *evaluation, rows []int) []float64 { return n.of(e.get(o.in, rows)) }})
	}
	for _, e := range append([]float64{0}, epsilons...) {
		if e != o.eps {
			add("norm/eps", fmt.Sprintf("eps is %g and not %g", e, o.eps), 0, func(n *normed) { n.eps = e })
		}
	}
	add("norm/eps", "eps is added to the root and not below it", 1, func(n *normed) { n.outside = true })
	add("norm/kind", "the squares are divided by one less than the width", 1, func(n *normed) { n.sample = true })
	out = append(out, g.fitted(v, "norm/eps", fmt.Sprintf("eps is another number than %g", o.eps), math.Log(1e-13), math.Log(100), 0, math.Exp,
		func(x float64) func(*evaluation, []int) []float64 {
			n := *o
			n.eps = math.Exp(x)
			return n.eval
		}))
	if o.center {
		add("norm/kind", "an RMS norm in place of a layer norm", 0, func(n *normed) { n.center = false })
		add("norm/kind", "an RMS norm without bias in place of a layer norm", 0, func(n *normed) { n.center, n.b = false, nil })
	} else {
		add("norm/kind", "a layer norm in place of an RMS norm", 0, func(n *normed) { n.center = true })
	}
	if o.w != nil {
		add("norm/weight", "the weight is missing", 0, func(n *normed) { n.w = nil })
		add("norm/weight", "weight and bias are missing", 1, func(n *normed) { n.w, n.b = nil, nil })
		if o.onePlus {
			add("norm/weight", "the weight is w and not 1 + w", 0, func(n *normed) { n.onePlus = false })
		} else {
			add("norm/weight", "the weight is 1 + w and not w", 0, func(n *normed) { n.onePlus = true })
			add("norm/weight", "the weight is w − 1 and not w: it is kept as w − 1, and 1 is not added", 0, func(n *normed) {
				n.w = slices.Clone(o.w)
				for i := range n.w {
					n.w[i]--
				}
			})
		}
	}
	if o.b != nil {
		add("norm/weight", "the bias is missing", 0, func(n *normed) { n.b = nil })
	}
	id := "norm/order"
	if name := lastPart(o.layer); queryNormNames.has(name) || keyNormNames.has(name) {
		id = "norm/missing" // there is no other place in which it could stand
	}
	out = append(out, fault{id: id, rank: 1, text: "the norm is left out", eval: func(e *evaluation, rows []int) []float64 { return e.get(o.in, rows) }})
	const limit = 200
	keys := make([]string, 0, len(g.s.Weights))
	for key, w := range g.s.Weights {
		if strings.HasSuffix(key, ".weight") && len(w.Shape()) == 1 && w.Len() == o.out.width && !strings.HasSuffix("."+o.layer, "."+moduleOf(key)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), limit)] {
		w := read(g.s.Weights[key], o.out.width, []int{0})
		if slices.Equal(w, o.w) {
			continue
		}
		b := o.b
		if t := g.s.Weights[moduleOf(key)+".bias"]; t != nil && t.Len() == o.out.width && o.b != nil {
			b = read(t, o.out.width, []int{0})
		}
		add("norm/weight", "the weights are those of "+moduleOf(key), 1, func(n *normed) { n.w, n.b = w, b })
		if o.b != nil {
			add("norm/weight", "the weight is that of "+moduleOf(key)+", with the right bias", 1, func(n *normed) { n.w = w })
		}
	}
	return out
}
