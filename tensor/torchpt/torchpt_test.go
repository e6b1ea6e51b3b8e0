package torchpt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/torchpt"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func TestFilesOfTorch(t *testing.T) {
	for name, want := range tensortest.Load(t, "testdata/want.json") {
		t.Run(name, func(t *testing.T) {
			f, err := torchpt.Open(filepath.Join("testdata", name))
			require.NoError(t, err)
			tensortest.Equal(t, want, f)
			require.NoError(t, f.Close())
		})
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

// What is refused, and how, is in testdata/TestRefusedFiles.want.
func TestRefusedFiles(t *testing.T) {
	reasons := map[string]string{
		"complex":      "the error names the type and the way out",
		"flat_complex": "the flat layout also names types in its pickle",
		"complex32":    "no storage class: the v3 form",
		"float4":       "two elements a byte",
		"negated":      "the bytes have the other sign",
		"sparse":       "not strided",
		"sparse_csr":   "not strided",
		"quantised":    "bytes need a scale",
		"nested":       "ragged",
		"meta":         "no values",
		"module":       "a class would need code",
		"return_type":  "a named tuple is a class",
		"numpy":        "not a tensor of torch",
		"storage":      "it has no dtype and no shape",
		"no_tensor":    "nothing to compare must not look like success",
		"set":          "a set has no order, so no names",
		"key":          "a tuple is not a name",
		"same_name":    "one would hide the other",
		"loop":         "a walk would not end",
		"tuple_loop":   "a tuple in its own list: POP and memo",
		"script":       "code",
	}
	files, err := filepath.Glob("testdata/refused_*.pt")
	require.NoError(t, err)
	require.Len(t, files, len(reasons), "each refused file has a reason")
	all := ""
	for _, path := range files {
		path = filepath.ToSlash(path)
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "refused_"), ".pt")
		require.Contains(t, reasons, name)
		f, err := torchpt.Open(path)
		require.Nil(t, f, name)
		tensortest.Typed(t, path, err)
		all += fmt.Sprintf("%s: %v: %v\n", reasons[name], errors.Unwrap(err), err)
	}
	tensortest.Said(t, all)
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

func TestDamage(t *testing.T) {
	for _, name := range []string{"views.pt", "deflated.pt", "flat_state_dict.pt", "flat_protocol4.pt"} {
		tensortest.Truncated(t, torchpt.Decode, readTestdata(t, name))
	}
	for name, cut := range map[string]int{"views.pt": 2000, "flat.pt": 3000} {
		_, err := torchpt.Decode(name, readTestdata(t, name)[:cut])
		require.ErrorIs(t, err, tensor.ErrTruncated, "the plain case is a truncated file")
	}
	for _, name := range []string{"refused_tuple_loop.pt", "deflated.pt", "flat_views.pt"} {
		data := readTestdata(t, name)
		to := len(data)
		if name == "refused_tuple_loop.pt" { // what is around its pickle others have, too
			to = bytes.Index(data, []byte("PK\x07\x08"))
		}
		tensortest.Flipped(t, torchpt.Decode, data, 0, to)
	}
}

func FuzzDecode(f *testing.F) { tensortest.Fuzz(f, torchpt.Decode, "testdata/*.pt", nil) }

// FuzzUnpickle mutates only the pickle, in a good archive.
func FuzzUnpickle(f *testing.F) {
	for _, name := range allFiles(f) {
		data := readTestdata(f, name)
		// The pickle is the first record. An approximate search from its protocol to its STOP is
		// good enough for a seed.
		if from := bytes.Index(data, []byte{0x80}); from >= 0 {
			data = data[from:]
		}
		if to := bytes.Index(data, []byte("PK\x07\x08")); to >= 0 {
			data = data[:to]
		}
		f.Add(data)
	}
	f.Add([]byte("\x80\x02" + good() + "."))
	f.Fuzz(func(t *testing.T, pickle []byte) {
		tensortest.Survives(t, torchpt.Decode, []byte(archiveOf(t, member{name: "a/data.pkl", data: string(pickle)},
			member{name: "a/data/0", data: "0123456789abcdef"})))
	})
}
