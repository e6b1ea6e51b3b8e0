package replay

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// convolutions are those of [batch, channels, axes…], any number of axes.
var convolutions = family{"convolution": one(convolution)}

// windows say which elements a kernel takes, by axis: how many, how far apart they are, and how far the
// windows.
type windows struct{ taps, apart, step []int }

// perAxis returns integers for each of some axes; one stands for all.
func (c *Call) perAxis(name string, n, otherwise int) []int {
	x := c.ints(name)
	for _, v := range x {
		if v < 0 || v > widest || v == 0 && !strings.HasSuffix(name, "padding") {
			fail("%s %v", name, x)
		}
	}
	switch len(x) {
	case n:
		return slices.Clone(x)
	case 0:
		x = []int{otherwise}
	case 1:
	default:
		fail("%s %v for %d axes", name, x, n)
	}
	return slices.Repeat(x[:1], n)
}

// in shows an array with its last axes as the places of windows, and after them their elements. It has
// more elements than can be made.
func (w *windows) in(a *Array) *Array {
	v, r := *a, len(a.shape)-len(w.taps)
	v.shape, v.strides = slices.Clone(a.shape), slices.Clone(a.strides)
	for d, taps := range w.taps {
		n, step := a.shape[r+d], a.strides[r+d]
		v.shape[r+d], v.strides[r+d] = (n-w.apart[d]*(taps-1)-1)/w.step[d]+1, step*w.step[d]
		if n-w.apart[d]*(taps-1) < 1 {
			fail("no window of %v in %v", w.taps, a.shape)
		}
		v.shape, v.strides = append(v.shape, taps), append(v.strides, step*w.apart[d])
	}
	return &v
}

// framed returns the elements with the last axes spread apart, and with some of a value in front and
// after; less than none leaves elements out.
func (a *Array) framed(spread, before, after []int, value float64) *Array {
	shape, r := slices.Clone(a.shape), len(a.shape)-len(spread)
	same := true
	for d, s := range spread {
		shape[r+d] = max(0, (a.shape[r+d]-1)*s+1+before[d]+after[d])
		same = same && s == 1 && before[d] == 0 && after[d] == 0
	}
	if same {
		return a
	}
	out := filled(like(a, shape), value)
	to := out
	for d, s := range spread {
		n, from := a.shape[r+d], max(0, ceil(-before[d], s)) // of a
		at := from*s + before[d]
		n = max(0, min(n-from, ceil(shape[r+d]-at, s)))
		if n == 0 {
			return out
		}
		a, to = a.slice(r+d, from, n, 1), to.slice(r+d, at, n, s)
	}
	to.put(a)
	return out
}

// convolution is Σ weight · input over channels and taps, by products of the weights with the windows of
// the input, some windows at a time. A transposed one is that of the input with stride−1 zeros between
// its elements, with the taps in reverse order.
func convolution(c *Call) *Array {
	x, w := c.factors("input", "weight")
	n, groups := len(x.shape)-2, max(c.int("groups", 1), 1)
	if n < 1 || len(w.shape) != n+2 || x.complex || w.complex || w.shape[0]%groups != 0 {
		fail("convolution of %v by %v", x.shape, w.shape)
	}
	spread := slices.Repeat([]int{1}, n)
	g := &windows{w.shape[2:], c.perAxis("dilation", n, 1), c.perAxis("stride", n, 1)}
	before, after := c.perAxis("padding", n, 0), c.perAxis("padding", n, 0)
	if c.is("transposed") {
		w, spread, g.step = turned(w, groups), g.step, spread
		for d, more := range c.perAxis("output_padding", n, 0) {
			before[d] = g.apart[d]*(g.taps[d]-1) - before[d]
			after[d] = before[d] + more
		}
	}
	if w.shape[1]*groups != x.shape[1] {
		fail("convolution of %v by %v", x.shape, w.shape)
	}
	v := g.in(x.framed(spread, before, after, 0))
	weights := w.reshape([]int{groups, w.shape[0] / groups, size(w.shape[1:])})
	shape := slices.Concat(x.shape[:1], w.shape[:1], v.shape[2:2+n])
	var out *Array
	if c.wide(x, w) {
		out = newArray(tensor.F64, shape, true)
		convolve(out.d, v, weights)
	} else {
		out = newArray(tensor.F32, shape, false)
		convolve(out.f, v, weights)
	}
	bias := c.optional("bias")
	if bias != nil {
		bias = out.perChannel(bias)
	}
	return c.plus(out, bias)
}

// turned are weights of a transposed convolution as those of one: these have the channels of the input in
// front, by groups.
func turned(w *Array, groups int) *Array {
	shape := w.shape
	for d := 2; d < len(shape); d++ {
		w = w.flipped(d)
	}
	w = w.reshape(slices.Concat([]int{groups, shape[0] / groups}, shape[1:]))
	return w.transpose(exchanged(len(w.shape), 1, 2)).reshape(slices.Concat([]int{groups * shape[1], shape[0] / groups}, shape[2:]))
}

// convolve multiplies weights, [groups, filters, channels · taps], with windows, [batch, channels, places…,
// taps…], to dst, [batch, filters, places…].
func convolve[T floating](dst []T, x, weights *Array) {
	n := len(x.shape)/2 - 1
	order := []int{0, 1}
	for d := range 2 * n { // taps in front of places: windows as columns
		order = append(order, 2+(n+d)%(2*n))
	}
	groups, filters, depth := weights.shape[0], weights.shape[1], weights.shape[2]
	all, line, channels := size(x.shape[2:2+n]), size(x.shape[3:2+n]), x.shape[1]/groups
	lines := min(x.shape[2], max(1, windowElements/max(depth*line, 1)))
	parts := ceil(x.shape[2], lines)
	parallel(x.shape[0]*groups*parts, filters*depth*lines*line, func() func(i int) {
		columns, made := make([]T, depth*lines*line), make([]T, filters*lines*line)
		return func(i int) {
			from, k, b := i%parts*lines, i/parts%groups, i/parts/groups
			v := x.slice(0, b, 1, 1).slice(1, k*channels, channels, 1).slice(2, from, min(lines, x.shape[2]-from), 1).transpose(order)
			columns := columns[:v.Len()]
			read(v, columns, 0)
			width := len(columns) / depth
			made := made[:filters*width]
			clear(made)
			multiply(made, weights.slice(0, k, 1, 1), arrayOf([]int{1, depth, width}, columns))
			for f := range filters {
				copy(dst[((b*groups+k)*filters+f)*all+from*line:], made[f*width:][:width])
			}
		}
	})
}
