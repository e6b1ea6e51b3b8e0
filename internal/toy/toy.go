// Package toy has what tests share: it makes tensors and runs, opens recorded programs, keeps what tests say in files, and has
// what scripts need.
package toy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Port is one tensor of a run: "model.layers.0-output".
type Port = struct {
	Label  string
	Tensor *tensor.Tensor
}

// Run is a run of one step of the case "short".
func Run(engine string, ports ...Port) *dump.Run {
	var entries []dump.Entry
	for _, p := range ports {
		layer, name := label.Split(p.Label)
		entries = append(entries, dump.Entry{Step: "0", Layer: layer, Port: name, Tensor: p.Tensor})
	}
	return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
}

// Of is tensor.Of, which must not fail.
func Of[T tensor.Element](t testing.TB, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

// Wave is a tensor of numbers that do not repeat; scale and shift tell one from another.
func Wave(t testing.TB, scale, shift float64, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * (float64(i*i%31)/7 - 2 + shift + float64(i)/50))
	}
	return Of(t, v, shape...)
}

// Update says that the expected files are to be renewed.
var Update = flag.Bool("update", false, "renew the expected files")

// Kept compares what a test has said with testdata/name of its package, whose lines git may have ended as Windows does; with
// -update it renews that file.
func Kept(t *testing.T, name, said string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		require.NoError(t, os.WriteFile(path, []byte(said), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), said, "go test -update renews %s; look at the difference", path)
}

// Recording is a program, the weights of its model, and what torch had at its ports.
type Recording struct {
	*program.Program
	Weights, Recorded *tensor.File
}

// Open opens the recording in a folder.
func Open(t testing.TB, folder string) *Recording {
	t.Helper()
	p, err := program.Read(filepath.Join(folder, "program.json"))
	require.NoError(t, err)
	r := &Recording{Program: p}
	for name, to := range map[string]**tensor.File{"weights": &r.Weights, "ports": &r.Recorded} {
		*to, err = safetensors.Open(filepath.Join(folder, name+".safetensors"))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, (*to).Close()) })
	}
	return r
}

// Record is what torch had at a port; ok is false where that was not recorded.
func (r *Recording) Record(i int) (*tensor.Tensor, bool) {
	q := &r.Ports[i]
	return r.Recorded.Lookup(q.Step + "/" + q.Layer + "-" + q.Name)
}

// Load finds what a piece takes from outside.
func (r *Recording) Load(v *program.Value) (*replay.Array, error) {
	var x *tensor.Tensor
	ok, err := true, error(nil)
	switch {
	case v.Record > 0:
		x, ok = r.Record(v.Record - 1)
	case v.Weight != "":
		x, ok = r.Weights.Lookup(v.Weight)
	case v.Input != "":
		x, err = r.Constant("input:" + v.Input)
	case v.Constant != "":
		x, err = r.Constant(v.Constant)
	default:
		x, err = tensor.New(v.DType, v.Shape, v.Data)
	}
	if err != nil || !ok {
		return nil, fmt.Errorf("%+v: not there: %w", v, err)
	}
	return replay.FromTensor(x)
}

// Replace changes a text in a file: replace FILE OLD NEW
func Replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("replace: %s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o644))
}

// UserModule are a user's go.mod and go.sum. They need nothing that this module, whose root is
// given, does not: so they work without a network.
func UserModule(root string) (gomod, sums []byte, err error) {
	gomod = fmt.Appendf(nil, "module example.com/user\n\ngo 1.26.0\n\nrequire github.com/goparity/goparity v0.0.0\n\n"+
		"replace github.com/goparity/goparity => %s\n", filepath.ToSlash(root))
	sums, err = os.ReadFile(filepath.Join(root, "go.sum"))
	return gomod, sums, err
}

// BinaryArgs divides the arguments of go test into the package, which is the working directory
// where there is none, and the flags as the test binary knows them: -run X becomes -test.run X.
func BinaryArgs(args []string) (pkg string, flags []string) {
	pkg = "."
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			pkg = args[i]
			continue
		}
		name, _, hasValue := strings.Cut(name, "=")
		f := flag.Lookup("test." + name)
		if f == nil {
			flags = append(flags, args[i])
			continue
		}
		flags = append(flags, "-test."+args[i][1:])
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); !hasValue && !(ok && b.IsBoolFlag()) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return pkg, flags
}
