package fault

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Conv is a convolution with its weight, its input or its padding read otherwise.
func Conv(o *rebuild.Conv) (out List) {
	add := func(id string, rank int, text string, change func(c *rebuild.Conv)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	const flipped, layout, padding = "conv/flipped", "conv/layout", "conv/padding"
	plane := o.KernelHeight > 1
	if plane && o.KernelWidth > 1 {
		add(flipped, 0, "the kernel is read backwards along both axes", func(c *rebuild.Conv) { c.Flipped = [2]bool{true, true} })
		add(flipped, 1, "the kernel is read backwards along the height", func(c *rebuild.Conv) { c.Flipped[0] = true })
	}
	if o.KernelWidth > 1 {
		add(flipped, 0, "the kernel is read backwards", func(c *rebuild.Conv) { c.Flipped[1] = true })
	}
	for _, w := range weightOrders(o) {
		add(layout, 0, w.text, func(c *rebuild.Conv) { c.W = moved(o.W, w.from) })
	}
	if o.B != nil {
		add("linear/bias-missing", 0, "the bias is missing", func(c *rebuild.Conv) { c.B = nil })
		add("linear/bias-twice", 0, "the bias is added twice", func(c *rebuild.Conv) { c.Biases = 2 })
	}
	if o.InChannels == 3 && plane {
		out.add(o.Of(func(x []float64) []float64 { return moved(x, channels(o, []int{2, 1, 0})) }), 0,
			"the channels of the image are taken in the other order, blue first").ID = "image/channels"
		out.add(o.Of(func(x []float64) []float64 {
			n := o.Height * o.Width
			return moved(x, func(i int) int { c, at := i/n%3, i%n; return i/(3*n)*3*n + at*3 + c })
		}), 0, "the image is read as [height, width, channels]").ID = "image/layout"
		if o.Height == o.Width {
			out.add(o.Of(func(x []float64) []float64 {
				n := o.Height
				return moved(x, func(i int) int { return i/(n*n)*n*n + i%n*n + i/n%n })
			}), 0, "height and width of the image are exchanged").ID = "image/layout"
		}
	}
	for by := 1; by < o.KernelWidth; by++ {
		add(padding, 0, fmt.Sprintf("the input lies %d places further on: the padding is on the other side", by), func(c *rebuild.Conv) { c.Shift[1] = by })
		add(padding, 0, fmt.Sprintf("the input lies %d places further back: the padding is on the other side", by), func(c *rebuild.Conv) { c.Shift[1] = -by })
		if plane {
			add(padding, 1, fmt.Sprintf("the input lies %d places further on in both axes", by), func(c *rebuild.Conv) { c.Shift = [2]int{by, by} })
			add(padding, 1, fmt.Sprintf("the input lies %d places further back in both axes", by), func(c *rebuild.Conv) { c.Shift = [2]int{-by, -by} })
		}
	}
	if o.Pad != [2]int{} {
		add(padding, 0, "what lies around the input is the next element and not zero", func(c *rebuild.Conv) { c.Edge = true })
	}
	for k := range min(o.KernelWidth, fewTaps) {
		add(padding, 1, fmt.Sprintf("column %d of the kernel is left out", k), func(c *rebuild.Conv) { c.Skip = k + 1 })
	}
	if t := o.Scene().Target; o.Out.IsTarget() && len(o.W) <= roundedWeight {
		for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
			const id = "dtype/downcast"
			round := func(x []float64) []float64 { return op.Map(x, n.Round) }
			weight := with(o, func(c *rebuild.Conv) { c.W = round(o.W) })
			out.add(o.Of(round), 2, "the input is rounded to %s", n.Name).ID = id
			out.add(weight, 2, "the weight is rounded to %s", n.Name).ID = id
			both := *o
			both.W = round(o.W)
			out.add(both.Of(round), 2, "input and weight are rounded to %s", n.Name).ID = id
			out.add(both.Of(round).Then(round), 2, "input, weight and result are rounded to %s", n.Name).ID = id
		}
	}
	others := o.Scene().Weights.Keys(func(key string, _ *tensor.Tensor) bool { return key != o.Key && label.Last(key) == label.Last(o.Key) })
	n := 0
	for _, key := range others {
		w := o.Scene().Weights[key]
		if w.Len() != len(o.W) || n == otherLayers || len(w.Shape()) < 3 {
			continue
		}
		n++
		add("linear/other-layer", 1, "the weights are those of "+label.Parent(key), func(c *rebuild.Conv) {
			c.W = op.ReadAll(w)
			if b := bias(o.Made, key); b != nil && o.B != nil {
				c.B = op.ReadAll(b)
			}
		})
	}
	return out
}

// weightOrders are other orders in which the elements of a weight may be read.
func weightOrders(o *rebuild.Conv) (all []struct {
	text string
	from func(i int) int
}) {
	in, kh, kw := o.InChannels/o.Groups, o.KernelHeight, o.KernelWidth
	add := func(text string, from func(i int) int) {
		all = append(all, struct {
			text string
			from func(i int) int
		}{text, from})
	}
	k := kh * kw
	if kh == kw && kh > 1 {
		add("height and width of the kernel are exchanged", func(i int) int { return i/k*k + i%kw*kw + i/kw%kh })
	}
	if in > 1 && k > 1 {
		add("the weight, [out, in, kernel], is read as [out, kernel, in]", func(i int) int {
			o, c, at := i/(in*k), i/k%in, i%k
			return o*in*k + at*in + c
		})
		add("the weight is [out, kernel, in] in memory, and read as [out, in, kernel]", func(i int) int {
			o, at := i/(in*k), i%(in*k)
			return o*in*k + at%in*k + at/in
		})
	}
	if in == 3 {
		add("the channels of the weight are taken in the other order", func(i int) int { return i/(3*k)*3*k + (2-i/k%3)*k + i%k })
	}
	if in > 3 || in == 2 {
		add("the input channels of the weight are taken in turned order", func(i int) int { return i/(in*k)*in*k + (in-1-i/k%in)*k + i%k })
	}
	if in == o.OutChannels && in > 1 {
		add("inputs and outputs of the weight are exchanged", func(i int) int { return (i/k%in*in+i/(in*k))*k + i%k })
	}
	return all
}

// moved returns x with element i taken from another place.
func moved(x []float64, from func(i int) int) []float64 {
	out := make([]float64, len(x))
	for i := range out {
		out[i] = x[from(i)]
	}
	return out
}

// channels takes the channels of an image in another order.
func channels(o *rebuild.Conv, order []int) func(i int) int {
	n, c := o.Height*o.Width, len(order)
	return func(i int) int { return i/(c*n)*c*n + order[i/n%c]*n + i%n }
}

// Patches is the tokens of an image with other positions, or in another order.
func Patches(o *rebuild.Patches) (out List) {
	same := func(at int) int { return at }
	front, n := o.Front(), o.Tokens-o.Front()
	add := func(id, text string, factor float64, position, patch func(at int) int, class float64) {
		out.add(o.With(factor, position, patch, class), 0, "%s", text).ID = id
	}
	const position = "embedding/position"
	turn := func(at int) int { return at }
	if o.Height > 1 && o.Height*o.Columns == n {
		turn = func(at int) int { return at%o.Height*o.Columns + at/o.Height }
		if o.Height == o.Columns {
			add("layout/permuted", "the patches are taken column by column, and not row by row", 1, same, turn, 1)
		}
	}
	if o.Table != nil {
		if o.Height > 1 && o.Height == o.Columns {
			add(position, "rows and columns of the grid of positions are exchanged", 1, func(t int) int {
				if t < front {
					return t
				}
				return front + turn(t-front)
			}, same, 1)
		}
		add(position, "the positions are not added", 0, same, same, 1)
		add(position, "the positions are added twice", 2, same, same, 1)
		add(position, "the positions are read backwards", 1, func(t int) int { return o.Tokens - 1 - t }, same, 1)
		for _, by := range []int{-1, 1} {
			add(position, fmt.Sprintf("the positions are read %+d rows off, not beyond their ends", by), 1,
				func(t int) int { return min(max(t+by, 0), o.Tokens-1) }, same, 1)
			add(position, fmt.Sprintf("the positions are read %+d rows off, round their ends", by), 1,
				func(t int) int { return (t + by + o.Tokens) % o.Tokens }, same, 1)
		}
		if front > 0 {
			add(position, "what stands in front of the patches has no positions, and they have those from 0 on", 1,
				func(t int) int { return t - front }, same, 1)
			add(position, "what stands in front of the patches has no positions", 1, func(t int) int {
				if t < front {
					return -1
				}
				return t
			}, same, 1)
			add(position, "the patches have no positions", 1, func(t int) int {
				if t < front {
					return t
				}
				return -1
			}, same, 1)
		}
	}
	if g := o.Grid; g != nil {
		other := func(text string, table []float64) {
			out.add(with(o, func(p *rebuild.Patches) { p.Table = table }), 0, "%s", text).ID = position
		}
		for _, way := range op.Resizings {
			if way != g.Way {
				other(fmt.Sprintf("the positions are brought to the size of the image in another way: %s, and not %s", way, g.Way), o.Resized(way))
			}
		}
		if o.Height*o.Columns <= g.Size*g.Size {
			other("the positions are not brought to the size of the image: the first rows are taken",
				slices.Concat(g.Class, g.Rows[:o.Height*o.Columns*o.Out.Width]))
		}
	}
	if front > 0 {
		add("image/class-token", "the token in front of the patches is zero", 1, same, same, 0)
		add("image/class-token", "the token in front of the patches is added twice", 1, same, same, 2)
	}
	return out
}

// AddedRow is a bias behind the layers that is left out.
func AddedRow(o *rebuild.AddedRow) (out List) {
	out.add(o.Times(0), 0, "the bias is missing")
	out.add(o.Times(2), 0, "the bias is added twice").ID = "linear/bias-twice"
	return out
}
