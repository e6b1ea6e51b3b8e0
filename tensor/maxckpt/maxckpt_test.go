package maxckpt_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/maxckpt"
)

func TestRealFiles(t *testing.T) {
	for file, want := range tensortest.Load(t, "testdata/want.json") {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join("testdata", file)
			f, err := maxckpt.Open(path)
			require.NoError(t, err)
			tensortest.Equal(t, want, f)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			elements, ok := f.Tensors[0].Bytes()
			require.True(t, ok)
			require.Equal(t, path, f.Tensors[0].Place().File)
			require.Equal(t, raw[f.Tensors[0].Place().Offset:], elements)

			// MAX writes the same bytes.
			var b bytes.Buffer
			require.NoError(t, maxckpt.Write(&b, f.Tensors[0].Name, f.Tensors[0].Tensor))
			require.Equal(t, raw, b.Bytes())
			require.NoError(t, f.Close())
		})
	}
}

func TestEveryType(t *testing.T) {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	// Those of which there is no file of MAX.
	codes := map[tensor.DType]byte{tensor.F8E8M0FNU: 73, tensor.F8E4M3FN: 75, tensor.F8E4M3FNUZ: 76, tensor.F8E5M2: 77, tensor.F8E5M2FNUZ: 78}
	for d := tensor.Bool; d <= tensor.F64; d++ {
		t.Run(d.String(), func(t *testing.T) {
			x, err := tensor.New(d, []int{4, 64 / d.Size()}, data)
			require.NoError(t, err)
			var b bytes.Buffer
			require.NoError(t, maxckpt.Write(&b, "x", x))
			if codes[d] > 0 {
				require.Equal(t, codes[d], b.Bytes()[29])
			}
			f, err := maxckpt.Decode("x.max", b.Bytes())
			require.NoError(t, err)
			require.Equal(t, x.String(), f.Tensors[0].String())
			got, ok := f.Tensors[0].Bytes()
			require.True(t, ok)
			require.Equal(t, data, got)
		})
	}
}

// file builds a file from its parts: size is the size of the metadata, at the offset of the
// elements.
func file(major uint32, size uint64, key string, keySize uint32, code, rank byte, shape []uint32, at uint64,
	elements int) []byte {
	b := []byte("\x93\xf0\x9f\x94\xa5++\x93")
	le := binary.LittleEndian
	b = le.AppendUint32(le.AppendUint32(b, major), 1)
	b = le.AppendUint32(le.AppendUint64(b, size), keySize)
	b = append(append(b, key...), code, rank)
	for _, d := range shape {
		b = le.AppendUint32(b, d)
	}
	return append(le.AppendUint64(b, at), make([]byte, elements)...)
}

func TestLayout(t *testing.T) {
	s := []uint32{2}
	tensortest.Check(t, maxckpt.Decode, []tensortest.Row{
		{"plain", file(0, 19, "x", 1, 81, 1, s, 43, 8), "the smallest file"},
		{"gap", file(0, 19, "x", 1, 81, 1, s, 64, 29), "a gap after the header is allowed: 21 bytes, then the elements"},
		{"empty", nil, "what a full disk leaves"},
		{"other file", []byte("PK\x03\x04 and so on, and on, and on"), "a .pt under the wrong name; the error shows the bytes"},
		{"major", file(1, 19, "x", 1, 81, 1, s, 43, 8), "MAX refuses it too"},
		{"no metadata", file(0, 0, "x", 1, 81, 1, s, 43, 8), "no tensor"},
		{"huge metadata", file(0, 1<<63, "x", 1, 81, 1, s, 43, 8), "must not wrap"},
		{"long name", file(0, 19, "x", 6, 81, 1, s, 43, 8), "one more than fits"},
		{"name not utf-8", file(0, 19, "\xff", 1, 81, 1, s, 43, 8), "names are compared as text"},
		{"two tensors", file(0, 38, "x", 1, 81, 1, s, 62, 27), "MAX refuses it too"},
		{"rank too large", file(0, 19, "x", 1, 81, 2, s, 43, 8), "the equation of the header fails"},
		{"code 0", file(0, 19, "x", 1, 0, 1, s, 43, 8), "reserved"},
		{"overflow", file(0, 27, "x", 1, 81, 3, []uint32{1 << 31, 1 << 31, 1 << 31}, 51, 8), "the product wraps"},
		{"rank 65", file(0, 15+4*65, "x", 1, 81, 65, make([]uint32, 65), 39+4*65, 0), "bounded"},
		{"offset in header", file(0, 19, "x", 1, 81, 1, s, 42, 8), "elements would be header bytes"},
		{"huge offset", file(0, 19, "x", 1, 81, 1, s, 1<<64-1, 8), "must not wrap"},
		{"short", file(0, 19, "x", 1, 81, 1, s, 43, 7), "the error names both sizes"},
		{"long", file(0, 19, "x", 1, 81, 1, s, 43, 9), "something else was written here"},
	})
}

func TestDamage(t *testing.T) {
	for _, name := range []string{"f32-2x3x4x5", "TopKSampler-input_1", "TopKSampler-input_6", "zoo-bf16-3d"} {
		data, err := os.ReadFile("testdata/" + name + ".max")
		require.NoError(t, err)
		tensortest.Truncated(t, maxckpt.Decode, data)
		key := 28 + int(binary.LittleEndian.Uint32(data[24:]))
		for _, at := range tensortest.Flipped(t, maxckpt.Decode, data, 0, key+2) {
			// The file stays well-formed with another minor version, another name, or another type
			// of the same size.
			require.True(t, at >= 12 && at < 16 || at >= 28 && at <= key, "byte %d of %s", at, name)
		}
	}
}

func TestWriteRefused(t *testing.T) {
	x, err := tensor.Of([]float32{1}, 1)
	require.NoError(t, err)
	var b bytes.Buffer
	require.ErrorContains(t, maxckpt.Write(&b, "\xff", x), "UTF-8")
	require.Zero(t, b.Len())
}

func FuzzDecode(f *testing.F) {
	tensortest.Fuzz(f, maxckpt.Decode, "testdata/*.max", func(t testing.TB, file *tensor.File) []byte {
		var b bytes.Buffer
		require.NoError(t, maxckpt.Write(&b, file.Tensors[0].Name, file.Tensors[0].Tensor))
		return b.Bytes()
	})
}
