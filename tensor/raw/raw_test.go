package raw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

func TestParse(t *testing.T) {
	tests := []struct {
		spec   string
		want   raw.Spec
		text   string // of the error, "" for none
		reason string
	}{
		{"f32:4x8", raw.Spec{DType: tensor.F32, Shape: []int{4, 8}}, "", "the usual form"},
		{"float32:4x8", raw.Spec{DType: tensor.F32, Shape: []int{4, 8}}, "", "long names are also read"},
		{" BF16 : 1 x 13 ", raw.Spec{DType: tensor.BF16, Shape: []int{1, 13}}, "", "spaces and case do not matter"},
		{"si64:2", raw.Spec{DType: tensor.I64, Shape: []int{2}}, "", "names of MAX's logs"},
		{"bf16:?x384", raw.Spec{DType: tensor.BF16, Shape: []int{-1, 384}}, "", "one size from the file"},
		{"f32", raw.Spec{DType: tensor.F32, Shape: []int{-1}}, "", "flat"},
		{"f32:", raw.Spec{DType: tensor.F32, Shape: []int{}}, "", "scalar"},
		{"f32:0x3", raw.Spec{DType: tensor.F32, Shape: []int{0, 3}}, "", "empty"},
		{"", raw.Spec{}, "want DTYPE:SIZExSIZE", "no dtype"},
		{"4x8", raw.Spec{}, "want DTYPE:SIZExSIZE", "no dtype"},
		{"c64:4", raw.Spec{}, "complex", "refused by name"},
		{"f32:4x", raw.Spec{}, `"" is not a size`, "a size is missing"},
		{"f32:-1", raw.Spec{}, `"-1" is not a size`, "negative"},
		{"f32:4,8", raw.Spec{}, `"4,8" is not a size`, "wrong separator"},
		{"f32:?x?", raw.Spec{}, "only one size", "cannot be solved"},
		{"f32:99999999999999999999", raw.Spec{}, "is not a size", "does not fit an integer"},
		{"u8:2147483647x2147483647x2147483647", raw.Spec{}, "more elements", "the product wraps"},
		{"u8:1" + strings.Repeat("x1", 64), raw.Spec{}, "65 axes", "bounded"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			got, err := raw.Parse(tt.spec)
			if tt.text != "" {
				require.ErrorContains(t, err, tt.text, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			require.Equal(t, tt.want, got, tt.reason)
			again, err := raw.Parse(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again, "String is the inverse")
		})
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.norm-output")
	content := make([]byte, 48)
	for i := range content {
		content[i] = byte(i)
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	lfs := filepath.Join(t.TempDir(), "lfs")
	require.NoError(t, os.WriteFile(lfs, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600))
	tests := []struct {
		path, spec string
		shape      []int
		class      error
		text       string
		reason     string
	}{
		{path, "f32:3x4", []int{3, 4}, nil, "", "exact"},
		{path, "u16:?x4", []int{6, 4}, nil, "", "solved"},
		{path, "u16:4x?", []int{4, 6}, nil, "", "solved at any axis"},
		{path, "f64", []int{6}, nil, "", "flat"},
		{empty, "f64", []int{0}, nil, "", "no elements"},
		{empty, "f64:?x3", []int{0, 3}, nil, "", "no elements"},
		{empty, "f64:0", []int{0}, nil, "", "no elements"},
		{path, "f32:3x5", nil, tensor.ErrCorrupt, "f32:3x5 takes 60 bytes, the file has 48",
			"too small; the error names both sizes"},
		{path, "f32:3x3", nil, tensor.ErrCorrupt, "f32:3x3 takes 36 bytes, the file has 48",
			"too large; the error names both sizes"},
		{path, "f32:", nil, tensor.ErrCorrupt, "takes 4 bytes, the file has 48", "no scalar"},
		{path, "f32:?x5", nil, tensor.ErrCorrupt, "a multiple of 20 bytes, the file has 48", "rows do not fit"},
		{path, "f32:?x0", nil, tensor.ErrCorrupt, "a multiple of 0 bytes, the file has 48", "cannot be solved"},
		{empty, "f32:?x0", nil, tensor.ErrCorrupt, "a multiple of 0 bytes", "any size would do"},
		{lfs, "u8", nil, tensor.ErrLFSPointer, "git lfs pull", "never compared as data"},
		{path + ".none", "u8", nil, os.ErrNotExist, "", "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			spec, err := raw.Parse(tt.spec)
			require.NoError(t, err)
			f, err := raw.Open(tt.path, spec)
			if tt.class != nil {
				require.ErrorIs(t, err, tt.class, tt.reason)
				require.ErrorContains(t, err, tt.text, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			x := f.Tensors[0]
			require.Equal(t, tt.shape, x.Shape(), tt.reason)
			require.Equal(t, tensor.Place{File: tt.path}, x.Place())
			b, ok := x.Bytes()
			require.True(t, ok)
			if tt.path == path {
				require.Equal(t, content, b)
			}
			require.NoError(t, f.Close())
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"f32:4x8", "bf16:?x384", "f32", "f32:", "f8_e4m3:0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := raw.Parse(s)
		if err != nil {
			return
		}
		again, err := raw.Parse(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, again)
	})
}
