package golden_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// recorded writes a program beside nothing else, with constants if there are any.
func recorded(t testing.TB, text string, constants ...float32) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "program.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	if len(constants) > 0 {
		out, err := os.Create(filepath.Join(dir, "program.safetensors"))
		require.NoError(t, err)
		_, err = safetensors.WriteUnique(out, []tensor.Named{{Name: "sha256:1", Tensor: f32(t, constants...)}}, nil)
		require.NoError(t, err)
		require.NoError(t, out.Close())
	}
	return file
}

// withProgram is a run of one tensor and its program.
func withProgram(t testing.TB, text string, constants ...float32) *golden.Run {
	r := ports("l", "output", f32(t, 1, 2))
	r.Program = recorded(t, text, constants...)
	return r
}

func programOf(t testing.TB, s *golden.Store, variant, caseName string) string {
	t.Helper()
	p, err := s.Program(context.Background(), variant, caseName)
	require.NoError(t, err)
	if p == nil {
		return ""
	}
	n := 0
	if p.Constants != nil {
		n = len(p.Constants.Tensors)
	}
	return string(p.Data) + strings.Repeat("+", n)
}

func TestPrograms(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, _ bool) {
		bare := func() *golden.Run { return ports("l", "output", f32(t, 1, 2)) }
		steps := []struct {
			reason string
			opt    golden.ImportOptions
			want   map[string]string // by case, of float32
			delta  []string
		}{
			{"two cases, one with constants", golden.ImportOptions{Runs: map[string]*golden.Run{
				"a": withProgram(t, "A", 1, 2), "b": withProgram(t, "B")}},
				map[string]string{"a": "A+", "b": "B"}, []string{"program of case a: new", "program of case b: new"}},
			{"another variant without one leaves it", golden.ImportOptions{Variant: "bfloat16", Runs: runs("a", bare())},
				map[string]string{"a": "A+", "b": "B"}, nil},
			{"a new one in its place, without constants", golden.ImportOptions{Runs: runs("a", withProgram(t, "A2"))},
				map[string]string{"a": "A2", "b": "B"}, []string{"program of case a: changed"}},
			{"new goldens do not keep an old program", golden.ImportOptions{Runs: runs("b", bare())},
				map[string]string{"a": "A2", "b": ""}, []string{"program of case b: gone"}},
		}
		for _, step := range steps {
			delta := importRun(t, fsys, dir, step.opt)
			assert.Equal(t, step.delta, delta.Programs, step.reason)
			s := open(t, fsys, dir)
			for name, want := range step.want {
				assert.Equal(t, want, programOf(t, s, "float32", name), "%s: %s", step.reason, name)
			}
			assert.Empty(t, programOf(t, s, "bfloat16", "a"), step.reason)
			assert.Empty(t, verify(t, s), step.reason)
		}
		left, err := afero.ReadDir(fsys, filepath.Join(dir, "programs"))
		require.NoError(t, err)
		require.Len(t, left, 1, "files of replaced programs are gone")
		assert.Equal(t, "a.json", left[0].Name())
	})
}

func TestDamagedProgram(t *testing.T) {
	for _, tt := range []struct {
		reason string
		damage func(t *testing.T, dir string)
		want   string
		extra  bool // the program itself is as it was
	}{
		{"another text", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("B"), 0o644))
		}, "programs/a.json: golden: ", false},
		{"no file", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a.json"))) },
			"does not exist, but the manifest lists it: restore it, or record it again: parity program MODEL --golden DIR", false},
		{"no constants", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a.safetensors"))) },
			"a.safetensors does not exist", false},
		{"other constants", func(t *testing.T, dir string) {
			file := recorded(t, "", 3)
			data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "program.safetensors"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.safetensors"), data, 0o644))
		}, "a.safetensors: sha256 is", false},
		{"a program that no one lists", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte("B"), 0o644))
		}, "programs/b.json: golden: the manifest does not list it", true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			fsys, dir := afero.NewOsFs(), filepath.Join(t.TempDir(), "golden")
			importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a", withProgram(t, "A", 1))})
			tt.damage(t, filepath.Join(dir, "programs"))
			s := open(t, fsys, dir)
			found := verify(t, s)
			require.Len(t, found, 1)
			assert.Contains(t, found[0], tt.want)
			p, err := s.Program(context.Background(), "float32", "a")
			if tt.extra {
				require.NoError(t, err)
				assert.NotNil(t, p)
				return
			}
			assert.True(t, errorsIs(err), "%v", err)
			assert.Nil(t, p)
			_, err = s.Tensors("float32", "a", "0")
			assert.NoError(t, err, "the goldens judge without it")
		})
	}
}

func TestAddPrograms(t *testing.T) {
	ctx, fsys, dir := context.Background(), afero.NewOsFs(), filepath.Join(t.TempDir(), "golden")
	importRun(t, fsys, dir, golden.ImportOptions{Runs: map[string]*golden.Run{"a": ports("l", "output", f32(t, 1, 2)), "b": withProgram(t, "B")}})
	before := open(t, fsys, dir)
	require.NoError(t, golden.AddPrograms(ctx, dir, "float32", map[string]string{"a": recorded(t, "A", 1)}, nil))
	s := open(t, fsys, dir)
	assert.Equal(t, "A+", programOf(t, s, "float32", "a"))
	assert.Equal(t, "B", programOf(t, s, "float32", "b"), "those of other cases stay")
	assert.Equal(t, before.Passes(), s.Passes(), "goldens stay as they are")
	assert.Empty(t, verify(t, s))
	assert.Equal(t, []string{"program of case a: new"}, golden.Diff(before, s).Programs)

	err := golden.AddPrograms(ctx, dir, "float32", map[string]string{"c": recorded(t, "C")}, nil)
	assert.ErrorIs(t, err, golden.ErrNotFound)
	assert.ErrorContains(t, err, "has no golden float32 of case c, for a program to be beside")

	gone, err := golden.Prune(ctx, dir, golden.PruneOptions{Apply: true, Keep: func(_, caseName, _ string) bool { return caseName == "b" }})
	require.NoError(t, err)
	assert.Equal(t, []string{"programs/a.json", "programs/a.safetensors", "float32/a.0.safetensors"}, gone)
	s = open(t, fsys, dir)
	assert.Equal(t, "B", programOf(t, s, "float32", "b"))
	assert.Empty(t, verify(t, s))
}

// A program that is not the reference's own is found where a store is opened.
func TestProgramsInManifest(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", withProgram(t, "A", 1))})
	data, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(t, err)
	for _, tt := range []struct{ from, to, want, reason string }{
		{`"file":"programs/a.json"`, `"file":"../a.json"`, `programs[0]: file is "../a.json", want "programs/a.json"`, "leaves the folder"},
		{`"file":"programs/a.safetensors"`, `"file":"programs/b.safetensors"`, `want "programs/a.safetensors"`, "another name"},
		{`"size":1,`, `"size":-1,`, "programs/a.json: size -1 or sha256", "a size"},
		{`"files":[{`, `"files":[],"file":[{`, "unknown field", "an unknown key"},
		{`"programs": [`, `"programs": [{"variant":"float32","case":"b","files":[]},`, "want files of a program and its constants, not 0", "no files"},
		{`"programs": [`, `"programs": [{"variant":"../","case":"b","files":[]},`, `variant "../" and case "b"`, "a variant"},
		{`"schema": 7`, `"schema":  7`, "", "white space means nothing"},
	} {
		require.Contains(t, string(data), tt.from, tt.reason)
		require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte(strings.Replace(string(data), tt.from, tt.to, 1)), 0o644))
		_, err := golden.OpenOn(fsys, "golden")
		if tt.want == "" {
			assert.NoError(t, err, tt.reason)
			continue
		}
		require.ErrorIs(t, err, golden.ErrCorrupt, tt.reason)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}

// Programs that judge alone need no goldens.
func TestImportPrograms(t *testing.T) {
	ctx, fsys, dir := context.Background(), afero.NewOsFs(), filepath.Join(t.TempDir(), "golden")
	from := map[string]golden.Provenance{"a": {Engine: "torch", Inputs: map[string]string{"case.token_ids": "[[1]]"}}}
	for _, tt := range []struct {
		programs map[string]string
		want     []string
		a, b     string
		reason   string
	}{
		{map[string]string{"a": recorded(t, "A", 1), "b": recorded(t, "B")}, []string{"program of case a: new", "program of case b: new"}, "A+", "B", "a new store"},
		{map[string]string{"a": recorded(t, "A", 1)}, nil, "A+", "B", "the same again"},
		{map[string]string{"b": recorded(t, "B2")}, []string{"program of case b: changed"}, "A+", "B2", "one of two"},
	} {
		changed, err := golden.ImportPrograms(ctx, dir, "float32", tt.programs, from, nil)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, changed, tt.reason)
		s := open(t, fsys, dir)
		assert.Equal(t, tt.a, programOf(t, s, "float32", "a"), tt.reason)
		assert.Equal(t, tt.b, programOf(t, s, "float32", "b"), tt.reason)
		assert.Equal(t, "[[1]]", s.Programs()[0].Provenance.Inputs["case.token_ids"], tt.reason)
		assert.Empty(t, s.Passes())
		assert.Empty(t, verify(t, s))
	}
}
