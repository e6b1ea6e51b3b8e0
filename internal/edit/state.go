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
	id     string
	rank   int
	text   string
	k, v   []slot                       // nil for those of the sequence
	of     func(line int) int           // whose keys and values each sequence has; nil for its own
	values bool                         // of is of the values alone
	seen   func(line, t, slot int) bool // nil for what the mask allows
	// hides is what a mask that is added takes off what is not seen; 0 for all of it.
	hides float64
}

// cached writes attention with a fault, where its values are taken.
func (s *site) cached(f *Fed, a attention, g fault) {
	more := max(len(g.k), len(g.v), len(f.At)) - len(f.At)
	s.addAt("state", g.rank, g.text, []int{a.v.op}, func(w *writer, _ program.Op) {
		now := map[program.ID]program.ID{}
		for _, i := range a.ops {
			o := s.Ops[i]
			o.Args = renamed(o.Args, now)
			if i == a.k.op && g.k != nil {
				o.Args = with(o.Args, a.k.arg, w.moved(f, s.at(a.k), s.at(a.k), a.kAxis, g.k))
			}
			if i == a.v.op && g.v != nil {
				o.Args = with(o.Args, a.v.arg, w.moved(f, s.at(a.v), s.at(a.v), a.vAxis, g.v))
			}
			if g.of != nil && i == a.k.op && !g.values {
				o.Args = with(o.Args, a.k.arg, w.lines(o.Args.Get(a.k.arg).(program.ID), f.Lines, g.of))
			}
			if g.of != nil && i == a.v.op {
				o.Args = with(o.Args, a.v.arg, w.lines(o.Args.Get(a.v.arg).(program.ID), f.Lines, g.of))
			}
			if i == a.hides() && g.seen != nil {
				o = s.hiding(w, f, a, o, g, more)
			}
			if i == a.v.op {
				w.run(o, o.Name, o.Args)
				return
			}
			o.Args, o.Out = widened(o.Args, a.keys, more), o.Out[:1]
			w.again(o, now, func(_ int, id program.ID) []int { return wider(s.shape(id), a.keys, more) })
		}
	}).ID = g.id
}

// wider is a shape whose last axis counts keys, with more of them.
func wider(shape []int, keys, more int) []int {
	shape = slices.Clone(shape)
	if n := len(shape); n > 0 && shape[n-1] == keys {
		shape[n-1] += more
	}
	return shape
}

// widened are arguments, with that done to sizes.
func widened(args program.Args, keys, more int) program.Args {
	out := slices.Clone(args)
	for i, x := range out {
		if shape, ok := x.Value.([]int); ok && x.Name == "size" {
			out[i].Value = wider(shape, keys, more)
		}
	}
	return out
}

// lines writes a value in which each sequence has what another one had.
func (w *writer) lines(id program.ID, lines int, of func(line int) int) program.ID {
	n := w.value(id).Shape[0]
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
	v := program.Value{Shape: slices.Clone(s.scoresShape(f, a)), DType: tensor.F32}
	v.Shape[len(v.Shape)-1] += more
	if s.isBools(a) {
		v.DType = tensor.Bool
	}
	id := w.numbered(v, func() []float64 { return s.shows(f, a, g, v) })
	switch {
	case a.softmax < 0:
		o.Args = with(with(o.Args, "attn_mask", id), "is_causal", false)
	case a.mask.op >= 0:
		o.Args = with(o.Args, a.mask.arg, id)
	default:
		in, _ := o.Args.Get("self").(program.ID)
		o.Args = with(o.Args, "self", w.call("add", in, nil, "self", in, "other", id, "alpha", 1))
	}
	return o
}

// isBools reports whether the mask of an attention is of bools, or may be.
func (s *site) isBools(a attention) bool {
	if a.softmax < 0 {
		return !s.addsMask(a)
	}
	return a.mask.op >= 0 && !isFloat(s.Values[s.at(a.mask)])
}

// shows are the numbers of a mask of a type and shape that shows what a fault does.
func (s *site) shows(f *Fed, a attention, g fault, v program.Value) []float64 {
	was, rowOf := s.maskOf(f, a), map[int]int{}
	for t, row := range f.At {
		rowOf[row] = t
	}
	shown := 1.0
	if v.DType == tensor.Bool && a.softmax >= 0 && s.inverted(f, a) {
		shown = 0
	}
	denied := -math.MaxFloat32
	if g.hides > 0 {
		denied = -g.hides
	}
	n := len(v.Shape)
	x, cols, rows := make([]float64, size(v.Shape)), v.Shape[n-1], v.Shape[n-2]
	lines := size(v.Shape[:n-2])
	for i := range x {
		line, row, col := i/(cols*rows)*f.Lines/lines, i/cols%rows, i%cols
		t, own := rowOf[row+a.behind()]
		key, is := rowOf[col]
		allowed, value := false, 0.0
		if col < f.Rows {
			if allowed, value = was(line, row, col); !allowed {
				value = 0
			}
		} else {
			key, is = len(f.At)+col-f.Rows, true
		}
		if own && is && (line == f.Line || s.fed == nil) {
			allowed = g.seen(line, t, key)
		}
		switch {
		case v.DType == tensor.Bool && allowed:
			x[i] = shown
		case v.DType == tensor.Bool:
			x[i] = 1 - shown
		case allowed:
			x[i] = value
		default:
			x[i] = denied
		}
	}
	return x
}

// linesOf is how many sequences an attention has, each of which may have a mask of its own.
func (s *site) linesOf(a attention) int {
	if a.softmax < 0 {
		return max(s.shape(s.at(a.k))[0], 1)
	}
	if shape := s.shape(s.Ops[a.softmax].Out[0]); len(shape) == 4 {
		return max(shape[0], 1)
	}
	return 1
}

// addsMask reports whether a fused attention adds its mask.
func (s *site) addsMask(a attention) bool {
	id, ok := s.Ops[a.k.op].Args.Get("attn_mask").(program.ID)
	return ok && id != program.None && isFloat(s.Values[id])
}

// scoresShape is the shape that a mask is written in.
func (s *site) scoresShape(f *Fed, a attention) []int {
	if a.softmax < 0 {
		return []int{f.Lines, 1, a.queries, a.keys}
	}
	shape := slices.Clone(s.shape(s.Ops[a.softmax].Out[0]))
	if n := len(shape); n == 4 && (f.Lines == 1 || shape[0] == f.Lines) {
		shape[0], shape[1] = f.Lines, 1
	}
	return shape
}

// maskOf returns whether a row sees a key, and what is added where it does.
func (s *site) maskOf(f *Fed, a attention) func(line, row, col int) (bool, float64) {
	causal, _ := s.Ops[a.k.op].Args.Get("is_causal").(bool)
	var x []float64
	var shape []int
	isBool, invert := false, false
	if a.mask.op >= 0 {
		if id, ok := s.Ops[a.mask.op].Args.Get(a.mask.arg).(program.ID); ok && id != program.None && s.Value(id) != nil {
			x, shape, isBool = s.Value(id).Floats(), s.Value(id).Shape(), !isFloat(s.Values[id])
			invert = isBool && a.softmax >= 0 && s.inverted(f, a)
		}
	}
	return func(line, row, col int) (bool, float64) {
		if x == nil {
			return !causal || col <= row+a.behind(), 0
		}
		n := len(shape)
		at := col
		if shape[n-2] > 1 {
			at += row * shape[n-1]
		}
		if n > 2 && shape[0] > 1 {
			at += line * size(shape) / f.Lines
		}
		if isBool {
			return (x[at] != 0) != invert, 0
		}
		return !mask.Denies(x[at]), x[at]
	}
}

// inverted reports whether a mask of bools hides where it is true: a token always sees itself.
func (s *site) inverted(f *Fed, a attention) bool {
	id := s.at(a.mask)
	x, shape := s.Value(id).Floats(), s.Value(id).Shape()
	at := f.At[0]
	if n := len(shape); shape[n-2] > 1 {
		at = f.At[0]*shape[n-1] + f.At[0] + a.behind()
	}
	return x[at] != 0
}

// anew leaves out what earlier forward passes gave, in what is not attention: a state that is empty again, or holds what
// another left.
func (s *site) anew() {
	from := s.fed.From
	calculates := func(op int) bool {
		return op >= 0 && !slices.Contains(moves, s.Ops[op].Name) && !slices.Contains(elementwise, s.Ops[op].Name)
	}
	for i, v := range s.Values {
		id := program.ID(i)
		if v.Weight != "" || !isFloat(v) || s.only(id) || s.Value(id) == nil || id == s.Out {
			continue
		}
		takers := s.takers(id)
		made := calculates(Root(s.Piece, s.Maker(id)))
		if len(takers) == 0 || !made && !slices.ContainsFunc(takers, calculates) {
			continue
		}
		for _, axis := range s.fed.rowAxes(v.Shape) {
			other := func(id, text string, slots []slot) {
				of := program.ID(i)
				s.instead("state", 3, text+": "+Name(s.Piece, of), s.takers(of), []program.ID{of}, func(w *writer, x program.ID) program.ID {
					return w.moved(s.fed, x, x, axis, slots)
				}).ID = id
			}
			put := func(id, text string, whose, known int) {
				slots := own(len(s.fed.At))
				for at := range min(from, known) {
					slots[at] = slot{whose, at}
				}
				other(id, text, slots)
			}
			if made && from > 0 && s.fed.To-from > 1 {
				slots := own(len(s.fed.At))
				for at := from; at < s.fed.To; at++ {
					slots[at].at = s.fed.To - 1
				}
				other("state/chunk", "all rows of the forward pass are its last, as in a step of one", slots)
			}
			if from > 0 {
				put("state/chunk", "a forward pass begins with an empty state", -1, from)
				for k, o := range s.fed.Others {
					put(o.ID, "a forward pass goes on from the state of "+o.Text, 1+k, o.Cached)
				}
			}
		}
	}
}

// exchanged are rows of another sequence in the place of the result's own.
func (s *site) exchanged() {
	if !isFloat(s.Values[s.Out]) || s.Value(s.Out) == nil {
		return
	}
	for _, axis := range s.fed.rowAxes(s.shape(s.Out)) {
		for k, o := range s.fed.Others {
			for _, by := range []int{0, s.fed.From - o.Cached} {
				slots := own(len(s.fed.At))
				for at := s.fed.From; at < s.fed.To; at++ {
					if to := at - by; to >= 0 && to < o.Len {
						slots[at] = slot{1 + k, to}
					}
				}
				s.lastOf(o.ID, 1, "the result has the rows of "+o.Text, func(w *writer, id program.ID) program.ID {
					return w.moved(s.fed, s.Out, id, axis, slots)
				})
			}
		}
	}
}

// lastOf does something to the result.
func (s *site) lastOf(id string, cost int, text string, f change) {
	if n := len(s.out); len(s.Ops) == 0 || s.Maker(s.Out) < 0 || len(s.Ops[s.Maker(s.Out)].Out) == 1 {
		if s.last("state", cost, text, f); len(s.out) > n {
			s.out[n].ID = id
		}
	}
}
