package onepass

import (
	"slices"
)

// columns returns the position of each key that a row of a run's item may look at, −1 for padding;
// nil where so many keys are not known, or where two ways to lay padding out tell other positions.
func (in *Input) columns(r *Run, item, width int) []int {
	padded := slices.ContainsFunc(r.Items[:item+1], func(i Item) bool { return in.Passes[i.Pass].Padded() })
	if !padded {
		to := r.Items[item].To // a window holds the last keys
		if width > to {
			return nil
		}
		return count(to-width, to)
	}
	kept, packed := in.keptPadding(r, item), in.packedPadding(r, item)
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

// keptPadding are the keys where the cache keeps those of padding: all passes' columns side by side.
func (in *Input) keptPadding(r *Run, item int) (out []int) {
	for _, i := range r.Items[:item+1] {
		out = append(out, in.line(i)...)
	}
	return out
}

// packedPadding are the keys where the cache drops those of padding, and pads again to the longest of
// the batch, on the side where the run has its padding.
func (in *Input) packedPadding(r *Run, item int) []int {
	last := r.Items[item]
	longest := 0
	for _, i := range in.Passes[last.Pass].Items {
		longest = max(longest, i.From)
	}
	left := slices.ContainsFunc(r.Items[:item+1], func(i Item) bool { return in.line(i)[0] < 0 })
	past, pad := count(0, last.From), slices.Repeat([]int{-1}, max(longest-last.From, 0))
	if left {
		past = append(pad, past...)
	} else {
		past = append(past, pad...)
	}
	return append(past, in.line(last)...)
}

// line is the position of each row of an item in its padded line, −1 for padding.
func (in *Input) line(i Item) []int {
	pass := in.Passes[i.Pass]
	_, width := pass.Size()
	if width == 0 {
		return count(i.From, i.To)
	}
	out := slices.Repeat([]int{-1}, width)
	for n := range i.To - i.From {
		_, row := pass.Place(i.Index, n)
		out[row] = i.From + n
	}
	return out
}

func count(from, to int) []int {
	out := make([]int, 0, max(to-from, 0))
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
