package dump_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

func load(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/printed/" + file)
	require.NoError(t, err)
	return b
}

// expected reads the tensors that were printed, with labels, in order.
func expected(t *testing.T, file string) []tensor.Named {
	t.Helper()
	var list []struct {
		Label string       `json:"label"`
		DType tensor.DType `json:"dtype"`
		Shape []int        `json:"shape"`
		Hex   string       `json:"hex"`
	}
	require.NoError(t, json.Unmarshal(load(t, file), &list))
	require.NotEmpty(t, list)
	out := make([]tensor.Named, len(list))
	for i, e := range list {
		data, err := hex.DecodeString(e.Hex)
		require.NoError(t, err)
		x, err := tensor.New(e.DType, e.Shape, data)
		require.NoError(t, err)
		out[i] = tensor.Named{Name: e.Label, Tensor: x}
	}
	return out
}

// near requires element at of what was printed of a tensor to be x, within the printed precision.
func near(t *testing.T, e dump.Entry, at int, x float64) {
	t.Helper()
	v, what := e.Tensor.At(at), fmt.Sprintf("%s[%d]", e.Label(), at)
	switch {
	case math.IsNaN(x):
		require.True(t, math.IsNaN(v), what)
	case math.IsInf(x, 0) || e.Printed.Decimals == 0 && math.Abs(x) < 1<<53:
		require.Equal(t, x, v, what)
	case !e.Tensor.DType().IsFloat():
		require.InEpsilon(t, x, v, 1e-15, what)
	default:
		unit := math.Pow(10, -float64(e.Printed.Decimals))
		if e.Printed.Relative || strings.HasPrefix(what, "wide range") {
			unit *= math.Pow(10, math.Floor(math.Log10(math.Max(math.Abs(x), 1e-300))))
		}
		require.InDelta(t, x, v, unit*0.5000001+math.Abs(x)*e.Tensor.DType().Epsilon(), what)
		if v != 0 {
			require.Equal(t, math.Signbit(x), math.Signbit(v), what)
		}
	}
}

// corners defines COMPACT: of more than six columns, rows or matrices, the first and the last
// three.
func corners(shape []int) []int {
	axis := func(n int) (out []int) {
		for i := range n {
			if n <= 6 || i < 3 || i >= n-3 {
				out = append(out, i)
			}
		}
		return out
	}
	padded := append([]int{1, 1}, shape...)
	rows, columns := padded[len(padded)-2], padded[len(padded)-1]
	matrices := 1
	for _, d := range padded[:len(padded)-2] {
		matrices *= d
	}
	index := []int{}
	for _, m := range axis(matrices) {
		for _, r := range axis(rows) {
			for _, c := range axis(columns) {
				index = append(index, (m*rows+r)*columns+c)
			}
		}
	}
	return index
}

func TestRealLogs(t *testing.T) {
	lost := map[string]map[string]int{ // number of values that MAX cut
		"compact.log": {"float32-special3": 2, "float64-special3": 2, "float32-special5": 3, "float64-special5": 3,
			"float64-huge": 1, "bf16-special": 1},
	}
	for _, tt := range []struct {
		file, want string
		full       bool
		precision  int // of the tensor "precise"
		precise    string
	}{
		{"compact.log", "want.json", false, 4, "f32-2x3"},
		{"full6.log", "want.json", true, 6, "f32-2x3"},
		{"full10.log", "want.json", true, 10, "f32-2x3"},
		{"torch.log", "want_torch.json", false, 4, "matrix"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			entries, err := dump.ParseLog(tt.file, bytes.NewReader(load(t, tt.file)))
			require.NoError(t, err)
			want := expected(t, tt.want)
			require.Len(t, entries, len(want))
			for i, e := range entries {
				w, known := want[i], e.Printed.Known
				require.Equal(t, w.Name, e.Label())
				if w.DType().Size() == 2 && w.DType().IsFloat() {
					require.Equal(t, tensor.F32, e.Tensor.DType(), w.Name)
				} else {
					require.Equal(t, w.DType(), e.Tensor.DType(), w.Name)
				}
				require.Equal(t, w.Shape(), e.Tensor.Shape(), w.Name)
				require.Equal(t, tt.full, e.Printed.Relative)
				if e.Label() == tt.precise {
					require.Equal(t, tt.precision, e.Printed.Decimals)
				}
				index := corners(w.Shape())
				if tt.file != "compact.log" {
					index = make([]int, w.Len())
				} else {
					require.Subset(t, index, known, w.Name)
				}
				require.Len(t, known, len(index)-lost[tt.file][w.Name], w.Name)
				require.True(t, slices.IsSorted(known))
				for _, at := range known {
					near(t, e, at, w.At(at))
				}
			}
		})
	}
}

// With 27 decimals MAX has no room for the exponent, so no such value can be trusted. Infinities
// and integers are complete.
func TestCutExponents(t *testing.T) {
	entries, err := dump.ParseLog("full27.log", bytes.NewReader(load(t, "full27.log")))
	require.NoError(t, err)
	want := expected(t, "want.json")
	require.NotEmpty(t, entries)
	for _, e := range entries {
		i := slices.IndexFunc(want, func(n tensor.Named) bool { return n.Name == e.Label() })
		for _, at := range e.Printed.Known {
			near(t, e, at, want[i].At(at))
		}
		if e.Label() == "f32-2x3" {
			require.Empty(t, e.Printed.Known)
		}
	}
}

func TestNoiseIsSkipped(t *testing.T) {
	log := "Starting server\r\nx = 3\r\n" +
		" 10%|█   | 1/10\r 20%|██  | 2/10\rmodel.norm-output = tensor<2xf32> [1.0e+00, 2.0e+00]\r\n" +
		"loss tensor([1.0])\n\n[1.0000, 2.0000]\n" +
		"model.norm-output = tensor([[1.0000,\t2.0000]], dtype=f32, shape=[2])\n" +
		"the tensors = tensors(1)\n"
	entries, err := dump.ParseLog("log", strings.NewReader(log))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		require.Equal(t, "model.norm-output", e.Label())
		require.Equal(t, []float64{1, 2}, []float64{e.Tensor.At(0), e.Tensor.At(1)})
	}
	entries, err = dump.ParseLog("log", strings.NewReader("x = tensor<1xf32> [1.0e+00]\r 20%|██\n"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "a progress bar came after it")
	entries, err = dump.ParseLog("empty", strings.NewReader(""))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSummaryOfTorch(t *testing.T) {
	entries, err := dump.ParseLog("summary.log", bytes.NewReader(load(t, "summary.log")))
	require.ErrorIs(t, err, tensor.ErrUnsupported)
	require.ErrorContains(t, err, `"large": line 2: `)
	require.ErrorContains(t, err, "set_printoptions")
	require.Len(t, entries, 2, "what follows is read")
}

func TestErrors(t *testing.T) {
	compact := "x = tensor([[1.0000, 2.0000],\n[3.0000, 4.0000]], dtype=f32, shape=[2,2])\n"
	tests := []struct {
		name, log string
		class     error
		text      string
		reason    string
	}{
		{"full too few", "x = tensor<3xf32> [1.0e+00, 2.0e+00]", tensor.ErrCorrupt, "[3] has 3 elements, 2 are printed",
			"a value is missing"},
		{"full cut", "x = tensor<3xf32> [1.0e+00, 2.0", tensor.ErrTruncated, "ends within", "the process died here"},
		{"full word", "x = tensor<2xf32> [1.0e+00, oops]", tensor.ErrCorrupt, `element 1: "oops"`,
			"the error names the place"},
		{"full hexadecimal", "x = tensor<1xf32> [0x1p-2]", tensor.ErrCorrupt, "not a number",
			"Go reads it, MAX does not write it"},
		{"full size", "x = tensor<?xf32> [1.0e+00]", tensor.ErrCorrupt, `"?" is not the size`,
			"the shape of a printed tensor is known"},
		{"full overflow", "x = tensor<4294967296x4294967296xf32> [1.0e+00]", tensor.ErrCorrupt, "more elements",
			"the product wraps"},
		{"full shape only", "x = tensor<2xf32>", tensor.ErrCorrupt, "does not continue like", "no values"},
		{"compact cut", compact[:len(compact)-20], tensor.ErrTruncated, "ends within", "the process died here"},
		{"compact mixed", strings.Replace(compact, "\n", "\nINFO: request 7 done\n", 1), tensor.ErrCorrupt,
			`element 2: "INFO:"`, "another thread printed"},
		{"compact row lost", strings.Replace(compact, "[2,2]", "[3,2]", 1), tensor.ErrCorrupt,
			"not those of shape [3 2]", "the places would be wrong"},
		{"compact gap", strings.Replace(compact, "2.0000]", "..., 2.0000]", 1), tensor.ErrCorrupt, `"..." is not a number`,
			"two columns are never summarised"},
		{"compact empty", "x = tensor([[1.0000]], dtype=f32, shape=[0])",
			tensor.ErrCorrupt, "0 elements, 1 are printed", "contradiction"},
		{"compact with text after it", strings.Replace(compact, "])\n", "]) and more\n", 1), tensor.ErrCorrupt, "after the tensor",
			"another thread printed"},
		{"compact dtype", strings.Replace(compact, "f32", "f99", 1), tensor.ErrCorrupt, `"f99"`, "unknown"},
		{"no dtype", strings.Replace(compact, ", dtype=f32", "", 1), tensor.ErrCorrupt, "unknown dtype",
			"MAX always says it"},
		{"interrupted", "y = tensor([[1.0000,\n" + compact, tensor.ErrTruncated, "line 2 begins another",
			"the second tensor is read"},
		{"ragged", "x = tensor([[1.0, 2.0], [3.0]])", tensor.ErrCorrupt, "different lengths", "torch prints no such tensor"},
		{"deeper later", "x = tensor([[], [[]]])", tensor.ErrCorrupt, "different lengths", "torch prints no such tensor"},
		{"brackets", "x = tensor(])", tensor.ErrCorrupt, "not a number", "no tensor"},
		{"deep", "x = tensor(" + strings.Repeat("[", 1000) + ")", tensor.ErrCorrupt, "", "bounded"},
		{"attribute", "x = tensor([1.0], layout=torch.sparse_coo)", tensor.ErrCorrupt, `"layout"`, "not what it seems"},
		{"size", "x = tensor([], size=(1, 3))", tensor.ErrCorrupt, "3 elements, 0 are printed", "contradiction"},
		{"two in a line", "y = tensor<3xf32> [1.0e+00, 2.0x = tensor<1xf32> [1.0e+00]", tensor.ErrCorrupt,
			"two tensors begin in this line", "the first was cut where the second begins"},
		{"no label", " = tensor<1xf32> [1.0e+00]", tensor.ErrCorrupt, "no label", "of which layer?"},
		{"no beginning", "[3.0000, 4.0000]], dtype=f32, shape=[2,2])\n", tensor.ErrCorrupt, "whose beginning cannot be read",
			"another thread printed over its first line"},
		{"head of full", "x = ten INFO: done<2x3xf32> [1.0e+00, 2.0e+00", tensor.ErrCorrupt, "whose beginning cannot be read",
			"a message within the word"},
		{"word and nothing", "x = tensor", tensor.ErrCorrupt, "whose beginning cannot be read", "the process died here"},
		{"half a word", "x = tens", tensor.ErrCorrupt, "whose beginning cannot be read", "the process died here"},
		{"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", tensor.ErrLFSPointer, "git lfs pull",
			"says what to do"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dump.ParseLog("run.log", strings.NewReader(tt.log))
			require.ErrorIs(t, err, tt.class, tt.reason)
			require.ErrorContains(t, err, tt.text, tt.reason)
			require.ErrorContains(t, err, `"run.log"`)
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
			if tt.class != tensor.ErrLFSPointer {
				require.ErrorContains(t, err, "line 1: ")
			}
		})
	}
}

func TestGoesOnAfterErrors(t *testing.T) {
	bad := "bad = tensor<2xf32> [1.0e+00]\n"
	good := "good = tensor<1xf32> [1.0e+00]\n"
	entries, err := dump.ParseLog("log", strings.NewReader(bad+good+bad))
	require.ErrorContains(t, err, "line 1: ")
	require.ErrorContains(t, err, "line 3: ")
	require.Len(t, entries, 1)
	_, err = dump.ParseLog("log", strings.NewReader(strings.Repeat(bad, 1000)))
	require.Len(t, strings.Split(err.Error(), "\n"), 10, "the first ten are enough")
	entries, err = dump.ParseLog("log", strings.NewReader("y = tensor([[1.0000,\n"+good))
	require.Error(t, err)
	require.Len(t, entries, 1, "the tensor within is read")
}

func TestLongLines(t *testing.T) {
	noise := io.LimitReader(endless('#'), 80<<20)
	entries, err := dump.ParseLog("log", io.MultiReader(noise, strings.NewReader("\nx = tensor<1xf32> [1.0e+00]\n")))
	require.NoError(t, err, "noise of any length is skipped")
	require.Len(t, entries, 1)

	long := io.MultiReader(strings.NewReader("x = tensor<9xf32> ["), io.LimitReader(endless('1'), 80<<20),
		strings.NewReader("\ny = tensor<1xf32> [1.0e+00]\n"))
	entries, err = dump.ParseLog("log", long)
	require.ErrorContains(t, err, `"x": line 1: more than 67108864 bytes`)
	require.Len(t, entries, 1)
}

type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := dump.ParseLog("log", io.MultiReader(strings.NewReader("noise\n"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"compact.log", "full6.log", "torch.log", "summary.log"} {
		log := load(f, file)
		f.Add(log[:min(len(log), 4000)])
		for line := range bytes.Lines(log) {
			if len(line) < 300 {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		entries, err := dump.ParseLog("fuzz", bytes.NewReader(log))
		if err != nil {
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
		}
		for _, e := range entries {
			last := -1
			for _, i := range e.Printed.Known {
				require.Greater(t, i, last)
				last = i
			}
			require.Less(t, last, max(e.Tensor.Len(), 1))
		}
	})
}
