package program

import (
	"fmt"
	"slices"
)

// Change is operators that stand in the place of those of a piece, by index in Piece.Ops, and values that the
// piece has not: their ids follow those of its own.
type Change struct {
	*Piece
	Ops  map[int][]Op
	Made []Value
}

// Edited returns the program with changes of its pieces. The error is that two change one operator.
func (p *Program) Edited(changes []Change) (*Program, error) {
	q := *p
	q.Values = slices.Clone(p.Values)
	in := map[int][]Op{}
	for _, c := range changes {
		ids := slices.Clone(c.Whole)
		for i := range c.Made {
			ids = append(ids, ID(len(q.Values)+i))
		}
		q.Values = append(q.Values, c.Made...)
		for k, ops := range c.Ops {
			i := c.Origin[k]
			if in[i] != nil {
				return nil, fmt.Errorf("two edits change operator %d of %s, %s", p.Ordinals()[i], p.Ops[i].Layer, p.Ops[i].Full)
			}
			in[i] = []Op{}
			for _, o := range ops {
				o.Args = o.Args.Map(func(id ID) ID { return ids[id] })
				o.Out = slices.Clone(o.Out)
				for n, id := range o.Out {
					if id != None {
						o.Out[n] = ids[id]
					}
				}
				o.Layer, o.Call, o.Stack = p.Ops[i].Layer, p.Ops[i].Call, p.Ops[i].Stack
				in[i] = append(in[i], o)
			}
		}
	}
	q.replace(in)
	return &q, nil
}

// replace puts operators in the place of others, by index, and moves what counts operators.
func (p *Program) replace(in map[int][]Op) {
	old, at := p.Ops, make([]int, len(p.Ops)+1)
	p.Ops = nil
	for i, o := range old {
		if ops, ok := in[i]; ok {
			p.Ops = append(p.Ops, ops...)
		} else {
			p.Ops = append(p.Ops, o)
		}
		at[i+1] = len(p.Ops)
	}
	p.Ports, p.Passes, p.Guards = slices.Clone(p.Ports), slices.Clone(p.Passes), slices.Clone(p.Guards)
	for i := range p.Ports {
		p.Ports[i].At, p.Ports[i].Until = at[p.Ports[i].At], at[p.Ports[i].Until]
	}
	for i := range p.Passes {
		p.Passes[i].First, p.Passes[i].End = at[p.Passes[i].First], at[p.Passes[i].End]
	}
	for i := range p.Guards {
		p.Guards[i].First, p.Guards[i].End = at[p.Guards[i].First], at[p.Guards[i].End]
	}
	p.index()
}

// Ordinals are the numbers of all operators among those of one call of their layer, from 1: what people name them by.
func (p *Program) Ordinals() []int {
	type call struct {
		layer string
		n     int
	}
	list, last := make([]int, len(p.Ops)), map[call]int{}
	for i := range p.Ops {
		of := call{p.Ops[i].Layer, p.Ops[i].Call}
		last[of]++
		list[i] = last[of]
	}
	return list
}
