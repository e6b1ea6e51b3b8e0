// Package continuation judges runs of a generation: an engine that was forced along the reference's
// greedy text, token by token or in one pass, beside the reference.
//
// A [Side] is one of the two, whatever wrote it: a dump, a golden that keeps the largest logits alone,
// or the JSON of another tool. [Compare] puts their rows of logits to the tokens that they decide,
// package generation judges these, and where a token or its logits are wrong package judge says which
// layer is the first, in which forward pass.
package continuation

import (
	"fmt"
	"path/filepath"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/path"
)

// Side is what one engine computed along a text.
type Side struct {
	Case string
	From string // file or folder, for errors
	Run  *dump.Run

	Prompt  int    // tokens of the prompt; −1 where that is not known
	Text    []int  // the prompt and its continuation; nil where that is not known
	Fed     []int  // the continuation
	Choices []int  // the engine's own, from the first token after the prompt; nil where it does not say
	Shown   string // how it goes on by itself
	// Known is how many tokens the tokenizer has: models often have logits for more, which no engine
	// chooses, and which do not count. 0: not known.
	Known int

	// Of what other tools wrote.
	Asked string // the prompt as a text
	Free  bool   // it was not forced: after the first other token, it has another text
	// Stopped says that the engine ended the text, which may then be one token short: most do not show the
	// one that ends it.
	Stopped bool
	words   words // of the texts of tokens; nil where tokens are ids

	logits *logits
	kept   bool // a golden keeps these, and no layers
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
	var err error
	if s.logits, s.Known, err = kept(r); err != nil || s.logits != nil {
		s.kept = true
		if tokens := r.Info.Tokens(); len(tokens) == 1 && s.Prompt >= 0 {
			s.Text = tokens[0]
			s.Fed = s.Text[min(s.Prompt, len(s.Text)):]
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
	s.Fed = s.Text[s.Prompt:]
	s.logits, err = find(s, sheet, other)
	return s, err
}

// OpenGolden is Open of the reference's run. actual, which may be nil, is the candidate's: where the
// golden does not say how long the prompt is, it does.
func OpenGolden(r, actual *dump.Run) (*Side, error) {
	if r.Info.Generation == nil && actual != nil && actual.Info.Generation != nil && (r.Info.Passes != nil || len(r.Steps()) == 1) {
		r.Info.Generation = &dump.Generation{From: actual.Info.Generation.From}
	}
	return Open(r, nil)
}

// incremental reports whether the tokens were run one by one. What other tools write is of such runs, and so
// is what a fixture keeps.
func (s *Side) incremental() bool { return s.Run == nil || s.kept || len(s.Run.Steps()) > 1 }

func (s *Side) missing(k int) error {
	at := ""
	if s.Prompt > 0 {
		at = fmt.Sprintf(", row %d,", s.Prompt-1+k)
	}
	return unjudged("%s has no logits%s for token %d of the continuation (%s): rows missing, record all of them", s.From, at, k, s.logits.where())
}

// Row is what is known of the logits that decide token k; false where they were not recorded.
func (s *Side) Row(k int) (r generation.Row, ok bool) {
	if !s.logits.has(k) {
		return r, false
	}
	return s.logits.rows[k]().Of(s.Known), true
}

// Logits are the layer and port that have the logits.
func (s *Side) Logits() (layer, port string) { return s.logits.layer, s.logits.port }
