package serving_test

import (
	"math"
	"math/rand/v2"
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

// hot changes what a server makes of settings where it draws.
func hot(change func(q *request)) *stub {
	return &stub{Asked: func(q *request) {
		if q.Heat > 0 {
			change(q)
		}
	}}
}

// Draws are judged as a distribution, one setting at a time.
func TestSampled(t *testing.T) {
	const other, draws = "distribution", 100
	before := 0 // top_k of the request that came before
	penalties := []string{"frequency_penalty", "presence_penalty", "repetition_penalty"}
	trials := []trial{
		{reason: "by the texts of tokens", stub: &stub{NoIDs: true}, draws: draws},
		{reason: "nothing tells the tokens", stub: &stub{NoIDs: true}, model: &serving.Model{}, draws: draws, says: "which token it drew"},
		{reason: "top_k is ignored", stub: hot(func(q *request) { q.TopK = 0 }), draws: draws, first: "top_k", cause: other, says: "as if it were ignored"},
		{reason: "top_p is ignored", stub: hot(func(q *request) { q.TopP = 0 }), draws: draws, first: "top_p", cause: other, says: "that cannot come"},
		{reason: "min_p is ignored", stub: hot(func(q *request) { q.MinP = 0 }), draws: draws, first: "min_p", cause: other, says: "that cannot come"},
		{reason: "one token fewer", stub: hot(func(q *request) { q.TopK = max(q.TopK-1, 0) }), draws: 500, first: "top_k", cause: other,
			says: "not of the reference's distribution"},
		{reason: "top_p without the last", stub: hot(func(q *request) {
			if q.TopP < 1 {
				q.TopP -= 0.05
			}
		}), draws: 500, first: "top_p", cause: other, says: "as if the token at which the sum reaches it were left out"},
		{reason: "temperature is applied twice", stub: hot(func(q *request) { q.Heat *= q.Heat }), draws: 700, first: "temperature 0.7", cause: other,
			says: "as if it were applied twice"},
		{reason: "always the best", stub: hot(func(q *request) { q.TopK = 1 }), draws: draws, first: "temperature 1", cause: other,
			says: "as if the best token were always taken"},
		{reason: "one seed for all", stub: hot(func(q *request) { *q.Seed = 5 }), draws: draws, first: "temperature 1", cause: other,
			says: "not of the reference's distribution"},
		{reason: "what a draft model proposes is always accepted", stub: &stub{Drafts: true}, draws: draws, first: "second token", cause: other,
			says: "as if the best token were always taken"},
		{reason: "top_k of the request before", stub: hot(func(q *request) { q.TopK, before = before, q.TopK }), draws: 350, first: "top_k", cause: "concurrency",
			says: "without requests of other settings beside them they are right"},
		{reason: "a setting that it refuses", stub: refusing(append(penalties, "min_p")...), draws: draws, says: "min_p is not known"},
		{reason: "a server that keeps five where nothing is said", stub: hot(func(q *request) {
			if q.TopK == 0 {
				q.TopK = 5
			}
		}), draws: draws},
		{reason: "noise", stub: &stub{Model: func(seen []int) []float64 {
			row := servingtest.Logits(seen)
			for i := range row {
				row[i] += 1e-6 * math.Sin(float64(i))
			}
			return row
		}}, draws: draws},
	}
	for _, c := range trials { // penalties have a test of their own
		if c.stub.Refuses == nil {
			c.stub.Refuses = refusing(penalties...).Refuses
		}
	}
	try(t, servingtest.Cases(tokensOfCases), trials, func(t *testing.T, c trial, out *report.Serving, said string) {
		assert.Len(t, asked(out, serving.Sampled), 6, said)
		if c.cause != "" {
			assert.Contains(t, out.First.Where(), "sampled")
		}
	})
}

// Penalties change the distribution of a token after others, that of their own request.
func TestPenalisedDraws(t *testing.T) {
	const other, draws = "distribution", 250
	const mixed, is = "without requests of other settings beside them they are right", "not of the reference's distribution"
	var often, present, again float64 // of the request that came before
	trials := []trial{
		{reason: "the prompt counts, too", stub: &stub{PromptToo: true}, draws: draws, says: "by which"},
		{reason: "frequency_penalty is ignored where tokens are drawn", stub: hot(func(q *request) { q.Often = 0 }), draws: draws, first: "frequency_penalty",
			cause: other, says: "as if it were ignored"},
		{reason: "the other sign", stub: hot(func(q *request) { q.Present *= -1 }), draws: draws, first: "presence_penalty", cause: other,
			says: "as if it had the other sign"},
		{reason: "applied twice", stub: hot(func(q *request) { q.Again *= q.Again }), draws: draws, first: "repetition_penalty", cause: other,
			says: "as if it were applied twice"},
		{reason: "those of the request before", stub: hot(func(q *request) { q.Often, often = often, q.Often }), draws: draws, cause: "concurrency", says: mixed},
		{reason: "repetition of the request before", stub: hot(func(q *request) { q.Again, again = again, q.Again }), draws: draws, cause: "concurrency", says: mixed},
		{reason: "kept for all that follow", stub: hot(func(q *request) { present = max(present, q.Present); q.Present = present }), draws: draws, cause: other, says: is},
		{reason: "too few draws", stub: &stub{}, draws: 20, says: "not drawn: frequency_penalty: 20 draws would not show whether it is obeyed"},
		{reason: "penalties that a server does not know are not drawn", draws: draws,
			stub: &stub{Asked: func(q *request) { q.Often, q.Present, q.Again = 0, 0, 0 }}, says: "frequency_penalty is taken"},
	}
	for _, c := range trials { // these have a test of their own
		c.stub.Refuses = refusing("top_k", "top_p", "min_p").Refuses
	}
	try(t, servingtest.Cases(tokensOfCases), trials, func(t *testing.T, c trial, out *report.Serving, said string) {
		if strings.Contains(c.says, "is taken") {
			assert.Len(t, asked(out, serving.Sampled), 6, said)
		}
	})
}

// A golden may keep the largest logits alone: what it does not know is not judged, and all else is.
func TestKeptLogits(t *testing.T) {
	refs := servingtest.Cases(tokensOfCases)
	for _, ref := range refs {
		for k, r := range ref.Rows {
			ref.Rows[k] = serving.NewRow(generation.Largest(r.Top[:20], r.LSE, r.Spread), tensor.F32)
		}
	}
	try(t, refs, []trial{
		{reason: "right", stub: &stub{}, draws: 100, says: "by which"},
		{reason: "log-probabilities of the next token", stub: scoring(func(i int, p []float64) float64 { return append(p[1:len(p):len(p)], -3)[i] }),
			first: serving.Alone, cause: "logprobs", says: "those of the token after"},
		{reason: "top_k is ignored", stub: hot(func(q *request) { q.TopK = 0 }), draws: 100, first: "top_k", cause: "distribution", says: "that cannot come"},
		{reason: "always the best", stub: hot(func(q *request) { q.TopK = 1 }), draws: 100, first: "temperature 1", cause: "distribution",
			says: "as if the best token were always taken"},
		{reason: "a bias of another token", stub: &stub{Asked: misplaced}, first: "logit_bias", cause: "setting", says: "token 0 is"},
		{reason: "a token that the golden has not", stub: &stub{Choose: func(row []float64, _ int, _ *rand.Rand) int { return servingtest.Ranked(row)[25] }},
			first: serving.Alone, cause: "sampling", says: " or more, noise"},
	}, func(t *testing.T, c trial, out *report.Serving, said string) {
		assert.NotContains(t, said, "temperature 0.7", "of those that are not known no one knows what becomes of them")
	})
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
	nameless := &serving.Model{Vocab: known(t).Vocab}
	try(t, refs, []trial{
		{reason: "returned", stub: &stub{Model: model, EOSIn: true}, draws: 200},
		{reason: "left out", stub: &stub{Model: model}, draws: 200},
		{reason: "left out, and no ids", stub: &stub{Model: model, NoIDs: true}, draws: 200, says: "temperature 1: 200 of 200"},
		{reason: "returned, and nothing says that it ends a text", stub: &stub{Model: model, EOSIn: true}, model: nameless, draws: 200},
		{reason: "left out, and nothing says what ends a text", stub: &stub{Model: model}, model: nameless, draws: 200, says: "which token it drew"},
	}, func(t *testing.T, c trial, _ *report.Serving, said string) {
		require.Equal(t, c.says != "", strings.Contains(said, "which token it drew"), said)
	})
}
