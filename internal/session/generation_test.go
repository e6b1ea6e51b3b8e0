package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

const (
	spokenVocabulary = 70
	spokenKnown      = 66 // tokens that the tokenizer has
	spokenPrompt     = 3
	spokenYAML       = "model: {task: text-generation, path: ./m}\ncases:\n  short: {token_ids: [5, 6, 7]}\ngeneration: 8\n"
)

// spoken is the prompt and what the reference says.
var spoken = []int{5, 6, 7, 21, 30, 4, 44, 2, 17, 9, 33}

// logitsAt are the logits of a row of the text: the next token is ahead.
func logitsAt(at int) []float64 {
	x := make([]float64, spokenVocabulary)
	for j := range x {
		x[j] = float64((at*7+j*11)%9) / 3
	}
	if at+1 < len(spoken) {
		x[spoken[at+1]] = 9
	}
	return x
}

func spokenRows(t *testing.T, from, to int, change func(at int, x []float64)) *tensor.Tensor {
	t.Helper()
	var v []float64
	for at := from; at < to; at++ {
		x := logitsAt(at)
		if change != nil {
			change(at, x)
		}
		v = append(v, x...)
	}
	x, err := tensor.Of(v, 1, to-from, spokenVocabulary)
	require.NoError(t, err)
	return x
}

// spokenFixture is a folder with a fixture that asks for a generation, and its goldens.
func spokenFixture(t *testing.T, yaml string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fixture.yaml"), []byte(yaml), 0o644))
	ids := func(tokens []int) json.RawMessage {
		data, err := json.Marshal([][]int{tokens})
		require.NoError(t, err)
		return data
	}
	whole := dump.New("reference", dump.Info{Schema: 2, Mode: dump.Standard, TokenIDs: ids(spoken), Encoding: dump.Encoding{Compute: "float32"},
		Generation: &dump.Generation{From: spokenPrompt, Tokens: spoken[spokenPrompt:]}}, dump.OrderRunFile,
		[]dump.Entry{{Step: "0", Layer: "lm_head", Port: "output", Tensor: spokenRows(t, 0, len(spoken), nil)}})
	side, err := paths.OpenSide(whole, nil)
	require.NoError(t, err)
	entries, _, err := side.Keep(len(spoken)-spokenPrompt, spokenKnown)
	require.NoError(t, err)
	y, err := fixture.Load(dir)
	require.NoError(t, err)
	info := dump.Info{Engine: "torch", Encoding: dump.Encoding{Compute: "float32"}, Mode: dump.Standard, Case: "short", Inputs: y.Inputs("short")}
	text := info
	text.Case, text.TokenIDs, text.Generation = "short@generation", ids(spoken), whole.Info.Generation
	info.TokenIDs, info.ReferenceText = ids(spoken[:spokenPrompt]), "it is forty-two"
	onePass := []dump.Entry{{Step: "0", Layer: "lm_head", Port: "output", Tensor: spokenRows(t, 0, spokenPrompt, nil)}}
	c := &store.Change{Add: []store.Recording{
		{Kept: store.Kept{Variant: "float32", Info: info}, Run: dump.New("reference", info, dump.OrderRunFile, onePass)},
		{Kept: store.Kept{Variant: "float32", Info: text}, Run: dump.New("reference", text, dump.OrderRunFile, entries)},
	}}
	require.NoError(t, store.Update(t.Context(), filepath.Join(dir, "golden"), nil, func(*store.Store) (*store.Change, error) { return c, nil }))
	return dir
}

// TestGeneration forces an engine in this process along the text of a golden that keeps 64 logits.
func TestGeneration(t *testing.T) {
	for _, tt := range []struct {
		change  func(at int, x []float64)
		n       int
		want    generation.Verdict
		verdict report.Verdict
		reason  string
	}{
		{nil, 0, generation.Identical, report.Pass, "the same"},
		{func(at int, x []float64) {
			if at == 6 {
				x[11] = 12
			}
		}, 0, generation.Divergent, report.Fail, "another token after the prompt, where one pass shows nothing"},
		{func(at int, x []float64) {
			if at == 6 {
				x[11] = 12
			}
		}, 3, generation.Identical, report.Pass, "it is after the tokens that were asked for"},
		{func(at int, x []float64) {
			for j := range x {
				if at >= spokenPrompt {
					x[j] *= 0.8
				}
			}
		}, 0, generation.Logits, report.Fail, "logits that are scaled once the cache is used"},
	} {
		s := begin(t, session.Config{Fixtures: []string{spokenFixture(t, spokenYAML)}})
		f := s.Default()
		var passes [][2]int
		c, err := f.CompareFunc(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
			from, to := 0, spokenPrompt
			if p.Items != nil {
				from, to = p.Items[0].From, p.Items[0].To
				passes = append(passes, [2]int{from, to})
			}
			return map[string]*tensor.Tensor{"lm_head": spokenRows(t, from, to, tt.change)}, nil
		})
		require.NoError(t, err, tt.reason)
		require.Len(t, f.Generations(c), 1)
		if assert.Len(t, s.Unjudged(), 1, "no one asked yet") {
			assert.Contains(t, s.Unjudged()[0], "generation (generation in fixture.yaml)")
		}
		assert.Contains(t, c.Report("x", true).Notes[0], "largest logit", tt.reason)
		o, err := f.Generations(c)[0].Judge(tt.n)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, o.Verdict, tt.reason)
		assert.Equal(t, tt.verdict, o.Report("x").Verdict, tt.reason)
		if tt.want == generation.Divergent {
			assert.Contains(t, strings.Join(o.Notes, "\n"), "give the case steps: 5", "token 4 is decided by the fifth forward pass")
		}
		assert.Empty(t, s.Unjudged())
		assert.Equal(t, [2]int{0, spokenPrompt}, passes[0], "the prompt first")
		assert.Equal(t, [2]int{9, 10}, passes[len(passes)-1], "and then token by token")
		_, err = f.Generations(c)[0].Judge(2)
		assert.ErrorContains(t, err, "ask for one number", tt.reason)
	}
}

// TestServedGeneration asks a server for a text of which the golden keeps 64 logits. Servers sum over
// all logits, those of tokens that no tokenizer has among them.
func TestServedGeneration(t *testing.T) {
	for _, tt := range []struct {
		change  func(at int, x []float64)
		verdict report.Verdict
		want    string
		reason  string
	}{
		{nil, report.Pass, "", "right"},
		{func(at int, x []float64) { x[12] = 12 }, report.Fail, "token 0 is 12, the reference's is 21; its logit is", "another token"},
		{func(at int, x []float64) { x[spokenKnown] = 12 }, report.Fail, "or more", "a token that the golden does not keep"},
		{func(at int, x []float64) { x[spokenKnown] = 8 }, report.Fail, "its log-probability is", "a sum with another number"},
	} {
		s := begin(t, session.Config{Fixtures: []string{spokenFixture(t, spokenYAML)}})
		stub := &servingtest.Stub{Model: func(seen []int) []float64 {
			x := logitsAt(len(seen) - 1)
			if tt.change != nil {
				tt.change(len(seen)-1, x)
			}
			return x
		}}
		out, err := s.Default().Serve(session.Serving{URL: stub.Start(t)})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.verdict, out.Verdict, "%s: %+v", tt.reason, out)
		text := fmt.Sprintf("%+v", out.Requests)
		assert.Contains(t, text, tt.want, tt.reason)
		assert.Equal(t, 8, out.Requests[0].Tokens, tt.reason)
	}
}

// Of several servers the first that is wrong is judged, and what came of the others is told.
func TestSeveralServers(t *testing.T) {
	s := begin(t, session.Config{Fixtures: []string{spokenFixture(t, spokenYAML)}})
	var urls []string
	for _, off := range []int{0, 1} {
		stub := &servingtest.Stub{Model: func(seen []int) []float64 { return logitsAt(len(seen) - 1 - off) }}
		urls = append(urls, stub.Start(t))
		_, err := s.Default().Serve(session.Serving{URL: urls[off]})
		require.NoError(t, err)
	}
	var out strings.Builder
	require.NoError(t, report.Text(&out, s.Default().ServeReport(), report.TextOptions{}))
	text := strings.Join(strings.Fields(out.String()), " ")
	assert.Contains(t, text, "FAIL: the server answers wrong")
	assert.Contains(t, text, "Serving: stub at "+urls[1])
	assert.Regexp(t, regexp.QuoteMeta("Serving: stub at "+urls[0]+", 4 at once: ")+`\d+ answers of the server are the reference's`, text)
}

// TestServedName asks for the model that serve.model names, and no other.
func TestServedName(t *testing.T) {
	stub := &servingtest.Stub{Model: func(seen []int) []float64 { return logitsAt(len(seen) - 1) }}
	url := stub.Start(t)
	for name, want := range map[string]report.Verdict{"stub": report.Pass, "other": report.Error} {
		s := begin(t, session.Config{Fixtures: []string{spokenFixture(t, spokenYAML+"serve: {url: \""+url+"\", model: "+name+"}\n")}})
		out, err := s.Default().Serve(session.Serving{})
		require.NoError(t, err)
		assert.Equal(t, want, out.Verdict, out.Error)
	}
}

func TestGenerationLacks(t *testing.T) {
	for _, tt := range []struct{ yaml, want, reason string }{
		{"cases:\n  short: {token_ids: [5, 6, 7]}\ngeneration: 9\n", "the golden has 8 tokens, generation: 9 of", "more than the golden has"},
		{"cases:\n  other: {token_ids: [5, 6, 7]}\ngeneration: 8\n", "no golden", "a case without goldens"},
	} {
		s := begin(t, session.Config{Fixtures: []string{spokenFixture(t, tt.yaml)}})
		c, err := s.Default().CompareFunc(func(engine.Pass) (map[string]*tensor.Tensor, error) {
			return map[string]*tensor.Tensor{"lm_head": spokenRows(t, 0, spokenPrompt, nil)}, nil
		})
		if err == nil {
			_, err = s.Default().Generations(c)[0].Judge(0)
		}
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}

func TestExpect(t *testing.T) {
	for _, tt := range []struct{ expect, want, reason string }{
		{"{argmax: 21, min_confidence: 0.9}", "", "as expected"},
		{"{text: forty-two}", "", "in what the reference says"},
		{"{text: forty-three}", `expect: text "forty-three" is not in what the reference says, "it is forty-two"`, "another text"},
		{"{argmax: 4}", "expect: argmax is 21 in the candidate (lm_head output), not 4", "another token"},
		{"{min_confidence: 0.9999}", "at least 0.9999 is asked", "less sure"},
		{"{label: cat}", "has no id2label for 21: give argmax in place of label", "a model without labels"},
	} {
		yaml := "model: {task: text-generation, path: ./m}\ncases:\n  short: {token_ids: [5, 6, 7], expect: " + tt.expect + "}\n"
		dir := spokenFixture(t, yaml)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "m"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "m", "config.json"), []byte("{}"), 0o644))
		run := filepath.Join(t.TempDir(), "run")
		writeRun(t, run, dump.Info{Schema: 2, Engine: "max", Case: "short", TokenIDs: json.RawMessage("[[5,6,7]]")},
			dump.Entry{Step: "0", Layer: "lm_head", Port: "output", Tensor: spokenRows(t, 0, spokenPrompt, nil)})
		s := begin(t, session.Config{Fixtures: []string{dir}, Replay: run})
		_, err := s.Default().Comparison()
		require.NoError(t, err, tt.reason)
		list := problems(s)
		i := slices.IndexFunc(list, func(p session.Problem) bool { return p.Name == "parity:expect" })
		if tt.want == "" {
			assert.Less(t, i, 0, tt.reason)
		} else if assert.GreaterOrEqual(t, i, 0, tt.reason) {
			assert.Contains(t, list[i].Text, tt.want, tt.reason)
		}
	}
}
