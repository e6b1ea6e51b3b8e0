package onepass

import (
	"bytes"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// cache lays a port out that holds all keys so far. Each row is what it was when it was written first;
// a later forward pass in which it has other bits is a finding.
func (w *writer) cache() bool {
	for _, a := range possible(w.laid.Shape, w.grid) {
		if a.keys || a.tail > 0 || a.each > 1 || !w.holds(a) {
			continue
		}
		w.start(a)
		for _, r := range w.grid.runs() {
			w.slots(a, r)
		}
		return true
	}
	return false
}

// held finds how a cache lies, whose rows are the keys of the items.
func (w *writer) held(a axes, k int) (b block, ok bool) {
	t, pass := w.records[k], w.Passes[k]
	lines, shape := len(pass.Items), t.Shape()
	if n, rows := pass.Size(); rows > 0 {
		lines = n
	}
	outer, inner := a.split(w.laid.Shape)
	b = block{lines, product(outer), 0, product(inner)}
	at := len(outer)
	if len(shape) == 1+len(outer)+1+len(inner) {
		at++
	}
	if at >= len(shape) {
		return b, false
	}
	b.rows = shape[at]
	full := slices.Concat(outer, []int{b.rows}, inner)
	return b, slices.Equal(shape, append([]int{lines}, full...)) || lines == 1 && slices.Equal(shape, full)
}

func (w *writer) holds(a axes) bool {
	for k, t := range w.records {
		if t == nil {
			continue
		}
		b, ok := w.held(a, k)
		if !ok {
			return false
		}
		for j := range w.Passes[k].Items {
			if f := w.at[[2]int{k, j}]; w.columns(f.Run, f.item, b.rows) == nil {
				return false
			}
		}
	}
	return true
}

// slots writes the rows of a run's cache, and looks for those that change.
func (w *writer) slots(a axes, r *Run) {
	at := w.grid.index(r)
	for n, i := range r.Items {
		t := w.records[i.Pass]
		if t == nil {
			continue
		}
		from, _ := w.held(a, i.Pass)
		line, _ := w.Passes[i.Pass].Place(i.Index, 0)
		if from.lines == 1 {
			line = 0
		}
		data := bytesOf(t)
		for row, position := range w.columns(r, n, from.rows) {
			cell, on := at[position]
			if position < 0 || !on {
				continue
			}
			if !w.laid.Have[cell] {
				w.laid.Have[cell], w.laid.Own[cell], w.laid.Pass[cell] = true, true, i.Pass
				w.slot(cell, func(dst, src []byte) { copy(dst, src) }, data, from, line, row)
				continue
			}
			var was, is []byte
			w.slot(cell, func(dst, src []byte) { was, is = append(was, dst...), append(is, src...) }, data, from, line, row)
			if !bytes.Equal(was, is) {
				w.change(i.Pass, r.Sequence, position, "is not what was written there first", w.distance(was, is))
			}
		}
	}
}

// slot gives the elements of a cell, and those of a record's row, to do.
func (w *writer) slot(cell int, do func(dst, src []byte), data []byte, from block, line, row int) {
	for o := range from.outer {
		src, dst := from.at(line, o, row), w.laid.to.at(cell/w.grid.Rows, o, cell%w.grid.Rows)
		do(w.data[dst*w.size:(dst+from.inner)*w.size], data[src*w.size:(src+from.inner)*w.size])
	}
}

// distance is the relative L2 distance of two rows; infinite where it is not finite.
func (w *writer) distance(was, is []byte) float64 {
	n := len(was) / w.size
	values := func(b []byte) []float64 {
		out := make([]float64, n)
		if t, err := tensor.New(w.dtype, []int{n}, b); err == nil {
			t.Float64s(out, 0)
		}
		return out
	}
	var error, norm float64
	old := values(was)
	for i, x := range values(is) {
		error += (x - old[i]) * (x - old[i])
		norm += old[i] * old[i]
	}
	if d := math.Sqrt(error / norm); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}
