package generation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/tensor"
)

// Positions compares the largest logits of each row of two tensors of one shape, on all cores. A position is
// nil where the golden's row decides nothing.
func Positions(golden, actual *tensor.Tensor, d tensor.DType) []*Position {
	n := golden.RowLen()
	rows := golden.Len() / n
	positions := make([]*Position, rows)
	parts := min(rows, rowParts)
	each.Do(context.Background(), parts, func(part int) error {
		g, a := make([]float64, n), make([]float64, n)
		for row := part; row < rows; row += parts {
			golden.Float64s(g, row*n)
			actual.Float64s(a, row*n)
			positions[row] = position(g, a, d)
		}
		return nil
	})
	return positions
}

// position compares two rows of logits; nil where the golden's decides nothing. Most rows have the same
// largest logit and no error that stands out, which one look shows: of n logits of which four alone are
// off, these have √n/2 times the error of the row, and of infinite ones it is no number.
func position(g, a []float64, d tensor.DType) *Position {
	if isLevel(g) {
		return nil
	}
	top, own, n := floats.MaxIdx(g), floats.MaxIdx(a), float64(len(g))
	e := floats.SubTo(make([]float64, len(g)), a, g)
	mean := floats.Sum(e) / n
	spread := math.Sqrt(max(floats.Dot(e, e)/n-mean*mean, 0))
	most := floats.Norm(e, math.Inf(1)) + math.Abs(mean)
	if top == own && !isLevel(a) && most <= min(standsOut, math.Sqrt(n)/2.2)*spread {
		return &Position{Choice: Same, Reference: top, Candidate: top, Said: -1}
	}
	golden := NewRow(g)
	if golden.Bad() > 0 || len(golden.Top) == 0 {
		return nil
	}
	pos := Compare(golden, NewRow(a), golden.Top[0].Token, -1, d)
	return &pos
}

// isLevel reports whether all of several numbers are equal: none of them is the largest.
func isLevel(x []float64) bool {
	return len(x) > 1 && !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

// Ahead says in words by how much the reference's token is ahead of the candidate's.
func (p *Position) Ahead() string {
	switch {
	case math.IsNaN(p.Gap):
		return "and the candidate's logits are not finite"
	case p.Choice == Tie:
		return fmt.Sprintf("ahead by %.2g of the noise: a tie", p.Gap)
	}
	return fmt.Sprintf("ahead by %.3g times the noise", p.Gap)
}

// Surest returns the largest probability of all rows of logits; 1 where a row has none.
func Surest(logits *tensor.Tensor) (most float64) {
	n := logits.RowLen()
	x := make([]float64, n)
	for row := range logits.Len() / n {
		logits.Float64s(x, row*n)
		r := NewRow(x)
		if r.Bad() > 0 || len(r.Top) == 0 {
			return 1
		}
		most = max(most, math.Exp(r.LogProb(r.Top[0].Token)))
	}
	return most
}

// Last returns the largest logit of the last row, and its probability.
func Last(logits *tensor.Tensor) (token int, probability float64, err error) {
	x := make([]float64, logits.RowLen())
	logits.Float64s(x, logits.Len()-len(x))
	r := NewRow(x)
	switch {
	case r.Bad() > 0 || len(r.Top) == 0:
		return 0, 0, fmt.Errorf("are not finite")
	case r.Constant():
		return 0, 0, fmt.Errorf("are all %.4g: none is the largest", r.Top[0].Value)
	}
	return r.Top[0].Token, math.Exp(r.LogProb(r.Top[0].Token)), nil
}
