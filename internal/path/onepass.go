package path

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Port is one of the reference's pass.
type Port struct {
	Layer, Name string
	Shape       []int
	Fed         bool // it hangs on the tokens
	Sorted      bool // its rows may lie in an order that data upstream tells, as those sorted by expert
}

// Laid is a port in the reference's shape.
type Laid struct {
	Port
	Tensor *tensor.Tensor // of the candidate's type; zero where it has nothing

	// By cell of the grid. Have are the rows that the candidate has, Own those that its runs computed
	// themselves and that are to be judged; the others are sources alone. Pass is the forward pass of
	// each row, −1 for none.
	Have, Own []bool
	Pass      []int

	// Keys are, by element, those keys of the rows that their forward pass had; nil for a port without
	// keys. Those that are missing from a row that is there are denied, or have no weight.
	Keys []bool

	grid *Grid
	axes axes
	to   block
}

// RowAxis is the axis of the rows of each line, and how many elements each has there for a line: as
// many as the grid has rows, or more after them. It is −1 and 1 for a port without rows, whose cells
// of a line are all alike. Axis 0 may count the lines, too, and several elements for each row.
func (l *Laid) RowAxis() (axis, length int) {
	if l.axes.row < 0 {
		return -1, 1
	}
	return l.axes.row, l.grid.Rows + l.axes.tail
}

// Cell returns the cell of a row of the lines along the row axis.
func (l *Laid) Cell(row int) int {
	_, length := l.RowAxis()
	return row/length*l.grid.Rows + row%length
}

// Whole reports whether nothing of the port is missing.
func (l *Laid) Whole() bool {
	return l.Keys == nil && l.axes.tail == 0 && !slices.Contains(l.Have, false)
}

// Cells returns the cell of each element; −1 for those after all rows.
func (l *Laid) Cells() []int {
	out := make([]int, l.Tensor.Len())
	b := l.to
	for i := range out {
		line, row := i/(b.outer*b.rows*b.inner), i/b.inner%b.rows
		if out[i] = line*l.grid.Rows + row; row >= l.grid.Rows {
			out[i] = -1
		}
	}
	return out
}

// Layout is a pass of the reference as the candidate ran it.
type Layout struct {
	Grid    *Grid
	Ports   []*Laid  // as the ports that were asked for; nil for one that is not there
	Unlaid  []int    // ports that the candidate recorded, and that could not be laid out
	Changes []Change // in the order of the forward passes
	Notes   []string
}

// Change is a finding that needs no reference: something in a forward pass is not as it was before.
type Change struct {
	Port               int
	Pass               int
	Sequence, Position int
	RelL2              float64 // NaN for none
	Text               string
}

// Lay lays the ports of a pass of the reference out, whose rows are those of the grid.
func (in *Recorded) Lay(ports []Port, grid *Grid) *Layout {
	out := &Layout{Grid: grid, Ports: make([]*Laid, len(ports)), Notes: slices.Clone(in.Notes)}
	seen := make([]bool, len(in.Passes)) // by forward pass: it recorded something
	for i, p := range ports {
		w := &writer{Recorded: in, grid: grid, out: out, port: i, laid: &Laid{Port: p, grid: grid}}
		switch {
		case !w.read(seen):
		case w.lay():
			out.Ports[i] = w.laid
		default:
			out.Unlaid = append(out.Unlaid, i)
		}
	}
	runs, _ := grid.cells()
	for _, r := range runs {
		for _, i := range r.Items {
			if !seen[i.Pass] {
				out.Notes = append(out.Notes, fmt.Sprintf("forward pass %s recorded nothing: sequence %d lacks its rows %d–%d",
					in.Passes[i.Pass].Step, r.Sequence, i.From, i.To-1))
			}
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b Change) int { return a.Pass - b.Pass })
	return out
}

// writer writes what the candidate has of a port.
type writer struct {
	*Recorded
	grid    *Grid
	out     *Layout
	port    int
	records []*tensor.Tensor // by forward pass; nil for none
	laid    *Laid
	data    []byte // of laid.Tensor
	dtype   tensor.DType
	size    int // of an element
}

// read reads the records of the port; false if there are none. Floats of several types are read in float32.
func (w *writer) read(seen []bool) (found bool) {
	w.records = make([]*tensor.Tensor, len(w.Passes))
	var types []tensor.DType
	for k := range w.records {
		if t := w.Record(k, w.laid.Layer, w.laid.Name); t != nil {
			w.records[k], seen[k] = t, true
			types = append(types, t.DType())
		}
	}
	if len(types) == 0 {
		return false
	}
	w.dtype = types[0]
	other, integer := func(d tensor.DType) bool { return d != w.dtype }, func(d tensor.DType) bool { return !d.IsFloat() }
	if slices.ContainsFunc(types, other) && !slices.ContainsFunc(types, integer) {
		w.dtype = tensor.F32
		for k, t := range w.records {
			if t != nil {
				x := make([]float32, t.Len())
				t.Float32s(x, 0)
				w.records[k], _ = tensor.Of(x, t.Shape()...) // of its own shape
			}
		}
	}
	w.size = w.dtype.Size()
	return true
}

// lay lays the port out; false where no form fits its records.
func (w *writer) lay() bool {
	other := func(t *tensor.Tensor) bool { return t != nil && t.DType() != w.dtype }
	if slices.ContainsFunc(w.records, other) || !w.rows() && !w.state() {
		return false
	}
	t, err := tensor.New(w.dtype, w.laid.Shape, w.data)
	w.laid.Tensor = t
	return err == nil
}

// start makes an empty tensor.
func (w *writer) start(a axes) {
	n, elements := w.grid.Lines*w.grid.Rows, product(w.laid.Shape)
	lines, rows := w.grid.Lines, w.grid.Rows+a.tail
	if a.row < 0 {
		rows = 1
		if !a.line {
			lines = 1
		}
	}
	a = a.in(w.laid.Shape)
	w.laid.axes, w.laid.to = a, block{lines, product(a.outer), rows, product(a.inner) * a.each}
	w.laid.Have, w.laid.Own, w.laid.Pass = make([]bool, n), make([]bool, n), slices.Repeat([]int{-1}, n)
	w.data, w.laid.Keys = make([]byte, elements*w.size), nil
	if a.keys {
		w.laid.Keys = make([]bool, elements)
	}
}

// bytesOf are the elements of a tensor, in row-major order.
func bytesOf(t *tensor.Tensor) []byte {
	b, ok := t.Bytes()
	if !ok {
		b, _ = t.Copy().Bytes()
	}
	return b
}

// rows lays a port out that has a row for each token that was fed, or for each key so far, as a cache
// has. A row of a cache is what it was when it was written first.
func (w *writer) rows() bool {
	for _, cache := range []bool{false, true} {
		for _, a := range possible(w.laid.Shape, w.grid) {
			records, ok := w.fit(a, cache)
			if !ok {
				continue
			}
			if a.each > 1 && w.laid.Sorted && !w.whole() {
				break
			}
			w.start(a)
			runs, at := w.grid.cells()
			for _, r := range runs {
				borrowed, own := r.sources(cache)
				for n, i := range slices.Concat(borrowed, own) {
					if w.records[i.Pass] != nil {
						w.put(records[i.Pass], r, i, n >= len(borrowed), at[r])
					}
				}
			}
			return true
		}
	}
	return false
}

// whole reports whether all records have the reference's shape: then one pass is the one pass.
func (w *writer) whole() bool {
	return !slices.ContainsFunc(w.records, func(t *tensor.Tensor) bool { return t != nil && !slices.Equal(t.Shape(), w.laid.Shape) })
}

// fit finds how the records lie by the axes; false if one does not.
func (w *writer) fit(a axes, cache bool) (list []record, ok bool) {
	if cache && (a.keys || a.each > 1) || a.tail > 0 && (cache || w.whole()) {
		return nil, false // what has a tail may be any axis where all of it is there
	}
	list = make([]record, len(w.records))
	for k, t := range w.records {
		if t == nil {
			continue
		}
		if list[k], ok = a.fit(t.Shape(), w.Passes[k], cache); !ok {
			return nil, false
		}
		for j := range w.Passes[k].Items {
			if a.keys || cache {
				list[k].keys = append(list[k].keys, w.columns(k, j, list[k].width))
			}
		}
		if slices.ContainsFunc(list[k].keys, func(columns []int) bool { return columns == nil }) {
			return nil, false
		}
	}
	return list, true
}

// placed is a row of a record, and the position of its token in the sequence.
type placed struct{ line, row, position int }

// place lists the rows of a record that are of an item of a run.
func (w *writer) place(from record, s Item) (list []placed) {
	item := w.Passes[s.Pass].Items[s.Index]
	if from.cache {
		line, _ := from.place(s.Index, 0)
		for row, position := range from.keys[s.Index] {
			list = append(list, placed{min(line, from.lines-1), row, position})
		}
		return list
	}
	for position := s.From; position < s.To; position++ {
		if !from.last || position == item.To-1 {
			line, row := from.place(s.Index, position-item.From)
			list = append(list, placed{line, row, position})
		}
	}
	return list
}

// put writes the rows of an item at the cells of their positions, and looks for those that change.
func (w *writer) put(from record, r *Run, s Item, own bool, at map[int]int) {
	data := bytesOf(w.records[s.Pass])
	for _, p := range w.place(from, s) {
		cell, on := at[p.position]
		if !on {
			continue
		}
		first := !w.laid.Have[cell]
		if first {
			w.laid.Have[cell], w.laid.Own[cell], w.laid.Pass[cell] = true, own, s.Pass
		}
		var was, is []byte
		for o := range w.laid.to.outer {
			src, dst := from.at(p.line, o, p.row), w.laid.to.at(cell/w.grid.Rows, o, cell%w.grid.Rows)
			there, here := w.data[dst*w.size:(dst+w.laid.to.inner)*w.size], data[src*w.size:(src+from.inner)*w.size]
			switch {
			case w.laid.Keys != nil:
				if w.keys(here, there, w.laid.Keys[dst:], from.keys[s.Index], at) {
					w.change(s.Pass, r.Sequence, p.position, "has weight on a key of padding", math.NaN())
				}
			case first:
				copy(there, here)
			default:
				was, is = append(was, there...), append(is, here...)
			}
		}
		if !bytes.Equal(was, is) {
			w.change(s.Pass, r.Sequence, p.position, "is not what was written there first", w.distance(was, is))
		}
	}
}

// keys writes the keys of a row where the reference has them. It reports whether a key of padding has weight.
func (w *writer) keys(from, to []byte, have []bool, positions []int, at map[int]int) (padding bool) {
	for i := range len(from) / w.size {
		key := from[i*w.size : (i+1)*w.size]
		position := positions[i%len(positions)]
		if position < 0 {
			padding = padding || w.dtype.IsFloat() && w.values(key)[0] > paddingWeight
			continue
		}
		if cell, ok := at[position]; ok {
			k := i/len(positions)*w.grid.Rows + cell%w.grid.Rows
			copy(to[k*w.size:], key)
			have[k] = true
		}
	}
	return padding
}

// distance is the relative L2 distance of two rows; infinite where it is not finite.
func (w *writer) distance(was, is []byte) float64 {
	old := w.values(was)
	if d := floats.Distance(w.values(is), old, 2) / floats.Norm(old, 2); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

func (w *writer) values(data []byte) []float64 {
	t, _ := tensor.New(w.dtype, []int{len(data) / w.size}, data) // of their own size
	return vec.ReadAll(t)
}

func (w *writer) change(pass, sequence, position int, text string, relL2 float64) {
	w.out.Changes = append(w.out.Changes, Change{w.port, pass, sequence, position, relL2, text})
}

// state lays a port without rows out. One that hangs on the tokens is what a run's last forward pass
// left, and the reference's only where both end at the same token; any other is a constant.
func (w *writer) state() (found bool) {
	if !w.laid.Fed {
		return w.constant()
	}
	w.start(axes{row: -1, each: 1, line: len(w.laid.Shape) > 0 && w.laid.Shape[0] == w.grid.Lines})
	runs, at := w.grid.cells()
	for _, r := range runs {
		i := r.Items[len(r.Items)-1]
		t, shape, line, of := w.records[i.Pass], w.laid.Shape, 0, 0 // of the grid, and of the record
		last, reaches := at[r][i.To-1]
		if _, goesOn := at[r][i.To]; goesOn || !reaches || t == nil {
			continue
		}
		if w.laid.axes.line {
			line = last / w.grid.Rows
			if n := len(w.Passes[i.Pass].Items); len(t.Shape()) > 0 && t.Shape()[0] == n {
				of, shape = i.Index, append([]int{n}, shape[1:]...)
			}
		}
		if !slices.Equal(t.Shape(), shape) {
			return false // it lies in another way
		}
		n := w.laid.to.inner * w.size
		copy(w.data[line*n:], bytesOf(t)[of*n:(of+1)*n])
		w.mark(line*w.grid.Rows, (line+1)*w.grid.Rows, i.Pass)
		found = true
	}
	return found
}

// constant lays a port out that is the same in every forward pass.
func (w *writer) constant() bool {
	w.start(axes{row: -1, each: 1})
	first := -1
	for k, t := range w.records {
		switch {
		case t == nil:
		case !slices.Equal(t.Shape(), w.laid.Shape):
			return false
		case first < 0:
			first = k
			copy(w.data, bytesOf(t))
		case !bytes.Equal(w.data, bytesOf(t)):
			item := w.Passes[k].Items[0]
			w.change(k, item.Sequence, item.From, "is a constant, and not what it was before", w.distance(w.data, bytesOf(t)))
		}
	}
	w.mark(0, len(w.laid.Have), first)
	return true
}

// mark says that the candidate has the cells from ≤ i < to.
func (w *writer) mark(from, to, pass int) {
	for i := from; i < to; i++ {
		w.laid.Have[i], w.laid.Own[i], w.laid.Pass[i] = true, true, pass
	}
}
