package path

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Recorded is what a candidate ran and recorded. It is laid out as the reference's one pass over whole
// sequences: decode, chunks, batches (ragged, or padded on either side), prefix hits, repeated runs. So the
// program of one pass, and one golden, judge every execution path.
//
// [NewRecorded] says which run of which sequence each row belongs to. [Recorded.Lay] gives the ports of a
// pass in the reference's shapes, and which of their rows and keys the candidate has. Nothing is
// made up: rows that no forward pass has are left at zero and marked, for whoever can calculate them.
//
// How the rows of a record lie is told by its shapes in all forward passes together: the row axis is
// the one where the reference has as many elements as its pass has rows, and each of the candidate's
// passes as many as its own; the key axis is the last one where each has its keys so far. A port with
// neither is a state, which is that of the reference only where both end, or a constant.
type Recorded struct {
	Tokens [][]int // of each sequence
	Passes []*Pass // in order
	Record Record

	Runs  []*Run   // of all sequences, in the order in which they began
	Notes []string // what of them nobody ran

	at map[[2]int][]Item // by forward pass and item: those of its run, up to this one
}

// Record returns what a forward pass recorded of a port; nil for nothing.
type Record func(pass int, layer, port string) *tensor.Tensor

// Run is one run of a sequence: from an empty cache, or from a prefix that the cache held, on.
type Run struct {
	Sequence int
	Items    []Item
	Prefix   *Run // the run that left the first Cached rows in the prefix cache; nil for none
	Cached   int
}

// Item is what a forward pass fed of a run: the tokens From ≤ i < To.
type Item struct {
	Pass, Index int // the forward pass, and the item there
	From, To    int
}

// End is the number of tokens that the cache holds after the run.
func (r *Run) End() int { return r.Items[len(r.Items)-1].To }

// NewRecorded splits the forward passes into runs. A sequence begins anew where an item is fresh, or goes back.
func NewRecorded(tokens [][]int, passes []*Pass, record Record) *Recorded {
	in := &Recorded{Tokens: tokens, Passes: passes, Record: record, at: map[[2]int][]Item{}}
	current := map[int]*Run{}
	for k, pass := range passes {
		for j, item := range pass.Items {
			r, end := current[item.Sequence], item.CachedTokens
			if r != nil && !item.Fresh && item.From >= r.End() {
				end = r.End()
			} else {
				r = in.begin(item)
				current[item.Sequence] = r
			}
			if item.From > end {
				in.Notes = append(in.Notes, fmt.Sprintf("sequence %d: no forward pass ran its tokens %d–%d", item.Sequence, end, item.From-1))
			}
			r.Items = append(r.Items, Item{k, j, item.From, item.To})
			in.at[[2]int{k, j}] = r.Items
		}
	}
	return in
}

// begin begins a run, with the rows of the last one that had the tokens which its prefix cache held.
func (in *Recorded) begin(item dump.PassItem) *Run {
	r := &Run{Sequence: item.Sequence, Cached: item.CachedTokens}
	if n := r.Cached; n > 0 {
		for _, other := range in.Runs {
			if other.End() >= n && slices.Equal(in.Tokens[other.Sequence][:n], in.Tokens[r.Sequence][:n]) {
				r.Prefix = other
			}
		}
		if r.Prefix == nil {
			in.Notes = append(in.Notes, fmt.Sprintf("sequence %d: no forward pass ran the %d tokens that its prefix cache held", r.Sequence, n))
		}
	}
	in.Runs = append(in.Runs, r)
	return r
}

// sources lists the rows that a run has: those of the prefix that it found, and its own. A cache holds those of the
// prefix itself: they are its own.
func (r *Run) sources(cache bool) (borrowed, own []Item) {
	if r.Prefix != nil && !cache {
		for _, s := range slices.Concat(r.Prefix.sources(false)) {
			if s.From < r.Cached {
				s.To = min(s.To, r.Cached)
				borrowed = append(borrowed, s)
			}
		}
	}
	return borrowed, r.Items
}

// columns returns the position of each key that a row of an item may look at, −1 for padding; nil where
// so many keys are not known, or where two ways to lay padding out tell other positions.
func (in *Recorded) columns(pass, index, width int) []int {
	items := in.at[[2]int{pass, index}]
	last := items[len(items)-1]
	if !slices.ContainsFunc(items, func(i Item) bool { return in.Passes[i.Pass].padded() }) {
		if width > last.To { // a window holds the last keys
			return nil
		}
		return vec.Sequence(last.To)[last.To-width:]
	}
	var kept []int // where the cache keeps the keys of padding: all passes' columns side by side
	for _, i := range items {
		kept = append(kept, in.line(i)...)
	}
	packed := in.packed(items)
	switch fits, other := len(kept) == width, len(packed) == width; {
	case fits && other && !slices.Equal(kept, packed):
		return nil
	case fits:
		return kept
	case other:
		return packed
	}
	return nil
}

// packed are the keys where the cache drops those of padding, and pads again to the longest of
// the batch, on the side where the run has its padding.
func (in *Recorded) packed(items []Item) []int {
	last := items[len(items)-1]
	longest := 0
	for _, i := range in.Passes[last.Pass].Items {
		longest = max(longest, i.From)
	}
	past, pad := vec.Sequence(last.From), slices.Repeat([]int{-1}, max(longest-last.From, 0))
	if slices.ContainsFunc(items, func(i Item) bool { return in.line(i)[0] < 0 }) { // on the left
		past, pad = pad, past
	}
	return slices.Concat(past, pad, in.line(last))
}

// line is the position of each row of an item in its padded line, −1 for padding.
func (in *Recorded) line(i Item) []int {
	pass := in.Passes[i.Pass]
	_, width := pass.Size()
	if width == 0 {
		return vec.Sequence(i.To)[i.From:]
	}
	out := slices.Repeat([]int{-1}, width)
	for n := range i.To - i.From {
		_, row := pass.Place(i.Index, n)
		out[row] = i.From + n
	}
	return out
}
