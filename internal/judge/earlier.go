package judge

import (
	"slices"

	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/tie"
	"github.com/goparity/goparity/internal/trace"
)

// earlier knows which tokens of a case took another way in earlier forward passes. Where it is not
// known which token a row is, all rows of later passes follow from that; along an execution path those
// of the same sequence do, in what ran behind the choice.
type earlier struct {
	any  bool
	took []took
}

type took struct {
	container string // the layer around what chose
	path.Row
}

// begin forgets the sequences that a pass feeds from their first token on.
func (e *earlier) begin(pass *path.Pass) {
	e.took = slices.DeleteFunc(e.took, func(t took) bool {
		return slices.ContainsFunc(pass.Rows, func(r path.Row) bool { return r == path.Row{Sequence: t.Sequence} })
	})
}

// add remembers the ways of a pass, whose rows are known or nil.
func (e *earlier) add(w ways, rows []path.Row) {
	e.any = e.any || w.any()
	for _, a := range w {
		for _, r := range a.Rows {
			if a.Of == len(rows) {
				e.took = append(e.took, took{a.container, rows[r]})
			}
		}
	}
}

// behind reports whether a token of a later pass follows from another way in what exists at an event.
func (e *earlier) behind(flow *trace.Pass, at int, row path.Row) bool {
	return slices.ContainsFunc(e.took, func(t took) bool {
		if t.Sequence != row.Sequence || t.Position >= row.Position {
			return false
		}
		end := -1
		for _, i := range flow.Ports(t.container) {
			end = max(end, flow.Events[i].At)
		}
		return flow.Events[at].At > end
	})
}

// lost marks the rows of a port that follow from another way in an earlier pass; nil if none does.
func (e *earlier) lost(flow *trace.Pass, at int, p *Port, rows []path.Row) []bool {
	if !e.any || rows != nil && len(e.took) == 0 {
		return nil
	}
	out := make([]bool, p.Golden.Len()/max(p.Golden.RowLen(), 1))
	if rows == nil {
		return slices.Repeat([]bool{true}, len(out))
	}
	position := tie.Positions(p.Golden.Shape(), len(rows), len(rows))
	for i := range out {
		switch {
		case position == nil || p.misfit():
			out[i] = slices.ContainsFunc(rows, func(r path.Row) bool { return e.behind(flow, at, r) })
		default:
			_, token := position(i)
			out[i] = e.behind(flow, at, rows[token])
		}
	}
	return out
}

// either joins two marks of rows, of which one may be nil.
func either(a, b []bool) []bool {
	if a == nil || b == nil {
		return slices.Concat(a, b)
	}
	for i := range a {
		a[i] = a[i] || b[i]
	}
	return a
}
