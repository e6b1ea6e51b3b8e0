package edit

import (
	"fmt"
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
	// Weight names the weight that is changed, or in whose place another is read.
	Weight string
	ID     string // its name for people, where what stands around it does not tell; see [Label]
	Parts  []Edit // the two that are made together; none for one
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

// kinds are all kinds of edits. Each lists those of a group of operators that are changed alike.
var kinds = []func(*site){drop, sibling, swap, masks, axes, parts, numbers, integers, bypass, nearer, spread, refactored, chosen, order, twice,
	results, roundings, clamps, convolutions, tables, resampled, turned}

// wholes are kinds that are about the whole piece.
var wholes = []func(*site){given, resizes, sections, ofLine, exchange, outsiders, calls, records, around, heads, whole, unturned, modules, experts, spaced,
	grids, all, states, forgets}

// site is a group of operators, and what an edit of them may use.
type site struct {
	*replay.Base
	weights []Weight
	groups  [][]int
	group   []int
	tables  []bool                   // by operator: it is made of constants alone, as a table of positions
	looped  []bool                   // by operator: it runs several times in a loop
	sizes   []int                    // of axes in the piece: numbers often come from them
	fed     *Fed                     // nil where forward passes were not laid out as one
	read    map[program.ID][]float64 // elements of values
	out     []Edit
	skipped int // how often a kind could not list its edits
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

// List lists the edits of a piece, those of the lowest cost first. weights are those of the model that
// may be read in place of another. fed says which forward pass is wrong, where several were laid out as one; else it is nil.
// A kind that cannot read what stands there lists nothing of it: skipped is how often that was.
func List(b *replay.Base, weights []Weight, fed *Fed) (edits []Edit, skipped int) {
	s := newSite(b, weights)
	s.fed = fed
	for _, s.group = range s.groups {
		for _, kind := range kinds {
			s.list(kind)
		}
	}
	for _, g := range ofNumber(b.Piece) {
		s.group = g.at
		s.list(numbers)
	}
	for _, kind := range wholes {
		s.list(kind)
	}
	slices.SortStableFunc(s.out, func(a, b Edit) int { return a.Cost - b.Cost })
	return s.out, s.skipped
}

// list adds the edits of a kind. What no kind expects, of a program that nobody recorded before, must not take the other
// kinds with it.
func (s *site) list(kind func(*site)) {
	before := len(s.out)
	err := replay.Attempt(func() error {
		kind(s)
		return nil
	})
	if err != nil {
		s.out = s.out[:before]
		s.skipped++
	}
}

func newSite(b *replay.Base, weights []Weight) *site {
	s := &site{Base: b, weights: weights, groups: groups(b.Piece), read: map[program.ID][]float64{}}
	for _, v := range b.Values {
		s.sizes = append(s.sizes, v.Shape...)
	}
	slices.Sort(s.sizes)
	s.sizes = slices.DeleteFunc(slices.Compact(s.sizes), func(n int) bool { return n < leastSize || n > mostSize })
	s.tables = make([]bool, len(b.Ops))
	for i := range b.Ops {
		s.tables[i] = !slices.ContainsFunc(b.Operands(i), func(id program.ID) bool {
			v, m := b.Values[id], b.Maker(id)
			return v.Weight != "" || v.Record > 0 || v.Input != "" || m >= 0 && !s.tables[m]
		})
	}
	s.looped = make([]bool, len(b.Ops))
	for _, g := range s.groups {
		stack := b.Ops[g[0]].Stack
		for _, i := range g {
			s.looped[i] = s.looped[i] || len(g) >= leastLoop && stack >= 0 && b.Ops[i].Stack == stack && b.Ops[g[len(g)-1]].Stack == stack
		}
	}
	return s
}

// first is the operator that says what can be changed in its group.
func (s *site) first() program.Op { return s.Ops[s.group[0]] }

// result is what an operator makes; ok is false for none or several.
func (s *site) result(o program.Op) (v program.Value, ok bool) {
	if len(o.Out) == 0 || o.Out[0] == program.None {
		return v, false
	}
	return s.Values[o.Out[0]], len(o.Out) == 1
}

func (s *site) shape(id program.ID) []int { return s.Values[id].Shape }

func isFloat(v program.Value) bool { return v.DType != tensor.Invalid && v.DType.IsFloat() }

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

// outside appends an edit of a value that comes from outside.
func (s *site) outside(id program.ID, kind string, cost int, what string, f change) *Edit {
	own := program.Op{Name: replay.AsIs, Full: replay.AsIs, Args: argsOf("self", id), Out: []program.ID{id}, Stack: -1}
	return s.write(Edit{Kind: kind, Cost: cost, Text: what, Weight: s.Values[id].Weight, Takers: s.takers(id)}, []int{replay.Outside},
		func(w *writer, _ program.Op) { w.after(own, f) })
}

// write appends an edit that rewrites some operators; none where one of them cannot be.
func (s *site) write(e Edit, at []int, rewrite func(w *writer, o program.Op)) *Edit {
	e.Patch.Ops = map[int][]program.Op{}
	w := &writer{s: s, e: &e}
	for _, i := range at {
		var o program.Op
		if i >= 0 {
			o = s.Ops[i]
		}
		w.ops = nil
		rewrite(w, o)
		if w.failed {
			return &Edit{}
		}
		e.Patch.Ops[i] = w.ops
	}
	s.out = append(s.out, e)
	return &s.out[len(s.out)-1]
}

// then appends an edit that does something to the result of each operator of the group.
func (s *site) then(kind string, cost int, text string, f change) *Edit {
	return s.add(kind, cost, text, func(w *writer, o program.Op) { w.after(o, f) })
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

// ofTables are the kinds by which people get tables wrong. Others that fit there do so by chance: a table that is zero
// turns nothing, whatever made it so.
var ofTables = []string{"scalar", "integer", "table", "mask", "rounding"}

// tensors lists the operands of an operator that are tensors by themselves.
func tensors(o program.Op) (names []string, ids []program.ID) {
	for _, a := range o.Args {
		if id, ok := a.Value.(program.ID); ok && id != program.None {
			names, ids = append(names, a.Name), append(ids, id)
		}
	}
	return names, ids
}

// operand is an operand of an operator; None where it is no tensor.
func operand(o program.Op, name string) program.ID {
	if id, ok := o.Args.Get(name).(program.ID); ok {
		return id
	}
	return program.None
}

func self(o program.Op) program.ID { return operand(o, "self") }

// axis is the argument "dim" of an operator that works on an array of some axes, counted from the first.
func axis(o program.Op, rank int) int { return (intOf(o, "dim") + rank) % max(rank, 1) }

func intOf(o program.Op, name string) int {
	i, _ := o.Args.Get(name).(int)
	return i
}

// maker is the operator that makes a value; one without a name for what comes from outside.
func maker(p *program.Piece, id program.ID) program.Op {
	if id != program.None && p.Maker(id) >= 0 {
		return p.Ops[p.Maker(id)]
	}
	return program.Op{Stack: -1}
}

func (s *site) made(id program.ID) program.Op { return maker(s.Piece, id) }

// grouped puts things with one key together, in the order in which the keys come first. Those without a key are left out.
func grouped[K comparable, T any](of []T, key func(x T) (k K, ok bool)) (groups [][]T) {
	index := map[K]int{}
	for _, x := range of {
		k, ok := key(x)
		if !ok {
			continue
		}
		i, seen := index[k]
		if !seen {
			i = len(groups)
			index[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}

// andEach returns all of several together, and each by itself.
func andEach[T any](all []T) [][]T {
	sets := [][]T{all}
	for i := range all {
		if len(all) > 1 {
			sets = append(sets, all[i:i+1:i+1])
		}
	}
	return sets
}

// mapped returns what a function makes of each of some things.
func mapped[T, U any](of []T, f func(x T) U) []U {
	out := make([]U, len(of))
	for i, x := range of {
		out[i] = f(x)
	}
	return out
}

// upTo lists the first whole numbers.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func text(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Name says what a value is: its weight, the port it was recorded as, or the expression that makes it.
func Name(p *program.Piece, id program.ID) string {
	v := p.Values[id]
	if v.Weight != "" {
		return v.Weight
	}
	if v.Record > 0 {
		return "what was recorded"
	}
	if i := p.Maker(id); i >= 0 {
		return "the " + p.Ops[i].Name + " before"
	}
	return "a constant"
}
