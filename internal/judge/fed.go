package judge

import (
	"context"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/onepass"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// fed says which forward pass the first wrong row of a port is of, and which rows that pass fed; nil where passes were not laid
// out, or the port has no rows.
func (c *Comparison) fed(r *replayed, t int, site *piece.Site) (*edit.Fed, []bool) {
	l := r.result.Local[t]
	if r.laid == nil || len(l.Rows) == 0 {
		return nil, nil
	}
	laid, grid := r.laid.Ports[r.laid.at[t]], r.laid.Grid
	first := laid.Cell(l.Rows[0])
	for _, at := range l.Rows {
		if cell := laid.Cell(at); laid.Pass[cell] < laid.Pass[first] {
			first = cell
		}
	}
	run, pass := grid.Cells[first].Run, laid.Pass[first]
	item := run.Items[slices.IndexFunc(run.Items, func(i onepass.Item) bool { return i.Pass == pass })]
	fed := &edit.Fed{Lines: grid.Lines, Rows: grid.Rows, Line: first / grid.Rows, From: item.From, To: item.To}
	_, length := laid.RowAxis()
	rows := make([]bool, grid.Lines*length)
	for row := range grid.Rows {
		cell := grid.Cells[fed.Line*grid.Rows+row]
		if cell.Run != run {
			continue
		}
		if cell.Position == len(fed.At) {
			fed.At = append(fed.At, row)
		}
		rows[fed.Line*length+row] = cell.Position >= item.From && cell.Position < item.To
	}
	fed.To = min(fed.To, len(fed.At))
	s := &sharing{r: r, site: site, fed: fed, run: run, pass: pass}
	s.others(c.ctx)
	s.padding(c.ctx, item)
	return fed, rows
}

// sharing finds what a cache or a batch may hold besides a run's own rows.
type sharing struct {
	r    *replayed
	site *piece.Site
	fed  *edit.Fed
	run  *onepass.Run
	pass int
}

// others are the other runs: those of a sequence that is in the cache at the same time, and those that ended before.
func (s *sharing) others(ctx context.Context) {
	latest := map[int]*onepass.Run{} // by sequence
	for _, run := range s.r.laid.in.Runs {
		if run != s.run && run.Items[0].Pass <= s.pass {
			latest[run.Sequence] = run
		}
	}
	for _, run := range s.r.laid.in.Runs {
		if latest[run.Sequence] != run {
			continue
		}
		o := edit.Other{ID: "state/stale", Text: fmt.Sprintf("sequence %d", run.Sequence), Len: min(run.End(), len(s.fed.At)), Cached: run.Cached}
		for _, i := range run.Items {
			if i.Pass < s.pass {
				o.Cached = i.To
			} else { // it goes on, or is fed beside this one
				o.ID = "state/sequence"
			}
		}
		if run.Sequence == s.run.Sequence {
			o.ID, o.Text = "state/stale", "the run before of the same tokens"
		}
		grid := *s.r.laid.Grid
		grid.Cells = slices.Clone(grid.Cells)
		for i, cell := range grid.Cells {
			grid.Cells[i].Run = nil
			if i/grid.Rows == s.fed.Line && cell.Run == s.run {
				grid.Cells[i].Run = run
			}
		}
		s.add(ctx, o, func(port int) *tensor.Tensor {
			at, ok := s.r.laid.at[port]
			if !ok {
				return nil
			}
			if laid := s.r.laid.in.Lay(s.r.laid.asked[at:at+1], &grid).Ports[0]; laid != nil {
				return laid.Tensor
			}
			return nil
		})
	}
}

// padding are the rows of padding that stand beside those of the sequence.
func (s *sharing) padding(ctx context.Context, item onepass.Item) {
	k, pass := s.r.laid.along, s.r.laid.in.Passes[item.Pass]
	o := edit.Other{ID: "mask/padding", Text: "padding"}
	rows := map[int]*tensor.Tensor{}
	for port, at := range s.r.laid.at {
		laid := s.r.laid.Ports[at]
		if laid == nil {
			continue
		}
		axis, _ := laid.RowAxis()
		for _, q := range s.r.ports[port] {
			if q.Step != pass.Step || q.ActualSide == nil || axis < 0 {
				continue
			}
			layer, name := label.Split(q.ActualSide.Name)
			t, left := k.Padding(pass, item.Index, layer, name)
			if t == nil {
				continue
			}
			o.Left = left
			if x := s.inPlace(laid, t, axis, &o.Len); x != nil {
				rows[port] = x
			}
		}
	}
	s.fed.Padding = o.Len
	if o.Len > 0 && o.Len <= len(s.fed.At) {
		s.add(ctx, o, func(port int) *tensor.Tensor { return rows[port] })
	}
}

// inPlace puts rows in those of the first positions; n is set to how many they are.
func (s *sharing) inPlace(laid *onepass.Laid, rows *tensor.Tensor, axis int, n *int) *tensor.Tensor {
	shape := laid.Tensor.Shape()
	outer, inner := int(elements(shape[:axis]))/s.fed.Lines, int(elements(shape[axis+1:]))
	if outer*inner == 0 || rows.Len()%(outer*inner) != 0 {
		return nil
	}
	m := rows.Len() / (outer * inner)
	if *n = max(*n, m); m > len(s.fed.At) {
		return nil
	}
	x, from := make([]float64, laid.Tensor.Len()), make([]float64, rows.Len())
	rows.Float64s(from, 0)
	for o := range outer {
		for p := range m {
			to := ((s.fed.Line*outer+o)*shape[axis] + s.fed.At[p]) * inner
			copy(x[to:to+inner], from[(o*m+p)*inner:])
		}
	}
	t, err := tensor.Of(x, shape...)
	if err != nil {
		return nil
	}
	return t
}

// add runs the piece on the rows of another one.
func (s *sharing) add(ctx context.Context, o edit.Other, of func(port int) *tensor.Tensor) {
	var err error
	o.Base, err = replay.NewBase(ctx, s.site.Piece, func(v *program.Value) (*replay.Array, error) {
		if v.Record > 0 {
			if t := of(v.Record - 1); t != nil {
				return arrayOf(t, v.DType)
			}
		}
		return s.site.Load(v)
	}, s.site.Mode)
	if err == nil && o.Len > 0 {
		s.fed.Others = append(s.fed.Others, o)
	}
}
