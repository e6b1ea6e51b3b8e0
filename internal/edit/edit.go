// Package edit lists the small changes of a piece of the reference's program that may be what a candidate
// does: an operator left out, another one of its family, another number, axis, operand, order of elements.
// Each kind of change is one small rule, and none knows a model.
//
// An edit is a program, too: a few operators in the place of one. So replay needs to know nothing of edits.
package edit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// Edit is one change of a piece.
type Edit struct {
	Kind   string
	Text   string       // what is changed: "silu → gelu"
	Cost   int          // those of a lower cost are tried first, and say the same with less
	At     []int        // operators that are changed, by index in the piece; none where what comes from outside is
	Frame  int          // 1 + the expression that is changed, where it is a call; 0 for one of an operator
	From   string       // the layer whose record, or code, it takes from elsewhere; "" for none
	Code   string       // the line of that code; "" for a record
	To     tensor.DType // to which a rounding rounds
	Was    string       // the layer in the place of whose record it takes that
	Takers []int        // operators that take what comes from outside and is changed
	Fitted bool         // its numbers were found from what the candidate has
	Number float64      // that stands in the place of another; 0 for other kinds
	Weight string       // that is changed, or in whose place another is read
	ID     string       // its name for people, where what stands around it does not tell; see [Label]
	Parts  []Edit       // the two that are made together; none for one
	Patch  replay.Patch
}

// Places are the operators whose lines of code the edit is about.
func (e *Edit) Places() []int {
	if len(e.At) > 0 {
		return e.At
	}
	return e.Takers
}

// Key is the same for the same edit of the same code, in whatever layer.
func Key(p *program.Piece, e Edit) string {
	key := e.Kind + " " + strings.ReplaceAll(e.Text, e.Weight, role(e.Weight))
	for _, i := range e.Places() {
		key += fmt.Sprint(" ", Frame(p, i), p.Ops[i].Name)
	}
	return key
}

// Both is two edits of a piece together; nil where they change one operator.
func Both(p *program.Piece, a, b *Edit) *Edit {
	moved := func(id program.ID) program.ID { // values that b makes follow those that a makes
		if int(id) >= len(p.Values) {
			id += program.ID(len(a.Patch.Made))
		}
		return id
	}
	patch := replay.Patch{Ops: maps.Clone(a.Patch.Ops), Made: slices.Concat(a.Patch.Made, b.Patch.Made),
		Late: map[program.ID]func() (*replay.Array, error){}}
	for i, ops := range b.Patch.Ops {
		if _, ok := patch.Ops[i]; ok && i != replay.Outside {
			return nil
		}
		for _, o := range ops {
			o.Args, o.Out = o.Args.Map(moved), mapped(o.Out, moved)
			patch.Ops[i] = append(slices.Clip(patch.Ops[i]), o)
		}
	}
	maps.Copy(patch.Late, a.Patch.Late)
	for id, f := range b.Patch.Late {
		patch.Late[moved(id)] = f
	}
	return &Edit{Kind: a.Kind, Text: a.Text + " and " + b.Text, Cost: a.Cost + b.Cost, At: slices.Concat(a.At, b.At),
		Parts: []Edit{*a, *b}, Patch: patch}
}

// Weight is what a piece does not take, and an edit may let it take: a weight of the model; what the candidate has for a
// port, then Record is that of [program.Value]; or what it would have for a value that it did not record, which Made makes.
type Weight struct {
	Name   string
	Shape  []int
	DType  tensor.DType
	Record int
	Made   func() (*replay.Array, error)
	Layer  string                // whose code Made runs
	Code   string                // its line
	For    int                   // the record that it may stand for; 0 for any
	Open   func() *tensor.Tensor // a weight as it lies in the checkpoint; nil where that is not at hand
}

// ofModel reports whether it is a weight of the model.
func (w *Weight) ofModel() bool { return w.Record == 0 && w.Made == nil }

// kinds are all kinds of edits. Each lists those of a group of operators that are changed alike.
var kinds = []func(*site){drop, sibling, swap, masks, axes, parts, numbers, integers, bypass, nearer, spread, refactored,
	chosen, order, twice, results, roundings, clamps, convolutions, tables, resampled, turned, pads}

// wholes are kinds that are about the whole piece.
var wholes = []func(*site){given, resizes, sections, ofLine, exchange, outsiders, calls, records, around, heads, columns,
	unturned, modules, experts, spaced, grids, all, states, forgets}

// List lists the edits of a piece, those of the lowest cost first. weights are those of the model that
// may be read in place of another. fed says which forward pass is wrong, where several were laid out as one; else it is nil.
// A kind that cannot read what stands there lists nothing of it: skipped is how often that was. With only, those that may
// have one of these keys are listed and few others.
func List(b *replay.Base, weights []Weight, fed *Fed, only ...string) (edits []Edit, skipped int) {
	s := newSite(b, weights)
	s.fed = fed
	for _, key := range only {
		kind, _, _ := strings.Cut(key, " ")
		s.only = append(s.only, kind)
	}
	for _, group := range s.groups {
		s.on(group)
		for _, kind := range kinds {
			s.list(kind)
		}
	}
	for _, g := range ofNumber(b.Piece) {
		s.on(g.at)
		s.list(numbers)
	}
	for _, kind := range wholes {
		s.list(kind)
	}
	return byCost(s.edits), s.skipped
}

// byCost puts edits in order, which are too large to be moved more than once.
func byCost(edits []Edit) []Edit {
	order := upTo(len(edits))
	slices.SortStableFunc(order, func(a, b int) int { return edits[a].Cost - edits[b].Cost })
	return mapped(order, func(i int) Edit { return edits[i] })
}

// list adds the edits of a kind. What no kind expects, of a program that nobody recorded before, must not take the other
// kinds with it.
func (s *site) list(kind func(*site)) {
	before := len(s.edits)
	err := replay.Attempt(func() error {
		kind(s)
		return nil
	})
	if err != nil {
		s.edits = s.edits[:before]
		s.skipped++
	}
}

// site is a group of operators, and what an edit of them may use.
type site struct {
	graph
	base    *replay.Base
	weights []Weight
	groups  [][]int
	tables  []bool                   // by operator: it is made of constants alone, as a table of positions
	looped  []bool                   // by operator: it runs several times in a loop
	sizes   []int                    // of axes in the piece: numbers often come from them
	fed     *Fed                     // nil where forward passes were not laid out as one
	read    map[program.ID][]float64 // elements of values
	only    []string                 // kinds that are listed; none for all
	edits   []Edit
	skipped int // how often a kind could not list its edits

	families []Family

	group    []int
	op       program.Op    // the first of the group, which says what can be changed
	result   program.Value // its first one
	single   bool          // whether that is the only one
	operands []operand     // of op, those that are tensors by themselves
}

func newSite(b *replay.Base, weights []Weight) *site {
	s := &site{graph: graph{b.Piece}, base: b, weights: weights, groups: groups(b.Piece), read: map[program.ID][]float64{}}
	for _, v := range b.Values {
		s.sizes = append(s.sizes, v.Shape...)
	}
	slices.Sort(s.sizes)
	s.sizes = slices.DeleteFunc(slices.Compact(s.sizes), func(n int) bool { return n < leastSize || n > mostSize })
	s.tables, s.looped = make([]bool, len(b.Ops)), make([]bool, len(b.Ops))
	for i := range b.Ops {
		s.tables[i] = !slices.ContainsFunc(b.Operands(i), func(id program.ID) bool {
			v, m := b.Values[id], b.Maker(id)
			return v.Weight != "" || v.Record > 0 || v.Input != "" || m >= 0 && !s.tables[m]
		})
	}
	for _, g := range s.groups {
		stack := b.Ops[g[0]].Stack
		for _, i := range g {
			loops := len(g) >= leastLoop && stack >= 0 && b.Ops[g[len(g)-1]].Stack == stack
			s.looped[i] = s.looped[i] || loops && b.Ops[i].Stack == stack
		}
	}
	return s
}

// on makes a group the one that is changed.
func (s *site) on(group []int) {
	s.group, s.op = group, s.Ops[group[0]]
	s.result, s.single = s.resultOf(s.op)
	s.operands = tensors(s.op)
}

// add appends an edit that rewrites each operator of the group.
func (s *site) add(kind string, cost int, text string, rewrite func(w *writer, o program.Op)) *Edit {
	return s.addAt(kind, cost, text, s.group, rewrite)
}

func (s *site) addAt(kind string, cost int, text string, at []int, rewrite func(w *writer, o program.Op)) *Edit {
	if len(at) == 0 {
		return &Edit{}
	}
	if s.tables[at[0]] && !slices.Contains(ofTables, kind) {
		cost += tableCost
	}
	if len(at) == 1 && s.looped[at[0]] {
		cost += loopCost
	}
	return s.write(Edit{Kind: kind, Cost: cost, Text: text, At: at}, at, rewrite)
}

// ofTables are the kinds by which people get tables wrong. Others that fit there do so by chance: a table that is zero
// turns nothing, whatever made it so.
var ofTables = []string{"scalar", "integer", "table", "mask", "rounding"}

// outside appends an edit of a value that comes from outside.
func (s *site) outside(id program.ID, kind string, cost int, what string, f change) *Edit {
	own := program.Op{Name: replay.AsIs, Full: replay.AsIs, Args: argsOf("self", id), Out: []program.ID{id}, Stack: -1}
	e := Edit{Kind: kind, Cost: cost, Text: what, Weight: s.Values[id].Weight, Takers: s.takers(id)}
	return s.write(e, []int{replay.Outside}, func(w *writer, _ program.Op) { w.after(own, f) })
}

// write appends an edit that rewrites some operators; none where one of them cannot be.
func (s *site) write(e Edit, at []int, rewrite func(w *writer, o program.Op)) (added *Edit) {
	defer func() {
		if r := recover(); r == (unwritable{}) {
			added = &Edit{}
		} else if r != nil {
			panic(r)
		}
	}()
	if len(s.only) > 0 && !slices.Contains(s.only, e.Kind) {
		return &Edit{}
	}
	e.Patch.Ops = map[int][]program.Op{}
	w := &writer{s: s, e: &e}
	for _, i := range at {
		var o program.Op
		if i >= 0 {
			o = s.Ops[i]
		}
		w.ops = nil
		rewrite(w, o)
		e.Patch.Ops[i] = w.ops
	}
	s.edits = append(s.edits, e)
	return &s.edits[len(s.edits)-1]
}

// then appends an edit that does something to the result of each operator of the group.
func (s *site) then(kind string, cost int, text string, f change) {
	s.add(kind, cost, text, func(w *writer, o program.Op) { w.after(o, f) })
}

// last appends an edit that does something to what the piece makes.
func (s *site) last(kind string, cost int, what string, f change) *Edit {
	m := s.Maker(s.Out)
	if m < 0 {
		return s.outside(s.Out, kind, cost, what, f)
	}
	return s.addAt(kind, cost, what, []int{m}, func(w *writer, o program.Op) { w.afterOne(o, s.Out, f) })
}

// given appends an edit that gives each operator of the group another argument.
func (s *site) given(kind string, cost int, text, arg string, value any) {
	s.add(kind, cost, text, func(w *writer, o program.Op) { w.give(o, arg, value) })
}

// instead appends an edit after which operators take others in the place of some values.
func (s *site) instead(kind string, cost int, text string, at []int, of []program.ID, f change) *Edit {
	return s.addAt(kind, cost, text, at, func(w *writer, o program.Op) {
		w.run(o, o.Name, o.Args.Map(func(id program.ID) program.ID {
			if slices.Contains(of, id) {
				return f(w, id)
			}
			return id
		}))
	})
}

// insteadOf is [site.instead] of all operators that take one of the values.
func (s *site) insteadOf(kind string, cost int, text string, of []program.ID, f change) *Edit {
	return s.instead(kind, cost, text, s.takers(of...), of, f)
}

// floats are the elements of a value of the piece, read once.
func (s *site) floats(id program.ID) []float64 {
	x, ok := s.read[id]
	if !ok {
		x = s.base.Value(id).Floats()
		s.read[id] = x
	}
	return x
}

// constant reports whether a value is made of constants alone.
func (s *site) constant(id program.ID) bool { i := s.Maker(id); return i >= 0 && s.tables[i] }

// taken lists the weights that operators take.
func (s *site) taken() (ids []program.ID) {
	for id, v := range s.values() {
		if v.Weight != "" && s.Maker(id) < 0 && len(s.takers(id)) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// alike lists values of a shape that exist before an operator, the latest first.
func (s *site) alike(v program.Value, before int, not program.ID, most int) (ids []program.ID) {
	for i, x := range slices.Backward(s.Values) {
		id := program.ID(i)
		if id != not && s.Maker(id) < before && slices.Equal(x.Shape, v.Shape) && isFloat(x) == isFloat(v) {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b program.ID) int { return s.Maker(b) - s.Maker(a) })
	return ids[:min(len(ids), most)]
}
