package serving_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/tensor"
)

// Draws are judged as a distribution, one setting at a time.
func TestSampled(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	for _, c := range []struct {
		stub   *servingtest.Stub
		model  serving.Model
		draws  int
		wrong  string // the setting that is wrong; empty: none
		says   string
		reason string
	}{
		{&servingtest.Stub{}, known, 300, "", "", "right"},
		{&servingtest.Stub{NoIDs: true}, known, 300, "", "", "by the texts of tokens"},
		{&servingtest.Stub{NoIDs: true}, serving.Model{}, 300, "", "which token it drew", "nothing tells the tokens"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.TopK = 0 }}, known, 300, "top_k", "as if it were ignored", "top_k is ignored"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.TopP = 0 }}, known, 300, "top_p", "that cannot come", "top_p is ignored"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.MinP = 0 }}, known, 300, "min_p", "that cannot come", "min_p is ignored"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.TopK = max(q.TopK-1, 0) }}, known, 700, "top_k", "not of the reference's distribution", "one token fewer"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) {
			if q.TopP < 1 {
				q.TopP -= 0.05
			}
		}}, known, 700, "top_p", "as if the token at which the sum reaches it were left out", "top_p without the last"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.Heat *= q.Heat }}, known, 700, "temperature 0.7", "as if it were applied twice", "temperature is applied twice"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { q.TopK = 1 }}, known, 300, "temperature 1", "as if the best token were always taken", "always the best"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) { *q.Seed = 5 }}, known, 300, "temperature 1", "not of the reference's distribution", "one seed for all"},
		{&servingtest.Stub{Drafts: true}, known, 300, "second token", "as if the best token were always taken", "what a draft model proposes is always accepted"},
		{&servingtest.Stub{Refuses: func(body map[string]any) string {
			if _, is := body["min_p"]; is {
				return "min_p is not known"
			}
			return ""
		}}, known, 300, "", "min_p is not known", "a setting that it refuses"},
		{&servingtest.Stub{Heats: func(q *servingtest.Request) {
			if q.TopK == 0 {
				q.TopK = 5
			}
		}}, known, 300, "", "", "a server that keeps five where nothing is said"},
		{&servingtest.Stub{Model: func(seen []int) []float64 {
			row := servingtest.Logits(seen)
			for i := range row {
				row[i] += 1e-6 * math.Sin(float64(i))
			}
			return row
		}}, known, 300, "", "", "noise"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: c.model, Draws: c.draws})
			said := strings.Join(append(out.Notes, out.Error), "\n")
			ways, lines := drawn(out)
			said += lines
			penalised := 3
			if c.model.Vocab == nil {
				penalised = 0 // nothing tells whether it knows them
			}
			require.Len(t, ways, 6+penalised, said)
			assert.Contains(t, said, c.says)
			if c.wrong == "" {
				assert.Equal(t, report.Pass, out.Verdict, said)
				assert.NotContains(t, said, "suspect")
				return
			}
			assert.Equal(t, report.Fail, out.Verdict)
			assert.Equal(t, []string{"distribution"}, causes(out))
			require.NotNil(t, out.First)
			assert.Contains(t, out.First.Way, c.wrong)
			assert.Contains(t, out.First.Where(), "sampled")
		})
	}
	out := judge(t, &servingtest.Stub{}, servingtest.Cases(tokensOfCases), serving.Options{Model: known})
	for _, r := range out.Requests {
		assert.NotContains(t, r.Way, serving.Sampled, "no one asked for it")
	}
}

// drawn are the settings whose draws were judged, and what is said of them.
func drawn(out *report.Serving) (ways map[string]report.Status, said string) {
	ways = map[string]report.Status{}
	for _, r := range out.Requests {
		if way, ok := strings.CutPrefix(r.Way, serving.Sampled+", "); ok {
			ways[way] = r.Status
			said += "\n" + r.String()
		}
	}
	return ways, said
}

// Penalties change the distribution of a token behind others, that of their own request.
func TestPenalisedDraws(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	hot := func(change func(q *servingtest.Request)) *servingtest.Stub { return &servingtest.Stub{Heats: change} }
	var often, present, again float64 // of the request that came before
	for _, c := range []struct {
		stub   *servingtest.Stub
		draws  int
		cause  string // empty: none
		wrong  string // the penalty that is wrong
		says   string
		reason string
	}{
		{&servingtest.Stub{}, 500, "", "", "by which", "right"},
		{&servingtest.Stub{PromptToo: true}, 500, "", "", "by which", "the prompt counts, too"},
		{hot(func(q *servingtest.Request) { q.Often = 0 }), 500, "distribution", "frequency_penalty", "as if it were ignored", "frequency_penalty is ignored where tokens are drawn"},
		{hot(func(q *servingtest.Request) { q.Present *= -1 }), 500, "distribution", "presence_penalty", "as if it had the other sign", "the other sign"},
		{hot(func(q *servingtest.Request) { q.Again *= q.Again }), 500, "distribution", "repetition_penalty", "as if it were applied twice", "applied twice"},
		{hot(func(q *servingtest.Request) { q.Often, often = often, q.Often }), 500, "concurrency", "", "without requests of other settings beside them they are right", "those of the request before"},
		{hot(func(q *servingtest.Request) { present = max(present, q.Present); q.Present = present }), 500, "distribution", "", "not of the reference's distribution", "kept for all that follow"},
		{hot(func(q *servingtest.Request) { q.Again, again = again, q.Again }), 500, "concurrency", "", "without requests of other settings beside them they are right", "repetition of the request before"},
		{&servingtest.Stub{}, 20, "", "", "not drawn: frequency_penalty: 20 draws would not show whether it is obeyed", "too few draws"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: known, Draws: c.draws})
			_, said := drawn(out)
			said += strings.Join(append(out.Notes, out.Error), "\n")
			for _, cause := range out.Causes {
				said += cause.Text
			}
			assert.Contains(t, said, c.says)
			if c.cause == "" {
				assert.Equal(t, report.Pass, out.Verdict, said)
				assert.NotContains(t, said, "suspect")
				return
			}
			require.Equal(t, report.Fail, out.Verdict, said)
			assert.Equal(t, []string{c.cause}, causes(out))
			assert.Contains(t, out.First.Way, c.wrong)
		})
	}
	without := func(q *servingtest.Request, _ []*servingtest.Request) { q.Often, q.Present, q.Again = 0, 0, 0 }
	out := judge(t, &servingtest.Stub{Set: without}, servingtest.Cases(tokensOfCases), serving.Options{Model: known, Draws: 300})
	ways, said := drawn(out)
	assert.Equal(t, report.Pass, out.Verdict, said)
	assert.Len(t, ways, 6, "penalties that a server does not know are not drawn")
}

// A token that ends a text may be drawn, and returned or not.
func TestDrawnEnds(t *testing.T) {
	model := func(seen []int) []float64 {
		row := servingtest.Logits(seen)
		row[servingtest.EOS] = slices.Max(row) - 0.5
		return row
	}
	refs := servingtest.Cases(tokensOfCases)
	for _, ref := range refs {
		for k := range ref.Rows {
			ref.Rows[k] = serving.NewRow(generation.NewRow(model(slices.Concat(ref.Prompt, ref.Tokens[:k]))), tensor.F32)
		}
	}
	for _, returned := range []bool{true, false} {
		for _, eos := range [][]int{{servingtest.EOS}, nil} {
			stub := &servingtest.Stub{Model: model, EOSIn: returned}
			out := judge(t, stub, refs, serving.Options{Model: serving.Model{EOS: eos, Vocab: tokenizer(t)}, Draws: 500})
			_, said := drawn(out)
			said += strings.Join(out.Notes, "\n")
			assert.Equal(t, report.Pass, out.Verdict, "%v %v: %v %s", returned, eos, out.First, said)
			assert.NotContains(t, said, "suspect")
			assert.Equal(t, eos == nil && !returned, strings.Contains(said, "which token it drew"), said)
		}
	}
}

// Draws of several settings are on their way together: a setting may be another request's.
func TestSampledTogether(t *testing.T) {
	before := 0 // top_k of the request that came before
	stub := &servingtest.Stub{Heats: func(q *servingtest.Request) { q.TopK, before = before, q.TopK }}
	out := judge(t, stub, servingtest.Cases(tokensOfCases), serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}, Draws: 700})
	assert.Equal(t, report.Fail, out.Verdict)
	assert.Equal(t, []string{"concurrency"}, causes(out))
	assert.Contains(t, out.Causes[0].Text, "without requests of other settings beside them they are right")
}
