package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// What cases: auto makes of models with images finds what is wrong with these, and nothing where
// nothing is.
func TestLiveImages(t *testing.T) {
	interpreter := livePython(t)
	for _, model := range []struct {
		kind   string
		left   string
		faults map[string]string // by fault, the case that shows it first
	}{
		{"llava", "", map[string]string{"none": "", "second": "auto-images", "stale": "auto-image-o"}},
		{"gemma3", "path chunked:32 is not run with case auto-image", map[string]string{"none": ""}},
	} {
		dir := filepath.Join(t.TempDir(), model.kind)
		script(t, interpreter, "tiny_vision.py", filepath.Join(dir, "model"), model.kind)
		program, err := os.ReadFile(filepath.Join("testdata", "vision_port.py"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "vision_port.py"), program, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(`
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, engine: ./vision_port.py}
cases: auto
`), 0o644))
		updated(t, dir)
		for fault, shows := range model.faults {
			t.Run(model.kind+"/"+fault, func(t *testing.T) {
				t.Setenv("PARITY_TEST_FAULT", fault)
				s, err := session.Start(session.Config{Fixtures: []string{dir}, Run: setting.RunCPU, Diagnose: setting.DiagnoseFull})
				require.NoError(t, err)
				defer s.Close()
				f := s.Default()
				c, err := f.Comparison()
				require.NoError(t, err)
				r := c.Report(fault, true)
				if shows != "" {
					require.NotNil(t, r.FirstDivergence, report.Headline(r))
					assert.Equal(t, "model.model", r.FirstDivergence.Layer, "where features are put among the tokens")
					assert.True(t, strings.HasPrefix(r.FirstDivergence.Case, shows), r.FirstDivergence.Case)
					return
				}
				assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
				var notes []string
				for _, p := range f.Paths(c) {
					_, err := p.Judge()
					require.NoError(t, err, p.Name)
					assert.Equal(t, report.Pass, p.Report().Verdict, "%s: %s", p.Name, report.Headline(p.Report()))
					notes = append(notes, p.Report().Notes...)
				}
				if model.left != "" {
					assert.Contains(t, strings.Join(notes, "\n"), model.left, "chunks that end inside of an image are no right ones of a model that looks ahead in it")
				}
			})
		}
	}
}
