package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// laidOut are runs of a candidate along an execution path, on a forward pass of the reference.
type laidOut struct {
	*path.Layout
	in    *path.Recorded
	asked []path.Port
	at    map[int]int // by port of the program: that of the layout
	of    []int       // by port of the layout: that of the program
	sheet *path.Sheet // of the golden, whose pass it is
	turn  int         // of the runs of its sequences
}

// layAlong lays the runs of a case out as the forward passes of each program.
func (c *Comparison) layAlong(k *Case) (all []*replayed) {
	a := k.Along
	in := path.NewRecorded(a.Tokens, a.Passes, func(pass int, layer, port string) *tensor.Tensor {
		return c.recorded(k, k.key(a.Passes[pass].Step, layer, port))
	})
	for _, sheet := range a.sheets() {
		p := a.programs[sheet]
		if p == nil {
			continue
		}
		origins := lineages(p)
		for _, pass := range sheet.Passes {
			for turn, runs := range a.turns(in, sheet, pass) {
				r := c.newReplayed(k, p)
				r.laid = &laidOut{in: in, at: map[int]int{}, sheet: sheet, turn: turn}
				r.lay(origins, pass.Step, path.NewGrid(pass, runs))
				all = append(all, r)
			}
		}
	}
	return all
}

// sheets lists those of the golden that have a sequence of the run.
func (a *Along) sheets() (list []*path.Sheet) {
	for i := range a.Tokens {
		if s, _ := a.found.At(i); s != nil && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// turns lists which runs of the candidate lie on a forward pass of the reference, by its items: the
// first runs of each sequence, then the second ones, and so on. It is empty for a pass that goes on
// where another one ended.
func (a *Along) turns(in *path.Recorded, sheet *path.Sheet, pass *path.Pass) (turns [][]*path.Run) {
	for j, item := range pass.Items {
		if item.From > 0 {
			return nil
		}
		n := 0
		for _, r := range in.Runs {
			if s, there := a.found.At(r.Sequence); s != sheet || there != item.Sequence {
				continue
			}
			if n == len(turns) {
				turns = append(turns, make([]*path.Run, len(pass.Items)))
			}
			turns[n][j] = r
			n++
		}
	}
	return turns
}

// recorded returns what the candidate has for a port of the golden, in a layout like the golden's. Ports
// whose rows are no tokens, as caches, are those of the same label.
func (c *Comparison) recorded(k *Case, at localise.Key) *tensor.Tensor {
	p := c.byKey[at]
	if p == nil && slices.Contains(k.Along.Left, label.Join(at.Layer, at.Port)) {
		return k.Along.Recorded(at.Step, at.Layer, at.Port)
	}
	if p == nil || p.misfit() || !p.Comparable() || p.printed != nil {
		return nil
	}
	if p.sides != nil {
		if f, err := p.sides.frame(); err == nil && slices.Equal(f.actual.Shape(), p.entry.Shape()) && !slices.Contains(f.pad, true) {
			return f.actual
		}
	}
	return p.Actual
}

// lay lays the runs on a grid out as the program's pass of a step.
func (r *replayed) lay(origins []lineage, step string, grid *path.Grid) {
	k, laid := r.k, r.laid
	for i, at := range r.Ports {
		if at.Step == step {
			laid.at[i], laid.of = len(laid.asked), append(laid.of, i)
			laid.asked = append(laid.asked, path.Port{Layer: at.Layer, Name: at.Name, Shape: r.Values[at.Value].Shape,
				Fed: origins[at.Value].fed, Sorted: origins[at.Value].sorted})
		}
	}
	laid.Layout = laid.in.Lay(laid.asked, grid)
	for at, i := range laid.of {
		for n, pass := range k.Along.Passes {
			if q := r.c.byKey[k.key(pass.Step, r.Ports[i].Layer, r.Ports[i].Name)]; q != nil && laid.feeds(n) {
				r.ports[i] = append(r.ports[i], q)
			}
		}
		if len(r.ports[i]) == 0 {
			continue // it has no place in a report
		}
		laid.record(&r.records[i], laid.Ports[at], r.ports[i])
		if k.alone { // its golden is made of it
			r.records[i].Golden = piece.Golden{}
		}
	}
}

// feeds reports whether a forward pass feeds a run of the grid.
func (l *laidOut) feeds(pass int) bool {
	return slices.ContainsFunc(l.Grid.Cells, func(c path.Cell) bool {
		return c.Run != nil && slices.ContainsFunc(c.Run.Items, func(i path.Item) bool { return i.Pass == pass })
	})
}

// record sets what the candidate has for a port, as replay takes it.
func (l *laidOut) record(r *piece.Record, laid *path.Laid, ports []*Port) {
	r.Misfit = slices.ContainsFunc(ports, (*Port).misfit)
	if r.Misfit {
		return
	}
	r.Golden = asOne(ports)
	if laid == nil {
		return // the golden tells
	}
	var err error
	if r.Tensor, err = replay.FromTensor(laid.Tensor); err != nil {
		r.Tensor = nil
		return
	}
	axis, length := laid.RowAxis()
	if axis >= 0 || l.Grid.Lines > 1 && slices.Contains(laid.Have, false) {
		r.Rows = &piece.Rows{Axis: max(axis, 0), Batch: l.Grid.Lines, Length: length}
		for line := range l.Grid.Lines {
			for row := range length {
				cell := line*l.Grid.Rows + row
				r.Rows.Own = append(r.Rows.Own, row < l.Grid.Rows && laid.Own[cell])
			}
		}
	}
	if !laid.Whole() {
		r.Complete = completed(r.Tensor, laid)
	}
}

// asOne says how a port of several forward passes compares with the golden, as that of one pass would: the row of a
// token is no tensor of its own.
func asOne(ports []*Port) (g piece.Golden) {
	var errors, norms float64
	g.Agrees = true
	for _, p := range ports {
		if !p.Comparable() {
			continue
		}
		g.Known, g.Agrees, g.Tied = true, g.Agrees && p.Agrees, g.Tied || p.tied
		whole, row := p.inFloors()
		g.Error = max(g.Error, row)
		if norm := p.Base.Result.NormGolden; norm > 0 {
			errors, norms = errors+whole*norm*whole*norm, norms+norm*norm
		} else {
			g.Error = max(g.Error, whole)
		}
	}
	if norms > 0 {
		g.Error = max(g.Error, math.Sqrt(errors/norms))
	}
	return g
}

// completed puts what the candidate has of a port into a replayed one. Keys that a forward pass did not
// have are denied there, or have no weight.
func completed(have *replay.Array, laid *path.Laid) func(*replay.Array) (*replay.Array, error) {
	return func(made *replay.Array) (*replay.Array, error) {
		x, own, cells := made.Floats(), have.Floats(), laid.Cells()
		if len(x) != len(own) {
			return have, nil
		}
		denied := 0.0
		if least := slices.Min(x); have.DType().IsFloat() && vec.Denied(least) {
			denied = least
		}
		for i, cell := range cells {
			switch {
			case cell < 0 || !laid.Have[cell]:
			case laid.Keys != nil && !laid.Keys[i]:
				x[i] = denied
			default:
				x[i] = own[i]
			}
		}
		return replay.Of(have.DType(), have.Shape(), x)
	}
}

// spread says of each forward pass what replay says of a port that was laid out.
func (r *replayed) spread(port int, l *piece.Local) {
	along, wrong := r.k.Along, map[int]path.Row{} // wrong: by forward pass
	laid := r.laid.Ports[r.laid.at[port]]
	for _, at := range l.Rows {
		cell := laid.Cell(at)
		row := path.Row{Sequence: r.laid.Grid.Cells[cell].Run.Sequence, Position: r.laid.Grid.Cells[cell].Position}
		if first, ok := wrong[laid.Pass[cell]]; !ok || row.Compare(first) < 0 {
			wrong[laid.Pass[cell]] = row
		}
	}
	for _, p := range r.ports[port] {
		own := *l
		own.Rows = nil
		row, is := wrong[along.Index(p.Step)]
		own.Wrong = l.Wrong && (is || len(wrong) == 0 && !p.Agrees) // without rows the golden told
		if is {
			if first, ok := along.wrong[p]; !ok || row.Compare(first) < 0 {
				along.wrong[p] = row
			}
		}
		if p.Local == nil || own.Wrong || own.Opaque != "" && !p.Local.Wrong {
			p.Local = &own
			p.leaveOutDrawn()
		}
	}
}

// noteLayout says what could not be laid out, and what forward passes changed.
func (r *replayed) noteLayout() {
	for _, n := range r.laid.Notes {
		r.c.Note(n)
	}
	var left []string
	for _, at := range r.laid.Unlaid {
		if i := r.laid.of[at]; len(r.ports[i]) > 0 {
			left = append(left, label.Join(r.Ports[i].Layer, r.Ports[i].Name))
		}
	}
	slices.Sort(left)
	r.c.noteFew("not laid out as one pass, so not replayed", left)
	said := map[int]bool{}
	for _, change := range r.laid.Changes {
		if said[change.Port] {
			continue // the first is enough
		}
		said[change.Port] = true
		at := r.Ports[r.laid.of[change.Port]]
		text := fmt.Sprintf("forward pass %d, sequence %d, position %d: %s %s %s", change.Pass, change.Sequence, change.Position, at.Layer, at.Name, change.Text)
		if !math.IsNaN(change.RelL2) {
			text += fmt.Sprintf(", off by relative L2 %.3g", change.RelL2)
		}
		r.c.Note(text)
	}
}

// lineage is what the program says of a value.
type lineage struct{ fed, sorted, order bool }

// lineages says of each value whether it hangs on the model's inputs, and whether its rows may lie in an
// order that was sorted from data.
func lineages(p *program.Program) []lineage {
	out := make([]lineage, len(p.Values))
	for i, v := range p.Values {
		out[i].fed = v.Input != ""
	}
	for i := range p.Ops {
		o := &p.Ops[i]
		var h lineage
		for _, id := range o.Operands() {
			h.fed = h.fed || out[id].fed
			h.sorted = h.sorted || out[id].sorted || out[id].order && slices.Contains(selections, o.Name)
			h.order = h.order || out[id].order
		}
		h.order = h.order || slices.Contains(sorts, o.Name) && h.fed
		for _, id := range o.Out {
			if id != program.None {
				out[id] = h
			}
		}
	}
	return out
}

// sorts make orders, and selections put rows in an order that they are given.
var (
	sorts      = []string{"sort", "argsort"}
	selections = []string{"index", "index_select", "gather"}
)

// shifted says how the positions that a forward pass was given are others, where a tensor of them is wrong; nil for other
// tensors, and where passes were not laid out.
func (c *Comparison) shifted(target *Port) *diagnose.Cause {
	if target == nil || target.Golden.DType().IsFloat() || target.Golden.Len() == 0 {
		return nil
	}
	golden := vec.ReadAll(target.Golden)
	for _, r := range c.replays {
		t := r.portOf(target)
		if t < 0 || r.laid == nil || r.laid.Ports[r.laid.at[t]] == nil {
			continue
		}
		laid, pass := r.laid.Ports[r.laid.at[t]], r.k.Along.Index(target.Step)
		at := map[*path.Run][]int{} // cells of the pass, by run
		least := math.MaxInt
		for i, cell := range r.laid.Grid.Cells {
			if laid.Pass[i] == pass && cell.Run != nil {
				at[cell.Run] = append(at[cell.Run], i)
				least = min(least, cell.Position)
			}
		}
		begin := int(slices.Min(golden)) - least // of a table: that of RoBERTa at 2
		if laid.Tensor.Len() != len(laid.Own) || begin < 0 || begin > mostBegin || !countsOn(golden) {
			continue // ids, say
		}
		for _, cells := range at {
			if text := r.laid.shift(laid, cells, begin); text != "" {
				return &diagnose.Cause{ID: "state/position", Layer: target.Layer, Proven: true, Text: text}
			}
		}
	}
	return nil
}

// countsOn reports whether each number is one more than that before it, or begins again, lower.
func countsOn(x []float64) bool {
	for i := 1; i < len(x); i++ {
		if x[i] != x[i-1]+1 && x[i] >= x[i-1] {
			return false
		}
	}
	return true
}

// shift says what the positions of the rows of a forward pass are; "" where they are right, or no such thing.
func (l *laidOut) shift(laid *path.Laid, cells []int, begin int) string {
	is := func(i int) int { return int(laid.Tensor.At(i)) }
	off := func(i int) int { return is(i) - l.Grid.Cells[i].Position - begin }
	by := off(cells[0])
	same := !slices.ContainsFunc(cells, func(i int) bool { return off(i) != by })
	from := l.Grid.Cells[cells[0]].Position
	_, width := l.in.Passes[laid.Pass[cells[0]]].Size()
	switch {
	case same && by == 0:
		return ""
	case same && by == -from:
		return "the positions of the forward pass begin at 0 again"
	case same && by == width-len(cells):
		return fmt.Sprintf("the positions count the padding in front, %d rows", by)
	case same:
		return fmt.Sprintf("the positions of the forward pass are off by %+d", by)
	case !slices.ContainsFunc(cells, func(i int) bool { return is(i) != is(cells[0]) }):
		return fmt.Sprintf("all tokens of the forward pass have position %d", is(cells[0]))
	}
	return ""
}
