package npy_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/npy"
)

// small returns the 8-bit type that the name of a file says, because numpy does not.
func small(file string) tensor.DType {
	if !strings.HasPrefix(file, "float8_") || strings.HasPrefix(file, "float8_e5m2.") {
		return tensor.Invalid
	}
	d, err := tensor.ParseDType(strings.TrimSuffix(file, ".npy"))
	if err != nil {
		panic(err)
	}
	return d
}

func TestNumpyFiles(t *testing.T) {
	for file, want := range tensortest.Load(t, "testdata/want.json") {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join("testdata", file)
			f, err := npy.OpenAs(path, small(file))
			require.NoError(t, err)
			tensortest.Equal(t, want, f)
			if file == "fortran.npy" {
				require.Equal(t, []int{1, 2, 6}, f.Tensors[0].Strides(), "nothing is copied")
			}
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, n := range f.Tensors {
				require.Equal(t, path, n.Place().File)
				if at := n.Place().Offset; strings.HasPrefix(file, "deflated") {
					require.EqualValues(t, -1, at)
				} else if b, ok := n.Bytes(); ok && !strings.Contains(file+n.Name, "big") {
					require.Equal(t, raw[at:][:len(b)], b)
				}
			}
			require.NoError(t, f.Close())
		})
	}
}

// Files of numpy in row-major, little-endian order and version 1 are written again byte for byte.
func TestWriteEqualsNumpy(t *testing.T) {
	files, err := filepath.Glob("testdata/*.npy")
	require.NoError(t, err)
	written := 0
	for _, path := range files {
		base := filepath.Base(path)
		if strings.HasPrefix(base, "bad-") || strings.Contains(base, "fortran") || strings.Contains(base, "-big") ||
			strings.HasPrefix(base, "version") {
			continue
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := npy.OpenAs(path, small(base))
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, npy.Write(&b, f.Tensors[0].Tensor))
		require.Equal(t, string(raw), b.String(), base)
		require.NoError(t, f.Close())
		written++
	}
	require.Equal(t, 20, written, "18 types, a scalar and an empty array")
}

// array makes a .npy of version 1 with n bytes of elements.
func array(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func dict(descr, order, shape string) string {
	return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
}

func TestHeaders(t *testing.T) {
	good := dict("'<f4'", "False", "(2,)")
	tensortest.Check(t, npy.Decode, []tensortest.Row{
		{"plain", array(good, 8), "the shortest form"},
		{"other order", array("{'shape': (2,), 'descr': '<f4', 'fortran_order': False}", 8), "a dict has no order"},
		{"native", array(dict("'=f4'", "False", "(2,)"), 8), "numpy takes it for little-endian on all that it runs on"},
		{"python 2", array(dict("'<f4'", "False", "(2L, 1L)"), 8), "numpy on Python 2 wrote long integers"},
		{"two axes without comma", array(dict("'<f4'", "False", "(2, 1)"), 8), "what numpy writes"},
		{"question mark", array(dict("'|?'", "False", "(2,)"), 2), "another name of bool"},
		{"empty", nil, "what a full disk leaves"},
		{"pickle", []byte("\x80\x04K\x01."), "np.load would want allow_pickle"},
		{"version 4", []byte("\x93NUMPY\x04\x00\x00\x00\x00\x00\x00"), "unknown"},
		{"huge header", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), "must not wrap"},
		{"no dict", array("[]", 0), "Python, but no dict"},
		{"code", array("{'descr': __import__('os'), ", 0), "nothing is evaluated"},
		{"escape", array(dict(`'<f\x34'`, "False", "(2,)"), 8), "two readers could disagree about it"},
		{"text after the header", array(good+"x", 8), "the header is longer than the dict"},
		{"missing key", array("{'descr': '<f4', 'shape': (2,)}", 8), "numpy refuses it too"},
		{"unknown key", array("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8), "numpy refuses it too"},
		{"key twice", array("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", 8), "which of the two?"},
		{"order 0", array(dict("'<f4'", "0", "(2,)"), 8), "numpy refuses it too"},
		{"not a tuple", array(dict("'<f4'", "False", "(2)"), 8), "in Python that is the number 2"},
		{"negative", array(dict("'<f4'", "False", "(-2, -1)"), 8), "the product would fit"},
		{"overflow", array(dict("'<f4'", "False", "(4294967296, 4294967296)"), 0), "the product wraps to 0"},
		{"overflow in an empty array", array(dict("'<f4'", "True", "(4611686018427387904, 4611686018427387904, 0)"), 0),
			"strides must not wrap"},
		{"digits", array(dict("'<f4'", "False", "("+strings.Repeat("9", 40)+",)"), 0), "does not fit an integer"},
		{"axes", array(dict("'<f4'", "False", "("+strings.Repeat("1,", 65)+")"), 4), "bounded"},
		{"short", array(good, 7), "the error names both sizes"},
		{"long", array(good, 9), "something else was written here"},
		{"V1", array(dict("'|V1'", "False", "(2,)"), 2), "there are eight such types"},
		{"unknown descr", array(dict("'<x4'", "False", "(2,)"), 8), "numpy has no such type"},
		{"16 bytes", array(dict("'<i16'", "False", "(2,)"), 32), "not a type of this package"},
	})
}

// What is refused, and how, is in testdata/TestRefusedByName.want.
func TestRefusedByName(t *testing.T) {
	files, err := filepath.Glob("testdata/bad-*")
	require.NoError(t, err)
	all := ""
	for _, path := range files {
		path = filepath.ToSlash(path)
		_, err := npy.Open(path)
		require.ErrorIs(t, err, tensor.ErrUnsupported, path)
		all += err.Error() + "\n"
	}
	tensortest.Said(t, all)
	_, err = npy.OpenAs("testdata/float8_e4m3fn.npy", tensor.F16)
	require.ErrorIs(t, err, tensor.ErrUnsupported)
}

// archive writes a zip file of members that may lie about themselves.
func archive(t *testing.T, members ...*zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		w, err := z.CreateRaw(m)
		require.NoError(t, err)
		_, err = w.Write([]byte(m.Comment)) // the comment has the content
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func stored(name string, content []byte) *zip.FileHeader {
	return &zip.FileHeader{Name: name, Comment: string(content), CRC32: crc32.ChecksumIEEE(content),
		CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content))}
}

func deflated(t *testing.T, name string, content []byte) *zip.FileHeader {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return &zip.FileHeader{Name: name, Comment: b.String(), Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(content),
		CompressedSize64: uint64(b.Len()), UncompressedSize64: uint64(len(content))}
}

// What every zip archive can have wrong is tested with those of torch.
func TestArchives(t *testing.T) {
	x := array(dict("'<f4'", "False", "(1000,)"), 4000)
	lie := func(h *zip.FileHeader, change func(h *zip.FileHeader)) *zip.FileHeader { change(h); return h }
	tensortest.Check(t, npy.Decode, []tensortest.Row{
		{"both", archive(t, stored("a.npy", x), deflated(t, "b.npy", x)), "both kinds in one archive"},
		{"folder", archive(t, stored("d/", nil), stored("d/a.npy", x)), "zip tools write entries of folders"},
		{"other member", archive(t, stored("a.npy", x), stored("data.pkl", x)), "a .pt file under the wrong name"},
		{"name", archive(t, stored("\xff.npy", x)), "names are compared as text"},
		{"bad member", archive(t, stored("a.npy", x[:20])), "the member and the place in the archive"},
		{"bytes after the array", archive(t, deflated(t, "a.npy", append(x[:len(x):len(x)], 0))), "something else was written here"},
		{"empty member", archive(t, stored("a.npy", nil)), "nothing but a name"},
		{"checksum", archive(t, lie(deflated(t, "a.npy", x), func(h *zip.FileHeader) { h.CRC32++ })), "inflated bytes are verified"},
		{"not deflate", archive(t, lie(deflated(t, "a.npy", x), func(h *zip.FileHeader) { h.Comment = strings.Repeat("\xff", len(h.Comment)) })),
			"garbage"},
	})
}

func TestLargeMembers(t *testing.T) {
	f, err := npy.Open("testdata/large.npz")
	require.NoError(t, err)
	defer f.Close()
	for name, want := range map[string]float64{"zeros": 0, "ones": 1} {
		x, ok := f.Lookup(name)
		require.True(t, ok)
		got := make([]float64, x.Len())
		x.Float64s(got, 0)
		require.Equal(t, slices.Repeat([]float64{want}, x.Len()), got)
	}
}

func TestDamage(t *testing.T) {
	for _, file := range []string{"fortran.npy", "version2.npy", "scalar.npy", "empty.npy", "stored.npz",
		"deflated.npz", "none.npz"} {
		data, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		tensortest.Truncated(t, npy.Decode, data)
		unnoticed := tensortest.Flipped(t, npy.Decode, data, 0, len(data))
		if strings.HasSuffix(file, ".npy") {
			for _, at := range unnoticed {
				// The file stays well-formed with version 3.0, a type of the same size, another
				// order, other white space, or another element.
				require.True(t, at == 6 || at >= 8, "byte %d of %s", at, file)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	tensortest.Fuzz(f, npy.Decode, "testdata/*.npy", func(t testing.TB, file *tensor.File) []byte {
		var b bytes.Buffer
		require.NoError(t, npy.Write(&b, file.Tensors[0].Tensor))
		return b.Bytes()
	})
}

func FuzzArchive(f *testing.F) { tensortest.Fuzz(f, npy.Decode, "testdata/*.npz", nil) }
