package judge_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// recorded compares two dumps of testdata/causes: blocks of a small model with one planted bug, as
// torch's hooks and MAX wrote them.
func recorded(t *testing.T, golden, actual string, d judge.Diagnosis) *judge.Comparison {
	t.Helper()
	const dir = "testdata/causes"
	return compared(t, judge.Case{Name: "a", Golden: opened(t, dir, golden), Actual: opened(t, dir, actual)}, judge.Options{Diagnosis: d})
}

func TestCausesOfRecordedRuns(t *testing.T) {
	causes := func(actual string, d judge.Diagnosis) *report.Report {
		return recorded(t, "rows-from/ref", actual, d).Report("x", true)
	}
	r := causes("rows-from/cand", judge.Diagnosis{})
	require.Equal(t, report.Fail, r.Verdict)
	require.NotEmpty(t, r.Causes)
	first := r.Causes[0]
	assert.Equal(t, [3]any{"rows/from", "model.model.layers.1.self_attn.o_proj", false}, [3]any{first.ID, first.Layer, first.Proven},
		"garbage: the place is known, no number is")
	clean := causes("rows-from/ref", judge.Diagnosis{})
	assert.Equal(t, report.Pass, clean.Verdict)
	assert.Nil(t, clean.Causes, "no one looks for the cause of a pass")
	assert.Nil(t, causes("rows-from/cand", judge.Diagnosis{Mode: setting.DiagnoseOff}).Causes, "no one asked")
	lost := causes("rows-from/cand", judge.Diagnosis{Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
		return nil, nil, errors.New("the disk is gone")
	}})
	assert.Equal(t, "rows/from", lost.Causes[0].ID, "found without weights too")
	assert.Contains(t, lost.Notes, "the cause was looked for without weights or config: the disk is gone")
}

// What an engine read otherwise than the config at hand stands in the notes.
func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		read   map[string]any
		want   string
		reason string
	}{
		{nil, "", "the run does not say"},
		{map[string]any{"hidden_act": "gelu", "rope_theta": 1e4}, "", "the same"},
		{map[string]any{"hidden_act": "gelu", "rope_theta": 500.0}, "config: theta is 10000, the candidate has 500", "a number"},
		{map[string]any{"hidden_act": "quick_gelu", "rope_theta": 1e4}, "config: activation is gelu, the candidate has quick_gelu", "a name"},
	} {
		c := recorded(t, "rows-from/ref", "rows-from/cand", judge.Diagnosis{
			Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
				return nil, checkpoint.Config{"hidden_act": "gelu", "rope_theta": 1e4}, nil
			}})
		c.Cases[0].Actual.Info.Config = tt.read
		r := c.Report("x", true)
		notes := strings.Join(r.Notes, "\n")
		assert.Equal(t, tt.want != "", strings.Contains(notes, "config: "), "%s: %s", tt.reason, notes)
		assert.Contains(t, notes, tt.want, tt.reason)
	}
}

// The candidate may read a weight that the reference does not, where names tell which it is.
func TestUnreadWeights(t *testing.T) {
	x, own, other := wave(t, 1, 0.3, 4, 8), wave(t, 1, 0.5, 8), wave(t, 1, 2.5, 8)
	p := parsed(t, `{"schema":1,"engine":"torch","case":"short","values":[{"id":0,"shape":[4,8],"dtype":"float32","from":{"input":"x","step":"0"}},
		{"id":1,"shape":[8],"dtype":"float32","from":{"weight":"n.own"}},{"id":2,"shape":[4,8],"dtype":"float32","from":{"op":0}}],
		"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"m","call":1}],
		"passes":[{"step":"0","ops":[0,1],"ports":{"m-input_0":["%0",0,0],"m-output":["%2",1,1]}}]}`)
	by := func(w *tensor.Tensor) *dump.Run {
		return run("max", port{"m-input_0", x}, port{"m-output", change(t, x, func(r, c int) float64 { return x.At(8*r+c) * w.At(c) })})
	}
	for _, tt := range []struct {
		names  [2]string
		found  bool
		reason string
	}{
		{[2]string{"n.own", "n.other"}, true, "a weight of the checkpoint alone"},
		{[2]string{"model.n.own", "model.n.other"}, false, "nothing says what the names of the checkpoint are in the program"},
	} {
		evidence := func() (checkpoint.Weights, checkpoint.Config, error) {
			return checkpoint.Weights{tt.names[0]: own, tt.names[1]: other}, nil, nil
		}
		k := judge.Case{Name: "short", Golden: by(own), Actual: by(other), Program: p}
		causes := compared(t, k, judge.Options{Diagnosis: judge.Diagnosis{Evidence: evidence}}).Report("x", true).Causes
		read := func(c report.Cause) bool {
			return c.Edit != nil && c.Edit.Text == tt.names[0]+" → "+tt.names[1] && c.Proven
		}
		assert.Equal(t, tt.found, slices.ContainsFunc(causes, read), tt.reason)
	}
}

// ALBERT runs one layer three times; the candidates are torch with an edited copy of its code,
// wrong in one of these calls (internal/engine/testdata/tiny_albert.py made the model;
// TestLiveSharedLayers makes such candidates live).
func TestSharedLayers(t *testing.T) {
	dir := filepath.Join("testdata", "albert")
	weights, err := checkpoint.Open(filepath.Join(dir, "model"))
	require.NoError(t, err)
	defer weights.Close()
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "model", "config.json"))
	require.NoError(t, err)
	evidence := func() (checkpoint.Weights, checkpoint.Config, error) { return weights.Tensors, config, nil }
	const shared = "model.encoder.albert_layer_groups.0.albert_layers.0"
	for _, c := range []struct{ candidate, kind, layer, after, before, cause, reason string }{
		{"transposed", "local", ".attention.query(2)", "", "", "linear/transposed", "the weight belongs to all calls"},
		{"scale", "between", ".attention(2)", ".attention.value(2)", ".attention.dense(2)", "attention/scale",
			"q, k and v of the same call"},
		{"residual", "between", "(3)", ".ffn_output(3)", ".full_layer_layer_norm(3)", "residual/missing",
			"the call around it"},
	} {
		ref := opened(t, dir, "ref")
		ran, err := session.OpenProgram(filepath.Join(dir, "ref", dump.ProgramFile), ref.Entries)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ran.Close()) })
		cmp := compared(t, judge.Case{Name: "run", Golden: ref, Actual: opened(t, dir, c.candidate), Program: ran}, judge.Options{Diagnosis: judge.Diagnosis{Evidence: evidence}})
		r := cmp.Report(c.candidate, true)
		require.NotNil(t, r.FirstDivergence, c.reason)
		name := func(layer string) string {
			if layer == "" {
				return ""
			}
			return shared + layer
		}
		assert.Equal(t, [4]string{c.kind, name(c.layer), name(c.after), name(c.before)},
			[4]string{r.Kind, r.FirstDivergence.Layer, r.FirstDivergence.After, r.FirstDivergence.Before}, c.reason)
		require.NotEmpty(t, r.Causes, c.reason)
		assert.Equal(t, [2]any{c.cause, true}, [2]any{r.Causes[0].ID, r.Causes[0].Proven}, c.reason)
		assert.Equal(t, name(c.layer), r.Causes[0].Layer, c.reason)
		assert.NotContains(t, r.Causes[0].Text, "of 1 layers", c.reason)
	}
}

// The same fault in two layers that run one line is one cause, and another one is another.
func TestTwins(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	p := traced(t, x, "3 * x", 1, 3)
	for _, tt := range []struct {
		by     [2]float64
		twins  [][]int
		reason string
	}{
		{[2]float64{6, 6}, [][]int{{2, 2}}, "in both layers"},
		{[2]float64{6, 3}, [][]int{{1, 2}}, "in one of two"},
		{[2]float64{6, 1.5}, [][]int{{1, 2}, {1, 2}}, "two faults of one line"},
	} {
		k := judge.Case{Name: "short", Golden: normedRun(t, x, [4]float64{1, 3, 1, 3}, 0),
			Actual: normedRun(t, x, [4]float64{1, tt.by[0], 1, tt.by[1]}, 0), Program: p}
		c := compared(t, k, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}})
		var twins [][]int
		for _, k := range c.Report("toy", true).Causes {
			if !k.Proven {
				continue
			}
			require.NotNil(t, k.Edit, tt.reason)
			assert.Equal(t, []string{"modeling_x.py:12"}, k.Edit.Lines, tt.reason)
			assert.Equal(t, []string{"modeling_x.py:12 3 * x"}, k.Edit.Code, tt.reason)
			assert.Equal(t, []string{"aten.mul.Tensor", fmt.Sprintf("m.%d.bn:1", len(twins))}, []string{k.Edit.Operator, k.Edit.At}, tt.reason)
			assert.Contains(t, k.Text, fmt.Sprintf(`modeling_x.py:12 3 * x: "other of mul: 3 → %g" reproduces the candidate to`, tt.by[len(twins)]), tt.reason)
			assert.Contains(t, k.Text, fmt.Sprintf("(%d of 2 layers)", tt.twins[len(twins)][0]), tt.reason)
			twins = append(twins, k.Edit.Twins)
		}
		assert.Equal(t, tt.twins, twins, tt.reason)
	}
}

// An edit is tried by its place and text: how far down the candidate is what the program makes, as recorded and with it.
func TestTry(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	right, wrong := [4]float64{1, 3, 1, 3}, [4]float64{1, 6, 1, 1.5}
	p := traced(t, x, "3 * x", 1, 3)
	c := compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, wrong, 0), func(k *judge.Case) { k.Program = p })
	lines, err := c.Operators("bn")
	require.NoError(t, err)
	assert.Equal(t, []string{"m.0.bn:1 mul modeling_x.py:12 3 * x", "m.1.bn:1 mul modeling_x.py:12 3 * x"}, lines)
	for _, tt := range []struct {
		edits   []string
		made    []string
		with    string
		further bool
		err     string
	}{
		{[]string{"m.0.bn:1 scalar 6"}, []string{`m.0.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`},
			"3 of 4 tensors are what the program makes of those before them; the first that is not is output of m.1.bn, off by relative L2 1", true, ""},
		{[]string{"m.0.bn:1 scalar 6", "m.1.bn:1 scalar 1.5"}, nil, "4 of 4 tensors are what the program makes of those before them", true, ""},
		{[]string{"m.1.bn:1 scalar 1.5"}, nil, "3 of 4 tensors are what the program makes of those before them; the first that is not is output of m.0.bn, off by relative L2 0.5", false, ""},
		{[]string{"bn:1 scalar 6"}, []string{`m.0.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`, `m.1.bn:1 "other of mul: 3 → 6", modeling_x.py:12 3 * x`}, "3 of 4 tensors", true, ""},
		{[]string{"m.0.bn:2 scalar 6"}, nil, "", false, "the last operator of m.0.bn is 1"},
		{[]string{"m.0.act:1 scalar 6"}, nil, "", false, "no operator of the reference's program ran in a layer m.0.act itself"},
		{[]string{"6"}, nil, "", false, "want LAYER:OPERATOR KIND"},
	} {
		tried, err := c.Try(t.Context(), tt.edits)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Len(t, tried, 1)
		if tt.made != nil {
			assert.Equal(t, tt.made, tried[0].Edits)
		}
		assert.Equal(t, [3]any{"short", 2, 4}, [3]any{tried[0].Case, tried[0].Before.Right, tried[0].Before.Of})
		assert.Contains(t, tried[0].With.String(), tt.with)
		assert.Equal(t, tt.further, tried[0].Further(), tt.edits)
	}
	_, err = compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, wrong, 0)).Try(t.Context(), []string{"m.0.bn:1 scalar 6"})
	assert.ErrorIs(t, err, judge.ErrNothing)
	_, err = c.Operators("act")
	assert.ErrorContains(t, err, "no operator of a reference's program ran in a layer act")
}
