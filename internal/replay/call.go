package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// kernel calculates the results of an operator. Where it does not fit its operands, it fails.
type kernel func(c *Call) []*Array

// one is the kernel of an operator with one result.
func one(f func(c *Call) *Array) kernel {
	return func(c *Call) []*Array { return []*Array{f(c)} }
}

// fail panics with why an operator cannot be run, of which attempt makes an error.
func fail(format string, args ...any) { panic(&OpaqueError{Reason: fmt.Sprintf(format, args...)}) }

// Call is one operator with its operands. Arguments are asked for by the names of torch's schema.
type Call struct {
	op     *program.Op
	values []program.Value
	more   []program.Value // of a patch: their ids follow
	env    []*Array
	mode   Mode
	buffer []float64 // for each, kept between calls
	// weights says which values are weights of two axes or more, or numbers of those that were moved.
	weights []bool
	// imaginary is set where the imaginary parts of complex numbers are calculated: real ones have none.
	imaginary bool
}

// wants reports whether a result is recorded.
func (c *Call) wants(i int) bool { return i < len(c.op.Out) && c.op.Out[i] != program.None }

// value returns the recorded type and shape of a result.
func (c *Call) value(i int) *program.Value {
	if !c.wants(i) {
		fail("no result %d", i)
	}
	return c.valueOf(c.op.Out[i])
}

func (c *Call) valueOf(id program.ID) *program.Value {
	if n := len(c.values); int(id) >= n {
		return &c.more[int(id)-n]
	}
	return &c.values[id]
}

// shape returns the recorded shape of a result.
func (c *Call) shape(i int) []int { return c.value(i).Shape }

// make returns zeros of the recorded type and shape of the first result.
func (c *Call) make() *Array { return c.of(0, c.shape(0)) }

// of returns zeros of the recorded type of a result, in another shape.
func (c *Call) of(i int, shape []int) *Array {
	switch v := c.value(i); {
	case v.Type == "complex128":
		return newArray(tensor.F64, append(slices.Clone(shape), 2), c.mode.Wide).asComplex()
	case strings.HasPrefix(v.Type, "complex"):
		return newArray(tensor.F32, append(slices.Clone(shape), 2), c.mode.Wide).asComplex()
	default:
		return newArray(v.DType, shape, c.mode.Wide)
	}
}

// result makes a result of numbers in row-major order, nil where it is not recorded. No shape is the
// recorded one.
func (c *Call) result(i int, shape []int, x []float64) *Array {
	if !c.wants(i) {
		return nil
	}
	if shape == nil {
		shape = c.shape(i)
	}
	out := c.of(i, shape)
	if out.Len() != len(x) {
		fail("%d numbers as %v", len(x), shape)
	}
	out.write(x, 0)
	return out
}

// maybe returns an operand, given as a tensor or as a number; nil if it is not given.
func (c *Call) maybe(name string) *Array {
	number := func(d tensor.DType, v float64) *Array {
		if c.imaginary && name != "alpha" {
			v = 0
		}
		return &Array{dtype: d, number: true, d: []float64{v}}
	}
	switch v := c.op.Args.Get(name).(type) {
	case string:
		return complexNumber(v)
	case int:
		return number(tensor.I64, float64(v))
	case float64:
		return number(tensor.F64, v)
	case bool:
		return number(tensor.Bool, b2f(v))
	case program.ID:
		return c.made(name, v)
	}
	return nil
}

func (c *Call) made(name string, id program.ID) *Array {
	if c.env[id] == nil {
		fail("%s is not made", name)
	}
	return c.env[id]
}

// operand is maybe of one that has to be given.
func (c *Call) operand(name string) *Array { return given(c.maybe(name), "", name) }

func given(a *Array, what, name string) *Array {
	if a == nil {
		fail("no %s%s", what, name)
	}
	return a
}

// optional returns a tensor; nil if it is not given.
func (c *Call) optional(name string) *Array {
	if a := c.maybe(name); a != nil && !a.number {
		return a
	}
	return nil
}

// tensor is optional of one that has to be given.
func (c *Call) tensor(name string) *Array { return given(c.optional(name), "tensor ", name) }

// self is the operand of most operators.
func (c *Call) self() *Array { return c.tensor("self") }

// tensors returns a list of operands, nil for those that are not given.
func (c *Call) tensors(name string) (out []*Array) {
	for _, id := range get(c, name, []program.ID(nil)) {
		out = append(out, nil)
		if id != program.None {
			out[len(out)-1] = c.made(name, id)
		}
	}
	return out
}

// get returns an argument of a type, or otherwise what stands for it.
func get[T any](c *Call, name string, otherwise T) T {
	if v, ok := c.op.Args.Get(name).(T); ok {
		return v
	}
	return otherwise
}

func (c *Call) is(name string) bool                { return get(c, name, false) }
func (c *Call) text(name string) string            { return get(c, name, "") }
func (c *Call) int(name string, otherwise int) int { return get(c, name, otherwise) }

// float returns a number, which may be given as a tensor of one element.
func (c *Call) float(name string, otherwise float64) float64 {
	if a := c.maybe(name); a != nil {
		return a.first()
	}
	return otherwise
}

// scalar returns a number as the kernels of the result's type take it: float32 but for float64.
func (c *Call) scalar(name string, otherwise float64) float64 {
	v := c.float(name, otherwise)
	if d := c.value(0).DType; d.IsFloat() && d != tensor.F64 && !c.mode.Wide {
		return float64(float32(v))
	}
	return v
}

// ints returns a list of integers, of which there may be one; nil if none is given.
func (c *Call) ints(name string) []int {
	if v, ok := c.op.Args.Get(name).(int); ok {
		return []int{v}
	}
	return get(c, name, []int(nil))
}

// dims returns the axes that a reduction works along, ascending: all if none is given.
func (c *Call) dims(rank int) (dims []int) {
	asked := c.ints("dim")
	if len(asked) == 0 || rank == 0 {
		return vec.Sequence(rank)
	}
	for _, d := range asked {
		dims = append(dims, axis(d, rank))
	}
	slices.Sort(dims)
	return slices.Compact(dims)
}

// factors returns the operands of a product as the mode has them.
func (c *Call) factors(left, right string) (x, y *Array) {
	x, y = c.tensor(left), c.tensor(right)
	if c.mode.Operands == nil || !x.isFloat() || !y.isFloat() {
		return x, y
	}
	a, b := c.isWeight(left), c.isWeight(right)
	shape := y.shape
	o := Operand{Weight: b, Weighted: a || b, Sum: len(shape) - 2}
	switch {
	case right == "weight": // of a convolution, over all but the output channels
		y, o.Sum = y.reshape([]int{shape[0], -1}), 1
	case len(shape) < 2 || right == "key":
		o.Sum = len(shape) - 1
	}
	x = c.mode.Operands(x, Operand{Weight: a, Weighted: a || b, Sum: len(x.shape) - 1})
	return x, c.mode.Operands(y, o).reshape(shape)
}

func (c *Call) isWeight(name string) bool {
	id, ok := c.op.Args.Get(name).(program.ID)
	return ok && c.weights[id]
}

// table returns what rows are looked up in, as the mode has it.
func (c *Call) table(name string) *Array {
	a := c.tensor(name)
	if c.mode.Operands == nil || !a.isFloat() || !c.isWeight(name) {
		return a
	}
	return c.mode.Operands(a, Operand{Weight: true, Table: true, Sum: len(a.shape) - 1})
}
