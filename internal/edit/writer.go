package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// writer writes the operators that stand in the place of one.
type writer struct {
	s   *site
	e   *Edit
	ops []program.Op
}

// change writes what is done to a value.
type change func(w *writer, id program.ID) program.ID

// unwritable is what ends an edit that cannot be written, and needs ends it where a condition does not hold.
type unwritable struct{}

func (w *writer) needs(ok bool) {
	if !ok {
		panic(unwritable{})
	}
}

// value returns a value of the piece, or of the patch.
func (w *writer) value(id program.ID) *program.Value {
	if int(id) < len(w.s.Values) {
		return &w.s.Values[id]
	}
	return &w.e.Patch.Made[int(id)-len(w.s.Values)]
}

// shape returns a copy of that of a value.
func (w *writer) shape(id program.ID) []int { return slices.Clone(w.value(id).Shape) }

// run writes an operator with other arguments, which makes what the one in its place makes.
func (w *writer) run(o program.Op, name string, args program.Args) {
	o.Args = args
	if strings.HasPrefix(o.Name, "native_") && len(o.Out) > 1 { // its statistics may have another shape
		o.Out = o.Out[:1]
	}
	if name != o.Name {
		o.Name, o.Full = name, full(name)
	}
	w.ops = append(w.ops, o)
}

// full is the name of an operator without an overload, as replay knows it.
func full(name string) string {
	if name == replay.AsIs {
		return name
	}
	return "aten." + name
}

// give runs an operator with another argument.
func (w *writer) give(o program.Op, arg string, value any) {
	w.run(o, o.Name, with(o.Args, arg, value))
}

// pass makes a value the result of an operator, in its shape, spread where it is smaller.
func (w *writer) pass(o program.Op, id program.ID) {
	name, shape := "expand", w.s.shape(o.Out[0])
	if size(shape) == size(w.value(id).Shape) {
		name = "view"
	}
	w.run(o, name, argsOf("self", id, "size", shape))
}

// after runs an operator, and something on its first result.
func (w *writer) after(o program.Op, f change) { w.afterOne(o, o.Out[0], f) }

// afterOne is after of one of several results.
func (w *writer) afterOne(o program.Op, own program.ID, f change) {
	o.Out = slices.Clone(o.Out)
	k := slices.Index(o.Out, own)
	o.Out[k] = w.typed(w.s.shape(own), own)
	w.ops = append(w.ops, o)
	w.write("view", []program.ID{own}, "self", f(w, o.Out[k]))
}

// again writes an operator on the values that stand in the place of others by now, and makes such values itself, of
// the shape that is told for each result.
func (w *writer) again(o program.Op, now map[program.ID]program.ID, shape func(k int, id program.ID) []int) {
	o.Args, o.Out = renamed(o.Args, now), slices.Clone(o.Out)
	for k, id := range o.Out {
		if id != program.None {
			o.Out[k] = w.make(shape(k, id), w.s.Values[id].DType)
			now[id] = o.Out[k]
		}
	}
	w.ops = append(w.ops, o)
}

// made writes an operator with other arguments that makes a value like another one.
func (w *writer) made(o program.Op, like program.Value, args program.Args) program.ID {
	id := w.make(like.Shape, like.DType)
	o.Args, o.Out = args, []program.ID{id}
	w.ops = append(w.ops, o)
	return id
}

// make adds a value to the patch.
func (w *writer) make(shape []int, dtype tensor.DType) program.ID {
	return w.outside(program.Value{Shape: shape, DType: dtype})
}

// typed adds a value of the type of another one.
func (w *writer) typed(shape []int, like program.ID) program.ID {
	v := w.value(like)
	return w.outside(program.Value{Shape: shape, DType: v.DType, Type: v.Type})
}

// outside adds a value that comes from outside to the patch.
func (w *writer) outside(v program.Value) program.ID {
	if v.Record > 0 {
		w.e.From = w.s.layerOf(v)
	}
	w.e.Patch.Made = append(w.e.Patch.Made, v)
	return program.ID(len(w.s.Values) + len(w.e.Patch.Made) - 1)
}

// late is a value that is made when it is needed, and numbers one of some numbers.
func (w *writer) late(v program.Value, made func() (*replay.Array, error)) program.ID {
	id := w.outside(v)
	if w.e.Patch.Late == nil {
		w.e.Patch.Late = map[program.ID]func() (*replay.Array, error){}
	}
	w.e.Patch.Late[id] = made
	return id
}

func (w *writer) numbers(dtype tensor.DType, shape []int, x func() []float64) program.ID {
	return w.late(program.Value{Shape: shape, DType: dtype}, func() (*replay.Array, error) { return replay.Of(dtype, shape, x()) })
}

func (w *writer) write(name string, out []program.ID, args ...any) {
	w.ops = append(w.ops, program.Op{Name: name, Full: full(name), Args: argsOf(args...), Out: out, Stack: -1})
}

// like writes an operator and returns its result, of the type of a value, and of its shape if none is said; call, one of
// that value itself.
func (w *writer) like(name string, x program.ID, shape []int, args ...any) program.ID {
	if shape == nil {
		shape = w.value(x).Shape
	}
	id := w.typed(shape, x)
	w.write(name, []program.ID{id}, args...)
	return id
}

func (w *writer) call(name string, x program.ID, shape []int, args ...any) program.ID {
	return w.like(name, x, shape, append([]any{"self", x}, args...)...)
}

// by is an operator of a value that keeps its shape.
func by(name string, args ...any) change {
	return func(w *writer, x program.ID) program.ID { return w.call(name, x, nil, args...) }
}

// two writes a function of a value and of a number or a value that is spread over it.
func (w *writer) two(name string, x program.ID, y any) program.ID {
	return w.call(name, x, nil, "other", y)
}

// along writes what makes one number of each line along some axes, which stay.
func (w *writer) along(name string, x program.ID, axes ...int) program.ID {
	shape := w.shape(x)
	w.needs(len(shape) > 0)
	for _, d := range axes {
		shape[(d+len(shape))%len(shape)] = 1
	}
	return w.call(name, x, shape, "dim", axes, "keepdim", true)
}

var shares = by("_softmax", "dim", -1)

// bmm writes a product of [b, rows, n] and [b, n, columns].
func (w *writer) bmm(x, y program.ID) program.ID {
	shape := w.shape(x)
	shape[2] = w.shape(y)[2]
	return w.call("bmm", x, shape, "mat2", y)
}

// view writes a value in another shape, and expand one that is spread.
func (w *writer) view(x program.ID, shape ...int) program.ID {
	return w.call("view", x, shape, "size", shape)
}

func (w *writer) expand(x program.ID, shape []int) program.ID {
	return w.call("expand", x, shape, "size", shape)
}

// slice writes n elements of an axis, from one on.
func (w *writer) slice(x program.ID, d, from, n int) program.ID {
	shape := w.shape(x)
	w.needs(d < len(shape))
	shape[d] = n
	return w.call("slice", x, shape, "dim", d, "start", from, "end", from+n, "step", 1)
}

// cat writes values after one another along an axis.
func (w *writer) cat(d int, parts ...program.ID) program.ID {
	shape := w.shape(parts[0])
	for _, x := range parts[1:] {
		shape[d] += w.value(x).Shape[d]
	}
	return w.like("cat", parts[0], shape, "tensors", parts, "dim", d)
}

// selected writes a value whose elements along an axis are those of an order.
func (w *writer) selected(x program.ID, axis int, order []int) program.ID {
	shape := w.shape(x)
	w.needs(axis < len(shape))
	shape[axis] = len(order)
	index := w.numbers(tensor.I64, []int{len(order)}, func() []float64 { return mapped(order, func(k int) float64 { return float64(k) }) })
	return w.call("index_select", x, shape, "dim", axis, "index", index)
}

// transpose exchanges two axes of a value.
func (w *writer) transpose(x program.ID, a, b int) program.ID {
	shape := w.shape(x)
	n := len(shape)
	w.needs(n > 1 && max(a, b) < n)
	i, j := (a+n)%n, (b+n)%n
	shape[i], shape[j] = shape[j], shape[i]
	return w.call("transpose", x, shape, "dim0", i, "dim1", j)
}

// turn reads an axis of a·b·… as [a, b, …], and writes it as [b, a, …]; b is all that is left of it for none.
func (w *writer) turn(x program.ID, d, a, b int) program.ID {
	shape := w.shape(x)
	w.needs(d < len(shape) && shape[d]%(a*max(b, 1)) == 0)
	split := []int{a, shape[d] / a}
	if b > 0 {
		split = []int{a, b, shape[d] / a / b}
	}
	return w.view(w.transpose(w.view(x, slices.Concat(shape[:d], split, shape[d+1:])...), d, d+1), shape...)
}

// beyond adds elements before and after those of an axis: zeros, or those that at says.
func (w *writer) beyond(x program.ID, axis int, sides [2]int, at func(i, n int) int) program.ID {
	shape := w.shape(x)
	w.needs(axis < len(shape))
	if sides == [2]int{} {
		return x
	}
	n := shape[axis]
	shape[axis] += sides[0] + sides[1]
	if at != nil {
		return w.selected(x, axis, mapped(upTo(shape[axis]), func(i int) int { return at(i-sides[0], n) }))
	}
	pad := make([]int, 2*(len(shape)-axis))
	pad[len(pad)-2], pad[len(pad)-1] = sides[0], sides[1]
	return w.call("constant_pad_nd", x, shape, "pad", pad, "value", 0)
}

// rounded is a value that went through another type.
func rounded(d tensor.DType) change {
	return func(w *writer, x program.ID) program.ID {
		w.e.To = d
		narrow := w.make(w.value(x).Shape, d)
		w.write("_to_copy", []program.ID{narrow}, "self", x, "dtype", d.String())
		return w.like("_to_copy", x, nil, "self", narrow, "dtype", w.value(x).DType.String())
	}
}

func argsOf(list ...any) (args program.Args) {
	for i := 0; i+1 < len(list); i += 2 {
		args = append(args, program.Arg{Name: list[i].(string), Value: list[i+1]})
	}
	return args
}

// with returns arguments of which some are others, by names and values.
func with(args program.Args, others ...any) program.Args {
	out := slices.Clone(args)
	for _, x := range argsOf(others...) {
		if i := slices.IndexFunc(out, func(a program.Arg) bool { return a.Name == x.Name }); i >= 0 {
			out[i] = x
		} else {
			out = append(out, x)
		}
	}
	return out
}

// renamed returns arguments in which values stand in the place of others.
func renamed(args program.Args, now map[program.ID]program.ID) program.Args {
	return args.Map(func(id program.ID) program.ID {
		if to, ok := now[id]; ok {
			return to
		}
		return id
	})
}
