package judge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// TestLargestLogits looks at the final output where it is logits: what is largest in each row is always
// said, and exchanged logits never pass, however small their share of the row's norm.
func TestLargestLogits(t *testing.T) {
	const rows, vocabulary = 5, 1000
	golden := normal(t, 7, 1, rows, vocabulary)
	golden = change(t, golden, func(r, c int) float64 { // a clear winner in each row, but a near-tie in row 3
		switch {
		case c == 10*r:
			return 14
		case r == 3 && c == 99:
			return 13.99
		}
		return golden.At(r*vocabulary + c)
	})
	at := func(r, c int) float64 { return golden.At(r*vocabulary + c) }
	swap := func(row, i, j int) func(r, c int) float64 {
		return func(r, c int) float64 {
			if r == row && c == i {
				return at(r, j)
			}
			if r == row && c == j {
				return at(r, i)
			}
			return at(r, c)
		}
	}
	for _, tt := range []struct {
		encoding string
		actual   func(r, c int) float64
		verdict  report.Verdict
		note     string
		reason   string
	}{
		{"bfloat16", at, report.Pass, "the same in 5 of 5 rows", "the same"},
		{"bfloat16", func(r, c int) float64 { return at(r, c) * 1.01 }, report.Pass, "the same in 5 of 5 rows", "roundings"},
		{"bfloat16", swap(3, 30, 99), report.Pass, "the same in 4 of 5 rows, a tie in 1; the first other one: in row 3 of step 0 it is 99, the golden has 30, " +
			"ahead by", "a near-tie that turned"},
		{"bfloat16", swap(2, 20, 500), report.Fail, "the first other one: in row 2 of step 0 it is 500, the golden has 20, ahead by", "the largest exchanged with another"},
		{"bfloat16", swap(2, largestIn(golden, 2, 20), 501), report.Fail, "the same in 5 of 5 rows", "two that decide nothing, exchanged"},
		{"float32", func(int, int) float64 { return 0 }, report.Fail, "the same in 0 of 5 rows", "equal logits have no largest one, in row 0 neither"},
		{"float32", swap(3, 30, 99), report.Fail, "it is 99, the golden has 30", "no near-tie in float32"},
	} {
		side := func(engine string, x *tensor.Tensor) *dump.Run {
			return in(tt.encoding, run(engine, port{"lm_head-output", x}))
		}
		c := compared(t, judge.Case{Name: "short", Golden: side("torch", golden), Actual: side("max", change(t, golden, tt.actual))}, judge.Options{})
		r := c.Report("x", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		assert.Contains(t, strings.Join(r.Notes, "\n"), tt.note, tt.reason)
		assert.Contains(t, r.Notes[0], "largest logit (lm_head output)", tt.reason)
	}
}

// Among many logits two that are exchanged are within all limits, and no rounding for that.
func TestExchangedLogits(t *testing.T) {
	const vocabulary = 40000
	x := normal(t, 7, 1, 1, vocabulary)
	side := func(first, second float64) *dump.Run {
		return in("bfloat16", run("max", port{"lm_head-output", change(t, x, func(_, c int) float64 {
			switch c {
			case 600:
				return first
			case 601:
				return second
			}
			return x.At(c)
		})}))
	}
	for _, tt := range []struct {
		first, second float64
		wrong         bool
		reason        string
	}{
		{7, 3, false, "the same"},
		{6.98, 3.01, false, "roundings"},
		{3, 7, true, "exchanged"},
	} {
		r := compareRuns(t, side(7, 3), side(tt.first, tt.second)).Report("x", true)
		exchanged := slices.Contains(row(t, r, "lm_head-output").Violations, "in row 0 the logits of 600 601 alone are off, as if they were exchanged: no rounding makes that")
		assert.Equal(t, []bool{tt.wrong, tt.wrong, tt.wrong}, []bool{exchanged, r.Verdict == report.Fail, placeOf(r) == "lm_head"}, tt.reason)
	}
}

// largestIn is the column with the largest element of a row but one.
func largestIn(x *tensor.Tensor, row, but int) (at int) {
	n := x.RowLen()
	for c := range n {
		if c != but && (at == but || x.At(row*n+c) > x.At(row*n+at)) {
			at = c
		}
	}
	return at
}

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		golden, actual []float64
		note           string
		reason         string
	}{
		{[]float64{3, -2, 1}, []float64{3, -2, 1}, "", "a trained head"},
		{[]float64{0.2, -0.1, 0.1}, []float64{0.2, -0.1, 0.1}, "the golden's logits of 3 labels", "a head that a library made up"},
		{[]float64{3, -2, 1}, []float64{0, 0, 0}, "the candidate's logits of 3 labels", "a head of zeros"},
	} {
		c := compared(t, judge.Case{Name: "short", Golden: run("torch", port{"classifier-output", toy.Of(t, tt.golden, 1, 3)}),
			Actual: run("max", port{"classifier-output", toy.Of(t, tt.actual, 1, 3)})}, judge.Options{})
		notes := strings.Join(c.Report("x", true).Notes, "\n")
		if tt.note == "" {
			assert.NotContains(t, notes, "classification head", tt.reason)
		} else {
			assert.Contains(t, notes, tt.note, tt.reason)
		}
	}
}
