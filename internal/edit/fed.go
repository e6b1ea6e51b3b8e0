package edit

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
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

// own are the slots of the first positions as they are.
func own(n int) []slot {
	out := make([]slot, n)
	for i := range out {
		out[i].at = i
	}
	return out
}

// onePass is a forward pass that feeds all rows.
func onePass(rows int) *Fed {
	f := &Fed{Lines: 1, Rows: rows, To: rows, At: make([]int, rows)}
	for i := range f.At {
		f.At[i] = i
	}
	return f
}

// rowAxes lists the axes of a value that may count the rows of each line.
func (f *Fed) rowAxes(shape []int) (axes []int) {
	for d, n := range shape {
		if n == f.Rows && (f.Lines == 1 || d > 0 && shape[0]%f.Lines == 0) {
			axes = append(axes, d)
		}
	}
	return axes
}

// moved writes a value, or what stands in its place as id, whose rows of the sequence are those of slots; more slots than
// positions come after all rows. What becomes of other lines is of no matter: they are not compared.
func (w *writer) moved(f *Fed, of, id program.ID, axis int, slots []slot) program.ID {
	shape := w.s.Value(of).Shape()
	order := make([]int, f.Rows+max(len(slots)-len(f.At), 0))
	for i := range order {
		order[i] = min(i, f.Rows-1)
	}
	parts, begins := []program.ID{id}, map[int]int{0: 0}
	end := f.Rows
	begin := func(whose int) int {
		at, ok := begins[whose]
		if !ok {
			part, n := program.None, f.Rows
			if whose != empty.of {
				part = w.owner(f, of, whose)
			} else {
				row := slices.Clone(shape)
				row[axis], n = 1, 1
				part = w.call("full", id, row, "size", row, "fill_value", 0)
			}
			at, begins[whose] = end, end
			parts, end = append(parts, part), end+n
		}
		return at
	}
	for position, x := range slots {
		row := f.Rows + position - len(f.At)
		if position < len(f.At) {
			row = f.At[position]
		}
		switch at := begin(x.of); {
		case x.of == empty.of:
			order[row] = at
		case x.at < len(f.At):
			order[row] = at + f.At[x.at]
		}
	}
	if len(parts) > 1 {
		all := slices.Clone(shape)
		all[axis] = end
		id = w.call("cat", id, all, "tensors", parts, "dim", axis)
	}
	return w.selected(id, axis, order)
}

// selected writes a value whose elements along an axis are those of an order.
func (w *writer) selected(id program.ID, axis int, order []int) program.ID {
	shape, index := slices.Clone(w.value(id).Shape), make([]float64, len(order))
	shape[axis] = len(order)
	for i, k := range order {
		index[i] = float64(k)
	}
	return w.call("index_select", id, shape, "self", id, "dim", axis, "index", w.numbers(index, []int{len(order)}, tensor.I64))
}

// owner adds the value as another one has it to the patch; a value that it has not makes the edit none.
func (w *writer) owner(f *Fed, id program.ID, of int) program.ID {
	key := [2]int{int(id), of}
	v, ok := w.s.others[key]
	if !ok {
		if a := f.Others[of-1].Base.Value(id); a != nil {
			v = constantOf(a.Floats(), a.Shape(), w.s.Values[id].DType)
		}
		w.s.others[key] = v
	}
	if v.Data == nil {
		w.failed = true
	}
	return w.outside(v)
}

// numbers adds a constant to the patch.
func (w *writer) numbers(x []float64, shape []int, dtype tensor.DType) program.ID {
	return w.outside(constantOf(x, shape, dtype))
}

// numbered is a value whose numbers are made when they are needed.
func (w *writer) numbered(v program.Value, numbers func() []float64) program.ID {
	return w.late(v, func() (*replay.Array, error) { return replay.Of(v.DType, v.Shape, numbers()) })
}

// late is a value that is made when it is needed.
func (w *writer) late(v program.Value, made func() (*replay.Array, error)) program.ID {
	w.e.Patch.Made = append(w.e.Patch.Made, v)
	id := program.ID(len(w.s.Values) + len(w.e.Patch.Made) - 1)
	if w.e.Patch.Late == nil {
		w.e.Patch.Late = map[program.ID]func() (*replay.Array, error){}
	}
	w.e.Patch.Late[id] = made
	return id
}

// constantOf is a constant of bools, of integers or of float32.
func constantOf(x []float64, shape []int, dtype tensor.DType) program.Value {
	v := program.Value{Shape: shape, DType: tensor.F32}
	switch {
	case dtype == tensor.Bool:
		v.DType, v.Data = dtype, make([]byte, len(x))
		for i, y := range x {
			if y != 0 {
				v.Data[i] = 1
			}
		}
	case !dtype.IsFloat():
		v.DType, v.Data = tensor.I64, make([]byte, 8*len(x))
		for i, y := range x {
			binary.LittleEndian.PutUint64(v.Data[8*i:], uint64(int64(y)))
		}
	default:
		v.Data = make([]byte, 4*len(x))
		for i, y := range x {
			binary.LittleEndian.PutUint32(v.Data[4*i:], math.Float32bits(float32(y)))
		}
	}
	return v
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
