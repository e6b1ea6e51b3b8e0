// Package pattern has the causes that wrong numbers show by themselves: a factor, another order of
// the elements, zeros in some rows, the rounding of a narrow type, the tensor of another layer.
// What an op done wrong explains is in package fault.
//
// A new one is a function in a file of its own, or beside its like, and a line in the catalogue, in
// package cause:
//
//	// Negated is a tensor with the other sign.
//	func Negated(p *Pair) []diagnose.Prediction {
//		return []diagnose.Prediction{p.says("value/sign", op.Scaled(p.Right, -1), 0, 0, "the sign is wrong: −x")}
//	}
package pattern

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Pair is the target's numbers on both sides, in the sampled rows that are not padding.
type Pair struct {
	*diagnose.Scene
	// Right is what the candidate should have: the reference's op on the candidate's own inputs
	// where that is known, else Golden.
	Right, Actual, Golden []float64
	Width                 int
	rows                  []int  // of the target
	marks                 []bool // has true for them; nil for all
}

// Of returns the pair of a scene; nil if its target has no numbers.
func Of(s *diagnose.Scene) *Pair { return diagnose.Shared(s, newPair) }

func newPair(s *diagnose.Scene) *Pair {
	if !s.HasNumbers() {
		return nil
	}
	p := &Pair{Scene: s, Width: s.Target.Width()}
	p.rows, p.marks = s.Rows()
	p.Golden, p.Actual = p.read(s.Target.Golden), p.read(s.Target.Actual)
	if len(p.rows) == 0 || p.Golden == nil || p.Actual == nil {
		return nil
	}
	p.Right = p.Golden
	if g := rebuild.Of(s); g != nil {
		right := g.Right(p.rows)
		if op.Relative(right, p.Golden) < nearGolden*max(s.Target.Floor.RelL2, leastFloor) {
			p.Right = right
		}
	}
	return p
}

// read decodes the pair's rows of a tensor; nil if it does not go row by row with the target.
func (p *Pair) read(t *tensor.Tensor) []float64 {
	w := max(t.RowLen(), 1)
	if t.Len()/w != p.Target.Rows() {
		return nil
	}
	return op.Read(t, w, p.rows)
}

// row is row i of x, of the pair's width.
func (p *Pair) row(x []float64, i int) []float64 { return x[i*p.Width : (i+1)*p.Width] }

// says predicts the pair's rows.
func (p *Pair) says(id string, data []float64, params, rank int, format string, args ...any) diagnose.Prediction {
	return diagnose.Prediction{ID: id, Text: fmt.Sprintf(format, args...), Params: params, Rank: rank, Rows: p.marks,
		Value: &diagnose.Array{Shape: []int{len(p.rows), p.Width}, Data: data}}
}

// guess names a cause without numbers.
func guess(id string, rank int, format string, args ...any) diagnose.Prediction {
	return diagnose.Prediction{ID: id, Rank: rank, Text: fmt.Sprintf(format, args...)}
}

// addition is a target that the reference makes as term + rest.
type addition struct {
	name, other string
	term, rest  []float64 // the candidate's
}

// additions lists the two ways in which a residual connection makes the target; nil if none does.
func (p *Pair) additions() []addition {
	g := rebuild.Of(p.Scene)
	if g == nil {
		return nil
	}
	o, ok := g.Explain(g.Target).(*rebuild.Sum)
	if !ok || len(o.Terms) != 2 || o.Factors[1] != 1 {
		return nil
	}
	e := g.With(g.Target, nil)
	x, y := e.Get(o.Terms[0], p.rows), e.Get(o.Terms[1], p.rows)
	if len(x) != len(p.Right) || len(y) != len(p.Right) {
		return nil
	}
	a, b := o.Terms[0].Owner(), o.Terms[1].Owner()
	return []addition{{a, b, x, y}, {b, a, y, x}}
}
