// Package replay runs pieces of a recorded program on tensors in memory. Operators have the names of
// torch's schemas. Elements are calculated in float64 and rounded to float32 and then to the recorded
// type, products in float32, as the reference's kernels do; [Mode] says how else.
package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

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
var operators = table(shapes, lookups, elementwise, reductions, norms, created, complexes, products, attentions, writes,
	orders, solved)

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

// key returns the name of torch's own operators in the table: without namespace and overload.
func key(op string) string {
	name, ok := strings.CutPrefix(op, "aten.")
	if !ok {
		return op
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}

// Multiplies reports whether an operator is a product of matrices or a convolution, by its name.
func Multiplies(op string) bool { return products[key(op)] != nil }

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
	return r.run(p.Out, func() error {
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
	})
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

// run returns a value after some steps. Where one fails that the value does not hang on, it is there all the same.
func (r *runner) run(out program.ID, steps func() error) (*Array, error) {
	err := mapfile.Guard(func() error {
		err := steps()
		if err != nil && (r.env[out] == nil || context.Cause(r.ctx) != nil) {
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
	run := op.kernel
	if isApart[key(o.Full)] && slices.ContainsFunc(operands, func(id program.ID) bool { return r.env[id].complex }) {
		run = func(c *Call) []*Array { return c.apart(op.kernel) }
	}
	for k, a := range run(&r.Call) {
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

// Patch is a change of a piece. Operators stand in the place of others, and values are made that the piece
// has not.
type Patch struct {
	Ops  map[int][]program.Op // by index in Piece.Ops; Outside runs before all others
	Made []program.Value      // their ids follow those of Piece.Values
	// Late makes the numbers of some of Made when they are needed.
	Late map[program.ID]func() (*Array, error)
}

// Outside is where a patch changes what comes from outside of a piece.
const Outside = -1

// AsIs is the name of an operator of patches whose result is the value "self" as the piece itself makes it.
const AsIs = "goparity.as_is"

// Base is a piece that was run, with everything that it made, so that a change of it runs only what hangs
// on that.
type Base struct {
	*program.Piece
	own     *runner
	work    []float64  // by operator
	buffers *sync.Pool // of runs that have ended
}

// NewBase runs a piece and keeps what it makes. The errors are those of [Run]; what can be made all the same is there.
func NewBase(ctx context.Context, p *program.Piece, load Load, m Mode) (*Base, error) {
	b := &Base{Piece: p, own: newRunner(ctx, p.Values, load, m), buffers: &sync.Pool{New: func() any { return new([]float64) }}}
	for i := range p.Ops {
		b.work = append(b.work, b.workOf(i))
	}
	_, err := b.own.run(p.Out, func() (first error) {
		for i := range p.Ops {
			if err := b.own.step(&p.Ops[i], p.Operands(i), p.Origin[i]); first == nil {
				first = err
			}
		}
		return first
	})
	return b, err
}

// Value returns a value of the piece, nil for one that nothing takes or that cannot be made.
func (b *Base) Value(id program.ID) *Array { return b.own.env[id] }

// Run returns what the piece makes with a patch. Values that the patch changes keep their shapes: the error is
// an *OpaqueError where they do not, or an operator does not fit. The values of the piece stay as they are, so that
// several may run at a time.
func (b *Base) Run(p Patch) (*Array, error) {
	r := *b.own
	more := len(p.Made)
	buffer := b.buffers.Get().(*[]float64)
	defer func() {
		*buffer = r.buffer
		b.buffers.Put(buffer)
	}()
	r.more, r.asIs, r.buffer = p.Made, b.own.env, *buffer
	r.env, r.weights = slices.Concat(r.env, make([]*Array, more)), slices.Concat(r.weights, make([]bool, more))
	whole := r.env[b.Out] != nil // else what fails may be what the result does not hang on any more
	return r.run(b.Out, func() (first error) {
		for id, of := range p.Late {
			err := Attempt(func() (err error) {
				r.env[id], err = of()
				return err
			})
			if err != nil {
				r.env[b.Out] = nil
				return err
			}
		}
		for _, i := range b.reached(p) {
			origin := 0
			if i >= 0 {
				origin = b.Origin[i]
			}
			ops, patched := b.with(p, i)
			for k := range ops {
				o := &ops[k]
				for _, id := range o.Out { // what cannot be made any more is not what the piece has there
					if id != program.None {
						r.env[id] = nil
					}
				}
				var operands []program.ID
				if patched {
					operands = o.Operands()
				} else {
					operands = b.Operands(i)
				}
				if err := r.step(o, operands, origin); first == nil {
					first = err
				}
				if whole && first != nil {
					r.env[b.Out] = nil
					return first
				}
			}
		}
		return first
	})
}

// with returns the operators that a patch has in the place of one, or itself.
func (b *Base) with(p Patch, i int) (ops []program.Op, patched bool) {
	if ops, ok := p.Ops[i]; ok || i < 0 {
		return ops, true
	}
	return b.Ops[i : i+1], false
}

// Work returns about how many multiply-adds the operators of a patch and what hangs on them take; another
// element of a result counts as elementWork.
func (b *Base) Work(p Patch) (work float64) {
	for _, i := range b.reached(p) {
		if i >= 0 {
			work += b.work[i]
		}
	}
	return work
}

// reached lists the operators that a patch replaces, and those that hang on what it makes, ascending.
func (b *Base) reached(p Patch) (list []int) {
	changed, from := make([]bool, len(b.Values)+len(p.Made)), len(b.Ops)
	for i := range p.Ops {
		from = min(from, i)
	}
	list = make([]int, 0, len(b.Ops)-from)
	for i := from; i < len(b.Ops); i++ {
		if _, ok := p.Ops[i]; !ok && (i < 0 || !slices.ContainsFunc(b.Operands(i), func(id program.ID) bool { return changed[id] })) {
			continue
		}
		list = append(list, i)
		ops, _ := b.with(p, i)
		for k := range ops {
			for _, id := range ops[k].Out {
				if id != program.None {
					changed[id] = true
				}
			}
		}
	}
	return list
}

// Whole is Work of the piece itself.
func (b *Base) Whole() (work float64) {
	for _, w := range b.work {
		work += w
	}
	return work
}

// workOf counts what each element of the results takes: the terms of its sum in a product or a convolution, or
// elementWork, and callWork for each operator, of a convolution for each group.
func (b *Base) workOf(i int) float64 {
	o := &b.Ops[i]
	n := 0
	for _, id := range o.Out {
		if id != program.None {
			n += size(b.Values[id].Shape)
		}
	}
	terms, calls := elementWork, 1.0
	if groups, ok := o.Args.Get("groups").(int); ok && o.Name == "convolution" {
		calls = max(calls, float64(groups))
	}
	if strings.HasPrefix(o.Name, "_fft") {
		terms *= fourierWork
	}
	for _, a := range o.Args {
		id, ok := a.Value.(program.ID)
		if !ok || id == program.None || len(b.Values[id].Shape) == 0 {
			continue
		}
		switch s := b.Values[id].Shape; {
		case a.Name == "weight" && o.Name == "convolution":
			terms += float64(size(s[1:]))
		case strings.Contains(o.Name, "mm"), strings.Contains(o.Name, "attention"):
			terms = max(terms, float64(s[len(s)-1]), float64(s[max(len(s)-2, 0)]))
		}
	}
	return float64(n)*terms + calls*callWork
}
