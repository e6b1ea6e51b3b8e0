package session_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// writeDump writes a dump folder of npy files: two layers in each of some steps, and one tensor
// that is there twice.
func writeDump(t *testing.T, dir, engine, caseName string, steps int) {
	t.Helper()
	info := dump.Info{Schema: dump.Schema, Engine: engine, Versions: map[string]string{engine: "1.2"}, Device: "cpu",
		Encoding: dump.Encoding{Compute: "float32"}, Case: caseName,
		Mode: dump.Standard, TokenIDs: json.RawMessage("[[1,2,3]]"), Date: "2026-11-21T11:46:02Z", Nonce: "n"}
	for step := range steps {
		s := fmt.Sprint(step)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, s), 0o755))
		out := wave(t, 1, float64(step), 1, 6, 8)
		for i, p := range []port{{"m.norm-input_0", wave(t, 2, 1, 1, 6, 8)}, {"m.norm-output", out},
			{"m.norm(2)-output", out},
			{"m.choice-output", toy.Of(t, []int64{1, 2, int64(step)}, 3)}} {
			layer, name := label.Split(p.Label)
			file := fmt.Sprintf("%02d.npy", i)
			f, err := os.Create(filepath.Join(dir, s, file))
			require.NoError(t, err)
			require.NoError(t, npy.Write(f, p.Tensor))
			require.NoError(t, f.Close())
			info.Order = append(info.Order, dump.OrderEntry{Step: s, Layer: layer, Port: name, File: file})
		}
	}
	data, err := json.Marshal(info)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, dump.RunFile), data, 0o644))
}

// begin starts a session, which ends with the test.
func begin(t *testing.T, cfg session.Config) *session.Session {
	t.Helper()
	s, err := session.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// toyFolder makes the folder of a fixture, in one that others share.
func toyFolder(t *testing.T, yaml string) (dir, root string) {
	t.Helper()
	root = t.TempDir()
	dir = filepath.Join(root, "toy")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fixture.yaml"), []byte(yaml), 0o644))
	return dir, root
}

// start makes a fixture of two cases with goldens, and a session of it.
func start(t *testing.T, edit func(*session.Config)) (*session.Session, string) {
	t.Helper()
	dir, root := toyFolder(t, "cases:\n  short: {prompt: Hello}\n  long: {prompt: Good morning, steps: 2}\nreplay: max-cpu\n")
	for _, side := range []struct{ folder, engine string }{{"ref", "torch"}, {"cand", "max"}} {
		writeDump(t, filepath.Join(root, side.folder, "a"), side.engine, "short", 1)
		writeDump(t, filepath.Join(root, side.folder, "b"), side.engine, "long", 2)
	}
	cfg := session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll, GoldenDump: filepath.Join(root, "ref"),
		Replay: filepath.Join(root, "cand")}
	edit(&cfg)
	s := begin(t, cfg)
	require.NoError(t, s.Update(io.Discard))
	return s, dir
}

func TestRecordAndOpen(t *testing.T) {
	s, dir := start(t, func(c *session.Config) { c.Record = "max-cpu" })
	_, err := s.Default().Comparison()
	require.NoError(t, err)
	assert.Empty(t, problems(s))
	require.NoError(t, s.Finish(io.Discard))

	folder := filepath.Join(dir, "runs", "max-cpu")
	recorded, err := store.OpenCases(folder, dump.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dump.CloseAll(recorded)) })
	require.Len(t, recorded, 2)
	for i, r := range recorded {
		assert.Equal(t, []string{"short", "long"}[i], r.Info.Case)
		assert.Equal(t, [3]any{"max", "n", "2026-11-21T11:46:02Z"}, [3]any{r.Info.Engine, r.Info.Nonce, r.Info.Date})
		assert.NotEmpty(t, r.Info.Inputs, "what it depends on")
		assert.Len(t, r.Entries, 4*(i+1))
	}
	files, err := filepath.Glob(filepath.Join(folder, "short.0.*.safetensors"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	st, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Less(t, st.Size(), int64(3*6*8*4+3*8+512), "equal tensors are stored once")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 4, "an index and a file for each forward pass: nothing temporary is left")
}

// A recording takes the place of an older one with all its modes, and of nothing else.
func TestRecordingReplacesAllModes(t *testing.T) {
	s, dir := start(t, func(c *session.Config) { c.Record = "max-cpu" })
	_, err := s.Default().Comparison()
	require.NoError(t, err)
	require.NoError(t, s.Finish(io.Discard))
	folder := filepath.Join(dir, "runs", "max-cpu")
	inject(t, folder)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "pictures"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte("who recorded this"), 0o644))
	require.NoError(t, s.Finish(io.Discard))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, entries, 4+2, "other files stay")
	kept, err := store.Open(folder)
	require.NoError(t, err)
	for _, k := range kept.Runs() {
		assert.Equal(t, dump.Standard, k.Info.Mode, "the injected run was that of an older candidate")
	}
	require.NoError(t, kept.Close())

	// It lists what was compared, for each case and step.
	recorded, err := store.OpenCases(folder, dump.Options{})
	require.NoError(t, err)
	require.NoError(t, dump.CloseAll(recorded))
	outputs := []string{"m.norm-output", "m.norm(2)-output", "m.choice-output"}
	assert.Equal(t, dump.Joined{"0": outputs}, recorded[0].Joined)
	assert.Equal(t, dump.Joined{"0": outputs, "1": outputs}, recorded[1].Joined)
}

func TestWhatIsNotRecorded(t *testing.T) {
	for _, c := range []struct {
		name, reason string
	}{
		{"../x", "a path"},
		{".x", "hidden"},
		{"a b", "a space"},
	} {
		_, err := session.Start(session.Config{Fixtures: []string{t.TempDir()}, Record: c.name})
		assert.ErrorContains(t, err, "is no name for a run", c.reason)
	}
}

func TestFunctionAsCandidate(t *testing.T) {
	s, _ := start(t, func(*session.Config) {})
	f := s.Default()
	var asked []string
	c, err := f.CompareFunc(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
		asked = append(asked, p.Case+"."+p.Step)
		assert.Equal(t, [][]int{{1, 2, 3}}, p.TokenIDs)
		out := map[string]*tensor.Tensor{}
		for _, e := range p.Golden {
			if e.Label() == "m.norm-output" {
				out["m.norm"] = e.Tensor // the layer alone is its output
			} else {
				out[e.Label()] = e.Tensor
			}
		}
		return out, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"short.0", "long.0", "long.1"}, asked)
	assert.True(t, c.Layers.Several())
	assert.Len(t, c.Layers.Runs("m.norm"), 3)
	for _, p := range c.Ports {
		assert.True(t, p.Agrees, "%s %s", p.Layer, p.Port)
	}
}

// problems are what is wrong with the only fixture of a session.
func problems(s *session.Session) []session.Problem {
	c, _ := s.Default().Comparison()
	return s.Default().Problems(c)
}

// Texts, weights and problems open the runs, and judge no output.
func TestComparedIsNotJudged(t *testing.T) {
	out := t.TempDir()
	s, _ := start(t, func(c *session.Config) { c.Out = out })
	assert.Empty(t, s.Unjudged(), "no test used it: Unused says so")
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	if assert.Len(t, s.Unjudged(), 1) {
		assert.Contains(t, s.Unjudged()[0], "tensors (cases in fixture.yaml): call parity.All(t).Check()")
	}
	require.NoError(t, s.Finish(io.Discard))
	saved, err := os.Open(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	defer saved.Close()
	r, err := report.Read(saved)
	require.NoError(t, err)
	assert.Equal(t, report.NothingCompared, r.Error)
	assert.Empty(t, r.NotJudged, "the verdict says it")
	for _, p := range c.Ports {
		p.Decide(nil, "", false)
	}
	assert.Empty(t, s.Unjudged())
}

// TestStaleOnce changes one key of a fixture: what is stale by it is told in one line for goldens and one for runs, not
// in one for each variant, case, run and path.
func TestStaleOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tinyllama")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../fixtures/tinyllama")))
	name := filepath.Join(dir, "fixture.yaml")
	yaml, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(yaml), "task: text-generation", "task: text-generation\n  max_layers: 4", 1)), 0o644))
	s := begin(t, session.Config{Fixtures: []string{dir}})
	var lines []string
	for _, p := range problems(s) {
		if p.Name == "parity:stale" {
			lines = strings.Split(p.Text, "\n")
		}
	}
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], "the goldens float32 of case hello, float64 of case hello are stale: model.max_layers is new: 4; renew them")
	assert.Contains(t, lines[1], "the recorded run max-cpu of case hello, hello (injected), hello@decode-3, hello@chunked-4, hello@batch, hello@repeat-2, "+
		"… and 1 more is stale: model.max_layers is new: 4; record it again")
}

// A dump of the candidate that is the reference's says nothing, unless it was blessed.
func TestSelf(t *testing.T) {
	for _, bless := range []string{"", "a test"} {
		s, _ := start(t, func(c *session.Config) {
			c.Replay = c.GoldenDump
			c.Bless = bless
		})
		var names []string
		for _, p := range problems(s) {
			names = append(names, p.Name)
		}
		assert.Equal(t, bless == "", slices.Contains(names, "parity:self"), "%q: %v", bless, names)
	}
}

func TestACaseIsMissing(t *testing.T) {
	s, _ := start(t, func(c *session.Config) { c.Replay = filepath.Join(c.Replay, "a") })
	_, err := s.Default().Comparison()
	assert.ErrorContains(t, err, "case long: the candidate's run in ")
	assert.ErrorContains(t, err, `has no such case, it has "short"`)
}
