package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// numpyOrSkip finds the interpreter that the command would use, which must have numpy.
func numpyOrSkip(t *testing.T) {
	t.Helper()
	python, err := engine.Interpreter(os.Getenv, ".")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(python, "-c", "import numpy").CombinedOutput(); err != nil {
		t.Skipf("%s has no numpy: %v %s", python, err, out)
	}
}

func writeNPY(t *testing.T, path string, values []float32, shape ...int) {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, x))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}

// The reference doubles, the candidate triples what it gets.
func TestTry(t *testing.T) {
	numpyOrSkip(t)
	dir := t.TempDir()
	var in, double, triple []float32
	for i := range 40 {
		x := float32(i*i%17) - 8
		in, double, triple = append(in, x), append(double, 2*x), append(triple, 3*x)
	}
	for side, out := range map[string][]float32{"ref": double, "cand": triple} {
		writeNPY(t, filepath.Join(dir, side, "0", "model.scale-input_0.npy"), in, 1, 4, 10)
		writeNPY(t, filepath.Join(dir, side, "0", "model.scale-output.npy"), out, 1, 4, 10)
	}
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"factor": 3}`), 0o644))
	for _, c := range []struct {
		python, want string
		code         int
		reason       string
	}{
		{"def predict(inputs):\n    return 3 * inputs['input_0']\n",
			"off the candidate by 0.00e+00: it explains the candidate", exitPass, "the bug"},
		{"def predict(inputs):\n    return 2 * inputs['input_0']\n", "off the golden by 0.00e+00: it is right",
			exitPass, "the fix"},
		{"def predict(inputs):\n    return 5 * inputs['input_0']\n", "it does not explain the candidate",
			exitMismatch, "neither"},
		{"def predict(inputs, run):\n    print(sorted(run))\n    return run.config['factor'] * " +
			"run['model.scale-input_0']\n",
			"['model.scale-input_0', 'model.scale-output']", exitPass, "labels and config; what it prints is shown"},
		{"def predict(inputs):\n    return inputs['input_0'][0, 0]\n",
			"the calculation gave [10], the layer's output is [1 4 10]", exitInfra, "another shape"},
		{"def predict(inputs):\n    return 'text'\n", "predict returned <U4, want numbers", exitInfra, "no numbers"},
		{"def predict(inputs, run):\n    return run['nothing']\n",
			"nothing: there are model.scale-input_0, model.scale-output", exitInfra,
			"a wrong label names the right ones"},
		{"def predict(inputs):\n    return 1 / 0\n", "ZeroDivisionError", exitInfra, "the traceback is shown"},
		{"import os\ndef predict(inputs):\n    os.abort()\n", "Fatal Python error", exitInfra,
			"where it crashed is shown"},
		{"def predict(inputs):\n    return float('nan') * inputs['input_0']\n",
			"off the golden by +Inf: it is not what the reference does", exitMismatch, "NaN is not near"},
		{"x = 1\n", "defines no predict(inputs, run)", exitInfra, "no function"},
	} {
		fix := filepath.Join(dir, "fix.py")
		require.NoError(t, os.WriteFile(fix, []byte(c.python), 0o644))
		var out bytes.Buffer
		code := run(context.Background(),
			[]string{"try", "--layer", "scale", "--golden", filepath.Join(dir, "ref"), "--actual",
				filepath.Join(dir, "cand"),
				"--config", config, fix}, &out, &out)
		assert.Equal(t, c.code, code, "%s: %s", c.reason, out.String())
		assert.Contains(t, out.String(), c.want, c.reason)
	}
}

// The example of docs/causes.md, as a reader runs it.
func TestTryExample(t *testing.T) {
	numpyOrSkip(t)
	python, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	page := readPage(t, "docs/causes.md")
	var fix string
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[1] == "python" {
			fix = m[3]
		}
	}
	require.Contains(t, fix, "def predict(", "docs/causes.md shows fix.py")
	require.Contains(t, page, "parity try --layer layers.1.mlp.act_fn fix.py --golden ref --actual cand")
	p := params(t)
	p.Dir = "testdata/try"
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("PYTHON", python)
		e.Setenv("PARITY_PYTHON", python)
		return errors.Join(setup(e), os.WriteFile(filepath.Join(e.WorkDir, "fix.py"), []byte(fix), 0o644))
	}
	testscript.Run(t, p)
}
