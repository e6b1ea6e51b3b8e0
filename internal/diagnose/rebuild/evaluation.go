package rebuild

import (
	"slices"

	"github.com/goparity/goparity/internal/op"
)

// Op is how the reference makes a value of earlier ones.
type Op interface {
	Inputs() []*Value // nil for one that is not known
	// Eval calculates rows of the value, one behind the other; nil if it cannot.
	Eval(e *Evaluation, rows []int) []float64
}

// Eval calculates rows of a value, one behind the other; nil if it cannot.
type Eval func(e *Evaluation, rows []int) []float64

// Evaluation is one pass over the graph: of the golden tensors, or of the candidate's with one op
// done wrong.
type Evaluation struct {
	g         *Graph
	candidate bool
	at        *Value // where the fault is
	fault     Eval
	dirty     map[*Value]bool
	memo      map[memoKey][]float64
}

type memoKey struct {
	v    *Value
	rows uint64
}

func (g *Graph) goldenly() *Evaluation { return &Evaluation{g: g} }

// With is an evaluation of the candidate in which v is made by another calculation. It may be nil
// if only what v is made of is read.
func (g *Graph) With(v *Value, fault Eval) *Evaluation {
	return &Evaluation{g: g, candidate: true, at: v, fault: fault,
		dirty: map[*Value]bool{}, memo: map[memoKey][]float64{}}
}

// Get returns rows of a value, one behind the other; nil if they are not known. No one writes to
// the result.
func (e *Evaluation) Get(v *Value, rows []int) []float64 {
	switch {
	case !e.candidate:
		return v.Golden(rows)
	case v.actual != nil && v != e.g.Target:
		return op.Read(v.actual, v.Width, rows)
	case !e.isDirty(v):
		return v.Golden(rows)
	case len(rows) == 0:
		return nil
	}
	key := memoKey{v, hashOf(rows)}
	out, ok := e.memo[key]
	if !ok {
		e.memo[key] = nil // a fault may take what is made of v itself: that is not known
		eval := e.fault
		if v != e.at {
			eval = v.Op.Eval
		}
		out = eval(e, rows)
		e.memo[key] = out
	}
	return out
}

// isDirty reports whether the candidate's value, which it did not record, must differ from the
// golden one.
func (e *Evaluation) isDirty(v *Value) bool {
	if v == nil || v == e.at {
		return v != nil
	}
	if v.actual != nil && v != e.g.Target {
		return !v.agrees
	}
	if d, ok := e.dirty[v]; ok || v.Op == nil {
		return d
	}
	e.dirty[v] = false
	d := slices.ContainsFunc(v.Op.Inputs(), e.isDirty)
	e.dirty[v] = d
	return d
}

// all returns every row.
func (e *Evaluation) all(v *Value) []float64 {
	if v.golden.Len() > op.DecodeMax {
		return nil
	}
	return e.Get(v, op.Sequence(v.Rows))
}

// Beside returns, for each of the rows of out, the row of v that belongs to it.
func (e *Evaluation) Beside(v, out *Value, rows []int) []float64 {
	if v.Rows == out.Rows {
		return e.Get(v, rows)
	}
	own := make([]int, len(rows))
	for i, r := range rows {
		if own[i] = v.rowAt(r, out); own[i] < 0 {
			return nil
		}
	}
	return e.Get(v, own)
}

// ids returns a value of integers as numbers.
func (e *Evaluation) ids(v *Value) []float64 {
	if e.candidate && v.actual != nil {
		return op.ReadAll(v.actual)
	}
	return op.ReadAll(v.golden)
}

// hashOf is FNV-1a of the numbers.
func hashOf(rows []int) uint64 {
	h := uint64(14695981039346656037)
	for _, r := range rows {
		h = (h ^ uint64(r)) * 1099511628211
	}
	return h
}

// finders look for the ops that may make a value, in the order in which they are tried.
var finders = []func(*Graph, *Value) []Op{
	findLeaf, findExperts, findShares, // these of layers without layers inside, too
	findAlias, findSum, findProduct, findGated, findModulation, findAddedTable, findPatches, findUnary, findTurned, findRow, findScan, findRWKV,
	findAttention, findSplit, findPart, findChannelSum, findUpsampled, findTimes,
	findAddedRow,
}

const leafFinders = 3

// Explain finds out how the reference made a value.
func (g *Graph) Explain(v *Value) Op {
	if v.tried {
		return v.Op
	}
	v.tried = true
	best, find, rows := v.Noise(), finders, op.Spread(v.Rows, ProbeRows)
	golden := v.Golden(rows)
	if p := v.ports[0]; !p.IsInput() && g.IsLeaf(p.Layer) {
		find = find[:leafFinders]
	}
	for _, f := range find {
		for _, o := range f(g, v) {
			if miss := op.Relative(o.Eval(g.goldenly(), rows), golden); miss <= best {
				best, v.Op = miss/better, o
			}
		}
		if v.Op != nil || g.work <= 0 {
			return v.Op
		}
	}
	if layer := v.Layer(); g.IsLeaf(layer) {
		v.Op = &Given{From{Made{v}, g.InputOf(layer), layer}}
	}
	return v.Op
}

// cone explains the target and what the candidate did not record on the way to it.
func (g *Graph) cone() []*Value {
	var out []*Value
	seen := map[*Value]bool{}
	var visit func(v *Value)
	visit = func(v *Value) {
		if seen[v] || len(out) == coneSize || g.work <= 0 {
			return
		}
		seen[v] = true
		if g.Explain(v) == nil {
			return
		}
		out = append(out, v)
		for _, in := range v.Op.Inputs() {
			if in != nil && in.actual == nil {
				visit(in)
			}
		}
	}
	visit(g.Target)
	return out
}

// Right returns rows of the target as the reference's op makes them of the candidate's inputs; nil
// if the op is not known or takes too long.
func (g *Graph) Right(rows []int) []float64 {
	switch o := g.Explain(g.Target).(type) {
	case nil, *Given:
		return nil
	case *Linear:
		if o.Work(len(rows)) > rightWork {
			return nil
		}
	}
	return g.With(g.Target, g.Target.Op.Eval).Get(g.Target, rows)
}
