package paths

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Side is what one engine computed along a text, whatever wrote it: a dump, a golden that keeps the largest logits
// alone, or the JSON of another tool.
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

// SideError says why a generation cannot be judged.
type SideError struct{ text string }

func (e *SideError) Error() string { return e.text }

func unjudged(format string, args ...any) error { return &SideError{fmt.Sprintf(format, args...)} }

// OpenSide reads the side of an open run: one sequence, its tokens and its logits. other, which may be nil,
// says what the run does not: how long the prompt is, and how many tokens have a logit.
func OpenSide(r *dump.Run, other *Side) (*Side, error) {
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

// OpenGolden is OpenSide of the reference's run. actual, which may be nil, is the candidate's: where the
// golden does not say how long the prompt is, it does.
func OpenGolden(r, actual *dump.Run) (*Side, error) {
	if r.Info.Generation == nil && actual != nil && actual.Info.Generation != nil && (r.Info.Passes != nil || len(r.Steps()) == 1) {
		r.Info.Generation = &dump.Generation{From: actual.Info.Generation.From}
	}
	return OpenSide(r, nil)
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

// logits are rows by the token that they decide, counted from 0; nil for one that was not recorded.
type logits struct {
	layer, port string
	step        string // of a dump, the first
	of          tensor.DType
	rows        []func() generation.Row
	width, n    int // of a row of a dump, and how many there are
}

func (l *logits) where() string { return l.layer + " " + l.port }

func (l *logits) has(k int) bool { return k < len(l.rows) && l.rows[k] != nil }

// listed are rows that were read at once.
func listed(port string, of tensor.DType, rows []generation.Row) *logits {
	l := &logits{layer: "logits", port: port, of: of}
	for _, r := range rows {
		l.rows = append(l.rows, func() generation.Row { return r })
	}
	return l
}

// find finds the output of a run that holds logits: wide enough for each token, one row for each
// token that decides another, by its name, or else the last of the run.
func find(s *Side, sheet *path.Sheet, other *Side) (*logits, error) {
	least := slices.Max(slices.Concat([]int{1}, s.Text, s.Choices))
	var best *logits
	most := make([]int, 5) // as wide as the other side's, named, rows, surely named, place
	seen, last := map[[2]string]bool{}, -1
	for i, e := range sheet.Run.Entries {
		if label.IsInput(e.Port) {
			continue
		}
		if e.Step == sheet.Passes[0].Step {
			last = i
		}
		key := [2]string{e.Layer, e.Port}
		if seen[key] || !e.Tensor.DType().IsFloat() {
			continue
		}
		seen[key] = true
		l := dumped(s, sheet, e, least)
		if l == nil {
			continue
		}
		named, fits := label.LogitsRank(e.Layer, e.Port), 0
		if other != nil && other.logits.width == l.width {
			fits = 1
		}
		if rank := []int{fits, min(named, 1), l.n, named, i}; slices.Compare(rank, most) > 0 {
			best, most = l, rank
		}
	}
	if best == nil || most[0] == 0 && most[1] == 0 && most[4] != last {
		return nil, unjudged("%s has no logits: no output has a row for each token that is wider than the largest token id, %d: "+
			"record the output of the last layer, of all rows", s.From, least)
	}
	return best, nil
}

// dumped are the rows of a port of a dump; nil where these are no wider than that.
func dumped(s *Side, sheet *path.Sheet, e dump.Entry, least int) *logits {
	l := &logits{layer: e.Layer, port: e.Port, step: e.Step, of: e.Tensor.DType()}
	l.rows = make([]func() generation.Row, len(s.Text)-s.Prompt+1)
	for k := range l.rows {
		at := s.Prompt - 1 + k
		parts, err := sheet.Rows(e.Layer, e.Port, 0, at, at+1)
		if err != nil || len(parts) != 1 {
			continue
		}
		row := parts[0]
		if l.width = cmp.Or(l.width, row.Len()); l.width <= least {
			return nil
		}
		if row.Len() == l.width {
			l.n++
			l.rows[k] = func() generation.Row { return generation.NewRow(vec.ReadAll(row)) }
		}
	}
	if l.n == 0 {
		return nil
	}
	return l
}

// The layer and the ports of a golden that keeps the largest logits alone.
const (
	KeptLayer  = "generation"
	keptTokens = "top_tokens"
	keptLogits = "top_logits"
	keptLSE    = "log_sum_exp"
	keptAll    = "log_sum_exp_all" // not there where all count
	keptSpread = "spread"
	keptKnown  = "known_tokens" // a number, see [Side]; not there where that is not known
	keptBeyond = "beyond"       // 1 where a token that does not count has the largest logit; not there where none has
)

// kept are the logits of which a golden keeps the largest, and how many tokens count; nil if the run is
// none of those.
func kept(r *dump.Run) (l *logits, known int, err error) {
	of := map[string]*tensor.Tensor{}
	for _, e := range r.Entries {
		if e.Layer == KeptLayer {
			of[e.Port] = e.Tensor
		}
	}
	tokens, values, lse, spread := of[keptTokens], of[keptLogits], of[keptLSE], of[keptSpread]
	if tokens == nil || values == nil || lse == nil || spread == nil {
		return nil, 0, nil
	}
	n, all, beyond := lse.Len(), cmp.Or(of[keptAll], lse), of[keptBeyond]
	if spread.Len() != n || all.Len() != n || tokens.Len() != values.Len() || n == 0 || tokens.Len()%n != 0 {
		return nil, 0, unjudged("%s: the ports of layer %s do not fit together: make the golden again", r.Path, KeptLayer)
	}
	if t := of[keptKnown]; t != nil && t.Len() == 1 {
		known = int(t.At(0))
	}
	l = &logits{layer: KeptLayer, port: keptLogits, of: values.DType()}
	for k := range n {
		l.rows = append(l.rows, func() generation.Row {
			var top []generation.Logit
			each := tokens.Len() / n
			for i := k * each; i < (k+1)*each && tokens.At(i) >= 0; i++ {
				top = append(top, generation.Logit{Token: int(tokens.At(i)), Value: values.At(i)})
			}
			row := generation.Largest(top, lse.At(k), spread.At(k))
			row.All = all.At(k)
			row.Beyond = beyond != nil && k < beyond.Len() && beyond.At(k) != 0
			return row
		})
	}
	return l, known, nil
}

// Keep makes the entries of a golden from the logits of a side, of its first n tokens, of which known
// count, or all for 0; and the choices, those with the largest logits.
func (s *Side) Keep(n, known int) (entries []dump.Entry, choices []int, err error) {
	s.Known = cmp.Or(known, s.Known)
	const width = generation.Kept
	tokens := slices.Repeat([]int64{-1}, n*width) // −1 and −Inf where the vocabulary is smaller
	values := slices.Repeat([]float32{float32(math.Inf(-1))}, n*width)
	lse, all, spread, beyond := make([]float32, n), make([]float32, n), make([]float32, n), make([]int64, n)
	for k := range n {
		r, ok := s.Row(k)
		if !ok {
			return nil, nil, s.missing(k)
		}
		for i, l := range r.Top[:min(len(r.Top), width)] {
			tokens[k*width+i], values[k*width+i] = int64(l.Token), float32(l.Value)
		}
		lse[k], all[k], spread[k] = float32(r.LSE), float32(r.All), float32(r.Spread)
		if r.Beyond {
			beyond[k] = 1
		}
		choices = append(choices, int(tokens[k*width]))
	}
	add := func(port string) func(*tensor.Tensor, error) {
		return func(t *tensor.Tensor, wrong error) {
			entries = append(entries, dump.Entry{Step: "0", Layer: KeptLayer, Port: port, Tensor: t})
			err = cmp.Or(err, wrong)
		}
	}
	add(keptTokens)(tensor.Of(tokens, n, width))
	add(keptLogits)(tensor.Of(values, n, width))
	add(keptLSE)(tensor.Of(lse, n))
	add(keptSpread)(tensor.Of(spread, n))
	if !slices.Equal(lse, all) {
		add(keptAll)(tensor.Of(all, n))
	}
	if slices.Contains(beyond, 1) {
		add(keptBeyond)(tensor.Of(beyond, n))
	}
	if s.Known > 0 {
		add(keptKnown)(tensor.Of([]int64{int64(s.Known)}, 1))
	}
	return entries, choices, err
}
