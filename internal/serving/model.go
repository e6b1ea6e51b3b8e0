package serving

import (
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/tensor"
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
func (m *Model) token(id int) (text string, ok bool) { return m.Vocab.Text([]int{id}, false) }

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

// Reference is what the reference says of one sequence of a case.
type Reference struct {
	Case   string
	Ask    Ask    // as the case is written, for as many tokens as there are
	Prompt []int  // token ids; nil if they are not known
	Tokens []int  // the reference's choices, in greedy order
	Rows   []Row  // the logits by which it chose each; nil where the golden has none
	Text   string // of the tokens, and maybe of more that follow; empty if it is not known

	Mistakes []dump.Mistake // what the reference makes of the prompt or the messages with a mistake
}

// from returns the reference of n tokens, or as many as there are, after the first k, asked as ids.
func (r *Reference) from(k, n int) *Reference {
	n = min(n, len(r.Tokens)-k)
	out := &Reference{Case: r.Case, Prompt: slices.Concat(r.Prompt, r.Tokens[:k]), Tokens: r.Tokens[k : k+n]}
	if r.Rows != nil {
		out.Rows = r.Rows[min(k, len(r.Rows)):min(k+n, len(r.Rows))]
	}
	out.Ask = Ask{As: AsIDs, IDs: out.Prompt, Tokens: n}
	return out
}

// first returns the reference of the first n tokens.
func (r *Reference) first(n int) *Reference {
	out := *r
	out.Tokens, out.Rows, out.Ask.Tokens = r.Tokens[:n], r.Rows[:min(n, len(r.Rows))], n
	return &out
}

// with returns the reference, asked with other keys of the request.
func (r *Reference) with(keys map[string]any) *Reference {
	out := *r
	out.Ask.extra = map[string]any{}
	maps.Copy(out.Ask.extra, r.Ask.extra)
	maps.Copy(out.Ask.extra, keys)
	return &out
}

// Row has the logits of one position: all of them, or the largest.
type Row struct {
	generation.Row
	noise float64 // of the difference of two of them
	shift float64 // of a log-probability
}

// NewRow returns a row of a model that is served in type d. The noise of the difference of two logits is
// that of [generation.Noise]. A log-probability is judged by what passes in tensors, not by the noise floor, and
// has the rounding of the sum over all. It may be off by
//
//	2 · compare.Default(d)[RowRelL2] · standard deviation of the logits
//
// or the noise, if that is more. MAX serves SmolLM2 in float32 with log-probabilities that are off by
// 2.1e-4, where this is 6e-4. November 2026.
func NewRow(of generation.Row, d tensor.DType) Row {
	r := Row{Row: of}
	if n := len(of.Top); n > 0 {
		r.noise = of.Noise(d, of.Top[0].Value, of.Top[n-1].Value)
		r.shift = max(r.noise, 2*compare.Default(d)[compare.RowRelL2]*of.Spread)
	}
	return r
}

// Best is the token with the largest logit, the first of equal ones; −1 of a row without any.
func (r Row) Best() int {
	if len(r.Top) == 0 {
		return -1
	}
	return r.Top[0].Token
}

// LogProb is the logarithm of the probability of a token among all; ok is false where its logit is not
// known.
func (r Row) LogProb(id int) (p float64, ok bool) {
	x, ok := r.Logit(id)
	return x - r.All, ok
}

// tied reports whether a server may choose a token where the reference chose another, its best. own is
// by how much the server has that one ahead, NaN where it does not say so, and rounding that of it.
func (r Row) tied(best, choice int, own, rounding float64) bool {
	b, ok := r.Logit(best)
	c, known := r.Logit(choice)
	return ok && known && generation.WithinNoise(b-c, own, r.noise+rounding)
}
