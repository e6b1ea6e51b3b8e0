package judge_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// model is a chain of blocks m.0, m.1 …, each with a layer lin; the output of one is the input of
// the next, byte for byte. change gives the candidate's tensors.
func model(t *testing.T, blocks int,
	change func(label string, x *tensor.Tensor) *tensor.Tensor) (golden, actual *dump.Run) {
	t.Helper()
	var g, a []port
	add := func(label string, x *tensor.Tensor) {
		g, a = append(g, port{label, x}), append(a, port{label, change(label, x)})
	}
	in := wave(t, 1, 0, 1, 6, 8)
	for i := range blocks {
		l := "m." + string(rune('0'+i))
		mid, out := wave(t, 1, float64(10*i+1), 1, 6, 8), wave(t, 1, float64(10*i+2), 1, 6, 8)
		add(l+".lin-input_0", in)
		add(l+".lin-output", mid)
		add(l+"-input_0", in)
		add(l+"-output", out)
		in = out
	}
	add("m-output", wave(t, 1, 0.5, 1, 6, 8))
	return run("torch", g...), run("max", a...)
}

func scaled(t *testing.T, x *tensor.Tensor, by float64) *tensor.Tensor {
	t.Helper()
	w := x.RowLen()
	return change(t, x, func(r, c int) float64 { return x.At(r*w+c) * by })
}

// wrongIn scales the tensors of some labels.
func wrongIn(t *testing.T, labels ...string) func(string, *tensor.Tensor) *tensor.Tensor {
	return func(label string, x *tensor.Tensor) *tensor.Tensor {
		if slices.Contains(labels, label) {
			return scaled(t, x, 1.5)
		}
		return x
	}
}

func TestLocate(t *testing.T) {
	after := []string{"m.1-output", "m.2.lin-input_0", "m.2.lin-output", "m.2-input_0", "m.2-output", "m-output"}
	holds := func(label, other string) func(*testing.T, *dump.Run) {
		return func(t *testing.T, r *dump.Run) {
			i := slices.IndexFunc(r.Entries, func(e dump.Entry) bool { return e.Label() == label })
			j := slices.IndexFunc(r.Entries, func(e dump.Entry) bool { return e.Label() == other })
			r.Entries[i].Tensor = r.Entries[j].Tensor
		}
	}
	for _, c := range []struct {
		name         string
		wrong        []string
		edit         func(*testing.T, *dump.Run)
		kind, layer  string
		inherited    []string // labels
		full, reason string   // full: a label that fails in full
	}{
		{name: "local", wrong: append([]string{"m.1.lin-output"}, after...), kind: "local", layer: "m.1.lin",
			inherited: []string{"m.1-output", "m.2.lin-input_0", "m.2.lin-output", "m.2-output"}, full: "m-output",
			reason: "the model's own output is never excused"},
		{name: "between", wrong: after, kind: "between", layer: "m.1", inherited: []string{"m.2.lin-output"},
			full:   "m.1-output",
			reason: "the place of the verdict fails in full"},
		{name: "capture", edit: holds("m.1-output", "m.0-output"), kind: "capture", layer: "m.1",
			full:   "m.1-output",
			reason: "m.2 got what the reference has as the output of m.1"},
		{name: "one file, no one records the use", edit: holds("m.1.lin-output", "m.0.lin-output"), kind: "capture",
			layer: "m.1.lin", full: "m.1.lin-output",
			reason: "the bytes are those of another layer, and the block around it is right"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, a := model(t, 3, wrongIn(t, c.wrong...))
			if c.edit != nil {
				c.edit(t, a)
			}
			r := compareRuns(t, g, a).Report("toy", true)
			assert.Equal(t, []any{report.Fail, c.kind, c.layer}, []any{r.Verdict, r.Kind, placeOf(r)}, c.reason)
			for _, label := range c.inherited {
				l := row(t, r, label)
				assert.Equal(t, [2]string{"inherited", c.layer}, [2]string{string(l.Status), l.Blame}, label)
				assert.Empty(t, l.Detail, "one line says it")
			}
			assert.Equal(t, report.StatusFail, row(t, r, c.full).Status, c.reason)
		})
	}
}

// Whole numbers in place of floats are no rounding, however near they are.
func TestWholeNumbersAreNoRounding(t *testing.T) {
	x := wave(t, 20, 1, 1, 8, 16)
	whole := make([]int32, x.Len())
	for i := range whole {
		whole[i] = int32(math.Round(x.At(i)))
	}
	in := port{"m.a-input_0", bf16(t, wave(t, 1, 2, 1, 8, 16))}
	r := compareRuns(t, run("torch", in, port{"m.a-output", bf16(t, x)}), run("max", in, port{"m.a-output", toy.Of(t, whole, x.Shape()...)})).Report("toy", true)
	assert.Equal(t, report.Fail, r.Verdict)
	assert.Contains(t, row(t, r, "m.a-output").Note, "whole numbers in place of floats")
}

// Clean pairs of 16 bits exceed the defaults where sums cancel; what a layer makes itself fails.
func TestRoundingOf16Bits(t *testing.T) {
	noisy := func(at string, by float64) *judge.Comparison {
		var g, a []port
		for i, label := range []string{"m.a-input_0", "m.a-output", "m.b-input_0", "m.b-output"} {
			noise := 0.02 // more than one layer of bfloat16 makes, less than its limit
			if label == at {
				noise = by
			}
			x := wave(t, 1, float64(i), 1, 8, 16)
			y := change(t, x, func(r, c int) float64 { return x.At(16*r+c) * (1 + noise*float64((16*r+c)%3-1)) })
			g, a = append(g, port{label, bf16(t, x)}), append(a, port{label, bf16(t, y)})
		}
		return compareRuns(t, run("torch", g...), run("max", a...))
	}
	r := noisy("m.b-output", 0.04).Report("toy", true)
	assert.Equal(t, report.Pass, r.Verdict, "twice what came in, at a limit of 3e-2")
	assert.Contains(t, row(t, r, "m.b-output").Note, "rounding only")
	r = noisy("m.b-output", 0.5).Report("toy", true)
	assert.Equal(t, report.Fail, r.Verdict)
	assert.Equal(t, "m.b", r.FirstDivergence.Layer, "25 times what came in")
}

// What fails for a tolerance that is tighter than noise has no place: each error is within the noise floor, or they add up.
func TestTighterThanNoise(t *testing.T) {
	tight := func(string, string, tensor.DType) (compare.Criteria, string) {
		return compare.Criteria{compare.RelL2: 1e-9}, "f.yaml:3"
	}
	for _, tt := range []struct {
		a, b         float64 // errors in noise floors
		kind, reason string
	}{
		{0.5, 0.9, "", "within the floor"},
		{0.9, 1.6, localise.KindDrift, "the second by little more than the first"},
		{0.1, 1.6, localise.KindLocal, "the second by itself"},
	} {
		x, y := wave(t, 1, 0, 1, 6, 8), wave(t, 1, 1, 1, 6, 8)
		off := func(x *tensor.Tensor, floors float64) *tensor.Tensor {
			return scaled(t, x, 1+floors*compare.Floor(tensor.F32).RelL2)
		}
		side := func(a, b float64) *dump.Run {
			return run("max", port{"m.a-output", off(x, a)}, port{"m.b-input_0", off(x, a)}, port{"m.b-output", off(y, b)})
		}
		c := compared(t, judge.Case{Name: "short", Golden: side(0, 0), Actual: side(tt.a, tt.b)}, judge.Options{Criteria: tight})
		r := c.Report("toy", true)
		assert.Equal(t, [2]any{report.Fail, tt.kind}, [2]any{r.Verdict, r.Kind}, tt.reason)
		assert.Equal(t, tt.kind == "", strings.Contains(strings.Join(r.Notes, "\n"), "what fails is within the noise floor of its type, and no place is named"), tt.reason)
	}
}

func TestUnknownOrder(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	runs := func(by string) *report.Report {
		y, z := wave(t, 1, 1, 1, 6, 8), wave(t, 1, 2, 1, 6, 8)
		g := run("torch", port{"m.a", x}, port{"m.b", y}, port{"m.c", z})
		a := run("max", port{"m.a", x}, port{"m.b", scaled(t, y, 1.5)}, port{"m.c", scaled(t, z, 1.5)})
		g.OrderBy, a.OrderBy = by, by
		return compareRuns(t, g, a).Report("toy", true)
	}
	r := runs(dump.OrderNatural)
	assert.Equal(t, [2]string{"unordered", ""}, [2]string{r.Kind, r.FirstDivergence.Layer})
	assert.Equal(t, []string{"m.b", "m.c"}, r.Frontier)
	assert.Contains(t, r.FirstDivergence.Text, "tensor_names.txt")
	for _, l := range r.Layers[1:] {
		assert.Equal(t, report.StatusFail, l.Status, "%s: no layer is excused", l.Layer)
	}
	assert.Equal(t, "m.b", runs(dump.OrderNames).FirstDivergence.Layer)
}

func bf16(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	data := make([]byte, 0, 2*x.Len())
	for i := range x.Len() {
		b := math.Float32bits(float32(x.At(i)))
		b += 0x7fff + b>>16&1
		data = append(data, byte(b>>16), byte(b>>24))
	}
	out, err := tensor.New(tensor.BF16, x.Shape(), data)
	require.NoError(t, err)
	return out
}

func TestLoadAudit(t *testing.T) {
	after := []string{"m.1-output", "m.2.lin-input_0", "m.2.lin-output", "m.2-input_0", "m.2-output", "m-output"}
	for _, c := range []struct {
		audit       *dump.LoadAudit
		kind, layer string
		text        string
		reason      string
	}{
		{nil, "between", "m.1", "", "no audit"},
		{&dump.LoadAudit{Allowed: []string{"m.2.lin.weight"}}, "between", "m.1", "",
			"what the fixture allows is no finding"},
		{&dump.LoadAudit{Missing: []string{"2.lin.weight"}}, "weights", "m.2.lin", "not those of the checkpoint: 1 missing (2.lin.weight); ", "the layer whose weight is missing"},
		{&dump.LoadAudit{Unused: []string{"other.weight"}}, "weights", "m.1", "not those of the checkpoint: 1 of the checkpoint not used (other.weight); ", "a weight of no layer that was recorded"},
	} {
		g, a := model(t, 3, wrongIn(t, after...))
		a.Info.LoadAudit = c.audit
		r := compareRuns(t, g, a).Report("toy", true)
		assert.Equal(t, [2]string{c.kind, c.layer}, [2]string{r.Kind, r.FirstDivergence.Layer}, c.reason)
		assert.Contains(t, r.FirstDivergence.Text, c.text, c.reason)
	}
	g, a := model(t, 3, wrongIn(t))
	a.Info.LoadAudit = &dump.LoadAudit{Unused: []string{"x"}}
	assert.Nil(t, compareRuns(t, g, a).Verdict, "where nothing fails no one asks")
}

func TestSanity(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	nan := scaled(t, x, math.NaN())
	for _, c := range []struct {
		golden, actual *tensor.Tensor
		want, reason   string
	}{
		{nan, nan, "the golden itself has NaN", "cannot be judged"},
		{x, x, "equal bit for bit", "two engines never agree so well"},
		{x, scaled(t, x, 1+1e-6), "", "as it should be"},
	} {
		notes := compareRuns(t, run("torch", port{"m.a-output", x}, port{"m.b-output", c.golden}),
			run("max", port{"m.a-output", x}, port{"m.b-output", c.actual})).Report("toy", true).Notes
		assert.Contains(t, strings.Join(notes, "\n"), c.want, c.reason)
		assert.Equal(t, c.want == "", len(notes) == 0, c.reason)
	}
}

// What is said of all outputs never stands under a verdict that says something else.
func TestNotesDoNotContradictTheVerdict(t *testing.T) {
	x := wave(t, 1, 0, 1, 6, 8)
	both := []port{{"m.a-output", x}, {"m.b-output", x}}
	said := func(r *report.Report, what string) bool { return strings.Contains(strings.Join(r.Notes, "\n"), what) }
	cmp := compareRuns(t, run("torch", append(both, port{"m.c-output", x})...), run("max", both...))
	assert.True(t, said(cmp.Report("toy", true), "equal bit for bit"), "a doubt about a pass")
	cmp.Layers.Missing("m.c")
	r := cmp.Report("toy", true)
	require.Equal(t, report.Fail, r.Verdict)
	assert.False(t, said(r, "equal bit for bit"), "a layer is missing: %v", r.Notes)
	shape := compareRuns(t, run("torch", append(both, port{"m.c-output", x})...),
		run("max", append(both, port{"m.c-output", wave(t, 1, 0, 1, 6, 4)})...)).Report("toy", true)
	require.Equal(t, report.Fail, shape.Verdict)
	assert.False(t, said(shape, "equal bit for bit"), "a shape is wrong: %v", shape.Notes)

	near := compareRuns(t, run("torch", port{"m.a-output", x}), run("max", port{"m.a-output", scaled(t, x, 1+1e-6)}))
	find(t, near, "m.a-output").Decide(within(1), "a_test.go:1", false)
	assert.False(t, said(near.Report("toy", false), "what fails"), "nothing fails")
}

// The rows stand in the order in which the values existed: what a layer was given before anything
// inside of it, though it was recorded when the layer returned.
func TestOrderOfRows(t *testing.T) {
	after := []string{"m.1.lin-output", "m.1-output", "m.2.lin-input_0", "m.2.lin-output", "m.2-input_0", "m.2-output", "m-output"}
	g, a := model(t, 3, wrongIn(t, append([]string{"m.1.lin-input_0", "m.1-input_0"}, after...)...))
	cmp := compareRuns(t, g, a)
	r := cmp.Report("toy", true)
	var order []string
	for _, l := range r.Layers {
		order = append(order, l.Layer+"-"+l.Port)
	}
	assert.Equal(t, []string{"m.0-input_0", "m.0.lin-input_0", "m.0.lin-output", "m.0-output",
		"m.1-input_0", "m.1.lin-input_0", "m.1.lin-output", "m.1-output",
		"m.2-input_0", "m.2.lin-input_0", "m.2.lin-output", "m.2-output", "m-output"}, order)
	require.NotEmpty(t, r.Failing())
	assert.Equal(t, "m.1 input_0", r.Failing()[0].Layer+" "+r.Failing()[0].Port, "the fault comes first")
	for _, x := range report.Depth(r) {
		if mse, _ := x.Error(report.Standard); mse > 0 {
			assert.NotNil(t, x.First, "the line of the plots stands at the first wrong point")
			break
		}
		assert.Nil(t, x.First)
	}

	g, a = model(t, 2, wrongIn(t))
	a.Entries = slices.DeleteFunc(a.Entries, func(e dump.Entry) bool { return e.Layer == "m.0" })
	cmp = compareRuns(t, g, a)
	cmp.Layers.Missing("m.0")
	at := slices.IndexFunc(cmp.Report("toy", true).Layers, func(l report.Layer) bool { return l.Status == report.StatusMissing })
	assert.Equal(t, 2, at, "what is missing has its place too")
}

// Other layers that are wrong by themselves are named with metrics.
func TestOtherFaultsAreNamed(t *testing.T) {
	x := func(i float64) *tensor.Tensor { return wave(t, 1, i, 1, 6, 8) }
	g := []port{{"m.q-input_0", x(0)}, {"m.q-output", x(1)}, {"m.k-input_0", x(0)}, {"m.k-output", x(2)}, {"m-output", x(3)}}
	a := slices.Clone(g)
	a[1].Tensor, a[3].Tensor, a[4].Tensor = scaled(t, x(1), 1.5), scaled(t, x(2), 1.25), scaled(t, x(3), 1.5)
	r := compareRuns(t, run("torch", g...), run("max", a...)).Report("toy", true)
	require.NotNil(t, r.FirstDivergence)
	assert.Equal(t, "m.q", r.FirstDivergence.Layer)
	assert.Contains(t, r.FirstDivergence.Evidence,
		"also wrong by itself: m.k, what goes into it agrees with the golden, and it does not: off by relative L2 0.25, its worst row by 0.25")
}

// Where only outputs were recorded the report names the layer and the one before it, and proves
// nothing.
func TestOutputsOnly(t *testing.T) {
	g, a := model(t, 3, wrongIn(t, "m.1.lin-output", "m.1-output", "m.2.lin-output", "m.2-output", "m-output"))
	a.Entries = slices.DeleteFunc(a.Entries, func(e dump.Entry) bool { return label.IsInput(e.Port) })
	r := compareRuns(t, g, a).Report("toy", true)
	require.NotNil(t, r.FirstDivergence)
	d := r.FirstDivergence
	assert.Equal(t, "in m.1.lin, or between m.0 and m.1.lin", d.Place)
	assert.Equal(t, [4]any{"m.1.lin", "m.0", false, []string{"input_0"}}, [4]any{d.Layer, d.After, d.Proven, d.Uncaptured})
	require.NotEmpty(t, r.Causes, "a factor fits")
	for _, c := range r.Causes {
		assert.False(t, c.Proven, c.ID)
	}
	g, a = model(t, 3, wrongIn(t, "m.1.lin-output", "m.1-output", "m.2.lin-input_0", "m.2-input_0", "m.2.lin-output", "m.2-output", "m-output"))
	r = compareRuns(t, g, a).Report("toy", true)
	assert.Equal(t, [2]any{"", true}, [2]any{r.FirstDivergence.Place, r.FirstDivergence.Proven}, "with inputs it is known")
	assert.True(t, r.Causes[0].Proven)
}

func TestUncapturedArgumentsAreNamed(t *testing.T) {
	g, a := model(t, 2, wrongIn(t, "m.1.lin-output", "m.1-output", "m-output"))
	a.Info.Uncaptured = map[string][]string{"m.1.lin": {"freqs"}, "m.0": {"cache"}}
	r := compareRuns(t, g, a).Report("toy", true)
	require.NotNil(t, r.FirstDivergence)
	assert.Equal(t, []string{"no hook of the candidate sees freqs of m.1.lin"}, r.FirstDivergence.Evidence)
}

// Flat labels name no container. What a later one of them is given was made by the model, so that an error
// between two layers is no other prompt, and what the first is given may be.
func TestFlatLabelsAreNoModels(t *testing.T) {
	for _, names := range [][]string{{"L0_mlp", "L1_mlp", "L2_mlp"}, {"model.embed_tokens", "model.norm", "lm_head"}} {
		side := func(engine string, first, between float64) *dump.Run {
			x := func(i, by float64) *tensor.Tensor { return wave(t, by, i, 1, 4, 8) }
			return run(engine, port{names[0] + "-input_0", x(0, first)}, port{names[0] + "-output", x(1, first)},
				port{names[1] + "-input_0", x(1, first)}, port{names[1] + "-output", x(2, first)},
				port{names[2] + "-input_0", x(3, first*between)}, port{names[2] + "-output", x(4, first*between)})
		}
		c := compareRuns(t, side("torch", 1, 1), side("max", 1, 0.85))
		require.NotNil(t, c.Verdict)
		assert.NotEqual(t, localise.KindInput, c.Verdict.Kind, names[2])
		assert.Equal(t, names[2], c.Verdict.Layer)
		c = compareRuns(t, side("torch", 1, 1), side("max", 0.85, 1))
		if names[0] == "L0_mlp" { // the other may have a model around it
			assert.Equal(t, localise.KindInput, c.Verdict.Kind, names[0])
		}
	}
}

// The outputs of blocks alone, under names that are off by one, or of which the last one is normed.
func TestHeldByNeighbours(t *testing.T) {
	const n = 5
	state := func(i int) *tensor.Tensor { return normal(t, uint64(i), 1, 48, 32) }
	normed := func(x *tensor.Tensor) *tensor.Tensor {
		return change(t, x, func(row, column int) float64 {
			sum := 0.0
			for c := range 32 {
				sum += x.At(row*32+c) * x.At(row*32+c)
			}
			return x.At(row*32+column) / math.Sqrt(sum/32) * (1 + float64(column)/32)
		})
	}
	shifted := func(by int) (out []port) {
		for i := range n {
			out = append(out, port{fmt.Sprintf("model.layers.%d-output", i), state(i + 1 + by)})
		}
		return out
	}
	golden := func(last *tensor.Tensor) []port {
		out := shifted(0)
		out[n-1].Tensor = last
		return out
	}
	logits := func(seed int) port { return port{"lm_head-output", normal(t, uint64(seed), 1, 48, 50)} }
	last := state(n)
	for _, tt := range []struct {
		reason         string
		golden, actual []port
		kind, cause    string
		text           string
	}{
		{"the block after", golden(last), shifted(1), localise.KindCapture, "capture/neighbour", "number i has what the reference has in number i+1, in 4 of 4"},
		{"what is after them is right", append(golden(last), logits(9)), append(shifted(1), logits(9)), localise.KindCapture, "capture/neighbour", "off by one"},
		{"what is after them is wrong, too: then the model is", append(golden(last), logits(9)), append(shifted(1), logits(8)), localise.KindLocal, "", ""},
		{"other numbers", golden(last), shifted(49), localise.KindLocal, "", ""},
		{"the last is normed", golden(last), golden(normed(last)), localise.KindCapture, "capture/normed", "the last of the candidate's model.layers.#-output is already normed"},
		{"that of the reference", golden(normed(last)), golden(last), localise.KindCapture, "capture/normed", "the last of the reference's model.layers.#-output is already normed"},
		{"the last is zero, as the bias of a norm could be", golden(last), golden(change(t, last, func(_, _ int) float64 { return 0 })), localise.KindLocal, "", ""},
		{"the last is wrong", golden(last), golden(normal(t, 77, 1, 48, 32)), localise.KindLocal, "", ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := compared(t, judge.Case{Name: "short", Golden: run("torch", tt.golden...), Actual: run("max", tt.actual...)}, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}})
			r := c.Report("toy", true)
			proven := ""
			for _, k := range r.Causes {
				if k.Proven {
					proven = k.ID
				}
			}
			assert.Equal(t, [2]string{tt.kind, tt.cause}, [2]string{r.Kind, proven})
			assert.Contains(t, r.FirstDivergence.Text, tt.text)
		})
	}
}
