package judge_test

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

const twoBlocks = "m.embed-output m.layers.0.up-output m.layers.0-output m.layers.1.up-output m.layers.1-output m.head-output "

// labelled makes a run of labels, each of which may be followed by = and the label whose values it holds; steps are
// parted by a bar.
func labelled(t *testing.T, engine, labels string) *dump.Run {
	t.Helper()
	var entries []dump.Entry
	for step, labels := range strings.Split(labels, "|") {
		for word := range strings.FieldsSeq(labels) {
			name, values, _ := strings.Cut(word, "=")
			h := fnv.New32a()
			h.Write([]byte(cmp.Or(values, name)))
			layer, port := label.Split(name)
			entries = append(entries, dump.Entry{Step: strconv.Itoa(step), Layer: layer, Port: port,
				Tensor: wave(t, 1, float64(h.Sum32()%1000), 1, 4, 8)})
		}
	}
	return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
}

// compareIn compares labels in a scope.
func compareIn(t *testing.T, golden, actual, scope string) *judge.Comparison {
	t.Helper()
	var opt judge.Options
	if scope != "" {
		p, err := label.CompilePattern(scope)
		require.NoError(t, err)
		opt.Scope = judge.Scope{p}
	}
	return compared(t, judge.Case{Name: "short", Golden: labelled(t, "torch", golden), Actual: labelled(t, "max", actual)}, opt)
}

func TestCoverage(t *testing.T) {
	for _, tt := range []struct {
		golden, compared, scope string
		open                    []string
		reason                  string
	}{
		{twoBlocks, twoBlocks, "", nil, "all of it"},
		{twoBlocks, "m.embed-output", "", []string{"the final output m.head output was not compared",
			"no output of 2 layers, m.layers.0, m.layers.1, was compared"}, "one of six"},
		{twoBlocks, "m.embed-output m.layers.0-output m.layers.1.up-output m.head-output", "", nil,
			"one output of a block is enough: what is inside an engine may not call as layers"},
		{twoBlocks, "m.embed-output m.layers.0.up-output m.layers.0-output m.head-output", "",
			[]string{"no output of m.layers.1 was compared"}, "a block"},
		{twoBlocks, "m.head-output", "", []string{"no output of 2 layers, m.layers.0, m.layers.1, was compared"},
			"the end alone"},
		{twoBlocks + "m-output=m.head-output", twoBlocks, "", nil, "the model returns what its head does"},
		{twoBlocks + "m-output", twoBlocks, "", []string{"the final output m output was not compared"},
			"the model computes something after its head, a softcap"},
		{"embed-output middle-output end-output", "embed-output middle-output", "",
			[]string{"the final output end output was not compared"}, "no layer has a dot, and only the last is the end"},
		{"embed-output middle-output end-output", "embed-output end-output", "", nil, "the same"},
		{twoBlocks + "m.sampler-output", twoBlocks, "", nil, "engines do not sample in a layer"},
		{twoBlocks + "pooler.dense-output pooler-output", twoBlocks, "", nil, "a pooler is left out for a known reason"},
		{"n.0-output n.1-output n.2-input_0=n.1-output n.2-output", "n.0-output n.2-input_0=n.1-output n.2-output", "", nil,
			"an activation in a Sequential, seen as the next one's input"},
		{"n.0-output n.1-output n.2-output", "n.0-output n.2-output", "", []string{"no output of n.1 was compared"},
			"nothing shows it"},
		{"m.layers.0.norm-output m.layers.0.norm(2)-output m.layers.0-output m-output",
			"m.layers.0.norm-output m.layers.0-output m-output", "", nil, "a second call in a block is no block"},
		{"m.layers.0.up-output m.layers.0-output m.layers.0.up(2)-output m.layers.0(2)-output m-output",
			"m.layers.0.up-output m.layers.0-output m-output", "", []string{"no output of m.layers.0(2) was compared"},
			"each call of a shared block"},
		{"m.layers.0.experts.0-output m.layers.0.experts.1-output m.layers.0-output m-output", "m.layers.0-output m-output", "",
			nil, "experts are inside of a block"},

		{"m.layers.0-output m.layers.1.act-output m.head-output", "m.layers.0-output m.head-output", "", nil, "a block of which all may be lacking"},
		{"m.layers.0-output m.layers.1.act-output m.layers.1.up-output m.head-output", "m.layers.0-output m.head-output", "",
			[]string{"no output of m.layers.1 was compared"}, "or a part of it"},
		{"m.layers.0-output m.head-output m.head-output_1", "m.layers.0-output m.head-output", "", nil, "the first output of the last layer is the model's"},
		{"m.layers.0-output m.head-output m.head-output_1", "m.layers.0-output m.head-output_1", "", []string{"the final output m.head output was not compared"}, "the second is not"},
		{twoBlocks, "m.embed-output", "embed", nil, "a scope without twoBlocks"},
		{twoBlocks, "m.embed-output m.layers.1-output", "layers.1", nil, "one block"},
		{twoBlocks, "m.embed-output m.layers.1-output", "layers", []string{"no output of m.layers.0 was compared"},
			"all blocks of a part"},
		{twoBlocks, "m.embed-output m.layers.0-output m.layers.1-output", "head", []string{"no output of m.head was compared"},
			"one layer"},

		{twoBlocks + "m.tail-output", twoBlocks + "m.other-output", "", []string{"the final output m.tail output was not compared"}, "the end"},
		{twoBlocks + "|" + twoBlocks + "|" + twoBlocks, twoBlocks + "| m.layers.0-output m.head-output |", "",
			[]string{"no output of m.layers.1 in step 1 of case short was compared", "no output in step 2 of case short was compared"},
			"where not all forward passes lack something, those that do are named"},
		{twoBlocks, "m.layers.0.up-output", "up", []string{"no output of 2 layers, m.layers.1, m.layers.1.up, was compared"},
			"each layer that matches, and its block"},
	} {
		c := compareIn(t, tt.golden, tt.compared, tt.scope)
		r := c.Report("toy", true)
		assert.Equal(t, tt.open, r.Coverage.Open, tt.reason)
		want := report.Pass
		if tt.open != nil {
			want = report.Incomplete
		}
		assert.Equal(t, want, r.Verdict, tt.reason)
		assert.LessOrEqual(t, r.Coverage.Compared, strings.Count(tt.compared, "-output"), tt.reason)
	}
}

// The blocks of a pattern are asked for as a whole, and not each layer that matches.
func TestDemandBlocks(t *testing.T) {
	open, err := compareIn(t, twoBlocks, "m.layers.0.up-output", "").DemandBlocks("up")
	require.NoError(t, err)
	assert.Equal(t, []string{"no output of m.layers.1 was compared"}, open)
	up, err := label.CompilePattern("up")
	require.NoError(t, err)
	asked := []bool{judge.Scope{up}.Asks("m.layers.0.up"), judge.Scope{up}.Asks("m.layers.0"), judge.Scope{}.Asks("m.layers.0")}
	assert.Equal(t, []bool{true, false, true}, asked)
}

// The model may return what was compared under another name, in another type; and zeros say nothing.
func TestFinalOutput(t *testing.T) {
	x := toy.Of(t, slices.Repeat([]float32{1, 2.5}, 8), 1, 16)
	view := func(to tensor.DType, v ...byte) *tensor.Tensor {
		y, err := tensor.New(to, []int{1, len(v) / to.Size()}, v)
		require.NoError(t, err)
		return y
	}
	for _, tt := range []struct {
		final  *tensor.Tensor
		covers bool
		open   []string
		reason string
	}{
		{x, false, nil, "the same"},
		{view(tensor.BF16, slices.Repeat([]byte{0x80, 0x3f, 0x20, 0x40}, 8)...), false, nil, "the same numbers in another type"},
		{view(tensor.BF16, slices.Repeat([]byte{0x80, 0x3f, 0x21, 0x40}, 8)...), false, []string{"the final output m output was not compared"}, "others"},
		{toy.Of(t, slices.Repeat([]float32{1, 2.5}, 4), 1, 8), false, []string{"the final output m output was not compared"}, "a part of them"},
		{toy.Of(t, slices.Repeat([]float32{1, 2.5}, 8), 16), false, nil, "in another shape"},
		{toy.Of(t, slices.Repeat([]float64{1, 2.5}, 8), 16), false, []string{"the final output m output was not compared"}, "in another shape and type nothing is known"},
		{toy.Of(t, slices.Repeat([]int64{1, 2}, 8), 1, 16), false, []string{"the final output m output was not compared"}, "whole numbers"},
		{toy.Of(t, make([]float32, 16), 1, 16), true, []string{"the final output m output is all zero, as that of a model that does nothing"}, "zeros"},
		{toy.Of(t, make([]float32, 15), 1, 15), true, nil, "a few zeros may be what someone wants to compare"},
		{toy.Of(t, append(make([]float32, 5000), 1), 1, 5001), true, nil, "one number after many zeros"},
		{toy.Of(t, make([]int64, 16), 1, 16), true, nil, "token 0"},
	} {
		ports := []port{{"m.head-output", x}, {"m-cache", toy.Of(t, []float32{}, 0)}, {"m-output", tt.final}}
		actual := ports
		if !tt.covers {
			actual = ports[:1]
		}
		assert.Equal(t, tt.open, compareRuns(t, run("torch", ports...), run("max", actual...)).Demand(), tt.reason)
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
		c := compared(t, judge.Case{Name: "short", Golden: golden, Actual: actual}, judge.Options{Criteria: equal})
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
		c := compared(t, judge.Case{Name: "short", Golden: golden, Actual: actual}, judge.Options{Criteria: limits, Vacuous: tt.allow})
		r := c.Report("toy", true)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
		text := row(t, r, "m.layers.0-output").Note + strings.Join(r.Notes, "; ")
		assert.Contains(t, text, tt.text, tt.reason)
		if tt.text == "" {
			assert.NotContains(t, text, "vacuous", tt.reason)
		}
	}
	c := compared(t, judge.Case{Name: "short", Golden: golden, Actual: actual}, judge.Options{})
	assert.Equal(t, report.Pass, c.Report("toy", true).Verdict, "the defaults")
}
