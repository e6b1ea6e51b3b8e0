package path

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// Check returns an error if the forward passes do not show the path, or leave rows out that it has
// to feed.
func (s *Sheet) Check() error {
	n := slices.Concat(s.Path.Numbers, []int{1})[0]
	f := s.show(n)
	if want := s.lacks(f, n); want != "" {
		return fmt.Errorf("path not taken: %s asks for %s, and the passes of run.json have none", s.Name, want)
	}
	if s.Path.Kind == dump.Lengths || s.Path.Kind == dump.Prefix {
		return nil
	}
	for i, ids := range s.Tokens {
		for at := range ids {
			if at >= f.cached[i] && s.fed[Row{i, at}] == nil {
				return fmt.Errorf("no forward pass fed token %d of sequence %d: %s has to feed all %d of token_ids, "+
					"list the pass that did or end token_ids there", at, i, s.Name, len(ids))
			}
		}
	}
	return nil
}

// shown is what the forward passes of a run show.
type shown struct {
	steps, answer, runs     int          // most of a sequence: tokens fed alone, those before several together, runs
	together, stepsTogether int          // passes of several sequences, and those of a token of each after others
	later, uneven           bool         // some tokens together after others; in chunks that are not of one size
	ends                    map[int]bool // of runs from the first token on: how many tokens they feed together
	cached                  map[int]int  // by sequence: tokens that a cache held
	unfed                   string       // which of these no pass before had fed
}

// show looks at what was fed. Chunks are of so many tokens; only the last of a sequence may be shorter, and passes of a
// single token after it are steps.
func (s *Sheet) show(chunk int) shown {
	f := shown{ends: map[int]bool{}, cached: map[int]int{}}
	steps, answer, size, runs := map[int]int{}, map[int]int{}, map[int]int{}, map[string]int{}
	var before []dump.PassItem
	for _, p := range s.Passes {
		alone := 0
		for _, i := range p.Items {
			n, q := i.To-i.From, i.Sequence
			switch {
			case i.From == 0:
				run := fmt.Sprint(s.Tokens[q])
				answer[q], runs[run], f.ends[i.To] = 0, runs[run]+1, true
				f.runs = max(f.runs, runs[run])
			case n == 1:
				alone, steps[q], answer[q] = alone+1, steps[q]+1, answer[q]+1
				f.steps = max(f.steps, steps[q])
			default:
				f.answer, answer[q], f.later = max(f.answer, answer[q]), 0, true
			}
			f.uneven = f.uneven || n > chunk || n > 1 && i.From > 0 && size[q] != chunk
			if n > 1 {
				size[q] = n
			}
			if n := i.CachedTokens; n > 0 {
				f.cached[q] = max(f.cached[q], n)
				has := func(o dump.PassItem) bool {
					return o.To >= n && slices.Equal(s.Tokens[o.Sequence][:n], s.Tokens[q][:n])
				}
				if f.unfed == "" && !slices.ContainsFunc(before, has) {
					f.unfed = fmt.Sprintf("a pass that fed the %d tokens which step %s took from the cache", n, p.Step)
				}
			}
		}
		if len(p.Items) > 1 {
			f.together++
			if alone == len(p.Items) {
				f.stepsTogether++
			}
		}
		before = append(before, p.Items...)
	}
	return f
}

// lacks is what the passes do not show; "" if they show the path, n being the first of its numbers.
func (s *Sheet) lacks(f shown, n int) string {
	asked, runs := "", max(n, 2)
	if s.Path.Numbers != nil {
		asked = fmt.Sprintf("%d ", n)
	}
	var lengths []string
	for _, n := range s.Path.Numbers {
		if !f.ends[n] {
			lengths = append(lengths, fmt.Sprint(n))
		}
	}
	pads := func(p *Pass) bool { return p.pads(s.Path.Side) }
	hides := func(p *Pass) bool { return p.pads(dump.Right) && len(p.Items[0].Hidden) > 0 }
	for _, of := range []struct {
		kind  string
		lacks bool
		what  string
	}{
		{dump.Decode, f.steps < n, asked + "forward passes of a single token after a prefill"},
		{dump.Chunked, !f.later, "a chunk of two tokens or more after another one"},
		{dump.Chunked, f.uneven,
			fmt.Sprintf("chunks of %d tokens, of which only the last of a sequence is shorter", n)},
		{dump.Turns, f.answer < n,
			fmt.Sprintf("a forward pass of two tokens or more after %d of a single one, after a prefill", n)},
		{dump.Batch, f.together == 0, "a forward pass of two sequences"},
		{dump.Batch, asked != "" && f.stepsTogether < n,
			asked + "forward passes of a single token of two sequences each, after a prefill"},
		{dump.Padding, !slices.ContainsFunc(s.Passes, pads), "a row of padding on the " + s.Path.Side},
		{dump.Prefix, len(f.cached) == 0, "a hit, an item with cached_tokens: no hit"},
		{dump.Prefix, f.unfed != "", f.unfed},
		{dump.Repeat, f.runs < runs,
			fmt.Sprintf("%d runs of one sequence from its first token on, each with an empty cache", runs)},
		{dump.Lengths, lengths != nil, "a forward pass over the first " + strings.Join(lengths, ", ") + " tokens"},
		{dump.Mask, !slices.ContainsFunc(s.Passes, hides), "a forward pass whose last tokens (hidden) the mask hides"},
	} {
		if s.Path.Kind == of.kind && of.lacks {
			return of.what
		}
	}
	return ""
}

// pads reports whether a sequence has padding on a side, where others have tokens.
func (p *Pass) pads(side string) bool {
	return slices.ContainsFunc(p.grid, func(row []bool) bool {
		at := map[string]int{dump.Right: len(row) - 1}[side]
		return slices.Contains(row, true) && !row[at]
	})
}

// IsOnePass returns an error if a forward pass fed less than a whole sequence: then its rows are not
// those of one pass. Steps that decode past a prompt are right where the run does not say its passes:
// so goldens are made.
func (s *Sheet) IsOnePass() error {
	if s.Path.Kind != dump.OnePass {
		return fmt.Errorf("%s was run along %s: want a run of one pass", s.Run.Path, s.Name)
	}
	for k, items := range s.raw.Info.Passes {
		for _, i := range items {
			if n := len(s.Tokens[i.Sequence]); i.From > 0 || i.To < n {
				return fmt.Errorf("%s: forward pass %d fed %s of %d: want a run of one pass, that feeds whole sequences",
					s.Run.Path, k, i, n)
			}
		}
	}
	return nil
}
