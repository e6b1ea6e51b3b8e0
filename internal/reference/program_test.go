package reference_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/tensor"
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
		if tt.want == "" {
			require.NoError(t, err, tt.reason)
			require.NoError(t, p.Close())
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.reason)
		assert.ErrorContains(t, err, file, tt.reason)
		assert.Contains(t, reference.Without("a", err), "record it again: parity golden program MODEL --golden DIR")
	}
}
