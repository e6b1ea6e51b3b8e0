package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
)

// What run refuses before an engine starts, as usage.
func TestRunUsage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"))
	t.Setenv("PARITY_PYTHON", "no-such-python")
	for file, text := range map[string]string{
		"llama/config.json": `{"architectures":["LlamaForCausalLM"]}`, "bert/config.json": `{"architectures":["BertModel"]}`,
		"odd/config.json": `{"architectures":["Odd"]}`, "broken/config.json": `{"architectures":`, "empty/x": "", "full/x": "",
		"other/run.json": `{"schema":1,"order":[["0","a","output","a.npy"],["1","a","output","a.npy"]],"token_ids":[[1,2]],"sequence":[[1,2]]}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	const base = "--engine torch --model ./llama --prompt a "
	for _, tt := range []struct{ args, want, reason string }{
		{"", `--engine "": want max, mlx or torch`, "no engine"},
		{"--engine jax", `want max, mlx or torch`, "an engine that is not there"},
		{"--engine max", "which model?", "no model"},
		{"--engine max --set task=module --model ./llama", "needs --set oracle=FILE",
			"someone has to build the module"},
		{"--engine max --set oracle=gone.py", "there is no oracle file gone.py", "a file that is not there"},
		{"--engine torch --model ./llama --set task=image-generation", "want one of --prompt", "nothing to run"},
		{"--engine torch --model ./llama --path decode:2", "want --token-ids or --follow", "a path of nothing"},
		{base + "--token-ids 1", "none of the others can be; [prompt token-ids]", "two inputs"},
		{base + "--follow ./other", "none of the others can be; [follow prompt]", "two inputs"},
		{base + "--device tpu", "want cpu or gpu", "a device that is not there"},
		{base + "--set max_layers=0", "want how many blocks run", "no layers"},
		{base + "--set max_layers=two", "want how many blocks run", "no number"},
		{base + "--num-steps 0", "--num-steps 0", "no step"},
		{"--engine torch --model ./bert --prompt a --num-steps 2", "only text-generation has more",
			"an embedding decodes nothing"},
		{base + "--set hf_config_overrides=[]", "want a JSON object", "a list has no keys"},
		{base + "--filter a[", "run: --filter", "a broken pattern"},
		{base + "--set allow_missing=a[", "glob", "a broken pattern"},
		{base + "--set revision=abc", "--set revision is of a hub id", "a folder has none"},
		{base + "--set revisoin=abc", `there is no key "revisoin", did you mean "revision"`, "a slip"},
		{base + "--set speed=abc", "want KEY=VALUE, of the keys activations, allow_missing, engine.", "no such key"},
		{base + "--set task", "want KEY=VALUE", "no value"},
		{base + "--set task=module --set task=embeddings", "it is given twice", "which of them?"},
		{"--engine max --model ./llama --follow ./other --num-steps 2", "none of the others can be; [follow num-steps]",
			"two numbers of steps"},
		{base + "--path decode", "want --token-ids or --follow", "the tokens of a prompt are not known yet"},
		{base + "--path sideways", `--path sideways: `, "no such path"},
		{base + "--path one-pass", "what runs without --path", "no path of its own"},
		{base + "--path batch --num-steps 2", "none of the others can be; [num-steps path]", "two numbers of passes"},
		{"--engine torch --model ./bert --token-ids 1,2,3 --path decode", "needs a cache", "an encoder has none"},
		{"--engine torch --model ./llama --token-ids 1,2,3 --path chunked:4", "it has 3 tokens, and the path wants 6",
			"too short a prompt"},
		{base + "--set engine.a=1", "torch has one setting, attn_implementation=eager", "torch has no such settings"},
		{base + "--set engine.attn_implementation=2", "torch has one setting, attn_implementation=eager", "no name"},
		{"--engine torch --set oracle=./llama/config.json --set engine.attn_implementation=sdpa", "the oracle file makes the model, and chooses",
			"a setting without an effect"},
		{"--engine max --model ./llama --prompt a --encoding bfloat16", `MAX has no encoding "bfloat16" on the cpu`,
			"the limits of MAX are known"},
		{"--engine torch --model ./llama --token-ids 1,x", `"x" is no token id`, "no number"},
		{"--engine torch --model ./llama --token-ids ,", "has no token ids", "an empty list"},
		{"--engine torch --model ./gone --prompt a", "there is no model folder ./gone", "it can be no hub id"},
		{"--engine torch --model a/b/c --prompt a", "there is no model folder a/b/c", "hub ids have one slash"},
		{"--engine torch --model ./llama/config.json --prompt a", "is a file", "a folder is wanted"},
		{"--engine torch --model org/gone --prompt a", "give --set task", "a hub id that is not in the cache"},
		{"--engine torch --model ./odd --prompt a", `architectures ["Odd"]`, "an architecture that says nothing"},
		{"--engine torch --model ./broken --prompt a", "config.json", "broken JSON"},
		{"--engine torch --model ./empty --prompt a", "config.json", "no model folder"},
		{"--engine torch --model ./llama --follow ./empty", "a dump that parity run wrote", "no dump"},
		{"--engine torch --model ./llama --follow ./other", "but not the tokens", "its decode steps are not listed"},
		{"--engine max --model ./llama --prompt a --set program=on", "--set program is for --engine torch",
			"the candidate's program judges nothing"},
		{base + "--set program=text", `"text": want on or lines or off`, "no such setting"},
		{base + "--set weights=all", `"all": want bytes or hashes`, "no such setting"},
		{"--engine torch --model ./llama --token-ids 1,2,3 --path repeat:2 --set program=lines", "the program of one pass judges all paths",
			"a path has none"},
		{base + "-o ./other", "--force replaces a dump", "a dump that is there"},
		{base + "-o ./full --force", "it is no dump", "force is for dumps, not for any folder"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(context.Background(), strings.Fields("run "+tt.args), &out, &errs)
			assert.Equal(t, exitUsage, code, "%v: %s", tt.args, &errs)
			assert.Contains(t, errs.String(), tt.want, "%v", tt.args)
		})
	}
	assert.FileExists(t, filepath.Join("full", "x"))
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

	for _, tt := range []struct {
		args   []string
		want   func(j *engine.Job) bool
		reason string
	}{
		{nil, func(j *engine.Job) bool {
			return j.Task == "text-classification" && !j.Local && j.Encoding == "float32" && len(j.Cases[0].Prompts) == 2
		}, "by the model's config"},
		{nil, func(j *engine.Job) bool { return j.SanityTokens == 0 }, "a classification generates nothing"},
		{nil, func(j *engine.Job) bool { return j.Program && j.Frames == "" }, "by default"},
		{[]string{"--set", "program=lines"}, func(j *engine.Job) bool { return j.Program && j.Frames == engine.FramesLines }, "without the source text"},
		{[]string{"--set", "program=off"}, func(j *engine.Job) bool { return !j.Program }, "without"},
		{[]string{"--encoding", "float32"}, func(j *engine.Job) bool { return j.Program }, "the type of references"},
		{[]string{"--encoding", "bfloat16"}, func(j *engine.Job) bool { return !j.Program }, "what an encoding costs is no program"},
		{[]string{"--encoding", "bfloat16", "--set", "program=on"}, func(j *engine.Job) bool { return j.Program }, "if someone asks for it"},
		{[]string{"--set", "engine.attn_implementation=sdpa"}, func(j *engine.Job) bool { return j.Config[engine.AttnImplementation] == "sdpa" }, "a setting"},
		{[]string{"--set", "weights=hashes", "--set", "trust_remote_code=true"}, func(j *engine.Job) bool { return j.WeightHashes && j.TrustRemoteCode }, "more of them"},
		{[]string{"--engine", "max", "--device", "gpu", "--set", "task=text-generation", "--max-layers", "2", "--num-steps", "2",
			"--set", "hf_config_overrides={\"rope_theta\": 1}", "--set", "engine.max_length=64", "--set", "engine.name=x", "--filter", "layers.*"},
			func(j *engine.Job) bool {
				return j.Encoding == "" && !j.Program && j.MaxLayers == 2 && j.Overrides["rope_theta"] == 1.0 &&
					j.Config["max_length"] == 64.0 && j.Config["name"] == "x" && j.Capture.Layers[0] == "layers.*"
			}, "MAX chooses the encoding on the GPU"},
	} {
		var f runFlags
		c := &cobra.Command{}
		f.add(c)
		require.NoError(t, c.ParseFlags(append([]string{"--engine", "torch", "--model", "org/small", "--prompt", "a", "--prompt", "b"}, tt.args...)))
		require.NoError(t, f.prepare(), tt.reason)
		assert.True(t, tt.want(&f.job), "%s: %+v", tt.reason, f.job)
	}
}

// What compare keeps in a report comes back as its own flags, so that what is printed as the next command says the
// same, and every flag that chooses what is judged is kept.
func TestInputsAreFlags(t *testing.T) {
	var f compareFlags
	c := &cobra.Command{Use: "compare"}
	f.add(c)
	in := filled(t)
	require.NoError(t, c.ParseFlags(in.Args()))
	require.Equal(t, in, f.Inputs)
	shown := []string{"also", "assume", "diagnose", "edit", "json", "mode", "observer", "output", "run", "verbose"}
	kept := in.Args()
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !slices.Contains(shown, flag.Name) {
			assert.Contains(t, kept, "--"+flag.Name, "it chooses what is judged: the report keeps it")
		}
	})
	var files []string
	for _, p := range in.Paths() {
		files = append(files, *p)
	}
	assert.Subset(t, files, []string{"of Golden", "of Noise", "of Weights", "of Names"})
	assert.NotContains(t, files, "of Scope")
}

// filled are inputs of which each is given.
func filled(t *testing.T) (in report.Inputs) {
	n := 7
	v := reflect.ValueOf(&in).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("of " + name)
		case []string:
			f.Set(reflect.ValueOf([]string{"of " + name, "more of " + name}))
		case *int:
			f.Set(reflect.ValueOf(&n))
		case bool:
			f.SetBool(true)
		default:
			t.Fatal("a new type of input: ", f.Type())
		}
	}
	return in
}

// Limits are those of fixture.yaml, by its keys.
func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		limits []string
		err    string
		reason string
	}{
		{[]string{"rel_l2=1e-4", "row_rel_l2=1e-3"}, "", "two limits"},
		{[]string{"equal_nan"}, "", "what can only be turned on needs no value"},
		{[]string{"equal_nan=1"}, "", "and may have one"},
		{[]string{"rel_l3=1"}, "want atol, rtol, rel_l2", "a slip"},
		{[]string{"speed=1"}, "want atol, rtol, rel_l2", "no limit at all"},
		{[]string{"rel_l2"}, "want rel_l2=NUMBER", "a limit without a number"},
		{[]string{"rel_l2=x"}, "want rel_l2=NUMBER", "no number"},
		{[]string{"rel_l2=2"}, "that accepts zeros in place of the golden", "a limit that cannot fail"},
		{[]string{"rel_l2=0.1", "rel_l2=0.2"}, "has a limit already", "which of them?"},
	} {
		_, err := parseWithin(tt.limits)
		if tt.err == "" {
			assert.NoError(t, err, tt.reason)
			continue
		}
		assert.ErrorContains(t, err, tt.err, tt.reason)
		assert.Equal(t, exitUsage, codeOf(err), tt.reason)
	}
}
