package edit

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

// graph is a piece whose operators are found by what they take and make.
type graph struct{ *program.Piece }

// values are all values of the piece.
func (g graph) values() iter.Seq2[program.ID, program.Value] {
	return func(yield func(program.ID, program.Value) bool) {
		for i, v := range g.Values {
			if !yield(program.ID(i), v) {
				return
			}
		}
	}
}

func (g graph) shape(id program.ID) []int { return g.Values[id].Shape }

// resultOf is what an operator makes, the first of several; single is false for none or several.
func (g graph) resultOf(o program.Op) (v program.Value, single bool) {
	if len(o.Out) == 0 || o.Out[0] == program.None {
		return v, false
	}
	return g.Values[o.Out[0]], len(o.Out) == 1
}

// made is the operator that makes a value; one without a name for what comes from outside.
func (g graph) made(id program.ID) program.Op {
	if id != program.None && g.Maker(id) >= 0 {
		return g.Ops[g.Maker(id)]
	}
	return program.Op{Stack: -1}
}

// madeOf lists what a value is made of, within some operators, the nearest first, each once.
func (g graph) madeOf(id program.ID, within int) (out []program.ID) {
	for level := []program.ID{id}; within > 0 && len(level) > 0; within-- {
		from := len(out)
		for _, x := range level {
			if x == program.None || g.Maker(x) < 0 {
				continue
			}
			for _, y := range g.Operands(g.Maker(x)) {
				if !slices.Contains(out, y) {
					out = append(out, y)
				}
			}
		}
		level = out[from:]
	}
	return out
}

// origin is what a value is made of by operators of some names.
func (g graph) origin(id program.ID, names string) program.ID {
	for o := g.made(id); isOne(o, names); o = g.made(id) {
		id = o.Operands()[0]
	}
	return id
}

// takes reports whether an operator takes one of some values, and takers lists those that do.
func (g graph) takes(op int, ids ...program.ID) bool {
	return slices.ContainsFunc(g.Operands(op), func(id program.ID) bool { return slices.Contains(ids, id) })
}

func (g graph) takers(ids ...program.ID) (list []int) {
	for i := range g.Ops {
		if g.takes(i, ids...) {
			list = append(list, i)
		}
	}
	return list
}

// depends reports whether an operator is made of another one's result.
func (g graph) depends(of, on int) (hangs bool) {
	made := slices.Clone(g.Ops[on].Out)
	for i := on + 1; i <= of; i++ {
		if hangs = g.takes(i, made...); hangs {
			made = append(made, g.Ops[i].Out...)
		}
	}
	return hangs
}

// name says what a value is: its weight, the port it was recorded as, or the expression that makes it; port, of one that
// comes from outside, where it was recorded.
func (g graph) name(id program.ID) string {
	switch v := g.Values[id]; {
	case v.Weight != "":
		return v.Weight
	case v.Record > 0:
		return "what was recorded"
	case g.Maker(id) >= 0:
		return "the " + g.made(id).Name + " before"
	}
	return "a constant"
}

func (g graph) port(id program.ID) string {
	if r := g.Values[id].Record; r > 0 && g.Of != nil {
		return g.Of.Ports[r-1].Layer + "-" + g.Of.Ports[r-1].Name
	}
	return g.name(id)
}

// layerOf is the layer that recorded a value; "" for none.
func (g graph) layerOf(v program.Value) string {
	if v.Record > 0 && g.Of != nil {
		return g.Of.Ports[v.Record-1].Layer
	}
	return ""
}

// Root is the operator that calculated what one makes: that before it, where it only moves numbers; −1 for what comes from
// outside.
func Root(p *program.Piece, op int) int {
	for op >= 0 && isOne(p.Ops[op], moving) {
		ids := p.Operands(op)
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id program.ID) bool { return id != ids[0] && size(p.Values[id].Shape) > 0 }) {
			return op
		}
		op = p.Maker(ids[0])
	}
	return op
}

// groups are the operators that an edit changes alike: those of one call site (in a loop), those of one
// line (of a helper that is called for q and for k), those with one number, and each by itself.
func groups(p *program.Piece) (out [][]int) {
	type key struct {
		name, layer string
		stack, nth  int
		number      float64
	}
	all := upTo(len(p.Ops))
	for _, of := range []func(i int) (key, bool){
		func(i int) (key, bool) {
			return key{like(p.Ops[i]), p.Ops[i].Layer, p.Ops[i].Stack, ordinal(p, i), 0}, true
		},
		func(i int) (key, bool) {
			f := Frame(p, i)
			return key{like(p.Ops[i]), "", f, ordinal(p, i), 0}, f >= 0
		},
		func(i int) (key, bool) {
			n, repeats := iteration(p, i)
			return key{like(p.Ops[i]), p.Ops[i].Layer, p.Ops[i].Stack, n, 0}, repeats
		},
	} {
		out = append(out, grouped(all, of)...)
	}
	for _, g := range byNumber(p, func(o program.Op, _ string, c float64) (key, bool) { return key{like(o), "", 0, 0, math.Abs(c)}, true }) {
		out = append(out, g.at)
	}
	if len(p.Ops) <= mostSingle {
		out = append(out, slices.Collect(slices.Chunk(all, 1))...)
	}
	same := grouped(out, func(g []int) (string, bool) { return fmt.Sprint(g), true })
	return mapped(same, func(g [][]int) []int { return g[0] })
}

// like is the name of an operator with those of its operands: x·2 and x·y are not changed alike.
func like(o program.Op) string {
	return o.Name + " " + strings.Join(mapped(tensors(o), func(x operand) string { return x.name }), " ")
}

// shared is a number that operators are given.
type shared struct {
	number float64
	at     []int
}

// byNumber puts operators together that are given numbers of one key. Arguments without a key are left out.
func byNumber[K comparable](p *program.Piece, key func(o program.Op, arg string, c float64) (K, bool)) (out []shared) {
	type use struct {
		arg    string
		number float64
		at     int
	}
	var all []use
	for i, o := range p.Ops {
		for _, a := range o.Args {
			if c, ok := a.Value.(float64); ok && c != 0 && math.Abs(c) != 1 {
				all = append(all, use{a.Name, c, i})
			}
		}
	}
	for _, g := range grouped(all, func(u use) (K, bool) { return key(p.Ops[u.at], u.arg, u.number) }) {
		at := mapped(g, func(u use) int { return u.at })
		out = append(out, shared{g[0].number, slices.Compact(at)})
	}
	return out
}

// ofNumber are numbers that operators of several names are given, as a limit that is divided by and multiplied with.
func ofNumber(p *program.Piece) []shared {
	all := byNumber(p, func(_ program.Op, arg string, c float64) (float64, bool) { return c, !slices.Contains(fixed, arg) })
	return slices.DeleteFunc(all, func(g shared) bool {
		return !slices.ContainsFunc(g.at, func(i int) bool { return p.Ops[i].Name != p.Ops[g.at[0]].Name })
	})
}

// Frame returns the index of the expression that made an operator of a piece, −1 if it is not known.
func Frame(p *program.Piece, op int) int {
	s := p.Ops[op].Stack
	if s < 0 || s >= len(p.Stacks) || len(p.Stacks[s]) == 0 {
		return -1
	}
	return p.Stacks[s][0]
}

// follows reports whether an operator is one of the same expression as another, so many operators away.
func follows(p *program.Piece, i, away int) bool {
	k := i + away
	return k >= 0 && k < len(p.Ops) && p.Origin[k]-p.Origin[i] == away && p.Ops[k].Stack == p.Ops[i].Stack && p.Ops[k].Layer == p.Ops[i].Layer
}

// ordinal counts the operators of one expression in a row.
func ordinal(p *program.Piece, i int) (n int) {
	for n < ordinalUpTo && follows(p, i, -n-1) {
		n++
	}
	return n
}

// iteration returns which operator of one run of an expression it is, where that runs several times in a row, as in a
// comprehension.
func iteration(p *program.Piece, i int) (n int, repeats bool) {
	if p.Ops[i].Stack < 0 {
		return 0, false
	}
	from, to := i, i+1
	for follows(p, i, from-1-i) {
		from--
	}
	for follows(p, i, to-i) {
		to++
	}
	for period := 2; 2*period <= to-from && period <= ordinalUpTo; period++ {
		same := func(o, before program.Op) bool { return o.Name == before.Name }
		if (to-from)%period == 0 && slices.EqualFunc(p.Ops[from+period:to], p.Ops[from:to-period], same) {
			return (i - from) % period, true
		}
	}
	return 0, false
}

// operand is an argument of an operator that is a tensor by itself.
type operand struct {
	name string
	id   program.ID
}

// tensors lists the operands of an operator that are tensors by themselves.
func tensors(o program.Op) (list []operand) {
	for _, a := range o.Args {
		if id := tensorOf(o, a.Name); id != program.None {
			list = append(list, operand{a.Name, id})
		}
	}
	return list
}

// tensorOf is an operand of an operator; None where it is no tensor.
func tensorOf(o program.Op, name string) program.ID {
	if id, ok := o.Args.Get(name).(program.ID); ok {
		return id
	}
	return program.None
}

func self(o program.Op) program.ID { return tensorOf(o, "self") }

// axis is the argument "dim" of an operator that works on an array of some axes, counted from the first.
func axis(o program.Op, rank int) int { return (intOf(o, "dim") + rank) % max(rank, 1) }

func intOf(o program.Op, name string) int {
	i, _ := o.Args.Get(name).(int)
	return i
}

func isFloat(v program.Value) bool   { return v.DType.IsFloat() }
func isComplex(v program.Value) bool { return strings.HasPrefix(v.Type, "complex") }

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
	if len(all) > 1 {
		sets = append(sets, slices.Collect(slices.Chunk(all, 1))...)
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
