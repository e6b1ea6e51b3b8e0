package continuation_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// vocabulary and text of the runs: the prompt has two tokens, and row i decides token text[i+1].
const vocabulary = 100

var text = []int{90, 91, 3, 14, 15, 92, 65, 35, 89, 79, 32, 38}

const prompt = 2

// rows are logits that decide the text, with a clear winner in each.
func rows() [][]float64 {
	out := make([][]float64, len(text)-1)
	for i := range out {
		out[i] = make([]float64, vocabulary)
		for j := range out[i] {
			out[i][j] = float64((i*31+j*17)%13) / 6
		}
		out[i][text[i+1]] = 9
	}
	return out
}

// run is a run with logits in some steps, each with so many rows.
func run(t *testing.T, layer string, info dump.Info, all [][]float64, steps ...int) *dump.Run {
	t.Helper()
	var entries []dump.Entry
	at := 0
	for k, n := range steps {
		var v []float64
		for _, row := range all[at : at+n] {
			v = append(v, row...)
		}
		at += n
		x, err := tensor.Of(v, 1, n, len(all[0]))
		require.NoError(t, err)
		entries = append(entries, dump.Entry{Step: strconv.Itoa(k), Layer: layer, Port: "output", Tensor: x})
	}
	return dump.New("run", info, dump.OrderRunFile, entries)
}

func info(t *testing.T, ids []int, choices ...int) dump.Info {
	t.Helper()
	data, err := json.Marshal([][]int{ids})
	require.NoError(t, err)
	return dump.Info{Schema: 2, Mode: dump.Standard, TokenIDs: data, Encoding: dump.Encoding{Compute: "float32"},
		Generation: &dump.Generation{From: prompt, Tokens: choices}}
}

func each(n int) []int {
	steps := []int{prompt}
	for range n - prompt {
		steps = append(steps, 1)
	}
	return steps
}

func TestCompare(t *testing.T) {
	all := rows()
	choices := text[prompt:]
	golden := func() *dump.Run { return run(t, "lm_head", info(t, text, choices...), all, len(all)) }
	wide := make([][]float64, len(all))
	for i := range wide {
		wide[i] = append(append([]float64(nil), all[i]...), 0, 0)
	}
	passes := info(t, text, choices...)
	passes.Path, passes.Passes = "decode:9", [][]dump.PassItem{{{To: prompt}}}
	for i := prompt; i < len(all); i++ {
		passes.Passes = append(passes.Passes, []dump.PassItem{{From: i, To: i + 1}})
	}
	plain := info(t, text)
	plain.Generation = nil
	for _, tt := range []struct {
		golden, actual *dump.Run
		want           generation.Verdict
		err            string
		reason         string
	}{
		{golden(), golden(), generation.Identical, "", "one pass on both sides, that leaves the last token out"},
		{golden(), run(t, "model.lm_head", info(t, text, choices...), all, each(len(all))...), generation.Identical, "", "a step for each token"},
		{run(t, "lm_head", info(t, text, choices...), all, each(len(all))...), golden(), generation.Identical, "", "the golden in steps"},
		{golden(), run(t, "lm_head", passes, all, each(len(all))...), generation.Identical, "", "forward passes"},
		{golden(), run(t, "other.name", info(t, text, choices...), all, len(all)), generation.Identical, "", "a name that says nothing, as wide as the golden's"},
		{golden(), run(t, "lm_head", info(t, text, choices...), wide, len(all)), generation.Identical, "", "a padded vocabulary"},
		{golden(), run(t, "lm_head", info(t, text, choices[:4]...), all, len(all)), generation.Identical, "", "choices of some tokens, logits of all"},
		{run(t, "lm_head", info(t, text), all, len(all)), golden(), generation.Identical, "", "a golden that does not say what it chose"},
		{golden(), run(t, "lm_head", info(t, text, choices...), all[:len(all)-2], each(len(all)-2)...), "", "rows missing", "the last steps are missing"},
		{golden(), run(t, "lm_head", info(t, text[:8], choices[:6]...), all, 7), "", "rows missing", "a text that ends before"},
		{golden(), run(t, "lm_head", info(t, append([]int{90, 90}, text[2:]...), choices...), all, len(all)), "", "another text: token 1 of the prompt", "another prompt"},
		{golden(), run(t, "lm_head", info(t, append(append([]int{}, text[:5]...), 1, 2, 3, 4, 5, 6, 7), choices...), all, len(all)), "",
			"another text: token 3 of the continuation", "another continuation"},
		{golden(), run(t, "model.norm", info(t, text, choices...), [][]float64{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 11),
			"", "no logits", "no output is as wide as a vocabulary"},
	} {
		verdict, err := compareRuns(t, tt.golden, tt.actual)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			var unjudged *continuation.Error
			assert.ErrorAs(t, err, &unjudged, tt.reason)
			continue
		}
		if assert.NoError(t, err, tt.reason) {
			assert.Equal(t, tt.want, verdict.Verdict, tt.reason)
			assert.Equal(t, report.Pass, verdict.Report("x").Verdict, tt.reason)
		}
	}
}

func compareRuns(t *testing.T, golden, actual *dump.Run) (*continuation.Outcome, error) {
	t.Helper()
	g, err := continuation.OpenGolden(golden, actual)
	if err != nil {
		return nil, err
	}
	a, err := continuation.Open(actual, g)
	if err != nil {
		return nil, err
	}
	return continuation.Compare(t.Context(), g, a, continuation.Options{})
}

// TestKeep judges by what a golden keeps as by the whole logits.
func TestKeep(t *testing.T) {
	all := rows()
	g, err := continuation.Open(run(t, "lm_head", info(t, text, text[prompt:]...), all, len(all)), nil)
	require.NoError(t, err)
	entries, err := g.Keep(len(text)-prompt, 0)
	require.NoError(t, err)
	kept := dump.New("golden", info(t, text, text[prompt:]...), dump.OrderRunFile, entries)
	for _, tt := range []struct {
		change func(x [][]float64)
		want   generation.Verdict
		reason string
	}{
		{func([][]float64) {}, generation.Identical, "the same"},
		{func(x [][]float64) { x[5][7] = 11 }, generation.Divergent, "another token ahead"},
		{func(x [][]float64) {
			for i := range x {
				for j := range x[i] {
					x[i][j] *= 0.8
				}
			}
		}, generation.Logits, "scaled"},
	} {
		changed := rows()
		tt.change(changed)
		a := run(t, "lm_head", info(t, text), changed, len(all))
		a.Info.Generation.Tokens = make([]int, len(text)-prompt)
		for k := range a.Info.Generation.Tokens {
			a.Info.Generation.Tokens[k] = largest(changed[prompt-1+k])
		}
		o, err := compareRuns(t, kept, a)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, o.Verdict, tt.reason)
	}
	_, err = g.Keep(100, 0)
	assert.ErrorContains(t, err, "rows missing")

	known := slices.Max(text[prompt:]) // the tokenizer lacks the last token
	entries, err = g.Keep(len(text)-prompt, known)
	require.NoError(t, err)
	short, err := continuation.Open(dump.New("golden", info(t, text, text[prompt:]...), dump.OrderRunFile, entries), nil)
	require.NoError(t, err)
	for k, id := range text[prompt:] {
		row, ok := short.Row(k)
		require.True(t, ok)
		assert.Equal(t, id >= known, row.Beyond, "token %d", k)
	}
}

func largest(x []float64) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}
