package edit

import (
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

// slots are those of the positions of the sequence, of which some are others.
func (f *Fed) slots(of func(at int) slot) []slot {
	out := make([]slot, len(f.At))
	for i := range out {
		out[i] = of(i)
	}
	return out
}

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

// each calls do for each element of the rows of some positions.
func (f *Fed) each(shape []int, axis, from, to int, do func(position, at int)) {
	outer, inner := size(shape[:axis]), size(shape[axis+1:])
	each := outer / f.Lines
	for p := from; p < min(to, len(f.At)); p++ {
		for o := f.Line * each; o < (f.Line+1)*each; o++ {
			for i := range inner {
				do(p, (o*shape[axis]+f.At[p])*inner+i)
			}
		}
	}
}

// moved writes a value, or what stands in its place as id, whose rows of the sequence are those of slots; more slots than
// positions come after all rows. What becomes of other lines is of no matter: they are not compared.
func (w *writer) moved(f *Fed, of, id program.ID, axis int, slots []slot) program.ID {
	order := make([]int, f.Rows+max(len(slots)-len(f.At), 0))
	for i := range order {
		order[i] = min(i, f.Rows-1)
	}
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
		return w.call("full", like, row, "size", row, "fill_value", 0)
	}
	a := f.Others[of-1].Base.Value(id)
	if w.unless(a != nil) {
		return like
	}
	return w.late(program.Value{Shape: a.Shape(), DType: a.DType()}, func() (*replay.Array, error) { return a, nil })
}
