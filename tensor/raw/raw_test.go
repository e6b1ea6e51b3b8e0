package raw_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/raw"
)

// What each spec means, or why it is refused, is in testdata/TestParse.want.
func TestParse(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct{ spec, reason string }{
		{"f32:4x8", "the usual form"},
		{"float32:4x8", "long names are also read"},
		{" BF16 : 1 x 13 ", "spaces and case do not matter"},
		{"si64:2", "names of MAX's logs"},
		{"bf16:?x384", "one size from the file"},
		{"f32", "flat"},
		{"f32:", "scalar"},
		{"f32:0x3", "empty"},
		{"", "no dtype"},
		{"4x8", "no dtype"},
		{"c64:4", "refused by name"},
		{"f32:4x", "a size is missing"},
		{"f32:-1", "negative"},
		{"f32:4,8", "wrong separator"},
		{"f32:?x?", "cannot be solved"},
		{"f32:99999999999999999999", "does not fit an integer"},
		{"u8:2147483647x2147483647x2147483647", "the product wraps"},
		{"u8:1" + strings.Repeat("x1", 64), "bounded"},
	} {
		got, err := raw.Parse(tt.spec)
		fmt.Fprintf(&all, "%q (%s): %s %v %v\n", tt.spec, tt.reason, got.DType, got.Shape, err)
		if err == nil {
			again, err := raw.Parse(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again, "String is the inverse")
		}
	}
	tensortest.Said(t, all.String())
}

// What files of 48 bytes, of none and of git-lfs are by each spec is in testdata/TestOpen.want.
func TestOpen(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	content := make([]byte, 48)
	for i := range content {
		content[i] = byte(i)
	}
	require.NoError(t, os.WriteFile("model.norm-output", content, 0o600))
	require.NoError(t, os.WriteFile("empty", nil, 0o600))
	require.NoError(t, os.WriteFile("lfs", []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600))
	var all strings.Builder
	for _, tt := range []struct{ path, spec, reason string }{
		{"model.norm-output", "f32:3x4", "exact"},
		{"model.norm-output", "u16:?x4", "solved"},
		{"model.norm-output", "u16:4x?", "solved at any axis"},
		{"model.norm-output", "f64", "flat"},
		{"empty", "f64", "no elements"},
		{"empty", "f64:?x3", "no elements"},
		{"empty", "f64:0", "no elements"},
		{"model.norm-output", "f32:3x5", "too small; the error names both sizes"},
		{"model.norm-output", "f32:3x3", "too large; the error names both sizes"},
		{"model.norm-output", "f32:", "no scalar"},
		{"model.norm-output", "f32:?x5", "rows do not fit"},
		{"model.norm-output", "f32:?x0", "cannot be solved"},
		{"empty", "f32:?x0", "any size would do"},
		{"lfs", "u8", "never compared as data"},
	} {
		spec, err := raw.Parse(tt.spec)
		require.NoError(t, err)
		f, err := raw.Open(tt.path, spec)
		if err != nil {
			tensortest.Typed(t, tt.path, err)
			fmt.Fprintf(&all, "%s (%s): %v\n", tt.spec, tt.reason, err)
			continue
		}
		x := f.Tensors[0]
		fmt.Fprintf(&all, "%s (%s): %v\n", tt.spec, tt.reason, x)
		require.Equal(t, tensor.Place{File: tt.path}, x.Place())
		if b, _ := x.Bytes(); tt.path != "empty" {
			require.Equal(t, content, b)
		}
		require.NoError(t, f.Close())
	}
	_, err = raw.Open("none", raw.Spec{DType: tensor.U8})
	require.ErrorIs(t, err, os.ErrNotExist)
	t.Chdir(here)
	tensortest.Said(t, all.String())
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
