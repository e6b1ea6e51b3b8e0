package torchpt_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/torchpt"
)

// expectedTensor is an entry of testdata/expected.json, which testdata/generate.py writes.
type expectedTensor struct {
	Name    string
	DType   tensor.DType
	Shape   []int
	Strides []int
	Bits    string
	Values  string
}

func expectations(t *testing.T) map[string][]expectedTensor {
	t.Helper()
	data, err := os.ReadFile("testdata/expected.json")
	require.NoError(t, err)
	var all map[string][]expectedTensor
	require.NoError(t, json.Unmarshal(data, &all))
	require.Greater(t, len(all), 15)
	return all
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func words(t *testing.T, text string) []uint64 {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	var out []uint64
	for ; len(b) > 0; b = b[8:] {
		out = append(out, binary.LittleEndian.Uint64(b))
	}
	return out
}

func TestFilesOfTorch(t *testing.T) {
	for name, want := range expectations(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			f, err := torchpt.Open(path)
			require.NoError(t, err)
			defer f.Close()
			var names, wantNames []string
			for i := range f.Tensors {
				names = append(names, f.Tensors[i].Name)
			}
			for _, w := range want {
				wantNames = append(wantNames, w.Name)
			}
			require.Equal(t, wantNames, names)
			for i, w := range want {
				checkTensor(t, path, f.Tensors[i], w)
			}
			require.NoError(t, f.Close())
		})
	}
}

func checkTensor(t *testing.T, path string, got tensor.Named, w expectedTensor) {
	t.Helper()
	require.Equal(t, w.DType, got.DType(), w.Name)
	require.Equal(t, w.Shape, got.Shape(), w.Name)
	require.Equal(t, w.Strides, got.Strides(), w.Name)
	require.Equal(t, path, got.Place().File, w.Name)

	var bits strings.Builder
	_, err := got.WriteTo(hex.NewEncoder(&bits))
	require.NoError(t, err)
	require.Equal(t, w.Bits, bits.String(), w.Name)

	values := words(t, w.Values)
	require.Equal(t, len(values), got.Len(), w.Name)
	if !got.DType().IsFloat() {
		ints := make([]int64, got.Len())
		require.Equal(t, len(ints), got.Int64s(ints, 0))
		for i, v := range values {
			require.Equal(t, int64(v), ints[i], "%s, element %d", w.Name, i)
		}
		return
	}
	floats := make([]float64, got.Len())
	require.Equal(t, len(floats), got.Float64s(floats, 0))
	for i, v := range values {
		want := math.Float64frombits(v)
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(floats[i]), "%s, element %d", w.Name, i)
			continue
		}
		require.Equal(t, v, math.Float64bits(floats[i]), "%s, element %d: want %v, got %v", w.Name, i, want, floats[i])
	}
}

func TestViewsShareTheFile(t *testing.T) {
	data := readTestdata(t, "views.pt")
	f, err := torchpt.Decode("views.pt", data)
	require.NoError(t, err)
	places := map[string]int64{}
	for _, v := range f.Tensors {
		places[v.Name] = v.Place().Offset
	}
	for _, name := range []string{"transposed", "sliced", "offset", "expanded", "scalar", "diagonal", "windows"} {
		assert.Equal(t, places["base"], places[name], name)
	}
	assert.NotEqual(t, places["base"], places["permuted"])

	base, ok := f.Lookup("base")
	require.True(t, ok)
	raw, ok := base.Bytes()
	require.True(t, ok)
	assert.Same(t, &data[places["base"]], &raw[0], "the tensor is a view, not a copy")

	deflated, err := torchpt.Open("testdata/deflated.pt")
	require.NoError(t, err)
	defer deflated.Close()
	assert.EqualValues(t, -1, deflated.Tensors[0].Place().Offset, "inflated bytes are nowhere in the file")
}

func TestRefusedFiles(t *testing.T) {
	rows := []struct {
		file   string
		member string
		class  error
		says   []string
		reason string
	}{
		{"complex", "", tensor.ErrUnsupported, []string{"ComplexFloatStorage", "view_as_real"}, "the error names the type and the way out"},
		{"flat_complex", "", tensor.ErrUnsupported, []string{"ComplexFloatStorage", "view_as_real"},
			"the flat layout also names types in its pickle"},
		{"complex32", "", tensor.ErrUnsupported, []string{"complex32", "view_as_real"},
			"no storage class: the v3 form"},
		{"float4", "", tensor.ErrUnsupported, []string{"float4_e2m1fn_x2"}, "two elements a byte"},
		{"negated", "", tensor.ErrUnsupported, []string{"negated", "resolve_neg()"}, "the bytes have the other sign"},
		{"sparse", "", tensor.ErrUnsupported, []string{"_rebuild_sparse_tensor", "to_dense()"}, "not strided"},
		{"sparse_csr", "", tensor.ErrUnsupported, []string{"_rebuild_sparse", "to_dense()"}, "not strided"},
		{"quantised", "", tensor.ErrUnsupported, []string{"_rebuild_qtensor", "dequantize()"}, "bytes need a scale"},
		{"nested", "", tensor.ErrUnsupported, []string{"_rebuild_nested_tensor", "unbind()"}, "ragged"},
		{"meta", "", tensor.ErrUnsupported, []string{"meta"}, "no values"},
		{"module", "", tensor.ErrUnsupported, []string{"torch.nn.modules.linear.Linear", "state_dict()"},
			"a class would need code"},
		{"return_type", "", tensor.ErrUnsupported, []string{"torch.return_types.max", "tuple(x)"},
			"a named tuple is a class"},
		{"numpy", "", tensor.ErrUnsupported, []string{"numpy", "torch.from_numpy"}, "not a tensor of torch"},
		{"storage", "", tensor.ErrUnsupported, []string{"storage", "save the tensor"}, "it has no dtype and no shape"},
		{"no_tensor", "", tensor.ErrUnsupported, []string{"no tensor", "a dict"},
			"nothing to compare must not look like success"},
		{"set", "s.0", tensor.ErrUnsupported, []string{"set"}, "a set has no order, so no names"},
		{"key", "a tuple of 2", tensor.ErrUnsupported, []string{"key"}, "a tuple is not a name"},
		{"same_name", "a.b", tensor.ErrCorrupt, []string{"two tensors"}, "one would hide the other"},
		{"loop", "1.again", tensor.ErrUnsupported, []string{"contains itself"}, "a walk would not end"},
		{"tuple_loop", "0.1.0", tensor.ErrUnsupported, []string{"contains itself"},
			"a tuple in its own list: POP and memo"},
		{"script", "refused_script/constants.pkl",
			tensor.ErrUnsupported, []string{"TorchScript", "state_dict()"}, "code"},
	}
	var tested []string
	for _, r := range rows {
		t.Run(r.file, func(t *testing.T) {
			path := "testdata/refused_" + r.file + ".pt"
			tested = append(tested, path)
			f, err := torchpt.Open(path)
			require.Nil(t, f, r.reason)
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
			t.Log(err)
			assert.ErrorIs(t, err, r.class, r.reason)
			assert.Equal(t, path, fe.File)
			if r.member != "" {
				assert.Equal(t, r.member, fe.Member, r.reason)
			}
			for _, s := range r.says {
				assert.Contains(t, err.Error(), s, r.reason)
			}
		})
	}
	files, err := filepath.Glob("testdata/refused_*.pt")
	require.NoError(t, err)
	assert.ElementsMatch(t, files, tested, "each refused file has a row")
}

// allFiles returns the names of the .pt files in testdata.
func allFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pt")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files
}

// isFormatError is fast, for tests that call it very often.
func isFormatError(err error) bool {
	var fe *tensor.FormatError
	return errors.As(err, &fe) && fe.Err != nil && fe.Msg != ""
}

func TestTruncatedAnywhere(t *testing.T) {
	for _, name := range allFiles(t) {
		data := readTestdata(t, name)
		for n := range data {
			// In a copy, a read beyond the end does not find the rest of the file.
			_, err := torchpt.Decode(name, slices.Clone(data[:n]))
			if !isFormatError(err) {
				t.Errorf("%s: the first %d bytes give %v", name, n, err)
				break
			}
		}
	}
	_, err := torchpt.Decode("views.pt", readTestdata(t, "views.pt")[:2000])
	require.ErrorIs(t, err, tensor.ErrTruncated, "the plain case is a truncated file")
	_, err = torchpt.Decode("flat.pt", readTestdata(t, "flat.pt")[:3000])
	require.ErrorIs(t, err, tensor.ErrTruncated)
}

// readAll reads every element, unless there are too many for a test.
func readAll(t testing.TB, f *tensor.File) {
	t.Helper()
	for _, v := range f.Tensors {
		require.NotNil(t, v.Tensor)
		buf := make([]float64, min(v.Len(), 1<<12))
		v.Float64s(buf, 0)
		v.Float64s(buf, v.Len()-len(buf))
		if v.Len() < 1<<12 {
			v.Copy()
		}
	}
}

func TestFlippedBytes(t *testing.T) {
	for _, name := range []string{"views.pt", "refused_tuple_loop.pt", "deflated.pt", "flat_views.pt",
		"parameters.pt"} {
		data := readTestdata(t, name)
		for i := range data {
			for _, flip := range []byte{0x01, 0x80} {
				damaged := slices.Clone(data)
				damaged[i] ^= flip
				f, err := torchpt.Decode(name, damaged)
				if err != nil {
					if !isFormatError(err) {
						t.Fatalf("%s: byte %d flipped by %#x gives %v", name, i, flip, err)
					}
					continue
				}
				readAll(t, f)
			}
		}
	}
}
