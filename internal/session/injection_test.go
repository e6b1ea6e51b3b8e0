package session_test

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor/safetensors"
)

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
	s, dir := start(t, func(c *session.Config) { c.Record = "max-cpu" })
	_, err := s.Default().Comparison()
	require.NoError(t, err)
	require.NoError(t, s.Finish(io.Discard))
	replay := func(mode setting.Mode) (*judge.Comparison, []session.Problem, error) {
		s := begin(t, session.Config{Fixtures: []string{dir}, Mode: mode})
		c, err := s.Default().Comparison()
		return c, problems(s), err
	}
	_, _, err = replay(setting.ModeBoth)
	require.ErrorContains(t, err, "there is no recorded injected run", "both were asked for")
	c, _, err := replay(setting.ModeStandard)
	require.NoError(t, err)
	assert.Nil(t, c.Cases[0].Injected)

	inject(t, filepath.Join(dir, "runs", "max-cpu"))
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
	writeDump(t, filepath.Join(root, "ref"), "torch", "short", 1)
	writeDump(t, filepath.Join(root, "cand"), "max", "short", 1)
	file := filepath.Join(root, "ref", dump.RunFile)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var info map[string]any
	require.NoError(t, json.Unmarshal(data, &info))
	mask := [][]int{{0, 0, 1, 1, 1, 1}}
	info["pad_mask"] = mask
	delete(info, "token_ids") // which are three, and the mask is of six
	data, err = json.Marshal(info)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o644))

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
