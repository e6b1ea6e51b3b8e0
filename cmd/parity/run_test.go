package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// What run refuses before an engine starts, as usage.
func TestRunUsage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"))
	t.Setenv("PARITY_PYTHON", "no-such-python")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return filepath.Dir(path)
	}
	llama := write("llama/config.json", `{"architectures":["LlamaForCausalLM"]}`)
	bert := write("bert/config.json", `{"architectures":["BertModel"]}`)
	odd := write("odd/config.json", `{"architectures":["Odd"]}`)
	broken := write("broken/config.json", `{"architectures":`)
	empty := write("empty/x", "")
	other := write("other/run.json",
		`{"schema":1,"order":[["0","a","output","a.npy"],["1","a","output","a.npy"]],"token_ids":[[1,2]],"sequence":[[1,2]]}`)
	full := write("full/x", "")

	base := []string{"--engine", "torch", "--model", llama, "--prompt", "a"}
	with := func(more ...string) []string { return append(append([]string{}, base...), more...) }
	for _, tt := range []struct {
		args         []string
		want, reason string
	}{
		{[]string{}, `--engine "": want max, mlx or torch`, "no engine"},
		{[]string{"--engine", "jax"}, `want max, mlx or torch`, "an engine that is not there"},
		{[]string{"--engine", "max"}, "--model is missing", "no model"},
		{[]string{"--engine", "max", "--task", "module", "--model", llama}, "needs --oracle",
			"someone has to build the module"},
		{[]string{"--engine", "max", "--oracle", "gone.py"}, "there is no oracle file gone.py",
			"a file that is not there"},
		{[]string{"--engine", "torch", "--model", llama, "--task", "image-generation"}, "want one of --prompt", "nothing to run"},
		{[]string{"--engine", "torch", "--model", llama, "--path", "decode:2"}, "want --token-ids or --follow", "a path of nothing"},
		{with("--token-ids", "1"), "none of the others can be; [prompt token-ids]", "two inputs"},
		{with("--follow", other), "none of the others can be; [follow prompt]", "two inputs"},
		{with("--device", "tpu"), "want cpu or gpu", "a device that is not there"},
		{with("--num-hidden-layers", "0"), "want a number from 1, or all", "no layers"},
		{with("--num-hidden-layers", "two"), "want a number from 1, or all", "no number"},
		{with("--num-steps", "0"), "--num-steps 0", "no step"},
		{[]string{"--engine", "torch", "--model", bert, "--prompt", "a", "--num-steps", "2"},
			"only text-generation has more", "an embedding decodes nothing"},
		{with("--hf-config-overrides", "[]"), "want a JSON object", "a list has no keys"},
		{with("--filter", "a["), "run: ", "a broken pattern"},
		{with("--print", "full"), "--print is a setting of MAX", "torch prints nothing"},
		{with("--precision", "3"), "--precision is for --print full", "no digits are printed"},
		{[]string{"--engine", "max", "--model", llama, "--prompt", "a", "--print", "full", "--precision", "0"},
			"--precision 0: want a number of digits", "no digits"},
		{with("--revision", "abc"), "--revision is of a hub id", "a folder has none"},
		{[]string{"--engine", "max", "--model", llama, "--follow", other, "--num-steps", "2"},
			"none of the others can be; [follow num-steps]", "two numbers of steps"},
		{with("--path", "decode"), "want --token-ids or --follow", "the tokens of a prompt are not known yet"},
		{with("--path", "sideways"), `--path sideways: `, "no such path"},
		{with("--path", "one-pass"), "what runs without --path", "no path of its own"},
		{with("--path", "batch", "--num-steps", "2"), "none of the others can be; [num-steps path]", "two numbers of passes"},
		{[]string{"--engine", "torch", "--model", bert, "--token-ids", "1,2,3", "--path", "decode"}, "needs a cache", "an encoder has none"},
		{[]string{"--engine", "torch", "--model", llama, "--token-ids", "1,2,3", "--path", "chunked:4"}, "it has 3 tokens, and the path wants 6",
			"too short a prompt"},
		{with("--engine-config", "a=1"), "torch has one setting, attn_implementation=eager", "torch has no such settings"},
		{with("--engine-config", "attn_implementation=2"), "torch has one setting, attn_implementation=eager", "no name"},
		{[]string{"--engine", "torch", "--oracle", filepath.Join(llama, "config.json"), "--engine-config", "attn_implementation=sdpa"},
			"the oracle file makes the model, and chooses", "a setting without an effect"},
		{[]string{"--engine", "max", "--model", llama, "--prompt", "a", "--engine-config", "a"}, "want KEY=VALUE",
			"no value"},
		{[]string{"--engine", "max", "--model", llama, "--prompt", "a", "--print", "loud"},
			"want compact, full, binary or max-checkpoint", "no such style"},
		{[]string{"--engine", "max", "--model", llama, "--prompt", "a", "--encoding", "bfloat16"},
			`MAX has no encoding "bfloat16" on the cpu`, "the limits of MAX are known"},
		{[]string{"--engine", "torch", "--model", llama, "--token-ids", "1,x"}, `"x" is no token id`, "no number"},
		{[]string{"--engine", "torch", "--model", llama, "--token-ids", ","}, "has no token ids", "an empty list"},
		{[]string{"--engine", "torch", "--model", "./gone", "--prompt", "a"}, "there is no model folder ./gone",
			"it can be no hub id"},
		{[]string{"--engine", "torch", "--model", "a/b/c", "--prompt", "a"}, "there is no model folder a/b/c",
			"hub ids have one slash"},
		{[]string{"--engine", "torch", "--model", filepath.Join(llama, "config.json"), "--prompt", "a"}, "is a file",
			"a folder is wanted"},
		{[]string{"--engine", "torch", "--model", "org/gone", "--prompt", "a"}, "give --task",
			"a hub id that is not in the cache"},
		{[]string{"--engine", "torch", "--model", odd, "--prompt", "a"}, `architectures ["Odd"]`,
			"an architecture that says nothing"},
		{[]string{"--engine", "torch", "--model", broken, "--prompt", "a"}, "config.json", "broken JSON"},
		{[]string{"--engine", "torch", "--model", empty, "--prompt", "a"}, "config.json", "no model folder"},
		{[]string{"--engine", "torch", "--model", llama, "--follow", empty}, "a dump that parity run wrote", "no dump"},
		{[]string{"--engine", "torch", "--model", llama, "--follow", other}, "but not the tokens",
			"its decode steps are not listed"},
		{[]string{"--engine", "max", "--model", llama, "--prompt", "a", "--program", "on"}, "--program is for --engine torch",
			"the candidate's program judges nothing"},
		{with("--program", "text"), `--program "text": want on, lines or off`, "no such setting"},
		{[]string{"--engine", "torch", "--model", llama, "--token-ids", "1,2,3", "--path", "repeat:2", "--program", "lines"},
			"the program of one pass judges all paths", "a path has none"},
		{with("-o", other), "--force replaces a dump", "a dump that is there"},
		{with("-o", full, "--force"), "it is no dump", "force is for dumps, not for any folder"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(context.Background(), append([]string{"run"}, tt.args...), &out, &errs)
			assert.Equal(t, exitUsage, code, "%v: %s", tt.args, &errs)
			assert.Contains(t, errs.String(), tt.want, "%v", tt.args)
		})
	}
	assert.FileExists(t, filepath.Join(full, "x"))
}

// What run asks of an engine.
func TestRunJob(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"))
	config := filepath.Join(dir, "hub", "models--org--small", "snapshots", "abc", "config.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o755))
	require.NoError(t, os.WriteFile(config, []byte(`{"architectures":["BertForSequenceClassification"]}`), 0o644))
	refs := filepath.Join(dir, "hub", "models--org--small", "refs", "main")
	require.NoError(t, os.MkdirAll(filepath.Dir(refs), 0o755))
	require.NoError(t, os.WriteFile(refs, []byte("abc\n"), 0o644))

	f := runFlags{engine: engine.Torch, model: "org/small", device: engine.CPU, layers: "all",
		print: engine.PrintCheckpoint, prompts: []string{"a", "b"}, steps: 1}
	job, why, err := f.job()
	require.NoError(t, err)
	assert.Equal(t, "text-classification", job.Task)
	assert.Equal(t, "guessed from BertForSequenceClassification in config.json", why)
	assert.False(t, job.Local)
	assert.Equal(t, "float32", job.Encoding)
	assert.Equal(t, []string{"a", "b"}, job.Cases[0].Prompts)
	assert.Zero(t, job.SanityTokens, "a classification generates nothing")

	f.config = []string{"attn_implementation=sdpa"}
	job, _, err = f.job()
	require.NoError(t, err)
	assert.Equal(t, map[string]any{engine.AttnImplementation: "sdpa"}, job.Config)

	for _, tt := range []struct {
		program, encoding string
		want              bool
		frames, reason    string
	}{
		{"", "", true, "", "by default"},
		{"on", "", true, "", "as by default"},
		{"lines", "", true, engine.FramesLines, "without the source text"},
		{"off", "", false, "", "without"},
		{"", "float32", true, "", "the type of references"},
		{"", "bfloat16", false, "", "what an encoding costs is no program"},
		{"on", "bfloat16", true, "", "if someone asks for it"},
	} {
		f.program, f.encoding = tt.program, tt.encoding
		job, _, err = f.job()
		require.NoError(t, err)
		assert.Equal(t, tt.want, job.Program, tt.reason)
		assert.Equal(t, tt.frames, job.Frames, tt.reason)
	}

	f = runFlags{engine: engine.MAX, model: "org/other", task: "text-generation", device: engine.GPU, layers: "2",
		print: engine.PrintFull, precision: 3,
		ids: []string{"1 2"}, steps: 2, overrides: `{"rope_theta": 1}`,
		config: []string{"max_length=64", "name=x", "eager=true"}, filter: []string{"layers.*"}}
	job, why, err = f.job()
	require.NoError(t, err)
	assert.Empty(t, why)
	assert.Empty(t, job.Encoding, "MAX chooses on the GPU")
	assert.False(t, job.Program, "of torch")
	assert.Equal(t, 2, job.MaxLayers)
	assert.Equal(t, "full", job.Print)
	assert.Equal(t, 3, job.Precision)
	assert.Equal(t, map[string]any{"rope_theta": 1.0}, job.Overrides)
	assert.Equal(t, map[string]any{"max_length": 64.0, "name": "x", "eager": true}, job.Config)
	assert.Equal(t, []string{"layers.*"}, job.Capture.Layers)
	assert.Equal(t, [][]int{{1, 2}}, job.Cases[0].TokenIDs)
}

func TestNumbers(t *testing.T) {
	assert.Equal(t, "1 2 (2)", numbers([]int{1, 2}))
	long := make([]int, 100)
	for i := range long {
		long[i] = i
	}
	assert.Equal(t, "0 1 2 3 4 5 6 7 8 9 10 11 … 88 89 90 91 92 93 94 95 96 97 98 99 (100)", numbers(long))
}

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		version string
		want    bool
		reason  string
	}{
		{"3.10", true, "equal"},
		{"3.9.18", false, "numbers, not text"},
		{"4.0", true, "the first number decides"},
		{"", false, "not known"},
	} {
		assert.Equal(t, tt.want, atLeast(tt.version, "3.10"), tt.reason)
	}
}
