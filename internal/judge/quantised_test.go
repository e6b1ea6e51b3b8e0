package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/tensor"
)

// What quantisation and the rounding of inputs cost the reference stands beside each output.
func TestCostsOfQuantisation(t *testing.T) {
	y := normal(t, 2, 1, 12, 32)
	side := func(path string, y *tensor.Tensor) *dump.Run {
		r := run(path, port{"m.a-output", y})
		r.Path = path
		return r
	}
	c := compareRuns(t, side("torch", y), side("max", y), func(k *judge.Case) {
		k.Unquantised, k.Unrounded = side("full", scaled(t, y, 1.5)), side("plain", plus(t, y, 3, 0.01))
	})
	q := row(t, c.Report("toy", true), "m.a-output").Quantisation
	require.NotNil(t, q)
	require.NotNil(t, q.Activations)
	assert.InDelta(t, 1.0/3, float64(q.Cost), 1e-6)
	assert.InDelta(t, 0.01, float64(*q.Activations), 0.002)
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
		{one("other", "[[1,3]]"), "token 1 of sequence 0 is 2 in the golden and 3 in the reference on the weights before quantisation"},
	} {
		k := judge.Case{Name: "short", Golden: one("golden", "[[1,2]]"), Actual: one("actual", "[[1,2]]"), Unquantised: tt.other}
		_, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		assert.ErrorContains(t, err, tt.want)
	}
}
