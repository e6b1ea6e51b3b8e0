package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

func labels(r *dump.Run) (out []string) {
	for _, e := range r.Entries {
		out = append(out, e.Label())
	}
	return out
}

func floats(t *testing.T, r *dump.Run, step, layer, port string) []float64 {
	t.Helper()
	e, ok := r.Find(step, layer, port)
	require.True(t, ok, "%s-%s in %s", layer, port, labels(r))
	return values(e.Tensor)
}

func values(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	for i := range out {
		out[i] = x.At(i)
	}
	return out
}

func TestLiveTorchRecordsEverything(t *testing.T) {
	r := run(t, engine.Job{Model: engine.Model{Task: "module", Oracle: "testdata/odd.py"},
		SanityTokens: 1, Cases: []engine.Case{{Name: "a"}}}).Runs[0]
	assert.Equal(t, []string{
		"model.norm-input_0", "model.norm-output",
		"model.inner-input_0", "model.inner-input_scale", "model.inner-input_flags.0", "model.inner-output_0",
		"model.inner-output_1.half_of_it",
		"model.relu-input_0", "model.relu-output",
		"model.norm(2)-input_0", "model.norm(2)-output",
		"model-input_x", "model-input_mask", "model-output_left", "model-output_right.0",
	}, labels(r), "in the order in which modules end, inputs before outputs")
	assert.Equal(t, floats(t, r, "0", "model.inner", "output_0"), floats(t, r, "0", "model.relu", "input_0"),
		"an input is copied before it is changed in place")
	assert.NotEqual(t, floats(t, r, "0", "model.relu", "input_0"), floats(t, r, "0", "model.relu", "output"))
}

func TestLiveTorchFloat64(t *testing.T) {
	j := engine.Job{Model: engine.Model{Task: "module", Oracle: "testdata/odd.py"}, Encoding: "float64", Cases: []engine.Case{{Name: "a"}}}
	r := run(t, j).Runs[0]
	for _, e := range r.Entries {
		if e.Port == "input_mask" || e.Port == "input_flags.0" {
			assert.Equal(t, tensor.Bool, e.Tensor.DType(), e.Label())
		} else {
			assert.Equal(t, tensor.F64, e.Tensor.DType(), "%s: float64 from the inputs on", e.Label())
		}
	}
	assert.Equal(t, "float64", r.Info.Encoding.Compute)
}

// What torch has no float64 for is no crash, and nothing is computed in a coarser type in secret.
func TestLiveTorchHasNoFloat64(t *testing.T) {
	j := engine.Job{Model: engine.Model{Task: "module", Oracle: "testdata/grouped.py"}, Encoding: "float64", Cases: []engine.Case{{Name: "a"}}}
	_, err := tryRun(t, j)
	var model *engine.Error
	require.ErrorAs(t, err, &model)
	assert.ErrorContains(t, err, "grouped_mm in float64")
	assert.ErrorContains(t, err, "take float64 out of references")
}

// The model returns the same with and without hooks; without them nothing else is recorded.
func TestLiveTorchObserver(t *testing.T) {
	j := engine.Job{Model: engine.Model{Task: "module", Oracle: "testdata/oracle.py"},
		Observer: engine.Seen, Cases: []engine.Case{{Name: "a", TokenIDs: [][]int{{1, 5, 9}}}}}
	seen := run(t, j)
	assert.Greater(t, len(seen.Runs[0].Entries), 10)
	j.Observer = engine.Blind
	blind := run(t, j)
	require.Equal(t, []string{"returned-output_0"}, labels(blind.Runs[0]))
	file, err := seen.Returned(0, "0")
	require.NoError(t, err)
	defer file.Close()
	returned, ok := file.Lookup("returned-output_0")
	require.True(t, ok)
	assert.Equal(t, values(blind.Runs[0].Entries[0].Tensor), values(returned))
}

// A decode step with a cache equals the last row of a full forward pass over the prompt and the
// forced tokens.
func TestLiveTorchDecodes(t *testing.T) {
	model := tinyLlama(t)
	prompt, forced := []int{72, 101, 108}, []int{7, 300, 12}
	j := engine.Job{Model: engine.Model{Path: model, Task: "text-generation"}, Encoding: "float64", Cases: []engine.Case{
		{Name: "steps", TokenIDs: [][]int{prompt}, Steps: 4, Forced: [][]int{forced}},
		{Name: "whole", TokenIDs: [][]int{slices.Concat(prompt, forced)}},
		{Name: "batch", TokenIDs: [][]int{prompt, {5}}, Steps: 2},
		{Name: "alone", TokenIDs: [][]int{{5}}, Steps: 2},
	}}
	r := run(t, j)
	assert.Equal(t, slices.Concat(prompt, forced), r.About[0].Sequence[0][:6])
	whole, ok := r.Runs[1].Find("0", "model", "output_logits")
	require.True(t, ok)
	width := whole.Tensor.RowLen()
	assert.Equal(t, 6*width, whole.Tensor.Len())
	for step := 1; step <= 3; step++ {
		got := floats(t, r.Runs[0], []string{"", "1", "2", "3"}[step], "model", "output_logits")
		want := values(whole.Tensor)[(2+step)*width : (3+step)*width]
		assert.InDeltaSlice(t, want, got, 1e-12, "step %d", step)
		require.Len(t, got, width)
	}
	assert.Equal(t, [][]int{{1, 1, 1}, {0, 0, 1}}, r.Runs[2].Info.PadMask, "a shorter prompt is padded in front")
	batch, alone := floats(t, r.Runs[2], "1", "model", "output_logits"),
		floats(t, r.Runs[3], "1", "model", "output_logits")
	assert.InDeltaSlice(t, alone, batch[width:], 1e-12, "padding changes nothing, not even in decode steps")
}

const template = "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}{% endfor %}" +
	"{% if add_generation_prompt %}>{% endif %}"

func TestLiveTorchChat(t *testing.T) {
	model := tinyLlama(t)
	file := filepath.Join(t.TempDir(), "chat.jinja")
	require.NoError(t, os.WriteFile(file, []byte(template), 0o644))
	messages := []dump.Message{{Role: "system", Content: "be short"}, {Role: "user", Content: "hi"}}
	j := engine.Job{Model: engine.Model{Path: model, Task: "text-generation"}, Cases: []engine.Case{{Name: "chat", Messages: messages}}}
	_, err := tryRun(t, j)
	var usage *engine.Error
	require.ErrorAs(t, err, &usage, "a tokenizer without a template")
	assert.Contains(t, usage.Hint, "chat_template")

	j.Cases = []engine.Case{{Name: "chat", Messages: messages, ChatTemplate: file},
		{Name: "text", Prompts: []string{"<s>be short<u>hi>"}}}
	r := run(t, j)
	// <s> is one token, both in a prompt and in a template.
	assert.Equal(t, r.Runs[1].Info.Tokens(), r.Runs[0].Info.Tokens(), "the template's text, and nothing more")

	require.NoError(t, os.WriteFile(filepath.Join(model, "chat_template.jinja"),
		[]byte(strings.ReplaceAll(template, "<", "[")), 0o644))
	j.Cases = []engine.Case{{Name: "own", Messages: messages}, {Name: "file", Messages: messages, ChatTemplate: file},
		{Name: "text", Prompts: []string{"[s>be short[u>hi>"}}}
	r = run(t, j)
	assert.Equal(t, r.Runs[2].Info.Tokens(), r.Runs[0].Info.Tokens(), "the tokenizer's own template")
	assert.NotEqual(t, r.Runs[0].Info.Tokens(), r.Runs[1].Info.Tokens(), "a file has precedence over it")
}

func TestLiveTorchClassifies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bert")
	python(t, "testdata/tiny_bert.py", dir)
	r := run(t, engine.Job{Model: engine.Model{Path: dir, Task: "text-classification"}, SanityTokens: 1, Cases: []engine.Case{
		{Name: "one", Prompts: []string{"abc"}}, {Name: "two", Prompts: []string{"abc", "z"}},
	}})
	assert.Contains(t, r.About[0].ModelClass, "BertForSequenceClassification")
	assert.Equal(t, [][]int{{2, 4, 5, 6, 3}}, r.Runs[0].Info.Tokens())
	one := floats(t, r.Runs[0], "0", "model", "output_logits")
	require.Len(t, one, 3)
	assert.InDeltaSlice(t, one, floats(t, r.Runs[1], "0", "model", "output_logits")[:3], 1e-5,
		"padding of a batch is masked")
	assert.Equal(t, [][]int{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}, r.Runs[1].Info.PadMask)
}

func TestLiveTorchSanity(t *testing.T) {
	model := tinyLlama(t, "scale", "lm_head.weight", "0")
	llama := engine.Job{Model: engine.Model{Path: model, Task: "text-generation"},
		Cases: []engine.Case{{Name: "a", TokenIDs: [][]int{{72}}}}}
	module := func(name string) engine.Job {
		return engine.Job{Model: engine.Model{Task: "module", Oracle: "testdata/odd.py"}, Cases: []engine.Case{{Name: name}}}
	}
	for _, tt := range []struct {
		job          engine.Job
		want, reason string
	}{
		{llama, "case a: the reference itself generates no text", "the best token is always the first, a special one"},
		{module("nan"), "case nan: the reference itself computes 8 values of 8 that are not finite",
			"no tolerance would help"},
		{module("zero"), "case zero: the reference itself computes 0 everywhere",
			"any dead model would equal such a golden"},
	} {
		tt.job.SanityTokens = 32
		_, err := tryRun(t, tt.job)
		var e *engine.Error
		require.ErrorAs(t, err, &e, tt.reason)
		assert.Contains(t, e.Msg, tt.want, tt.reason)
		assert.Contains(t, e.Hint, "look at the tokenizer and the chat template first")
		assert.Contains(t, e.Hint, "skip_sanity")

		tt.job.SkipSanity = "that is the test"
		r := run(t, tt.job)
		require.NotEmpty(t, r.Warnings, tt.reason)
		assert.Contains(t, r.Warnings[0], tt.want)
		assert.Contains(t, r.Warnings[0], "; skip_sanity: that is the test")
	}
	llama.SanityTokens, llama.Cases[0].Arbitrary = 32, true
	_, err := tryRun(t, llama)
	assert.ErrorContains(t, err, "computes 0 everywhere", "what follows tokens that are no text tells nothing, what is computed does")
}

func TestLiveTorchTooOld(t *testing.T) {
	interpreter := live(t)
	for _, tt := range []struct{ name, version, want, reason string }{
		{"torch", "1.13.1", "torch 1.13.1 is too old: 2.5 or later is needed", "no hooks with named arguments"},
		{"transformers", "4.40.0", "transformers 4.40.0 is too old: 4.56 or later is needed", "no dtype="},
	} {
		site, model := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"vocab_size": 10}`), 0o644))
		info := filepath.Join(site, tt.name+"-"+tt.version+".dist-info")
		require.NoError(t, os.MkdirAll(info, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(info, "METADATA"),
			[]byte("Metadata-Version: 2.1\nName: "+tt.name+"\nVersion: "+tt.version+"\n"), 0o644))
		j := engine.Job{Engine: engine.Torch, Model: engine.Model{Path: model, Task: "text-generation"}, Local: true,
			Out:   filepath.Join(t.TempDir(), "dump"),
			Cases: []engine.Case{{Name: "a", TokenIDs: [][]int{{1}}}}}
		_, err := engine.Run(t.Context(), j,
			engine.Options{Python: interpreter, Env: append(os.Environ(), "PYTHONPATH="+site)})
		var infra *engine.Error
		require.ErrorAs(t, err, &infra, tt.reason)
		assert.Contains(t, infra.Msg, tt.want)
		assert.Contains(t, infra.Hint, "pip install '"+tt.name+"==")
	}
}

// TestLivePython runs the Python tests of the recorders of programs and of tensors, and of what rounds as ggml
// and MLX do, bit for bit.
func TestLivePython(t *testing.T) {
	for _, args := range [][]string{{"-m", "unittest", "testdata/test_program.py"}, {"-m", "unittest", "testdata/test_record.py"},
		{"testdata/check_int8.py"}} {
		cmd := exec.CommandContext(t.Context(), live(t), append([]string{"-B"}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH=runner")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.NotContains(t, string(out), "Ran 0 tests")
	}
}

// The program of a run has its labels, and a job for programs alone records the same of config.json.
func TestLiveProgram(t *testing.T) {
	folder := tinyLlama(t)
	j := engine.Job{Model: engine.Model{Path: folder, Task: "text-generation"}, Encoding: "float32", Program: true, KVCache: true, Cases: []engine.Case{
		{Name: "decode", TokenIDs: [][]int{{0, 15, 7, 9, 33}}, Steps: 3, Forced: [][]int{{9, 4}}},
		{Name: "batch", TokenIDs: [][]int{{0, 15, 7, 9}, {0, 5}}},
	}}
	golden := run(t, j)

	config := t.TempDir()
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"), data, 0o600))
	j.Mode, j.Path = engine.ProgramMode, config
	alone := run(t, j)

	for i, run := range golden.Runs {
		p, err := program.Read(run.Program)
		require.NoError(t, err)
		defer func() { assert.NoError(t, p.Close()) }()
		assert.Equal(t, run.Info.Case, p.Case)
		assert.Len(t, p.Passes, len(run.Steps()))
		var recorded, ports []string
		for _, e := range run.Entries {
			recorded = append(recorded, e.Step+"/"+e.Label())
		}
		for _, port := range p.Ports {
			ports = append(ports, port.Step+"/"+port.Layer+"-"+port.Name)
		}
		assert.ElementsMatch(t, recorded, ports)
		assert.Equal(t, "LlamaMLP", run.Info.Modules["model.model.layers.1.mlp"].Class)
		assert.Empty(t, golden.About[i].NoProgram)

		want, err := os.ReadFile(run.Program)
		require.NoError(t, err)
		got, err := os.ReadFile(alone.Runs[i].Program)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
		assert.Empty(t, alone.Runs[i].Entries)
	}
}

// What cannot be recorded without weights is an error of the job that asks for it.
func TestLiveProgramRefused(t *testing.T) {
	folder := tinyLlama(t)
	for _, tt := range []struct {
		change       func(j *engine.Job)
		want, reason string
	}{
		{func(j *engine.Job) { j.Cases[0].Steps = 2 }, "decode steps need forced tokens", "fake logits have no largest one"},
		{func(j *engine.Job) { j.Cases[0].TokenIDs, j.Cases[0].Prompts = nil, []string{"a"} }, "has no token_ids", "no tokenizer is read"},
		{func(j *engine.Job) { j.Frames = "all" }, "unknown frames 'all'", "text, lines or none"},
	} {
		j := engine.Job{Model: engine.Model{Path: folder, Task: "text-generation"}, Mode: engine.ProgramMode, Cases: []engine.Case{{Name: "a", TokenIDs: [][]int{{0, 4}}}}}
		tt.change(&j)
		_, err := tryRun(t, j)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}
