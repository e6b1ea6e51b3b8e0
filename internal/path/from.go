package path

import (
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

	at map[int]found // by sequence
}

// From puts the rows of other sheets in the order in which s fed them: a run with a step for each of
// its forward passes. Of several rows of one token the first that was fed counts.
func (s *Sheet) From(others ...*Sheet) (*Found, error) {
	at, err := s.find(others)
	if err != nil {
		return nil, err
	}
	out := &Found{at: at}
	for i, f := range at {
		out.Assumed = out.Assumed || f.sheet != nil && len(s.Tokens[i]) < len(f.sheet.Tokens[f.sequence])
	}
	entries, skipped, err := s.gather(others[0].Run.Path, func(_ *Pass, i dump.PassItem) found { return at[i.Sequence] })
	if err != nil {
		return nil, err
	}
	out.Skipped = skipped
	first := others[0].Run
	info := first.Info
	info.TokenIDs, info.Generation = s.Run.Info.TokenIDs, s.Run.Info.Generation // those that were found
	out.Run = dump.New(first.Path, info, first.OrderBy, entries)
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
	entries, _, err := s.gather(f.Run.Path, func(p *Pass, i dump.PassItem) found { return found{of(p, i), f.at[i.Sequence].sequence} })
	if err != nil {
		return nil, err
	}
	return dump.New(f.Run.Path, f.Run.Info, f.Run.OrderBy, entries), nil
}

// gather makes the entries of all forward passes that were found. The others are skipped.
func (s *Sheet) gather(path string, of func(*Pass, dump.PassItem) found) (entries []dump.Entry, skipped []string, err error) {
	for _, p := range s.Passes {
		at := map[int]found{}
		for _, i := range p.Items {
			if f := of(p, i); f.sheet != nil {
				at[i.Sequence] = f
			}
		}
		if slices.ContainsFunc(p.Items, func(i dump.PassItem) bool { return at[i.Sequence].sheet == nil }) {
			skipped = append(skipped, p.Step)
			continue
		}
		of, err := p.from(at)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, of...)
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("no port of %s has the rows that %s fed", path, s.Run.Path)
	}
	return entries, skipped, nil
}

// find finds each sequence that was fed: the one with its tokens, or else the shortest that begins
// with them.
func (s *Sheet) find(others []*Sheet) (map[int]found, error) {
	at := map[int]found{}
	known := false
	var missing error
	for _, item := range s.items() {
		i := item.Sequence
		if _, done := at[i]; done {
			continue
		}
		if at[i] = findTokens(s.Tokens[i], others); at[i].sheet != nil {
			known = true
		} else if missing == nil {
			missing = &OtherTokensError{otherTokens(i, s.Tokens[i], others)}
		}
	}
	if missing != nil && (s.Path.Kind != dump.Repeat || !known) {
		return nil, missing
	}
	return at, nil
}

func findTokens(tokens []int, others []*Sheet) (best found) {
	for _, o := range others {
		for j, have := range o.Tokens {
			if len(have) < len(tokens) || o.Exact && len(have) > len(tokens) || !slices.Equal(have[:len(tokens)], tokens) || !o.fed(j) {
				continue
			}
			if best.sheet == nil || len(have) < len(best.sheet.Tokens[best.sequence]) {
				best = found{o, j}
			}
		}
	}
	return best
}

func (s *Sheet) fed(sequence int) bool {
	return slices.ContainsFunc(s.Passes, func(p *Pass) bool { return p.Index(sequence) >= 0 })
}

// otherTokens says which token is the first that the nearest golden does not have.
func otherTokens(sequence int, tokens []int, others []*Sheet) string {
	at, token := -1, 0
	for _, o := range others {
		for _, have := range o.Tokens {
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
		}
	}
	if at == len(tokens) {
		return fmt.Sprintf("sequence %d of the candidate has the first %d tokens of a golden alone, and its rows may depend on later ones: "+
			"want a golden of just these tokens, the reference run along the same path", sequence, len(tokens))
	}
	if token < 0 {
		return fmt.Sprintf("by token_ids of run.json, sequence %d of the candidate has %d tokens, and the golden ends after %d of them",
			sequence, len(tokens), at)
	}
	return fmt.Sprintf("by token_ids of run.json, token %d of sequence %d is %d in the candidate and %d in the golden that is most like it",
		at, sequence, tokens[at], token)
}

// from makes the entries of a pass: the ports of its first sequence, in the order in which they ran.
func (p *Pass) from(at map[int]found) (entries []dump.Entry, err error) {
	first := at[p.Items[0].Sequence]
	for _, e := range first.sheet.entries[first.sheet.began[first.sequence]] {
		t, err := p.gather(nameKey{e.Layer, e.Port}, at)
		if err != nil {
			return nil, fmt.Errorf("step %s: %s: %w", p.Step, e.Label(), err)
		}
		if t != nil {
			entries = append(entries, dump.Entry{Step: p.Step, Layer: e.Layer, Port: e.Port, Tensor: t})
		}
	}
	return entries, nil
}

// gather puts the rows of all items together; nil if not all of them have any.
func (p *Pass) gather(key nameKey, at map[int]found) (*tensor.Tensor, error) {
	var parts []*tensor.Tensor
	a := none
	for i, item := range p.Items {
		f := at[item.Sequence]
		of, ok := f.sheet.axes[key]
		if of == lastRows && p.grid != nil && !p.grid[p.lines[i]][0] {
			return nil, nil // what pools the first row of a sequence takes padding there
		}
		if !ok || of == none || a != none && a != of {
			return nil, nil
		}
		a = of
		rows, err := f.sheet.rows(key, f.sequence, item.From, item.To)
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
		return tensor.Concat(a.along(), parts...)
	}
	if !t.Contiguous() {
		t = t.Copy() // so that equal values can be found by their bytes
	}
	return t, nil
}

// fedAt is a row of a forward pass, or the last of an item and its number.
type fedAt struct {
	pass *Pass
	row  int
}

// index finds where each token was fed first, and the items that end with it.
func (s *Sheet) index() {
	s.first, s.ends, s.began = map[Row]fedAt{}, map[Row][]fedAt{}, map[int]string{}
	for _, p := range s.Passes {
		for i, row := range p.Rows {
			if _, known := s.first[row]; !known {
				s.first[row] = fedAt{p, i}
			}
		}
		for i, item := range p.Items {
			if _, known := s.began[item.Sequence]; !known {
				s.began[item.Sequence] = p.Step
			}
			last := Row{item.Sequence, item.To - 1}
			s.ends[last] = append(s.ends[last], fedAt{p, i})
		}
	}
}

// rows returns the rows of a port that are the tokens from ≤ i < to of a sequence, in several parts
// if several passes fed them; nil if there are not all of them.
func (s *Sheet) rows(key nameKey, sequence, from, to int) (parts []*tensor.Tensor, err error) {
	a := s.axes[key]
	if a == lastRows {
		for _, at := range s.ends[Row{sequence, to - 1}] {
			if t := s.ports[portKey{at.pass.Step, key}]; t != nil {
				t, err = t.Slice(0, at.row, at.row+1)
				return []*tensor.Tensor{t}, err
			}
		}
		return nil, nil
	}
	for n := 1; from < to; from, n = from+n, 1 {
		at, fed := s.first[Row{sequence, from}]
		if !fed || s.ports[portKey{at.pass.Step, key}] == nil {
			return nil, nil
		}
		for from+n < to && s.first[Row{sequence, from + n}] == (fedAt{at.pass, at.row + n}) {
			n++
		}
		t, err := s.ports[portKey{at.pass.Step, key}].Slice(a.along(), at.row, at.row+n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, t)
	}
	return parts, nil
}
