package serving_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// trial is a server, and what comes of asking it in further ways than the cases do.
type trial struct {
	reason string
	stub   *stub
	model  *serving.Model // what is known of it; nil: all of the stub's
	draws  int
	first  string // is in the way that is wrong first; "": none is
	cause  string
	says   string
}

// try asks each server, and returns what was judged and said of it to check.
func try(t *testing.T, refs []*serving.Reference, trials []trial, check func(t *testing.T, c trial, out *report.Serving, said string)) {
	for _, c := range trials {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			model := known(t)
			if c.model != nil {
				model = *c.model
			}
			opt := serving.Options{Model: model, Draws: c.draws}
			if c.draws > 0 {
				opt = opt.Over(direct{c.stub.Handler()})
			}
			out := judge(t, c.stub, refs, opt)
			lines := append(out.Notes, out.Error)
			for _, r := range out.Requests {
				lines = append(lines, r.String())
			}
			for _, cause := range out.Causes {
				lines = append(lines, cause.Text)
			}
			said := strings.Join(lines, "\n")
			if c.cause == "" {
				require.Equal(t, report.Pass, out.Verdict, said)
				assert.NotContains(t, said, "suspect")
			} else {
				require.Equal(t, report.Fail, out.Verdict, said)
				assert.Equal(t, []string{c.cause}, causes(out))
				assert.Contains(t, out.First.Way, c.first)
			}
			assert.Contains(t, said, c.says)
			check(t, c, out, said)
		})
	}
}

// asked are the requests of ways that begin so.
func asked(out *report.Serving, way string) (list []report.ServedRequest) {
	return slices.DeleteFunc(slices.Clone(out.Requests), func(r report.ServedRequest) bool { return !strings.HasPrefix(r.Way, way) })
}

// refusing is a server that does not know some keys.
func refusing(keys ...string) *stub {
	return &stub{Refuses: func(body map[string]any) string {
		for _, key := range keys {
			if _, is := body[key]; is {
				return key + " is not known"
			}
		}
		return ""
	}}
}

// Requests that arrive while another is answered, and more than there are slots.
func TestArriving(t *testing.T) {
	swapped := func(q *request, others []*request) {
		for _, o := range others {
			if o.Stream && !q.Stream {
				*q = *o
			}
		}
	}
	crowd := func(q *request, others []*request) {
		if len(others) > serving.DefaultParallel {
			servingtest.Neighbour(q, others)
		}
	}
	full := &stub{Answer: func(w http.ResponseWriter, _ *request, _, busy int) bool {
		if busy > serving.DefaultParallel+1 {
			http.Error(w, "no slot", http.StatusTooManyRequests)
		}
		return busy > serving.DefaultParallel+1
	}, Among: func(*request, []*request) {}}
	try(t, servingtest.Cases(tokensOfCases), []trial{
		{reason: "right", stub: &stub{Holds: true}},
		{reason: "by text and log-probabilities", stub: &stub{Holds: true, NoIDs: true}},
		{reason: "who arrives gets what another is being answered", stub: &stub{Holds: true, Among: swapped}, first: "arriving", cause: "concurrency",
			says: "as ids, arriving: FAIL"},
		{reason: "who is being answered loses what is left", stub: &stub{Holds: true, Joined: func(rest []string) []string { return rest[len(rest)-min(len(rest), 2):] }},
			first: "arriving", cause: "concurrency", says: "the pieces of the stream come to"},
		{reason: "another's slot", stub: &stub{Among: crowd}, first: "queued", cause: "concurrency", says: "as ids, queued: FAIL"},
		{reason: "it refuses what it has no slot for", stub: full, says: "429 Too Many Requests: no slot"},
	}, func(t *testing.T, c trial, out *report.Serving, _ string) {
		assert.NotEmpty(t, asked(out, "arriving"))
		assert.Equal(t, c.first != "arriving", len(asked(out, "queued")) > 0)
	})
}

// The pieces of a stream come to the text of the answer.
func TestStreamed(t *testing.T) {
	pieces := func(change func(events []string) []string) *stub { return &stub{Pieces: change} }
	const wrong = "the pieces of the stream come to"
	try(t, servingtest.Cases(tokensOfCases), []trial{
		{reason: "events without text", stub: pieces(func(e []string) []string { return slices.Insert(e, 0, "", ": a comment", `{"choices":[]}`) })},
		{reason: "no [DONE]", stub: pieces(func(e []string) []string { return e[:len(e)-1] })},
		{reason: "no finish_reason", stub: pieces(func(e []string) []string { return slices.Delete(e, len(e)-2, len(e)-1) })},
		{reason: "a piece is lost", stub: pieces(func(e []string) []string { return slices.Delete(e, 1, 2) }), cause: "stream", says: wrong},
		{reason: "a piece comes twice", stub: pieces(func(e []string) []string { return slices.Insert(e, 1, e[0]) }), cause: "stream", says: wrong},
		{reason: "another order", stub: pieces(func(e []string) []string { e[0], e[1] = e[1], e[0]; return e }), cause: "stream", says: wrong},
		{reason: "another reason", stub: pieces(func(e []string) []string {
			e[len(e)-2] = strings.Replace(e[len(e)-2], `"length"`, `"stop"`, 1)
			return e
		}), cause: "stream", says: "the stream says that it ended by"},
		{reason: "it has no end", stub: pieces(func(e []string) []string { return e[:len(e)-2] }), cause: "stream", says: "breaks off"},
		{reason: "an error in it", stub: pieces(func([]string) []string { return []string{`{"error":{"message":"no streams here"}}`} }), says: "no streams here"},
		{reason: "no streams", stub: &stub{Whole: true}, says: "answered without one"},
		{reason: "refused", stub: refusing("stream"), says: "stream is not known"},
	}, func(t *testing.T, c trial, out *report.Serving, _ string) {
		assert.Len(t, asked(out, serving.Stream), len(servingtest.Cases(tokensOfCases)), "each case")
		if c.cause != "" {
			assert.Equal(t, serving.Stream, out.First.Way)
		}
	})
}

// Texts end at a stop, and before it.
func TestStops(t *testing.T) {
	stops := func(change func(text, stop string) (string, string)) *stub { return &stub{Stops: change} }
	before := func(text, stop string) string { return text[:strings.Index(text, stop)] }
	try(t, servingtest.Cases(tokensOfCases), []trial{
		{reason: "no vocabulary: a character is a token", stub: &stub{NoIDs: true, NoLogProbs: true}, model: &serving.Model{}},
		{reason: "the stop is written", stub: stops(func(text, stop string) (string, string) { return before(text, stop) + stop, "stop" }), says: "has the stop at its end"},
		{reason: "ignored", stub: stops(func(text, stop string) (string, string) { return text, "length" }), first: "stop", cause: "stop", says: "is ignored"},
		{reason: "another reason", stub: stops(func(text, stop string) (string, string) { return before(text, stop), "length" }), first: "stop", cause: "stop",
			says: `says by "length"`},
		{reason: "a character is lost", stub: stops(func(text, stop string) (string, string) { return before(text, stop)[1:], "stop" }), first: "stop", cause: "stop",
			says: "the text is"},
		{reason: "seen only where it is a whole token", stub: stops(func(text, stop string) (string, string) {
			if strings.Contains(" "+text+" ", " "+stop+" ") {
				return before(text, stop), "stop"
			}
			return text, "length"
		}), first: "stop across tokens", cause: "stop", says: "is ignored"},
		{reason: "in streams alone", stub: &stub{Pieces: func(events []string) []string {
			if !strings.Contains(events[len(events)-2], `"stop"`) {
				return events
			}
			return append([]string{`{"choices":[{"index":0,"text":"t9 ","delta":{"content":"t9 "}}]}`}, events...)
		}}, first: "stop as a stream", cause: "stop", says: "the text is"},
		{reason: "refused", stub: refusing("stop"), says: "stop is not known"},
	}, func(t *testing.T, _ trial, out *report.Serving, _ string) {
		assert.Len(t, asked(out, "stop"), 6, "three on each path")
	})
}

// misplaced gives the bias of a token to the next one.
func misplaced(q *request) {
	other := map[int]float64{}
	for id, x := range q.Bias {
		other[id+1] = x
	}
	q.Bias = other
}

// Settings that change logits make other tokens come, those of the request alone.
func TestSettings(t *testing.T) {
	set := func(change func(q *request)) *stub { return &stub{Asked: change} }
	without := func(q *request) { q.Bias, q.Often, q.Present, q.Again = nil, 0, 0, 0 }
	try(t, servingtest.Cases(24), []trial{
		{reason: "by texts", stub: &stub{NoIDs: true}, says: "beside settings"},
		{reason: "nothing tells the tokens", stub: &stub{NoIDs: true}, model: &serving.Model{}, says: "no token ids"},
		{reason: "knows none", stub: set(without), says: "logit_bias is taken, and the answer is the one without it"},
		{reason: "refuses one", stub: refusing("logit_bias"), says: "logit_bias is not known"},
		{reason: "of another token", stub: set(misplaced), first: "logit_bias 100", cause: "setting", says: "token 0 is"},
		{reason: "the other sign", stub: set(func(q *request) {
			for id, x := range q.Bias {
				q.Bias[id] = max(x, 0)
			}
			q.Often = -q.Often
		}), first: "frequency_penalty", cause: "setting"},
		{reason: "too strong", stub: set(func(q *request) { q.Present *= 20 }), first: "presence_penalty", cause: "setting"},
		{reason: "those of a neighbour", stub: &stub{Among: func(q *request, others []*request) {
			for _, o := range others {
				if o.Bias != nil {
					q.Bias = o.Bias
				}
			}
		}}, first: "beside", cause: "concurrency"},
		{reason: "lost in a crowd", stub: &stub{Among: func(q *request, others []*request) {
			if len(others) > 0 {
				without(q)
			}
		}}, first: "beside others", cause: "concurrency"},
	}, func(t *testing.T, _ trial, _ *report.Serving, said string) {
		for _, key := range []string{"logit_bias 100", "logit_bias -100", "frequency_penalty", "presence_penalty", "repetition_penalty"} {
			assert.Contains(t, said, ", "+key, "each is asked")
		}
	})
}

// A text is asked from its middle as ids, where no case is written so, too.
func TestFromTheMiddle(t *testing.T) {
	text := servingtest.Cases(tokensOfCases)[2:]
	lost := func(q *request) {
		if q.As == serving.AsIDs {
			q.Tokens = q.Tokens[:len(q.Tokens)-1]
		}
	}
	unknown := func(body map[string]any) string {
		if _, is := body["prompt"].([]any); is {
			return "want a text"
		}
		return ""
	}
	for _, c := range []struct {
		stub    *stub
		verdict report.Verdict
		says    string
		reason  string
	}{
		{&stub{}, report.Pass, "words as ids, prefix from token 3: 3 of 3", "right"},
		{&stub{Asked: lost}, report.Fail, "words as ids, prefix from token 3: FAIL", "the last token of a prefix is lost"},
		{&stub{Refuses: unknown}, report.Pass, "words as ids, prefix from token 3: IGNORED, /v1/completions: 400 Bad Request: want a text", "it knows no ids"},
	} {
		out := judge(t, c.stub, text, serving.Options{Model: known(t)})
		assert.Equal(t, c.verdict, out.Verdict, c.reason)
		list := asked(out, serving.Prefix)
		require.NotEmpty(t, list, c.reason)
		assert.Contains(t, list[0].String(), c.says, c.reason)
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
	v, err := serving.DecodeVocab(data)
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
	mine := &serving.Model{Vocab: v}
	silent := func(ids []int) string {
		if text := whole(ids); !strings.HasSuffix(text, "\uFFFD") {
			return text
		}
		return ""
	}
	pieceByPiece := writing(whole)
	pieceByPiece.Pieces = func(events []string) []string {
		for i := range events {
			events[i] = strings.ReplaceAll(events[i], "€", "\uFFFD\uFFFD\uFFFD")
		}
		return events
	}
	try(t, refs, []trial{
		{reason: "right", stub: writing(whole), model: mine},
		{reason: "by the reference's own text", stub: writing(whole), model: &serving.Model{}},
		{reason: "it holds back what is no character yet", stub: writing(func(ids []int) string { return strings.TrimRight(whole(ids), "\uFFFD") }), model: mine},
		{reason: "tokens decoded one by one", stub: writing(each), model: mine, first: serving.Alone, cause: "detokenise"},
		{reason: "tokens decoded one by one, by the reference's own text", stub: writing(each), model: &serving.Model{}, first: serving.Alone, cause: "detokenise"},
		{reason: "nothing is written of a text that breaks off", stub: writing(silent), model: mine, first: "broken character", cause: "detokenise"},
		{reason: "streams that are decoded piece by piece", stub: pieceByPiece, model: mine, first: serving.Stream, cause: "stream"},
	}, func(t *testing.T, c trial, out *report.Serving, _ string) {
		if c.cause == "" && c.model.Vocab != nil {
			assert.Len(t, asked(out, "broken character"), 2, "as a whole and as a stream")
		}
	})
}

// A conversation of several turns, with tools, comes to the model as the reference's template has it, and a text as its
// tokenizer reads it. What the reference makes of it by a mistake proves that mistake of a server, whether it tells its ids
// or not.
func TestMistakesOfAPrompt(t *testing.T) {
	text := servingtest.Cases(tokensOfCases)[2]
	stripped, split := slices.Concat(text.Prompt[:1], text.Prompt[2:]), slices.Concat(text.Prompt[:1], []int{40, 41, 42}, text.Prompt[2:])
	text.Mistakes = []dump.Mistake{{Cause: "text/whitespace", Text: "white space before the text is stripped", TokenIDs: stripped},
		{Cause: "text/special", Text: "special tokens are read as plain text", TokenIDs: split},
		{Cause: "text/bos-missing", Text: "no token begins the text", TokenIDs: text.Prompt[1:]}}
	reading := func(ids []int) func(*request) { return func(q *request) { q.Tokens = ids } }
	turns := []dump.Message{{Role: "system", Content: "t20 t21"}, {Role: "user", Content: "t22 t23"}, {Role: "assistant", Content: "t24"},
		{Role: "user", Content: "t25 t26"}}
	tools := []map[string]any{{"type": "function", "function": map[string]any{"name": "look"}}}
	ref := servingtest.Reference("talk", serving.Ask{As: serving.AsChat, Messages: turns, Tools: tools}, servingtest.Chat(turns, tools...), tokensOfCases)
	last := func(m []dump.Message) []dump.Message { return append(m[:1:1], m[len(m)-1]) }
	moved := func(m []dump.Message) []dump.Message { return append(m[1:len(m):len(m)], m[0]) }
	ref.Mistakes = []dump.Mistake{{Cause: "text/template", Text: "turns before the last message are left out", TokenIDs: servingtest.Chat(last(turns), tools...)},
		{Cause: "text/template", Text: "the system message is put at the end", TokenIDs: servingtest.Chat(moved(turns), tools...)}, {Cause: "text/template", Text: "the tools are left out", TokenIDs: servingtest.Chat(turns)}}
	render := func(change func(m []dump.Message) []dump.Message) func(*request) {
		return func(q *request) { q.Tokens = servingtest.Chat(change(q.Messages), q.Tools...) }
	}
	const template = "serving/template"
	for _, c := range []struct {
		ref    *serving.Reference
		render func(q *request)
		cause  string // "": it is right
		says   string
		reason string
	}{
		{ref, func(*request) {}, "", "", "right"},
		{ref, render(last), template, "turns before the last message are left out", "earlier turns are dropped"},
		{ref, render(moved), template, "the system message is put at the end", "the system message in another place"},
		{ref, func(q *request) { q.Tokens = servingtest.Chat(q.Messages) }, template, "the tools are left out", "tools are dropped"},
		{ref, render(func(m []dump.Message) []dump.Message { return m[1:] }), template, "", "none of the usual mistakes"},
		{text, reading(stripped), "text/whitespace", "white space before the text is stripped", "a space is lost"},
		{text, reading(split), "text/special", "special tokens are read as plain text", "no special token"},
		{text, reading(text.Prompt[1:]), "serving/bos-missing", "no token begins the text", "no first token"},
	} {
		for mask := range 4 {
			s := &stub{NoIDs: mask&1 > 0, NoUsage: mask&2 > 0, Asked: func(q *request) {
				if q.As != serving.AsIDs {
					c.render(q)
				}
			}}
			out := judge(t, s, []*serving.Reference{c.ref}, serving.Options{Model: known(t)})
			assert.Equal(t, c.cause == "", out.Verdict == report.Pass, c.reason)
			if c.cause != "" {
				require.Len(t, out.Causes, 1, c.reason)
				assert.Equal(t, c.cause, out.Causes[0].ID, c.reason)
				assert.Contains(t, out.Causes[0].Text, c.says, c.reason)
				assert.True(t, c.ref == ref || out.Causes[0].Proven, c.reason)
			}
		}
	}
}

// Images come in the order of the messages, where their text says or before that of the user, and calls of tools with
// their arguments as texts.
func TestImagesAndCalls(t *testing.T) {
	call := []map[string]any{{"id": "a", "type": "function", "function": map[string]any{"name": "look", "arguments": map[string]any{"city": "Rome"}}}}
	const image = `{"image_url":{"url":"data:%s"},"type":"image_url"}`
	first, second, text := fmt.Sprintf(image, "first"), fmt.Sprintf(image, "second"), func(of string) string { return `{"text":"` + of + `","type":"text"}` }
	for _, c := range []struct {
		content string
		images  []string
		want    []string // the parts of the content
		reason  string
	}{
		{"t21 " + engine.ImageMark + " t22 " + engine.ImageMark, []string{"data:first", "data:second"}, []string{text("t21 "), first, text(" t22 "), second}, "where the text says"},
		{"t21", []string{"data:first", "data:second"}, []string{first, second, text("t21")}, "before the text of the user"},
		{"t21", nil, nil, "none"},
	} {
		ask := serving.Ask{As: serving.AsChat, Images: c.images, Messages: []dump.Message{{Role: "system", Content: "t20"}, {Role: "user", Content: c.content},
			{Role: "assistant", ToolCalls: call}, {Role: "tool", Content: "t23", ToolCallID: "a", Name: "look"}}}
		content := `"` + c.content + `"`
		if c.want != nil {
			content = "[" + strings.Join(c.want, ",") + "]"
		}
		judge(t, &stub{Refuses: func(body map[string]any) string {
			got, err := json.Marshal(body["messages"])
			require.NoError(t, err)
			assert.JSONEq(t, `[{"role":"system","content":"t20"},{"role":"user","content":`+content+`},{"role":"assistant","content":"","tool_calls":[{"id":"a",
				"type":"function","function":{"name":"look","arguments":"{\"city\":\"Rome\"}"}}]},{"role":"tool","content":"t23","tool_call_id":"a","name":"look"}]`,
				string(got), c.reason)
			return "seen"
		}}, []*serving.Reference{servingtest.Reference("seen", ask, servingtest.Chat(ask.Messages), 2)}, serving.Options{})
	}
}

// An answer that calls a tool has it taken out of its text: its tokens are judged.
func TestToolCalls(t *testing.T) {
	calls := func(tokens bool) *servingtest.Stub {
		return &stub{NoIDs: !tokens, Change: func(q *request, answer map[string]any, _, _ int) {
			if q.As == serving.AsChat && q.Max == tokensOfCases {
				choice(answer)["finish_reason"] = "tool_calls"
				choice(answer)["message"] = map[string]any{"content": nil, "tool_calls": []any{}}
			}
		}}
	}
	refs := servingtest.Cases(tokensOfCases)[3:]
	out := judge(t, calls(true), refs, serving.Options{Model: known(t)})
	assert.Equal(t, report.Pass, out.Verdict, out.Error)
	out = judge(t, calls(false), refs, serving.Options{})
	assert.Equal(t, report.Error, out.Verdict)
	assert.Contains(t, out.Error, "does not say its tokens")
}

// A page of metrics tells how much of a draft model's proposals is accepted, and whether that is as before.
func TestDraftMetrics(t *testing.T) {
	pages := map[string]string{
		"vLLM": `# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_drafts_total{engine="0"} 7.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="a } b"} $p.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} $a.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 9.0
vllm:spec_decode_num_draft_tokens_created{engine="0"} 1.7e+09`,
		"MAX": `maxserve_spec_decode_acceptance_rate_per_position_percent_bucket{le="0"} 3
maxserve_spec_decode_acceptance_rate_per_position_percent_count{position="0"} $p
maxserve_spec_decode_acceptance_rate_per_position_percent_sum{position="0"} $a00`,
		"llama.cpp": "llamacpp:draft_tokens_total $p\nllamacpp:draft_tokens_accepted_total $a",
		"SGLang":    "sglang:spec_num_draft_tokens 4\nsglang:spec_accept_rate{tp=\"0\"} 0.6",
		"another":   "<html>{",
	}
	always := func(n int) func(*request, int, int) int { return func(*request, int, int) int { return n } }
	const proposed = "(60 %) of the tokens that it proposed"
	for _, c := range []struct {
		page    string
		accepts func(q *request, n, busy int) int
		says    string // empty: nothing
		suspect string // empty: nothing is
		reason  string
	}{
		{"vLLM", always(12), proposed, "", "three of five"},
		{"MAX", always(12), proposed, "", "a histogram of rates"},
		{"llama.cpp", always(12), proposed, "", "other names"},
		{"SGLang", always(12), "60 % of what it proposed last", "", "the last moment alone"},
		{"another", always(12), "", "", "no metrics"},
		{"vLLM", always(0), "0 of ", "no token of the draft model was accepted", "none is accepted"},
		{"vLLM", func(q *request, n, _ int) int { return max(14-n, 4) }, "", "asked again ", "less and less"},
		{"vLLM", func(_ *request, _, busy int) int { return map[bool]int{true: 3, false: 12}[busy > 1] }, "", "asked again, at once", "less in a crowd"},
		{"vLLM", func(q *request, _, _ int) int { return map[bool]int{true: 20, false: 12}[q.Heat > 0] }, "", "nothing is rejected", "all that is drawn is accepted"},
	} {
		t.Run(c.page+", "+c.reason, func(t *testing.T) {
			t.Parallel()
			page := func(proposed, accepted int) string { // what was before does not count
				return strings.NewReplacer("$p", fmt.Sprint(1000+proposed), "$a", fmt.Sprint(1000+accepted)).Replace(pages[c.page])
			}
			s := &stub{Accepts: c.accepts, Page: page, Refuses: refusing("frequency_penalty", "presence_penalty", "repetition_penalty").Refuses}
			if c.reason == "less in a crowd" { // the others are waited for
				s.Among = func(*request, []*request) {}
			}
			out := judge(t, s, servingtest.Cases(tokensOfCases), serving.Options{Model: known(t), Draws: 10})
			said := strings.Join(out.Notes, "\n")
			assert.Equal(t, report.Pass, out.Verdict, "%s%v", said, out.First)
			assert.Contains(t, said, c.says)
			assert.Contains(t, said, c.suspect)
			assert.Equal(t, c.suspect != "", strings.Contains(said, "suspect"))
			assert.Equal(t, c.says == "" && c.suspect == "", !strings.Contains(said, "a draft model"), said)
			assert.Equal(t, strings.Contains(said, "of the tokens that it proposed"), len(asked(out, "again")) > 0, "where a draft model speaks, texts are asked again")
		})
	}
}

// An answer may tell what a draft model proposed, which may not change it.
func TestDrafts(t *testing.T) {
	for _, c := range []struct{ key, value, says, reason string }{
		{"timings", `{"draft_n": 10, "draft_n_accepted": 6}`, "tokens that it proposed were accepted", "llama.cpp"},
		{"usage", `{"completion_tokens_details": {"accepted_prediction_tokens": 6, "rejected_prediction_tokens": 4}}`, "tokens that it proposed were accepted", "by usage"},
		{"timings", `{"draft_n": 10}`, "suspect: no token of the draft model was accepted", "none is accepted"},
	} {
		s := &stub{Change: func(_ *request, answer map[string]any, _, _ int) { answer[c.key] = json.RawMessage(c.value) }}
		out := judge(t, s, servingtest.Cases(tokensOfCases), serving.Options{})
		assert.Equal(t, report.Pass, out.Verdict, c.reason)
		assert.Contains(t, strings.Join(out.Notes, "\n"), c.says, c.reason)
	}
}
