package path

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// NotTakenError says that the forward passes of a run do not show the execution path that it names.
type NotTakenError struct{ Path, Want string }

func (e *NotTakenError) Error() string {
	return fmt.Sprintf("path not taken: %s asks for %s, and the passes of run.json have none", e.Path, e.Want)
}

// Check returns an error if the forward passes do not show the path, or leave rows out that it has
// to feed.
func (s *Sheet) Check() error {
	if want := s.lacks(); want != "" {
		return &NotTakenError{s.Name, want}
	}
	if s.Path.Kind == dump.Lengths || s.Path.Kind == dump.Prefix {
		return nil
	}
	for i, ids := range s.Tokens {
		fed := make([]bool, len(ids))
		for _, p := range s.Passes {
			for _, item := range p.Items {
				if item.Sequence == i {
					for at := range fed[:item.To] {
						fed[at] = fed[at] || at >= item.From || at < item.CachedTokens
					}
				}
			}
		}
		if at := slices.Index(fed, false); at >= 0 {
			return fmt.Errorf("no forward pass fed token %d of sequence %d: %s has to feed all %d of token_ids, "+
				"list the pass that did or end token_ids there", at, i, s.Name, len(ids))
		}
	}
	return nil
}

// lacks is what the passes do not show; "" if they show the path.
func (s *Sheet) lacks() string {
	switch s.Path.Kind {
	case dump.Decode:
		if !s.any(func(i dump.PassItem) bool { return i.From > 0 && i.To-i.From == 1 }) {
			return "forward passes of a single token behind a prefill"
		}
		if n := s.Path.Numbers; n != nil && s.steps() < n[0] {
			return fmt.Sprintf("%d forward passes of a single token behind a prefill", n[0])
		}
	case dump.Chunked:
		if !s.any(func(i dump.PassItem) bool { return i.From > 0 && i.To-i.From > 1 }) {
			return "a chunk of two tokens or more behind another one"
		}
		if n := s.Path.Numbers[0]; s.otherChunk(n) {
			return fmt.Sprintf("chunks of %d tokens, of which only the last of a sequence is shorter", n)
		}
	case dump.Batch:
		if !slices.ContainsFunc(s.Passes, func(p *Pass) bool { return len(p.Items) > 1 }) {
			return "a forward pass of two sequences"
		}
		if n := s.Path.Numbers; n != nil && s.stepsTogether() < n[0] {
			return fmt.Sprintf("%d forward passes of a single token of two sequences each, behind a prefill", n[0])
		}
	case dump.Padding:
		if !slices.ContainsFunc(s.Passes, func(p *Pass) bool { return p.pads(s.Path.Side) }) {
			return "a row of padding on the " + s.Path.Side
		}
	case dump.Prefix:
		if !s.any(func(i dump.PassItem) bool { return i.CachedTokens > 0 }) {
			return "a hit, an item with cached_tokens: no hit"
		}
		return s.lacksCached()
	case dump.Repeat:
		if n := max(s.Path.Numbers[0], 2); s.runs() < n {
			return fmt.Sprintf("%d runs of one sequence from its first token on, each with an empty cache", n)
		}
	case dump.Lengths:
		return s.lacksLengths()
	case dump.Mask:
		if !slices.ContainsFunc(s.Passes, func(p *Pass) bool { return p.pads(dump.Right) && len(p.Items[0].Hidden) > 0 }) {
			return "a forward pass whose last tokens (hidden) the mask hides"
		}
	}
	return ""
}

func (s *Sheet) any(is func(dump.PassItem) bool) bool {
	return slices.ContainsFunc(s.Passes, func(p *Pass) bool { return slices.ContainsFunc(p.Items, is) })
}

// steps is how many passes of a single token the sequence had that had the most of them, behind its
// first token.
func (s *Sheet) steps() (most int) {
	n := map[int]int{}
	for _, p := range s.Passes {
		for _, i := range p.Items {
			if i.From > 0 && i.To-i.From == 1 {
				n[i.Sequence]++
				most = max(most, n[i.Sequence])
			}
		}
	}
	return most
}

// stepsTogether is how many passes feed a single token of several sequences behind their first.
func (s *Sheet) stepsTogether() (n int) {
	for _, p := range s.Passes {
		if len(p.Items) > 1 && !slices.ContainsFunc(p.Items, func(i dump.PassItem) bool { return i.From == 0 || i.To-i.From != 1 }) {
			n++
		}
	}
	return n
}

// otherChunk reports whether a chunk behind which the sequence had another one has not n tokens, or
// the last one more. Passes of a single token behind them are steps, not chunks.
func (s *Sheet) otherChunk(n int) bool {
	last := map[int]int{} // by sequence, the size of its last chunk
	for _, p := range s.Passes {
		for _, i := range p.Items {
			size := i.To - i.From
			if before := last[i.Sequence]; i.From > 0 && size > 1 && before != n || size > n {
				return true
			}
			if size > 1 {
				last[i.Sequence] = size
			}
		}
	}
	return false
}

// lacksCached names tokens that were taken from a cache and that no pass before had fed.
func (s *Sheet) lacksCached() string {
	begins := make([][]uint64, len(s.Tokens)) // hashes of the first 0, 1, 2 … tokens of each sequence
	for i, ids := range s.Tokens {
		h := fnv.New64a()
		begins[i] = append(begins[i], h.Sum64())
		for _, id := range ids {
			fmt.Fprint(h, id, " ")
			begins[i] = append(begins[i], h.Sum64())
		}
	}
	fed := map[uint64]bool{begins[0][0]: true}
	for _, p := range s.Passes {
		for _, i := range p.Items {
			if !fed[begins[i.Sequence][i.CachedTokens]] {
				return fmt.Sprintf("a pass that fed the %d tokens which step %s took from the cache", i.CachedTokens, p.Step)
			}
		}
		for _, i := range p.Items {
			if b := begins[i.Sequence]; fed[b[i.From]] {
				for at := i.From; at < i.To; at++ {
					fed[b[at+1]] = true
				}
			}
		}
	}
	return ""
}

// pads reports whether a sequence has padding on a side, where others have tokens.
func (p *Pass) pads(side string) bool {
	return slices.ContainsFunc(p.grid, func(row []bool) bool {
		at := 0
		if side == dump.Right {
			at = len(row) - 1
		}
		return slices.Contains(row, true) && !row[at]
	})
}

// runs is how many times the sequence that was run most often began again.
func (s *Sheet) runs() (most int) {
	n := map[string]int{}
	for _, p := range s.Passes {
		for _, i := range p.Items {
			if i.From == 0 {
				ids := fmt.Sprint(s.Tokens[i.Sequence])
				n[ids]++
				most = max(most, n[ids])
			}
		}
	}
	return most
}

// lacksLengths names the lengths that no run from the first token on had.
func (s *Sheet) lacksLengths() string {
	ends := map[int]bool{}
	for _, p := range s.Passes {
		for _, i := range p.Items {
			ends[i.To] = ends[i.To] || i.From == 0
		}
	}
	var lacking []string
	for _, n := range s.Path.Numbers {
		if !ends[n] {
			lacking = append(lacking, fmt.Sprint(n))
		}
	}
	if len(lacking) > 0 {
		return "a forward pass over the first " + strings.Join(lacking, ", ") + " tokens"
	}
	if len(ends) == 0 {
		return "a forward pass over the first tokens of a sequence"
	}
	return ""
}

// IsOnePass returns an error if a forward pass fed less than a whole sequence: then its rows are not
// those of one pass. Steps that decode past a prompt are right where the run does not say its passes:
// so goldens are made.
func (s *Sheet) IsOnePass() error {
	if s.Path.Kind != dump.OnePass {
		return fmt.Errorf("%s was run along %s: want a run of one pass", s.Run.Path, s.Name)
	}
	if s.plain {
		return nil
	}
	for _, p := range s.Passes {
		for _, i := range p.Items {
			if i.From > 0 || i.To < len(s.Tokens[i.Sequence]) {
				return fmt.Errorf("%s: forward pass %s fed %s of %d: want a run of one pass, that feeds whole sequences",
					s.Run.Path, p.Step, i, len(s.Tokens[i.Sequence]))
			}
		}
	}
	return nil
}
