// Package tensortest has what the tests of all formats share: comparing tensors with the values
// that another implementation read, and damaging files.
package tensortest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
)

// Entry is one tensor as another implementation read it.
type Entry struct {
	Name   string       `json:"name"`
	DType  tensor.DType `json:"dtype"`
	Shape  []int        `json:"shape"`
	Values []string     `json:"values"` // in row-major order; integers decimal, floats hexadecimal, "nan", "inf"
}

// Load reads the expected content of files: a JSON object with a list of tensors for each file
// name.
func Load(t testing.TB, path string) map[string][]Entry {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var want map[string][]Entry
	require.NoError(t, json.Unmarshal(b, &want))
	require.NotEmpty(t, want)
	return want
}

// Equal compares every element of every tensor, names and order included.
func Equal(t testing.TB, want []Entry, got *tensor.File) {
	t.Helper()
	require.Len(t, got.Tensors, len(want))
	for i, w := range want {
		g := got.Tensors[i]
		require.Equal(t, w.Name, g.Name)
		require.Equal(t, w.DType, g.DType(), w.Name)
		require.Equal(t, w.Shape, g.Shape(), w.Name)
		require.Equal(t, w.Values, Values(g.Tensor), w.Name)
	}
}

// Values formats all elements as in [Entry].
func Values(g *tensor.Tensor) []string {
	out := make([]string, g.Len())
	if g.DType().IsFloat() {
		f := make([]float64, g.Len())
		g.Float64s(f, 0)
		for i, v := range f {
			out[i] = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'x', -1, 64), "+")) // NaN, +Inf
		}
		return out
	}
	n := make([]int64, g.Len())
	g.Int64s(n, 0)
	for i, v := range n {
		out[i] = strconv.FormatInt(v, 10)
		if g.DType() == tensor.U64 {
			out[i] = strconv.FormatUint(uint64(v), 10)
		}
	}
	return out
}

// Decode is the decoder of a format.
type Decode func(name string, data []byte) (*tensor.File, error)

// Typed requires that an error is a FormatError with one of its classes, and names the file.
func Typed(t testing.TB, name string, err error) {
	t.Helper()
	var fe *tensor.FormatError
	require.ErrorAs(t, err, &fe)
	require.Equal(t, name, fe.File)
	require.NotEmpty(t, fe.Format)
	require.NotEmpty(t, fe.Msg)
	require.Contains(t, []error{tensor.ErrTruncated, tensor.ErrCorrupt, tensor.ErrUnsupported, tensor.ErrLFSPointer},
		fe.Err)
}

// Survives decodes data that may be damaged: the result is a typed error, or tensors of which all
// elements can be read.
func Survives(t testing.TB, decode Decode, data []byte) (*tensor.File, error) {
	t.Helper()
	f, err := decode("damaged", data)
	if err != nil {
		require.Nil(t, f)
		Typed(t, "damaged", err)
		return nil, err
	}
	for _, n := range f.Tensors {
		buf := make([]float64, min(n.Len(), 1<<20))
		require.Equal(t, len(buf), n.Float64s(buf, 0))
	}
	return f, nil
}

// Row is a file that is read, or refused.
type Row = struct {
	Name   string
	Data   []byte
	Reason string
}

var update = flag.Bool("update", false, "renew the expected files")

// Said compares what a test says with testdata/TEST.want.
func Said(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join("testdata", t.Name()+".want")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), text)
}

// Check decodes files. testdata/TEST.want says which are read, and has all errors with their classes and offsets.
func Check(t *testing.T, decode Decode, rows []Row) {
	t.Helper()
	var all strings.Builder
	for _, r := range rows {
		_, err := Survives(t, decode, r.Data)
		said := "read"
		if fe, is := errors.AsType[*tensor.FormatError](err); is {
			said = fmt.Sprintf("%v: %v", fe.Err, err)
		}
		fmt.Fprintf(&all, "%s (%s): %s\n", r.Name, r.Reason, said)
	}
	Said(t, all.String())
}

// Fuzz decodes anything, beginning with files. What is read is written by again, if that is not nil, and read as
// the same tensors.
func Fuzz(f *testing.F, decode Decode, pattern string, again func(testing.TB, *tensor.File) []byte) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Survives(t, decode, data)
		if err != nil || again == nil {
			return
		}
		back, err := decode("again", again(t, file))
		require.NoError(t, err)
		require.Len(t, back.Tensors, len(file.Tensors))
		for i, n := range file.Tensors {
			require.Equal(t, n.Name, back.Tensors[i].Name)
			require.Equal(t, n.String(), back.Tensors[i].String())
			was, _ := n.Copy().Bytes()
			is, _ := back.Tensors[i].Copy().Bytes()
			require.Equal(t, was, is)
		}
	})
}

// Truncated cuts the file at every byte; each piece must be refused.
func Truncated(t testing.TB, decode Decode, data []byte) {
	t.Helper()
	for n := range data {
		_, err := Survives(t, decode, data[:n:n])
		assert.Error(t, err, "cut to %d of %d bytes", n, len(data))
	}
}

// Flipped changes each byte of the structure data[from:to] in several ways, and returns the offsets
// at which no error was reported.
func Flipped(t testing.TB, decode Decode, data []byte, from, to int) (unnoticed []int) {
	t.Helper()
	for i := from; i < to; i++ {
		for _, mask := range []byte{0x01, 0x10, 0x80, 0xff} {
			bad := append([]byte(nil), data...)
			bad[i] ^= mask
			if _, err := Survives(t, decode, bad); err == nil {
				unnoticed = append(unnoticed, i)
			}
		}
	}
	return unnoticed
}
