package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/program"
)

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
	folder := tinyLlama(t, live(t))
	j := engine.Job{Model: engine.Model{Path: folder, Task: "text-generation"}, Encoding: "float32", Program: true, KVCache: true, Cases: []engine.Case{
		{Name: "decode", TokenIDs: [][]int{{0, 15, 7, 9, 33}}, Steps: 3, Forced: [][]int{{9, 4}}},
		{Name: "batch", TokenIDs: [][]int{{0, 15, 7, 9}, {0, 5}}},
	}}
	golden := mustReference(t, j)

	config := t.TempDir()
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"), data, 0o600))
	j.Mode, j.Path = engine.ProgramMode, config
	alone := mustReference(t, j)

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
	folder := tinyLlama(t, live(t))
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
		_, err := reference(t, j)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}
