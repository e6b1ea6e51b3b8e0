package session_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// With this variable the test binary is the interpreter of the engines: it runs one job in the mood that it names.
const moodKey = "SESSION_TEST_MOOD"

func TestMain(m *testing.M) {
	if mood := os.Getenv(moodKey); mood != "" {
		if err := playEngine(mood, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const playedWidth = 24 // of its logits

// playedLogits are those after a token at a place: they hang on nothing else.
func playedLogits(token, at int) []float32 {
	x := make([]float32, playedWidth)
	for j := range x {
		x[j] = float32(8 * math.Sin(float64(1+token*7+at*3)*float64(j+1)))
	}
	return x
}

func playEngine(mood, file string) error {
	var job engine.Job
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &job)
	}
	if err != nil {
		return err
	}
	fd, _ := strconv.Atoi(os.Getenv("PARITY_PROGRESS_FD"))
	for _, c := range job.Cases {
		if mood == "raises" && job.Engine == engine.MAX && c.Path == "chunked:2" {
			fmt.Fprintf(os.NewFile(uintptr(fd), "progress"), `{"error":{"class":"model","message":"it has no cache","case":%q}}`+"\n", c.Name)
			return errors.New("raised")
		}
		if err := playCase(mood, job, c); err != nil {
			return err
		}
	}
	return nil
}

// playCase runs the passes of a case, or its prompt and a step for each token that it goes on by.
func playCase(mood string, job engine.Job, c engine.Case) error {
	text, passes := slices.Clone(c.TokenIDs[0]), c.Passes
	prompt := len(text)
	for k := range cmp.Or(c.Steps, 1) {
		best := 0
		for j, x := range playedLogits(text[len(text)-1], len(text)-1) {
			if x > playedLogits(text[len(text)-1], len(text)-1)[best] {
				best = j
			}
		}
		if job.Encoding == "bfloat16" {
			best = (best + 1) % playedWidth // by rounding: unless it is told which
		}
		if c.Forced != nil && k < len(c.Forced[0]) {
			best = c.Forced[0][k]
		}
		if text = append(text, best); c.Passes == nil {
			passes = append(passes, []dump.PassItem{{From: max(prompt+k-1, 0) * min(k, 1), To: prompt + k}})
		}
	}
	info := map[string]any{"schema": 2, "engine": job.Engine, "nonce": job.Nonce, "case": c.Name, "mode": cmp.Or(job.Mode, dump.Standard),
		"encoding": cmp.Or(job.Encoding, "float32"), "device": job.Device, "token_ids": c.TokenIDs, "sequence": [][]int{text}, "reference_text": "and so on",
		"versions": map[string]string{job.Engine: "1"}}
	if job.Program {
		info["program_error"] = "an operator without a schema"
	}
	if c.Path != "" {
		info["path"], info["passes"] = c.Path, c.Passes
	}
	var order []dump.OrderEntry
	for k, items := range passes {
		var ids []int64
		var embedded, logits []float32
		for _, item := range items {
			of := text
			if c.Passes != nil {
				of = c.TokenIDs[item.Sequence]
			}
			for at := item.From; at < item.To; at++ {
				row := playedLogits(of[at], at)
				off := float32(1)
				if job.Encoding == "bfloat16" {
					off += 1e-3
				}
				if job.Engine == engine.MAX && (mood == "wrong" || mood == "late" && c.Path != "" && k > 0) {
					off += 0.25
				}
				if mood == "own" && c.Path == "chunked:2" && k > 0 {
					off += 0.02
				}
				embedded = append(embedded, row[:8]...)
				for _, x := range row {
					logits = append(logits, x*off)
				}
				ids = append(ids, int64(of[at]))
			}
		}
		n, step := len(ids), strconv.Itoa(k)
		given, err1 := tensor.Of(ids, 1, n)
		made, err2 := tensor.Of(embedded, 1, n, 8)
		said, err3 := tensor.Of(logits, 1, n, playedWidth)
		if err := errors.Join(err1, err2, err3, os.MkdirAll(filepath.Join(job.Out, c.Name, step), 0o755)); err != nil {
			return err
		}
		named := []tensor.Named{{Name: "model.embed_tokens-input_0", Tensor: given}, {Name: "model.embed_tokens-output", Tensor: made},
			{Name: "lm_head-input_0", Tensor: made}, {Name: "lm_head-output", Tensor: said}}
		for _, t := range named {
			layer, port, _ := strings.Cut(t.Name, "-")
			order = append(order, dump.OrderEntry{Step: step, Layer: layer, Port: port, File: "all.safetensors", Name: t.Name})
		}
		out, err := os.Create(filepath.Join(job.Out, c.Name, step, "all.safetensors"))
		if err = errors.Join(err, safetensors.Write(out, named, nil), out.Close()); err != nil {
			return err
		}
	}
	info["order"] = order
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(job.Out, c.Name, dump.RunFile), data, 0o644)
}

// played starts a session of a fixture that the engine of this binary runs.
func played(t *testing.T, dir, mood string, edit func(*session.Config)) *session.Session {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	for key, value := range map[string]string{"PARITY_PYTHON": self, moodKey: mood, "PARITY_LOCK": "off", "XDG_CACHE_HOME": t.TempDir()} {
		t.Setenv(key, value)
	}
	cfg := session.Config{Fixtures: []string{dir}, Update: setting.UpdateNone}
	edit(&cfg)
	return begin(t, cfg)
}

// A fixture whose goldens the reference makes, in three types, along paths and texts; the candidate is run, recorded, and
// judged by the record.
func TestPlayed(t *testing.T) {
	const yaml = `model: {path: org/toy, task: text-generation}
references: [float32, bfloat16, float64]
cases: {short: {token_ids: [5, 6, 7, 8], steps: 2}, long: {token_ids: [9, 3, 4, 6, 2, 7]}}
paths: [{decode: 2}, {chunked: 2}, batch]
generation: 3
replay: max-cpu
`
	dir, _ := toyFolder(t, yaml)
	var said strings.Builder
	s := played(t, dir, "right", func(c *session.Config) { c.Update = setting.UpdateAll })
	require.NoError(t, s.Update(&said))
	for _, line := range []string{"case short: the reference goes on: \"and so on\"", "no program was recorded: an operator without a schema",
		"path short@decode-2 shares the goldens of one pass", "path @batch shares the goldens of one pass", "path long@lengths-4 shares the goldens of one pass", "float64: 0 unchanged, 0 moved"} {
		assert.Contains(t, said.String(), line)
	}
	goldens, err := golden(t, dir), error(nil)
	assert.Equal(t, []int{2, 1, 2}, []int{goldens.Steps("float32", "short"), goldens.Steps("bfloat16", "long"), goldens.Steps("float64", "short")})
	of := map[string]*dump.Run{}
	for _, name := range []string{"float32", "bfloat16", "float64"} {
		of[name], err = goldens.Golden(name, "short")
		require.NoError(t, err)
		assert.Equal(t, of["float32"].Decoded(), of[name].Decoded(), "%s goes on by the tokens of the first", name)
	}
	kept, err := goldens.Golden("float32", dump.PathCase("long", dump.Generated))
	require.NoError(t, err)
	assert.Equal(t, 6, kept.Info.Generation.From)
	assert.Len(t, kept.Info.Generation.Tokens, 3)
	require.NoError(t, s.Update(io.Discard), "and again")

	for _, tt := range []struct {
		mood    string
		run     setting.Run
		mode    setting.Mode
		record  string
		verdict report.Verdict
		says    string
		reason  string
	}{
		{"right", "", "", "", "", "there is no recorded run", "nothing to judge yet"},
		{"right", setting.RunCPU, setting.ModeBoth, "max-cpu", report.Pass, "", "run now, on golden inputs, too"},
		{"right", "", "", "", report.Pass, "", "recorded"},
		{"wrong", setting.RunCPU, "", "", report.Fail, "lm_head", "its logits are others"},
		{"late", setting.RunCPU, "", "", report.Fail, "wrong along", "after a cache"},
		{"own", setting.RunCPU, "", "", report.Fail, "wrong along", "along a path the reference does not take"},
		{"raises", setting.RunCPU, "", "", report.Error, "path chunked:2: engine: it has no cache", "its model cannot run a path"},
	} {
		s := played(t, dir, tt.mood, func(c *session.Config) { c.Run, c.Mode, c.Record = tt.run, tt.mode, tt.record })
		r, err := s.Default().Report()
		if tt.verdict == "" {
			assert.ErrorContains(t, err, tt.says, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.verdict, r.Verdict, "%s: %s %v", tt.reason, report.Headline(r), r.Notes)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		assert.Contains(t, report.Headline(r)+string(text), tt.says, tt.reason)
		if tt.mood != "raises" {
			assert.Len(t, r.Paths, 5, tt.reason)
		}
		require.NoError(t, s.Finish(io.Discard), tt.reason)
		injected := slices.ContainsFunc(r.Layers, func(l report.Layer) bool { return l.Injected != nil })
		assert.Equal(t, tt.record != "" || tt.run == "", injected, tt.reason)
	}

	said.Reset() // along a path the reference computes something else than in one pass
	s = played(t, dir, "own", func(c *session.Config) { c.Update, c.Prune = setting.UpdateAll, true })
	require.NoError(t, s.Update(&said))
	assert.Contains(t, said.String(), "float32: path short@chunked-2 keeps its own goldens")
	assert.Contains(t, said.String(), "float32: path long@decode-2 shares the goldens of one pass")
	goldens = golden(t, dir)
	assert.Equal(t, []int{2, 3, 0}, []int{goldens.Steps("float32", "short@chunked-2"), goldens.Steps("bfloat16", "long@chunked-2"), goldens.Steps("float64", "long@chunked-2")})
	for _, mood := range []string{"own", "right", "late"} {
		r, err := played(t, dir, mood, func(c *session.Config) { c.Run = setting.RunCPU }).Default().Report()
		require.NoError(t, err)
		assert.Equal(t, mood != "late", r.Verdict == report.Pass, "%s: %s", mood, report.Headline(r))
	}
}

// What no fixture asks for goes, the candidate's run becomes golden where someone says why, and a session knows its fixtures.
func TestPruneAndBless(t *testing.T) {
	dir, _ := toyFolder(t, "")
	write := func(cases string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "fixture.yaml"), []byte("model: {path: org/toy, task: text-generation}\ncases: "+cases+"\n"), 0o644))
	}
	write("{short: {token_ids: [5, 6]}, long: {token_ids: [9, 3, 4]}}")
	s := played(t, dir, "right", func(c *session.Config) { c.Update = setting.UpdateAll })
	require.NoError(t, s.Update(io.Discard))
	assert.Equal(t, []string{"toy"}, s.Unused())
	for name, found := range map[string]bool{"toy": true, dir: true, dir + "/": true, "other": false} {
		_, err := s.Find(name)
		assert.Equal(t, found, err == nil, name)
	}
	write("{short: {token_ids: [5, 6]}}")
	for _, apply := range []bool{false, true} {
		gone, err := session.Prune(t.Context(), dir, apply)
		require.NoError(t, err)
		assert.Equal(t, []string{"golden: float32 of case long"}, gone)
	}
	gone, err := session.Prune(t.Context(), dir, true)
	require.NoError(t, err)
	assert.Empty(t, gone)

	var said strings.Builder
	bless := func(c *session.Config) { c.Update, c.Bless = setting.UpdateAll, "a test" }
	assert.ErrorContains(t, played(t, dir, "wrong", bless).Update(&said), "names no recorded run to bless")
	require.NoError(t, played(t, dir, "wrong", func(c *session.Config) { bless(c); c.Run = setting.RunCPU }).Update(&said))
	assert.Contains(t, said.String(), "the candidate's run becomes golden, blessed: a test")
	s = played(t, dir, "wrong", func(c *session.Config) { c.Run = setting.RunCPU })
	r, err := s.Default().Report()
	require.NoError(t, err)
	assert.Equal(t, report.Pass, r.Verdict, "it is as it was")
	assert.Contains(t, strings.Join(r.Notes, "\n"), "the golden is not the reference's")
	assert.Empty(t, s.Unused())
	require.NoError(t, s.Finish(&said))
	assert.Contains(t, said.String(), "parity: toy: PASS: ")
	assert.Empty(t, s.Wrong)
}
