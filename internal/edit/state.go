package edit

import (
	"iter"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Fed says which rows of a piece one forward pass fed, where the passes of a run were laid out as one. The rows of that
// pass alone are compared.
type Fed struct {
	Lines, Rows int   // of the layout
	Line        int   // that of the sequence
	At          []int // the row of each position of the sequence
	From, To    int   // the positions that the forward pass fed
	Padding     int   // rows of padding that it fed beside them
	Others      []Other
}

// Other is what else a cache may hold, or a batch have: the piece as it runs on rows that are not the sequence's, by
// position in the place of those.
type Other struct {
	ID     string // state/sequence, state/stale or mask/padding
	Text   string // "sequence 1"
	Base   *replay.Base
	Len    int  // rows that it has
	Cached int  // how many of them lay in a cache when the forward pass began
	Left   bool // of padding: it stands in front of the tokens
}

// slot is where a row comes from: the sequence itself, which is 0, or 1 + another one's index, and its position there.
type slot struct{ of, at int }

var empty = slot{of: -1} // zeros

// slots are those of the positions of the sequence, of which some are others: those of which a condition holds.
func (f *Fed) slots(is func(at int) bool, to func(at int) slot) []slot {
	return mapped(upTo(len(f.At)), func(at int) slot {
		if is(at) {
			return to(at)
		}
		return slot{at: at}
	})
}

func (f *Fed) feeds(at int) bool { return at >= f.From && at < f.To }

// onePass is a forward pass that feeds all rows.
func onePass(rows int) *Fed { return &Fed{Lines: 1, Rows: rows, To: rows, At: upTo(rows)} }

// rowAxes lists the axes of a value that may count the rows of each line.
func (f *Fed) rowAxes(shape []int) (axes []int) {
	for d, n := range shape {
		if n == f.Rows && (f.Lines == 1 || d > 0 && shape[0]%f.Lines == 0) {
			axes = append(axes, d)
		}
	}
	return axes
}

// each ranges over the elements of the rows of some positions: position and index.
func (f *Fed) each(shape []int, axis, from, to int) iter.Seq2[int, int] {
	outer, inner := size(shape[:axis]), size(shape[axis+1:])
	each := outer / f.Lines
	return func(yield func(position, at int) bool) {
		for p := from; p < min(to, len(f.At)); p++ {
			for o := f.Line * each; o < (f.Line+1)*each; o++ {
				for i := range inner {
					if !yield(p, (o*shape[axis]+f.At[p])*inner+i) {
						return
					}
				}
			}
		}
	}
}

// moved writes a value, or what stands in its place as id, whose rows of the sequence are those of slots; more slots than
// positions come after all rows. What becomes of other lines is of no matter: they are not compared.
func (w *writer) moved(f *Fed, of, id program.ID, axis int, slots []slot) program.ID {
	order := mapped(upTo(f.Rows+max(len(slots)-len(f.At), 0)), func(i int) int { return min(i, f.Rows-1) })
	parts, begins, end := []program.ID{id}, map[int]int{0: 0}, f.Rows
	for position, x := range slots {
		row := f.Rows + position - len(f.At)
		if position < len(f.At) {
			row = f.At[position]
		}
		at, ok := begins[x.of]
		if !ok {
			part := w.owner(f, of, id, axis, x.of)
			parts, at = append(parts, part), end
			begins[x.of], end = at, end+w.shape(part)[axis]
		}
		switch {
		case x.of == empty.of:
			order[row] = at
		case x.at < len(f.At):
			order[row] = at + f.At[x.at]
		}
	}
	if len(parts) > 1 {
		id = w.cat(axis, parts...)
	}
	return w.selected(id, axis, order)
}

// owner adds the value as another one has it to the patch, a row of zeros for none; a value that it has not makes the edit
// none.
func (w *writer) owner(f *Fed, id, like program.ID, axis, of int) program.ID {
	if of == empty.of {
		row := w.shape(like)
		row[axis] = 1
		return w.like("full", like, row, "size", row, "fill_value", 0)
	}
	a := f.Others[of-1].Base.Value(id)
	w.needs(a != nil)
	return w.late(program.Value{Shape: a.Shape(), DType: a.DType()}, func() (*replay.Array, error) { return a, nil })
}

// lines writes a value in which each sequence has what another one had.
func (w *writer) lines(id program.ID, lines int, of func(line int) int) program.ID {
	n := w.shape(id)[0]
	each := max(n/lines, 1)
	return w.selected(id, 0, mapped(upTo(n), func(i int) int { return of(i/each)*each + i%each }))
}

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

// anew leaves out what earlier forward passes gave, in what is not attention: a state that is empty again, or holds what
// another left.
func (s *site) anew() {
	f := s.fed
	calculates := func(op int) bool { return op >= 0 && !isOne(s.Ops[op], moving+" "+elementwise) }
	for id, v := range s.values() {
		if f.From == 0 || v.Weight != "" || !isFloat(v) || s.constant(id) || s.base.Value(id) == nil || id == s.Out {
			continue
		}
		takers, made := s.takers(id), calculates(Root(s.Piece, s.Maker(id)))
		if !made && !slices.ContainsFunc(takers, calculates) {
			continue
		}
		for _, axis := range f.rowAxes(v.Shape) {
			put := func(name, text string, slots []slot) {
				s.instead("state", 3, text+": "+s.name(id), takers, []program.ID{id}, func(w *writer, x program.ID) program.ID {
					return w.moved(f, x, x, axis, slots)
				}).ID = name
			}
			earlier := func(whose, known int) []slot {
				return f.slots(func(at int) bool { return at < min(f.From, known) }, func(at int) slot { return slot{whose, at} })
			}
			if made && f.To-f.From > 1 {
				put("state/chunk", "all rows of the forward pass are its last, as in a step of one",
					f.slots(f.feeds, func(int) slot { return slot{at: f.To - 1} }))
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
	if !isFloat(s.Values[s.Out]) || s.base.Value(s.Out) == nil {
		return
	}
	for _, axis := range f.rowAxes(s.shape(s.Out)) {
		for k, o := range f.Others {
			for _, by := range []int{0, f.From - o.Cached} {
				slots := f.slots(func(at int) bool { return f.feeds(at) && at >= by && at-by < o.Len },
					func(at int) slot { return slot{1 + k, at - by} })
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
		if v, ok := s.resultOf(o); !s.looped[i] || !ok || !isFloat(v) {
			continue
		}
		next := slices.DeleteFunc(s.takers(o.Out[0]), func(t int) bool { return !s.looped[t] || first[of(t)] >= first[of(i)] })
		if len(next) == 0 {
			continue // nothing that the next run takes
		}
		if run[of(i)]++; run[of(i)] > mostPositions {
			return
		}
		s.instead("state", 0, text("the state is empty again after run %d of the loop", run[of(i)]), next, o.Out, times(0)).ID = "ssm/state"
	}
}
