package onepass

import (
	"bytes"
	"slices"
)

// state lays a port without rows out. One that hangs on the tokens is what a run's last forward pass
// left, and the reference's only where both end at the same token; any other is a constant.
func (w *writer) state() bool {
	if !w.laid.Fed {
		return w.constant()
	}
	a := axes{row: -1, line: len(w.laid.Shape) > 0 && w.laid.Shape[0] == w.grid.Lines}
	w.start(a)
	found := false
	for _, r := range w.grid.runs() {
		i := r.Items[len(r.Items)-1]
		if t := w.records[i.Pass]; t != nil && r.End() == w.grid.end(r) {
			if !w.last(a, r, i) {
				return false
			}
			found = true
		}
	}
	return found
}

// last writes the state that a run ended with; false if it lies in another way.
func (w *writer) last(a axes, r *Run, i Item) bool {
	t, shape, lines := w.records[i.Pass], w.laid.Shape, 1
	if items := len(w.Passes[i.Pass].Items); a.line && len(t.Shape()) > 0 && t.Shape()[0] == items {
		lines = items
		shape = append([]int{lines}, shape[1:]...)
	}
	if !slices.Equal(t.Shape(), shape) {
		return false
	}
	n := w.laid.to.inner
	line, from := 0, min(i.Index, lines-1)*n
	if a.line {
		line = slices.IndexFunc(w.grid.Cells, func(c Cell) bool { return c.Run == r }) / w.grid.Rows
	}
	copy(w.data[w.laid.to.at(line, 0, 0)*w.size:], bytesOf(t)[from*w.size:(from+n)*w.size])
	w.mark(line*w.grid.Rows, (line+1)*w.grid.Rows, i.Pass)
	return true
}

// constant lays a port out that is the same in every forward pass.
func (w *writer) constant() bool {
	w.start(axes{row: -1})
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
