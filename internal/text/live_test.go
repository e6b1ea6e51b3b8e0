package text_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/text"
)

// Real tokenizers, built on the spot, with a fault each: what is told with the reference's mistakes and
// pieces, and what by the ids and rendered texts alone.
func TestLiveTokenizers(t *testing.T) {
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs transformers: PARITY_LIVE=1, and PARITY_PYTHON with it")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "faulty.py"), filepath.Join("..", "engine", "runner"))
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []struct {
		Fault, Cause   string
		Golden, Actual []dump.Text
	}
	require.NoError(t, json.Unmarshal(out, &all))
	require.Greater(t, len(all), 20)
	for _, tt := range all {
		for _, bare := range []bool{false, true} {
			golden, actual := dump.Info{Text: tt.Golden}, dump.Info{Text: tt.Actual}
			if bare {
				golden.Text, actual.Text = without(tt.Golden), without(tt.Actual)
			}
			for _, f := range text.Judge(&golden, &actual) {
				if tt.Cause == "" {
					assert.Equal(t, text.Equal, f.Status, tt.Fault)
				} else if assert.Equal(t, text.Differs, f.Status, "%s, bare %v", tt.Fault, bare) {
					assert.Equal(t, tt.Cause, f.Cause.ID, "%s, bare %v: %s", tt.Fault, bare, f.Text)
					assert.True(t, f.Cause.Proven || bare, "%s: %s", tt.Fault, f.Text)
				}
			}
		}
	}
}

func without(texts []dump.Text) (out []dump.Text) {
	for _, x := range texts {
		x.Pieces, x.Mistakes = nil, nil
		out = append(out, x)
	}
	return out
}
