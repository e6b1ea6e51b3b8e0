package diagnose_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// What is known of a text: its ids, the text after the template, the text of each id.
type madeOf struct {
	ids      []int
	rendered string
	pieces   []string
}

var (
	hello = madeOf{ids: []int{1, 15, 7, 9}}
	talk  = madeOf{[]int{1, 40, 50, 60, 41, 51, 61, 42}, "<s>[system]be brief[user]hi[bot]", nil}
	plain = madeOf{ids: []int{1, 40, 50, 60, 41, 51, 61, 42}}
	long  = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
)

func TestJudge(t *testing.T) {
	chat := []dump.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "hi"}}
	for _, tt := range []struct {
		name   string
		golden madeOf
		actual madeOf
		chat   bool
		prompt string // "Hello" if empty
		cause  string // "-" is no difference
		proven bool
		says   string
		reason string
	}{
		{"equal", hello, hello, false, "", "-", false, "4 tokens equal", "the same ids"},
		{"twice", hello, madeOf{ids: []int{1, 1, 15, 7, 9}}, false, "", "text/bos-twice", true, "token 1 is 1, 15, 7, 9, the reference has 15, 7, 9", "the tokenizer adds what the text has"},
		{"missing", hello, madeOf{ids: []int{15, 7, 9}}, false, "", "text/bos-missing", true, "token 0", "nothing adds it"},
		{"begin", madeOf{ids: []int{15, 7, 9}}, madeOf{ids: []int{1, 15, 7, 9}}, false, "", "text/special", true, "begins it", "the reference has no BOS"},
		{"begin, a space", madeOf{[]int{15, 7, 9}, "", []string{"He", "ll", "o"}}, madeOf{[]int{5, 15, 7, 9}, "", []string{" ", "He", "ll", "o"}}, false, "", "text/whitespace", true, "", "no special token"},
		{"twice, by pieces", madeOf{[]int{1, 15}, "", []string{"<s>", "Hello"}}, madeOf{[]int{1, 1, 15}, "", []string{"<s>", "<s>", "Hello"}}, false, "", "text/bos-twice", true, "", "the pieces are known"},
		{"end", hello, madeOf{ids: []int{1, 15, 7, 9, 2}}, false, "", "text/eos-added", true, "2, ends it", "a tokenizer for training"},
		{"cut", hello, madeOf{ids: []int{1, 15}}, false, "", "text/truncated", true,
			"2 tokens missing from token 2 on: token 2 is none, the reference has 7, 9 (2 tokens, the reference 4)", "a length that is too small"},
		{"cut left", hello, madeOf{ids: []int{7, 9}}, false, "", "text/truncated", true, "2 tokens missing from token 0 on", "truncation_side: left"},
		{"cut after BOS", madeOf{ids: []int{1, 15, 7, 9, 3, 4}}, madeOf{ids: []int{1, 9, 3, 4}}, false, "", "text/truncated", true, "2 tokens missing from token 1 on", "BOS is kept"},
		{"no prefix space", madeOf{[]int{1, 5, 7, 9}, "", []string{"<s>", " ", "He", "llo"}}, madeOf{[]int{1, 7, 9}, "", []string{"<s>", "He", "llo"}}, false, "", "text/whitespace", true, "has no token", "it is no cut"},
		{"no prefix space, by ids", madeOf{ids: []int{1, 5, 7, 9}}, madeOf{ids: []int{1, 7, 9}}, false, "", "text/whitespace", false, "a space before the text", "who cuts one token?"},
		{"bare", madeOf{ids: []int{101, 7, 9, 102}}, madeOf{ids: []int{7, 9}}, false, "", "text/special", true, "around the text", "add_special_tokens=False"},
		{"split", madeOf{ids: []int{1, 32001, 15, 7}}, madeOf{ids: []int{1, 28, 57, 88, 15, 7}}, false, "<|im_start|>user", "text/special", false, "read as plain text", "the prompt has markup"},
		{"split, by pieces", madeOf{[]int{1, 32001, 7}, "", []string{"<s>", "<|im_start|>", "user"}}, madeOf{[]int{1, 28, 57, 7}, "", []string{"<s>", "<|im", "_start|>", "user"}}, false, "<|im_start|>user", "text/special", true, "", "the same text of other pieces"},
		{"space", madeOf{[]int{1, 7}, "", []string{"<s>", "Hello"}}, madeOf{[]int{1, 8}, "", []string{"<s>", " Hello"}}, false, "", "text/whitespace", true, `token 1 is " Hello" (8), the reference has "Hello" (7)`, "a prefix space"},
		{"space, guessed", hello, madeOf{ids: []int{1, 16, 7, 9}}, false, "", "text/whitespace", false, "", "the first word's token differs: it is what a prefix space does"},
		{"another tokenizer", madeOf{ids: []int{1, 15, 7, 9, 4}}, madeOf{ids: []int{1, 15, 8, 10, 4}}, false, "", "", false, "other tokens", "nothing tells why"},
		{"no prompt for an answer", talk, madeOf{talk.ids[:7], "<s>[system]be brief[user]hi", nil}, true, "", "text/template", true, "another text is rendered", "add_generation_prompt"},
		{"no prompt, by ids", plain, madeOf{ids: plain.ids[:6]}, true, "", "text/template", false, "", "a few tokens at the end"},
		{"no system", talk, madeOf{[]int{1, 41, 51, 61, 42}, "<s>[user]hi[bot]", nil}, true, "", "text/template", true, "the message of role system is not in the text", "the text tells, though the ids look like a cut"},
		{"no system, by ids", plain, madeOf{ids: []int{1, 41, 51, 61, 42}}, true, "", "text/template", false, "part of the conversation", "the middle is gone"},
		{"rendered twice", talk, madeOf{append([]int{1}, talk.ids...), "<s><s>[system]be brief[user]hi[bot]", nil}, true, "", "text/bos-twice", true, "", "by ids"},
		{"rendered alone", madeOf{rendered: talk.rendered}, madeOf{rendered: "<s>" + talk.rendered}, true, "", "text/bos-twice", true, "", "the candidate tells no ids"},
		{"spaces in the text", talk, madeOf{[]int{1, 40, 50, 60, 41, 51, 99, 42}, "<s>[system]be brief[user]hi [bot]", nil}, true, "", "text/whitespace", true, `(8 tokens, the reference 8); after "…`, "not another template"},
		{"another template", talk, madeOf{[]int{3, 4, 5}, "### be brief\n### hi\n", nil}, true, "", "text/template", true, "another text is rendered", "of another model"},
		{"cut, the text is whole", talk, madeOf{talk.ids[:5], talk.rendered, nil}, true, "", "text/truncated", true, "", "the same text tells that it was cut after the template"},
		{"the same ids of another text", talk, madeOf{talk.ids, "[system]be brief[user]hi[bot]", nil}, true, "", "-", false, "the same ids of another text", "one writes BOS, the other adds it"},
		{"end, rendered", madeOf{rendered: talk.rendered}, madeOf{rendered: talk.rendered + "</s>"}, true, "", "text/eos-added", true, `ends with "</s>"`, "no ids"},
		{"more at the end, rendered", madeOf{rendered: talk.rendered}, madeOf{rendered: talk.rendered + "</s>x"}, true, "", "text/template", true, "", "no token alone"},
		{"begin missing, rendered", madeOf{rendered: talk.rendered}, madeOf{rendered: talk.rendered[3:]}, true, "", "text/bos-missing", true, `begin with "<s>"`, "no ids"},
		{"begin and more missing", talk, madeOf{talk.ids[2:], talk.rendered[3:], nil}, true, "", "text/template", true, "", "not BOS alone"},
		{"a space at the end", madeOf{[]int{1, 15}, "<s>Hello", nil}, madeOf{[]int{1, 15, 5}, "<s>Hello ", nil}, false, "", "text/whitespace", true, "", "no EOS: the text has it"},
		{"no space at the begin", madeOf{[]int{5, 15}, " Hello", nil}, madeOf{[]int{15}, "Hello", nil}, false, "", "text/whitespace", true, "", "no BOS"},
		{"end, also rendered", madeOf{[]int{1, 15}, "<s>Hello", nil}, madeOf{[]int{1, 15, 2}, "<s>Hello</s>", nil}, false, "", "text/eos-added", true, "one token more", "the text has EOS, too"},
		{"begin, by pieces", madeOf{[]int{15}, "", []string{"Hello"}}, madeOf{[]int{1, 15}, "", []string{"<s>", "Hello"}}, false, "", "text/special", true, `"<s>" (1), begins it`, "the pieces show that it is special"},
		{"twice, and more", hello, madeOf{ids: []int{1, 1, 15, 8}}, false, "", "text/bos-twice", false, "more differs after it", "another mistake beside it"},
		{"twice in both", madeOf{ids: []int{1, 1, 15, 7}}, madeOf{ids: []int{1, 1, 15, 8}}, false, "", "", false, "other tokens", "BOS is not the mistake"},
		{"one token", madeOf{ids: []int{1}}, madeOf{ids: []int{1}}, false, "", "-", false, "1 token equal", "the noun"},
		{"one other token", madeOf{ids: []int{1}}, madeOf{ids: []int{2}}, false, "", "text/whitespace", false, "(1 token, the reference 1)", "it is short"},
		{"many tokens", madeOf{ids: []int{1, 2, 3, 4, 5, 6, 7}}, madeOf{ids: []int{1, 2, 8, 8, 8, 8, 8}}, false, "", "", false, "token 2 is 8, 8, 8, 8, …, the reference has 3, 4, 5, 6, …", "the first of them"},
		{"inside a letter", madeOf{rendered: "grö"}, madeOf{rendered: "grü"}, false, "", "text/template", true, `after "gr" the text goes on with "ü", the reference's with "ö"`, "bytes differ, letters are shown"},
		{"long texts", madeOf{rendered: strings.Repeat("a", 25) + "x" + strings.Repeat("b", 23)}, madeOf{rendered: strings.Repeat("a", 25) + "y" + strings.Repeat("b", 24)}, false, "", "text/template", true,
			`after "…` + strings.Repeat("a", 24) + `" the text goes on with "y` + strings.Repeat("b", 23) + `…", the reference's with "x` + strings.Repeat("b", 23) + `"`, "24 letters are shown"},
		{"wider", madeOf{ids: []int{1, 9, 50, 51, 7}}, madeOf{ids: []int{1, 9, 5, 6, 8, 4, 7}}, false, "<|im_start|>user", "text/special", false, "token 50 is several", "twice as many"},
		{"hardly wider", madeOf{ids: []int{1, 9, 50, 51, 7}}, madeOf{ids: []int{1, 9, 5, 6, 8, 7}}, false, "<|im_start|>user", "", false, "", "not twice as many"},
		{"wider without markup", madeOf{ids: []int{1, 9, 50, 7}}, madeOf{ids: []int{1, 9, 5, 6, 8, 4, 7}}, false, "Hello", "", false, "", "there is no special token"},
		{"one token more inside", madeOf{ids: []int{1, 9, 7}}, madeOf{ids: []int{1, 9, 5, 7}}, false, "<|im_start|>user", "", false, "other tokens", "nothing was split"},
		{"two spaces", madeOf{ids: []int{1, 15, 7, 9}}, madeOf{ids: []int{1, 15, 8, 9}}, false, "a  b", "text/whitespace", false, "", "some tokenizers make one of them"},
		{"a tab", madeOf{ids: []int{1, 15, 7, 9}}, madeOf{ids: []int{1, 15, 8, 9}}, false, "a\tb", "text/whitespace", false, "", "or a space of it"},
		{"a space before", madeOf{ids: []int{1, 15, 7, 9}}, madeOf{ids: []int{1, 15, 8, 9}}, false, " ab", "text/whitespace", false, "", "or strip it"},
		{"another conversation", plain, madeOf{ids: []int{1, 99, 98, 97, 96, 95, 94, 93}}, true, "", "text/template", false, "another conversation", "nothing of it is alike"},
		{"no end of 12", madeOf{ids: long}, madeOf{ids: long[:8]}, true, "", "text/template", false, "", "as much as a template adds"},
		{"no end of 13", madeOf{ids: long}, madeOf{ids: long[:7]}, true, "", "text/truncated", true, "", "more than a template adds"},
		{"BOS alone is left", madeOf{ids: []int{1, 5}}, madeOf{ids: []int{1}}, false, "", "text/truncated", true, "1 token missing", "no space"},
		{"a token of the same text", madeOf{[]int{1, 5, 7, 9}, "x", nil}, madeOf{[]int{1, 7, 9}, "x", nil}, false, "", "text/truncated", true, "", "the space was there"},
		{"a space inside has no token", madeOf{[]int{1, 7, 5, 9}, "", []string{"<s>", "He", " ", "llo"}}, madeOf{[]int{1, 7, 9}, "", []string{"<s>", "He", "llo"}}, false, "", "text/whitespace", true, "", "it is no cut"},
		{"another word of pieces", madeOf{[]int{1, 7, 9}, "", []string{"<s>", "He", "llo"}}, madeOf{[]int{1, 7, 8}, "", []string{"<s>", "He", "y"}}, false, "", "", false, `"y" (8), the reference has "llo" (9)`, "not its white space"},
		{"texts alone", madeOf{rendered: "x"}, madeOf{rendered: "x"}, false, "", "-", false, "the rendered texts are equal", "neither side has ids"},
		{"texts, ids of the candidate", madeOf{rendered: "x"}, madeOf{[]int{1}, "x", nil}, false, "", "-", false, "the rendered texts are equal", "the reference has none"},
		{"texts, ids of the reference", madeOf{[]int{1}, "x", nil}, madeOf{rendered: "x"}, false, "", "-", false, "the rendered texts are equal", "the candidate tells none"},
		{"ids against text", madeOf{ids: hello.ids}, madeOf{rendered: "Hello"}, false, "", "?", false, "nothing in common", "no conclusion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of := func(m madeOf) dump.Info {
				x := dump.Text{Path: "completion", Prompt: "Hello", Rendered: m.rendered, TokenIDs: m.ids, Pieces: m.pieces}
				if tt.prompt != "" {
					x.Prompt = tt.prompt
				}
				if tt.chat {
					x.Path, x.Prompt, x.Messages = "chat", "", chat
				}
				return dump.Info{Text: []dump.Text{x}}
			}
			golden, actual := of(tt.golden), of(tt.actual)
			found := diagnose.Texts(&golden, &actual)
			require.Len(t, found, 1)
			f := found[0]
			assert.Contains(t, f.Text, tt.says, tt.reason)
			switch tt.cause {
			case "-":
				assert.Equal(t, diagnose.Equal, f.Status, tt.reason)
			case "?":
				assert.Equal(t, diagnose.NotJudged, f.Status, tt.reason)
			default:
				require.Equal(t, diagnose.Differs, f.Status, tt.reason)
				assert.Equal(t, tt.cause, f.Cause.ID, tt.reason)
				assert.Equal(t, tt.proven, f.Cause.Proven, tt.reason)
			}
		})
	}
}

// What the reference made with a mistake on purpose proves that mistake.
func TestMistakes(t *testing.T) {
	golden := dump.Info{Text: []dump.Text{{Path: "completion", Prompt: "a b", TokenIDs: []int{1, 4, 5}, Mistakes: []dump.Mistake{
		{Cause: "text/template", Text: "the prompt is sent as a conversation", TokenIDs: []int{1, 9, 4, 5, 8}}}}}}
	actual := dump.Info{Text: []dump.Text{{Path: "served", Prompt: "a b", TokenIDs: []int{1, 9, 4, 5, 8}}}}
	found := diagnose.Texts(&golden, &actual)
	require.Len(t, found, 1)
	assert.Equal(t, &diagnose.TextCause{ID: "text/template", Text: "the prompt is sent as a conversation", Proven: true}, found[0].Cause)
}

// Of several texts of one ask that of the same API path counts, else the first.
func TestSamePath(t *testing.T) {
	golden := dump.Info{Text: []dump.Text{{Path: "completion", Prompt: "a", TokenIDs: []int{1}}, {Path: "served", Prompt: "a", TokenIDs: []int{2}},
		{Path: "other", Prompt: "b", TokenIDs: []int{3}}}}
	for path, id := range map[string]int{"completion": 1, "served": 2, "other": 1} {
		found := diagnose.Texts(&golden, &dump.Info{Text: []dump.Text{{Path: path, Prompt: "a", TokenIDs: []int{id}}}})
		assert.Equal(t, diagnose.Equal, found[0].Status, path)
	}
}

// A reference without texts was given tokens.
func TestReferenceIsItsTokens(t *testing.T) {
	golden := dump.Info{TokenIDs: []byte("[[1, 4, 5]]")}
	one := dump.Text{Path: "completion", Prompt: "a", TokenIDs: []int{4, 5}}
	two := dump.Text{Path: "chat", Messages: []dump.Message{{Role: "user", Content: "a"}}, TokenIDs: []int{1, 4, 5}}
	for _, tt := range []struct {
		texts  []dump.Text
		want   []diagnose.TextStatus
		reason string
	}{
		{[]dump.Text{one, {Path: "served", Prompt: "a", TokenIDs: []int{1, 4, 5}}}, []diagnose.TextStatus{diagnose.Differs, diagnose.Equal}, "one ask along two paths"},
		{[]dump.Text{one}, []diagnose.TextStatus{diagnose.Differs}, "the only thing that was asked"},
		{[]dump.Text{one, two}, []diagnose.TextStatus{diagnose.NotJudged, diagnose.Equal}, "the tokens are those of the conversation"},
		{[]dump.Text{one, {Path: "chat", Messages: two.Messages, TokenIDs: []int{3}}}, []diagnose.TextStatus{diagnose.NotJudged, diagnose.NotJudged}, "they may be of either"},
	} {
		actual := dump.Info{Text: tt.texts}
		var got []diagnose.TextStatus
		for _, f := range diagnose.Texts(&golden, &actual) {
			got = append(got, f.Status)
		}
		assert.Equal(t, tt.want, got, tt.reason)
	}
	for _, other := range []dump.Info{{TokenIDs: []byte("[[1, 4, 5], [2]]")}, {TokenIDs: golden.TokenIDs, Prompt: "b"}} {
		assert.Equal(t, diagnose.NotJudged, diagnose.Texts(&other, &dump.Info{Text: []dump.Text{one}})[0].Status, "of another ask")
	}
}

// Real tokenizers, built on the spot, with a fault each: what is told with the reference's mistakes and
// pieces, and what by the ids and rendered texts alone.
func TestLiveTokenizers(t *testing.T) {
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs transformers: PARITY_LIVE=1, and PARITY_PYTHON with it")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "faulty.py"), filepath.Join("..", "engine", "runner"))
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []struct {
		Fault, Cause   string
		Golden, Actual []dump.Text
	}
	require.NoError(t, json.Unmarshal(out, &all))
	require.Greater(t, len(all), 20)
	for _, tt := range all {
		for _, bare := range []bool{false, true} {
			golden, actual := dump.Info{Text: tt.Golden}, dump.Info{Text: tt.Actual}
			if bare {
				golden.Text, actual.Text = without(tt.Golden), without(tt.Actual)
			}
			for _, f := range diagnose.Texts(&golden, &actual) {
				if tt.Cause == "" {
					assert.Equal(t, diagnose.Equal, f.Status, tt.Fault)
				} else if assert.Equal(t, diagnose.Differs, f.Status, "%s, bare %v", tt.Fault, bare) {
					assert.Equal(t, tt.Cause, f.Cause.ID, "%s, bare %v: %s", tt.Fault, bare, f.Text)
					assert.True(t, f.Cause.Proven || bare, "%s: %s", tt.Fault, f.Text)
				}
			}
		}
	}
}

func without(texts []dump.Text) (out []dump.Text) {
	for _, x := range texts {
		x.Pieces, x.Mistakes = nil, nil
		out = append(out, x)
	}
	return out
}
