package judge_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

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
// not accused.
func TestNoiseFloor(t *testing.T) {
	exact := wave(t, 1, 0.3, 1, 6, 8)
	golden, actual, worse := scaled(t, exact, 1.001), scaled(t, exact, 0.999), scaled(t, exact, 0.99)
	g64 := run("torch", port{"m.a-output", toy.Of(t, doubled(exact), 1, 6, 8)})
	for _, c := range []struct {
		actual  *tensor.Tensor
		with64  bool
		verdict report.Verdict
		source  string
		reason  string
	}{
		{actual, false, report.Fail, "default for float32", "no one knows that the reference is off"},
		{actual, true, report.Pass, "3 × the reference's own distance from float64",
			"within three times the reference's distance"},
		{worse, true, report.Fail, "3 × the reference's own distance from float64", "ten times as far"},
	} {
		g, a := run("torch", port{"m.a-output", golden}), run("max", port{"m.a-output", c.actual})
		cmp := compareRuns(t, g, a, func(k *judge.Case) {
			if c.with64 {
				k.Golden64 = g64
			}
		})
		p := find(t, cmp, "m.a-output")
		assert.Equal(t, c.source, p.Source, c.reason)
		r := cmp.Report("toy", true)
		assert.Equal(t, c.verdict, r.Verdict, c.reason)
		assert.Equal(t, c.verdict == report.Pass, p.Agrees, c.reason)
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
