package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// family is a table of kernels by the names of their operators.
type family map[string]kernel

// operator is a kernel, and whether it only moves numbers: then its results are not rounded.
type operator struct {
	kernel
	moves bool
}

// operators are those of all families, of which the first two only move numbers.
var operators = table(shapes, lookups, elementwise, reductions, norms, created, complexes, products, attentions,
	convolutions, writes, orders, scans)

func table(families ...family) map[string]operator {
	all := map[string]operator{}
	for i, f := range families {
		for name, k := range f {
			if all[name].kernel != nil {
				panic("two operators " + name)
			}
			all[name] = operator{k, i < 2}
		}
	}
	return all
}

// key returns the name of an operator in the table: without its overload, and without torch's own
// namespace.
func key(op string) string {
	space, name, ok := strings.Cut(op, ".")
	if !ok {
		return op
	}
	name, _, _ = strings.Cut(name, ".")
	if space == "aten" {
		return name
	}
	return space + "." + name
}

// Multiplies reports whether an operator is a product of matrices or a convolution, by its name.
func Multiplies(op string) bool { return products[key(op)] != nil || op == "aten.convolution.default" }

// Load returns a value that comes from outside of a piece: a weight, a record, an input or a constant,
// with the value's shape and type.
type Load func(v *program.Value) (*Array, error)

// Freedom is why a piece that cannot be run may have another result than the reference's.
type Freedom int

// The reasons. Bound stands for none: what goes into the piece tells what comes out.
const (
	Bound Freedom = iota
	Drawn         // it draws random numbers
	Other         // on other numbers the reference would have run other operators, or other sizes
)

// OpaqueError says that a piece cannot be run: it has an operator that is unknown, or that does not
// fit its operands.
type OpaqueError struct {
	Op, Layer string // of the operator, "" for none
	Reason    string
	Free      Freedom
}

func (e *OpaqueError) Error() string {
	if e.Op == "" {
		return "cannot be replayed: " + e.Reason
	}
	return fmt.Sprintf("cannot be replayed: %s in %q: %s", e.Op, e.Layer, e.Reason)
}

// Attempt runs f, and returns its error or, as an *OpaqueError, what it panicked with. Files that cannot be read any more
// are left to [mapfile.Guard].
func Attempt(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *OpaqueError:
			err = r
		case *mapfile.Fault, interface{ Addr() uintptr }:
			panic(r)
		default: // an index beyond an operand: a program that nobody recorded
			err = &OpaqueError{Reason: fmt.Sprint("does not fit: ", r)}
		}
	}()
	return f()
}

// Run runs a piece and returns what it makes, with the recorded shape and type. What is no longer
// needed is freed on the way. Guards are looked at in the zero Mode; the others ask what rounding does to
// a piece that passed them. The errors are *OpaqueError, those of load, and ctx's cause.
func Run(ctx context.Context, p *program.Piece, load Load, m Mode) (*Array, error) {
	if (m.Round == Nearest || m.Round == Zero) && m.To != tensor.BF16 && m.To != tensor.F16 {
		return nil, fmt.Errorf("replay: no rounding to %s, only to bfloat16 and float16", m.To)
	}
	if m.isZero() {
		if err := guarded(ctx, p, load); err != nil {
			return nil, err
		}
	}
	r := newRunner(ctx, p.Values, load, m)
	last := slices.Repeat([]int{-1}, len(p.Values)) // by value: the last operator that takes it
	for i := range p.Ops {
		for _, id := range p.Operands(i) {
			last[id] = i
		}
	}
	last[p.Out] = len(p.Ops)
	return r.run(func() error {
		for i := range p.Ops {
			if err := r.step(&p.Ops[i], p.Operands(i), p.Origin[i]); err != nil {
				return err
			}
			for _, id := range slices.Concat(p.Operands(i), p.Ops[i].Out) {
				if id != program.None && last[id] <= i {
					r.env[id] = nil
				}
			}
		}
		return nil
	}, p.Out)
}

// guarded returns an error if a piece is none that the reference runs on these operands.
func guarded(ctx context.Context, p *program.Piece, load Load) error {
	for _, g := range p.Guards {
		a, err := Run(ctx, g.Piece, load, Mode{})
		if err != nil {
			return err
		}
		within := 0.0
		if a.isFloat() {
			within = equalFloats
		}
		if g.Equal == nil || !slices.EqualFunc(a.Floats(), g.Equal, func(v, w float64) bool {
			return v == w || math.Abs(v-w) <= within*math.Abs(w) || v != v && w != w
		}) {
			return &OpaqueError{Free: Other, Reason: "it hangs on numbers that are other ones here, where the reference goes another way"}
		}
	}
	return nil
}

// runner runs operators one after the other.
type runner struct {
	Call
	ctx  context.Context
	load Load
	asIs []*Array // by value: what AsIs returns
}

func newRunner(ctx context.Context, values []program.Value, load Load, m Mode) *runner {
	n := len(values)
	return &runner{ctx: ctx, load: load, Call: Call{values: values, env: make([]*Array, n), mode: m, weights: make([]bool, n)}}
}

// run returns a value after some steps.
func (r *runner) run(steps func() error, out program.ID) (*Array, error) {
	err := mapfile.Guard(func() error {
		if err := steps(); err != nil {
			return err
		}
		return Attempt(func() error { return r.need(out) })
	})
	if err != nil {
		return nil, err
	}
	return r.env[out], nil
}

// need loads a value that comes from outside.
func (r *runner) need(id program.ID) error {
	if r.env[id] != nil {
		return nil
	}
	v := r.valueOf(id)
	if !v.IsOutside() {
		fail("takes a result that is not calculated")
	}
	a, err := r.load(v)
	if err != nil {
		return err
	}
	if v.DType == tensor.Invalid && len(a.shape) == len(v.Shape)+1 { // complex numbers, as pairs
		a = a.asComplex()
	}
	if !slices.Equal(a.shape, v.Shape) {
		fail("%v from outside is not %v", a.shape, v.Shape)
	}
	if !a.complex {
		a = a.cast(v.DType, r.mode.Wide)
	}
	r.env[id], r.weights[id] = a, v.Weight != "" && len(v.Shape) > 1
	return nil
}

// step runs an operator. origin tells it from the others of the program.
func (r *runner) step(o *program.Op, operands []program.ID, origin int) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	err := Attempt(func() error { return r.calculate(o, operands, origin) })
	if e, ok := errors.AsType[*OpaqueError](err); ok {
		return &OpaqueError{Op: o.Full, Layer: o.Layer, Reason: e.Reason, Free: e.Free}
	}
	return err
}

func (r *runner) calculate(o *program.Op, operands []program.ID, origin int) error {
	if o.Full == AsIs {
		r.env[o.Out[0]] = r.asIs[operands[0]]
		return nil
	}
	if o.Random {
		panic(&OpaqueError{Reason: "it draws random numbers", Free: Drawn})
	}
	for _, id := range operands {
		if err := r.need(id); err != nil {
			return err
		}
	}
	op := operators[key(o.Full)]
	if op.kernel == nil {
		fail("the operator is not known")
	}
	r.op = o
	for k, a := range op.kernel(&r.Call) {
		if a == nil || !r.wants(k) { // need says so where it is taken
			continue
		}
		v := r.value(k)
		if !slices.Equal(a.shape, v.Shape) { // of operands that have their shapes: it hangs on data
			panic(&OpaqueError{Reason: fmt.Sprintf("makes %v, not %v as recorded", a.shape, v.Shape), Free: Other})
		}
		if !a.complex {
			a = a.cast(v.DType, r.mode.Wide)
		}
		if !op.moves && !slices.ContainsFunc(operands, func(id program.ID) bool { return a.shares(r.env[id]) }) {
			r.mode.round(a, uint64(origin))
		}
		r.env[o.Out[k]] = a
		r.weights[o.Out[k]] = op.moves && !slices.ContainsFunc(operands, func(id program.ID) bool { return !r.weights[id] })
	}
	return nil
}
