package serving_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/serving"
)

// tokenizer is a tokenizer.json with words from id 3 on.
func tokenizer(decoder string, words ...string) string {
	ids := map[string]int{}
	for i, w := range words {
		ids[w] = i + 3
	}
	v, _ := json.Marshal(ids)
	return fmt.Sprintf(`{"model": {"vocab": %s}, "decoder": %s, "added_tokens": [{"id": 0, "content": "<s>", "special": true},
		{"id": 1, "content": "</s>", "special": true}, {"id": 2, "content": "<tool>", "special": false}]}`, v, decoder)
}

// Llama's decoder, as its tokenizer.json has it.
const llama = `{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
	{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}`

func TestTextOfTokens(t *testing.T) {
	for _, c := range []struct {
		decoder string
		words   []string
		ids     []int
		want    string
		whole   string // with special tokens
		reason  string
	}{
		{`{"type": "ByteLevel"}`, []string{"Hello", "Ġworld", "Ċ", "Ã©"}, []int{0, 3, 4, 5, 6, 1}, "Hello world\né", "<s>Hello world\né</s>",
			"GPT-2's bytes"},
		{`{"type": "ByteLevel"}`, []string{"Ã"}, []int{3}, "\uFFFD", "\uFFFD", "half a character"},
		{`{"type": "ByteLevel"}`, []string{"a"}, []int{3, 2}, "a<tool>", "a<tool>", "an added token that is not special is written"},
		{llama, []string{"▁Hello", "▁world", "!", "<0xC3>", "<0xA9>"}, []int{0, 3, 4, 5, 6, 7}, "Hello world!é", "<s>Hello world!é", "Llama's"},
		{llama, []string{"<0x>", "<0xA9)", "abcA9>"}, []int{3, 4, 5}, "<0x><0xA9)abcA9>", "<0x><0xA9)abcA9>", "that look like bytes"},
		{`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}`, []string{"▁a", "▁b"}, []int{3, 4}, "a b", "a b", "SentencePiece"},
		{`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}`, []string{"▁a", "▁b"}, []int{3, 4}, " a b", " a b",
			"with its first space"},
		{`{"type": "WordPiece", "prefix": "##", "cleanup": true}`, []string{"un", "##able", "to"}, []int{3, 4, 5}, "unable to", "unable to", "BERT's"},
		{`{"type": "BPEDecoder", "suffix": "</w>"}`, []string{"low", "er</w>", "x</w>"}, []int{3, 4, 5}, "lower x ", "lower x ", "the end of words"},
		{`null`, []string{"a", "b"}, []int{3, 4}, "a b", "a b", "no decoder: words"},
	} {
		v, err := serving.DecodeVocab([]byte(tokenizer(c.decoder, c.words...)))
		require.NoError(t, err, c.reason)
		got, ok := v.Text(c.ids, true)
		assert.True(t, ok, c.reason)
		assert.Equal(t, c.want, got, c.reason)
		got, _ = v.Text(c.ids, false)
		assert.Equal(t, c.whole, got, c.reason)
		_, ok = v.Text([]int{99}, true)
		assert.False(t, ok, "%s: no such token", c.reason)
	}
}

func TestSpecial(t *testing.T) {
	v, err := serving.DecodeVocab([]byte(tokenizer("null", "a")))
	require.NoError(t, err)
	for id, want := range map[int][2]bool{0: {true, true}, 2: {false, true}, 3: {false, true}, 99: {false, false}} {
		special, known := v.Special(id)
		assert.Equal(t, want, [2]bool{special, known}, "token %d", id)
	}
}

func TestUnigram(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), []byte(`{"model": {"vocab": [["<unk>", 0], ["▁a", -1.5]]}, "decoder": {"type": "Metaspace"}}`), 0o600))
	v, err := serving.OpenVocab(folder)
	require.NoError(t, err)
	got, _ := v.Text([]int{1}, true)
	assert.Equal(t, "a", got)
}

func TestWhatIsNotUnderstood(t *testing.T) {
	for _, c := range []struct{ text, error, reason string }{
		{`{"model": {"vocab": {"a": 0}}, "decoder": {"type": "CTC"}}`, `the decoder "CTC" is not known`, "no text is guessed"},
		{`{"model": {"vocab": {"a": 0}}, "decoder": {"type": "Sequence", "decoders": [{"type": "X"}]}}`, `"X" is not known`, "inside"},
		{`{"model": {"vocab": {"a": 0}}, "decoder": {"type": "Replace", "pattern": {"Regex": "a"}}}`, "a pattern that is no text", "a regular expression"},
		{`{"model": {}}`, "neither an object nor a list", "no vocabulary"},
		{`{"model": {"vocab": {}}}`, "no tokens", "an empty one"},
		{`{"model": {"vocab": [[]]}}`, "vocab[0] is empty", "an empty pair"},
		{`{"model": {"vocab": [[1]]}}`, "vocab[0] has no text", "no text"},
		{"{", "line 1: unexpected end", "no JSON"},
	} {
		_, err := serving.DecodeVocab([]byte(c.text))
		assert.ErrorContains(t, err, c.error, c.reason)
	}
	_, err := serving.OpenVocab("testdata")
	assert.ErrorContains(t, err, "tokenizer.json")
}

func FuzzVocab(f *testing.F) {
	f.Add([]byte(tokenizer(llama, "▁Hello", "<0xC3>")), 3)
	f.Add([]byte(tokenizer(`{"type": "ByteLevel"}`, "Ġa")), 3)
	f.Add([]byte(`{"model": {"vocab": [["a", 0]]}}`), 0)
	f.Fuzz(func(t *testing.T, data []byte, id int) {
		v, err := serving.DecodeVocab(data)
		if err == nil {
			v.Text([]int{id, id + 1}, true)
		}
	})
}
