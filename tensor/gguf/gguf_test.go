package gguf_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/gguf"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/safetensors"
)

// sameBits requires that two tensors have equal elements, bit for bit; all NaN are equal.
func sameBits(t *testing.T, want, got *tensor.Tensor) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape())
	w, g := make([]float64, want.Len()), make([]float64, got.Len())
	want.Float64s(w, 0)
	require.Equal(t, len(g), got.Float64s(g, 0))
	for i := range w {
		if math.Float64bits(w[i]) != math.Float64bits(g[i]) && !(math.IsNaN(w[i]) && math.IsNaN(g[i])) {
			require.Failf(t, "another value", "element %d is %v, want %v", i, g[i], w[i])
		}
	}
}

// TestEveryType reads blocks of random bytes of each type as gguf-py does.
func TestEveryType(t *testing.T) {
	f, err := gguf.Open("testdata/types.gguf")
	require.NoError(t, err)
	defer f.Close()
	want, err := safetensors.Open("testdata/want.safetensors")
	require.NoError(t, err)
	defer want.Close()
	require.Len(t, f.Tensors, len(want.Tensors))
	packed := 0
	for _, x := range f.Tensors {
		t.Run(x.Name, func(t *testing.T) {
			w, ok := want.Lookup(x.Name)
			require.True(t, ok)
			if x.Name != "blk.BF16.weight" { // gguf-py widens it
				require.Equal(t, w.DType(), x.DType())
			}
			sameBits(t, w, x.Tensor)
			if x.Packing() == "" {
				return
			}
			packed++
			_, ok = x.Bytes()
			require.False(t, ok, "the bytes are not the elements")
			views(t, w, x.Tensor)
		})
	}
	assert.Equal(t, 23, packed, "types of blocks")
}

// views compares views of a packed tensor with those of its values.
func views(t *testing.T, want, got *tensor.Tensor) {
	for _, r := range []struct {
		view   func(x *tensor.Tensor) (*tensor.Tensor, error)
		reason string
	}{
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(1, 7, 201) }, "parts of blocks"},
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(0, 1, 2) }, "a row"},
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Transpose() }, "columns"},
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Reshape(2, 4, 64) }, "heads"},
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Broadcast(3, 2, 256) }, "repeated"},
		{func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Copy(), nil }, "a copy"},
	} {
		w, err := r.view(want)
		require.NoError(t, err)
		g, err := r.view(got)
		require.NoError(t, err)
		sameBits(t, w, g)
		a, b := make([]byte, 4*w.Len()), make([]byte, 4*w.Len())
		require.Equal(t, w.Gather(a, 3), g.Gather(b, 3), r.reason)
	}
}

func TestMetadata(t *testing.T) {
	for _, name := range []string{"little", "big", "version2"} {
		f, err := gguf.Open(filepath.Join("testdata", name+".gguf"))
		require.NoError(t, err)
		for key, want := range map[string]string{
			"general.architecture": "llama", "general.alignment": "64", "llama.context_length": "128",
			"llama.attention.layer_norm_rms_epsilon": "1e-05", "tiny.flag": "true", "tiny.i8": "-3",
			"tiny.u64": "9223372036854775808", "tiny.f64": "0.3333333333333333", "tiny.list": "i32[3]",
			"tiny.words": "string[2]", "tokenizer.ggml.tokens": "string[100]", "tokenizer.ggml.scores": "f32[100]",
		} {
			assert.Equal(t, want, f.Metadata[key], "%s of %s", key, name)
		}
		require.Len(t, f.Tensors, 2)
		assert.Equal(t, "float32[2 3]", f.Tensors[0].String())
		assert.Equal(t, 5.0, f.Tensors[0].At(5), name)
		assert.Equal(t, 4.0, f.Tensors[1].At(4), name)
		assert.Zero(t, f.Tensors[1].Place().Offset%64)
		require.NoError(t, f.Close())
	}
}

// header builds a file: a list of u32, u64, strings and bytes.
func header(parts ...any) []byte {
	le := binary.LittleEndian
	b := []byte("GGUF")
	for _, p := range parts {
		switch p := p.(type) {
		case uint32:
			b = le.AppendUint32(b, p)
		case uint64:
			b = le.AppendUint64(b, p)
		case string:
			b = append(le.AppendUint64(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// Values of all types follow one another.
func TestKinds(t *testing.T) {
	want := map[string]string{}
	parts := []any{uint32(3), uint64(0), uint64(11)}
	for _, v := range []struct {
		kind  uint32
		bytes []byte
		want  string
	}{
		{0, []byte{200}, "200"}, {1, []byte{200}, "-56"}, {2, []byte{1, 200}, "51201"}, {3, []byte{1, 200}, "-14335"},
		{4, []byte{1, 0, 0, 200}, "3355443201"}, {5, []byte{1, 0, 0, 200}, "-939524095"}, {6, []byte{0, 0, 0x20, 0xc0}, "-2.5"}, {7, []byte{1}, "true"},
		{10, []byte{1, 0, 0, 0, 0, 0, 0, 200}, "14411518807585587201"}, {11, []byte{1, 0, 0, 0, 0, 0, 0, 200}, "-4035225266123964415"},
		{12, []byte{0, 0, 0, 0, 0, 0, 4, 0xc0}, "-2.5"},
	} {
		key := string(rune('a' + v.kind))
		want[key] = v.want
		parts = append(parts, key, v.kind, v.bytes)
	}
	f, err := gguf.Decode("x", header(parts...))
	require.NoError(t, err)
	assert.Equal(t, want, f.Metadata)
}

// one is a file with a tensor of a row of n elements, whose blocks take size bytes from offset on.
func one(code uint32, n, offset uint64, size int) []byte {
	b := header(uint32(3), uint64(1), uint64(0), "x", uint32(1), n, code, offset)
	return append(append(b, make([]byte, 64-len(b))...), make([]byte, size)...)
}

func TestLayout(t *testing.T) {
	v3, none, first := uint32(3), uint64(0), uint64(1)
	tensortest.Check(t, gguf.Decode, []tensortest.Row{
		{"plain", one(0, 4, 0, 16), "the smallest file"},
		{"blocks", one(2, 64, 0, 36), "two blocks"},
		{"later", one(0, 4, 32, 48), "a hole is allowed"},
		{"rest", one(0, 4, 0, 99), "writers fill up"},
		{"nothing", one(0, 0, 0, 0), "no elements"},
		{"no tensors", header(v3, none, none), "a vocabulary"},

		{"empty", nil, "what a full disk leaves"},
		{"magic", []byte("PK\x03\x04 and so on, and on"), "another file"},
		{"version 1", header(uint32(1), none, none), "too old"},
		{"version 4", header(uint32(4), none, none), "too new"},
		{"tensors", header(v3, uint64(1)<<60, none), "too many"},
		{"keys", header(v3, none, uint64(1)<<60), "too many"},
		{"short", one(0, 4, 0, 15), "a byte less"},
		{"far", one(0, 4, 1<<63, 16), "must not wrap"},
		{"odd offset", one(0, 4, 8, 32), "llama.cpp refuses it, too"},
		{"half a block", one(2, 33, 0, 36), "no such row"},
		{"a block of one", header(v3, first, none, "x", uint32(0), uint32(2), none, make([]byte, 64)), "a number alone"},
		{"huge blocks", one(8, 1<<63-64, 0, 36), "must not wrap"},
		{"negative", one(0, 1<<63, 0, 36), "does not fit an integer"},
		{"q8_1", one(9, 32, 0, 40), "known, but not dequantised"},
		{"rank 65", header(v3, first, none, "x", uint32(65), make([]byte, 8*65+12)), "bounded"},
		{"twice", header(v3, uint64(2), none, "x", uint32(0), v3-3, none, "x", uint32(0), uint32(0), none, make([]byte, 99)),
			"which one counts?"},
		{"overlap", append(header(v3, uint64(2), none, "x", uint32(0), uint32(0), none, "y", uint32(0), uint32(0), none), make([]byte, 99)...),
			"llama.cpp refuses it, too"},
		{"key twice", header(v3, none, uint64(2), "k", uint32(0), []byte{1}, "k", uint32(0), []byte{1}), "which one counts?"},
		{"value not utf-8", header(v3, none, first, "k", uint32(8), "\xff"), "text"},
		{"kind", header(v3, none, first, "k", uint32(13), []byte{1}), "odd"},
		{"bool", header(v3, none, first, "k", uint32(7), []byte{2}), "damaged"},
		{"list", header(v3, none, first, "k", uint32(9), uint32(0), uint64(1)<<63), "a list of 9223372036854775808 u8s"},
		{"list of strings", header(v3, none, first, "k", uint32(9), uint32(8), uint64(1)<<63), "ends with the file"},
		{"list of lists", header(v3, none, first, "k", uint32(9), uint32(9), first, uint32(9), first, uint32(9), first, uint32(9), first, uint32(9), first),
			"bounded"},
		{"alignment 48", header(v3, none, first, "general.alignment", uint32(4), uint32(48)), "ggml refuses it, too"},
		{"alignment text", header(v3, none, first, "general.alignment", uint32(8), "32"), "ggml refuses it, too"},
		{"big blocks", append([]byte("GGUF\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"+
			"\x00\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00\x02"), make([]byte, 99)...),
			"blocks are not swapped"},
	})
}

func TestDamage(t *testing.T) {
	data, err := os.ReadFile("testdata/little.gguf")
	require.NoError(t, err)
	last := slices.Index(data[len(data)-64:], 0x44) + len(data) - 64 // 4.0, the last element, ends here
	tensortest.Truncated(t, gguf.Decode, data[:last+1])
	tensortest.Flipped(t, gguf.Decode, data, 0, len(data)-192)
}

// BenchmarkBlocks dequantises 2^16 elements. The speed is that of the output.
func BenchmarkBlocks(b *testing.B) {
	const n = 1 << 16
	for _, k := range []struct {
		name            string
		code            uint32
		elements, bytes int // of a block
	}{{"q4_0", 2, 32, 18}, {"q8_0", 8, 32, 34}, {"q4_k", 12, 256, 144}, {"q6_k", 14, 256, 210}, {"q5_k", 13, 256, 176},
		{"iq4_nl", 20, 32, 18}, {"iq2_xs", 17, 256, 74}} {
		b.Run(k.name, func(b *testing.B) {
			data := one(k.code, n, 0, n/k.elements*k.bytes)
			for i := range data[64:] {
				data[64+i] = byte(i*7 + i>>8)
			}
			f, err := gguf.Decode("x", data)
			require.NoError(b, err)
			dst := make([]float32, n)
			b.SetBytes(4 * n)
			for b.Loop() {
				f.Tensors[0].Float32s(dst, 0)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, code := range []uint32{2, 12, 14, 18, 29, 34, 39, 40} {
		f.Add(one(code, 256, 0, 256))
	}
	tensortest.Fuzz(f, gguf.Decode, "testdata/[blv]*.gguf", nil)
}
