package judge_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// chained is the program x → a = −x → b's input = 2a, which the model makes → b = −2a.
func chained(t *testing.T, x *tensor.Tensor) *program.Program {
	t.Helper()
	data, _ := x.Bytes()
	value := func(id int, from string) string {
		return fmt.Sprintf(`{"id":%d,"shape":[1,32],"dtype":"float32","from":{%s}}`, id, from)
	}
	p, err := program.Parse("program.json", fmt.Appendf(nil, `{"schema":1,"engine":"torch","case":"short","values":[%s,%s,%s,%s],"ops":[
{"op":"aten.neg.default","args":{"self":"%%0"},"out":["%%1"],"layer":"m.a","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%%1","other":2},"out":["%%2"],"layer":"m","call":1},
{"op":"aten.neg.default","args":{"self":"%%2"},"out":["%%3"],"layer":"m.b","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"m.a-output":["%%1",1,1],"m.b-input_0":["%%2",2,3],"m.b-output":["%%3",3,3]}}]}`,
		value(0, fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(data))), value(1, `"op":0`), value(2, `"op":1`), value(3, `"op":2`)), nil)
	require.NoError(t, err)
	return p
}

// chainedRun is a run of it whose tensors are as much too large as factors say, and rounded.
func chainedRun(t *testing.T, x *tensor.Tensor, rounded func(*tensor.Tensor) *tensor.Tensor, factors ...float64) *dump.Run {
	t.Helper()
	var ports []port
	by := 1.0
	for i, name := range []string{"m.a-output", "m.b-input_0", "m.b-output"} {
		by *= []float64{-1, 2, -1}[i] * factors[i]
		ports = append(ports, port{name, rounded(scaled(t, x, by))})
	}
	return run("max", ports...)
}

func asIs(x *tensor.Tensor) *tensor.Tensor { return x }

// What is wrong within its limits is a warning, and with Strict a failure: of an input at the first output after it.
func TestStrict(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 32)
	evidence := func() (checkpoint.Weights, checkpoint.Config, error) { return checkpoint.Weights{"w": x}, nil, nil }
	for _, tt := range []struct {
		factors []float64
		layer   string
		fails   string // what fails with Strict
		text    string
		reason  string
	}{
		{[]float64{1, 1, 1}, "", "", "", "right"},
		{[]float64{1.00005, 1, 1}, "m.a", "m.a-output", "replayed from the candidate's own tensors it is off by 5e-05", "the first layer"},
		{[]float64{1, 1, 1.00005}, "m.b", "m.b-output", "replayed from the candidate's own tensors it is off by 5e-05", "the last"},
		{[]float64{1, 1.00005, 1}, "m", "m.b-output", "input_0 of m.b: replayed from", "the code between them"},
	} {
		for _, strict := range []bool{false, true} {
			k := judge.Case{Name: "short", Golden: chainedRun(t, x, asIs, 1, 1, 1), Actual: chainedRun(t, x, asIs, tt.factors...), Program: chained(t, x)}
			c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{Strict: strict, Diagnosis: judge.Diagnosis{Evidence: evidence}})
			require.NoError(t, err)
			r := c.Report("toy", true)
			warned := strings.Contains(strings.Join(r.Notes, "\n"), "warning: 1 tensors are within their limits and off by more than their own piece's noise")
			assert.Equal(t, !strict && tt.fails != "", warned, "%s: %v", tt.reason, r.Notes)
			if !strict || tt.fails == "" {
				assert.Equal(t, report.Pass, r.Verdict, tt.reason)
				continue
			}
			assert.Equal(t, report.Fail, r.Verdict, tt.reason)
			require.NotNil(t, r.FirstDivergence, tt.reason)
			assert.Equal(t, tt.layer, r.FirstDivergence.Layer, tt.reason)
			l := row(t, r, tt.fails)
			assert.Equal(t, report.StatusFail, l.Status, tt.reason)
			assert.Contains(t, strings.Join(l.Violations, "\n"), tt.text, tt.reason)
		}
	}
}

// A run of float32 that holds nothing but numbers of bfloat16 is judged as that, though it does not say so.
func TestUnsaidEncoding(t *testing.T) {
	x := wave(t, 1, 0.31, 1, 32)
	narrow := func(x *tensor.Tensor) *tensor.Tensor {
		y := bf16(t, x)
		return change(t, x, func(_, c int) float64 { return y.At(c) })
	}
	for _, tt := range []struct {
		factors []float64
		said    string
		noted   bool
		layer   string
		reason  string
	}{
		{[]float64{1.001, 1.001, 1.001}, "", true, "", "more than one rounding of 16 bits costs nothing"},
		{[]float64{1.001, 1.001, 1.1}, "", true, "m.b", "what is wrong is found"},
		{[]float64{1.001, 1.001, 1.001}, "float32", false, "m.a", "the run says another one"},
	} {
		actual := chainedRun(t, x, narrow, tt.factors...)
		actual.Info.Encoding.Compute = tt.said
		r := compareRuns(t, chainedRun(t, x, asIs, 1, 1, 1), actual, func(k *judge.Case) { k.Program = chained(t, x) }).Report("toy", true)
		assert.Equal(t, tt.noted, strings.Contains(strings.Join(r.Notes, "\n"), "it is judged as bfloat16"), "%s: %v", tt.reason, r.Notes)
		layer := ""
		if r.FirstDivergence != nil {
			layer = r.FirstDivergence.Layer
		}
		assert.Equal(t, tt.layer, layer, tt.reason)
	}
}
