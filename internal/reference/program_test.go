package reference_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// twice is the program y = x + x.
const twice = `{"schema":1,"engine":"torch","case":"a",
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.add.Tensor","args":{"self":"%0","other":"%0","alpha":1},"out":["%1"],"layer":"model","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model-input_0":["%0",0,1],"model-output":["%1",1,1]}}]}`

func run(t *testing.T, layer, port string, values ...float32) *dump.Run {
	t.Helper()
	x, err := tensor.Of(values, len(values))
	require.NoError(t, err)
	return dump.New("golden", dump.Info{}, dump.OrderRunFile, []dump.Entry{{Step: "0", Layer: layer, Port: port, Tensor: x}})
}

// The program of a golden that is kept, with its constants.
func TestInStore(t *testing.T) {
	own := run(t, "model", "output", 1, 2)
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
		p := reference.InStore(s, "float32", "a", r)
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
		{twice, run(t, "model", "output", 1, 2), "", "its own"},
		{twice, run(t, "model", "output", 1, 2, 3), "passes: step 0: model-output is [2], in the golden [3]: it is the program of another run", "of other tokens"},
		{twice, run(t, "other", "output", 1, 2), "passes: none of its ports is in the golden: it is the program of another run", "of another model"},
		{twice[:40], run(t, "model", "output", 1, 2), "not JSON", "damaged"},
		{`{"schema":2}`, run(t, "model", "output", 1, 2), "schema 2", "of another version"},
	} {
		file := filepath.Join(t.TempDir(), "program.json")
		require.NoError(t, os.WriteFile(file, []byte(tt.program), 0o644))
		p, err := reference.Open(file, tt.golden.Entries)
		assert.Nil(t, reference.Beside(tt.golden), "none is named")
		assert.Empty(t, tt.golden.Notes, tt.reason)
		tt.golden.Program = file
		beside := reference.Beside(tt.golden)
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
