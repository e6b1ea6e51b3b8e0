package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/safetensors"
)

func TestReferenceFiles(t *testing.T) {
	for file, want := range tensortest.Load(t, "testdata/want.json") {
		t.Run(file, func(t *testing.T) {
			f, err := safetensors.Open(filepath.Join("testdata", file))
			require.NoError(t, err)
			tensortest.Equal(t, want, f)
			raw, err := os.ReadFile(f.Path)
			require.NoError(t, err)
			for _, n := range f.Tensors {
				b, ok := n.Bytes()
				require.True(t, ok)
				require.Equal(t, f.Path, n.Place().File)
				require.Equal(t, raw[n.Place().Offset:][:len(b)], b, n.Name)
			}
			require.NoError(t, f.Close())
		})
	}
}

func TestMetadata(t *testing.T) {
	f, err := safetensors.Open("testdata/shapes.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]string{"format": "pt", "λ": `"x"`}, f.Metadata)
}

// file joins a header with n bytes of buffer.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestRefused(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	tensortest.Check(t, safetensors.Decode, []tensortest.Row{
		{"empty", nil, "an empty file is what a full disk leaves"},
		{"no safetensors", []byte("\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P"), "a pickle under the wrong name"},
		{"header too long", file("", 0)[:8:8], "an empty header is not an object"},
		{"header over limit", binary.LittleEndian.AppendUint64(nil, 100_000_001), "the limit of the format"},
		{"header over end", binary.LittleEndian.AppendUint64(nil, 64), "cut within the header"},
		{"leading space", file(" {}", 0), "the format wants { first"},
		{"not utf-8", file(`{"a`+"\xff"+`":{}}`, 0), "Go would replace the byte and join two names"},
		{"bad json", file(`{"a":}`, 0), "syntax"},
		{"open json", file(`{`+a, 8), "the object does not end"},
		{"text after the header", file(`{`+a+`} x`, 8), "two readers could disagree about it"},
		{"same tensor twice", file(`{`+a+`,`+a+`}`, 8), "which of the two is it?"},
		{"escaped twice", file(`{`+a+`,`+strings.Replace(a, `"a"`, `"\u0061"`, 1)+`}`, 8), "equal after unescaping"},
		{"metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"},`+a+`}`, 8), "as above"},
		{"metadata number", file(`{"__metadata__":{"k":1},`+a+`}`, 8), "only strings are allowed"},
		{"null for a tensor", file(`{"a":null}`, 0), "no tensor"},
		{"no dtype", file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8), "incomplete"},
		{"unknown key", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"scale":2}}`, 8),
			"it could change what the values mean"},
		{"unknown dtype", file(`{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}`, 8), "not of the format"},
		{"negative size", file(`{"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}}`, 8), "the product would fit"},
		{"fraction", file(`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8), "the reference refuses it too"},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}`, 0),
			"the product wraps to 0"},
		{"too many axes", file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 65)+`1],"data_offsets":[0,1]}}`, 1), "bounded"},
		{"three offsets", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), "a pair"},
		{"backwards", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "end before start"},
		{"wrong size", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "the error names both sizes"},
		{"hole", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "not allowed"},
		{"overlap", file(`{`+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "not allowed"},
		{"short buffer", file(`{`+a+`}`, 7), "cut within the buffer"},
		{"long buffer", file(`{`+a+`}`, 9), "the whole buffer is covered"},
		{"deep nesting", file(`{"a":`+strings.Repeat("[", 1_000_000), 0), "bounded"},
	})
}

func TestUnsupportedNamesTheTensor(t *testing.T) {
	for file, dtype := range map[string]string{"c64": "C64", "f4": "F4"} {
		_, err := safetensors.Open("testdata/" + file + ".safetensors")
		require.ErrorIs(t, err, tensor.ErrUnsupported)
		require.ErrorContains(t, err, `"bad"`)
		require.ErrorContains(t, err, dtype)
	}
}

func TestDamage(t *testing.T) {
	data, err := os.ReadFile("testdata/shapes.safetensors")
	require.NoError(t, err)
	tensortest.Truncated(t, safetensors.Decode, data)

	data, err = os.ReadFile("testdata/dtypes.safetensors")
	require.NoError(t, err)
	end := 8 + int(binary.LittleEndian.Uint64(data))
	for _, at := range tensortest.Flipped(t, safetensors.Decode, data, 0, end) {
		// The file stays well-formed with another name, another type of the same size, or other
		// white space.
		require.Greater(t, at, 8)
	}
}

func TestWriteAndRead(t *testing.T) {
	f, err := safetensors.Open("testdata/dtypes.safetensors")
	require.NoError(t, err)
	defer f.Close()
	g, err := safetensors.Open("testdata/shapes.safetensors")
	require.NoError(t, err)
	defer g.Close()
	all := append(append([]tensor.Named(nil), f.Tensors...), g.Tensors...)
	metadata := map[string]string{"b": "2", "a": "<λ>"}

	var b, again bytes.Buffer
	require.NoError(t, safetensors.Write(&b, all, metadata))
	require.NoError(t, safetensors.Write(&again, all, metadata))
	require.Equal(t, b.Bytes(), again.Bytes())
	require.Zero(t, (8+binary.LittleEndian.Uint64(b.Bytes()))%64)
	var without, empty bytes.Buffer
	require.NoError(t, safetensors.Write(&without, all, nil))
	require.NoError(t, safetensors.Write(&empty, all, map[string]string{}))
	require.Equal(t, without.Bytes(), empty.Bytes())

	back, err := safetensors.Decode("x", b.Bytes())
	require.NoError(t, err)
	require.Equal(t, metadata, back.Metadata)
	require.Len(t, back.Tensors, len(all))
	for i, n := range back.Tensors {
		require.Equal(t, all[i].Name, n.Name)
		require.Equal(t, all[i].String(), n.String())
		require.Equal(t, tensortest.Values(all[i].Tensor), tensortest.Values(n.Tensor))
	}
}

func TestWriteRefused(t *testing.T) {
	x, err := tensor.Of([]float32{1}, 1)
	require.NoError(t, err)
	for _, tt := range []struct {
		name     string
		tensors  []tensor.Named
		metadata map[string]string
		reason   string
	}{
		{"twice", []tensor.Named{{Name: "a", Tensor: x}, {Name: "a", Tensor: x}}, nil,
			"no reader could tell them apart"},
		{"metadata name", []tensor.Named{{Name: "__metadata__", Tensor: x}}, nil, "reserved by the format"},
		{"not utf-8", []tensor.Named{{Name: "\xff", Tensor: x}}, nil, "JSON would change the name"},
		{"metadata not utf-8", nil, map[string]string{"k": "\xff"}, "JSON would change the value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			require.Error(t, safetensors.Write(&b, tt.tensors, tt.metadata), tt.reason)
			require.Zero(t, b.Len(), "nothing is written")
		})
	}
}

func FuzzDecode(f *testing.F) {
	tensortest.Fuzz(f, safetensors.Decode, "testdata/*.safetensors", func(t testing.TB, file *tensor.File) []byte {
		var b bytes.Buffer
		require.NoError(t, safetensors.Write(&b, file.Tensors, file.Metadata))
		return b.Bytes()
	})
}

// MLX writes "__metadata__": null where it is given none.
func TestMLX(t *testing.T) {
	f, err := safetensors.Open("testdata/mlx.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.Empty(t, f.Metadata)
	require.Len(t, f.Tensors, 15)
	for _, n := range f.Tensors {
		values := make([]float64, n.Tensor.Len())
		n.Tensor.Float64s(values, 0)
		want, shape := []float64{0, 1, 2, 3, 4, 5}, []int{2, 3}
		switch n.Name {
		case "bool":
			want = []float64{0, 1, 1, 1, 1, 1}
		case "turned":
			want, shape = []float64{0, 3, 1, 4, 2, 5}, []int{3, 2}
		case "scalar":
			want, shape = []float64{5}, []int{}
		case "empty":
			want, shape = []float64{}, []int{2, 0}
		default:
			require.Equal(t, n.Name, n.Tensor.DType().String())
		}
		require.Equal(t, want, values, n.Name)
		require.Equal(t, shape, n.Tensor.Shape(), n.Name)
	}
}

func of[T int32 | float32](t *testing.T, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

func TestWriteUnique(t *testing.T) {
	a := of(t, []float32{1, 2, 3, 4}, 2, 2)
	transposed, err := a.Transpose()
	require.NoError(t, err)
	tensors := []tensor.Named{
		{Name: "a", Tensor: a},
		{Name: "same", Tensor: of(t, []float32{1, 2, 3, 4}, 2, 2)},
		{Name: "shape", Tensor: of(t, []float32{1, 2, 3, 4}, 4)},
		{Name: "dtype", Tensor: of(t, []int32{0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 2, 2)},
		{Name: "view", Tensor: transposed},
		{Name: "copy", Tensor: of(t, []float32{1, 3, 2, 4}, 2, 2)},
		{Name: "empty", Tensor: of(t, []float32{}, 0, 3)},
		{Name: "nothing", Tensor: of(t, []float32{}, 0, 3)},
	}
	var b bytes.Buffer
	ranges, err := safetensors.WriteUnique(&b, tensors, map[string]string{"case": "x"})
	require.NoError(t, err)

	f, err := safetensors.Decode("f", b.Bytes())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"case": "x"}, f.Metadata)
	var names []string
	for _, n := range f.Tensors {
		names = append(names, n.Name)
	}
	assert.Equal(t, []string{"a", "shape", "dtype", "view", "empty"}, names,
		"equal tensors are stored once; another shape or dtype is not equal")
	for i, want := range []string{"a", "a", "shape", "dtype", "view", "view", "empty", "empty"} {
		r := ranges[i]
		assert.Equal(t, want, r.Name, tensors[i].Name)
		stored, ok := f.Lookup(r.Name)
		require.True(t, ok)
		assert.Equal(t, stored.Place().Offset, r.Offset, tensors[i].Name)
		assert.Equal(t, tensors[i].Shape(), stored.Shape())
		assert.Equal(t, tensors[i].Copy().String(), stored.String())
		data, ok := tensors[i].Copy().Bytes()
		require.True(t, ok)
		assert.Equal(t, data, b.Bytes()[r.Offset:r.Offset+r.Length], tensors[i].Name)
		hash, err := safetensors.Hash(tensors[i].Tensor)
		require.NoError(t, err)
		assert.Equal(t, hash, r.SHA256)
	}
}

func TestWriteUniqueRefused(t *testing.T) {
	a := of(t, []float32{1}, 1)
	_, err := safetensors.WriteUnique(&bytes.Buffer{}, []tensor.Named{{Name: "a", Tensor: a}, {Name: "a", Tensor: a}},
		nil)
	assert.ErrorContains(t, err, `two tensors are named "a"`)
	_, err = safetensors.WriteUnique(full{}, []tensor.Named{{Name: "a", Tensor: a}}, nil)
	assert.ErrorIs(t, err, errFull)
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
