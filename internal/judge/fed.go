package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// fed says which forward pass the first wrong row of a port is of, and which rows that pass fed; nil where passes were not laid
// out, or the port has no rows.
func (r *replayed) fed(t int, site *piece.Site) (*edit.Fed, []bool) {
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
	item := run.Items[slices.IndexFunc(run.Items, func(i path.Item) bool { return i.Pass == pass })]
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
	s.others(r.c.ctx)
	s.padding(r.c.ctx, item)
	return fed, rows
}

// sharing finds what a cache or a batch may hold besides a run's own rows.
type sharing struct {
	r    *replayed
	site *piece.Site
	fed  *edit.Fed
	run  *path.Run
	pass int
}

// others are the other runs: those of a sequence that is in the cache at the same time, and those that ended before.
func (s *sharing) others(ctx context.Context) {
	latest := map[int]*path.Run{} // by sequence
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
func (s *sharing) padding(ctx context.Context, item path.Item) {
	pass := s.r.laid.in.Passes[item.Pass]
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
			t, left := s.r.k.Along.Padding(pass, item.Index, layer, name)
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
func (s *sharing) inPlace(laid *path.Laid, rows *tensor.Tensor, axis int, n *int) *tensor.Tensor {
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

// elsewhere lists what a wrong port may be made of, or have been taken for, though the reference's piece does not take it.
func (r *replayed) elsewhere(site *piece.Site, t int) []edit.Weight {
	made := r.made(site, t)
	before, beside := r.recordedNear(site, t)
	return slices.Concat(made, before, beside, r.remade(site, slices.Concat(made, before)))
}

// recordedNear lists what the candidate recorded before a port, the latest first, and shortly after it what is not made
// of it: the reference may have run that first as well.
func (r *replayed) recordedNear(site *piece.Site, t int) (before, beside []edit.Weight) {
	at := &r.Ports[t]
	add := func(list []edit.Weight, i int, seen map[program.ID]bool) []edit.Weight {
		q := &r.Ports[i]
		if seen[q.Value] || q.Step != at.Step || !site.Has(i) {
			return list
		}
		seen[q.Value] = true
		v := r.Values[q.Value]
		return append(list, edit.Weight{Name: q.Layer + "-" + q.Name, Shape: v.Shape, DType: v.DType, Record: i + 1})
	}
	seen := map[program.ID]bool{at.Value: true}
	for i := t - 1; i >= 0 && len(before) < mostBefore; i-- {
		before = add(before, i, seen)
	}
	own := r.dependents(at.Value, "")
	for i := t + 1; i < min(len(r.Ports), t+1+mostBeside); i++ {
		if label.Inside(r.Ports[i].Layer, label.Parent(at.Layer)) {
			beside = add(beside, i, own)
		}
	}
	return before, beside
}

// dependents are what hangs on a value, or with a layer on what is made within that.
func (r *replayed) dependents(value program.ID, layer string) map[program.ID]bool {
	own := map[program.ID]bool{value: layer == ""}
	for i := range r.Ops {
		if layer != "" && label.Within(r.Ops[i].Layer, layer) || slices.ContainsFunc(r.Ops[i].Operands(), func(id program.ID) bool { return own[id] }) {
			for _, id := range r.Ops[i].Out {
				own[id] = id != program.None
			}
		}
	}
	return own
}

// made lists what the code around a port's layer makes near it without a record: before it, or after it and not of it.
func (r *replayed) made(site *piece.Site, t int) (list []edit.Weight) {
	at := &r.Ports[t]
	layer := ""
	if at.Input { // what else is made of the value is not made by the layer
		layer = at.Layer
	}
	own, pass := r.dependents(at.Value, layer), r.passOf(at.At-1)
	recorded := func(id program.ID) bool { return slices.ContainsFunc(r.Records(id), site.Has) }
	fits := func(shape []int) bool {
		return slices.ContainsFunc(site.Piece.Values, func(v program.Value) bool {
			return slices.Equal(v.Shape, shape) || len(v.Shape) == len(shape) && shape[len(shape)-1] == 1 && slices.Equal(v.Shape[:len(shape)-1], shape[:len(shape)-1])
		})
	}
	for k := range 2 * mostNear {
		i := at.At - 1 - k/2
		if k%2 > 0 {
			i = at.At + k/2
		}
		if i < 0 || i >= len(r.Ops) || !label.Inside(at.Layer, r.Ops[i].Layer) || r.passOf(i) != pass {
			continue
		}
		for _, id := range r.Ops[i].Out {
			if id == program.None || own[id] || recorded(id) || !r.Values[id].DType.IsFloat() || len(list) == mostMade || !fits(r.Values[id].Shape) {
				continue
			}
			v, o, of := r.Values[id], &r.Ops[i], site.Making(id, i+1)
			if workOf(of.Program) > workOf(site.Piece.Program)+cheapAgain*elements(v.Shape) {
				continue
			}
			list = append(list, edit.Weight{Name: cmp.Or(r.frame(i), fmt.Sprintf("the %s of %s", o.Name, o.Layer)),
				Shape: v.Shape, DType: v.DType, Layer: o.Layer, Code: r.frame(i),
				Made: sync.OnceValues(func() (*replay.Array, error) { return replayable(site.Run(of, site.Load)) })})
		}
	}
	return list
}

// passOf is the forward pass of an operator.
func (r *replayed) passOf(op int) int {
	return slices.IndexFunc(r.Passes, func(p program.Pass) bool { return p.First <= op && op < p.End })
}

// remade lists what a port's sources would be, had they been made of something else: a norm of another sum, say.
func (r *replayed) remade(site *piece.Site, others []edit.Weight) (list []edit.Weight) {
	for _, s := range site.Piece.Sources {
		of := r.Piece(s, site.Has)
		v := r.Values[r.Ports[s].Value]
		if l := r.result.Local[s]; len(of.Ops) == 0 || workOf(of.Program) > cheapAgain*elements(v.Shape) || !v.DType.IsFloat() || l == nil || l.Wrong || l.Opaque != "" {
			continue
		}
		for _, x := range of.Sources {
			given := r.Values[r.Ports[x].Value]
			for _, o := range others {
				if o.Record == x+1 || !slices.Equal(o.Shape, given.Shape) || len(list) == mostRemade {
					continue
				}
				list = append(list, edit.Weight{Name: fmt.Sprintf("%s of %s", r.Ports[s].Layer, o.Name), Shape: v.Shape, DType: v.DType, Layer: label.Parent(r.Ports[s].Layer),
					Code: o.Code, For: s + 1, Made: sync.OnceValues(func() (*replay.Array, error) {
						return replayable(site.Run(of, func(v *program.Value) (*replay.Array, error) {
							switch {
							case v.Record != x+1:
								return site.Load(v)
							case o.Made != nil:
								return o.Made()
							}
							return site.Load(&program.Value{Shape: o.Shape, DType: o.DType, Record: o.Record})
						}))
					})})
			}
		}
	}
	return list
}

// replayable lets what cannot be made be no edit, whatever the reason.
func replayable(a *replay.Array, err error) (*replay.Array, error) {
	if err != nil {
		return nil, &replay.OpaqueError{Reason: err.Error()}
	}
	return a, nil
}
