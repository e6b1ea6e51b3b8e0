package paths_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/paths"
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

func TestContinuation(t *testing.T) {
	all := rows()
	choices := text[prompt:]
	golden := func() *dump.Run { return run(t, "lm_head", info(t, text, choices...), all, len(all)) }
	wide := make([][]float64, len(all))
	for i := range wide {
		wide[i] = append(append([]float64(nil), all[i]...), 0, 0)
	}
	two := run(t, "one", info(t, text, choices...), all, len(all))
	two.Entries = append(two.Entries, run(t, "two", info(t, text), wide, len(all)).Entries...)
	passes := info(t, text, choices...)
	passes.Path, passes.Passes = "decode:9", [][]dump.PassItem{{{To: prompt}}}
	for i := prompt; i < len(all); i++ {
		passes.Passes = append(passes.Passes, []dump.PassItem{{From: i, To: i + 1}})
	}
	plain, silent, none, far := info(t, text), passes, info(t, text), info(t, text)
	plain.Generation, silent.Generation = nil, nil
	none.Generation, far.Generation = &dump.Generation{}, &dump.Generation{From: len(text) + 1}
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
		{run(t, "lm_head", plain, all, len(all)), golden(), generation.Identical, "", "a golden that does not say how long the prompt is"},
		{golden(), run(t, "lm_head", silent, all, each(len(all))...), generation.Identical, "", "a candidate that does not"},
		{run(t, "lm_head", none, all, len(all)), golden(), "", "want the same prompt on both sides", "no prompt"},
		{run(t, "lm_head", far, all, len(all)), golden(), "", "want the same prompt on both sides", "a prompt that is longer than the text"},
		{golden(), two, generation.Identical, "", "the one of two that is as wide as the golden's"},
		{golden(), run(t, "lm_head", info(t, append(slices.Clone(text[:11]), 1)), all, len(all)), generation.Identical, "", "another last token, that nothing follows"},
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
			var unjudged *paths.SideError
			assert.ErrorAs(t, err, &unjudged, tt.reason)
			continue
		}
		if assert.NoError(t, err, tt.reason) {
			assert.Equal(t, tt.want, verdict.Verdict, tt.reason)
			assert.Equal(t, report.Pass, verdict.Report("x").Verdict, tt.reason)
		}
	}
}

func compareRuns(t *testing.T, golden, actual *dump.Run) (*paths.Continuation, error) {
	t.Helper()
	g, err := paths.OpenGolden(golden, actual)
	if err != nil {
		return nil, err
	}
	a, err := paths.OpenSide(actual, g)
	if err != nil {
		return nil, err
	}
	return paths.CompareContinuation(t.Context(), g, a, paths.ContinuationOptions{})
}

// everywhere changes each logit v of token j in row k.
func everywhere(f func(k, j int, v float64) float64) func(x [][]float64) {
	return func(x [][]float64) {
		for k := range x {
			for j, v := range x[k] {
				x[k][j] = f(k, j, v)
			}
		}
	}
}

// What is said of each verdict, and what stands in the report.
func TestReport(t *testing.T) {
	near := func(first, second float64) func(x [][]float64) {
		return func(x [][]float64) { x[2][14], x[2][77] = first, second }
	}
	flatten := everywhere(func(k, j int, v float64) float64 {
		if k < 9 && j == 1 { // as large as that of the text
			return 9
		}
		return v
	})
	for _, tt := range []struct {
		golden, actual func(x [][]float64)
		choices        []int // of the candidate; nil: by its logits
		verdict        report.Verdict
		at             int // −1: none
		text           string
		reason         string
	}{
		{near(9, 8.99), near(8.99, 9), nil, report.Pass, 1, "TIE: 9 of 10 tokens are the reference's; token 1 is 77 in place of 14, which the reference has ahead by 0.", "a tie"},
		{nil, everywhere(func(_, _ int, v float64) float64 { return v + 3 }), nil, report.Pass, -1, "IDENTICAL: all 10 tokens are the reference's", "moved"},
		{nil, func(x [][]float64) { x[5][7] = 11 }, nil, report.Fail, 4, "DIVERGED at token 4 of 10: the reference says 65, ", "another is ahead"},
		{nil, func(x [][]float64) { x[3][7] = math.NaN() }, nil, report.Fail, 2, "DIVERGED at token 2 of 10: 1 of the candidate's logits are NaN or infinite", "NaN"},
		{nil, nil, []int{3, 14, 15, 7, 65, 35, 89, 79, 32, 38}, report.Fail, 3,
			"DIVERGED at token 3 of 10: the engine says that it chose 7, and its own logits say 92: it chose by other logits, or sampled", "it says another"},
		{nil, everywhere(func(_, _ int, v float64) float64 { return 0.8 * v }), nil, report.Fail, 0,
			"the tokens are right, their logits are not: less their mean they are off by rel. L2 0.2, limit 0.0001, and at token 0 by 0.2, limit 0.0001", "scaled"},
		{nil, func(x [][]float64) { x[4][5], x[4][8] = x[4][8], x[4][5] }, nil, report.Fail, 3,
			"the tokens are right, their logits are not: at token 3 those of 5, 8 alone are off, as if they were exchanged", "exchanged"},
		{nil, func(x [][]float64) { x[4][5] += 3 }, nil, report.Fail, 3,
			"the tokens are right, their logits are not: at token 3 those of 5 alone are off, as no rounding makes them", "one is off"},
		{nil, func(x [][]float64) {
			for j := range 50 {
				if j != 14 {
					x[2][j] = math.Inf(-1)
				}
			}
		}, nil, report.Fail, 1, "at token 1 the candidate hides tokens that have 0.0", "hidden"},
		{nil, everywhere(func(k, j int, v float64) float64 { return v + 1e-7*math.Pow(2, float64(k))*math.Sin(float64(j)) }), nil, report.Fail, 9,
			"their error grows with the position, to ", "a cache that loses"},
		{flatten, flatten, nil, report.Incomplete, -1, "golden too flat: of 10 tokens it decides 80 % by less than the noise of float32", "it decides nothing"},
	} {
		g, a := rows(), rows()
		if tt.golden != nil {
			tt.golden(g)
		}
		if tt.actual != nil {
			tt.actual(a)
		}
		if tt.choices == nil {
			tt.choices = chosen(a)
		}
		golden, actual := run(t, "lm_head", info(t, text), g, len(g)), run(t, "model.head", info(t, text, tt.choices...), a, each(len(a))...)
		actual.Info.Engine, actual.Info.Device = "max", "gpu"
		if strings.HasPrefix(tt.text, "TIE") {
			actual.Info.Encoding.Compute = "bfloat16"
		}
		o, err := compareRuns(t, golden, actual)
		require.NoError(t, err, tt.reason)
		r := o.Report("x")
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		require.Len(t, r.Generations, 1, tt.reason)
		of, row := r.Generations[0], r.Layers[0]
		assert.Contains(t, of.Text, tt.text, tt.reason)
		assert.True(t, of.Incremental, tt.reason)
		assert.Equal(t, strings.Contains(tt.text, "says that it chose 7"), slices.ContainsFunc(of.Positions, func(p report.Token) bool { return p.Said != nil }), tt.reason)
		assert.Equal(t, []int{1, 1}, []int{r.Coverage.Compared, r.Coverage.Outputs}, tt.reason)
		assert.Equal(t, []int{prompt, 10, 10}, []int{of.Prompt, of.Tokens, len(of.Positions)}, tt.reason)
		if tt.at < 0 {
			assert.Nil(t, of.At, tt.reason)
		} else if assert.NotNil(t, of.At, tt.reason) {
			assert.Equal(t, tt.at, *of.At, tt.reason)
		}
		assert.Equal(t, tt.verdict == report.Fail, r.FirstDivergence != nil, tt.reason)
		assert.Equal(t, tt.verdict == report.Fail, len(row.Violations) == 1 && row.Status == report.StatusFail, tt.reason)
		assert.Equal(t, tt.verdict == report.Incomplete, len(r.Coverage.Open) == 1, tt.reason)
		assert.Equal(t, []string{"lm_head output", "model.head output", "max", "0"}, []string{row.Golden.Name, row.Actual.Name, r.Source.Actual.Name, row.Step}, tt.reason)
		if far, is := map[string]float64{"scaled": 0.2, "moved": 0}[tt.reason]; is {
			assert.InDelta(t, far, float64(row.Standard.RelL2), 1e-6, "of the logits less their means")
		}
	}
}

// Where a token is another, the first layer that is wrong is named.
func TestLayers(t *testing.T) {
	for off, want := range map[float64][2]string{0.5: {"model.norm", ""}, 0: {"lm_head", "no other layer that both sides recorded is beyond its tolerance"}} {
		var sides [2]*dump.Run
		for i := range sides {
			all, norm := rows(), make([][]float64, len(text)-1)
			for k := range norm {
				norm[k] = []float64{1, -2, 3 + off*float64(i*(k/4))}
			}
			sides[i] = run(t, "model.norm", info(t, text), norm, len(norm))
			sides[i].Entries = append(sides[i].Entries, run(t, "lm_head", info(t, text), all, len(all)).Entries...)
			sides[i].Info.Generation.Tokens = chosen(all)
		}
		sides[1].Info.Generation.Tokens[3] = 7
		o, err := compareRuns(t, sides[0], sides[1])
		require.NoError(t, err)
		r := o.Report("x")
		assert.Equal(t, []string{want[0], "DIVERGED"}, []string{r.FirstDivergence.Layer, r.Generations[0].Text[:8]})
		assert.Contains(t, strings.Join(r.Notes, "; "), want[1])
		assert.Nil(t, r.PathDepth, "one pass is no path")
	}
}

// The row after the text decides a token, too, where both sides have it.
func TestAfterTheText(t *testing.T) {
	with := func(last int) *dump.Run {
		all := rows()
		if last >= 0 {
			all = append(all, make([]float64, vocabulary))
			all[len(all)-1][last] = 9
		}
		return run(t, "lm_head", info(t, text), all, len(all))
	}
	chosen := with(5)
	chosen.Info.Generation.Tokens = append(slices.Clone(text[prompt:]), 5)
	for _, tt := range []struct {
		golden, actual *dump.Run
		tokens         int
		want           generation.Verdict
		reason         string
	}{
		{with(5), with(5), 11, generation.Identical, "the same"},
		{with(5), with(7), 11, generation.Divergent, "another"},
		{with(5), with(-1), 10, generation.Identical, "it is there by chance"},
		{chosen, with(5), 11, generation.Identical, "but may"},
		{with(-1), with(7), 10, generation.Identical, "nothing says what is right"},
	} {
		o, err := compareRuns(t, tt.golden, tt.actual)
		require.NoError(t, err, tt.reason)
		assert.Len(t, o.Positions, tt.tokens, tt.reason)
		assert.False(t, o.Report("x").Generations[0].Incremental, "%s: one pass", tt.reason)
		assert.Equal(t, tt.want, o.Verdict, tt.reason)
		assert.Equal(t, tt.reason == "nothing says what is right", len(o.Notes) > 0, "%s: %v", tt.reason, o.Notes)
	}
}

// TestKeep judges by what a golden keeps as by the whole logits.
func TestKeep(t *testing.T) {
	all := rows()
	g, err := paths.OpenSide(run(t, "lm_head", info(t, text, text[prompt:]...), all, len(all)), nil)
	require.NoError(t, err)
	entries, choices, err := g.Keep(len(text)-prompt, 0)
	require.NoError(t, err)
	assert.Equal(t, text[prompt:], choices)
	kept := dump.New("golden", info(t, text, text[prompt:]...), dump.OrderRunFile, entries)
	for _, tt := range []struct {
		change func(x [][]float64)
		want   generation.Verdict
		reason string
	}{
		{func([][]float64) {}, generation.Identical, "the same"},
		{func(x [][]float64) { x[5][7] = 11 }, generation.Divergent, "another token ahead"},
		{everywhere(func(_, _ int, v float64) float64 { return 0.8 * v }), generation.Logits, "scaled"},
	} {
		changed := rows()
		tt.change(changed)
		o, err := compareRuns(t, kept, run(t, "lm_head", info(t, text, chosen(changed)...), changed, len(all)))
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, o.Verdict, tt.reason)
		assert.Equal(t, o.Fails(), strings.Contains(strings.Join(o.Notes, ""), "keeps no layers"), tt.reason)
		own, err := compareRuns(t, kept, kept)
		require.NoError(t, err)
		assert.True(t, own.Report("x").Generations[0].Incremental, "as a fixture runs it")
	}
	for i, e := range entries {
		_, err = paths.OpenSide(dump.New("golden", info(t, text), dump.OrderRunFile, slices.Delete(slices.Clone(entries), i, i+1)), nil)
		assert.Error(t, err, "without %s", e.Port)
		cut := slices.Clone(entries)
		cut[i].Tensor, err = tensor.Of(make([]float32, 3), 3)
		require.NoError(t, err)
		_, err = paths.OpenSide(dump.New("golden", info(t, text, text[prompt:]...), dump.OrderRunFile, cut), nil)
		assert.ErrorContains(t, err, "do not fit together: make the golden again", e.Port)
	}
	_, _, err = g.Keep(100, 0)
	assert.ErrorContains(t, err, "rows missing")

	known := slices.Max(text[prompt:]) // the tokenizer lacks the last token
	entries, _, err = g.Keep(len(text)-prompt, known)
	require.NoError(t, err)
	short, err := paths.OpenSide(dump.New("golden", info(t, text, text[prompt:]...), dump.OrderRunFile, entries), nil)
	require.NoError(t, err)
	assert.Equal(t, known, short.Known)
	for k, id := range text[prompt:] {
		row, ok := short.Row(k)
		require.True(t, ok)
		assert.Equal(t, id >= known, row.Beyond, "token %d", k)
		whole, _ := g.Row(k)
		assert.Len(t, row.Top, generation.Kept, "token 0, too")
		assert.InDeltaSlice(t, []float64{whole.LSE, whole.All, whole.Spread}, []float64{row.LSE, row.All, row.Spread}, 1e-5, "token %d", k)
	}
}

// chosen are the tokens after the prompt with the largest logits.
func chosen(all [][]float64) (tokens []int) {
	for _, row := range all[prompt-1:] {
		tokens = append(tokens, floats.MaxIdx(row))
	}
	return tokens
}
