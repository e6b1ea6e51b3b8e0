package replay

import (
	"context"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

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
	own *runner
}

// NewBase runs a piece and keeps what it makes. The errors are those of [Run].
func NewBase(ctx context.Context, p *program.Piece, load Load, m Mode) (*Base, error) {
	b := &Base{Piece: p, own: newRunner(ctx, p.Values, load, m)}
	_, err := b.own.run(func() error {
		for i := range p.Ops {
			if err := b.own.step(&p.Ops[i], p.Operands(i), p.Origin[i]); err != nil {
				return err
			}
		}
		return nil
	}, p.Out)
	return b, err
}

// Value returns a value of the piece, nil for one that nothing takes.
func (b *Base) Value(id program.ID) *Array { return b.own.env[id] }

// Run returns what the piece makes with a patch. Values that the patch changes keep their shapes: the error is
// an *OpaqueError where they do not, or an operator does not fit. The values of the piece stay as they are, so that
// several may run at a time.
func (b *Base) Run(p Patch) (*Array, error) {
	r := *b.own
	more := len(p.Made)
	r.more, r.asIs, r.buffer = p.Made, b.own.env, nil
	r.env, r.weights = slices.Concat(r.env, make([]*Array, more)), slices.Concat(r.weights, make([]bool, more))
	for id, of := range p.Late {
		a, err := of()
		if err != nil {
			return nil, err
		}
		r.env[id] = a
	}
	return r.run(func() error {
		for _, i := range b.reached(p) {
			ops := b.with(p, i)
			for k := range ops {
				for _, id := range ops[k].Out { // what cannot be made any more is not what the piece has there
					if id != program.None {
						r.env[id] = nil
					}
				}
				if err := r.step(&ops[k], ops[k].Operands(), b.origin(i)); err != nil {
					return err
				}
			}
		}
		return nil
	}, b.Out)
}

// origin is the index of an operator in the whole program.
func (b *Base) origin(i int) int {
	if i < 0 {
		return 0
	}
	return b.Origin[i]
}

// with returns the operators that stand in the place of one, or itself.
func (b *Base) with(p Patch, i int) []program.Op {
	if ops, ok := p.Ops[i]; ok || i < 0 {
		return ops
	}
	return b.Ops[i : i+1]
}

// Work returns about how many multiply-adds the operators of a patch and what hangs on them take; another
// element of a result counts as elementWork.
func (b *Base) Work(p Patch) (work float64) {
	for _, i := range b.reached(p) {
		if i >= 0 {
			work += b.workOf(i)
		}
	}
	return work
}

// reached lists the operators that a patch replaces, and those that hang on what it makes, ascending.
func (b *Base) reached(p Patch) (list []int) {
	changed := make([]bool, len(b.Values)+len(p.Made))
	for i := Outside; i < len(b.Ops); i++ {
		if _, ok := p.Ops[i]; !ok && (i < 0 || !slices.ContainsFunc(b.Operands(i), func(id program.ID) bool { return changed[id] })) {
			continue
		}
		list = append(list, i)
		for _, o := range b.with(p, i) {
			for _, id := range o.Out {
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
	for i := range b.Ops {
		work += b.workOf(i)
	}
	return work
}

// workOf counts what each element of the results takes: the terms of its sum in a product or a convolution, or
// elementWork, and callWork for each operator.
func (b *Base) workOf(i int) float64 {
	o := &b.Ops[i]
	n := 0
	for _, id := range o.Out {
		if id != program.None {
			n += size(b.Values[id].Shape)
		}
	}
	terms := elementWork
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
	return float64(n)*terms + callWork
}
