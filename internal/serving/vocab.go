package serving

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// Vocab turns token ids into text by a model's tokenizer.json, as Hugging Face tokenizers do: it has the texts of tokens,
// and how they are joined.
type Vocab struct {
	tokens map[int]vocabToken
	steps  []*decoderStep
}

type (
	vocabToken struct {
		ID      int
		Content string
		Special bool // it is written as it stands
	}
	vocabFile struct {
		Added   []vocabToken `json:"added_tokens"`
		Decoder *decoderStep
		Model   struct{ Vocab json.RawMessage }
	}
	decoderStep struct {
		Type, Content, Suffix, Replacement string
		Start, Stop                        int
		Decoders                           []decoderStep
		Pattern                            struct{ String *string }
		Prefix                             *string
		PrependScheme                      string `json:"prepend_scheme"`   // of Metaspace
		AddPrefixSpace                     *bool  `json:"add_prefix_space"` // the same in older files
	}
)

// OpenVocab reads the tokenizer.json of a model's folder. The error says what of it is not understood: no text is guessed.
func OpenVocab(dir string) (*Vocab, error) {
	name := filepath.Join(dir, "tokenizer.json")
	data, err := mapfile.Read(name, mapfile.MaxListing)
	if err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	v, err := DecodeVocab(data)
	if err != nil {
		return nil, fmt.Errorf("serving: %s: %w", name, err)
	}
	return v, nil
}

// DecodeVocab reads the content of a tokenizer.json.
func DecodeVocab(data []byte) (*Vocab, error) {
	var f vocabFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, mapfile.JSONError(data, err)
	}
	v := &Vocab{tokens: map[int]vocabToken{}}
	var ids map[string]int // {text: id}, or the [[text, score], …] of Unigram
	var list [][]any
	if json.Unmarshal(f.Model.Vocab, &ids) != nil && json.Unmarshal(f.Model.Vocab, &list) != nil {
		return nil, errors.New("model.vocab is neither an object nor a list")
	}
	for text, id := range ids {
		v.tokens[id] = vocabToken{Content: text}
	}
	for id, pair := range list {
		if len(pair) == 0 {
			return nil, fmt.Errorf("model.vocab[%d] is empty", id)
		}
		text, ok := pair[0].(string)
		if !ok {
			return nil, fmt.Errorf("model.vocab[%d] has no text", id)
		}
		v.tokens[id] = vocabToken{Content: text}
	}
	for _, a := range f.Added {
		v.tokens[a.ID] = a
	}
	if len(v.tokens) == 0 {
		return nil, errors.New("it has no tokens")
	}
	return v, v.add(cmp.Or(f.Decoder, &decoderStep{Type: noDecoder}))
}

func (v *Vocab) add(s *decoderStep) error {
	if s.Type == "Sequence" {
		for i := range s.Decoders {
			if err := v.add(&s.Decoders[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if decoders[s.Type] == nil {
		return fmt.Errorf("the decoder %q is not known", s.Type)
	}
	if s.Type == "Replace" && s.Pattern.String == nil {
		return errors.New("decoder Replace has a pattern that is no text")
	}
	v.steps = append(v.steps, s)
	return nil
}

// Special reports whether a token is a special one, and whether the vocabulary has it.
func (v *Vocab) Special(id int) (special, known bool) {
	t, known := v.tokens[id]
	return t.Special, known
}

// ID returns the token of a text as it stands in the vocabulary.
func (v *Vocab) ID(text string) (id int, ok bool) {
	for id, t := range v.tokens {
		if t.Content == text {
			return id, true
		}
	}
	return 0, false
}

// Text returns the text of tokens, without the special ones if they are skipped. It is not ok if a
// token is not in the vocabulary, or there is none. What is no UTF-8 stands as U+FFFD.
func (v *Vocab) Text(ids []int, skipSpecial bool) (text string, ok bool) {
	if v == nil {
		return "", false
	}
	var run []string
	for _, id := range ids {
		t, known := v.tokens[id]
		switch {
		case !known:
			return "", false
		case !t.Special:
			run = append(run, t.Content)
		case !skipSpecial:
			text, run = text+v.join(run)+t.Content, nil
		}
	}
	return strings.ToValidUTF8(text+v.join(run), "\uFFFD"), true
}

// has reports whether there is a token with an id.
func (v *Vocab) has(id int) bool {
	_, ok := v.tokens[id]
	return ok
}

// join decodes tokens that are not special.
func (v *Vocab) join(run []string) string {
	for _, s := range v.steps {
		for i, t := range run {
			run[i] = decoders[s.Type](s, t, i)
		}
		if s.Type == "Fuse" || s.Type == "ByteLevel" {
			run = []string{strings.Join(run, "")}
		}
	}
	return strings.Join(run, "")
}

// noDecoder is for a tokenizer without one: its tokens are words.
const noDecoder = "no decoder"

// decoders change the text of a token, the i-th of several, before they are joined.
var decoders = map[string]func(s *decoderStep, t string, i int) string{
	noDecoder:      func(_ *decoderStep, t string, i int) string { return spaced(t, i) },
	"BPEDecoder":   func(s *decoderStep, t string, _ int) string { return strings.ReplaceAll(t, s.Suffix, " ") },
	"ByteFallback": byteFallback,
	"ByteLevel":    byteLevel,
	"Fuse":         func(_ *decoderStep, t string, _ int) string { return t },
	"Metaspace":    (*decoderStep).metaspace,
	"Replace": func(s *decoderStep, t string, _ int) string {
		return strings.ReplaceAll(t, *s.Pattern.String, s.Content)
	},
	"Strip":     (*decoderStep).strip,
	"WordPiece": (*decoderStep).wordPiece,
}

func spaced(t string, i int) string {
	if i > 0 {
		t = " " + t
	}
	return t
}

func (s *decoderStep) wordPiece(t string, i int) string {
	if rest, ok := strings.CutPrefix(t, *cmp.Or(s.Prefix, new("##"))); ok && i > 0 {
		return rest
	}
	return spaced(t, i)
}

func (s *decoderStep) strip(t string, _ int) string {
	for range min(s.Start, len(t)) {
		t = strings.TrimPrefix(t, s.Content)
	}
	for range min(s.Stop, len(t)) {
		t = strings.TrimSuffix(t, s.Content)
	}
	return t
}

func (s *decoderStep) metaspace(t string, i int) string {
	t = strings.ReplaceAll(t, cmp.Or(s.Replacement, "▁"), " ")
	if i == 0 && s.PrependScheme != "never" && *cmp.Or(s.AddPrefixSpace, new(true)) {
		t = strings.TrimPrefix(t, " ")
	}
	return t
}

// byteFallback turns tokens such as <0xE2> into bytes.
func byteFallback(_ *decoderStep, t string, _ int) string {
	if len(t) == 6 && strings.HasPrefix(t, "<0x") && t[5] == '>' {
		if b, err := strconv.ParseUint(t[3:5], 16, 8); err == nil {
			return string([]byte{byte(b)})
		}
	}
	return t
}

// alphabet has the bytes of the characters that stand for them in GPT-2's: printable bytes of Latin-1 stand for
// themselves, the other 68 are U+0100 and up in their order.
var alphabet = func() map[rune]byte {
	bytes, next := map[rune]byte{}, rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' {
			bytes[b] = byte(b)
		} else {
			bytes[next] = byte(b)
			next++
		}
	}
	return bytes
}()

func byteLevel(_ *decoderStep, t string, _ int) string {
	out := make([]byte, 0, len(t))
	for _, r := range t {
		b, ok := alphabet[r]
		if !ok { // a token that is no bytes, as an added one
			return t
		}
		out = append(out, b)
	}
	return string(out)
}
