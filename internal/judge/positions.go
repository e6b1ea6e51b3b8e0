package judge

import (
	"fmt"
	"math"
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
	golden := vec.ReadAll(target.Golden)
	for _, r := range c.replays {
		t := r.portOf(target)
		if t < 0 || r.laid == nil || r.laid.Ports[r.laid.at[t]] == nil {
			continue
		}
		laid, pass := r.laid.Ports[r.laid.at[t]], r.laid.along.Index(target.Step)
		at := map[*onepass.Run][]int{} // cells of the pass, by run
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
func (l *laidOut) shift(laid *onepass.Laid, cells []int, begin int) string {
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
