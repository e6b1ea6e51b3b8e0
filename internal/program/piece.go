package program

import (
	"cmp"
	"slices"
)

// compare orders ports by when their values existed: outputs before inputs at the same moment, and of
// inputs that of the outer call first.
func (p *Port) compare(q *Port) int {
	if c := cmp.Compare(p.At, q.At); c != 0 {
		return c
	}
	switch {
	case p.Input && q.Input:
		return cmp.Compare(q.Until, p.Until)
	case p.Input:
		return 1
	case q.Input:
		return -1
	}
	return 0
}

// Piece is the part of a program between a port and the records before it: a program of its own, with
// values of its own, of which those with a Record are recorded tensors.
type Piece struct {
	*Program
	Target  int      // the port, in the whole program
	Out     ID       // what it makes, a value of the piece
	Origin  []int    // of Ops: the index in the whole program
	Whole   []ID     // of Values: the id in the whole program
	Of      *Program // that it was cut from
	Sources []int    // ports of the whole program that it is made of, each once, in order
	Guards  []Guarded
}

// Guarded is what has to have the same numbers as in the reference's run for a piece to be what the
// reference runs. Equal is that of [Guard].
type Guarded struct {
	*Piece
	Equal []float64
}

// Piece cuts the part of the program that makes a port out of the records before it which are told to
// be there, or of what comes from outside. The record of a value that counts is the input of a call
// that runs, then its earliest output, then its earliest input.
func (p *Program) Piece(target int, recorded func(port int) bool) *Piece {
	return newCutter(p, target, recorded).whole(p.Ports[target].Value, p.Ports[target].At)
}

// Beside cuts the piece of a port out of what the same call returned beside it, too: values that were
// recorded only after they had been used, as a router's scores are beside its choice.
func (p *Program) Beside(target int, recorded func(port int) bool) *Piece {
	c := newCutter(p, target, recorded)
	c.beside = true
	return c.whole(p.Ports[target].Value, p.Ports[target].At)
}

// Making cuts the part of the program that makes a value for an operator, out of the records before a port.
func (p *Program) Making(id ID, at, target int, recorded func(port int) bool) *Piece {
	return newCutter(p, target, recorded).whole(id, at)
}

// whole is cut with the guards.
func (c *cutter) whole(id ID, at int) *Piece {
	piece := c.cut(use{id, at})
	piece.Guards = c.p.guards(piece.Origin, c.recorded)
	return piece
}

// guards cuts the pieces of the guards of some operators, and of those that the guards are made by.
func (p *Program) guards(ops []int, recorded func(port int) bool) (list []Guarded) {
	done := make([]bool, len(p.Guards))
	for len(ops) > 0 {
		var more []int
		for i, g := range p.Guards {
			if done[i] || !slices.ContainsFunc(ops, func(o int) bool { return o >= g.First && o < g.End }) {
				continue
			}
			done[i] = true
			later, _ := slices.BinarySearchFunc(p.Ports, g.First+1, func(t Port, at int) int { return cmp.Compare(t.At, at) })
			made := newCutter(p, later, recorded).cut(use{g.Value, g.First})
			list, more = append(list, Guarded{made, g.Equal}), append(more, made.Origin...)
		}
		ops = more
	}
	return list
}

// use is a value at the operator that takes it.
type use struct {
	id ID
	at int
}

type cutter struct {
	p        *Program
	target   int // the first port that is no source
	recorded func(port int) bool
	beside   bool
	piece    *Piece
	made     map[ID]ID  // values of the whole program → of the piece
	taken    map[int]ID // records → values of the piece
}

func newCutter(p *Program, target int, recorded func(port int) bool) *cutter {
	return &cutter{p: p, target: target, recorded: recorded, made: map[ID]ID{}, taken: map[int]ID{},
		piece: &Piece{Program: p.With(nil, nil), Target: target, Of: p}}
}

// cut makes the piece of a value.
func (c *cutter) cut(u use) *Piece {
	for _, i := range c.needed(u) {
		c.add(i)
	}
	c.piece.Out = c.take(u)
	slices.Sort(c.piece.Sources)
	c.piece.index()
	return c.piece
}

// needed lists the operators from a value back to what was recorded, ascending.
func (c *cutter) needed(u use) (ops []int) {
	seen := map[int]bool{}
	todo := []use{u}
	for len(todo) > 0 {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i := c.p.maker[u.id]
		if i < 0 || seen[i] || c.record(u) >= 0 {
			continue
		}
		seen[i] = true
		ops = append(ops, i)
		for _, id := range c.p.Operands(i) {
			todo = append(todo, use{id, i})
		}
	}
	slices.Sort(ops)
	return ops
}

// record returns the port to take for a value; −1 for none.
func (c *cutter) record(u use) int {
	best, rank := -1, 0
	for _, i := range c.p.records[u.id] {
		q := &c.p.Ports[i]
		late := q.At > u.at
		if i >= c.target || late && !(c.beside && !q.Input && q.At == c.p.Ports[c.target].At) {
			break
		}
		r := 1
		switch {
		case q.Input && u.at < q.Until:
			r = 3
		case !q.Input:
			r = 2
		}
		// Of several calls that run, the innermost; else the earliest.
		if (r > rank || r == 3 && rank == 3) && c.recorded(i) {
			best, rank = i, r
		}
	}
	return best
}

// add copies an operator into the piece.
func (c *cutter) add(i int) {
	o := c.p.Ops[i]
	o.Args = o.Args.Map(func(id ID) ID { return c.take(use{id, i}) })
	o.Out = slices.Clone(o.Out)
	for k, id := range o.Out {
		if id != None {
			o.Out[k] = c.value(id, c.p.Values[id])
			c.made[id] = o.Out[k]
		}
	}
	c.piece.Ops, c.piece.Origin = append(c.piece.Ops, o), append(c.piece.Origin, i)
}

// take returns what stands for a value of the whole program where it is used.
func (c *cutter) take(u use) ID {
	if r := c.record(u); r >= 0 {
		id, ok := c.taken[r]
		if !ok {
			v := c.p.Values[u.id]
			v.Weight, v.Input, v.Constant, v.Data, v.Record = "", "", "", nil, r+1
			id = c.value(u.id, v)
			c.taken[r] = id
			c.piece.Sources = append(c.piece.Sources, r)
		}
		return id
	}
	id, ok := c.made[u.id]
	if !ok { // from outside
		id = c.value(u.id, c.p.Values[u.id])
		c.made[u.id] = id
	}
	return id
}

func (c *cutter) value(whole ID, v Value) ID {
	c.piece.Values, c.piece.Whole = append(c.piece.Values, v), append(c.piece.Whole, whole)
	return ID(len(c.piece.Values) - 1)
}
