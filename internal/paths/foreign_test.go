package paths_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/tensor"
	npyfile "github.com/goparity/goparity/tensor/npy"
)

// saved is a file of llama-perplexity: two chunks of 5 tokens, 3 words.
func saved() []byte {
	var b bytes.Buffer
	b.WriteString("_logits_")
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	put([]int32{5, 3, 2, 7, 8, 2, 1, 1, 9, 8, 2, 0, 1})
	for _, scale := range []float32{1, 1, 2, 3} {
		put([]float32{0.001 * scale, -10 * scale})
		put([]uint16{9000, 100, 9900, 0})
	}
	return b.Bytes()
}

func TestForeignRefuses(t *testing.T) {
	header := func(numbers string) string {
		return "_logits_" + strings.Join(strings.Split(numbers, ""), "\x00\x00\x00") + strings.Repeat("\x00", 99)
	}
	for _, tt := range []struct{ in, want, reason string }{
		{"", "it is no JSON", "nothing"},
		{header("\x03\x03\x01"), "1 chunks of 3 tokens and 3 words, which no file of", "a chunk that decides nothing"},
		{header("\x04\x01\x01"), "1 chunks of 4 tokens and 1 words, which no file of", "one word"},
		{header("\x04\x03\x00"), "0 chunks of 4 tokens and 3 words, which no file of", "no chunk"},
		{header("\x04\x03\x01"), "its header asks for 52", "one chunk, and more bytes"},
		{"hello", "it is no JSON", "a text"},
		{"[", "unexpected end of JSON input", "cut"},
		{"[]", "it lists no prompt", "nothing in it"},
		{`[{"prompt": "a", "values": []}]`, "[0] has no values with logits", "no steps"},
		{`[{"prompt": "a", "embeddings": [1]}]`, "[0] has no values with logits", "embeddings"},
		{`[{"prompt": "a", "values": [{"next_token": 1}]}]`, "[0].values[0]: no logits", "tokens alone"},
		{`[{"prompt": "a", "values": [{"logits": [1, 2]}]}]`, "next_token: missing", "logits alone"},
		{`[{"values": [{"next_token": -4, "logits": [1, 2]}]}]`, "-4 is no token id", "a token below zero"},
		{`[{"values": [{"next_token": 1.5, "logits": [1, 2]}]}]`, "1.5 is no token id", "a part of a token"},
		{`[{"values": [{"next_token": [1, 2], "logits": [1, 2]}]}]`, "1 is no token id", "two tokens"},
		{`[{"values": [{"next_token": 1, "logits": ["a"]}]}]`, "a is no number", "words as numbers"},
		{`[{"values": [{"next_token": 1, "logits": {"__np__": "AAA=", "shape": [4], "dtype": "float32"}}]}]`, "needs 16 bytes", "too few bytes"},
		{`[{"values": [{"next_token": 1, "logits": {"__np__": "AAAA", "shape": [1], "dtype": "complex64"}}]}]`, "complex64", "another type"},
		{`[{"values": [{"next_token": 1, "logits": {"__np__": "!", "shape": [1], "dtype": "f32"}}]}]`, "no base64", "no base64"},
		{`[{"values": [{"next_token": 1, "logits": {}}]}]`, "want a list of numbers", "an object"},
		{`{}`, "no choices", "no response"},
		{`{"error": {"message": "too long"}}`, "too long", "an error of the server"},
		{`{"choices": [{"text": "a"}]}`, `choices[0]: no logprobs: ask for them`, "not asked for"},
		{`{"choices": [{"logprobs": {}}]}`, "no logprobs: ask for them", "none were computed"},
		{`{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [-1, -2]}}]}`, "token_ids has 1", "another number of tokens"},
		{`{"choices": [{"logprobs": {"token_logprobs": [-1]}}]}`, "neither texts nor token_ids", "neither texts nor ids"},
		{`{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [null]}}]}`, "ask without echo", "the first token of an echo"},
		{"_logits_", "ends in its header", "cut"},
		{string(saved()[:len(saved())-1]), "not written to its end", "cut later"},
		{"_logits_\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f", "which no file of 20 bytes holds", "a hostile header"},
	} {
		_, err := paths.Decode("f", []byte(tt.in), nil)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}

// TestForeign reads one text in the forms of several tools, and compares it with itself.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	lists := write("lists.json", `[{"prompt": "Hi", "values": [{"next_token": [1], "logits": [[0, 3, 1]]}, {"next_token": 2, "logits": [0, 1, 4]}]}]`)
	other := write("other.json", `[{"prompt": "Hi", "values": [{"next_token": 2, "logits": [0, 1, 3]}, {"next_token": 2, "logits": [0, 1, 4]}]}]`)
	prompt := write("prompt.json", `[{"prompt": "Ho", "values": [{"next_token": 1, "logits": [0, 3, 1]}]}]`)
	chat := write("chat.json", `{"choices": [{"message": {"content": "bc"}, "token_ids": [1, 2], "logprobs": {"content": [
		{"token": "b", "logprob": -0.16984602, "top_logprobs": [{"token": "b", "logprob": -0.16984602}, {"token": "c", "logprob": -2.16984602}]},
		{"token": "c", "logprob": -0.06587137, "top_logprobs": []}]}}]}`)
	vllm := write("vllm.json", `{"choices": [{"logprobs": {"tokens": ["token_id:1", "token_id:2"], "token_logprobs": [-0.16984602, -0.06587137], "top_logprobs": null}}]}`)
	free := write("free.json", `{"choices": [{"logprobs": {"tokens": ["token_id:2", "token_id:2"], "token_logprobs": [-0.1, -0.2], "top_logprobs": null}}]}`)
	zero := write("zero.json", `[{"values": [{"next_token": 0, "logits": [3, 0]}]}]`)
	zeros := write("zeros.json", `{"choices": [{"token_ids": [0], "logprobs": {"token_logprobs": [-0.0485873]}}]}`)
	texts := write("texts.json", `{"choices": [{"logprobs": {"tokens": ["b", "c"], "token_logprobs": [-0.1, -0.2], "top_logprobs": [{"b": -0.1}, {"c": -0.2, "d": -3}]}}]}`)
	contradicts := write("contradicts.json", `[{"prompt": "Hi", "values": [{"next_token": 2, "logits": [0, 3, 1]}, {"next_token": 2, "logits": [0, 1, 4]}]}]`)
	late := write("late.json", `[{"prompt": "Hi", "values": [{"next_token": 1, "logits": [0, 3, 1]}, {"next_token": 1, "logits": [0, 1, 4]}]}]`)
	sampled := write("sampled.json", `[{"prompt": "Hi", "values": [{"next_token": 0, "logits": [0, 3, 1]}, {"next_token": 2, "logits": [0, 1, 4]}]}]`)
	short := write("short.json", `[{"prompt": "Hi", "values": [{"next_token": 1, "logits": [0, 3, 1]}]}]`)
	one := `{"token_ids": [1], "logprobs": {"content": [{"token": "b", "logprob": -0.16984602, "top_logprobs": [{"token": "c", "logprob": -2.16984602}]}]}`
	stopped := write("stopped.json", `{"choices": [`+one+`, "finish_reason": "stop"}]}`)
	ended := write("ended.json", `{"choices": [`+one+`, "finish_reason": "length"}]}`)
	all := make([]string, 70) // more than a golden keeps
	for i := range all {
		all[i] = fmt.Sprintf(`"%d": %d`, i, -i-1)
	}
	many := write("many.json", `{"choices": [{"logprobs": {"tokens": ["0"], "token_logprobs": [-1], "top_logprobs": [{`+strings.Join(all, ",")+`}]}}]}`)
	llama := write("llama.kld", string(saved()))
	var npy bytes.Buffer
	row, err := tensor.Of([]float32{0, 3, 1}, 3)
	require.NoError(t, err)
	require.NoError(t, npyfile.Write(&npy, row))
	packed := write("packed.json", fmt.Sprintf(`[{"prompt": "Hi", "values": [{"next_token": [1], "logits": {"__np__": %q}}, {"next_token": 2, "logits":
		{"__np__": "AAAAAAAAgD8AAIBA", "shape": [3], "dtype": "float32"}}]}]`, base64.StdEncoding.EncodeToString(npy.Bytes())))
	for path, want := range map[string]bool{lists: true, llama: true, write("UPPER.JSON", "{}"): true, write("a.npy", ""): false, dir: false, lists + "x": false} {
		assert.Equal(t, want, paths.IsForeign(path), path)
	}
	for _, tt := range []struct {
		golden, actual string
		want           generation.Verdict
		tokens         int
		err            string
		reason         string
	}{
		{lists, lists, generation.Identical, 2, "", "lists of numbers"},
		{lists, chat, generation.Identical, 2, "", "a chat with ids"},
		{lists, vllm, generation.Identical, 2, "", "ids in place of texts"},
		{lists, packed, generation.Identical, 2, "", "arrays of numpy"},
		{texts, texts, generation.Identical, 2, "", "texts on both sides"},
		{many, many, generation.Identical, 1, "", "many likely tokens"},
		{llama, llama, generation.Identical, 2, "", "llama-perplexity"},
		{lists, other, generation.Divergent, 1, "", "a free-running text is judged up to its first other token"},
		{lists, contradicts, generation.Divergent, 1, "", "it went on with another token than its logits choose"},
		{lists, late, generation.Divergent, 2, "", "the last one, too"},
		{sampled, lists, "", 0, "the two texts part at token 0, 0 in", "the golden's text is not its greedy one"},
		{sampled, sampled, generation.Identical, 2, "", "and may be forced"},
		{lists, short, "", 0, "rows missing", "a run that stopped early"},
		{lists, ended, "", 0, "rows missing", "a server that was asked for fewer"},
		{lists, stopped, generation.Identical, 1, "", "the token that ends a text is not shown"},
		{lists, prompt, "", 0, "another text: the prompts of", "another prompt"},
		{lists, texts, "", 0, "the golden has ids", "texts beside ids"},
		{zero, texts, "", 0, "the golden has ids", "also of token 0"},
		{zero, zeros, generation.Identical, 1, "", "token 0 on both sides"},
		{vllm, free, generation.Divergent, 1, "", "a response goes on freely, too"},
	} {
		golden, err := paths.ReadForeign(tt.golden, nil)
		require.NoError(t, err, tt.reason)
		actual, err := paths.ReadForeign(tt.actual, golden)
		var o *paths.Continuation
		if err == nil {
			o, err = paths.CompareContinuation(t.Context(), golden[0], actual[0], paths.ContinuationOptions{})
		}
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, o.Verdict, tt.reason)
		assert.Len(t, o.Positions, tt.tokens, tt.reason)
		notes := map[string]string{free: "the two texts are the same for 1 tokens", other: "the two texts are the same for 1 tokens", contradicts: "the two texts are the same for 1 tokens",
			stopped: "the candidate ended the text where the golden has token 2", sampled: "the text is not the reference's greedy one", llama: "the text is not the reference's greedy one"}[tt.actual]
		assert.Contains(t, strings.Join(o.Notes, "; "), notes, tt.reason)
		assert.Equal(t, notes == "", len(o.Notes) != 1, "%s: %v", tt.reason, o.Notes)
		assert.Equal(t, o.Notes, o.Report("x").Notes, tt.reason)
	}
}

// Texts are found by their prompts, or else by their places.
func TestOrderOfTexts(t *testing.T) {
	texts := func(prompts ...string) string {
		var all []string
		for i, p := range prompts {
			all = append(all, fmt.Sprintf(`{"prompt": %q, "values": [{"next_token": %d, "logits": [0, 3, 1]}]}`, p, i))
		}
		path := filepath.Join(t.TempDir(), "f.json")
		require.NoError(t, os.WriteFile(path, []byte("["+strings.Join(all, ",")+"]"), 0o644))
		return path
	}
	golden, err := paths.ReadForeign(texts("a", "b"), nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		prompts []string
		cases   string // of the golden
		want    []int  // the tokens of what is found
		reason  string
	}{
		{[]string{"b", "a"}, "prompt-", []int{1, 0}, "in another order"},
		{[]string{"x", "a", "b"}, "prompt-", []int{1, 2}, "one that no golden has"},
		{[]string{"x", "y", "z"}, "prompt-", []int{0, 1}, "other prompts, by their names"},
		{[]string{"x", "y"}, "dump", []int{0, 1}, "other prompts, and as many"},
		{[]string{"x", "a", "c"}, "dump", nil, "one is missing"},
	} {
		golden[0].Case, golden[1].Case = tt.cases+"0", tt.cases+"1"
		sides, err := paths.ReadForeign(texts(tt.prompts...), golden)
		if tt.want == nil {
			assert.ErrorContains(t, err, "has 3 texts and none of them is text 1 of the golden, which has 2", tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, []int{sides[0].Fed[0], sides[1].Fed[0]}, tt.reason)
	}
}

// Rows of llama-perplexity are numbers of 16 bits, scaled.
func TestPerplexityFile(t *testing.T) {
	sides, err := paths.Decode("f", saved(), nil)
	require.NoError(t, err)
	require.Len(t, sides, 2)
	for i, last := range []int{1, 0} {
		s := sides[i]
		assert.Equal(t, [][]int{{9 - 2*last, 8, 2, last, 1}, {3}}, [][]int{s.Text, {s.Prompt}})
		for k := range 2 {
			row, _ := s.Row(k)
			for token, want := range []float64{-1, -9.9, -0.1} {
				x, _ := row.Logit(token)
				assert.InDelta(t, float64(1+i*(1+k))*want, x, 1e-5)
			}
		}
		_, ok := s.Row(2)
		assert.False(t, ok, "nothing decides the token after the last")
	}
}

// The choices of a response are those of their index, and prompts may be lists of one.
func TestChoicesOfAResponse(t *testing.T) {
	choice := func(index, id int) string {
		return fmt.Sprintf(`{"index": %d, "token_ids": [%d], "logprobs": {"token_logprobs": [-1]}}`, index, id)
	}
	in := `{"prompt_token_ids": [[5, 6]], "choices": [` + choice(1, 8) + "," + choice(0, 7) + `]}`
	sides, err := paths.Decode("f", []byte(in), nil)
	require.NoError(t, err)
	require.Len(t, sides, 2)
	assert.Equal(t, []int{5, 6, 7}, sides[0].Text)
	assert.Equal(t, []int{5, 6, 8}, sides[1].Text)
	assert.Equal(t, 2, sides[0].Prompt)
	sides, err = paths.Decode("f", []byte(strings.Replace(in, "[[5, 6]]", "[[5, 6], [9]]", 1)), nil)
	require.NoError(t, err)
	assert.Equal(t, []int{9, 8}, sides[1].Text, "a list for each choice")
	for _, tt := range []struct{ from, to, want, reason string }{
		{"[[5, 6]]", "[[5], [6], [7]]", "token ids are in 3 lists", "as many prompts as nothing"},
		{`"index": 0`, `"index": 1`, "two choices have the index 1", "twice"},
	} {
		_, err = paths.Decode("f", []byte(strings.Replace(in, tt.from, tt.to, 1)), nil)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}

// Tokens that no one asked for are listed.
func TestFewerTokens(t *testing.T) {
	in := []byte(`[{"values": [{"next_token": 1, "logits": [0, 3, 1]}, {"next_token": 2, "logits": [0, 1, 4]}]}]`)
	golden, err := paths.Decode("g", in, nil)
	require.NoError(t, err)
	actual, err := paths.Decode("a", in, nil)
	require.NoError(t, err)
	o, err := paths.CompareContinuation(t.Context(), golden[0], actual[0], paths.ContinuationOptions{Tokens: 1})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(o.Report("x").NotJudged, "; "), "the last 1 of 2 tokens of the golden")
	o, err = paths.CompareContinuation(t.Context(), golden[0], actual[0], paths.ContinuationOptions{Tokens: 2})
	require.NoError(t, err)
	assert.Empty(t, o.Report("x").NotJudged, "all of them")
	_, err = paths.CompareContinuation(t.Context(), golden[0], actual[0], paths.ContinuationOptions{Tokens: 3})
	assert.ErrorContains(t, err, "3 tokens are asked for, and g has logits for 2")

	scaled, err := paths.Decode("s", []byte(strings.ReplaceAll(string(in), "3", "2.7")), nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		opt  paths.ContinuationOptions
		want generation.Verdict
	}{{paths.ContinuationOptions{}, generation.Logits}, {paths.ContinuationOptions{Limits: &compare.Limits{RelL2: 1, RowRelL2: 1}}, generation.Identical}} {
		o, err = paths.CompareContinuation(t.Context(), golden[0], scaled[0], tt.opt)
		require.NoError(t, err)
		assert.Equal(t, tt.want, o.Verdict)
	}
}

func FuzzForeign(f *testing.F) {
	f.Add(saved())
	for _, seed := range []string{`[{"prompt": "a", "values": [{"next_token": 1, "logits": {"__np__": "AACAPwAAAAA=", "shape": [2], "dtype": "float32"}}]}]`,
		`{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [-1], "top_logprobs": [{"a": -1}]}}]}`, "[[[", `{"choices": [{"logprobs": {"content": [{}]}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sides, err := paths.Decode("f", data, nil)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		for _, s := range sides { // what can be read can be compared
			o, err := paths.CompareContinuation(t.Context(), s, s, paths.ContinuationOptions{})
			if err == nil && o.Fails() && !strings.Contains(fmt.Sprint(o.Text()), "NaN") && o.Positions[o.At].Said < 0 {
				t.Errorf("a text fails beside itself: %s", o.Text())
			}
		}
	})
}
