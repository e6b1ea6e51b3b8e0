package serving_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
		{&servingtest.Stub{Refuses: servingtest.Strict}, known, "text, logprobs", "/v1/completions refuses return_token_ids and logprobs", 12, "400 on return_token_ids"},
		{&servingtest.Stub{NoLogProbs: true}, known, "prompt, tokens, text", "says no log-probabilities", 12, "no log-probabilities"},
		{&servingtest.Stub{NoIDs: true, NoLogProbs: true}, known, "text", "says no log-probabilities", 12, "text alone"},
		{&servingtest.Stub{NoIDs: true, NoLogProbs: true}, serving.Model{}, "text", "says no log-probabilities", 8, "text alone, and no vocabulary"},
		{&servingtest.Stub{NoUsage: true}, known, "prompt, tokens, text, logprobs", "", 12, "no usage"},
		{&servingtest.Stub{Scored: func(p []float64) (rounded []float64) {
			for _, x := range p {
				rounded = append(rounded, math.Round(100*x)/100)
			}
			return rounded
		}}, known, "prompt, tokens, text, logprobs", "", 12, "rounded log-probabilities"},
		{&servingtest.Stub{Written: func(ids []int) string { return " " + servingtest.Text(ids) }}, known, "prompt, tokens, text, logprobs", "", 12, "a space before the text"},
		{&servingtest.Stub{Written: func(ids []int) string { return servingtest.Text(ids) + "\uFFFD" }}, known, "prompt, tokens, text, logprobs", "", 12, "a text that breaks off in a character"},
		{&servingtest.Stub{Written: func(ids []int) string { return servingtest.Text(ids) + "</s>" }}, known, "prompt, tokens, text, logprobs", "", 12, "what ends the text is written"},
		{&servingtest.Stub{Change: beside(func(top map[string]float64) { delete(top, rank(top, 2)) })}, known, "prompt, tokens, text, logprobs", "", 12,
			"two tokens of one text beside each"},
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

func tokenizer(t *testing.T) *vocab.Vocab {
	t.Helper()
	v, err := vocab.Decode(servingtest.Tokenizer())
	require.NoError(t, err)
	return v
}

// faulty makes a server with a fault, and says which causes are true of it.
type faulty struct {
	name   string
	stub   servingtest.Stub
	causes []string // found where the server says all; nil: nothing tells it
	alone  bool     // something is wrong alone, too
	in     string   // the ways of writing a case in which it shows; "": in all; "once": it is tried on one server alone; "none": in none
	also   string   // a cause that is true, too
}

func faults() []*faulty {
	type stub = servingtest.Stub
	type asked = servingtest.Request
	written := func(change func([]int) []int) func(string, []int) []int { // of texts and chats
		return func(as string, ids []int) []int {
			if as == serving.AsIDs {
				return ids
			}
			return change(ids)
		}
	}
	twice := func(ids []int) []int { return append([]int{servingtest.BOS}, ids...) }
	missing := func(ids []int) []int { return ids[1:] }
	everywhere := func(change func([]int) []int) func(string, []int) []int {
		return func(_ string, ids []int) []int { return change(ids) }
	}
	scored := func(f func(i int, p []float64) float64) func([]float64) []float64 { // changes each log-probability
		return func(p []float64) []float64 {
			out := make([]float64, len(p))
			for i := range p {
				out[i] = f(i, p)
			}
			return out
		}
	}
	samples := func(n int) func([]float64, int, *rand.Rand) int {
		return func(row []float64, _ int, r *rand.Rand) int { return servingtest.Ranked(row)[r.IntN(n)] }
	}
	best, other := servingtest.Cases(tokensOfCases)[0].Tokens[1], 3
	if best == 3 {
		other = 4
	}
	swapped := func(seen []int) []float64 { // exchanges the logits of two tokens
		row := servingtest.Logits(seen)
		row[best], row[other] = row[other], row[best]
		return row
	}
	return []*faulty{
		{name: "none", in: "none"},
		{name: "BOS twice", stub: stub{Prompt: written(twice)}, causes: []string{"bos-twice"}, alone: true, in: "text chat"},
		{name: "BOS twice everywhere", stub: stub{Prompt: everywhere(twice)}, causes: []string{"bos-twice"}, alone: true},
		{name: "BOS missing", stub: stub{Prompt: written(missing)}, causes: []string{"bos-missing"}, alone: true, in: "text chat"},
		{name: "BOS dropped from ids", stub: stub{Prompt: everywhere(missing)}, causes: []string{"bos-missing"}, alone: true},
		{name: "template", stub: stub{Render: func(q *asked) []int { return servingtest.Chat(q.Messages[1:]) }}, causes: []string{"template"}, alone: true, in: "chat"},
		{name: "no generation prompt", stub: stub{Render: func(q *asked) []int { ids := servingtest.Chat(q.Messages); return ids[:len(ids)-1] }},
			causes: []string{"template"}, alone: true, in: "chat"},
		{name: "swapped", stub: stub{Model: swapped}, causes: []string{"choice"}, alone: true, in: "ids", also: "logprobs"}, // beside a token
		{name: "neighbour", stub: stub{Swap: servingtest.Neighbour}, causes: []string{"concurrency"}},
		{name: "a neighbour's log-probabilities", stub: stub{Change: func(q *asked, answer map[string]any, n, busy int) {
			if busy > 1 {
				choice(answer)["logprobs"] = map[string]any{"token_logprobs": []float64{-1, -1, -1, -1, -1, -1}[:q.Max]}
			}
		}}, causes: []string{"concurrency"}, in: "once"},
		{name: "samples", stub: stub{Choose: samples(2)}, causes: []string{"sampling"}, alone: true},
		{name: "samples of three", stub: stub{Choose: samples(3)}, causes: []string{"sampling"}, alone: true, in: "once"},
		{name: "always samples alike", stub: stub{Choose: func(row []float64, k int, _ *rand.Rand) int { return servingtest.Ranked(row)[k%2] }},
			causes: []string{"sampling"}, alone: true, in: "once"},
		{name: "a wrong cache that evicts", stub: stub{Prompt: evicting(3)}, causes: []string{"sampling?"}, alone: true, in: "once"},
		{name: "a wrong cache that evicts more seldom", stub: stub{Prompt: evicting(5)}, causes: []string{"sampling?"}, alone: true, in: "once"},
		{name: "stale", stub: stub{Prompt: stale()}, causes: []string{"cache"}, alone: true, in: "ids"},
		{name: "stops early", stub: stub{Cut: func(ids []int, _ *asked) ([]int, string) {
			if len(ids) > 2 {
				return ids[:len(ids)-2], "stop"
			}
			return ids, "length"
		}}, causes: []string{"stop"}, alone: true},
		{name: "the text is cut", stub: stub{Cut: func(ids []int, _ *asked) ([]int, string) { return ids, "stop" },
			Written: func(ids []int) string { return servingtest.Text(ids[:max(0, len(ids)-1)]) }}, causes: []string{"stop"}, alone: true, in: "once"},
		{name: "garbled", stub: stub{Written: func(ids []int) string { return strings.ReplaceAll(servingtest.Text(ids), "t", "u") }},
			causes: []string{"detokenise"}, alone: true},
		{name: "words stick together", stub: stub{Written: func(ids []int) string { return strings.ReplaceAll(servingtest.Text(ids), " ", "") }},
			causes: []string{"detokenise"}, alone: true, in: "once"},
		{name: "shifted", stub: stub{Scored: scored(func(i int, p []float64) float64 { return p[i] - 0.05 })}, causes: []string{"logprobs"}, alone: true},
		{name: "shifted by one", stub: stub{Scored: scored(func(i int, p []float64) float64 { return p[(i+1)%len(p)] })}, alone: true, in: "once"},
		{name: "the next token's", stub: stub{Scored: scored(func(i int, p []float64) float64 { return append(p[1:len(p):len(p)], -3)[i] })},
			causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "base 10", stub: stub{Scored: scored(func(i int, p []float64) float64 { return p[i] / math.Ln10 })}, causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "probabilities", stub: stub{Scored: scored(func(i int, p []float64) float64 { return math.Exp(p[i]) })}, causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "too few", stub: stub{Scored: func(p []float64) []float64 { return p[:len(p)/2] }}, causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "another token beside each is too probable", stub: stub{Change: beside(func(top map[string]float64) { top[rank(top, 1)] += 0.3 })},
			causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "the last beside each is too improbable", stub: stub{Change: beside(func(top map[string]float64) { top[rank(top, 4)] -= 2 })},
			causes: []string{"logprobs"}, alone: true, in: "once"},
		{name: "those beside each are of other tokens", stub: stub{Change: beside(func(top map[string]float64) {
			a, b := rank(top, 1), rank(top, 3)
			top[a], top[b] = top[b], top[a]
		})}, causes: []string{"logprobs"}, alone: true, in: "once"},
	}
}

// of is the fault of that name, whose server was asked nothing yet.
func (f *faulty) fresh() *servingtest.Stub {
	for _, o := range faults() {
		if o.name == f.name {
			return &o.stub
		}
	}
	panic(f.name)
}

func TestFaultsAndTheirCauses(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	for _, f := range faults()[1:] {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			out := judge(t, &f.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: known})
			require.Equal(t, report.Fail, out.Verdict, out.Error)
			if f.causes != nil {
				assert.Equal(t, f.causes, causes(out), "%v\n%v\n%v", out.Causes, failing(out), strings.Join(out.Probes, "\n"))
			}
			require.NotNil(t, out.First)
			alone := slices.ContainsFunc(failing(out), func(f string) bool { return strings.HasSuffix(f, "/alone") || strings.HasSuffix(f, "/prefix") })
			assert.Equal(t, f.alone, alone, "%v", failing(out))
			for _, cause := range out.Causes {
				assert.Empty(t, cause.Layer, "no layer is accused")
			}
		})
	}
}

// leastNamed is the part of the wrong servers of which a cause is named: those that say nearly nothing are the others.
const leastNamed = 0.9

// Every fault, in fixtures of one kind of case and of all, on servers that say much or little: it is found wherever it
// can show, and no cause that is not true is named.
func TestFaultsOnServersThatSayLittle(t *testing.T) {
	all := servingtest.Cases(tokensOfCases)
	kinds := map[string][]*serving.Reference{"all": all, "ids": all[:2], "one": all[:1], "text": all[2:3], "chat": all[3:]}
	vocabulary := tokenizer(t)
	var wrong, named atomic.Int64
	t.Run("servers", func(t *testing.T) {
		for _, f := range faults() {
			for kind, refs := range kinds {
				for mask := range 8 {
					noIDs, noLogProbs, noVocab := mask&1 > 0, mask&2 > 0, mask&4 > 0
					noUsage := bits.OnesCount(uint(mask))%2 > 0 // beside each of the others, and without it
					if f.in == "once" {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/ids=%v,logprobs=%v,usage=%v,vocab=%v", f.name, kind, !noIDs, !noLogProbs, !noUsage, !noVocab), func(t *testing.T) {
						t.Parallel()
						s := f.fresh()
						s.NoIDs, s.NoLogProbs, s.NoUsage = noIDs, noLogProbs, noUsage
						model := serving.Model{EOS: []int{servingtest.EOS}, Vocab: vocabulary}
						if noVocab {
							model = serving.Model{} // without the model's files neither is known
						}
						out := judge(t, s, refs, serving.Options{Model: model})
						require.NotEqual(t, report.Error, out.Verdict, out.Error)
						for _, c := range causes(out) {
							assert.Contains(t, append(f.causes, f.also), strings.TrimSuffix(c, "?"), "%v\n%s", out.Causes, strings.Join(out.Probes, "\n"))
						}
						if f.shows(kind, refs, noLogProbs) {
							assert.Equal(t, report.Fail, out.Verdict)
							wrong.Add(1)
							named.Add(int64(min(len(out.Causes), 1)))
						} else if f.in == "none" {
							assert.Equal(t, report.Pass, out.Verdict, "%v", failing(out))
						}
					})
				}
			}
		}
	})
	t.Logf("a cause is named of %d of %d wrong servers", named.Load(), wrong.Load())
	assert.GreaterOrEqual(t, float64(named.Load()), leastNamed*float64(wrong.Load()))
}

// shows reports whether a fault must be found.
func (f *faulty) shows(kind string, refs []*serving.Reference, noLogProbs bool) bool {
	switch f.name {
	case "shifted":
		return !noLogProbs
	case "swapped": // the token is among those of the first case
		return kind == "all" || kind == "ids" || kind == "one"
	case "neighbour", "stale": // there is another
		return kind == "all" || kind == "ids"
	}
	return f.in == "" || f.in != "none" && (kind == "all" || strings.Contains(f.in, refs[0].Ask.As))
}

// stale is a server that takes a prompt for the first that began like it.
func stale() func(string, []int) []int {
	seen := map[string][]int{}
	return func(_ string, ids []int) []int {
		key := fmt.Sprint(ids[:min(3, len(ids))])
		if seen[key] == nil {
			seen[key] = ids
		}
		return seen[key]
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
