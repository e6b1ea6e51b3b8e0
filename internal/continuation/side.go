package continuation

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/tensor"
)

// Side is what one engine computed along a text.
type Side struct {
	Case string
	From string // file or folder, for errors
	Run  *dump.Run

	Prompt  int    // tokens of the prompt; −1 where that is not known
	Text    []int  // the prompt and its continuation; nil where that is not known
	Choices []int  // the engine's own, from the first token behind the prompt; nil where it does not say
	Shown   string // how it goes on by itself
	// Known is how many tokens the tokenizer has: models often have logits for more, which no engine
	// chooses, and which do not count. 0: not known.
	Known int

	// Of what other tools wrote.
	Asked string // the prompt as a text
	Fed   []int  // the continuation, where the tokens of the prompt are not known
	Free  bool   // it was not forced: behind the first other token, it has another text
	// Stopped says that the engine ended the text, which may then be one token short: most do not show the
	// one that ends it.
	Stopped bool
	words   words // of the texts of tokens; nil where tokens are ids

	logits logits
}

// logits are rows by the token that they decide, counted from 0.
type logits interface {
	has(k int) (bool, error)
	row(k int) (r generation.Row, ok bool, err error)
	where() (layer, port string)
	dtype() tensor.DType
}

// Error says why a generation cannot be judged.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func unjudged(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Open reads the side of an open run: one sequence, its tokens and its logits. other, which may be nil,
// says what the run does not: how long the prompt is, and how many tokens have a logit.
func Open(r *dump.Run, other *Side) (*Side, error) {
	s := &Side{Case: r.Info.Case, From: filepath.ToSlash(r.Path), Run: r, Prompt: -1, Shown: r.Info.ReferenceText}
	if g := r.Info.Generation; g != nil {
		s.Prompt, s.Choices = g.From, g.Tokens
	} else if other != nil {
		s.Prompt = other.Prompt
		if r.Info.Passes != nil {
			r.Info.Generation = &dump.Generation{From: other.Prompt}
		}
	}
	if k, err := keptOf(r); err != nil || k != nil {
		if k != nil {
			s.logits, s.Known = k, k.known
		}
		if tokens := r.Info.Tokens(); len(tokens) == 1 {
			s.Text = tokens[0]
		}
		return s, err
	}
	sheet, err := path.New(r, nil)
	if err != nil {
		return nil, unjudged("%v", err)
	}
	if len(sheet.Tokens) != 1 {
		return nil, unjudged("%s has %d sequences in token_ids of run.json: want a dump for each text", s.From, len(sheet.Tokens))
	}
	s.Text = sheet.Tokens[0]
	if s.Prompt < 0 {
		s.Prompt = len(r.Info.Unpadded()[0])
	}
	if s.Prompt < 1 || s.Prompt > len(s.Text) {
		return nil, unjudged("%s has %d tokens, and the prompt %d: want the same prompt on both sides", s.From, len(s.Text), s.Prompt)
	}
	s.logits, err = findLogits(s, sheet, other)
	return s, err
}

// incremental reports whether the tokens were run one by one. What other tools write is of such runs, and so
// is what a fixture keeps.
func (s *Side) incremental() bool {
	_, one := s.logits.(*dumped)
	return !one || len(s.Run.Steps()) > 1
}

// OpenGolden is Open of the reference's run. actual, which may be nil, is the candidate's: where the
// golden does not say how long the prompt is, it does.
func OpenGolden(r, actual *dump.Run) (*Side, error) {
	if r.Info.Generation == nil && actual != nil && actual.Info.Generation != nil && (r.Info.Passes != nil || len(r.Steps()) == 1) {
		r.Info.Generation = &dump.Generation{From: actual.Info.Generation.From}
	}
	return Open(r, nil)
}

// dumped are the logits of a dump.
type dumped struct {
	sheet       *path.Sheet
	prompt      int
	layer, port string
	vocabulary  int
	known       int // see Side.Known
	of          tensor.DType
}

func (l *dumped) where() (string, string) { return l.layer, l.port }
func (l *dumped) dtype() tensor.DType     { return l.of }

func (l *dumped) has(k int) (bool, error) {
	t, err := l.tensor(k)
	return t != nil, err
}

func (l *dumped) row(k int) (r generation.Row, ok bool, err error) {
	t, err := l.tensor(k)
	if err != nil || t == nil {
		return r, false, err
	}
	v := make([]float64, l.vocabulary)
	t.Float64s(v, 0)
	return generation.NewRow(v).Of(l.known), true, nil
}

// tensor is the row that decides a token; nil where it was not recorded.
func (l *dumped) tensor(k int) (*tensor.Tensor, error) {
	at := l.prompt - 1 + k
	if at >= len(l.sheet.Tokens[0]) {
		return nil, nil
	}
	parts, err := l.sheet.Rows(l.layer, l.port, 0, at, at+1)
	if err != nil || len(parts) != 1 || parts[0].Len() != l.vocabulary {
		return nil, err
	}
	return parts[0], nil
}

// The layer that holds what a golden keeps of the logits along a text, and its ports: [tokens, 64], of
// each token the 64 that are most likely and their logits; [tokens], log Σ exp and the standard
// deviation of all logits, and log Σ exp with those that do not count.
const (
	KeptLayer  = "generation"
	KeptTokens = "top_tokens"
	KeptLogits = "top_logits"
	KeptLSE    = "log_sum_exp"
	KeptAll    = "log_sum_exp_all" // not there where all count
	KeptSpread = "spread"
	KeptKnown  = "known_tokens" // a number, see [Side]; not there where that is not known
)

// kept are logits of which a golden has the largest.
type kept struct {
	tokens, logits, lse, all, spread *tensor.Tensor
	known                            int
}

func (l *kept) where() (string, string) { return KeptLayer, KeptLogits }
func (l *kept) dtype() tensor.DType     { return l.logits.DType() }

// keptOf returns what a golden keeps of the logits; nil if the run is none of those.
func keptOf(r *dump.Run) (*kept, error) {
	k := &kept{}
	for _, e := range r.Entries {
		if e.Layer != KeptLayer {
			continue
		}
		switch e.Port {
		case KeptTokens:
			k.tokens = e.Tensor
		case KeptLogits:
			k.logits = e.Tensor
		case KeptLSE:
			k.lse = e.Tensor
		case KeptAll:
			k.all = e.Tensor
		case KeptSpread:
			k.spread = e.Tensor
		case KeptKnown:
			if e.Tensor.Len() == 1 {
				k.known = int(e.Tensor.At(0))
			}
		}
	}
	if k.tokens == nil || k.logits == nil || k.lse == nil || k.spread == nil {
		return nil, nil
	}
	n := k.lse.Len()
	if k.all == nil {
		k.all = k.lse
	}
	if k.spread.Len() != n || k.all.Len() != n || k.tokens.Len() != k.logits.Len() || n == 0 || k.tokens.Len()%n != 0 {
		return nil, unjudged("%s: the ports of layer %s do not fit together: make the golden again", r.Path, KeptLayer)
	}
	return k, nil
}

func (l *kept) has(k int) (bool, error) { return k < l.lse.Len(), nil }

func (l *kept) row(k int) (r generation.Row, ok bool, err error) {
	n := l.lse.Len()
	if k >= n {
		return r, false, nil
	}
	var top []generation.Logit
	each := l.tokens.Len() / n
	for i := k * each; i < (k+1)*each; i++ {
		if token := int(l.tokens.At(i)); token >= 0 {
			top = append(top, generation.Logit{Token: token, Value: l.logits.At(i)})
		}
	}
	r = generation.Largest(top, l.lse.At(k), l.spread.At(k))
	r.All = l.all.At(k)
	return r, true, nil
}

// choosing leaves the logits out that no engine chooses by.
func (s *Side) choosing(known int) {
	if l, ok := s.logits.(*dumped); ok && known > 0 {
		l.known, s.Known = known, known
	}
}

// Keep makes the entries of a golden from the logits of a side, of its first n tokens, of which known
// count, or all for 0.
func (s *Side) Keep(n, known int) ([]dump.Entry, error) {
	s.choosing(known)
	var tokens []int64
	var values, lse, all, spread []float32
	for k := range n {
		r, ok, err := s.logits.row(k)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, s.missing(k)
		}
		for i := range generation.Kept {
			token, value := int64(-1), float32(math.Inf(-1)) // a smaller vocabulary
			if i < len(r.Top) {
				token, value = int64(r.Top[i].Token), float32(r.Top[i].Value)
			}
			tokens, values = append(tokens, token), append(values, value)
		}
		lse, all, spread = append(lse, float32(r.LSE)), append(all, float32(r.All)), append(spread, float32(r.Spread))
	}
	var entries []dump.Entry
	add := func(port string, t *tensor.Tensor, err error) error {
		entries = append(entries, dump.Entry{Step: "0", Layer: KeptLayer, Port: port, Tensor: t})
		return err
	}
	t, err := tensor.Of(tokens, n, generation.Kept)
	if err = add(KeptTokens, t, err); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		port   string
		values []float32
		shape  []int
	}{{KeptLogits, values, []int{n, generation.Kept}}, {KeptLSE, lse, []int{n}}, {KeptSpread, spread, []int{n}}} {
		t, err := tensor.Of(x.values, x.shape...)
		if err = add(x.port, t, err); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(lse, all) {
		t, err := tensor.Of(all, n)
		if err = add(KeptAll, t, err); err != nil {
			return nil, err
		}
	}
	if s.Known > 0 {
		t, err := tensor.Of([]int64{int64(s.Known)}, 1)
		if err = add(KeptKnown, t, err); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// listed are rows that were read at once.
type listed struct {
	rows []generation.Row
	port string
	of   tensor.DType
}

func (l *listed) where() (string, string) { return "logits", l.port }
func (l *listed) dtype() tensor.DType     { return l.of }

func (l *listed) has(k int) (bool, error) { return k < len(l.rows), nil }

func (l *listed) row(k int) (r generation.Row, ok bool, err error) {
	if k >= len(l.rows) {
		return r, false, nil
	}
	return l.rows[k], true, nil
}

// fed is the continuation.
func (s *Side) fed() []int {
	if s.Fed == nil && s.Prompt >= 0 && s.Prompt <= len(s.Text) {
		return s.Text[s.Prompt:]
	}
	return s.Fed
}

func (s *Side) missing(k int) error {
	layer, port := s.logits.where()
	at := ""
	if s.Prompt > 0 {
		at = fmt.Sprintf(", row %d,", s.Prompt-1+k)
	}
	return unjudged("%s has no logits%s for token %d of the continuation (%s %s): rows missing, record all of them", s.From, at, k, layer, port)
}

// Row is what is known of the logits that decide token k; false where they were not recorded.
func (s *Side) Row(k int) (r generation.Row, ok bool, err error) { return s.logits.row(k) }

// Logits are the layer and port that have the logits.
func (s *Side) Logits() (layer, port string) { return s.logits.where() }

// Choices are the tokens with the largest logits, of entries that Keep made.
func Choices(entries []dump.Entry) (tokens []int) {
	for _, e := range entries {
		if e.Port == KeptTokens {
			for k := range e.Tensor.Len() / generation.Kept {
				tokens = append(tokens, int(e.Tensor.At(k*generation.Kept)))
			}
		}
	}
	return tokens
}
