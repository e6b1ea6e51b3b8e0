package session_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// twice is the program y = x + x.
const twice = `{"schema":1,"engine":"torch","case":"a",
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.add.Tensor","args":{"self":"%0","other":"%0","alpha":1},"out":["%1"],"layer":"model","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model-input_0":["%0",0,1],"model-output":["%1",1,1]}}]}`

func goldenOf(t *testing.T, layer, port string, values ...float32) *dump.Run {
	t.Helper()
	x, err := tensor.Of(values, len(values))
	require.NoError(t, err)
	return dump.New("golden", dump.Info{}, dump.OrderRunFile, []dump.Entry{{Step: "0", Layer: layer, Port: port, Tensor: x}})
}

// The program of a golden that is kept, with its constants.
func TestInStore(t *testing.T) {
	own := goldenOf(t, "model", "output", 1, 2)
	for _, tt := range []struct {
		program   string
		constants bool
		note      string
		reason    string
	}{
		{"", false, "", "none"},
		{twice, false, "", "its own"},
		{twice, true, "", "with constants"},
		{strings.ReplaceAll(twice, "[2]", "[3]"), false, "it is the program of another run", "another"},
		{twice[:40], false, "judged without the reference's program", "damaged"},
	} {
		dir, kept := t.TempDir(), store.Recording{Kept: store.Kept{Variant: "float32", Info: dump.Info{Case: "a", Engine: "torch", Mode: dump.Standard}}, Run: own}
		if tt.program != "" {
			kept.Program = filepath.Join(dir, "program.json")
			require.NoError(t, os.WriteFile(kept.Program, []byte(tt.program), 0o644))
		}
		if tt.constants {
			out, err := os.Create(filepath.Join(dir, "program.safetensors"))
			require.NoError(t, err)
			require.NoError(t, errors.Join(safetensors.Write(out, []tensor.Named{{Name: "c", Tensor: own.Entries[0].Tensor}}, nil), out.Close()))
		}
		golden := filepath.Join(dir, "golden")
		require.NoError(t, store.Update(t.Context(), golden, nil, func(*store.Store) (*store.Change, error) { return &store.Change{Add: []store.Recording{kept}}, nil }))
		s, err := store.Open(golden)
		require.NoError(t, err)
		defer s.Close()
		r, err := s.Golden("float32", "a")
		require.NoError(t, err)
		p := session.ProgramInStore(s, "float32", "a", r)
		assert.Contains(t, strings.Join(r.Notes, ""), tt.note, tt.reason)
		assert.Equal(t, tt.note == "", len(r.Notes) == 0, tt.reason)
		assert.Equal(t, tt.note == "" && tt.program != "", p != nil, tt.reason)
		if p != nil {
			_, err := p.Constant("c")
			assert.Equal(t, tt.constants, err == nil, tt.reason)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		program string
		golden  *dump.Run
		want    string
		reason  string
	}{
		{twice, goldenOf(t, "model", "output", 1, 2), "", "its own"},
		{twice, goldenOf(t, "model", "output", 1, 2, 3), "passes: step 0: model-output is [2], in the golden [3]: it is the program of another run", "of other tokens"},
		{twice, goldenOf(t, "other", "output", 1, 2), "passes: none of its ports is in the golden: it is the program of another run", "of another model"},
		{twice[:40], goldenOf(t, "model", "output", 1, 2), "not JSON", "damaged"},
		{`{"schema":2}`, goldenOf(t, "model", "output", 1, 2), "schema 2", "of another version"},
	} {
		file := filepath.Join(t.TempDir(), "program.json")
		require.NoError(t, os.WriteFile(file, []byte(tt.program), 0o644))
		p, err := session.OpenProgram(file, tt.golden.Entries)
		assert.Nil(t, session.ProgramBeside(tt.golden), "none is named")
		assert.Empty(t, tt.golden.Notes, tt.reason)
		tt.golden.Program = file
		beside := session.ProgramBeside(tt.golden)
		if tt.want == "" {
			require.NoError(t, err, tt.reason)
			require.NotNil(t, beside, tt.reason)
			require.NoError(t, errors.Join(p.Close(), beside.Close()))
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.reason)
		assert.ErrorContains(t, err, file, tt.reason)
		assert.Nil(t, beside, tt.reason)
		note := strings.Join(tt.golden.Notes, "")
		assert.Contains(t, note, "case golden: judged without the reference's program: "+err.Error(), tt.reason)
		assert.Contains(t, note, "record it again: parity golden program MODEL --golden DIR")
	}
}

func TestCase(t *testing.T) {
	ids := func(step string, values ...int64) dump.Entry {
		x, err := tensor.Of(values, 1, len(values))
		require.NoError(t, err)
		return dump.Entry{Step: step, Layer: "model.embed_tokens", Port: "input_0", Tensor: x}
	}
	out := func(step string) dump.Entry {
		return dump.Entry{Step: step, Layer: "model", Port: "output", Tensor: ids("0", 1).Tensor}
	}
	for _, tt := range []struct {
		info    dump.Info
		entries []dump.Entry
		want    engine.Case
		err     string
		reason  string
	}{
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "a prefill"},
		{dump.Info{}, []dump.Entry{ids("0", 1, 2), out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "the inputs show the tokens"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{ids("0", 1, 2), ids("1", 3), ids("2", 4)},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 3, Forced: [][]int{{3, 4}}}, "", "decode steps"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0"), out("1")},
			engine.Case{}, "has 2 steps, and does not show which tokens", "no one knows what was decoded"},
		{dump.Info{TokenIDs: json.RawMessage("[[0,1,2],[3,4,5]]"), PadMask: [][]int{{0, 1, 1}, {1, 1, 1}}}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}, {3, 4, 5}}, Steps: 1}, "", "padding is the reference's own"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2,3]]"), Path: "chunked:2",
			Passes: [][]dump.PassItem{{{From: 0, To: 2}}, {{From: 2, To: 3}}}}, []dump.Entry{out("0"), out("1")},
			engine.Case{TokenIDs: [][]int{{1, 2, 3}}, Steps: 1}, "", "one pass judges all paths"},
	} {
		tt.info.Case, tt.want.Name = "a", "a"
		got, err := session.CaseOf(dump.New("d", tt.info, dump.OrderRunFile, tt.entries))
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
}

// A program lies in a folder of its case, or alone where there is one run.
func TestOfCase(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(twice), 0o644))
		return file
	}
	alone, of := write("program.json"), write("a/program.json")
	for _, tt := range []struct {
		path, name string
		only       bool
		file, err  string
		reason     string
	}{
		{alone, "a", true, alone, "", "a file"},
		{alone, "a", false, "", "is of one case", "one file for several cases"},
		{dir, "a", false, of, "", "a folder of the case"},
		{dir, "a", true, of, "", "which is preferred"},
		{dir, "b", true, alone, "", "a folder with one program"},
		{dir, "b", false, "", filepath.Join(dir, "b"), "a case without one"},
		{filepath.Join(dir, "x"), "b", true, "", filepath.Join(dir, "x", "b"), "no folder"},
	} {
		p, err := session.ProgramOfCase(tt.path, dump.New("r", dump.Info{Case: tt.name}, dump.OrderRunFile, nil), tt.only)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.file, p.File, tt.reason)
		require.NoError(t, p.Close())
	}
}
