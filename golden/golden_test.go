package golden_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/tensor"
)

const dumpDir = "testdata/layer_comparison" // a real torch dump

func openDump(t testing.TB) *golden.Run {
	t.Helper()
	d, err := golden.OpenDump(dumpDir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.Len(t, d.Runs, 1)
	for _, run := range d.Runs {
		return run
	}
	return nil
}

func day() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// places returns two places for a store: in memory, and a real folder.
func places(t *testing.T, test func(t *testing.T, fsys afero.Fs, dir string, real bool)) {
	t.Run("memory", func(t *testing.T) { test(t, afero.NewMemMapFs(), "fixtures/x/golden", false) })
	t.Run("folder", func(t *testing.T) { test(t, afero.NewOsFs(), filepath.Join(t.TempDir(), "x", "golden"), true) })
}

func importRun(t testing.TB, fsys afero.Fs, dir string, opt golden.ImportOptions) *golden.Delta {
	t.Helper()
	if opt.Now == nil {
		opt.Now = day
	}
	d, err := golden.ImportOn(context.Background(), fsys, dir, opt)
	require.NoError(t, err)
	return d
}

func open(t testing.TB, fsys afero.Fs, dir string) *golden.Store {
	t.Helper()
	s, err := golden.OpenOn(fsys, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func verify(t testing.TB, s *golden.Store) []string {
	t.Helper()
	problems, err := s.Verify(context.Background())
	require.NoError(t, err)
	var out []string
	for _, p := range problems {
		assert.True(t, errorsIs(p.Err), "%s", p)
		out = append(out, p.String())
	}
	return out
}

func bytesOf(t testing.TB, x *tensor.Tensor) string {
	t.Helper()
	var b strings.Builder
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

func f32(t testing.TB, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, 1, len(values))
	require.NoError(t, err)
	return x
}

// ports returns a run of one step. The arguments are layer, port and tensor by turns.
func ports(args ...any) *golden.Run {
	r := &golden.Run{From: "memory", Engine: "torch"}
	for i := 0; i < len(args); i += 3 {
		r.Ports = append(r.Ports, golden.Port{Step: "0", Layer: args[i].(string), Port: args[i+1].(string),
			Tensor: args[i+2].(*tensor.Tensor)})
	}
	return r
}

func runs(caseName string, r *golden.Run) map[string]*golden.Run {
	return map[string]*golden.Run{caseName: r}
}

func TestImportRealDump(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, real bool) {
		run := openDump(t)
		d := importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("ids", run),
			Inputs:     map[string]map[string]string{"ids": {"case.token_ids": "[[1]]"}},
			Provenance: golden.Provenance{Weights: "abc", Command: "go test -update"}})
		assert.Len(t, d.Added, len(run.Ports))
		assert.Empty(t, d.Moved)
		assert.Empty(t, d.Removed)

		s := open(t, fsys, dir)
		require.Len(t, s.Passes(), 1)
		p := s.Passes()[0]
		assert.Equal(t, "float32/ids.0.safetensors", p.File)
		assert.Equal(t, "torch", p.Provenance.Engine)
		assert.Equal(t, "2.15.0", p.Provenance.Versions["torch"])
		assert.Equal(t, "2026-11-21T12:00:00Z", p.Provenance.Date)
		assert.Equal(t, "abc", p.Provenance.Weights)
		assert.JSONEq(t, string(run.TokenIDs), string(p.Provenance.TokenIDs))
		assert.Equal(t, []string{"float32"}, s.Variants("ids"))
		assert.Equal(t, []string{"0"}, s.Steps("float32", "ids"))

		entries, err := s.Tensors("float32", "ids", "0")
		require.NoError(t, err)
		require.Len(t, entries, len(run.Ports), "all of them, in execution order")
		ranges := map[int64]bool{}
		for i, e := range entries {
			want := run.Ports[i]
			assert.Equal(t, want.Label(), e.Label())
			assert.Equal(t, i, e.Index)
			x, err := e.Tensor()
			require.NoError(t, err)
			assert.Equal(t, want.Tensor.String(), x.String(), e.Label())
			assert.Equal(t, bytesOf(t, want.Tensor), bytesOf(t, x), e.Label())
			assert.NoError(t, e.Verify())
			ranges[e.Offset] = true
		}
		assert.Less(t, len(ranges), len(entries), "one layer's output is another's input: stored once")
		assert.Empty(t, verify(t, s))

		x, err := entries[0].Tensor()
		require.NoError(t, err)
		_, err = os.Stat(x.Place().File)
		assert.Equal(t, real, err == nil, "a real file is mapped, another is read: %s", x.Place().File)

		// Again: the same bytes, nothing moved, nothing is left next to it.
		manifest, err := afero.ReadFile(fsys, filepath.Join(dir, golden.ManifestFile))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		d = importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("ids", run),
			Inputs:     map[string]map[string]string{"ids": {"case.token_ids": "[[1]]"}},
			Provenance: golden.Provenance{Weights: "abc", Command: "go test -update"}})
		assert.Equal(t, &golden.Delta{Same: len(entries)}, d)
		again, err := afero.ReadFile(fsys, filepath.Join(dir, golden.ManifestFile))
		require.NoError(t, err)
		assert.Equal(t, string(manifest), string(again))
		assertOnly(t, fsys, filepath.Dir(dir), "golden")
	})
}

// assertOnly requires that a folder has a single entry.
func assertOnly(t testing.TB, fsys afero.Fs, dir, name string) {
	t.Helper()
	infos, err := afero.ReadDir(fsys, dir)
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, name, infos[0].Name())
}

func TestImportLeavesTheRest(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, _ bool) {
		a := ports("l", "output", f32(t, 1, 2, 3), "m", "output", f32(t, 10, 20), "n", "output", f32(t, 5), "gone",
			"output", f32(t, 1))
		importRun(t, fsys, dir, golden.ImportOptions{Runs: map[string]*golden.Run{"a": a,
			"b": ports("l", "output", f32(t, 7))}})
		importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a", a), Variant: "float64"})
		require.NoError(t, afero.WriteFile(fsys, filepath.Join(dir, ".gitattributes"), []byte("x"), 0o644))

		d := importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a",
			ports("l", "output", f32(t, 1, 2, 3), "m", "output", f32(t, 10, 21),
				"n", "output", f32(t, 1), "new", "output", f32(t, 1)))})
		assert.Equal(t, 1, d.Same)
		key := func(layer string) golden.Key {
			return golden.Key{Variant: "float32", Case: "a", Step: "0", Layer: layer, Port: "output"}
		}
		assert.Equal(t, []golden.Key{key("new")}, d.Added)
		assert.Equal(t, []golden.Key{key("gone")}, d.Removed)
		require.Len(t, d.Moved, 2)
		assert.Equal(t, key("n"), d.Moved[0].Key, "the largest first")
		assert.InDelta(t, 0.8, d.Moved[0].RelL2, 1e-12)
		assert.Equal(t, golden.Moved{Key: key("m"), RelL2: d.Moved[1].RelL2, MaxAbs: 1, Changed: 1, N: 2}, d.Moved[1])
		assert.InDelta(t, 1/math.Sqrt(500), d.Moved[1].RelL2, 1e-12)
		assert.Contains(t, d.Moved[1].String(), "float32/a.0 m-output: rel. L2 0.0447, max |a − g| 1, 1 of 2 elements")

		s := open(t, fsys, dir)
		var files []string
		for _, p := range s.Passes() {
			files = append(files, p.File)
		}
		assert.Equal(t, []string{"float32/a.0.safetensors", "float32/b.0.safetensors", "float64/a.0.safetensors"},
			files)
		assert.Empty(t, verify(t, s))
		kept, err := afero.Exists(fsys, filepath.Join(dir, ".gitattributes"))
		require.NoError(t, err)
		assert.True(t, kept, "other files stay")
	})
}

func TestImportSteps(t *testing.T) {
	fsys := afero.NewMemMapFs()
	var entries []golden.Port
	for _, step := range []string{"0", "1", "2", "10"} {
		entries = append(entries, golden.Port{Step: step, Layer: "l", Port: "output", Tensor: f32(t, 1)})
	}
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", &golden.Run{Ports: entries})})
	s := open(t, fsys, "golden")
	assert.Equal(t, []string{"0", "1", "2", "10"}, s.Steps("float32", "a"))
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", &golden.Run{Ports: entries[:2]})})
	s = open(t, fsys, "golden")
	assert.Equal(t, []string{"0", "1"}, s.Steps("float32", "a"), "a case is replaced with all its steps")
	assert.Empty(t, verify(t, s), "their files are gone")
}

func TestImportKeep(t *testing.T) {
	fsys := afero.NewMemMapFs()
	run := openDump(t)
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", run),
		Keep: func(layer, port string) bool { return port == "output" }})
	entries, err := open(t, fsys, "golden").Tensors("float32", "a", "0")
	require.NoError(t, err)
	assert.Less(t, len(entries), len(run.Ports))
	for _, e := range entries {
		assert.Equal(t, "output", e.Port)
		assert.Equal(t, e.Label(), run.Ports[e.Index].Label(), "the index is that of the run")
	}
}

func TestImportRefuses(t *testing.T) {
	one := func(change func(r *golden.Run)) *golden.Run {
		r := ports("l", "output", f32(t, 1))
		change(r)
		return r
	}
	tests := []struct {
		run    *golden.Run
		opt    golden.ImportOptions
		want   string
		reason string
	}{
		{one(func(r *golden.Run) { r.Injected = true }), golden.ImportOptions{}, "it is an injected run", "injected"},
		{one(func(r *golden.Run) { r.Engine = "max" }), golden.ImportOptions{}, "or are blessed with a reason",
			"the candidate"},
		{one(func(r *golden.Run) { r.Ports[0].Partial = true }), golden.ImportOptions{},
			"shows only some of its values", "a COMPACT log"},
		{one(func(r *golden.Run) { r.Ports[0].Step = "../0" }), golden.ImportOptions{}, `step "../0"`,
			"a step that leaves the folder"},
		{one(func(*golden.Run) {}), golden.ImportOptions{Variant: "../f"}, `variant "../f"`,
			"a variant that leaves the folder"},
		{one(func(*golden.Run) {}), golden.ImportOptions{Keep: func(string, string) bool { return false }},
			"nothing of the step is captured", "vacuous"},
	}
	for _, tt := range tests {
		fsys := afero.NewMemMapFs()
		tt.opt.Runs = runs("a", tt.run)
		_, err := golden.ImportOn(context.Background(), fsys, "golden", tt.opt)
		assert.ErrorContains(t, err, tt.want, "%s", tt.reason)
		_, err = golden.OpenOn(fsys, "golden")
		assert.ErrorIs(t, err, golden.ErrNotFound, "%s: nothing was written", tt.reason)
	}
	_, err := golden.ImportOn(context.Background(), afero.NewMemMapFs(), "golden", golden.ImportOptions{})
	assert.ErrorContains(t, err, "no runs")

	fsys := afero.NewMemMapFs()
	blessed := one(func(r *golden.Run) { r.Engine = "max" })
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", blessed),
		Provenance: golden.Provenance{Blessed: "the reference cannot"}})
	assert.Equal(t, "the reference cannot", open(t, fsys, "golden").Passes()[0].Provenance.Blessed)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = golden.ImportOn(ctx, fsys, "golden",
		golden.ImportOptions{Runs: runs("a", ports("l", "output", f32(t, 2)))})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "the reference cannot", open(t, fsys, "golden").Passes()[0].Provenance.Blessed, "it is not changed")

	require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte("{"), 0o644))
	_, err = golden.ImportOn(context.Background(), fsys, "golden",
		golden.ImportOptions{Runs: runs("a", ports("l", "output", f32(t, 2)))})
	assert.ErrorIs(t, err, golden.ErrCorrupt, "a damaged manifest is not overwritten")
}

func TestStats(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	big, err := tensor.Of([]float64{1e300, -1e300, 1e300, 1e300}, 4)
	require.NoError(t, err)
	tests := []struct {
		x      *tensor.Tensor
		want   golden.Stats
		reason string
	}{
		{f32(t, 1, 2, 3, 4), golden.Stats{Min: 1, Max: 4, Mean: 2.5, Std: math.Sqrt(1.25), L2: math.Sqrt(30)}, "plain"},
		{f32(t, nan, 3, inf, -inf, -3), golden.Stats{Min: -3, Max: 3, Std: 3, L2: math.Sqrt(18), NaN: 1, Inf: 2},
			"the figures are over the finite values"},
		{f32(t, nan, inf), golden.Stats{NaN: 1, Inf: 1}, "none is finite"},
		{f32(t), golden.Stats{}, "empty"},
		{f32(t, 0, 0), golden.Stats{}, "zeros"},
		{big, golden.Stats{Min: -1e300, Max: 1e300, Mean: 5e299, Std: math.Sqrt(0.75) * 1e300, L2: 2e300},
			"squares that would overflow"},
	}
	for _, tt := range tests {
		fsys := afero.NewMemMapFs()
		importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", ports("l", "output", tt.x))})
		s := open(t, fsys, "golden")
		got := s.Passes()[0].Tensors[0].Stats
		assert.InEpsilon(t, 1+tt.want.Mean, 1+got.Mean, 1e-12, tt.reason)
		assert.InEpsilon(t, 1+tt.want.Std, 1+got.Std, 1e-12, tt.reason)
		assert.InEpsilon(t, 1+tt.want.L2, 1+got.L2, 1e-12, tt.reason)
		got.Mean, got.Std, got.L2 = tt.want.Mean, tt.want.Std, tt.want.L2
		assert.Equal(t, tt.want, got, tt.reason)
		assert.Empty(t, verify(t, s), tt.reason)
	}
}

func TestOpenErrors(t *testing.T) {
	fsys := afero.NewMemMapFs()
	_, err := golden.OpenOn(fsys, "fixtures/x/golden")
	require.ErrorIs(t, err, golden.ErrNotFound)
	assert.EqualError(t, err, "golden: fixtures/x/golden has no manifest.json: make goldens: go test ./... -update")

	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a", ports("l", "output", f32(t, 1)))})
	s := open(t, fsys, "golden")
	_, err = s.Tensors("float32", "b", "0")
	require.ErrorIs(t, err, golden.ErrNotFound)
	assert.ErrorContains(t, err, "golden has no golden float32/b.0.safetensors")

	require.NoError(t, fsys.Remove("golden/float32/a.0.safetensors"))
	entries, err := s.Tensors("float32", "a", "0")
	require.NoError(t, err, "listing opens no file")
	_, err = entries[0].Tensor()
	require.ErrorIs(t, err, golden.ErrNotFound)
	assert.ErrorContains(t, err, "a.0.safetensors does not exist, but the manifest lists it")
}

func TestDiff(t *testing.T) {
	fsys := afero.NewMemMapFs()
	ints, err := tensor.Of([]int64{1, 2}, 2)
	require.NoError(t, err)
	nan := float32(math.NaN())
	importRun(t, fsys, "a", golden.ImportOptions{Runs: runs("c",
		ports("shape", "output", f32(t, 1, 2), "same", "output", f32(t, nan), "int", "output", ints, "nan", "output",
			f32(t, 1, 2)))})
	other, err := tensor.Of([]int64{1, 5}, 2)
	require.NoError(t, err)
	importRun(t, fsys, "b", golden.ImportOptions{Runs: runs("c",
		ports("shape", "output", f32(t, 1), "same", "output", f32(t, nan), "int", "output", other, "nan", "output",
			f32(t, nan, 2)))})
	d := golden.Diff(open(t, fsys, "a"), open(t, fsys, "b"))
	assert.Equal(t, 1, d.Same)
	require.Len(t, d.Moved, 3)
	assert.Equal(t, "float32/c.0 shape-output: was float32[1 2], is float32[1 1]", d.Moved[0].String())
	assert.Equal(t, "int", d.Moved[1].Layer)
	assert.InDelta(t, 3, d.Moved[1].MaxAbs, 0)
	assert.Equal(t, 1, d.Moved[2].Changed, "a value that became NaN has moved, though no distance shows it")
	assert.Zero(t, d.Moved[2].RelL2)

	require.NoError(t, fsys.Remove("a/float32/c.0.safetensors"))
	d = golden.Diff(open(t, fsys, "a"), open(t, fsys, "b"))
	require.Len(t, d.Moved, 3)
	assert.Contains(t, d.Moved[0].Note, "the old golden cannot be read")
}

func TestPrune(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, _ bool) {
		importRun(t, fsys, dir, golden.ImportOptions{Runs: map[string]*golden.Run{"a": ports("l", "output", f32(t, 1)),
			"b": ports("l", "output", f32(t, 2))}})
		importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a", ports("l", "output", f32(t, 3))),
			Variant: "float64"})
		stray := filepath.Join(dir, "float32", "old.0.safetensors")
		require.NoError(t, afero.WriteFile(fsys, stray, []byte("x"), 0o644))
		require.NoError(t, afero.WriteFile(fsys, filepath.Join(dir, "README.md"), []byte("x"), 0o644))
		assert.Len(t, verify(t, open(t, fsys, dir)), 1)

		opt := golden.PruneOptions{Keep: func(variant, name, _ string) bool {
			return variant == "float32" && name == "a"
		}}
		want := []string{"float32/b.0.safetensors", "float64/a.0.safetensors", "float32/old.0.safetensors"}
		files, err := golden.PruneOn(context.Background(), fsys, dir, opt)
		require.NoError(t, err)
		assert.Equal(t, want, files)
		assert.Len(t, open(t, fsys, dir).Passes(), 3, "only listed")

		opt.Apply = true
		files, err = golden.PruneOn(context.Background(), fsys, dir, opt)
		require.NoError(t, err)
		assert.Equal(t, want, files)
		s := open(t, fsys, dir)
		assert.Len(t, s.Passes(), 1)
		assert.Empty(t, verify(t, s))
		kept, err := afero.Exists(fsys, filepath.Join(dir, "README.md"))
		require.NoError(t, err)
		assert.True(t, kept)
		require.NoError(t, s.Close())

		files, err = golden.PruneOn(context.Background(), fsys, dir, opt)
		require.NoError(t, err)
		assert.Empty(t, files, "nothing left")
		opt.Keep = func(string, string, string) bool { return false }
		_, err = golden.PruneOn(context.Background(), fsys, dir, opt)
		assert.ErrorContains(t, err, "nothing would be left")
		require.NoError(t, afero.WriteFile(fsys, filepath.Join(dir, "float32", "a.0.safetensors"), []byte("x"), 0o644))
		opt.Keep = func(string, string, string) bool { return true }
		_, err = golden.PruneOn(context.Background(), fsys, dir, opt)
		assert.ErrorContains(t, err, "nothing is removed from a damaged store")
	})
}

func TestConcurrentReaders(t *testing.T) {
	places(t, func(t *testing.T, fsys afero.Fs, dir string, _ bool) {
		run := openDump(t)
		importRun(t, fsys, dir, golden.ImportOptions{Runs: runs("a", run)})
		s := open(t, fsys, dir)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				entries, err := s.Tensors("float32", "a", "0")
				assert.NoError(t, err)
				for i, e := range entries {
					x, err := e.Tensor()
					if assert.NoError(t, err) {
						assert.Equal(t, run.Ports[i].Tensor.At(0), x.At(0))
					}
					assert.NoError(t, e.Verify())
				}
			})
		}
		wg.Wait()
	})
}

func TestManifestForm(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a",
		ports("l", "output", f32(t, 1, 2), "<m> & \"ü\"", "input_0", f32(t, 1, 2), "s", "tap", f32(t)))})
	data, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	assert.Equal(t, "   "+
		`{"layer":"<m> & \"ü\"","port":"input_0","index":1,"dtype":"float32","shape":[1,2],"name":"l-output","offset":`,
		lines[6][:strings.Index(lines[6], `"offset":`)+9],
		"a line for each tensor, an equal one with the name of the first")
	var m golden.Manifest
	require.NoError(t, json.Unmarshal(data, &m))
	assert.Equal(t, golden.Schema, m.Schema)
	x, err := afero.ReadFile(fsys, "golden/float32/a.0.safetensors")
	require.NoError(t, err)
	r := m.Passes[0].Tensors[1]
	assert.InDelta(t, 2, math.Float32frombits(binary.LittleEndian.Uint32(x[r.Offset+4:])), 0,
		"the range is that in the file")
}
