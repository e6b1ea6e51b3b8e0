package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/onepass"
	"github.com/goparity/goparity/internal/vec"
)

// shifted says how the positions that a forward pass was given are others, where a tensor of them is wrong; nil for other
// tensors, and where passes were not laid out.
func (c *Comparison) shifted(target *Port) *diagnose.Cause {
	if target == nil || target.Golden.DType().IsFloat() || target.Golden.Len() == 0 {
		return nil
	}
	for _, r := range c.replays {
		t := slices.IndexFunc(r.ports, func(of []*Port) bool { return slices.Contains(of, target) })
		if t < 0 || r.laid == nil || r.laid.Ports[r.laid.at[t]] == nil {
			continue
		}
		laid, pass := r.laid.Ports[r.laid.at[t]], r.along.Index(target.Step)
		if laid.Tensor.Len() != len(laid.Own) {
			continue
		}
		at := map[*onepass.Run][]int{} // cells of the pass, by run
		first := -1
		for i, cell := range r.laid.Grid.Cells {
			if laid.Pass[i] == pass && cell.Run != nil {
				at[cell.Run] = append(at[cell.Run], i)
				if first < 0 || cell.Position < r.laid.Grid.Cells[first].Position {
					first = i
				}
			}
		}
		if first < 0 {
			continue
		}
		golden := vec.ReadAll(target.Golden)
		begin := int(slices.Min(golden)) - r.laid.Grid.Cells[first].Position // of a table: that of RoBERTa at 2
		if begin < 0 || begin > mostBegin || !countsOn(golden) {
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
func (l *laidOut) shift(laid *onepass.Laid, cells []int, begin int) string {
	place := func(i int) int { return l.Grid.Cells[i].Position + begin }
	is := func(i int) int { return int(laid.Tensor.At(i)) }
	by := is(cells[0]) - place(cells[0])
	all := func(ok func(i int) bool) bool { return !slices.ContainsFunc(cells, func(i int) bool { return !ok(i) }) }
	same := all(func(i int) bool { return is(i)-place(i) == by })
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
	case all(func(i int) bool { return is(i) == is(cells[0]) }):
		return fmt.Sprintf("all tokens of the forward pass have position %d", is(cells[0]))
	}
	return ""
}
