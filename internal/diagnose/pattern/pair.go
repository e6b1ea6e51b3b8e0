// Package pattern has the causes that wrong numbers show by themselves: a factor, another order of
// the elements, zeros in some rows, the rounding of a narrow type, the tensor of another layer.
// What is an edit of the reference's program is in package edit.
//
// A new one is a function in a file of its own, or beside its like, and a line in the catalogue, in
// package cause:
//
//	// Negated is a tensor with the other sign.
//	func Negated(p *pair) []diagnose.Prediction {
//		return []diagnose.Prediction{p.says("value/sign", vec.Scaled(p.Right, -1), 0, 0, "the sign is wrong: −x")}
//	}
package pattern

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// pair is the target's numbers on both sides, in the sampled rows that are not padding.
type pair struct {
	*diagnose.Scene
	// Right is what the candidate should have: the reference's op on the candidate's own inputs
	// where that is known, else Golden.
	Right, Actual, Golden []float64
	Width                 int
	rows                  []int  // of the target
	marks                 []bool // has true for them; nil for all
}

// of returns the pair of a scene; nil if its target has no numbers.
func of(s *diagnose.Scene) *pair {
	if !s.HasNumbers() {
		return nil
	}
	p := &pair{Scene: s, Width: s.Target.Width()}
	p.rows, p.marks = s.Rows()
	p.Golden, p.Actual = p.read(s.Target.Golden), p.read(s.Target.Actual)
	if len(p.rows) == 0 || p.Golden == nil || p.Actual == nil {
		return nil
	}
	p.Right = p.Golden
	if s.Made != nil {
		right := p.read(s.Made)
		if vec.Relative(right, p.Golden) < nearGolden*max(s.Target.Floor.RelL2, leastFloor) {
			p.Right = right
		}
	}
	return p
}

// read decodes the pair's rows of a tensor; nil if it does not go row by row with the target.
func (p *pair) read(t *tensor.Tensor) []float64 {
	w := max(t.RowLen(), 1)
	if t.Len()/w != p.Target.Rows() {
		return nil
	}
	return vec.Read(t, w, p.rows)
}

// row is row i of x, of the pair's width.
func (p *pair) row(x []float64, i int) []float64 { return x[i*p.Width : (i+1)*p.Width] }

// says predicts the pair's rows.
func (p *pair) says(id string, data []float64, params, rank int, format string, args ...any) diagnose.Prediction {
	return diagnose.Prediction{ID: id, Text: fmt.Sprintf(format, args...), Params: params, Rank: rank, Rows: p.marks,
		Value: &diagnose.Array{Shape: []int{len(p.rows), p.Width}, Data: data}}
}

// guess names a cause without numbers.
func guess(id string, rank int, format string, args ...any) diagnose.Prediction {
	return diagnose.Prediction{ID: id, Rank: rank, Text: fmt.Sprintf(format, args...)}
}
