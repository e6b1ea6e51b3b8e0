package onepass

import (
	"bytes"
	"slices"
)

// state lays a port without rows out. One that hangs on the tokens is what a run's last forward pass
// left, and the reference's only where both end at the same token; any other is a constant.
func (w *writer) state() (found bool) {
	if !w.laid.Fed {
		return w.constant()
	}
	w.start(axes{row: -1, each: 1, line: len(w.laid.Shape) > 0 && w.laid.Shape[0] == w.grid.Lines})
	for _, r := range w.grid.runs() {
		at, i := w.grid.index(r), r.Items[len(r.Items)-1]
		last, reaches := at[i.To-1]
		if _, goesOn := at[i.To]; goesOn || !reaches || w.records[i.Pass] == nil {
			continue
		}
		if !w.last(i, last/w.grid.Rows) {
			return false
		}
		found = true
	}
	return found
}

// last writes the state that a run on a line of the grid ended with; false if it lies in another way.
func (w *writer) last(i Item, line int) bool {
	t, shape, lines := w.records[i.Pass], w.laid.Shape, 1
	if items := len(w.Passes[i.Pass].Items); w.laid.axes.line && len(t.Shape()) > 0 && t.Shape()[0] == items {
		lines = items
		shape = append([]int{lines}, shape[1:]...)
	}
	if !slices.Equal(t.Shape(), shape) {
		return false
	}
	if !w.laid.axes.line {
		line = 0
	}
	n := w.laid.to.inner * w.size
	copy(w.data[line*n:], bytesOf(t)[min(i.Index, lines-1)*n:][:n])
	w.mark(line*w.grid.Rows, (line+1)*w.grid.Rows, i.Pass)
	return true
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
