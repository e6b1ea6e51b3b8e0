package format_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

// decodeBytes decodes a file as one tensor of bytes.
func decodeBytes(f *tensor.File, data []byte) {
	x := format.Tensor(tensor.Spec{DType: tensor.U8, Shape: []int{len(data)}, Data: data}, -1, "")
	f.Tensors = append(f.Tensors, tensor.Named{Name: "bytes", Tensor: x})
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bin")
	require.NoError(t, os.WriteFile(path, []byte{1, 2, 3}, 0o600))
	f, err := format.Open("bytes", path, decodeBytes)
	require.NoError(t, err)
	assert.Equal(t, path, f.Path)
	x, ok := f.Lookup("bytes")
	require.True(t, ok)
	b, ok := x.Bytes()
	require.True(t, ok)
	assert.Equal(t, []byte{1, 2, 3}, b)
	_, ok = f.Lookup("other")
	assert.False(t, ok)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "a second Close does nothing")
	require.NoError(t, (*tensor.File)(nil).Close(), "nor does that of no file")
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	bad := func(*tensor.File, []byte) { format.Fail(tensor.ErrTruncated, 5, "m", "bad %s", "byte") }
	rows := []struct {
		name, path string
		class      error
		says       string
		reason     string
	}{
		{"missing", filepath.Join(dir, "none"), fs.ErrNotExist, "none", "the error wraps the cause"},
		{"folder", dir, nil, "is a folder", ""},
		{"git-lfs pointer", write("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
			tensor.ErrLFSPointer, "git lfs pull", "before any format looks at it"},
		{"failed", write("bad", "x"), tensor.ErrTruncated, fmt.Sprintf("fmt: open %q: \"m\": byte 5: bad byte", filepath.Join(dir, "bad")),
			"format and path are filled in"},
		{"empty", write("empty", ""), tensor.ErrTruncated, "bad byte", "an empty file cannot be mapped, but it can be read"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f, err := format.Open("fmt", r.path, bad)
			require.Nil(t, f)
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe, r.reason)
			assert.Equal(t, "fmt", fe.Format)
			assert.Equal(t, r.path, fe.File)
			assert.ErrorContains(t, err, r.says, r.reason)
			if r.class != nil {
				assert.ErrorIs(t, err, r.class, r.reason)
			}
		})
	}
	assert.PanicsWithValue(t, "a bug", func() { _, _ = format.Decode("fmt", "f", nil, func(*tensor.File, []byte) { panic("a bug") }) })
}
