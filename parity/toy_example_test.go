package parity_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// goTest does what go test does in a package whose TestMain names the fixture "toy": the
// reference's goldens, and a candidate that is off by the rounding of float32.
func goTest(test func(*testing.T)) {
	dir, err := os.MkdirTemp("", "parity")
	if err == nil {
		err = errors.Join(runToy(dir, test), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Println(err)
	}
}

func runToy(dir string, test func(*testing.T)) error {
	fixture, ref, cand := filepath.Join(dir, "toy"), filepath.Join(dir, "ref.safetensors"),
		filepath.Join(dir, "cand.safetensors")
	err := errors.Join(os.Mkdir(fixture, 0o755),
		os.WriteFile(filepath.Join(fixture, "fixture.yaml"), []byte("cases: {short: {prompt: Hello}}\n"), 0o644),
		dumpToy(ref, 1), dumpToy(cand, 1+1e-7))
	if err != nil {
		return err
	}
	s, err := session.Start(session.Config{Fixtures: []string{fixture}, Update: setting.UpdateAll, GoldenDump: ref})
	if err == nil {
		err = errors.Join(s.Update(io.Discard), s.Close())
	}
	if err != nil {
		return err
	}
	if s, err = session.Start(session.Config{Fixtures: []string{fixture}, Replay: cand}); err != nil {
		return err
	}
	verbose := flag.Lookup("test.v").Value // its lines would be taken for the example's
	was := verbose.String()
	err = verbose.Set("false")
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "TestToy", F: test}}) {
		fmt.Println("FAIL")
	}
	return errors.Join(err, verbose.Set(was), s.Finish(os.Stdout), s.Close())
}

// dumpToy writes what a model of two layers recorded of two tokens.
func dumpToy(path string, scale float64) error {
	var x, silu, norm []float32
	for i := range 16 {
		v := scale * (float64(i)/4 - 2)
		x = append(x, float32(v))
		silu = append(silu, float32(v/(1+math.Exp(-v))))
		norm = append(norm, float32(v/2))
	}
	var tensors []tensor.Named
	for _, t := range []struct {
		name   string
		values []float32
	}{{"model.layers.0.mlp.act_fn-input_0", x}, {"model.layers.0.mlp.act_fn-output", silu},
		{"model.norm-input_0", silu}, {"model.norm-output", norm}} {
		x, err := tensor.Of(t.values, 1, 2, 8)
		if err != nil {
			return err
		}
		tensors = append(tensors, tensor.Named{Name: t.name, Tensor: x})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(f, tensors, nil), f.Close())
}
