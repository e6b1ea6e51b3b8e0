package serving_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/internal/vocab"
)

const tokensOfCases = 6

func judge(t *testing.T, s *servingtest.Stub, refs []*serving.Reference, opt serving.Options) *report.Serving {
	t.Helper()
	opt.URL = s.Start(t)
	out, err := serving.Run(t.Context(), refs, opt)
	require.NoError(t, err)
	return out
}

func causes(out *report.Serving) (ids []string) {
	for _, c := range out.Causes {
		id := c.ID
		if !c.Proven {
			id += "?"
		}
		ids = append(ids, strings.TrimPrefix(id, "serving/"))
	}
	return ids
}

// planned are the requests by which the cases are judged, without those in further ways.
func planned(out *report.Serving) []report.ServedRequest {
	return slices.DeleteFunc(slices.Clone(out.Requests), func(r report.ServedRequest) bool {
		return !slices.Contains([]string{serving.Alone, serving.Prefix, serving.AtOnce}, r.Way)
	})
}

// failing lists the wrong requests, "first/alone".
func failing(out *report.Serving) (all []string) {
	for _, r := range out.Requests {
		if r.Status == report.StatusFail {
			all = append(all, r.Case+"/"+r.Way)
		}
	}
	return all
}

func TestHealthyServersPass(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	for _, c := range []struct {
		stub     *servingtest.Stub
		model    serving.Model
		judged   string // of the first request
		note     string // that must be there
		requests int
		reason   string
	}{
		{&servingtest.Stub{}, known, "prompt, tokens, text, logprobs", "", 12, "says everything"},
		{&servingtest.Stub{}, serving.Model{}, "prompt, tokens, text, logprobs", "", 12, "the model's files are not at hand, the reference's text is"},
		{&servingtest.Stub{NoIDs: true}, known, "text, logprobs", "says no token ids of its answers", 12, "ignores return_token_ids"},
		{&servingtest.Stub{NoIDs: true}, serving.Model{}, "text, logprobs", "says no token ids", 12, "the text of the reference judges"},
		{&servingtest.Stub{Strict: true}, known, "text, logprobs", "/v1/completions refuses return_token_ids and logprobs", 12, "400 on return_token_ids"},
		{&servingtest.Stub{NoLogProbs: true}, known, "prompt, tokens, text", "says no log-probabilities", 12, "no log-probabilities"},
		{&servingtest.Stub{NoIDs: true, NoLogProbs: true}, known, "text", "says no log-probabilities", 12, "text alone"},
		{&servingtest.Stub{NoIDs: true, NoLogProbs: true}, serving.Model{}, "text", "says no log-probabilities", 8, "text alone, and no vocabulary"},
		{&servingtest.Stub{NoUsage: true}, known, "prompt, tokens, text, logprobs", "", 12, "no usage"},
		{&servingtest.Stub{Digits: 2}, known, "prompt, tokens, text, logprobs", "", 12, "rounded log-probabilities"},
		{&servingtest.Stub{Written: func(ids []int) string { return " " + servingtest.Text(ids) }}, known, "prompt, tokens, text, logprobs", "", 12, "a space before the text"},
		{&servingtest.Stub{Written: func(ids []int) string { return servingtest.Text(ids) + "\uFFFD" }}, known, "prompt, tokens, text, logprobs", "", 12, "a text that breaks off in a character"},
		{&servingtest.Stub{Answer: func(w http.ResponseWriter, r *servingtest.Request, n, busy int) bool {
			time.Sleep(20 * time.Millisecond)
			return false
		}}, known,
			"prompt, tokens, text, logprobs", "", 12, "slow, but in time"},
	} {
		out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: c.model, Timeout: 10 * time.Second})
		require.Equal(t, report.Pass, out.Verdict, "%s: %s %v", c.reason, out.Error, failing(out))
		assert.Nil(t, out.First, c.reason)
		assert.Equal(t, c.judged, strings.Join(out.Requests[0].Judged, ", "), c.reason)
		assert.Contains(t, strings.Join(out.Notes, "\n"), c.note, c.reason)
		assert.Len(t, planned(out), c.requests, "%s: each alone, from its middle where that can be judged, and at once", c.reason)
		assert.Empty(t, out.Probes, c.reason)
	}
}

// A text may end, with its last token among the ids or not.
func TestEnds(t *testing.T) {
	prompt := []int{servingtest.BOS, 5, 6, 7, 8}
	ended := servingtest.Reference("first", serving.Ask{As: serving.AsIDs, IDs: prompt}, prompt, 4)
	ended.Tokens[3] = servingtest.EOS
	ended.Rows = ended.Rows[:3]
	goesOn := servingtest.Reference("first", serving.Ask{As: serving.AsIDs, IDs: prompt}, prompt, 6)
	goesOn.Tokens[3] = servingtest.EOS
	goesOn.Rows = goesOn.Rows[:3]
	whole := servingtest.Reference("first", serving.Ask{As: serving.AsIDs, IDs: prompt}, prompt, 6)
	end := len(prompt) + 3
	for _, c := range []struct {
		ref     *serving.Reference
		stub    *servingtest.Stub
		model   serving.Model
		verdict report.Verdict
		causes  []string
		reason  string
	}{
		{ended, &servingtest.Stub{EndsAt: end}, serving.Model{EOS: []int{servingtest.EOS}}, report.Pass, nil, "left out"},
		{ended, &servingtest.Stub{EndsAt: end, EOSIn: true}, serving.Model{EOS: []int{servingtest.EOS}}, report.Pass, nil, "among the ids"},
		{ended, &servingtest.Stub{EndsAt: end}, serving.Model{Vocab: tokenizer(t)}, report.Pass, nil, "a special token by the vocabulary"},
		{ended, &servingtest.Stub{EndsAt: end}, serving.Model{}, report.Pass, nil, "the reference ends there, too"},
		{ended, &servingtest.Stub{EndsAt: end, NoIDs: true}, serving.Model{}, report.Pass, nil, "no ids"},
		{goesOn, &servingtest.Stub{EndsAt: end}, serving.Model{EOS: []int{servingtest.EOS}}, report.Pass, nil, "the reference ignores the end"},
		{goesOn, &servingtest.Stub{EndsAt: end, EOSIn: true}, serving.Model{EOS: []int{servingtest.EOS}}, report.Pass, nil, "the same, among the ids"},
		{whole, &servingtest.Stub{EndsAt: end}, serving.Model{EOS: []int{servingtest.EOS}},
			report.Fail, []string{"stop?"}, "the next token is not the end"},
		{whole, &servingtest.Stub{EndsAt: end}, serving.Model{}, report.Fail,
			[]string{"stop?"}, "the reference goes on, and nothing says that this may be the end"},
		{whole,
			&servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) {
				if q.Max == 6 {
					return ids[:4], "stop"
				}
				return ids, "length"
			}}, serving.Model{}, report.Fail, []string{"stop"}, "asked for more, it goes on"},
		{whole,
			&servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return ids[:max(1, len(ids)-1)], "stop" }}, serving.Model{}, report.Fail,
			[]string{"stop?"}, "the last token is cut"},
		{whole,
			&servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return append(ids, 3, 4), "length" }}, serving.Model{}, report.Fail,
			[]string{"stop"}, "more than was asked for"},
		{whole, &servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return ids, "stop" }},
			serving.Model{EOS: []int{servingtest.EOS}}, report.Fail, []string{"stop"}, "all that was asked for, and the server says that the text ended"},
		{whole, &servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return ids, "" }},
			serving.Model{EOS: []int{servingtest.EOS}}, report.Pass, nil, "no reason is said"},
		{goesOn, &servingtest.Stub{EndsAt: end, EOSIn: true, Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return ids, "length" }},
			serving.Model{EOS: []int{servingtest.EOS}}, report.Fail, []string{"stop"}, "the end, and the server says by length"},
	} {
		out := judge(t, c.stub, []*serving.Reference{c.ref}, serving.Options{Model: c.model})
		assert.Equal(t, c.verdict, out.Verdict, "%s: %v %s", c.reason, failing(out), out.Error)
		assert.Equal(t, c.causes, causes(out), c.reason)
	}
}

// swapped exchanges the logits of two tokens.
func swapped(a, b int) func([]int) []float64 {
	return func(seen []int) []float64 {
		row := servingtest.Logits(seen)
		row[a], row[b] = row[b], row[a]
		return row
	}
}

func tokenizer(t *testing.T) *vocab.Vocab {
	t.Helper()
	v, err := vocab.Decode(servingtest.Tokenizer())
	require.NoError(t, err)
	return v
}

// twice puts BOS before texts and chats once more, missing leaves it out.
func twice(as string, ids []int) []int {
	if as == serving.AsIDs {
		return ids
	}
	return append([]int{servingtest.BOS}, ids...)
}

func missing(as string, ids []int) []int {
	if as == serving.AsIDs {
		return ids
	}
	return ids[1:]
}

// scored changes each log-probability.
func scored(f func(i int, p []float64) float64) func([]float64) []float64 {
	return func(p []float64) []float64 {
		out := make([]float64, len(p))
		for i := range p {
			out[i] = f(i, p)
		}
		return out
	}
}

func TestFaultsAndTheirCauses(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	best := servingtest.Cases(tokensOfCases)[0].Tokens[1]
	other := 3
	if best == 3 {
		other = 4
	}
	stale := map[string][]int{}
	for _, c := range []struct {
		name   string
		stub   *servingtest.Stub
		causes []string
		alone  bool // something is wrong alone, too
	}{
		{"BOS twice in texts and chats", &servingtest.Stub{Prompt: twice}, []string{"bos-twice"}, true},
		{"BOS twice, no ids", &servingtest.Stub{Prompt: twice, NoIDs: true}, []string{"bos-twice"}, true},
		{"BOS twice, no ids, no usage", &servingtest.Stub{Prompt: twice, NoIDs: true, NoUsage: true}, []string{"bos-twice"}, true},
		{"BOS twice, text alone", &servingtest.Stub{Prompt: twice, NoIDs: true, NoUsage: true, NoLogProbs: true}, []string{"bos-twice"}, true},
		{"BOS twice in everything", &servingtest.Stub{Prompt: func(_ string, ids []int) []int { return append([]int{servingtest.BOS}, ids...) }}, []string{"bos-twice"}, true},
		{"BOS twice in everything, no ids", &servingtest.Stub{Prompt: func(_ string, ids []int) []int { return append([]int{servingtest.BOS}, ids...) }, NoIDs: true},
			[]string{"bos-twice"}, true},
		{"BOS missing", &servingtest.Stub{Prompt: missing}, []string{"bos-missing"}, true},
		{"BOS missing, no ids", &servingtest.Stub{Prompt: missing, NoIDs: true}, []string{"bos-missing"}, true},
		{"BOS dropped from ids, no ids", &servingtest.Stub{Prompt: func(_ string, ids []int) []int { return ids[1:] }, NoIDs: true}, []string{"bos-missing"}, true},
		{"another template", &servingtest.Stub{Render: func(q *servingtest.Request) []int { return servingtest.Chat(q.Messages[1:]) }}, []string{"template"}, true},
		{"another template, no ids", &servingtest.Stub{Render: func(q *servingtest.Request) []int { return servingtest.Chat(q.Messages[1:]) }, NoIDs: true}, []string{"template"}, true},
		{"another template, no ids, no usage", &servingtest.Stub{Render: func(q *servingtest.Request) []int { return servingtest.Chat(q.Messages[1:]) }, NoIDs: true, NoUsage: true},
			[]string{"template?"}, true},
		{"two logits swapped", &servingtest.Stub{Model: swapped(best, other)}, []string{"choice"}, true},
		{"two logits swapped, no ids", &servingtest.Stub{Model: swapped(best, other), NoIDs: true}, []string{"choice"}, true},
		{"a neighbour's answer", &servingtest.Stub{Swap: servingtest.Neighbour}, []string{"concurrency"}, false},
		{"a neighbour's answer, no ids", &servingtest.Stub{Swap: servingtest.Neighbour, NoIDs: true}, []string{"concurrency"}, false},
		{"a neighbour's log-probabilities", &servingtest.Stub{Change: func(q *servingtest.Request, answer map[string]any, n, busy int) {
			if busy > 1 {
				answer["choices"].([]any)[0].(map[string]any)["logprobs"] = map[string]any{"token_logprobs": []float64{-1, -1, -1, -1, -1, -1}[:q.Max]}
			}
		}}, []string{"concurrency"}, false},
		{"samples", &servingtest.Stub{Choose: func(row []float64, k int, r *rand.Rand) int { return servingtest.Ranked(row)[r.IntN(3)] }}, []string{"sampling"}, true},
		{"samples, no ids", &servingtest.Stub{Choose: func(row []float64, k int, r *rand.Rand) int { return servingtest.Ranked(row)[r.IntN(3)] }, NoIDs: true},
			[]string{"sampling"}, true},
		{"always samples alike", &servingtest.Stub{Choose: func(row []float64, k int, _ *rand.Rand) int { return servingtest.Ranked(row)[k%2] }}, []string{"sampling"}, true},
		{"a wrong cache that evicts", &servingtest.Stub{Prompt: evicting(3)}, []string{"sampling?"}, true},
		{"a wrong cache that evicts more seldom", &servingtest.Stub{Prompt: evicting(5)}, []string{"sampling?"}, true},
		{"shifted by one", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 { return p[(i+1)%len(p)] })}, nil, true},
		{"the next token's", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 {
			if i+1 < len(p) {
				return p[i+1]
			}
			return -3
		})}, []string{"logprobs"}, true},
		{"shifted by a constant", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 { return p[i] - 0.05 })}, []string{"logprobs"}, true},
		{"shifted by a constant, no ids", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 { return p[i] - 0.05 }), NoIDs: true},
			[]string{"logprobs"}, true},
		{"base 10", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 { return p[i] / math.Ln10 })}, []string{"logprobs"}, true},
		{"probabilities", &servingtest.Stub{Scored: scored(func(i int, p []float64) float64 { return math.Exp(p[i]) })}, []string{"logprobs"}, true},
		{"another token beside each is too probable", &servingtest.Stub{Change: beside(func(top map[string]float64) { raise(top, 1, 0.3) })}, []string{"logprobs"}, true},
		{"those beside each are of other tokens", &servingtest.Stub{Change: beside(func(top map[string]float64) { swapTop(top, 1, 3) })}, []string{"logprobs"}, true},
		{"the last beside each is too improbable", &servingtest.Stub{Change: beside(func(top map[string]float64) { raise(top, 4, -2) })}, []string{"logprobs"}, true},
		{"too few", &servingtest.Stub{Scored: func(p []float64) []float64 { return p[:len(p)/2] }}, []string{"logprobs"}, true},
		{"words stick together", &servingtest.Stub{Written: func(ids []int) string { return strings.ReplaceAll(servingtest.Text(ids), " ", "") }}, []string{"detokenise"}, true},
		{"words stick together, no ids", &servingtest.Stub{Written: func(ids []int) string { return strings.ReplaceAll(servingtest.Text(ids), " ", "") }, NoIDs: true},
			[]string{"detokenise"}, true},
		{"the text is cut", &servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) { return ids, "stop" },
			Written: func(ids []int) string { return servingtest.Text(ids[:max(0, len(ids)-1)]) }}, []string{"stop"}, true},
		{"takes one prompt for another", &servingtest.Stub{Prompt: func(_ string, ids []int) []int {
			key := fmt.Sprint(ids[:min(3, len(ids))])
			if stale[key] == nil {
				stale[key] = ids
			}
			return stale[key]
		}, NoIDs: true}, []string{"cache"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: known})
			require.Equal(t, report.Fail, out.Verdict, out.Error)
			if c.causes != nil {
				assert.Equal(t, c.causes, causes(out), "%v\n%v\n%v", out.Causes, failing(out), strings.Join(out.Probes, "\n"))
			}
			require.NotNil(t, out.First)
			alone := slices.ContainsFunc(failing(out), func(f string) bool { return strings.HasSuffix(f, "/alone") || strings.HasSuffix(f, "/prefix") })
			assert.Equal(t, c.alone, alone, "%v", failing(out))
			for _, cause := range out.Causes {
				assert.Empty(t, cause.Layer, "no layer is accused")
			}
		})
	}
}

// evicting is a server that takes the wrong prompt for one that it has seen, and forgets all of them each
// time it was asked so often.
func evicting(every int) func(string, []int) []int {
	var mu sync.Mutex
	seen, n := map[string]bool{}, 0
	return func(_ string, ids []int) []int {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%every == 0 {
			clear(seen)
		}
		key := fmt.Sprint(ids[:min(3, len(ids))])
		hit := seen[key]
		if seen[key] = true; hit {
			return ids[:len(ids)-1]
		}
		return ids
	}
}

// beside changes the most probable tokens of each position of completions.
func beside(change func(top map[string]float64)) func(*servingtest.Request, map[string]any, int, int) {
	return func(_ *servingtest.Request, answer map[string]any, _, _ int) {
		scores, _ := choice(answer)["logprobs"].(map[string]any)
		tops, _ := scores["top_logprobs"].([]map[string]float64)
		for _, top := range tops {
			change(top)
		}
	}
}

// rank is the token of a rank among the most probable ones.
func rank(top map[string]float64, i int) string {
	return slices.SortedFunc(maps.Keys(top), func(a, b string) int { return cmp.Compare(top[b], top[a]) })[i]
}

func raise(top map[string]float64, i int, by float64) { top[rank(top, i)] += by }

func swapTop(top map[string]float64, i, k int) {
	a, b := rank(top, i), rank(top, k)
	top[a], top[b] = top[b], top[a]
}
