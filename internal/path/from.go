package path

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// OtherTokensError says that a run was given tokens that no golden has.
type OtherTokensError struct{ text string }

func (e *OtherTokensError) Error() string { return e.text }

// found is where the tokens of a sequence are in another sheet.
type found struct {
	sheet    *Sheet
	sequence int
}

// At is the sheet that has a sequence of the run, and the sequence there; nil where none has.
func (f *Found) At(sequence int) (s *Sheet, there int) {
	at := f.at[sequence]
	return at.sheet, at.sequence
}

// Found says how the rows of a run were found.
type Found struct {
	Run     *dump.Run
	Assumed bool     // a sequence is the beginning of a longer one, whose rows are right only if the model is causal
	Skipped []string // forward passes of tokens that no golden has, which repeat puts between its runs

	at []found // by sequence
}

// From puts the rows of other sheets in the order in which s fed them: a run with a step for each of
// its forward passes. Sequences that no sheet has may stand between the runs of repeat.
func (s *Sheet) From(others ...*Sheet) (out *Found, err error) {
	out = &Found{at: make([]found, len(s.Tokens))}
	known := false
	for i, tokens := range s.Tokens {
		if s.began(i) == nil {
			continue
		}
		f, other := findTokens(i, tokens, others)
		known, err = known || other == nil, cmp.Or(err, other)
		out.Assumed = out.Assumed || other == nil && len(tokens) < len(f.sheet.Tokens[f.sequence])
		out.at[i] = f
	}
	if err != nil && (s.Path.Kind != dump.Repeat || !known) {
		return nil, err
	}
	like := *others[0].Run
	like.Info.TokenIDs, like.Info.Generation = s.Run.Info.TokenIDs, s.Run.Info.Generation // those that were found
	at := func(_ *Pass, i dump.PassItem) found { return out.at[i.Sequence] }
	if out.Run, out.Skipped, err = s.gather(&like, at); err != nil {
		return nil, err
	}
	for _, o := range others {
		out.Run.Watch(o.Run.Changed)
		for _, n := range o.Run.Notes {
			if !slices.Contains(out.Run.Notes, n) {
				out.Run.Notes = append(out.Run.Notes, n)
			}
		}
	}
	return out, nil
}

// With returns the run with the rows of sheets that have the tokens of those where they were found: of each
// item of a forward pass another one, nil for none.
func (f *Found) With(s *Sheet, of func(*Pass, dump.PassItem) *Sheet) (*dump.Run, error) {
	at := func(p *Pass, i dump.PassItem) found { return found{of(p, i), f.at[i.Sequence].sequence} }
	run, _, err := s.gather(f.Run, at)
	return run, err
}

// gather makes a run like another one of the rows of all forward passes that were found, with the ports of the first
// sequence of each, in the order in which they ran. The other passes are skipped.
func (s *Sheet) gather(like *dump.Run, of func(*Pass, dump.PassItem) found) (r *dump.Run, skipped []string, err error) {
	var entries []dump.Entry
	for _, p := range s.Passes {
		var at []found
		for _, i := range p.Items {
			if f := of(p, i); f.sheet != nil {
				at = append(at, f)
			}
		}
		if len(at) < len(p.Items) {
			skipped = append(skipped, p.Step)
			continue
		}
		for _, e := range at[0].sheet.began(at[0].sequence).entries {
			t, err := p.gather(nameKey{e.Layer, e.Port}, at)
			if err != nil {
				return nil, nil, fmt.Errorf("step %s: %s: %w", p.Step, e.Label(), err)
			}
			if t != nil {
				entries = append(entries, dump.Entry{Step: p.Step, Layer: e.Layer, Port: e.Port, Tensor: t})
			}
		}
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("no port of %s has the rows that %s fed", like.Path, s.Run.Path)
	}
	return dump.New(like.Path, like.Info, like.OrderBy, entries), skipped, nil
}

// gather puts the rows of all items together; nil if not all of them have any.
func (p *Pass) gather(key nameKey, at []found) (*tensor.Tensor, error) {
	var parts []*tensor.Tensor
	a := at[0].sheet.axis(key)
	for i, item := range p.Items {
		f := at[i]
		if of := f.sheet.axis(key); of == none || of != a {
			return nil, nil
		}
		if _, first := p.Place(i, 0); a == lastRows && first > 0 {
			return nil, nil // what pools the first row of a sequence takes padding there
		}
		rows, err := f.sheet.Rows(key.layer, key.port, f.sequence, item.From, item.To)
		if err != nil || rows == nil {
			return nil, err
		}
		parts = append(parts, rows...)
	}
	t := parts[0]
	if len(parts) > 1 {
		for _, other := range parts[1:] {
			if !slices.Equal(a.rest(t.Shape()), a.rest(other.Shape())) || t.DType() != other.DType() || len(t.Shape()) != len(other.Shape()) {
				return nil, nil
			}
		}
		return tensor.Concat(max(int(a), 0), parts...)
	}
	if !t.Contiguous() {
		t = t.Copy() // so that equal values can be found by their bytes
	}
	return t, nil
}

// began is the forward pass that fed a sequence first; nil for none.
func (s *Sheet) began(sequence int) *Pass {
	k := slices.IndexFunc(s.Passes, func(p *Pass) bool { return p.Index(sequence) >= 0 })
	if k < 0 {
		return nil
	}
	return s.Passes[k]
}

// findTokens finds the sequence with these tokens, or else the shortest that begins with them. Where there is
// none, other is an [*OtherTokensError]: which token is the first that the nearest one does not have.
func findTokens(sequence int, tokens []int, others []*Sheet) (best found, other error) {
	at, token := -1, -1
	for _, o := range others {
		for j, have := range o.Tokens {
			n := 0
			for n < min(len(have), len(tokens)) && have[n] == tokens[n] {
				n++
			}
			if n > at {
				at, token = n, -1
				if n < len(have) {
					token = have[n]
				}
			}
			if n < len(tokens) || o.Exact && len(have) > n || o.began(j) == nil {
				continue
			}
			if best.sheet == nil || len(have) < len(best.sheet.Tokens[best.sequence]) {
				best = found{o, j}
			}
		}
	}
	say := func(format string, args ...any) error { return &OtherTokensError{fmt.Sprintf(format, args...)} }
	switch {
	case best.sheet != nil:
	case at == len(tokens):
		other = say("sequence %d of the candidate has the first %d tokens of a golden alone, and its rows may depend on later ones: "+
			"want a golden of just these tokens, the reference run along the same path", sequence, len(tokens))
	case token < 0:
		other = say("by token_ids of run.json, sequence %d of the candidate has %d tokens, and the golden ends after %d of them",
			sequence, len(tokens), at)
	default:
		other = say("by token_ids of run.json, token %d of sequence %d is %d in the candidate and %d in the golden that is most like it",
			at, sequence, tokens[at], token)
	}
	return best, other
}
