package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// states are what a forward pass gets wrong of those before it: keys and values that lie elsewhere, or are of others,
// that are seen or not, other positions, and a state that it does not go on from.
func states(s *site) {
	for _, a := range s.attentions() {
		if s.fed == nil || a.keys == s.fed.Rows && a.queries == a.keys {
			s.caches(a)
		}
	}
	s.angles()
	if s.fed != nil {
		s.positions()
		s.anew()
		s.exchanged()
	}
}

// fault is what attention looks at, in place of what it should.
type fault struct {
	id       string
	rank     int
	text     string
	k, v     []slot                       // nil for those of the sequence
	kOf, vOf func(line int) int           // whose keys and values each sequence has; nil for its own
	seen     func(line, t, slot int) bool // nil for what the mask allows
	// hides is what a mask that is added takes off what is not seen; 0 for all of it.
	hides float64
}

// cached writes attention with a fault, where its values are taken.
func (s *site) cached(f *Fed, a attention, g fault) {
	more := max(len(g.k), len(g.v), len(f.At)) - len(f.At)
	wider := func(shape []int) []int { // where its last axis counts keys
		shape = slices.Clone(shape)
		if n := len(shape); n > 0 && shape[n-1] == a.keys {
			shape[n-1] += more
		}
		return shape
	}
	s.addAt("state", g.rank, g.text, []int{a.v.op}, func(w *writer, _ program.Op) {
		now := map[program.ID]program.ID{}
		for _, i := range a.ops {
			o := s.Ops[i]
			o.Args = renamed(o.Args, now)
			put := func(in input, axis int, slots []slot, of func(line int) int) {
				id := operand(o, in.arg)
				if slots != nil {
					id = w.moved(f, s.at(in), s.at(in), axis, slots)
				}
				if of != nil {
					id = w.lines(id, f.Lines, of)
				}
				o.Args = with(o.Args, in.arg, id)
			}
			if i == a.k.op {
				put(a.k, a.kAxis, g.k, g.kOf)
			}
			if i == a.v.op {
				put(a.v, a.vAxis, g.v, g.vOf)
			}
			if i == a.hides() && g.seen != nil {
				o = s.hiding(w, f, a, o, g, more)
			}
			if i == a.v.op {
				w.run(o, o.Name, o.Args)
				return
			}
			if shape, ok := o.Args.Get("size").([]int); ok {
				o.Args = with(o.Args, "size", wider(shape))
			}
			o.Out = o.Out[:1]
			w.again(o, now, func(_ int, id program.ID) []int { return wider(s.shape(id)) })
		}
	}).ID = g.id
}

// lines writes a value in which each sequence has what another one had.
func (w *writer) lines(id program.ID, lines int, of func(line int) int) program.ID {
	n := w.shape(id)[0]
	each := max(n/lines, 1)
	order := make([]int, n)
	for i := range order {
		order[i] = of(i/each)*each + i%each
	}
	return w.selected(id, 0, order)
}

// behind is how many keys lie in front of those of the first query.
func (a attention) behind() int { return max(a.keys-a.queries, 0) }

// hides is the operator that is given the mask.
func (a attention) hides() int {
	if a.mask.op < 0 {
		return a.softmax
	}
	return a.mask.op
}

// hiding is an operator of an attention that is given another mask, with columns for more keys.
func (s *site) hiding(w *writer, f *Fed, a attention, o program.Op, g fault, more int) program.Op {
	v := program.Value{Shape: s.scoresShape(f, a), DType: tensor.F32}
	v.Shape[len(v.Shape)-1] += more
	if s.isBools(a) {
		v.DType = tensor.Bool
	}
	id := w.numbers(v.DType, v.Shape, func() []float64 { return s.shows(f, a, g, v) })
	switch {
	case a.softmax < 0:
		o.Args = with(o.Args, "attn_mask", id, "is_causal", false)
	case a.mask.op >= 0:
		o.Args = with(o.Args, a.mask.arg, id)
	default:
		o.Args = with(o.Args, "self", w.two("add", self(o), id))
	}
	return o
}

// isBools reports whether the mask of an attention is of bools, or may be.
func (s *site) isBools(a attention) bool {
	if id := s.at(a.mask); id != program.None {
		return !isFloat(s.Values[id])
	}
	return a.softmax < 0
}

// scoresShape is the shape that a mask is written in.
func (s *site) scoresShape(f *Fed, a attention) []int {
	if a.softmax < 0 {
		return []int{f.Lines, 1, a.queries, a.keys}
	}
	shape := slices.Clone(s.shape(s.Ops[a.softmax].Out[0]))
	if len(shape) == 4 && (f.Lines == 1 || shape[0] == f.Lines) {
		shape[0], shape[1] = f.Lines, 1
	}
	return shape
}

// linesOf is how many sequences an attention has, each of which may have a mask of its own.
func (s *site) linesOf(a attention) int {
	shape := s.shape(s.at(a.k))
	if a.softmax >= 0 {
		if shape = s.shape(s.Ops[a.softmax].Out[0]); len(shape) != 4 {
			return 1
		}
	}
	return max(shape[0], 1)
}

// shows are the numbers of a mask of a type and shape that shows what a fault does.
func (s *site) shows(f *Fed, a attention, g fault, v program.Value) []float64 {
	was, rowOf := s.maskOf(f, a), map[int]int{}
	for t, row := range f.At {
		rowOf[row] = t
	}
	denied := -math.MaxFloat32
	if g.hides > 0 {
		denied = -g.hides
	}
	inverted := v.DType == tensor.Bool && s.inverted(f, a)
	n := len(v.Shape)
	x, cols, rows := make([]float64, size(v.Shape)), v.Shape[n-1], v.Shape[n-2]
	lines := size(v.Shape[:n-2])
	for i := range x {
		line, row, col := i/(cols*rows)*f.Lines/lines, i/cols%rows, i%cols
		t, own := rowOf[row+a.behind()]
		key, is := rowOf[col]
		allowed, value := false, 0.0
		if col < f.Rows {
			allowed, value = was(line, row, col)
		} else {
			key, is = len(f.At)+col-f.Rows, true
		}
		if !allowed {
			value = 0
		}
		if own && is && (line == f.Line || s.fed == nil) {
			allowed = g.seen(line, t, key)
		}
		switch {
		case v.DType == tensor.Bool && allowed != inverted:
			x[i] = 1
		case v.DType == tensor.Bool:
		case allowed:
			x[i] = value
		default:
			x[i] = denied
		}
	}
	return x
}

// maskOf returns whether a row sees a key, and what is added where it does.
func (s *site) maskOf(f *Fed, a attention) func(line, row, col int) (bool, float64) {
	id := s.at(a.mask)
	if id == program.None || s.Value(id) == nil {
		causal, _ := s.Ops[a.k.op].Args.Get("is_causal").(bool)
		return func(_, row, col int) (bool, float64) { return !causal || col <= row+a.behind(), 0 }
	}
	x, shape, bools, inverted := s.Value(id).Floats(), s.shape(id), !isFloat(s.Values[id]), s.inverted(f, a)
	n := len(shape)
	return func(line, row, col int) (bool, float64) {
		at := col
		if shape[n-2] > 1 {
			at += row * shape[n-1]
		}
		if n > 2 && shape[0] > 1 {
			at += line * size(shape) / f.Lines
		}
		if bools {
			return (x[at] != 0) != inverted, 0
		}
		return !mask.Denies(x[at]), x[at]
	}
}

// inverted reports whether a mask of bools hides where it is true: a token always sees itself.
func (s *site) inverted(f *Fed, a attention) bool {
	id := s.at(a.mask)
	if a.softmax < 0 || id == program.None || isFloat(s.Values[id]) {
		return false
	}
	shape, at := s.shape(id), f.At[0]
	if n := len(shape); shape[n-2] > 1 {
		at = f.At[0]*shape[n-1] + f.At[0] + a.behind()
	}
	return s.Value(id).Floats()[at] != 0
}

// anew leaves out what earlier forward passes gave, in what is not attention: a state that is empty again, or holds what
// another left.
func (s *site) anew() {
	f := s.fed
	calculates := func(op int) bool { return op >= 0 && !isOne(s.Ops[op], moving+" "+elementwise) }
	for i, v := range s.Values {
		id := program.ID(i)
		if f.From == 0 || v.Weight != "" || !isFloat(v) || s.only(id) || s.Value(id) == nil || id == s.Out {
			continue
		}
		takers, made := s.takers(id), calculates(Root(s.Piece, s.Maker(id)))
		if !made && !slices.ContainsFunc(takers, calculates) {
			continue
		}
		for _, axis := range f.rowAxes(v.Shape) {
			put := func(name, text string, of func(at int) slot) {
				s.instead("state", 3, text+": "+Name(s.Piece, id), takers, []program.ID{id}, func(w *writer, x program.ID) program.ID {
					return w.moved(f, x, x, axis, f.slots(of))
				}).ID = name
			}
			earlier := func(whose, known int) func(at int) slot {
				return func(at int) slot {
					if at < min(f.From, known) {
						return slot{whose, at}
					}
					return slot{at: at}
				}
			}
			if made && f.To-f.From > 1 {
				put("state/chunk", "all rows of the forward pass are its last, as in a step of one", func(at int) slot {
					if at >= f.From && at < f.To {
						return slot{at: f.To - 1}
					}
					return slot{at: at}
				})
			}
			put("state/chunk", "a forward pass begins with an empty state", earlier(empty.of, f.From))
			for k, o := range f.Others {
				put(o.ID, "a forward pass goes on from the state of "+o.Text, earlier(1+k, o.Cached))
			}
		}
	}
}

// exchanged are rows of another sequence in the place of the result's own.
func (s *site) exchanged() {
	f := s.fed
	if !isFloat(s.Values[s.Out]) || s.Value(s.Out) == nil {
		return
	}
	for _, axis := range f.rowAxes(s.shape(s.Out)) {
		for k, o := range f.Others {
			for _, by := range []int{0, f.From - o.Cached} {
				slots := f.slots(func(at int) slot {
					if to := at - by; at >= f.From && at < f.To && to >= 0 && to < o.Len {
						return slot{1 + k, to}
					}
					return slot{at: at}
				})
				s.last("state", 1, "the result has the rows of "+o.Text, func(w *writer, id program.ID) program.ID {
					return w.moved(f, s.Out, id, axis, slots)
				}).ID = o.ID
			}
		}
	}
}

// forgets empties the state that a loop carries before one of its runs, where a scan that works in chunks begins anew.
func forgets(s *site) {
	type step struct {
		stack int
		name  string
	}
	of := func(i int) step { return step{s.Ops[i].Stack, s.Ops[i].Name} }
	first, run := map[step]int{}, map[step]int{}
	for i := range slices.Backward(s.Ops) {
		first[of(i)] = i
	}
	for i, o := range s.Ops {
		if v, ok := s.result(o); !s.looped[i] || !ok || !isFloat(v) {
			continue
		}
		next := slices.DeleteFunc(s.takers(o.Out[0]), func(t int) bool { return !s.looped[t] || first[of(t)] >= first[of(i)] })
		if len(next) == 0 {
			continue // nothing that the next run takes
		}
		if run[of(i)]++; run[of(i)] > mostPositions {
			return
		}
		s.instead("state", 0, text("the state is empty again behind run %d of the loop", run[of(i)]), next, o.Out, times(0)).ID = "ssm/state"
	}
}
