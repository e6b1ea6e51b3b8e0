package judge_test

import (
	"context"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// labelled makes a run of labels. Equal labels hold equal values.
func labelled(t *testing.T, engine, labels string) *dump.Run {
	t.Helper()
	var ports []port
	for name := range strings.FieldsSeq(labels) {
		h := fnv.New32a()
		h.Write([]byte(name))
		ports = append(ports, port{name, wave(t, 1, float64(h.Sum32()%1000), 1, 4, 8)})
	}
	return run(engine, ports...)
}

func TestCoverage(t *testing.T) {
	const blocks = "m.embed-output m.layers.0.up-output m.layers.0-output m.layers.1.up-output m.layers.1-output m.head-output "
	for _, tt := range []struct {
		golden, actual, scope string
		open                  []string
		reason                string
	}{
		{blocks, blocks, "", nil, "all of it"},
		{blocks, "m.embed-output", "", []string{"the final output m.head output was not compared",
			"no output of 2 layers, m.layers.0, m.layers.1, was compared"}, "one of six"},
		{blocks + "m.sampler-output", blocks, "", nil, "engines do not sample in a layer"},
		{blocks + "pooler.dense-output pooler-output", blocks, "", nil, "a pooler is left out for a known reason"},
		{blocks, "m.embed-output m.layers.0-output m.layers.1-output", "head", []string{"no output of m.head was compared"},
			"one layer"},
	} {
		k := judge.Case{Name: "short", Golden: labelled(t, "torch", tt.golden), Actual: labelled(t, "max", tt.actual)}
		var opt judge.Options
		if tt.scope != "" {
			p, err := glob.Compile(tt.scope)
			require.NoError(t, err)
			opt.Scope = []*glob.Pattern{p}
		}
		c, err := judge.Compare(context.Background(), []judge.Case{k}, opt)
		require.NoError(t, err, tt.reason)
		r := c.Report("toy", true)
		require.Len(t, r.Coverage.Open, len(tt.open), "%s: %q", tt.reason, r.Coverage.Open)
		for i, open := range tt.open {
			assert.Contains(t, r.Coverage.Open[i], open, tt.reason)
		}
		want := report.Pass
		if tt.open != nil {
			want = report.Incomplete
		}
		assert.Equal(t, want, r.Verdict, tt.reason)
		assert.LessOrEqual(t, r.Coverage.Compared, strings.Count(tt.actual, "-output"), tt.reason)
	}
}

// What was compared may say nothing: a golden without numbers, and one without any but 0.
func TestCoverageOfNothing(t *testing.T) {
	nan := func(t *testing.T) *tensor.Tensor { return toy.Of(t, []float64{math.NaN(), math.NaN()}, 1, 2) }
	zero := func(t *testing.T) *tensor.Tensor { return toy.Of(t, make([]float64, 16), 1, 16) }
	some := func(t *testing.T) *tensor.Tensor { return toy.Of(t, []float64{math.NaN(), 1}, 1, 2) }
	ones := func(t *testing.T) *tensor.Tensor { return toy.Of(t, slices.Repeat([]float64{1}, 16), 1, 16) }
	none := func(t *testing.T) *tensor.Tensor { return toy.Of(t, []float64{}, 0, 2) }
	for _, tt := range []struct {
		first, last func(*testing.T) *tensor.Tensor
		open        string
		reason      string
	}{
		{some, nan, "the final output m.b output was not compared", "NaN only at the end"},
		{nan, nan, "no output was compared", "NaN only"},
		{zero, zero, "the golden is all zero in every output", "zeros only"},
		{zero, some, "", "a layer of zeros among others"},
		{some, zero, "the final output m.b output is all zero", "zeros at the end, whatever is before it"},
		{some, ones, "", "another number may be what someone wants to compare"},
		{some, none, "the final output m.b output was not compared", "nothing at the end"},
	} {
		golden := run("torch", port{"m.a-output", tt.first(t)}, port{"m.b-output", tt.last(t)})
		actual := run("max", port{"m.a-output", tt.first(t)}, port{"m.b-output", tt.last(t)})
		equal := func(string, string, tensor.DType) (compare.Criteria, string) {
			return compare.Criteria{compare.Atol: 0, compare.Rtol: 0, compare.EqualNaN: 1}, "a test"
		}
		c, err := judge.Compare(context.Background(), []judge.Case{{Name: "short", Golden: golden, Actual: actual}},
			judge.Options{Criteria: equal})
		require.NoError(t, err)
		r := c.Report("toy", true)
		if tt.open == "" {
			assert.Equal(t, report.Pass, r.Verdict, tt.reason)
			continue
		}
		assert.Equal(t, report.Incomplete, r.Verdict, tt.reason)
		assert.Contains(t, strings.Join(r.Coverage.Open, "; "), tt.open, tt.reason)
	}
}

// A candidate of nothing but NaN is wrong, and was compared.
func TestCoverageOfNaN(t *testing.T) {
	golden := run("torch", port{"m.a-output", toy.Of(t, []float64{1, 2}, 1, 2)})
	actual := run("max", port{"m.a-output", toy.Of(t, []float64{math.NaN(), math.NaN()}, 1, 2)})
	r := compareRuns(t, golden, actual).Report("toy", true)
	assert.Equal(t, report.Fail, r.Verdict)
	assert.Equal(t, &report.Coverage{Compared: 1, Outputs: 1}, r.Coverage)
}

// A float64 golden of another run is far from any golden: it must not widen what passes.
func TestForeignFloat64GoldenIsNotUsed(t *testing.T) {
	golden := run("torch", port{"m.a-output", wave(t, 1, 0, 4, 8)})
	wrong := run("max", port{"m.a-output", wave(t, 1.5, 0, 4, 8)})
	for _, tt := range []struct {
		ref    *tensor.Tensor
		used   bool
		reason string
	}{
		{toy.Of(t, doubled(wave(t, 1, 0, 4, 8)), 4, 8), true, "of this run"},
		{toy.Of(t, doubled(wave(t, -1, 3, 4, 8)), 4, 8), false, "of another prompt"},
	} {
		c := compareRuns(t, golden, wrong, func(k *judge.Case) { k.Golden64 = run("torch", port{"m.a-output", tt.ref}) })
		r := c.Report("toy", true)
		assert.Equal(t, report.Fail, r.Verdict, tt.reason)
		assert.Equal(t, !tt.used, strings.Contains(strings.Join(r.Notes, "; "), "float64 golden is not of this run"), tt.reason)
	}
}

func doubled(x *tensor.Tensor) (v []float64) {
	for i := range x.Len() {
		v = append(v, x.At(i))
	}
	return v
}

// Limits that someone wrote and that anything keeps fail the run, with what would pass.
func TestVacuousLimits(t *testing.T) {
	ports := []port{{"m.layers.0-input_0", wave(t, 3, 1, 4, 8)}, {"m.layers.0-output", wave(t, 1, 0, 4, 8)}, {"m.layers.1-output", wave(t, 1.2, 0, 4, 8)},
		{"m.norm-output", wave(t, 1, 0.2, 4, 8)}}
	golden, actual := run("torch", ports...), run("max", ports...)
	for _, tt := range []struct {
		criteria compare.Criteria
		allow    bool
		want     report.Verdict
		text     string
		reason   string
	}{
		{compare.Criteria{compare.RelL2: 0.01}, false, report.Pass, "", "a limit that means something"},
		{compare.Criteria{compare.Atol: 1000, compare.Rtol: 0}, false, report.Fail, "zeros in place of the golden would pass, too", "zeros"},
		{compare.Criteria{compare.RelL2: 0.5}, false, report.Fail, "the tensor of m.layers.1 in place of the golden would pass, too", "the next block"},
		{compare.Criteria{compare.RelL2: 0.5}, true, report.Pass, "(the tensor of m.layers.1)", "that is allowed, and said"},
	} {
		limits := func(string, string, tensor.DType) (compare.Criteria, string) { return tt.criteria, "f.yaml:3" }
		c, err := judge.Compare(context.Background(), []judge.Case{{Name: "short", Golden: golden, Actual: actual}},
			judge.Options{Criteria: limits, Vacuous: tt.allow})
		require.NoError(t, err)
		r := c.Report("toy", true)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
		text := row(t, r, "m.layers.0-output").Note + strings.Join(r.Notes, "; ")
		assert.Contains(t, text, tt.text, tt.reason)
		if tt.text == "" {
			assert.NotContains(t, text, "vacuous", tt.reason)
		}
	}
	c, err := judge.Compare(context.Background(), []judge.Case{{Name: "short", Golden: golden, Actual: actual}}, judge.Options{})
	require.NoError(t, err)
	assert.Equal(t, report.Pass, c.Report("toy", true).Verdict, "the defaults")
}
