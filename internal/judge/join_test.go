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
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// What can be judged of which layer, and why others cannot.
func TestLayers(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	golden := run("torch", port{"m.0.lin-output", x}, port{"m.0-output", x}, port{"m.1.lin-output", x}, port{"m.head-input_0", x}, port{"m.head-output", x},
		port{"m.head/2-output", x}, port{"m.lost-output", x})
	actual := run("max", port{"m.0.lin-output", x}, port{"m.0-output", x}, port{"m.1.lin-output", x}, port{"m.head-input_0", x}, port{"m.head-output", x}, port{"m.head/2-output", x})
	c := compareRuns(t, golden, actual)
	l := c.Layers
	assert.Equal(t, []string{"m.0.lin", "m.0", "m.1.lin", "m.head", "m.head/2"}, l.Judged())
	assert.Equal(t, []bool{true, false}, []bool{l.Continued("m.head"), l.Continued("m.0")}, "m.head/2 goes on from m.head")
	assert.False(t, l.Several())
	runs := l.Runs("m.head")
	require.Len(t, runs, 1)
	assert.Equal(t, []int{1, 1}, []int{len(runs[0].Judged), len(runs[0].Inputs)})
	assert.Empty(t, l.Runs("m.lost"))
	assert.Contains(t, l.Missing("m.lost"), "missing: the candidate did not record m.lost")
	assert.Equal(t, "missing: the candidate did not record an output of m.other", l.Missing("m.other"))
}

// What a test demands and a side lacks is told apart: what the candidate lost, and what the golden has no more.
func TestRequire(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	c := compareRuns(t, run("torch", port{"m.a-output", x}, port{"m.b-output", x}, port{"m.b-output_1", x}), run("max", port{"m.a-output", x}))
	lost, gone := c.Require(map[string]dump.Joined{"short": {"0": {"m.a-output", "m.b-output", "m.b-output_1", "m.c-output"}}})
	assert.Equal(t, [][]string{{"m.b"}, {"m.c"}}, [][]string{lost, gone})
	assert.Equal(t, map[string]dump.Joined{"short": {"0": {"m.a-output"}}}, c.Joined())
}

// The error of a layer on golden inputs is its own, and the rest came in.
func TestSplitOfErrors(t *testing.T) {
	x := toy.Of(t, []float32{3, 4}, 1, 2)
	side := func(mode string, y ...float32) *dump.Run {
		r := run("max", port{"m.a-output", toy.Of(t, y, 1, 2)})
		r.Info.Mode = mode
		return r
	}
	for _, tt := range []struct {
		standard, injected                 []float32
		local, inherited, cosine, worstRow float64
		reason                             string
	}{
		{[]float32{3, 9}, []float32{3, 6}, 2, 3, 1, 0.4, "both in one direction"},
		{[]float32{3, 3}, []float32{3, 6}, 2, 3, -1, 0.4, "against each other"},
		{[]float32{6, 6}, []float32{3, 6}, 2, 3, 0, 0.4, "in two"},
		{[]float32{6, 9}, []float32{3, 6}, 2, 3 * math.Sqrt2, math.Sqrt2 / 2, 0.4, "and between them"},
		{[]float32{5, 4}, []float32{3, 4}, 0, 2, 0, 0, "all of it came in"},
	} {
		c := compareRuns(t, run("torch", port{"m.a-output", x}), side(dump.Standard, tt.standard...), func(k *judge.Case) { k.Injected = side(dump.Injected, tt.injected...) })
		l := row(t, c.Report("toy", true), "m.a-output")
		require.NotNil(t, l.LocalL2, tt.reason)
		got := []float64{float64(*l.LocalL2), float64(*l.InheritedL2), float64(*l.LocalInheritedCosine), float64(l.Injected.RowRelL2)}
		assert.InDeltaSlice(t, []float64{tt.local, tt.inherited, tt.cosine, tt.worstRow}, got, 1e-6, tt.reason)
	}
}

// The answer is the largest logit of the last row, and how sure it is.
func TestAnswer(t *testing.T) {
	logits := toy.Of(t, []float64{9, 0, 0, 0, math.Log(2), 0}, 1, 2, 3)
	a, err := compareRuns(t, run("torch", port{"lm_head-output", logits}), run("max", port{"lm_head-output", logits})).Answer("short")
	require.NoError(t, err)
	assert.Equal(t, [2]any{1, "lm_head output"}, [2]any{a.Argmax, a.Where})
	assert.InDelta(t, 0.5, a.Confidence, 1e-9)
	_, err = compareRuns(t, run("torch", port{"m.norm-output", logits}), run("max", port{"m.norm-output", logits})).Answer("short")
	assert.ErrorContains(t, err, "nothing is answered")
}

// An engine that has the logits of the last token alone is judged by these, in the frame of the golden's.
func TestLastRowAlone(t *testing.T) {
	x := wave(t, 1, 0.3, 2, 3, 8)
	p := programOf(t, []*tensor.Tensor{x}, `"m.norm-output":["%1",1,1],"m.lm_head-output":["%2",2,2]`,
		`m.norm mul.Tensor "self":"%0","other":3`, `m.lm_head mul.Tensor "self":"%1","other":"%1"`)
	// A run in which one row of the norm, and one of the logits, are too large.
	side := func(engine string, norm, logits int, last bool) *dump.Run {
		of := func(row int, f func(v float64) float64) *tensor.Tensor {
			return change(t, x, func(r, c int) float64 {
				v := f(x.At(8*r + c))
				if r == row {
					v *= 1.5
				}
				return v
			})
		}
		y := of(logits, func(v float64) float64 { return 9 * v * v })
		if last {
			v := make([]float32, y.Len())
			y.Float32s(v, 0)
			y = toy.Of(t, append(v[16:24:24], v[40:]...), 2, 8)
		}
		return run(engine, port{"m.norm-output", of(norm, func(v float64) float64 { return 3 * v })}, port{"m.lm_head-output", y})
	}
	for _, tt := range []struct {
		norm, logits int
		last         bool
		place        string
		note         bool
		reason       string
	}{
		{-1, -1, true, "", false, "as recorded"},
		{-1, 5, true, "m.lm_head", false, "the last row of the second sequence"},
		{-1, 2, true, "m.lm_head", false, "and of the first"},
		{5, -1, true, "", true, "the norm is written otherwise: what is made of its row is right"},
		{1, -1, false, "", true, "so it is where all rows are there"},
		{1, -1, true, "m.norm", false, "nothing is made of a row whose logits are not there"},
	} {
		c := compareRuns(t, side("torch", -1, -1, false), side("max", tt.norm, tt.logits, tt.last), func(k *judge.Case) { k.Program = p })
		r := c.Report("toy", true)
		assert.Equal(t, []any{tt.place, tt.note}, []any{placeOf(r), len(r.Stretches) > 0}, tt.reason)
	}
}

// Calls of one layer may be made in another order, as those of a rotary embedding for each kind of layer.
func TestCallsInAnotherOrder(t *testing.T) {
	table := func(scale float64) port { return port{"m.rotary-output", toy.Wave(t, scale, 0, 1, 6, 8)} }
	again := func(p port, label string) port { return port{label, p.Tensor} }
	local, global, wrong := table(1), table(3), table(0.5)
	out := port{"m-output", toy.Wave(t, 2, 1, 1, 6, 8)}
	for _, tt := range []struct {
		first, second port
		want          report.Verdict
		reason        string
	}{
		{local, global, report.Pass, "as the golden"},
		{global, local, report.Pass, "each is what the other call makes"},
		{global, global, report.Fail, "one table for all"},
		{wrong, global, report.Fail, "one is wrong"},
		{global, wrong, report.Fail, "one has the other's place, and the other is wrong"},
	} {
		golden := toy.Run("torch", local, again(global, "m.rotary(2)-output"), out)
		made := out
		if tt.want == report.Fail {
			made.Tensor = toy.Wave(t, 2, 1.5, 1, 6, 8) // what follows from it
		}
		actual := toy.Run("max", again(tt.first, "m.rotary-output"), again(tt.second, "m.rotary(2)-output"), made)
		c := compared(t, judge.Case{Name: "short", Golden: golden, Actual: actual}, judge.Options{})
		r := c.Report("toy", true)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
		if tt.want == report.Fail && assert.NotNil(t, r.FirstDivergence, tt.reason) {
			assert.Contains(t, r.FirstDivergence.Layer, "m.rotary", tt.reason)
		}
	}
}

// A log that shows the digits of every value is judged as a tensor is: a value near zero is noise
// to the last digit.
func TestPrintedInFull(t *testing.T) {
	values := []float32{1, -2, 1e-6, 3}
	for _, tt := range []struct {
		at     int
		add    float32
		pass   bool
		reason string
	}{
		{2, 1e-8, true, "1 % of a value that is nothing beside the others"},
		{0, 1e-3, false, "far beyond float32's noise"},
	} {
		golden := run("torch", port{"m.a-output", toy.Of(t, values, 1, 4)})
		changed := append([]float32(nil), values...)
		changed[tt.at] += tt.add
		actual := run("max", port{"m.a-output", toy.Of(t, changed, 1, 4)})
		actual.Entries[0].Printed = &dump.Printed{Known: []int{0, 1, 2, 3}, Decimals: 9, Relative: true}
		p := find(t, compareRuns(t, golden, actual), "m.a-output")
		assert.Equal(t, tt.pass, p.Base.Pass, tt.reason)
	}
}

// A log that shows some values, to four decimals, tells that something is wrong, and never that all is right.
func TestShortenedLog(t *testing.T) {
	golden := run("torch", port{"m.a-output", toy.Of(t, []float32{1, -2, 5, 3}, 4)}, port{"m.b-output", toy.Of(t, []float32{1, 2}, 2)})
	for _, tt := range []struct {
		shown   []float32
		verdict report.Verdict
		note    string
		reason  string
	}{
		{[]float32{1.00004, -2, 0, 3}, report.Pass, "a log shows 3 of 4 values: they agree, which proves nothing about the rest", "what the decimals hide"},
		{[]float32{1.0002, -2, 0, 3}, report.Fail, "", "more than they hide"},
	} {
		actual := run("max", port{"m.a-output", toy.Of(t, tt.shown, 4)}, port{"m.b-output", toy.Of(t, []float32{1, 2}, 2)})
		actual.Entries[0].Printed = &dump.Printed{Known: []int{0, 1, 3}, Decimals: 4}
		r := compareRuns(t, golden, actual).Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		l := row(t, r, "m.a-output")
		assert.Equal(t, tt.note != "", l.Status == report.StatusIgnored, tt.reason)
		assert.Contains(t, l.Note, tt.note, tt.reason)
	}
}

// interleave interleaves the halves of each head of width d: 0 1 2 3 4 5 becomes 0 3 1 4 2 5.
func interleave(t *testing.T, x *tensor.Tensor, d int) *tensor.Tensor {
	t.Helper()
	out := make([]float32, x.Len())
	for i := range out {
		head, at := i/d*d, i%d
		out[i] = float32(x.At(head + at%2*(d/2) + at/2))
	}
	return toy.Of(t, out, x.Shape()...)
}

func TestMasks(t *testing.T) {
	low := float32(-math.MaxFloat32)
	golden := toy.Of(t, []float32{0, low, low, 0, 0, low, 0, 0, 0}, 1, 1, 3, 3)
	for _, c := range []struct {
		actual *tensor.Tensor
		agrees bool
		reason string
	}{
		{golden, true, "the same"},
		{toy.Of(t, []float32{0, -1e4, -1e4, 0, 0, -1e4, 0, 0, 0}, 1, 1, 3, 3), true, "another number that denies"},
		{toy.Of(t, []float32{0, float32(math.Inf(-1)), float32(math.Inf(-1)), 0, 0, float32(math.Inf(-1)), 0, 0, 0},
			1, 1, 3, 3), true, "infinity denies"},
		{toy.Of(t, []int64{1, 0, 0, 1, 1, 0, 1, 1, 1}, 1, 1, 3, 3), true, "ones allow"},
		{toy.Of(t, []float32{0, 0, -1e4, 0, 0, -1e4, 0, 0, 0}, 1, 1, 3, 3), false, "one more is allowed"},
		{toy.Of(t, []float32{0, -1e4, -1e4, 0, 0, -1e4, 0, 0, -1e4}, 1, 1, 3, 3), false, "one more is denied"},
		{toy.Of(t, []float32{0, -1, -1, 0, 0, -1, 0, 0, 0}, 1, 1, 3, 3), false, "not low enough to deny"},
	} {
		out := wave(t, 1, 0, 1, 3, 4)
		g := run("torch", port{"m.attn-input_attention_mask", golden}, port{"m.attn-output", out})
		a := run("max", port{"m.attn-input_attention_mask", c.actual}, port{"m.attn-output", out})
		cmp := compareRuns(t, g, a)
		p := find(t, cmp, "m.attn-input_attention_mask")
		assert.Equal(t, c.agrees, p.Agrees && !rewritten(p), c.reason)
	}
}

// A float64 golden tells how far off the reference itself is: a candidate that is no further off is
// not accused. One of another run is far from any golden: it must not widen what passes.
func TestNoiseFloor(t *testing.T) {
	exact := wave(t, 1, 0.3, 1, 6, 8)
	golden, actual, worse := scaled(t, exact, 1.001), scaled(t, exact, 0.999), scaled(t, exact, 0.99)
	own, foreign := toy.Of(t, vec.ReadAll(exact), 1, 6, 8), toy.Of(t, vec.ReadAll(wave(t, -1, 3, 1, 6, 8)), 1, 6, 8)
	const byOwn = "3 × the reference's own distance from float64"
	for _, c := range []struct {
		actual, golden64 *tensor.Tensor
		verdict          report.Verdict
		source           string
		reason           string
	}{
		{actual, nil, report.Fail, "default for float32", "no one knows that the reference is off"},
		{actual, own, report.Pass, byOwn, "within three times the reference's distance"},
		{worse, own, report.Fail, byOwn, "ten times as far"},
		{actual, foreign, report.Fail, "default for float32", "of another prompt"},
	} {
		cmp := compareRuns(t, run("torch", port{"m.a-output", golden}), run("max", port{"m.a-output", c.actual}), func(k *judge.Case) {
			if c.golden64 != nil {
				k.Golden64 = run("torch", port{"m.a-output", c.golden64})
			}
		})
		p, r := find(t, cmp, "m.a-output"), cmp.Report("toy", true)
		assert.Equal(t, []any{c.source, c.verdict, c.verdict == report.Pass}, []any{p.Source, r.Verdict, p.Agrees}, c.reason)
		noted := strings.Contains(strings.Join(r.Notes, "; "), "float64 golden is not of this run")
		assert.Equal(t, c.golden64 == foreign, noted, c.reason)
	}
}

func TestFindLayer(t *testing.T) {
	var ports []port
	for i, l := range []string{"model.layers.0.mlp", "model.layers.1.mlp", "model.layers.10.mlp", "model.norm",
		"model.norm(2)", "norm"} {
		ports = append(ports, port{l + "-output", wave(t, 1, float64(i), 1, 4)})
	}
	c := compareRuns(t, run("torch", ports...), run("max", ports[:3]...))
	for _, x := range []struct{ name, want, wrong, reason string }{
		{"model.layers.1.mlp", "model.layers.1.mlp", "", "the label"},
		{"1.mlp", "model.layers.1.mlp", "", "the end of it, cut at a dot: not 10.mlp"},
		{"norm(2)", "model.norm(2)", "", "the second call has a name of its own"},
		{"norm", "norm", "", "a label before the ends of others"},
		{"mlp", "", `"mlp" is the end of 3 layers: model.layers.0.mlp, model.layers.1.mlp, model.layers.10.mlp`,
			"more than one"},
		{"lp", "", `the golden has no layer "lp"`, "not cut at a dot"},
		{"model.layer.1.mlp", "", `did you mean "model.layers.1.mlp"?`, "a typing error"},
		{"", "", `the golden has no layer ""`, "no name"},
	} {
		got, err := c.Layers.Find(x.name)
		assert.Equal(t, x.want, got, x.reason)
		if x.wrong == "" {
			assert.NoError(t, err, x.reason)
		} else {
			assert.ErrorContains(t, err, x.wrong, x.reason)
		}
	}
	for _, x := range []struct {
		pattern string
		want    []string
		wrong   string
		reason  string
	}{
		{"layers.*.mlp", []string{"model.layers.0.mlp", "model.layers.1.mlp", "model.layers.10.mlp"}, "",
			"in execution order"},
		{"layers.1*.mlp", []string{"model.layers.1.mlp", "model.layers.10.mlp"}, "", "a part of a segment"},
		{"**", []string{"model.layers.0.mlp", "model.layers.1.mlp", "model.layers.10.mlp"}, "",
			"those that the candidate has not are left out"},
		{"model.norm*", nil, "the candidate recorded none of the 2 layers that match: model.norm, model.norm(2)",
			"none is left"},
		{"layer.*", nil, "no layer of the golden matches", "no such layer"},
		{"layers.[", nil, "[ is not closed", "a bad pattern"},
	} {
		got, err := c.Layers.Glob(x.pattern)
		assert.Equal(t, x.want, got, x.reason)
		if x.wrong == "" {
			require.NoError(t, err, x.reason)
		} else {
			assert.ErrorContains(t, err, x.wrong, x.reason)
		}
	}
}
