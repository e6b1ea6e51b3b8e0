package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/safetensors"
)

// places tests in memory, and in a real folder.
func places(t *testing.T, test func(t *testing.T, disk afero.Fs, dir string)) {
	t.Run("memory", func(t *testing.T) { test(t, afero.NewMemMapFs(), "fixtures/x/golden") })
	t.Run("folder", func(t *testing.T) { test(t, afero.NewOsFs(), filepath.Join(t.TempDir(), "x", "golden")) })
}

func f32(t testing.TB, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, 1, len(values))
	require.NoError(t, err)
	return x
}

// ports is a run of one case. The arguments are step, layer and tensor by turns.
func ports(name string, args ...any) *dump.Run {
	var entries []dump.Entry
	for i := 0; i < len(args); i += 3 {
		entries = append(entries, dump.Entry{Step: args[i].(string), Layer: args[i+1].(string), Port: "output", Tensor: args[i+2].(*tensor.Tensor)})
	}
	return dump.New("memory", dump.Info{Engine: "torch", Mode: dump.Standard, Case: name}, dump.OrderRunFile, entries)
}

// keep makes goldens of runs, in place of those of their cases.
func keep(variant string, runs ...*dump.Run) func(*store.Store) (*store.Change, error) {
	return func(old *store.Store) (*store.Change, error) {
		c := &store.Change{Paths: old.Paths()}
		made := map[string]bool{}
		for _, r := range runs {
			made[r.Info.Case] = true
			c.Add = append(c.Add, store.Recording{Kept: store.Kept{Variant: variant, Info: r.Info}, Run: r, Program: r.Program})
		}
		for _, k := range old.Runs() {
			if k.Variant != variant || !made[k.Info.Case] {
				c.Keep = append(c.Keep, k)
			}
		}
		return c, nil
	}
}

func update(t testing.TB, disk afero.Fs, dir string, change func(*store.Store) (*store.Change, error)) {
	t.Helper()
	require.NoError(t, store.UpdateOn(context.Background(), disk, dir, change))
}

func open(t testing.TB, disk afero.Fs, dir string) *store.Store {
	t.Helper()
	s, err := store.OpenOn(disk, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func verify(t testing.TB, s *store.Store) (out []string) {
	t.Helper()
	problems, err := s.Verify(context.Background())
	require.NoError(t, err)
	for _, p := range problems {
		assert.True(t, errors.Is(p.Err, store.ErrCorrupt) || errors.Is(p.Err, store.ErrNotFound), "%s", p)
		out = append(out, p.String())
	}
	return out
}

func names(t testing.TB, disk afero.Fs, dir string) (out []string) {
	t.Helper()
	infos, err := afero.ReadDir(disk, dir)
	require.NoError(t, err)
	for _, i := range infos {
		out = append(out, i.Name())
	}
	return out
}

func bytesOf(t testing.TB, x *tensor.Tensor) string {
	t.Helper()
	var b strings.Builder
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	return x.String() + b.String()
}

// TestRealDump keeps a real dump of torch: as it was, equal tensors once, and the same again is no change.
func TestRealDump(t *testing.T) {
	places(t, func(t *testing.T, disk afero.Fs, dir string) {
		runs, err := dump.OpenCases("../../golden/testdata/layer_comparison", dump.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dump.CloseAll(runs)) })
		update(t, disk, dir, keep("float32", runs...))
		s := open(t, disk, dir)
		kept, err := s.Golden("float32", "ids")
		require.NoError(t, err)
		require.Len(t, kept.Entries, len(runs[0].Entries))
		own := map[string]bool{}
		for i, e := range kept.Entries {
			assert.Equal(t, runs[0].Entries[i].Label(), e.Label())
			assert.Equal(t, bytesOf(t, runs[0].Entries[i].Tensor), bytesOf(t, e.Tensor))
			own[s.Runs()[0].Info.Order[i].Name] = true
		}
		assert.Greater(t, len(own), 1, "one layer's output is another's input: stored once")
		assert.Equal(t, runs[0].Info.Versions, kept.Info.Versions)
		assert.Empty(t, verify(t, s))

		before := names(t, disk, dir)
		require.Len(t, before, 2)
		assert.Regexp(t, `^ids\.0\.[0-9a-f]{8}\.safetensors$`, before[0])
		index, err := afero.ReadFile(disk, filepath.Join(dir, store.IndexFile))
		require.NoError(t, err)
		assert.Contains(t, string(index), "\n [\"0\",\"model.embed_tokens\",\"input_0\",\"ids.0.", "a line for each tensor")
		update(t, disk, dir, keep("float32", runs...))
		again, err := afero.ReadFile(disk, filepath.Join(dir, store.IndexFile))
		require.NoError(t, err)
		assert.Equal(t, string(index), string(again))
		assert.Equal(t, before, names(t, disk, dir))
	})
}

// TestReplace replaces a case of a variant: others and other files stay, old files go.
func TestReplace(t *testing.T) {
	places(t, func(t *testing.T, disk afero.Fs, dir string) {
		a := ports("a", "0", "l", f32(t, 1, 2, 3), "0", "m", f32(t, 10, 20), "0", "n", f32(t, 5), "0", "gone", f32(t, 1))
		update(t, disk, dir, keep("float32", a, ports("b", "0", "l", f32(t, 7))))
		update(t, disk, dir, keep("float64", a))
		require.NoError(t, afero.WriteFile(disk, filepath.Join(dir, ".gitattributes"), []byte("x"), 0o644))
		assert.Len(t, names(t, disk, dir), 4, "the same content of two variants is one file")

		var d *store.Delta
		update(t, disk, dir, func(old *store.Store) (*store.Change, error) {
			c, err := keep("float32", ports("a", "0", "l", f32(t, 1, 2, 3), "0", "m", f32(t, 10, 21), "0", "n", f32(t, 1), "0", "new", f32(t, 1)))(old)
			c.Accept = func(now *store.Store) error {
				d = store.Diff(old, now, func(k *store.Kept) bool { return k.Variant == "float32" && k.Info.Case == "a" })
				return nil
			}
			return c, err
		})
		assert.Equal(t, "1 unchanged, 2 moved, 1 new, 1 gone", d.Summary())
		assert.Equal(t, []string{"gone: float32/a.0 gone-output", "new: float32/a.0 new-output",
			"float32/a.0 n-output: rel. L2 0.8, max |a − g| 4, 1 of 1 elements",
			"float32/a.0 m-output: rel. L2 0.0447, max |a − g| 1, 1 of 2 elements"}, d.Lines(0), "the largest first")
		assert.Equal(t, "… and 1 more", d.Lines(1)[3])

		s := open(t, disk, dir)
		assert.Empty(t, verify(t, s))
		var runs []string
		for _, k := range s.Runs() {
			runs = append(runs, k.String())
		}
		assert.Equal(t, []string{"float32 of case a", "float32 of case b", "float64 of case a"}, runs)
		assert.Len(t, names(t, disk, dir), 5, "other files stay")

		err := store.UpdateOn(context.Background(), disk, dir, func(old *store.Store) (*store.Change, error) {
			c, err := keep("float32", ports("a", "0", "l", f32(t, 9)))(old)
			c.Accept = func(*store.Store) error { return errors.New("too much goes") }
			return c, err
		})
		require.ErrorContains(t, err, "too much goes")
		assert.Len(t, names(t, disk, dir), 5, "what was refused leaves nothing")
		assert.Empty(t, verify(t, open(t, disk, dir)))
	})
}

func TestSteps(t *testing.T) {
	disk := afero.NewMemMapFs()
	update(t, disk, "golden", keep("float32", ports("a", "0", "l", f32(t, 1), "1", "l", f32(t, 1), "10", "l", f32(t, 1))))
	s := open(t, disk, "golden")
	assert.Equal(t, 3, s.Steps("float32", "a"))
	run, err := s.Golden("float32", "a")
	require.NoError(t, err)
	assert.Equal(t, []string{"0", "1", "10"}, run.Steps())
	_, err = s.Golden("float32", "b")
	require.ErrorIs(t, err, store.ErrNotFound)
	assert.ErrorContains(t, err, "golden has no golden float32 of case b: make it: go test ./... -update")
	_, err = store.OpenOn(disk, "fixtures/x/golden")
	require.ErrorIs(t, err, store.ErrNotFound)
	assert.EqualError(t, err, "store: fixtures/x/golden has no index.json: make goldens: go test ./... -update")
}

// Names of cases and steps do not leave the folder.
func TestNames(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "saved")
	x := f32(t, 1, 2)
	runs := []*dump.Run{ports("short", "0", "m", x), ports("../../evil", "0", "m", x)}
	runs[0].Info.Weights = []string{"w.safetensors"}
	require.NoError(t, store.Update(t.Context(), dir, nil, keep("", runs...)))
	again, err := store.OpenCases(dir, dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(again)
	require.Len(t, again, 2)
	assert.Equal(t, "../../evil", again[1].Info.Case)
	assert.Empty(t, again[0].Info.Weights, "their files are not written")
	assert.Equal(t, bytesOf(t, x), bytesOf(t, again[1].Entries[0].Tensor))
	assert.Equal(t, []string{"a"}, names(t, afero.NewOsFs(), parent), "nothing was written outside")
	assert.Equal(t, []string{"index.json"}, names(t, afero.NewOsFs(), dir)[1:2])
}

// Of what a folder keeps that is opened which is asked for.
func TestOpenCases(t *testing.T) {
	run := func(name, mode string) *dump.Run {
		r := ports(name, "0", "m", f32(t, 1))
		r.Info.Mode = mode
		return r
	}
	standard, injected, along := run("a", dump.Standard), run("a", dump.Injected), run(dump.PathCase("a", "decode:2"), dump.Standard)
	padded := run("a", dump.Standard)
	padded.Info.PadMasks = map[string][][]int{"1": {{0, 1}}}
	for _, tt := range []struct {
		kept   []*dump.Run
		opt    dump.Options
		want   string // "" for an error
		reason string
	}{
		{[]*dump.Run{padded}, dump.Options{}, "", "what cannot be judged"},
		{[]*dump.Run{padded}, dump.Options{Unjudged: true}, "a standard", "unless that is asked for"},
		{[]*dump.Run{standard, injected, along}, dump.Options{}, "a standard", "one pass"},
		{[]*dump.Run{standard, injected, along}, dump.Options{Mode: dump.Injected}, "a injected", "the mode that is asked for"},
		{[]*dump.Run{standard, injected, along}, dump.Options{Unjudged: true}, "a standard, a@decode-2 standard", "paths, too"},
		{[]*dump.Run{injected}, dump.Options{}, "a injected", "the only mode"},
		{[]*dump.Run{along}, dump.Options{}, "", "along a path alone"},
	} {
		dir := t.TempDir()
		require.NoError(t, store.Update(t.Context(), dir, nil, keep("", tt.kept...)))
		runs, err := store.OpenCases(dir, tt.opt)
		if tt.want == "" {
			assert.True(t, errors.Is(err, dump.ErrEmpty) || errors.Is(err, dump.ErrUnjudged), tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		var got []string
		for _, r := range runs {
			got = append(got, r.Info.Case+" "+r.Info.Mode)
		}
		assert.Equal(t, tt.want, strings.Join(got, ", "), tt.reason)
		require.NoError(t, dump.CloseAll(runs))
	}
	dir := t.TempDir()
	require.NoError(t, store.Update(t.Context(), dir, nil, keep("float32", standard)))
	require.NoError(t, store.Update(t.Context(), dir, nil, keep("float64", standard)))
	x, err := store.ReadIndex(dir)
	require.NoError(t, err)
	assert.Len(t, x.Runs, 2)
	_, err = store.OpenCases(dir, dump.Options{})
	assert.ErrorContains(t, err, "it keeps goldens of [float32 float64]: want one run for each case")
}

// TestOpenFiles opens a store of many forward passes: no descriptor stays open.
func TestOpenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "golden")
	var args []any
	for step := range 300 {
		args = append(args, string(rune('0'+step%10))+strings.Repeat("0", step/10), "l", f32(t, make([]float32, 6000)...))
	}
	require.NoError(t, store.Update(t.Context(), dir, nil, keep("float32", ports("a", args...))))
	fds := func() int { n, _ := os.ReadDir("/proc/self/fd"); return len(n) }
	mapped := func() bool { maps, _ := os.ReadFile("/proc/self/maps"); return bytes.Contains(maps, []byte(dir)) }
	before := fds()
	s, err := store.Open(dir)
	require.NoError(t, err)
	_, err = s.Golden("float32", "a")
	require.NoError(t, err)
	assert.Less(t, fds(), before+10)
	assert.True(t, mapped())
	require.NoError(t, s.Close())
	assert.False(t, mapped(), "no memory either")
}

// Any flipped byte of a file is found, and any truncation.
func TestDamage(t *testing.T) {
	places(t, func(t *testing.T, disk afero.Fs, dir string) {
		update(t, disk, dir, keep("float32", ports("a", "0", "l", f32(t, 1, 2), "0", "m", f32(t, 3))))
		file := filepath.Join(dir, names(t, disk, dir)[0])
		whole, err := afero.ReadFile(disk, file)
		require.NoError(t, err)
		step := 1
		if _, real := disk.(*afero.OsFs); real {
			step = 17
		}
		check := func(data []byte, what string, at int) {
			require.NoError(t, afero.WriteFile(disk, file, data, 0o644))
			s, err := store.OpenOn(disk, dir)
			require.NoError(t, err)
			defer s.Close()
			require.NotEmpty(t, verify(t, s), "%s %d", what, at)
			_, err = s.Golden("float32", "a")
			require.ErrorIs(t, err, store.ErrCorrupt, "%s %d", what, at)
		}
		for at := 0; at < len(whole); at += step {
			if whole[at] != ' ' { // padding of the header says nothing
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << (at % 5)
				check(damaged, "byte", at)
			}
			check(whole[:at], "cut at", at)
		}
	})
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		damage func(t *testing.T, disk afero.Fs, file string)
		want   string
		is     error
		reason string
	}{
		{func(t *testing.T, disk afero.Fs, file string) { require.NoError(t, disk.Remove(file)) },
			"does not exist, but index.json lists it", store.ErrNotFound, "missing"},
		{func(t *testing.T, disk afero.Fs, file string) {
			require.NoError(t, afero.WriteFile(disk, file, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), 0o644))
		}, "git lfs pull", tensor.ErrLFSPointer, "pointer"},
		{func(t *testing.T, disk afero.Fs, _ string) {
			require.NoError(t, afero.WriteFile(disk, "golden/b.0.safetensors", nil, 0o644))
		}, "b.0.safetensors: store: the store is damaged: index.json does not list it, and goparity did not write it: delete it", store.ErrCorrupt, "extra"},
		{func(t *testing.T, disk afero.Fs, file string) {
			var b bytes.Buffer
			require.NoError(t, safetensors.Write(&b, []tensor.Named{{Name: "l-output", Tensor: f32(t, 1, 2)}, {Name: "m-output", Tensor: f32(t, 4)}}, nil))
			require.NoError(t, afero.WriteFile(disk, file, b.Bytes(), 0o644))
		}, "its sha256 is", store.ErrCorrupt, "other values"},
	} {
		disk := afero.NewMemMapFs()
		update(t, disk, "golden", keep("float32", ports("a", "0", "l", f32(t, 1, 2), "0", "m", f32(t, 3))))
		tt.damage(t, disk, filepath.Join("golden", names(t, disk, "golden")[0]))
		problems, err := open(t, disk, "golden").Verify(context.Background())
		require.NoError(t, err)
		require.Len(t, problems, 1, tt.reason)
		assert.Contains(t, problems[0].String(), tt.want, tt.reason)
		assert.ErrorIs(t, problems[0].Err, tt.is, tt.reason)
	}
}

var seal = regexp.MustCompile(`,"sha256":"[0-9a-f]{64}"`)

// An index that lists something else than was kept is refused, and not replaced; another form of the same is none.
func TestIndex(t *testing.T) {
	disk := afero.NewMemMapFs()
	run := ports("a", "0", "l", f32(t, 1, 2), "0", "m", f32(t, 3), "0", "model", f32(t, 3))
	update(t, disk, "golden", keep("float32", run, ports("b", "0", "l", f32(t, 4))))
	name := filepath.Join("golden", store.IndexFile)
	data, err := afero.ReadFile(disk, name)
	require.NoError(t, err)
	good := string(data)
	cut := func(pattern, with string) string { return regexp.MustCompile(pattern).ReplaceAllString(good, with) }
	for _, tt := range []struct{ text, want, reason string }{
		{"", "EOF", "empty"},
		{"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull", "pointer"},
		{"{}", "schema is 0, this version of goparity reads 1", "no schema"},
		{strings.Replace(good, `"schema":1`, `"schema":2`, 1), "schema is 2", "a later version"},
		{strings.Replace(good, `"runs"`, `"rusn"`, 1), `unknown field "rusn"`, "unknown key"},
		{cut(`,\n \["0","model"[^\n]*?\]`, ""), "does not fit its sha256", "a twin of another tensor is gone"},
		{cut(`(?s),\{"variant":"float32",\n "info":\{"schema":2,"engine":"torch","mode":"standard","case":"b".*\}\}\}`, ""), "does not fit its sha256", "a run is gone"},
		{strings.Replace(good, `"model"`, `"head"`, 1), "does not fit its sha256", "a layer has another name"},
		{strings.Replace(good, `"engine":"torch"`, `"engine":"other"`, 1), "does not fit its sha256", "another engine"},
		{strings.Replace(good, seal.FindString(good), "", 1), "does not fit its sha256", "the hash is gone"},
	} {
		require.NotEqual(t, good, tt.text, tt.reason)
		require.NoError(t, afero.WriteFile(disk, name, []byte(tt.text), 0o644))
		_, err := store.OpenOn(disk, "golden")
		require.ErrorIs(t, err, store.ErrCorrupt, tt.reason)
		assert.ErrorContains(t, err, tt.want, tt.reason)
		assert.ErrorContains(t, err, name, tt.reason)
		err = store.UpdateOn(context.Background(), disk, "golden", keep("float32", run))
		require.ErrorIs(t, err, store.ErrCorrupt, "nor is anything added to it: %s", tt.reason)
	}
	for reason, text := range map[string]string{"Windows line ends": strings.ReplaceAll(good, "\n", "\r\n"),
		"escapes": strings.Replace(good, `"model"`, `"mod\u0065l"`, 1)} {
		require.NoError(t, afero.WriteFile(disk, name, []byte(text), 0o644))
		assert.Empty(t, verify(t, open(t, disk, "golden")), reason)
	}
	for file, want := range map[string]string{"": "leaves the folder", "..": "leaves the folder", "../a": "leaves the folder", "a": "has no sha256"} {
		x, err := store.ParseIndex(data)
		require.NoError(t, err)
		x.Runs[0].Program = []string{file}
		sealed, err := x.Marshal()
		require.NoError(t, err)
		_, err = store.ParseIndex(sealed)
		assert.ErrorContains(t, err, fmt.Sprintf("file %q %s", file, want))
	}
}

func FuzzIndex(f *testing.F) {
	disk := afero.NewMemMapFs()
	update(f, disk, "golden", keep("float32", ports("a", "0", "l", f32(f, 1, 2), "0", "m", f32(f, 1, 2))))
	data, err := afero.ReadFile(disk, filepath.Join("golden", store.IndexFile))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"schema":1,"runs":[{"info":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := store.ParseIndex(data)
		if err != nil {
			require.ErrorIs(t, err, store.ErrCorrupt)
			return
		}
		again, err := x.Marshal()
		require.NoError(t, err)
		_, err = store.ParseIndex(again)
		require.NoError(t, err)
	})
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "golden")
	disk := afero.NewOsFs()
	update(t, disk, dir, keep("float32", ports("a", "0", "l", f32(t, 1), "1", "l", f32(t, 2)), ports("b", "0", "l", f32(t, 3))))
	for _, name := range []string{"old.0.01234567.safetensors", "mine.safetensors", "README.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	first := func(k *store.Kept) bool { return k.Info.Case == "a" }
	for _, tt := range []struct {
		apply  bool
		want   []string
		left   int
		reason string
	}{
		{false, []string{"float32 of case b", "old.0.01234567.safetensors"}, 7, "only listed"},
		{true, []string{"float32 of case b", "old.0.01234567.safetensors"}, 5, "README.md stays, and what store did not write"},
		{true, nil, 5, "and is not listed"},
	} {
		gone, err := store.Prune(t.Context(), dir, tt.apply, nil, first)
		require.NoError(t, err)
		assert.Equal(t, tt.want, gone, tt.reason)
		assert.Len(t, names(t, disk, dir), tt.left, tt.reason)
	}
	s := open(t, disk, dir)
	assert.Equal(t, 2, s.Steps("float32", "a"))
	gone, err := store.Prune(t.Context(), dir, true, nil, func(*store.Kept) bool { return false })
	assert.ErrorContains(t, err, "nothing would be left", gone)
	require.NoError(t, os.WriteFile(filepath.Join(dir, s.Runs()[0].Info.Order[0].File), []byte("x"), 0o644))
	_, err = store.Prune(t.Context(), dir, true, nil, first)
	assert.ErrorContains(t, err, "nothing is removed from a damaged store")
}

// TestCutWhileKept keeps a dump of which a file loses its last element meanwhile. Memory that is mapped
// shows zeros there.
func TestCutWhileKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dump", "l-output.npy")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	values := make([]float32, 8000)
	values[7999] = 1
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, errors.Join(npy.Write(f, f32(t, values...)), f.Close()))
	runs, err := dump.OpenCases(filepath.Dir(file), dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(runs)
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, st.Size()-4))
	err = store.Update(t.Context(), filepath.Join(dir, "golden"), nil, keep("", runs...))
	var fault *mapfile.Fault
	require.ErrorAs(t, err, &fault)
	_, err = os.Stat(filepath.Join(dir, "golden"))
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing was made")
}

// ran is a run of a program, with its constants.
func ran(t *testing.T, run *dump.Run, program string, constants ...float32) *dump.Run {
	run.Program = filepath.Join(t.TempDir(), "program.json")
	require.NoError(t, os.WriteFile(run.Program, []byte(program), 0o644))
	if len(constants) > 0 {
		out, err := os.Create(strings.TrimSuffix(run.Program, ".json") + ".safetensors")
		require.NoError(t, err)
		require.NoError(t, errors.Join(safetensors.Write(out, []tensor.Named{{Name: "sha256:1", Tensor: f32(t, constants...)}}, nil), out.Close()))
	}
	return run
}

// TestPrograms keeps a program with its constants, replaces it, and keeps it where other goldens are replaced.
func TestPrograms(t *testing.T) {
	places(t, func(t *testing.T, disk afero.Fs, dir string) {
		of := func(name string) *dump.Run { return ports(name, "0", "l", f32(t, 1, 2)) }
		for _, step := range []struct {
			runs   []*dump.Run
			want   map[string]string
			reason string
		}{
			{[]*dump.Run{ran(t, of("a"), "A", 1, 2), ran(t, of("b"), "B")}, map[string]string{"a": "A+", "b": "B"}, "with and without constants"},
			{[]*dump.Run{ran(t, of("a"), "A2")}, map[string]string{"a": "A2", "b": "B"}, "a new one in its place"},
			{[]*dump.Run{of("b")}, map[string]string{"a": "A2", "b": ""}, "new goldens do not keep an old program"},
		} {
			update(t, disk, dir, keep("float32", step.runs...))
			s := open(t, disk, dir)
			for name, want := range step.want {
				p, err := s.Program("float32", name)
				require.NoError(t, err)
				got := ""
				if p != nil {
					got = string(p.Data)
					if p.Constants != nil {
						got += "+"
					}
				}
				assert.Equal(t, want, got, "%s: %s", step.reason, name)
			}
			assert.Empty(t, verify(t, s), step.reason)
		}
		s := open(t, disk, dir)
		assert.Equal(t, []bool{true, false}, []bool{s.HasProgram("a"), s.HasProgram("b")})
		i := s.Find("float32", "a")
		require.NoError(t, afero.WriteFile(disk, filepath.Join(dir, i.Program[0]), []byte("X"), 0o644))
		_, err := open(t, disk, dir).Program("float32", "a")
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.NoError(t, disk.Remove(filepath.Join(dir, i.Program[0])))
		_, err = open(t, disk, dir).Program("float32", "a")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestDiff(t *testing.T) {
	disk := afero.NewMemMapFs()
	nan := float32(math.NaN())
	f64, err := tensor.Of([]float64{1, 3}, 1, 2)
	require.NoError(t, err)
	x := f32(t, 1, 2)
	update(t, disk, "a", keep("float32", ports("c", "0", "shape", x, "0", "same", f32(t, nan), "0", "nan", x, "0", "type", x),
		ran(t, ports("d", "0", "l", x), "D"), ran(t, ports("e", "0", "l", x), "E"), ports("f", "0", "l", x), ran(t, ports("g", "0", "l", x), "G")))
	update(t, disk, "b", keep("float32", ports("c", "0", "shape", f32(t, 1), "0", "same", f32(t, nan), "0", "nan", f32(t, nan, 2), "0", "type", f64),
		ran(t, ports("d", "0", "l", x), "D"), ran(t, ports("e", "0", "l", x), "E2"), ran(t, ports("f", "0", "l", x), "F"), ports("g", "0", "l", x)))
	diff := func(want func(*store.Kept) bool) *store.Delta {
		return store.Diff(open(t, disk, "a"), open(t, disk, "b"), want)
	}
	d := diff(nil)
	assert.Equal(t, "5 unchanged, 3 moved, 0 new, 0 gone, 3 programs changed", d.Summary())
	assert.Equal(t, []string{"float32/c.0 shape-output: was float32[1 2], is float32[1 1]",
		"float32/c.0 type-output: was float32[1 2], is float64[1 2]; rel. L2 0.447", "float32/c.0 nan-output: rel. L2 0, max |a − g| 0, 1 of 2 elements",
		"program of case e: changed", "program of case f: new", "program of case g: gone"}, d.Lines(0), "a value that became NaN has moved")
	assert.Empty(t, diff(func(k *store.Kept) bool { return k.Info.Case == "d" }).Lines(0))
	for _, side := range []string{"b", "a"} {
		require.NoError(t, disk.Remove(filepath.Join(side, names(t, disk, side)[0])))
		assert.Contains(t, diff(nil).Moved[0], map[string]string{"a": "the old", "b": "the new"}[side]+" golden cannot be read")
	}
}
