package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/updateflag"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/maxckpt"
	"github.com/goparity/goparity/tensor/npy"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"parity": main,
		"mk":     mk,
	})
}

// mk writes a small float32 tensor: mk FILE SHAPE VALUE… A last value of "…" repeats the one before it.
func mk() {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "mk:", err)
			os.Exit(1)
		}
	}
	path, args := os.Args[1], os.Args[3:]
	spec, err := tensor.ParseRaw("f32:" + os.Args[2])
	must(err)
	n, err := tensor.NumElems(spec.Shape)
	must(err)
	values := make([]float32, n)
	for i := range values {
		_, err := fmt.Sscan(args[min(i, len(args)-1)], &values[i])
		must(err)
	}
	t, err := tensor.Of(values, spec.Shape...)
	must(err)
	must(os.MkdirAll(filepath.Dir(path), 0o755))
	var b bytes.Buffer
	switch filepath.Ext(path) {
	case ".max":
		must(maxckpt.Write(&b, strings.TrimSuffix(filepath.Base(path), ".max"), t))
	case ".npy":
		must(npy.Write(&b, t))
	default:
		_, err = t.WriteTo(&b)
		must(err)
	}
	must(os.WriteFile(path, b.Bytes(), 0o644))
}

func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: updateflag.Set(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", filepath.Join(root, "fixtures"))
			e.Setenv("EXAMPLES", filepath.Join(root, "examples"))
			return nil
		},
	})
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join("..", "..", "fixtures", "minilm", "runs", "max-cpu", "standard", "short.0.safetensors")
	var out, errs bytes.Buffer
	code := run(ctx, []string{"compare", dir, dir}, &out, &errs)
	assert.Equal(t, exitInfra, code, "an interrupted comparison is no result")
	assert.Contains(t, errs.String(), "canceled")
	assert.NotContains(t, out.String(), "PASS")
}

// The real dumps of the fixtures, unpacked as an engine writes them, give the verdict of the packed ones.
func TestUnpackedFixture(t *testing.T) {
	fixture := filepath.Join("..", "..", "fixtures", "tinyllama")
	runs, err := dump.OpenCases(filepath.Join(fixture, "runs", "max-cpu", "standard"), dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(runs)
	dir := t.TempDir()
	for _, e := range runs[0].Entries {
		var b bytes.Buffer
		require.NoError(t, maxckpt.Write(&b, e.Label(), e.Tensor))
		path := filepath.Join(dir, e.Step, e.Label()+".max")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"compare", "--golden", filepath.Join(fixture, "runs", "max-cpu", "standard"), "--actual", dir}, &out, &errs)
	require.Equal(t, exitPass, code, "%s%s", &out, &errs)
	assert.Contains(t, out.String(), "worst row rel. L2 0")
}
