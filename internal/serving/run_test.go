package serving_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/internal/toy"
)

const tokensOfCases = 6

type (
	stub    = servingtest.Stub
	request = servingtest.Request
	made    = servingtest.Made
)

func judge(t *testing.T, s *stub, refs []*serving.Reference, opt serving.Options) *report.Serving {
	t.Helper()
	opt.URL = s.Start(t)
	out, err := serving.Run(t.Context(), refs, opt)
	require.NoError(t, err)
	return out
}

// direct asks a server without connections, which many draws are too many for. It knows no streams.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// known is all that is known of the stub's model.
func known(t testing.TB) serving.Model {
	v, err := serving.DecodeVocab(servingtest.Tokenizer())
	require.NoError(t, err)
	return serving.Model{EOS: []int{servingtest.EOS}, Vocab: v}
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

// making is a server that changes its answers, writing one that writes its tokens otherwise, and cutting one that ends them
// otherwise.
func making(change func(q *request, m *made)) *stub { return &stub{Made: change} }

func writing(write func(ids []int) string) *stub {
	return making(func(_ *request, m *made) { m.Text = write(m.IDs) })
}

func cutting(cut func(ids []int, q *request) ([]int, string)) *stub {
	return making(func(q *request, m *made) { m.Cut(cut(m.IDs, q)) })
}

// scoring is a server whose log-probabilities are others.
func scoring(f func(i int, p []float64) float64) *stub {
	return making(func(_ *request, m *made) {
		p := slices.Clone(m.P)
		for i := range p {
			m.P[i] = f(i, p)
		}
	})
}

// beside is a server that changes the most probable tokens of each position of completions.
func beside(change func(top map[string]float64)) *stub {
	return making(func(_ *request, m *made) {
		for _, top := range m.Top {
			change(top)
		}
	})
}

// rank is the token of a rank among the most probable ones.
func rank(top map[string]float64, i int) string {
	return slices.SortedFunc(maps.Keys(top), func(a, b string) int { return cmp.Compare(top[b], top[a]) })[i]
}

func TestHealthyServersPass(t *testing.T) {
	all, text := known(t), servingtest.Text
	const everything = "prompt, tokens, text, logprobs"
	for _, c := range []struct {
		stub     *stub
		model    serving.Model
		judged   string // of the first request
		note     string // that must be there
		requests int    // 0: 12
		reason   string
	}{
		{&stub{}, all, everything, "", 0, "says everything"},
		{&stub{}, serving.Model{}, everything, "", 0, "the model's files are not at hand, the reference's text is"},
		{&stub{NoIDs: true}, all, "text, logprobs", "says no token ids of its answers", 0, "ignores return_token_ids"},
		{&stub{NoIDs: true}, serving.Model{}, "text, logprobs", "says no token ids", 0, "the text of the reference judges"},
		{&stub{Refuses: servingtest.Strict}, all, "text, logprobs", "/v1/completions refuses return_token_ids and logprobs", 0, "400 on return_token_ids"},
		{&stub{NoLogProbs: true}, all, "prompt, tokens, text", "says no log-probabilities", 0, "no log-probabilities"},
		{&stub{NoIDs: true, NoLogProbs: true}, all, "text", "says no log-probabilities", 0, "text alone"},
		{&stub{NoIDs: true, NoLogProbs: true}, serving.Model{}, "text", "says no log-probabilities", 8, "text alone, and no vocabulary"},
		{&stub{NoUsage: true}, all, everything, "", 0, "no usage"},
		{scoring(func(i int, p []float64) float64 { return math.Round(100*p[i]) / 100 }), all, everything, "", 0, "rounded log-probabilities"},
		{writing(func(ids []int) string { return " " + text(ids) }), all, everything, "", 0, "a space before the text"},
		{writing(func(ids []int) string { return text(ids) + "\uFFFD" }), all, everything, "", 0, "a text that breaks off in a character"},
		{writing(func(ids []int) string { return text(ids) + "</s>" }), all, everything, "", 0, "what ends the text is written"},
		{beside(func(top map[string]float64) { delete(top, rank(top, 2)) }), all, everything, "", 0, "two tokens of one text beside each"},
	} {
		out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: c.model})
		require.Equal(t, report.Pass, out.Verdict, "%s: %s %v", c.reason, out.Error, failing(out))
		assert.Nil(t, out.First, c.reason)
		assert.Equal(t, c.judged, strings.Join(out.Requests[0].Judged, ", "), c.reason)
		assert.Contains(t, strings.Join(out.Notes, "\n"), c.note, c.reason)
		assert.Len(t, planned(out), cmp.Or(c.requests, 12), "%s: each alone, from its middle where that can be judged, and at once", c.reason)
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
	ends, none, vocabulary := serving.Model{EOS: []int{servingtest.EOS}}, serving.Model{}, serving.Model{Vocab: known(t).Vocab}
	early := cutting(func(ids []int, q *request) ([]int, string) {
		if q.Max == 6 {
			return ids[:4], "stop"
		}
		return ids, "length"
	})
	finish := func(why string) *stub {
		return cutting(func(ids []int, _ *request) ([]int, string) { return ids, why })
	}
	byLength := finish("length")
	byLength.EndsAt, byLength.EOSIn = end, true
	for _, c := range []struct {
		ref    *serving.Reference
		stub   *stub
		model  serving.Model
		cause  string // "": it passes
		reason string
	}{
		{ended, &stub{EndsAt: end}, ends, "", "left out"},
		{ended, &stub{EndsAt: end, EOSIn: true}, ends, "", "among the ids"},
		{ended, &stub{EndsAt: end}, vocabulary, "", "a special token by the vocabulary"},
		{ended, &stub{EndsAt: end}, none, "", "the reference ends there, too"},
		{ended, &stub{EndsAt: end, NoIDs: true}, none, "", "no ids"},
		{goesOn, &stub{EndsAt: end}, ends, "", "the reference ignores the end"},
		{goesOn, &stub{EndsAt: end, EOSIn: true}, ends, "", "the same, among the ids"},
		{whole, &stub{EndsAt: end}, ends, "stop?", "the next token is not the end"},
		{whole, &stub{EndsAt: end}, none, "stop?", "the reference goes on, and nothing says that this may be the end"},
		{whole, &stub{EndsAt: end, IgnoresEOS: true}, none, "", "it goes on where it is told to ignore the end"},
		{whole, early, none, "stop", "asked for more, it goes on"},
		{whole, cutting(func(ids []int, _ *request) ([]int, string) { return ids[:max(1, len(ids)-1)], "stop" }), none, "stop?", "the last token is cut"},
		{whole, cutting(func(ids []int, _ *request) ([]int, string) { return append(ids, 3, 4), "length" }), none, "stop", "more than was asked for"},
		{whole, finish("stop"), ends, "stop", "all that was asked for, and the server says that the text ended"},
		{whole, finish(""), ends, "", "no reason is said"},
		{goesOn, byLength, ends, "stop", "the end, and the server says by length"},
	} {
		out := judge(t, c.stub, []*serving.Reference{c.ref}, serving.Options{Model: c.model})
		assert.Equal(t, c.cause == "", out.Verdict == report.Pass, "%s: %v %s", c.reason, failing(out), out.Error)
		assert.Equal(t, c.cause, strings.Join(causes(out), " "), c.reason)
	}
}

// faulty is a server with a fault, and the causes that are true of it.
type faulty struct {
	name   string
	stub   *stub
	causes []string // found where the server says all; nil: nothing tells it
	alone  bool     // something is wrong alone, too
	in     string   // the ways of writing a case in which it shows; "": in all; "once": it is tried on one server alone; "none": in none
	also   string   // a cause that is true, too
}

func faults() []*faulty {
	prompts := func(change func([]int) []int, ways ...string) *stub {
		return &stub{Asked: func(q *request) {
			if ways == nil || slices.Contains(ways, q.As) {
				q.Tokens = change(q.Tokens)
			}
		}}
	}
	rendering := func(render func(q *request) []int) *stub {
		return &stub{Asked: func(q *request) {
			if q.As == serving.AsChat {
				q.Tokens = render(q)
			}
		}}
	}
	twice := func(ids []int) []int { return append([]int{servingtest.BOS}, ids...) }
	missing := func(ids []int) []int { return ids[1:] }
	choosing := func(choose func(row []float64, k int, r *rand.Rand) int) *stub { return &stub{Choose: choose} }
	samples := func(n int) *stub {
		return choosing(func(row []float64, _ int, r *rand.Rand) int { return servingtest.Ranked(row)[r.IntN(n)] })
	}
	text := servingtest.Text
	best, other := servingtest.Cases(tokensOfCases)[0].Tokens[1], 3
	if best == 3 {
		other = 4
	}
	swapped := &stub{Model: func(seen []int) []float64 { // exchanges the logits of two tokens
		row := servingtest.Logits(seen)
		row[best], row[other] = row[other], row[best]
		return row
	}}
	neighbours := &stub{Change: func(q *request, answer map[string]any, n, busy int) {
		if busy > 1 {
			choice(answer)["logprobs"] = map[string]any{"token_logprobs": []float64{-1, -1, -1, -1, -1, -1}[:q.Max]}
		}
	}}
	early := cutting(func(ids []int, _ *request) ([]int, string) {
		if len(ids) > 2 {
			return ids[:len(ids)-2], "stop"
		}
		return ids, "length"
	})
	const once = "once"
	return []*faulty{
		{name: "none", stub: &stub{}, in: "none"},
		{"BOS twice", prompts(twice, "text", "chat"), []string{"bos-twice"}, true, "text chat", ""},
		{"BOS twice everywhere", prompts(twice), []string{"bos-twice"}, true, "", ""},
		{"BOS missing", prompts(missing, "text", "chat"), []string{"bos-missing"}, true, "text chat", ""},
		{"BOS dropped from ids", prompts(missing), []string{"bos-missing"}, true, "", ""},
		{"template", rendering(func(q *request) []int { return servingtest.Chat(q.Messages[1:]) }), []string{"template"}, true, "chat", ""},
		{"no generation prompt", rendering(func(q *request) []int { return q.Tokens[:len(q.Tokens)-1] }), []string{"template"}, true, "chat", ""},
		{"swapped", swapped, []string{"choice"}, true, "ids", "logprobs"}, // beside a token
		{"neighbour", &stub{Among: servingtest.Neighbour}, []string{"concurrency"}, false, "", ""},
		{"a neighbour's log-probabilities", neighbours, []string{"concurrency"}, false, once, ""},
		{"samples", samples(2), []string{"sampling"}, true, "", ""},
		{"samples of three", samples(3), []string{"sampling"}, true, once, ""},
		{"always samples alike", choosing(func(row []float64, k int, _ *rand.Rand) int { return servingtest.Ranked(row)[k%2] }),
			[]string{"sampling"}, true, once, ""},
		{"a wrong cache that evicts", prompts(evicting(3)), []string{"sampling?"}, true, once, ""},
		{"a wrong cache that evicts more seldom", prompts(evicting(5)), []string{"sampling?"}, true, once, ""},
		{"stale", prompts(stale()), []string{"cache"}, true, "ids", ""},
		{"stops early", early, []string{"stop"}, true, "", ""},
		{"the text is cut", making(func(_ *request, m *made) { m.Text, m.Finish = text(m.IDs[:max(0, len(m.IDs)-1)]), "stop" }),
			[]string{"stop"}, true, once, ""},
		{"garbled", writing(func(ids []int) string { return strings.ReplaceAll(text(ids), "t", "u") }), []string{"detokenise"}, true, "", ""},
		{"words stick together", writing(func(ids []int) string { return strings.ReplaceAll(text(ids), " ", "") }), []string{"detokenise"}, true, once, ""},
		{"shifted", scoring(func(i int, p []float64) float64 { return p[i] - 0.05 }), []string{"logprobs"}, true, "", ""},
		{"shifted by one", scoring(func(i int, p []float64) float64 { return p[(i+1)%len(p)] }), nil, true, once, ""},
		{"the next token's", scoring(func(i int, p []float64) float64 { return append(p[1:len(p):len(p)], -3)[i] }), []string{"logprobs"}, true, once, ""},
		{"base 10", scoring(func(i int, p []float64) float64 { return p[i] / math.Ln10 }), []string{"logprobs"}, true, once, ""},
		{"probabilities", scoring(func(i int, p []float64) float64 { return math.Exp(p[i]) }), []string{"logprobs"}, true, once, ""},
		{"too few", making(func(_ *request, m *made) { m.P = m.P[:len(m.P)/2] }), []string{"logprobs"}, true, once, ""},
		{"another token beside each is too probable", beside(func(top map[string]float64) { top[rank(top, 1)] += 0.3 }), []string{"logprobs"}, true, once, ""},
		{"the last beside each is too improbable", beside(func(top map[string]float64) { top[rank(top, 4)] -= 2 }), []string{"logprobs"}, true, once, ""},
		{"those beside each are of other tokens", beside(func(top map[string]float64) {
			a, b := rank(top, 1), rank(top, 3)
			top[a], top[b] = top[b], top[a]
		}), []string{"logprobs"}, true, once, ""},
	}
}

// fresh is the server of a fault that was asked nothing yet.
func (f *faulty) fresh() *stub {
	for _, o := range faults() {
		if o.name == f.name {
			return o.stub
		}
	}
	panic(f.name)
}

// Every fault is found and its cause named. All that is asked of a right server is kept, and what is said of it and of
// wrong ones that answer the same each time.
func TestFaultsAndTheirCauses(t *testing.T) {
	var b strings.Builder
	write := func(name string, out *report.Serving) {
		fmt.Fprintf(&b, "\n%s: %s\n", name, out.Verdict)
		for _, r := range out.Requests {
			if out.Verdict == report.Pass || r.Status == report.StatusFail && r.Way == serving.Alone {
				fmt.Fprintln(&b, r.String())
			}
		}
		for _, c := range out.Causes {
			fmt.Fprintf(&b, "%s%s, proven %t: %s\n", c.Layer, c.ID, c.Proven, c.Text)
		}
		fmt.Fprintf(&b, "%sharness: %s\nprobes: %d\n", strings.Join(append(out.Notes, ""), "\n"), out.Harness, len(out.Probes))
	}
	write("long texts", judge(t, &stub{}, servingtest.Cases(24), serving.Options{Model: known(t)}))
	write("draws", judge(t, &stub{}, servingtest.Cases(tokensOfCases), serving.Options{Model: known(t), Draws: 250}))
	for _, f := range faults()[1:] {
		out := judge(t, f.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: known(t)})
		require.Equal(t, report.Fail, out.Verdict, "%s: %s", f.name, out.Error)
		require.NotNil(t, out.First, f.name)
		if f.causes != nil {
			assert.Equal(t, f.causes, causes(out), "%s: %v\n%v\n%v", f.name, out.Causes, failing(out), strings.Join(out.Probes, "\n"))
		}
		alone := slices.ContainsFunc(failing(out), func(f string) bool { return strings.HasSuffix(f, "/alone") || strings.HasSuffix(f, "/prefix") })
		assert.Equal(t, f.alone, alone, "%s: %v", f.name, failing(out))
		if f.alone && f.causes != nil && !strings.HasPrefix(f.causes[0], "sampling") {
			write(f.name, out)
		}
	}
	toy.Kept(t, "said.txt", b.String())
}

// leastNamed is the part of the wrong servers of which a cause is named: those that say nearly nothing are the others.
const leastNamed = 0.9

// Every fault, in fixtures of one kind of case and of all, on servers that say much or little: it is found wherever it
// can show, and no cause that is not true is named. Each meets each kind of server, with another kind of fixture.
func TestFaultsOnServersThatSayLittle(t *testing.T) {
	all := servingtest.Cases(tokensOfCases)
	kinds := []struct {
		name string
		refs []*serving.Reference
	}{{"all", all}, {"ids", all[:2]}, {"one", all[:1]}, {"text", all[2:3]}, {"chat", all[3:]}}
	var wrong, named atomic.Int64
	t.Run("servers", func(t *testing.T) {
		for i, f := range slices.DeleteFunc(faults(), func(f *faulty) bool { return f.in == "once" }) {
			for mask := range 8 {
				kind, s, model := kinds[(i+mask)%len(kinds)], f.fresh(), known(t)
				s.NoIDs, s.NoLogProbs = mask&1 > 0, mask&2 > 0
				s.NoUsage = bits.OnesCount(uint(mask))%2 > 0 // beside each of the others, and without it
				if mask&4 > 0 {
					model = serving.Model{} // without the model's files neither is known
				}
				t.Run(fmt.Sprintf("%s/%s/ids=%v,logprobs=%v,usage=%v,vocab=%v", f.name, kind.name, !s.NoIDs, !s.NoLogProbs, !s.NoUsage, model.Vocab != nil), func(t *testing.T) {
					t.Parallel()
					out := judge(t, s, kind.refs, serving.Options{Model: model}.Over(direct{s.Handler()}))
					require.NotEqual(t, report.Error, out.Verdict, out.Error)
					for _, c := range causes(out) {
						assert.Contains(t, append(f.causes, f.also), strings.TrimSuffix(c, "?"), "%v\n%s", out.Causes, strings.Join(out.Probes, "\n"))
					}
					if f.shows(kind.name, kind.refs, s.NoLogProbs) {
						assert.Equal(t, report.Fail, out.Verdict)
						wrong.Add(1)
						named.Add(int64(min(len(out.Causes), 1)))
					} else if f.in == "none" {
						assert.Equal(t, report.Pass, out.Verdict, "%v", failing(out))
					}
				})
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

// stale takes a prompt for the first that began like it.
func stale() func([]int) []int {
	seen := map[string][]int{}
	return func(ids []int) []int {
		key := fmt.Sprint(ids[:min(3, len(ids))])
		if seen[key] == nil {
			seen[key] = ids
		}
		return seen[key]
	}
}

// evicting takes the wrong prompt for one that it has seen, and forgets all of them each time it was asked so often.
func evicting(every int) func([]int) []int {
	seen, n := map[string]bool{}, 0
	return func(ids []int) []int {
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
