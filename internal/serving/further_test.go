package serving_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/picture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/internal/vocab"
)

// asked are the requests of a way, and all that is said of them.
func asked(out *report.Serving, way string) (list []report.ServedRequest, said string) {
	lines := append(out.Notes, out.Error)
	for _, r := range out.Requests {
		if strings.HasPrefix(r.Way, way) {
			list = append(list, r)
			lines = append(lines, r.String())
		}
	}
	return list, strings.Join(lines, "\n")
}

// Requests that arrive while another is answered, and more than there are slots.
func TestArriving(t *testing.T) {
	late := func(q *servingtest.Request) bool { return q.Stream }
	for _, c := range []struct {
		stub    *servingtest.Stub
		way     string
		verdict report.Verdict
		causes  []string
		says    string
		reason  string
	}{
		{&servingtest.Stub{Holds: true}, "arriving", report.Pass, nil, "", "right"},
		{&servingtest.Stub{Holds: true}, "queued", report.Pass, nil, "", "right, in a queue"},
		{&servingtest.Stub{Holds: true, NoIDs: true}, "arriving", report.Pass, nil, "", "by text and log-probabilities"},
		{&servingtest.Stub{Holds: true, Swap: func(mine *servingtest.Request, others []*servingtest.Request) *servingtest.Request {
			for _, o := range others {
				if late(o) && !late(mine) {
					return o
				}
			}
			return mine
		}}, "arriving", report.Fail, []string{"concurrency"}, "as ids, arriving: FAIL", "who arrives gets what another is being answered"},
		{&servingtest.Stub{Holds: true, Joined: func(rest []string) []string { return rest[len(rest)-min(len(rest), 2):] }}, "arriving", report.Fail,
			[]string{"concurrency"}, "the pieces of the stream come to", "who is being answered loses what is left"},
		{&servingtest.Stub{Swap: func(mine *servingtest.Request, others []*servingtest.Request) *servingtest.Request {
			if len(others) <= serving.DefaultParallel+1 {
				return mine
			}
			return servingtest.Neighbour(mine, others)
		}}, "queued", report.Fail, []string{"concurrency"}, "as ids, queued: FAIL", "another's slot"},
		{&servingtest.Stub{Answer: func(w http.ResponseWriter, _ *servingtest.Request, _, busy int) bool {
			if busy > serving.DefaultParallel+1 {
				http.Error(w, "no slot", http.StatusTooManyRequests)
			}
			return busy > serving.DefaultParallel+1
		}, Swap: func(mine *servingtest.Request, _ []*servingtest.Request) *servingtest.Request { return mine }}, "queued", report.Pass, nil,
			"429 Too Many Requests: no slot", "it refuses what it has no slot for"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
			list, said := asked(out, c.way)
			require.Equal(t, c.verdict, out.Verdict, said)
			assert.NotEmpty(t, list)
			assert.Equal(t, c.causes, causes(out))
			assert.Contains(t, said, c.says)
			if c.verdict == report.Fail {
				assert.Equal(t, c.way, out.First.Way)
			}
		})
	}
}

// Texts end at a stop, and before it.
func TestStops(t *testing.T) {
	stops := func(change func(text, stop string) (string, string)) *servingtest.Stub {
		return &servingtest.Stub{Stops: change}
	}
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	before := func(text, stop string) string { return text[:strings.Index(text, stop)] }
	for _, c := range []struct {
		stub    *servingtest.Stub
		model   serving.Model
		verdict report.Verdict
		first   string // the way that is wrong
		says    string
		reason  string
	}{
		{&servingtest.Stub{}, known, report.Pass, "", "", "right"},
		{&servingtest.Stub{NoIDs: true, NoLogProbs: true}, serving.Model{}, report.Pass, "", "", "no vocabulary: a character is a token"},
		{stops(func(text, stop string) (string, string) { return before(text, stop) + stop, "stop" }), known, report.Pass, "", "has the stop at its end", "the stop is written"},
		{stops(func(text, stop string) (string, string) { return text, "length" }), known, report.Fail, "stop", "is ignored", "ignored"},
		{stops(func(text, stop string) (string, string) { return before(text, stop), "length" }), known, report.Fail, "stop", `says by "length"`, "another reason"},
		{stops(func(text, stop string) (string, string) { return before(text, stop)[1:], "stop" }), known, report.Fail, "stop", "the text is", "a character is lost"},
		{stops(func(text, stop string) (string, string) {
			if strings.Contains(" "+text+" ", " "+stop+" ") {
				return before(text, stop), "stop"
			}
			return text, "length"
		}), known, report.Fail, "stop across tokens", "is ignored", "seen only where it is a whole token"},
		{&servingtest.Stub{Pieces: func(events []string) []string {
			if !strings.Contains(events[len(events)-2], `"stop"`) {
				return events
			}
			return append([]string{`{"choices":[{"index":0,"text":"t9 ","delta":{"content":"t9 "}}]}`}, events...)
		}}, known, report.Fail, "stop as a stream", "the text is", "in streams alone"},
		{&servingtest.Stub{Refuses: func(body map[string]any) string {
			if body["stop"] != nil {
				return "stop is not known"
			}
			return ""
		}}, known, report.Pass, "", "stop is not known", "refused"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: c.model})
			list, said := asked(out, "stop")
			require.Equal(t, c.verdict, out.Verdict, said)
			assert.Len(t, list, 6, "three on each path")
			assert.Contains(t, said, c.says)
			if c.verdict == report.Fail {
				assert.Equal(t, []string{"stop"}, causes(out))
				assert.Equal(t, c.first, out.First.Way)
			}
		})
	}
}

// Settings that change logits make other tokens come, those of the request alone.
func TestSettings(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	set := func(change func(q *servingtest.Request)) *servingtest.Stub {
		return &servingtest.Stub{Set: func(q *servingtest.Request, _ []*servingtest.Request) { change(q) }}
	}
	without := func(q *servingtest.Request) { q.Bias, q.Often, q.Present, q.Again = nil, 0, 0, 0 }
	for _, c := range []struct {
		stub    *servingtest.Stub
		model   serving.Model
		verdict report.Verdict
		cause   string
		first   string // the way that is wrong
		says    string
		reason  string
	}{
		{&servingtest.Stub{}, known, report.Pass, "", "", "beside settings", "right"},
		{&servingtest.Stub{NoIDs: true}, known, report.Pass, "", "", "beside settings", "by texts"},
		{&servingtest.Stub{NoIDs: true}, serving.Model{}, report.Pass, "", "", "no token ids", "nothing tells the tokens"},
		{set(without), known, report.Pass, "", "", "logit_bias is taken, and the answer is the one without it", "knows none"},
		{&servingtest.Stub{Refuses: func(body map[string]any) string {
			if body["logit_bias"] != nil {
				return "logit_bias is not known"
			}
			return ""
		}}, known, report.Pass, "", "", "logit_bias is not known", "refuses one"},
		{set(func(q *servingtest.Request) {
			other := map[int]float64{}
			for id, x := range q.Bias {
				other[id+1] = x
			}
			q.Bias = other
		}), known, report.Fail, "setting", "logit_bias 100", "token 0 is", "of another token"},
		{set(func(q *servingtest.Request) {
			for id, x := range q.Bias {
				q.Bias[id] = max(x, 0)
			}
			q.Often = -q.Often
		}), known, report.Fail, "setting", "frequency_penalty", "is", "the other sign"},
		{set(func(q *servingtest.Request) { q.Present *= 20 }), known, report.Fail, "setting", "presence_penalty", "is", "too strong"},
		{&servingtest.Stub{Set: func(q *servingtest.Request, others []*servingtest.Request) {
			for _, o := range others {
				if o.Bias != nil {
					q.Bias = o.Bias
				}
			}
		}}, known, report.Fail, "concurrency", "beside", "is", "those of a neighbour"},
		{&servingtest.Stub{Set: func(q *servingtest.Request, others []*servingtest.Request) {
			if len(others) > 1 {
				without(q)
			}
		}}, known, report.Fail, "concurrency", "beside others", "is", "lost in a crowd"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(24), serving.Options{Model: c.model})
			var lines []string
			for _, r := range out.Requests {
				lines = append(lines, r.String())
			}
			said := strings.Join(append(lines, out.Notes...), "\n")
			require.Equal(t, c.verdict, out.Verdict, said)
			assert.Contains(t, said, c.says)
			for _, key := range []string{"logit_bias 100", "logit_bias -100", "frequency_penalty", "presence_penalty", "repetition_penalty"} {
				assert.Contains(t, said, ", "+key, "each is asked")
			}
			if c.verdict == report.Fail {
				assert.Equal(t, []string{c.cause}, causes(out))
				assert.Contains(t, out.First.Way, c.first)
			}
		})
	}
}

// A text is asked from its middle as ids, where no case is written so, too.
func TestFromTheMiddle(t *testing.T) {
	known := serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}
	text := servingtest.Cases(tokensOfCases)[2:]
	for _, c := range []struct {
		stub    *servingtest.Stub
		verdict report.Verdict
		says    string
		reason  string
	}{
		{&servingtest.Stub{}, report.Pass, "words as ids, prefix from token 3: 3 of 3", "right"},
		{&servingtest.Stub{Prompt: func(as string, ids []int) []int {
			if as == serving.AsIDs {
				return ids[:len(ids)-1]
			}
			return ids
		}}, report.Fail, "words as ids, prefix from token 3: FAIL", "the last token of a prefix is lost"},
		{&servingtest.Stub{Refuses: func(body map[string]any) string {
			if _, is := body["prompt"].([]any); is {
				return "want a text"
			}
			return ""
		}}, report.Pass, "not judged: case words as ids, prefix from token 3: /v1/completions: 400 Bad Request: want a text", "it knows no ids"},
	} {
		out := judge(t, c.stub, text, serving.Options{Model: known})
		list, said := asked(out, serving.Prefix)
		assert.Equal(t, c.verdict, out.Verdict, "%s: %s", c.reason, said)
		assert.NotEmpty(t, list, c.reason)
		assert.Contains(t, said, c.says, c.reason)
	}
}

// Characters that are several tokens come whole, and what is there of one spoils nothing.
func TestBrokenCharacters(t *testing.T) {
	refs := servingtest.Cases(tokensOfCases)[:1]
	ids := refs[0].Tokens
	words := map[string]int{}
	for id := range servingtest.Vocabulary {
		words[fmt.Sprintf("w%d", id)] = id
	}
	for k, part := range []string{"<0xE2>", "<0x82>", "<0xAC>"} { // €
		delete(words, fmt.Sprintf("w%d", ids[k+1]))
		words[part] = ids[k+1]
	}
	data, err := json.Marshal(map[string]any{"model": map[string]any{"vocab": words},
		"decoder": map[string]any{"type": "Sequence", "decoders": []any{map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"}}}})
	require.NoError(t, err)
	v, err := vocab.Decode(data)
	require.NoError(t, err)
	whole := func(ids []int) string {
		text, _ := v.Text(ids, true)
		return text
	}
	refs[0].Text = whole(ids)
	each := func(ids []int) (text string) {
		for _, id := range ids {
			text += whole([]int{id})
		}
		return text
	}
	for _, c := range []struct {
		stub    *servingtest.Stub
		model   serving.Model
		verdict report.Verdict
		cause   string
		way     string
		reason  string
	}{
		{&servingtest.Stub{Written: whole}, serving.Model{Vocab: v}, report.Pass, "", "", "right"},
		{&servingtest.Stub{Written: whole}, serving.Model{}, report.Pass, "", "", "by the reference's own text"},
		{&servingtest.Stub{Written: func(ids []int) string { return strings.TrimRight(whole(ids), "\uFFFD") }}, serving.Model{Vocab: v}, report.Pass, "", "", "it holds back what is no character yet"},
		{&servingtest.Stub{Written: each}, serving.Model{Vocab: v}, report.Fail, "detokenise", serving.Alone, "tokens decoded one by one"},
		{&servingtest.Stub{Written: each}, serving.Model{}, report.Fail, "detokenise", serving.Alone, "tokens decoded one by one, by the reference's own text"},
		{&servingtest.Stub{Written: func(ids []int) string {
			if text := whole(ids); strings.HasSuffix(text, "\uFFFD") {
				return ""
			}
			return whole(ids)
		}}, serving.Model{Vocab: v}, report.Fail, "detokenise", "broken character", "nothing is written of a text that breaks off"},
		{&servingtest.Stub{Written: whole, Pieces: func(events []string) []string {
			for i := range events {
				events[i] = strings.ReplaceAll(events[i], "€", "\uFFFD\uFFFD\uFFFD")
			}
			return events
		}}, serving.Model{Vocab: v}, report.Fail, "stream", serving.Stream, "streams that are decoded piece by piece"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, refs, serving.Options{Model: c.model})
			list, said := asked(out, "broken character")
			require.Equal(t, c.verdict, out.Verdict, said)
			if c.verdict == report.Fail {
				assert.Equal(t, []string{c.cause}, causes(out))
				assert.Equal(t, c.way, out.First.Way)
			} else if c.model.Vocab != nil {
				assert.Len(t, list, 2, "as a whole and as a stream")
			}
		})
	}
}

// A conversation of several turns, with tools, comes to the model as the reference's template has it.
func TestConversations(t *testing.T) {
	turns := []dump.Message{{Role: "system", Content: "t20 t21"}, {Role: "user", Content: "t22 t23"}, {Role: "assistant", Content: "t24"},
		{Role: "user", Content: "t25 t26"}}
	tools := []map[string]any{{"type": "function", "function": map[string]any{"name": "look"}}}
	ref := servingtest.Reference("talk", serving.Ask{As: serving.AsChat, Messages: turns, Tools: tools}, servingtest.Chat(turns, tools...), tokensOfCases)
	last := func(m []dump.Message) []dump.Message { return append(m[:1:1], m[len(m)-1]) }
	moved := func(m []dump.Message) []dump.Message { return append(m[1:len(m):len(m)], m[0]) }
	ref.Mistakes = []dump.Mistake{{Cause: "text/template", Text: "turns before the last message are left out", TokenIDs: servingtest.Chat(last(turns), tools...)},
		{Cause: "text/template", Text: "the system message is put at the end", TokenIDs: servingtest.Chat(moved(turns), tools...)}, {Cause: "text/template", Text: "the tools are left out", TokenIDs: servingtest.Chat(turns)}}
	render := func(change func(m []dump.Message) []dump.Message) func(*servingtest.Request) []int {
		return func(q *servingtest.Request) []int { return servingtest.Chat(change(q.Messages), q.Tools...) }
	}
	for _, c := range []struct {
		render func(q *servingtest.Request) []int
		says   string
		reason string
	}{
		{nil, "", "right"},
		{render(last), "turns before the last message are left out", "earlier turns are dropped"},
		{render(moved), "the system message is put at the end", "the system message in another place"},
		{func(q *servingtest.Request) []int { return servingtest.Chat(q.Messages) }, "the tools are left out", "tools are dropped"},
		{render(func(m []dump.Message) []dump.Message { return m[1:] }), "", "none of the usual mistakes"},
	} {
		for mask := range 4 {
			stub := &servingtest.Stub{Render: c.render, NoIDs: mask&1 > 0, NoUsage: mask&2 > 0}
			out := judge(t, stub, []*serving.Reference{ref}, serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
			if c.render == nil {
				assert.Equal(t, report.Pass, out.Verdict, c.reason)
				continue
			}
			assert.Equal(t, report.Fail, out.Verdict, c.reason)
			require.Len(t, out.Causes, 1, c.reason)
			assert.Equal(t, "serving/template", out.Causes[0].ID, c.reason)
			assert.Contains(t, out.Causes[0].Text, c.says, c.reason)
		}
	}
}

// Images come in the order of the messages, and calls of tools with their arguments as texts.
func TestImagesAndCalls(t *testing.T) {
	first, second := picture.DataURI(picture.Picture{Width: 8, Height: 8, Seed: 1}.PNG()), picture.DataURI(picture.Picture{Width: 8, Height: 8, Seed: 2}.PNG())
	require.NotEqual(t, servingtest.Image(first), servingtest.Image(second))
	call := []map[string]any{{"id": "a", "type": "function", "function": map[string]any{"name": "look", "arguments": map[string]any{"city": "Rome"}}}}
	other := []map[string]any{{"id": "a", "type": "function", "function": map[string]any{"name": "look", "arguments": map[string]any{}}}}
	ask := func(content string, calls []map[string]any, images ...string) serving.Ask {
		return serving.Ask{As: serving.AsChat, Images: images, Messages: []dump.Message{{Role: "system", Content: "t20"}, {Role: "user", Content: content},
			{Role: "assistant", ToolCalls: calls}, {Role: "tool", Content: "t23", ToolCallID: "a", Name: "look"}}}
	}
	shown := func(calls []map[string]any, words string) []int { return servingtest.Chat(ask(words, calls).Messages) }
	a, b := servingtest.Image(first), servingtest.Image(second)
	for _, c := range []struct {
		ask    serving.Ask
		seen   []int
		right  bool
		reason string
	}{
		{ask("t21 "+picture.Mark+" t22 "+picture.Mark, call, first, second), shown(call, "t21 "+a+" t22 "+b), true, "where the text says"},
		{ask("t21", call, first, second), shown(call, a+" "+b+" t21"), true, "before the text of the user"},
		{ask("t21 "+picture.Mark+" t22 "+picture.Mark, call, first, second), shown(call, "t21 "+b+" t22 "+a), false, "the second image for the first"},
		{ask("t21 "+picture.Mark+" t22 "+picture.Mark, call, first, second), shown(call, "t21 "+a+" t22 "+a), false, "the first image twice"},
		{ask("t21 "+picture.Mark, call, first), shown(other, "t21 "+a), false, "a call without its arguments"},
	} {
		ref := servingtest.Reference("seen", c.ask, c.seen, tokensOfCases)
		ref.Prompt = nil
		out := judge(t, &servingtest.Stub{}, []*serving.Reference{ref}, serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
		want := report.Fail
		if c.right {
			want = report.Pass
		}
		assert.Equal(t, want, out.Verdict, "%s: %v", c.reason, out.Notes)
	}
}

// An answer that calls a tool has it taken out of its text: its tokens are judged.
func TestToolCalls(t *testing.T) {
	calls := func(tokens bool) *servingtest.Stub {
		return &servingtest.Stub{NoIDs: !tokens, Change: func(q *servingtest.Request, answer map[string]any, _, _ int) {
			if q.As == serving.AsChat && q.Max == tokensOfCases {
				choice(answer)["finish_reason"] = "tool_calls"
				choice(answer)["message"] = map[string]any{"content": nil, "tool_calls": []any{}}
			}
		}}
	}
	refs := servingtest.Cases(tokensOfCases)[3:]
	out := judge(t, calls(true), refs, serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
	assert.Equal(t, report.Pass, out.Verdict, out.Error)
	out = judge(t, calls(false), refs, serving.Options{})
	assert.Equal(t, report.Error, out.Verdict)
	assert.Contains(t, out.Error, "does not say its tokens")
}

// What a draft model proposes may not change an answer; how much of it is accepted is said.
func TestDrafts(t *testing.T) {
	drafts := func(drafted, accepted int, llama bool) *servingtest.Stub {
		return &servingtest.Stub{Change: func(_ *servingtest.Request, answer map[string]any, _, _ int) {
			if answer["timings"] = map[string]any{"draft_n": drafted, "draft_n_accepted": accepted}; !llama {
				delete(answer, "timings")
				answer["usage"].(map[string]any)["completion_tokens_details"] = map[string]any{"accepted_prediction_tokens": accepted,
					"rejected_prediction_tokens": drafted - accepted}
			}
		}}
	}
	for _, c := range []struct {
		stub   *servingtest.Stub
		says   string
		reason string
	}{
		{drafts(10, 6, true), "tokens that it proposed were accepted", "llama.cpp"},
		{drafts(10, 6, false), "tokens that it proposed were accepted", "by usage"},
		{drafts(10, 0, true), "suspect: no token of the draft model was accepted", "none is accepted"},
	} {
		out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{})
		assert.Equal(t, report.Pass, out.Verdict, c.reason)
		assert.Contains(t, strings.Join(out.Notes, "\n"), c.says, c.reason)
	}
	out := judge(t, &servingtest.Stub{Choose: func(row []float64, k int, _ *rand.Rand) int { return servingtest.Ranked(row)[k%2] }},
		servingtest.Cases(tokensOfCases), serving.Options{})
	assert.Equal(t, report.Fail, out.Verdict, "a token is accepted that is not the best")
}

// A page of metrics tells how much of a draft model's proposals is accepted, and whether that is as before.
func TestDraftMetrics(t *testing.T) {
	vllm := func(proposed, accepted int) string {
		return fmt.Sprintf("# TYPE vllm:spec_decode_num_draft_tokens_total counter\nvllm:spec_decode_num_drafts_total{engine=\"0\"} 7.0\n"+
			"vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"a } b\"} %d.0\nvllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} %d.0\n"+
			"vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 9.0\nvllm:spec_decode_num_draft_tokens_created{engine=\"0\"} 1.7e+09\n",
			proposed+1000, accepted+1000) // what was before does not count
	}
	modular := func(proposed, accepted int) string {
		return fmt.Sprintf("maxserve_spec_decode_acceptance_rate_per_position_percent_bucket{le=\"0\"} 3\n"+
			"maxserve_spec_decode_acceptance_rate_per_position_percent_count{position=\"0\"} %d\n"+
			"maxserve_spec_decode_acceptance_rate_per_position_percent_sum{position=\"0\"} %d\n", proposed, 100*accepted)
	}
	llama := func(proposed, accepted int) string {
		return fmt.Sprintf("llamacpp:draft_tokens_total %d\nllamacpp:draft_tokens_accepted_total %d\n", proposed, accepted)
	}
	sglang := func(_, accepted int) string {
		return "sglang:spec_num_draft_tokens 4\nsglang:spec_accept_rate{tp=\"0\"} 0.6\n"
	}
	always := func(n int) func(*servingtest.Request, int, int) int {
		return func(*servingtest.Request, int, int) int { return n }
	}
	for _, c := range []struct {
		page    func(proposed, accepted int) string
		accepts func(q *servingtest.Request, n, busy int) int
		says    string // empty: nothing
		suspect string // empty: nothing is
		reason  string
	}{
		{vllm, always(12), "(60 %) of the tokens that it proposed", "", "vLLM"},
		{modular, always(12), "(60 %) of the tokens that it proposed", "", "MAX"},
		{llama, always(12), "(60 %) of the tokens that it proposed", "", "llama.cpp"},
		{sglang, always(12), "60 % of what it proposed last", "", "SGLang"},
		{func(int, int) string { return "<html>{" }, always(12), "", "", "another page"},
		{vllm, always(0), "0 of ", "no token of the draft model was accepted", "none is accepted"},
		{vllm, func(q *servingtest.Request, n, _ int) int { return max(14-n, 4) }, "", "asked again ", "less and less"},
		{vllm, func(_ *servingtest.Request, _, busy int) int {
			if busy > 1 {
				return 3
			}
			return 12
		}, "", "asked again, at once", "less in a crowd"},
		{vllm, func(q *servingtest.Request, _, _ int) int {
			if q.Heat > 0 {
				return 20
			}
			return 12
		}, "", "nothing is rejected", "all that is drawn is accepted"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			stub := &servingtest.Stub{Accepts: c.accepts, Page: c.page, Set: func(*servingtest.Request, []*servingtest.Request) {}}
			out := judge(t, stub, servingtest.Cases(tokensOfCases), serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}, Draws: 40})
			said := strings.Join(out.Notes, "\n")
			assert.Equal(t, report.Pass, out.Verdict, "%s%v", said, out.First)
			assert.Contains(t, said, c.says)
			if c.suspect == "" {
				assert.NotContains(t, said, "suspect")
			} else {
				assert.Contains(t, said, c.suspect)
			}
			assert.Equal(t, c.says == "" && c.suspect == "", !strings.Contains(said, "a draft model"), said)
			list, _ := asked(out, "again")
			assert.Equal(t, strings.Contains(said, "of the tokens that it proposed"), len(list) > 0, "where a draft model speaks, texts are asked again")
		})
	}
}
