// Package program is what a reference ran between its recorded tensors: a graph of functional tensor
// operators, by the names of torch's schemas, over all forward passes of a case. No weight's bytes are
// in it. [Read] reads the file that the recorder of the torch runner writes, and [Program.Piece] cuts
// the operators between a recorded tensor and those before it. Package replay runs them.
package program

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// ID is the index of a value in its program.
type ID int

// None stands for an optional operand that is not there, in a list of operands, and for a result that
// is no new tensor.
const None ID = -1

// Value is one tensor of the program. It is what an operator made, or it comes from outside: then
// exactly one of Weight, Input, Constant and Record says where from.
type Value struct {
	Shape []int
	DType tensor.DType // Invalid for a type without arithmetic: complex numbers, custom ones
	Type  string       // as the file names it, for messages

	Weight   string // name in the checkpoint
	Buffer   string // name of the same in program.safetensors, of a small one that is no parameter: a checkpoint may lack it
	Input    string // step and name of an argument of the model: "0:input_ids"
	Constant string // name in program.safetensors
	Data     []byte // a constant of at most 64 bytes, little-endian
	Record   int    // in a piece: 1 + the index in Ports of the record that it is taken from; 0 for none
}

// IsOutside reports whether a value comes from outside, and no operator makes it.
func (v *Value) IsOutside() bool { return v.sources() > 0 }

// Op is one call of an operator.
type Op struct {
	Name  string `json:"-"`  // "mul", "add": of the operator without its namespace and overload
	Full  string `json:"op"` // "aten.mul.Tensor"
	Args  Args
	Out   []ID // None where nothing new was made
	Layer string
	Call  int // of the layer, from 1
	Stack int // index in Stacks; −1 for none
	// Random says that it drew random numbers: each run has its own.
	Random bool
}

// Guard says that operators [First, End) are what the model runs where a value has these numbers,
// which Python was given: a count, the sizes of parts, a condition.
type Guard struct {
	Value      ID
	Equal      []float64 // in row-major order, bools as 0 and 1; nil for what cannot be told: it never holds
	First, End int
}

// Args are the arguments of an operator by the names of its schema, in its order, defaults included.
type Args []Arg

// Arg is one argument: an ID, []ID, int, []int, float64, []float64, bool, []bool, string or nil.
type Arg struct {
	Name  string
	Value any
}

// Get returns an argument; nil if there is none, or it is None.
func (a Args) Get(name string) any {
	for _, x := range a {
		if x.Name == name {
			return x.Value
		}
	}
	return nil
}

// Map returns a copy with other operands.
func (a Args) Map(f func(ID) ID) Args {
	out := slices.Clone(a)
	for i, x := range out {
		switch v := x.Value.(type) {
		case ID:
			out[i].Value = f(v)
		case []ID:
			ids := slices.Clone(v)
			for j, id := range ids {
				if id != None {
					ids[j] = f(id)
				}
			}
			out[i].Value = ids
		}
	}
	return out
}

// Operands lists the values that an operator takes, in the order of its arguments.
func (o *Op) Operands() []ID {
	ids := make([]ID, 0, len(o.Args))
	for _, x := range o.Args {
		switch v := x.Value.(type) {
		case ID:
			ids = append(ids, v)
		case []ID:
			for _, id := range v {
				if id != None {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// Port is a value at the moment at which it was recorded under a label.
type Port struct {
	Step, Layer, Name string // Name is that of package label: output, input_0
	Value             ID
	At                int // operators that had run
	Until             int // of an input: those that had run when its call ended; else At
	Input             bool
}

// Pass is one call of the model: its operators, and where its ports are in Program.Ports.
type Pass struct {
	Step       string
	First, End int // operators [First, End)
}

// Frame is an expression in the model's own source.
type Frame struct {
	File string
	Line int
	Text string
}

// Program is the graph of tensor operators that the reference ran for one case, over all its passes.
// Each value is made once, before it is used.
type Program struct {
	File         string `json:"-"` // that it was read from, for messages
	Engine, Case string
	Values       []Value
	Ops          []Op
	Ports        []Port `json:"-"` // in the order in which their values existed, see [Program.Order]
	Passes       []Pass
	Guards       []Guard
	Frames       []Frame
	Stacks       [][]int           // frames, innermost first
	Aliases      map[string]string // other names of a tied weight → the name that Values have
	Modules      map[string]Module // by layer

	maker    []int   // by value: the operator that made it, −1 for none
	drawn    []bool  // by value: it hangs on random numbers
	operands [][]ID  // by operator
	records  [][]int // by value: its ports, in their order

	constants func() (*tensor.File, error) // opened once
	close     func() error
}

// Module is the class of a layer, and where it is defined.
type Module struct {
	Class, File string
	Line        int
}

// Maker returns the operator that made a value; −1 for one that comes from outside.
func (p *Program) Maker(id ID) int { return p.maker[id] }

// Drawn reports whether a value hangs on random numbers.
func (p *Program) Drawn(id ID) bool { return p.drawn[id] }

// Operands lists the values that an operator takes, in the order of its arguments.
func (p *Program) Operands(op int) []ID { return p.operands[op] }

// Records lists the ports of a value, in their order.
func (p *Program) Records(id ID) []int { return p.records[id] }

// With returns a program of other values and operators, with the same source.
func (p *Program) With(values []Value, ops []Op) *Program {
	q := &Program{File: p.File, Engine: p.Engine, Case: p.Case, Frames: p.Frames, Stacks: p.Stacks, Values: values, Ops: ops}
	q.index()
	return q
}

// index makes what is looked up, when Values, Ops and Ports are complete.
func (p *Program) index() {
	n := len(p.Values)
	p.maker, p.drawn, p.records, p.operands = slices.Repeat([]int{-1}, n), make([]bool, n), make([][]int, n), make([][]ID, len(p.Ops))
	for i := range p.Ops {
		o := &p.Ops[i]
		p.operands[i] = o.Operands()
		for _, id := range o.Out {
			if id != None {
				p.maker[id], p.drawn[id] = i, o.Random || slices.ContainsFunc(p.operands[i], p.Drawn)
			}
		}
	}
	slices.SortStableFunc(p.Ports, func(a, b Port) int { return a.compare(&b) })
	for i := range p.Ports {
		p.records[p.Ports[i].Value] = append(p.records[p.Ports[i].Value], i)
	}
}

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
	list, last := make([]int, len(p.Ops)), map[[2]any]int{}
	for i, o := range p.Ops {
		call := [2]any{o.Layer, o.Call}
		last[call]++
		list[i] = last[call]
	}
	return list
}
