package format_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"hash/crc32"
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

// deflated compresses bytes; a stream that is not closed lacks its end.
func deflated(t *testing.T, b []byte, isClosed bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	if isClosed {
		require.NoError(t, w.Close())
	}
	return out.Bytes()
}

func TestZip(t *testing.T) {
	text := bytes.Repeat([]byte("goparity "), 50)
	sum := crc32.ChecksumIEEE(text)
	packed, open := deflated(t, text, true), deflated(t, text, false)
	n, small := uint64(len(text)), uint64(len(packed))
	const store, deflate = zip.Store, zip.Deflate
	as := func(method uint16, sum uint32, compressed, size uint64) zip.FileHeader {
		return zip.FileHeader{Name: "m", Method: method, CRC32: sum, CompressedSize64: compressed, UncompressedSize64: size,
			Extra: []byte{1, 0, 2, 0, 5, 6}, Comment: "a comment"}
	}
	for _, c := range []struct {
		header zip.FileHeader
		data   []byte
		change func(b []byte) []byte // of the archive; nil for none
		times  int                   // the member is there once more
		class  error                 // nil for a good one
		says   string
		reason string
	}{
		{as(store, sum, n, n), text, nil, 0, nil, "", "stored, up to the index of the archive"},
		{as(deflate, sum, small, n), packed, nil, 0, nil, "", "compressed"},
		{as(deflate, 0, small, n), packed, nil, 0, nil, "", "without a checksum"},
		{as(deflate, sum+1, small, n), packed, nil, 0, tensor.ErrCorrupt, "the checksum of the content", "another checksum"},
		{as(deflate, 0, small, n+1), packed, nil, 0, tensor.ErrCorrupt, "promises 451 bytes, but there are 450", "too few"},
		{as(deflate, 0, small, n-1), packed, nil, 0, tensor.ErrCorrupt, "more than the 449 bytes", "too many"},
		{as(deflate, sum, uint64(len(open)), n), open, nil, 0, tensor.ErrCorrupt, "inflate: unexpected EOF", "a stream without its end"},
		{as(deflate, 0, small, 1032*(small+1)), packed, nil, 0, tensor.ErrCorrupt, "the index promises", "as much as deflate can reach"},
		{as(deflate, 0, small, 1032*(small+1)+1), packed, nil, 0, tensor.ErrCorrupt, "cannot inflate to", "more than that"},
		{as(deflate, 0, 1<<20, 1<<29+1), make([]byte, 1<<20), nil, 1, tensor.ErrUnsupported, "more than 1073741824 bytes", "two are together too large"},
		{as(deflate, 0, small, 1<<30+1), packed, nil, 0, tensor.ErrUnsupported, "save them without compression", "too large"},
		{as(store, 0, n+1, n+1), text, nil, 0, tensor.ErrTruncated, "the member has 451 bytes", "it reaches into the index"},
		{as(store, 0, n, n+1), text, nil, 0, tensor.ErrCorrupt, "byte 37: stored without compression, but with two sizes: 450 and 451", "stored with two sizes"},
		{as(12, 0, n, n), text, nil, 0, tensor.ErrUnsupported, "compression method 12", "another compression"},
		{as(store, sum, n, n), text, nil, 1, tensor.ErrCorrupt, "two members of this name", "twice"},
		{as(store, sum, n, n), text, func(b []byte) []byte { return b[:len(b)-7] }, 0, tensor.ErrTruncated, "it was cut off", "a part of an archive"},
		{as(store, sum, n, n), text, func(b []byte) []byte { b[0]++; return b }, 0, tensor.ErrCorrupt, "there is no header", "damaged in front"},
		{as(store, sum, n, n), text, func(b []byte) []byte { b[bytes.Index(b, []byte("PK\x01\x02"))+8] |= 1; return b }, 0,
			tensor.ErrUnsupported, "encrypted", "with a password"},
	} {
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		for range c.times + 1 {
			h := c.header
			m, err := w.CreateRaw(&h)
			require.NoError(t, err, c.reason)
			_, err = m.Write(c.data)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		data := archive.Bytes()
		if c.change != nil {
			data = c.change(data)
		}
		_, err := format.Decode("zip", "x.zip", data, func(_ *tensor.File, data []byte) {
			for _, m := range format.Zip(data) {
				content, at := m.Content()
				assert.Equal(t, text, content, c.reason)
				assert.Equal(t, len(content), m.Size)
				assert.Equal(t, c.data, data[m.Offset:][:len(c.data)], c.reason)
				if want := m.Offset; c.header.Method == store {
					assert.Equal(t, want, at, c.reason)
				} else {
					assert.Equal(t, int64(-1), at, c.reason)
				}
			}
		})
		if c.class == nil {
			require.NoError(t, err, c.reason)
			continue
		}
		require.ErrorIs(t, err, c.class, c.reason)
		assert.ErrorContains(t, err, c.says, c.reason)
	}
}
