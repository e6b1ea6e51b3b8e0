package onepass

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/tensor"
)

// Input is what a candidate ran and recorded.
type Input struct {
	Tokens [][]int      // of each sequence
	Passes []*path.Pass // in order
	Record Record

	Runs  []*Run   // of all sequences, in the order in which they began
	Notes []string // what of them nobody ran

	at map[[2]int]fed // by forward pass and item
}

// Record returns what a forward pass recorded of a port; nil for nothing.
type Record func(pass int, layer, port string) *tensor.Tensor

// fed is an item of a run.
type fed struct {
	*Run
	item int
}

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

// New splits the forward passes into runs. A sequence begins anew where an item is fresh, or goes back.
func New(tokens [][]int, passes []*path.Pass, record Record) *Input {
	in := &Input{Tokens: tokens, Passes: passes, Record: record, at: map[[2]int]fed{}}
	current := map[int]*Run{}
	for k, pass := range passes {
		for j, item := range pass.Items {
			r := current[item.Sequence]
			end := item.CachedTokens
			if r != nil && !item.Fresh && item.From >= r.End() {
				end = r.End()
			} else {
				r = in.begin(item)
				current[item.Sequence] = r
			}
			if item.From > end {
				in.Notes = append(in.Notes, fmt.Sprintf("sequence %d: no forward pass ran its tokens %d–%d", item.Sequence, end, item.From-1))
			}
			in.at[[2]int{k, j}] = fed{r, len(r.Items)}
			r.Items = append(r.Items, Item{k, j, item.From, item.To})
		}
	}
	return in
}

// begin begins a run.
func (in *Input) begin(item dump.PassItem) *Run {
	r := &Run{Sequence: item.Sequence, Cached: item.CachedTokens}
	if r.Cached > 0 {
		if r.Prefix = in.prefix(r); r.Prefix == nil {
			in.Notes = append(in.Notes, fmt.Sprintf("sequence %d: no forward pass ran the %d tokens that its prefix cache held", r.Sequence, r.Cached))
		}
	}
	in.Runs = append(in.Runs, r)
	return r
}

// prefix is the last run that had the cached tokens of r.
func (in *Input) prefix(r *Run) *Run {
	tokens := in.Tokens[r.Sequence]
	for _, other := range slices.Backward(in.Runs) {
		have := in.Tokens[other.Sequence]
		if n := r.Cached; other.End() >= n && slices.Equal(have[:n], tokens[:n]) {
			return other
		}
	}
	return nil
}

// source is a stretch of rows that a run has: its own, or those of the prefix that it found.
type source struct {
	Item
	own bool
}

// sources lists the rows that a run has; of a cache, which holds those of the prefix itself, its own.
func (r *Run) sources(cache bool) (list []source) {
	if r.Prefix != nil && !cache {
		for _, s := range r.Prefix.sources(false) {
			if s.From < r.Cached {
				s.To, s.own = min(s.To, r.Cached), false
				list = append(list, s)
			}
		}
	}
	for _, i := range r.Items {
		list = append(list, source{i, true})
	}
	return list
}
