package program

import (
	"fmt"

	"github.com/goparity/goparity/tensor"
)

// Check refuses a graph that cannot be run: values that are used before they are made, made twice or
// by none, ports, guards, frames and passes out of range, and sizes beyond the limits. It sorts the ports,
// and makes what Maker, Records and Piece look up; [Read] has called it.
func (p *Program) Check() error {
	if len(p.Values) > maxValues || len(p.Ops) > maxOps || len(p.Ports) > maxPorts {
		return fmt.Errorf("%d values, %d operators and %d ports: more than %d, %d and %d are not read",
			len(p.Values), len(p.Ops), len(p.Ports), maxValues, maxOps, maxPorts)
	}
	maker := make([]int, len(p.Values)) // −1 for what comes from outside
	for i := range p.Values {
		if maker[i] = nowhere; p.Values[i].IsOutside() {
			maker[i] = -1
		}
		if err := p.Values[i].check(); err != nil {
			return fmt.Errorf("values[%d]: %w", i, err)
		}
	}
	for i := range p.Ops {
		if err := p.checkOp(i, maker); err != nil {
			return fmt.Errorf("ops[%d] (%s): %w", i, p.Ops[i].Full, err)
		}
	}
	for i, at := range maker {
		if at == nowhere {
			return fmt.Errorf("values[%d] is made by no operator, and comes from nowhere", i)
		}
	}
	if err := p.checkRanges(maker); err != nil {
		return err
	}
	p.index()
	return nil
}

// nowhere is the maker of a value that nothing has made yet.
const nowhere = -2

// sources counts what a value says of where from outside it comes.
func (v *Value) sources() (n int) {
	for _, is := range []bool{v.Weight != "", v.Input != "", v.Constant != "", v.Data != nil, v.Record > 0} {
		if is {
			n++
		}
	}
	return n
}

func (v *Value) check() error {
	n, err := tensor.NumElems(v.Shape)
	switch {
	case err != nil:
		return err
	case int64(n) > maxElements:
		return fmt.Errorf("shape %s has more than %d elements", tensor.FormatShape(v.Shape), maxElements)
	case v.Data != nil && v.DType != tensor.Invalid && len(v.Data) != n*v.DType.Size():
		return fmt.Errorf("from.data has %d bytes, want %d of %s%s", len(v.Data), n*v.DType.Size(), v.DType, tensor.FormatShape(v.Shape))
	case v.sources() > 1:
		return fmt.Errorf("from has %d sources, want one", v.sources())
	}
	return nil
}

// checkOp takes the results of an operator as made.
func (p *Program) checkOp(i int, maker []int) error {
	o, n := &p.Ops[i], ID(len(maker))
	if o.Stack < -1 || o.Stack >= len(p.Stacks) {
		return fmt.Errorf("stack %d of %d", o.Stack, len(p.Stacks))
	}
	for _, id := range o.Operands() {
		if id < 0 || id >= n {
			return fmt.Errorf("takes %%%d of %d values", id, n)
		}
		if maker[id] == nowhere {
			return fmt.Errorf("takes %%%d, which is not made before", id)
		}
	}
	for _, id := range o.Out {
		switch {
		case id == None:
		case id < 0 || id >= n:
			return fmt.Errorf("makes %%%d of %d values", id, n)
		case maker[id] != nowhere:
			return fmt.Errorf("makes %%%d, which is made before", id)
		default:
			maker[id] = i
		}
	}
	return nil
}

// checkRanges compares what names operators, values and frames with them: a value is recorded, or guards,
// when it is there.
func (p *Program) checkRanges(maker []int) error {
	span := func(first, end int) error {
		if first < 0 || end < first || end > len(p.Ops) {
			return fmt.Errorf("operators [%d, %d] of %d", first, end, len(p.Ops))
		}
		return nil
	}
	value := func(id ID, first, end int) error {
		switch {
		case id < 0 || int(id) >= len(maker):
			return fmt.Errorf("%%%d of %d values", id, len(maker))
		case maker[id] >= first:
			return fmt.Errorf("at operator %d, before operator %d makes %%%d", first, maker[id], id)
		}
		return span(first, end)
	}
	for i, s := range p.Passes {
		if err := span(s.First, s.End); err != nil {
			return fmt.Errorf("passes[%d]: %w", i, err)
		}
	}
	for _, t := range p.Ports {
		if err := value(t.Value, t.At, t.Until); err != nil {
			return fmt.Errorf("port %s-%s of step %s: %w", t.Layer, t.Name, t.Step, err)
		}
	}
	for i, g := range p.Guards {
		if err := value(g.Value, g.First, g.End); err != nil {
			return fmt.Errorf("guards[%d]: %w", i, err)
		}
	}
	for i, s := range p.Stacks {
		for _, f := range s {
			if f < 0 || f >= len(p.Frames) {
				return fmt.Errorf("stacks[%d]: frame %d of %d", i, f, len(p.Frames))
			}
		}
	}
	return nil
}
