package judge_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// linear is x·Wᵀ, with each row of x rounded to int8, in one block.
func linear(t *testing.T, x, w *tensor.Tensor, round bool) *tensor.Tensor {
	t.Helper()
	in, out := x.RowLen(), w.Shape()[0]
	rows := x.Len() / in
	y := make([]float32, rows*out)
	for r := range rows {
		most := 0.0
		for i := range in {
			most = max(most, math.Abs(x.At(r*in+i)))
		}
		for c := range out {
			sum := 0.0
			for i := range in {
				v := x.At(r*in + i)
				if round {
					v = math.RoundToEven(v*127/most) * most / 127
				}
				sum += v * w.At(c*in+i)
			}
			y[r*out+c] = float32(sum)
		}
	}
	return toy.Of(t, y, 1, rows, out)
}

// Two products after each other, whose inputs are rounded to int8. A number that lies between two
// whole ones may be rounded either way; what follows from that row is judged by what rounding costs.
func TestRoundedInputs(t *testing.T) {
	const in, rows = 32, 12
	x, w, v := normal(t, 1, 1, rows, in), normal(t, 2, in, in), normal(t, 3, in, in)
	most := 0.0
	for i := range in {
		most = max(most, math.Abs(x.At(5*in+i)))
	}
	nudged := func(to float64) *tensor.Tensor { // one number of row 5, in steps of its block
		return change(t, x, func(r, c int) float64 {
			at := x.At(r*in + c)
			if r == 5 && c == 7 && math.Abs(at) < most {
				return to * most / 127
			}
			return at
		})
	}
	type made struct{ x, y, z *tensor.Tensor }
	make3 := func(x, w, v *tensor.Tensor, round bool) made {
		y := linear(t, x, w, round)
		return made{x, y, linear(t, y, v, round)}
	}
	side := func(engine string, m made, how *dump.Activations) *dump.Run {
		r := run(engine, port{"m.a-input_0", m.x}, port{"m.a-output", m.y}, port{"m.b-input_0", m.y}, port{"m.b-output", m.z})
		r.Path, r.Info.Activations = engine, how
		return r
	}
	how := &dump.Activations{Block: in, Layers: []string{"m.a", "m.b"}}
	tie, below, above := nudged(20.5), nudged(20.4999), nudged(20.5001)
	for _, tt := range []struct {
		reason         string
		golden, actual made
		how            *dump.Activations
		verdict        report.Verdict
		guilty         string
		noted          bool
	}{
		{"equal", make3(tie, w, v, true), make3(tie, w, v, true), how, report.Pass, "", false},
		{"the same, and the golden does not say that it rounds", make3(below, w, v, true), make3(above, w, v, true), nil, report.Fail, "m.a", false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			k := judge.Case{Name: "short", Golden: side("torch", tt.golden, tt.how), Actual: side("max", tt.actual, nil),
				Unquantised: side("full", make3(tie, normal(t, 9, in, in), v, false), nil), Unrounded: side("plain", make3(below, w, v, false), nil)}
			c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
			require.NoError(t, err)
			r := c.Report("toy", true)
			assert.Equal(t, tt.verdict, r.Verdict, report.Headline(r))
			if tt.guilty != "" {
				assert.Equal(t, tt.guilty, r.FirstDivergence.Layer)
			}
			noted := false
			for _, n := range r.Notes {
				noted = noted || strings.HasPrefix(n, "1 of 12 rows that m.a was given, in case short, step 0")
			}
			assert.Equal(t, tt.noted, noted, "%v", r.Notes)
			q := row(t, r, "m.a-output").Quantisation
			require.NotNil(t, q)
			assert.Greater(t, float64(q.Cost), 0.5, "other weights altogether")
			require.NotNil(t, q.Activations)
			assert.InDelta(t, 0.007, float64(*q.Activations), 0.004)
		})
	}
}

func TestUnquantisedRunsAreChecked(t *testing.T) {
	x := normal(t, 1, 1, 4, 8)
	one := func(path, tokens string) *dump.Run {
		r := run("torch", port{"m.a-output", x})
		r.Path, r.Info.TokenIDs = path, []byte(tokens)
		return r
	}
	for _, tt := range []struct {
		other *dump.Run
		want  string
	}{
		{one("actual", "[[1,2]]"), "it is the candidate's own run"},
		{one("other", "[[1,3]]"), "token 1 of sequence 0 is 2 in the golden and 3 in the run"},
	} {
		k := judge.Case{Name: "short", Golden: one("golden", "[[1,2]]"), Actual: one("actual", "[[1,2]]"), Unquantised: tt.other}
		_, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		assert.ErrorContains(t, err, tt.want)
	}
}
