package path

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// items yields what each forward pass fed, in order.
func (s *Sheet) items() iter.Seq2[*Pass, dump.PassItem] {
	return func(yield func(*Pass, dump.PassItem) bool) {
		for _, p := range s.Passes {
			for _, i := range p.Items {
				if !yield(p, i) {
					return
				}
			}
		}
	}
}

// Check returns an error if the forward passes do not show the path, or leave rows out that it has
// to feed.
func (s *Sheet) Check() error {
	if want := s.lacks(); want != "" {
		return fmt.Errorf("path not taken: %s asks for %s, and the passes of run.json have none", s.Name, want)
	}
	if s.Path.Kind == dump.Lengths || s.Path.Kind == dump.Prefix {
		return nil
	}
	cached := map[int]int{} // by sequence
	for _, i := range s.items() {
		cached[i.Sequence] = max(cached[i.Sequence], i.CachedTokens)
	}
	for i, ids := range s.Tokens {
		for at := range ids {
			if at >= cached[i] && s.fed[Row{i, at}] == nil {
				return fmt.Errorf("no forward pass fed token %d of sequence %d: %s has to feed all %d of token_ids, "+
					"list the pass that did or end token_ids there", at, i, s.Name, len(ids))
			}
		}
	}
	return nil
}

// isStep reports whether a single token was fed after others.
func isStep(i dump.PassItem) bool { return i.From > 0 && i.To-i.From == 1 }

// lacks is what the passes do not show; "" if they show the path.
func (s *Sheet) lacks() string {
	n, asked := 1, ""
	if len(s.Path.Numbers) > 0 {
		n = s.Path.Numbers[0]
		asked = fmt.Sprintf("%d ", n)
	}
	switch s.Path.Kind {
	case dump.Decode:
		if s.most(func(i dump.PassItem) (any, bool) { return i.Sequence, isStep(i) }) < n {
			return asked + "forward passes of a single token behind a prefill"
		}
	case dump.Chunked:
		if s.most(func(i dump.PassItem) (any, bool) { return 0, i.From > 0 && i.To-i.From > 1 }) == 0 {
			return "a chunk of two tokens or more behind another one"
		}
		if s.otherChunk(n) {
			return fmt.Sprintf("chunks of %d tokens, of which only the last of a sequence is shorter", n)
		}
	case dump.Turns:
		if s.answered() < n {
			return fmt.Sprintf("a forward pass of two tokens or more behind %d of a single one, behind a prefill", n)
		}
	case dump.Batch:
		if s.together(func(dump.PassItem) bool { return true }) == 0 {
			return "a forward pass of two sequences"
		}
		if asked != "" && s.together(isStep) < n {
			return asked + "forward passes of a single token of two sequences each, behind a prefill"
		}
	case dump.Padding:
		if !slices.ContainsFunc(s.Passes, func(p *Pass) bool { return p.pads(s.Path.Side) }) {
			return "a row of padding on the " + s.Path.Side
		}
	case dump.Prefix:
		if s.most(func(i dump.PassItem) (any, bool) { return 0, i.CachedTokens > 0 }) == 0 {
			return "a hit, an item with cached_tokens: no hit"
		}
		return s.lacksCached()
	case dump.Repeat:
		n = max(n, 2)
		if s.most(func(i dump.PassItem) (any, bool) { return fmt.Sprint(s.Tokens[i.Sequence]), i.From == 0 }) < n {
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

// answered is how many tokens of a sequence, at most, were fed one at a time after a prefill and before several together.
func (s *Sheet) answered() (most int) {
	n := map[int]int{}
	for _, i := range s.items() {
		switch {
		case i.From == 0:
			n[i.Sequence] = 0
		case isStep(i):
			n[i.Sequence]++
		default:
			most, n[i.Sequence] = max(most, n[i.Sequence]), 0
		}
	}
	return most
}

// most is how many items there are of the key that has the most of them.
func (s *Sheet) most(of func(dump.PassItem) (key any, counts bool)) (most int) {
	n := map[any]int{}
	for _, i := range s.items() {
		if key, counts := of(i); counts {
			n[key]++
			most = max(most, n[key])
		}
	}
	return most
}

// together is how many passes feed several sequences, each of them so.
func (s *Sheet) together(so func(dump.PassItem) bool) (n int) {
	for _, p := range s.Passes {
		if len(p.Items) > 1 && !slices.ContainsFunc(p.Items, func(i dump.PassItem) bool { return !so(i) }) {
			n++
		}
	}
	return n
}

// otherChunk reports whether a chunk after which the sequence had another one has not n tokens, or
// the last one more. Passes of a single token after them are steps, not chunks.
func (s *Sheet) otherChunk(n int) bool {
	last := map[int]int{} // by sequence, the size of its last chunk
	for _, i := range s.items() {
		size := i.To - i.From
		if size > n || i.From > 0 && size > 1 && last[i.Sequence] != n {
			return true
		}
		if size > 1 {
			last[i.Sequence] = size
		}
	}
	return false
}

// lacksCached names tokens that were taken from a cache and that no pass before had fed.
func (s *Sheet) lacksCached() string {
	for p, i := range s.items() {
		n, cached := i.CachedTokens, s.Tokens[i.Sequence][:i.CachedTokens]
		known := n == 0
		for before, o := range s.items() {
			if before == p {
				break
			}
			known = known || o.To >= n && slices.Equal(s.Tokens[o.Sequence][:n], cached)
		}
		if !known {
			return fmt.Sprintf("a pass that fed the %d tokens which step %s took from the cache", n, p.Step)
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

// lacksLengths names the lengths that no run from the first token on had.
func (s *Sheet) lacksLengths() string {
	ends := map[int]bool{}
	for _, i := range s.items() {
		ends[i.To] = ends[i.To] || i.From == 0
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
	return ""
}

// IsOnePass returns an error if a forward pass fed less than a whole sequence: then its rows are not
// those of one pass. Steps that decode past a prompt are right where the run does not say its passes:
// so goldens are made.
func (s *Sheet) IsOnePass() error {
	if s.Path.Kind != dump.OnePass {
		return fmt.Errorf("%s was run along %s: want a run of one pass", s.Run.Path, s.Name)
	}
	for p, i := range s.items() {
		if s.raw.Info.Passes != nil && (i.From > 0 || i.To < len(s.Tokens[i.Sequence])) {
			return fmt.Errorf("%s: forward pass %s fed %s of %d: want a run of one pass, that feeds whole sequences",
				s.Run.Path, p.Step, i, len(s.Tokens[i.Sequence]))
		}
	}
	return nil
}
