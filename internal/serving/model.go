package serving

import (
	"slices"
	"strings"
)

// Model is what is known of the model besides its goldens. What is not known is not judged.
type Model struct {
	EOS   []int  // tokens that end a text, by the model's own files; nil if they are not known
	Vocab *Vocab // nil if there is none, or one that is not understood
}

// ends reports whether a token ends a text.
func (m *Model) ends(id int) bool { return slices.Contains(m.EOS, id) }

// texts are what a server may write for tokens: with special tokens and without, and with spaces
// before punctuation or without, as older tokenizers do. nil if that is not known.
func (m *Model) texts(ids []int) (all []string) {
	if m.Vocab == nil {
		return nil
	}
	for _, skip := range []bool{true, false} {
		text, ok := m.Vocab.Text(ids, skip)
		if !ok || broken(plain(text)) {
			return nil
		}
		all = append(all, plain(text), plain(punctuation.Replace(text)))
	}
	return all
}

// token is the text of a single token, as servers name it among log-probabilities.
func (m *Model) token(id int) (text string, ok bool) {
	if m.Vocab == nil {
		return "", false
	}
	return m.Vocab.Text([]int{id}, false)
}

var punctuation = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m",
	" 's", "'s", " 've", "'ve", " 're", "'re")

// plain leaves out the space around a text, which servers trim or not, and the beginning of a character that the text
// breaks off in, which they write as U+FFFD or hold back.
func plain(text string) string {
	return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), "\uFFFD"))
}

// broken reports whether a text holds bytes that are no character.
func broken(text string) bool { return strings.ContainsRune(text, '\uFFFD') }

// unended is a text without what ends one, which may be written.
func (m *Model) unended(text string) string {
	is := plain(text)
	for _, id := range m.EOS {
		if end, ok := m.token(id); ok {
			is = plain(strings.TrimSuffix(is, end))
		}
	}
	return is
}

// text reports whether a text is that of tokens, and whether that is known: by the vocabulary, or by
// the reference's own text, which may go on. Texts of bytes that are no characters tell nothing.
func (m *Model) text(ref *Reference, ids []int, text string) (right, known bool) {
	is := m.unended(text)
	texts := m.texts(ids)
	if slices.Contains(texts, is) {
		return true, true
	}
	want := ref.plain()
	if want == "" || !beginning(ids, ref.Tokens) || is == "" && broken(text) {
		return false, texts != nil
	}
	whole := len(ids) == len(ref.Tokens)
	switch {
	case whole && strings.HasPrefix(is, want): // after it may stand what ends a text
		return true, true
	case texts != nil || is == "" && len(ids) > 0 && !m.ends(ids[0]):
		return false, true
	}
	return strings.HasPrefix(want, is), true
}

// plain is the reference's own text without its prompt; empty if it is not known.
func (r *Reference) plain() string {
	text := plain(r.Text)
	if broken(text) {
		return ""
	}
	if prompt := plain(r.Ask.Prompt); prompt != "" {
		text = plain(strings.TrimPrefix(text, prompt))
	}
	return text
}

// beginning reports whether a list begins with another.
func beginning(of, list []int) bool { return len(of) <= len(list) && slices.Equal(of, list[:len(of)]) }
