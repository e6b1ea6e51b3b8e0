package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// writeRun writes a dump folder: run.json, and a file of tensors for each step.
func writeRun(t *testing.T, dir string, info dump.Info, entries ...dump.Entry) {
	t.Helper()
	steps := map[string][]tensor.Named{}
	for _, e := range entries {
		steps[e.Step] = append(steps[e.Step], tensor.Named{Name: e.Label(), Tensor: e.Tensor})
		info.Order = append(info.Order, dump.OrderEntry{Step: e.Step, Layer: e.Layer, Port: e.Port, File: "all.safetensors", Name: e.Label()})
	}
	for step, named := range steps {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, step), 0o755))
		f, err := os.Create(filepath.Join(dir, step, "all.safetensors"))
		require.NoError(t, err)
		require.NoError(t, errors.Join(safetensors.Write(f, named, nil), f.Close()))
	}
	data, err := json.Marshal(info)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, dump.RunFile), data, 0o644))
}

// writeDump writes a run of two layers in each of some steps, and one tensor that is there twice.
func writeDump(t *testing.T, dir, engine, caseName string, steps int, edits ...func(*dump.Info)) {
	t.Helper()
	info := dump.Info{Schema: dump.Schema, Engine: engine, Versions: map[string]string{engine: "1.2"}, Device: "cpu",
		Encoding: dump.Encoding{Compute: "float32"}, Case: caseName,
		Mode: dump.Standard, TokenIDs: json.RawMessage("[[1,2,3]]"), Date: "2026-11-21T11:46:02Z", Nonce: "n"}
	for _, edit := range edits {
		edit(&info)
	}
	var entries []dump.Entry
	for step := range steps {
		out := wave(t, 1, float64(step), 1, 6, 8)
		for _, p := range []port{{"m.norm-input_0", wave(t, 2, 1, 1, 6, 8)}, {"m.norm-output", out}, {"m.norm(2)-output", out},
			{"m.choice-output", toy.Of(t, []int64{1, 2, int64(step)}, 3)}} {
			layer, name := label.Split(p.Label)
			entries = append(entries, dump.Entry{Step: fmt.Sprint(step), Layer: layer, Port: name, Tensor: p.Tensor})
		}
	}
	writeRun(t, dir, info, entries...)
}

// golden opens the goldens of a fixture.
func golden(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(dir, "golden"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
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

// recorded makes a fixture whose run is recorded in a folder.
func recorded(t *testing.T) (s *session.Session, dir, folder string) {
	t.Helper()
	s, dir = start(t, func(c *session.Config) { c.Record = "max-cpu" })
	_, err := s.Default().Comparison()
	require.NoError(t, err)
	require.NoError(t, s.Finish(io.Discard))
	return s, dir, filepath.Join(dir, "runs", "max-cpu")
}

func TestRecordAndOpen(t *testing.T) {
	s, _, folder := recorded(t)
	assert.Empty(t, problems(s))
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
	s, _, folder := recorded(t)
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
	for name, reason := range map[string]string{"../x": "a path", ".x": "hidden", "a b": "a space"} {
		_, err := session.Start(session.Config{Fixtures: []string{t.TempDir()}, Record: name})
		assert.ErrorContains(t, err, "is no name for a run", reason)
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

// mapped is how many files in a folder this process has mapped.
func mapped(t *testing.T, dir string) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir) {
			n++
		}
	}
	return n
}

// TestCloseAll replays runs of one pass and along paths from one folder: all of them are closed with the session.
func TestCloseAll(t *testing.T) {
	const fixture = "../../fixtures/tinyllama"
	runs, err := store.OpenCases(filepath.Join(fixture, "runs", "max-cpu"), dump.Options{Unjudged: true})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, store.Update(t.Context(), dir, nil, func(*store.Store) (*store.Change, error) {
		c := &store.Change{}
		for _, r := range runs {
			c.Add = append(c.Add, store.Recording{Kept: store.Kept{Joined: r.Joined, Info: r.Info}, Run: r})
		}
		return c, nil
	}))
	require.NoError(t, dump.CloseAll(runs))
	s, err := session.Start(session.Config{Fixtures: []string{fixture}, Replay: dir})
	require.NoError(t, err)
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	assert.NotEmpty(t, s.Default().Paths(c))
	assert.Greater(t, mapped(t, dir), 10)
	require.NoError(t, s.Close())
	assert.Zero(t, mapped(t, dir))
}

// What the candidate gets of a batch of two sequences, the second padded in front. The candidate
// has real tokens only, a fused projection, a mask of its own, and at the end the last rows.
func TestInjection(t *testing.T) {
	hidden := wave(t, 1, 0, 2, 3, 8)
	rows := wave(t, 1, 0.1, 5, 8)
	ids := toy.Of(t, []int64{1, 2, 3, 0, 4, 5}, 2, 3)
	golden := run("torch",
		port{"model.embed_tokens-input_0", ids}, port{"model.embed_tokens-output", hidden},
		port{"model.layers.0.self_attn.q_proj-input_0", hidden}, port{"model.layers.0.self_attn.q_proj-output", hidden},
		port{"model.layers.0.self_attn.k_proj-input_0", hidden}, port{"model.layers.0.self_attn.k_proj-output", hidden},
		port{"model.layers.0.self_attn.v_proj-input_0", hidden}, port{"model.layers.0.self_attn.v_proj-output", hidden},
		port{"model.layers.0.self_attn-input_hidden_states", hidden},
		port{"model.layers.0.self_attn-input_attention_mask", wave(t, 1, 0, 2, 1, 3, 3)},
		port{"model.layers.0.self_attn-output", hidden},
		port{"model.norm-input_0", hidden}, port{"model.norm-output", hidden},
		port{"lm_head-input_0", hidden}, port{"lm_head-output", wave(t, 1, 0, 2, 3, 9)})
	golden.Info.PadMask = [][]int{{1, 1, 1}, {0, 1, 1}}
	actual := run("max",
		port{"model.embed_tokens-input_0", toy.Of(t, []int64{1, 2, 3, 4, 5}, 5)}, port{"model.embed_tokens-output", rows},
		port{"model.layers.layers.0.self_attn.qkv_proj-input_0", rows},
		port{"model.layers.layers.0.self_attn.qkv_proj-output", wave(t, 1, 0, 5, 24)},
		port{"model.layers.layers.0.self_attn-input_1", rows},
		port{"model.layers.layers.0.self_attn-input_attention_mask", wave(t, 1, 0, 2, 1, 3, 3)},
		port{"model.layers.layers.0.self_attn-input_9", wave(t, 1, 0, 4)},
		port{"model.layers.layers.0.self_attn-output", rows},
		port{"model.norm-input_0", rows}, port{"model.norm-output", wave(t, 1, 0, 2, 8)},
		port{"lm_head-input_0", wave(t, 1, 0, 2, 8)}, port{"lm_head-output", wave(t, 1, 0, 2, 9)})
	g, err := session.Injection(judge.Case{Name: "short", Golden: golden, Actual: actual},
		match.Options{Generating: true}, t.TempDir())
	require.NoError(t, err)

	f, err := safetensors.Open(g.File)
	require.NoError(t, err)
	defer f.Close()
	got := map[string]string{}
	values := map[string][]float64{}
	for _, i := range g.Inputs {
		got[i.Label] = i.Golden
		for _, n := range f.Tensors {
			if n.Name == i.Name {
				for k := range n.Len() {
					values[i.Label] = append(values[i.Label], n.At(k))
				}
			}
		}
	}
	assert.Equal(t, map[string]string{
		"model.layers.layers.0.self_attn.qkv_proj-input_0": "model.layers.0.self_attn.q_proj-input_0",
		"model.layers.layers.0.self_attn-input_1":          "model.layers.0.self_attn-input_hidden_states",
		"model.norm-input_0":                               "model.norm-input_0",
		"lm_head-input_0":                                  "lm_head-input_0",
	}, got)
	real := []int{0, 1, 2, 4, 5}
	for label, want := range map[string][]int{"model.norm-input_0": real, "lm_head-input_0": {2, 5}} {
		var w []float64
		for _, row := range want {
			for c := range 8 {
				w = append(w, hidden.At(row*8+c))
			}
		}
		assert.Equal(t, w, values[label], "%s: real tokens; at the end the last of each sequence", label)
	}
	assert.Contains(t, g.Left["model.layers.layers.0.self_attn-input_attention_mask"], "mask")
	assert.Contains(t, g.Left["model.embed_tokens-input_0"], "integers")
	assert.NotContains(t, g.Left, "model.norm-input_0")
}

func TestInjectionOfNothing(t *testing.T) {
	golden := run("torch", port{"m.a-output", wave(t, 1, 0, 2, 8)})
	_, err := session.Injection(judge.Case{Name: "short", Golden: golden, Actual: golden}, match.Options{}, t.TempDir())
	assert.ErrorContains(t, err, "no golden input can be given to the candidate")
}

// inject adds to a recorded run that it was recorded injected, too, with goldens of another day.
func inject(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, store.Update(t.Context(), dir, nil, func(old *store.Store) (*store.Change, error) {
		c := &store.Change{Keep: old.Runs()}
		for _, k := range old.Runs() {
			r := store.Recording{Kept: store.Kept{Info: k.Info}}
			r.Info.Mode, r.Info.Injection, r.Info.Inputs = dump.Injected, dump.Nested, maps.Clone(k.Info.Inputs)
			r.Info.Inputs["golden"] = "of another day"
			c.Add = append(c.Add, r)
		}
		return c, nil
	}))
}

// A recorded injected run is compared too; it is stale when its golden inputs have changed.
func TestRecordedInjectedRun(t *testing.T) {
	_, dir, folder := recorded(t)
	replay := func(mode setting.Mode) (*judge.Comparison, []session.Problem, error) {
		s := begin(t, session.Config{Fixtures: []string{dir}, Mode: mode})
		c, err := s.Default().Comparison()
		return c, problems(s), err
	}
	_, _, err := replay(setting.ModeBoth)
	require.ErrorContains(t, err, "there is no recorded injected run", "both were asked for")
	c, _, err := replay(setting.ModeStandard)
	require.NoError(t, err)
	assert.Nil(t, c.Cases[0].Injected)

	inject(t, folder)
	for _, mode := range []setting.Mode{setting.ModeStandard, setting.ModeBoth} {
		c, problems, err := replay(mode)
		require.NoError(t, err)
		assert.NotNil(t, c.Cases[0].Injected)
		require.Len(t, problems, 1)
		assert.Contains(t, problems[0].Text, "golden changed from of another day")
		assert.Contains(t, problems[0].Text, "-parity.mode=both")
	}
}

// The reference's padding mask is kept with the goldens and excludes padding from comparisons.
func TestPadMaskOfACase(t *testing.T) {
	dir, root := toyFolder(t, "cases:\n  short: {prompt: Hello}\n")
	mask := [][]int{{0, 0, 1, 1, 1, 1}}
	writeDump(t, filepath.Join(root, "ref"), "torch", "short", 1, func(i *dump.Info) {
		i.PadMask, i.TokenIDs = mask, nil // tokens are three, and the mask is of six
	})
	writeDump(t, filepath.Join(root, "cand"), "max", "short", 1)
	s := begin(t, session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll,
		GoldenDump: filepath.Join(root, "ref"), Replay: filepath.Join(root, "cand")})
	require.NoError(t, s.Update(io.Discard))
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	assert.Equal(t, mask, c.Cases[0].Golden.Info.PadMask)
	assert.Equal(t, 4, find(t, c, "m.norm-output").Golden.Len()/8, "real tokens only")
}

type port = toy.Port

var run, wave = toy.Run, toy.Wave

// find returns a port of a comparison by its label.
func find(t *testing.T, c *judge.Comparison, name string) *judge.Port {
	t.Helper()
	for _, p := range c.Ports {
		if label.Join(p.Layer, p.Port) == name {
			return p
		}
	}
	require.Fail(t, "no such port", name)
	return nil
}

// layerProgram is a program of what layerDump writes: an output of n columns.
func layerProgram(n int) string {
	return fmt.Sprintf(`{"schema":1,"engine":"torch","case":"a",
"values":[{"id":0,"shape":[1,6,%[1]d],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[1,6,%[1]d],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.mul.Scalar","args":{"self":"%%0","other":0.3},"out":["%%1"],"layer":"model.up","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model.up-input_0":["%%0",0,1],"model.up-output":["%%1",1,1]}}]}`, n)
}

// An update keeps the program of the variant that judges; a comparison has it, or says why not.
func TestPrograms(t *testing.T) {
	const all = "references: [float32, bfloat16]\n"
	for _, tt := range []struct {
		yaml, program string
		damage        func(file string) error // of the program
		kept          bool
		out, note     string
		reason        string
	}{
		{all, layerProgram(128), nil, true, "", "", "beside the reference's dump"},
		{all + "program: off\n", layerProgram(128), nil, false, "", "", "not wanted"},
		{all, layerProgram(127), nil, false, "case a: its program is left out: ", "", "of another run: not kept"},
		{all, `{"schema":1,`, nil, false, "not JSON at byte", "", "damaged: not kept"},
		{all, "", nil, false, "", "", "none was recorded"},
		{all, layerProgram(128), func(file string) error { return os.WriteFile(file, nil, 0o644) }, true, "",
			"case a: judged without the reference's program: store: ", "damaged in the store"},
		{all, layerProgram(128), os.Remove, true, "",
			"does not exist, but index.json lists it", "lost from the store"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s, dir := startLayer(t, tt.yaml, 1e-3, func(to string) { layerDump(t, to, "max", "float32", 1e-6, tensor.F32) })
			for _, variant := range []string{"float32", "bfloat16"} {
				if tt.program != "" {
					file := filepath.Join(filepath.Dir(dir), "ref", variant, "a", dump.ProgramFile)
					require.NoError(t, os.WriteFile(file, []byte(tt.program), 0o644))
				}
			}
			var out bytes.Buffer
			require.NoError(t, s.Update(&out))
			if tt.out != "" {
				assert.Contains(t, out.String(), tt.out)
			} else {
				assert.NotContains(t, out.String(), "left out")
			}
			kept := golden(t, dir)
			assert.Equal(t, tt.kept, kept.HasProgram("a"))
			for _, k := range kept.Runs() {
				assert.True(t, len(k.Program) == 0 || k.Variant == "float32")
				if len(k.Program) > 0 && tt.damage != nil {
					require.NoError(t, tt.damage(filepath.Join(dir, "golden", k.Program[0])))
				}
			}
			c, err := s.Default().Comparison()
			require.NoError(t, err)
			assert.Equal(t, tt.kept && tt.damage == nil, c.Cases[0].Program != nil)
			r, err := s.Default().Report()
			require.NoError(t, err)
			assert.Equal(t, report.Pass, r.Verdict, "judged without it")
			notes := fmt.Sprint(r.Notes)
			if tt.note == "" {
				assert.NotContains(t, notes, "judged without")
				return
			}
			assert.Contains(t, notes, tt.note)
			assert.Contains(t, notes, "parity golden program MODEL --golden DIR")
		})
	}
}
