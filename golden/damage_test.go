package golden_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/tensor"
)

func errorsIs(err error) bool {
	return errors.Is(err, golden.ErrCorrupt) || errors.Is(err, golden.ErrNotFound)
}

// Verify finds any flipped byte of a golden file, and the entry's Verify any in its tensor.
func TestEveryFlippedByteIsFound(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("ids", openDump(t))})
	const file = "golden/float32/ids.0.safetensors"
	whole, err := afero.ReadFile(fsys, file)
	require.NoError(t, err)
	payload := 0
	for at := 0; at < len(whole); at += 211 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		require.NoError(t, afero.WriteFile(fsys, file, damaged, 0o644))
		s, err := golden.OpenOn(fsys, "golden")
		require.NoError(t, err)
		require.NotEmpty(t, verify(t, s), "byte %d", at)
		all, err := s.Tensors("float32", "ids", "0")
		require.NoError(t, err)
		for _, e := range all {
			if int64(at) >= e.Offset && int64(at) < e.Offset+e.Length {
				payload++
				require.ErrorIs(t, e.Verify(), golden.ErrCorrupt, "byte %d of %s", at, e.Label())
			}
		}
		require.NoError(t, s.Close())
	}
	assert.Greater(t, payload, 100, "most of the bytes were payload")
}

func TestEveryTruncationIsFound(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, _ bool) {
		importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a",
			ports("l", "output", f32(t, 1, 2), "m", "output", f32(t, 3)))})
		file := filepath.Join(dir, "float32", "a.0.safetensors")
		whole, err := afero.ReadFile(fsys, file)
		require.NoError(t, err)
		for n := range whole {
			require.NoError(t, afero.WriteFile(fsys, file, whole[:n], 0o644))
			s, err := golden.OpenOn(fsys, dir)
			require.NoError(t, err)
			all, err := s.Tensors("float32", "a", "0")
			require.NoError(t, err)
			for _, e := range all {
				_, err := e.Tensor()
				require.ErrorIs(t, err, golden.ErrCorrupt, "%d bytes", n)
				require.ErrorContains(t, err, "is truncated", "%d bytes", n)
			}
			require.Len(t, verify(t, s), 1)
			require.NoError(t, s.Close())
		}
	})
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	const file = "golden/float32/a.0.safetensors"
	edit := func(from, to string) func(t *testing.T, fsys afero.Fs) {
		return func(t *testing.T, fsys afero.Fs) {
			data, err := afero.ReadFile(fsys, "golden/manifest.json")
			require.NoError(t, err)
			text := unsealed(string(data)) // else Open itself refuses it
			require.Contains(t, text, from)
			require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json",
				[]byte(strings.Replace(text, from, to, 1)), 0o644))
		}
	}
	write := func(name, text string) func(t *testing.T, fsys afero.Fs) {
		return func(t *testing.T, fsys afero.Fs) {
			require.NoError(t, afero.WriteFile(fsys, name, []byte(text), 0o644))
		}
	}
	tests := []struct {
		damage func(t *testing.T, fsys afero.Fs)
		want   []string
		is     error
		reason string
	}{
		{func(t *testing.T, fsys afero.Fs) { require.NoError(t, fsys.Remove(file)) },
			[]string{"float32/a.0.safetensors: golden: golden/float32/a.0.safetensors does not exist"},
			golden.ErrNotFound, "missing"},
		{write(file, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
			[]string{"run git lfs pull"}, tensor.ErrLFSPointer, "pointer"},
		{write(file, strings.Repeat("x", 5000)), []string{"is longer than the manifest says: 5000 bytes of"},
			golden.ErrCorrupt, "longer"},
		{write("golden/float32/b.0.safetensors", ""),
			[]string{"float32/b.0.safetensors: golden: the manifest does not list it"}, golden.ErrCorrupt, "extra"},
		{write("golden/deep/er/b.safetensors", ""),
			[]string{"deep/er/b.safetensors: golden: the manifest does not list it"}, golden.ErrCorrupt,
			"extra, deeper"},
		{edit(`"layer":"m"`, `"layer":"n"`), []string{
			`float32/a.0.safetensors: n-output: golden: the file has no tensor "n-output"`,
			`float32/a.0.safetensors: m-output: golden: the manifest does not list it`}, golden.ErrCorrupt,
			"another name"},
		{edit(`"dtype":"float32","shape":[1,2]`, `"dtype":"int32","shape":[1,2]`),
			[]string{"l-output: golden: the file has float32[1 2], the manifest says int32[1 2]"}, golden.ErrCorrupt,
			"another dtype"},
		{edit(`"shape":[1,2]`, `"shape":[2,1]`),
			[]string{"l-output: golden: the file has float32[1 2], the manifest says float32[2 1]"}, golden.ErrCorrupt,
			"another shape"},
		{edit(`"offset":256`, `"offset":252`),
			[]string{"l-output: golden: the file has it at byte 256, the manifest says 252"}, golden.ErrCorrupt,
			"another place"},
		{edit(`"max":2`, `"max":3`), []string{"l-output: golden: its statistics are"}, golden.ErrCorrupt, "statistics"},
		{edit(`"sha256_of":"header, tensors"`, `"sha256_of":""`), []string{"float32/a.0.safetensors: golden: sha256 is"},
			golden.ErrCorrupt, "the hash is said to be that of the file"},
		{edit(`"nan":0`, `"nan":1`), []string{"l-output: golden: its statistics are"}, golden.ErrCorrupt, "counts"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			fsys := afero.NewMemMapFs()
			importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a",
				ports("l", "output", f32(t, 1, 2), "m", "output", f32(t, 3)))})
			tt.damage(t, fsys)
			s := open(t, fsys, "golden")
			problems, err := s.Verify(context.Background())
			require.NoError(t, err)
			require.Len(t, problems, len(tt.want))
			for i, p := range problems {
				assert.Contains(t, p.String(), tt.want[i])
				assert.ErrorIs(t, p.Err, tt.is)
			}
		})
	}
}

func TestManifestErrors(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a",
		ports("l", "output", f32(t, 1, 2), "m", "output", f32(t, 3)))})
	data, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(t, err)
	good := string(data)
	tests := []struct{ from, to, want, reason string }{
		{good, "", "manifest.json: line 1: unexpected end of JSON input", "empty"},
		{good, "version https://git-lfs.github.com/spec/v1\n", "run git lfs pull", "pointer"},
		{good, "{}", "has no schema, this version of goparity reads 1 to 7", "no schema"},
		{`"schema": 7`, `"schema": 8`,
			"has schema 8, this version of goparity reads 1 to 7: use the version that wrote it", "a later version"},
		{`"schema": 7`, `"schema": 0`, "has schema 0, this version of goparity reads 1 to 7", "below the first version"},
		{`"schema": 7`, `"schema": 7, "shcema": 1`, `unknown field "shcema"`, "unknown key"},
		{"]\n}\n", "]\n}\n{}", "line 11: invalid character '{' after top-level value", "trailing"},
		{"]}", "]", "line 9: invalid character", "broken"},
		{`"variant":"float32"`, `"variant":"../x"`, `variant "../x": want letters`, "leaves the folder"},
		{`"file":"float32/a.0.safetensors"`, `"file":"../a.0.safetensors"`,
			`file is "../a.0.safetensors", want "float32/a.0.safetensors"`, "leaves the folder"},
		{`"file":"float32/a.0.safetensors"`, `"file":"/etc/passwd"`, `file is "/etc/passwd"`, "absolute"},
		{`"port":"output"`, `"port":""`, "tensors[0]: no layer or port", "no port"},
		{`"layer":"m"`, `"layer":"l"`, `tensors[1]: "l-output" is there twice`, "twice"},
		{`"index":1`, `"index":0`, "not in execution order", "order"},
		{`"shape":[1,2]`, `"shape":[1,3]`, `length 8, but float32[1 3] has 12 bytes`, "length"},
		{`"shape":[1,2]`, `"shape":[-1,2]`, "negative size", "negative"},
		{`"dtype":"float32"`, `"dtype":"float31"`, "unknown dtype", "dtype"},
		{`"offset":256`, `"offset":9223372036854775807`, "outside the file", "overflow"},
		{`"offset":256`, `"offset":-1`, "outside the file", "negative"},
		{`"sha256_of":"header, tensors"`, `"sha256_of":"x"`, `sha256_of is "x", want "header, tensors" or nothing`, "hash of what"},
		{`"sha256":"`, `"sha256":"x`, "is impossible", "hash"},
		{`"tensors":[`, `"tensors":[],"x":[`, "unknown field", "no tensors"},
	}
	for _, tt := range tests {
		require.Contains(t, good, tt.from, tt.reason)
		require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json",
			[]byte(strings.Replace(good, tt.from, tt.to, 1)), 0o644))
		_, err := golden.OpenOn(fsys, "golden")
		require.ErrorIs(t, err, golden.ErrCorrupt, tt.reason)
		assert.ErrorContains(t, err, tt.want, tt.reason)
		assert.ErrorContains(t, err, filepath.Join("golden", "manifest.json"), tt.reason)
	}
	pass := good[strings.Index(good, "  {\"variant\""):strings.LastIndex(good, "\n ]")]
	twice := strings.Replace(good, pass, pass+",\n"+pass, 1)
	require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte(twice), 0o644))
	_, err = golden.OpenOn(fsys, "golden")
	assert.ErrorContains(t, err, "passes[1]: float32/a.0.safetensors is there twice")
}

func FuzzManifest(f *testing.F) {
	fsys := afero.NewMemMapFs()
	importRun(f, fsys, "golden", golden.ImportOptions{Runs: runs("a",
		ports("l", "output", f32(f, 1, 2), "m", "output", f32(f, 1, 2)))})
	manifest, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(f, err)
	file, err := afero.ReadFile(fsys, "golden/float32/a.0.safetensors")
	require.NoError(f, err)
	f.Add(manifest, file)
	importRun(f, fsys, "real", golden.ImportOptions{Runs: runs("ids", openDump(f))})
	real, err := afero.ReadFile(fsys, "real/manifest.json")
	require.NoError(f, err)
	f.Add(real, file)
	f.Fuzz(func(t *testing.T, manifest, file []byte) {
		fsys := afero.NewMemMapFs()
		require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", manifest, 0o644))
		require.NoError(t, afero.WriteFile(fsys, "golden/float32/a.0.safetensors", file, 0o644))
		s, err := golden.OpenOn(fsys, "golden")
		if err != nil {
			require.ErrorIs(t, err, golden.ErrCorrupt)
			return
		}
		defer s.Close()
		clean := len(verify(t, s)) == 0
		for _, p := range s.Passes() {
			entries, err := s.Tensors(p.Variant, p.Case, p.Step)
			require.NoError(t, err)
			for _, e := range entries {
				if err := e.Verify(); clean {
					require.NoError(t, err, "Verify found nothing")
				}
			}
		}
		golden.Diff(s, s)
	})
}

// full is a disk on which no more files with some ending can be open.
type full struct {
	afero.Fs
	end string
}

func (f full) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, f.end) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return f.Fs.Open(name)
}

// A store that cannot keep its files open says so when it is opened, not when something else fails.
func TestNoDescriptorsLeft(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", ports("l", "output", f32(t, 1, 2)))})
	_, err := golden.OpenOn(full{fsys, ".safetensors"}, "golden")
	require.ErrorIs(t, err, syscall.EMFILE)
	assert.ErrorContains(t, err, "raise the limit, ulimit -n")
}
