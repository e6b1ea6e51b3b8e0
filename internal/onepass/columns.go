package onepass

import "slices"

// columns returns the position of each key that a row of an item may look at, −1 for padding; nil where
// so many keys are not known, or where two ways to lay padding out tell other positions.
func (in *Input) columns(pass, index, width int) []int {
	f := in.at[[2]int{pass, index}]
	items := f.Items[:f.item+1]
	last := items[f.item]
	if !slices.ContainsFunc(items, func(i Item) bool { return in.Passes[i.Pass].Padded() }) {
		if width > last.To { // a window holds the last keys
			return nil
		}
		return count(last.To-width, last.To)
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
func (in *Input) packed(items []Item) []int {
	last := items[len(items)-1]
	longest := 0
	for _, i := range in.Passes[last.Pass].Items {
		longest = max(longest, i.From)
	}
	past, pad := count(0, last.From), slices.Repeat([]int{-1}, max(longest-last.From, 0))
	if slices.ContainsFunc(items, func(i Item) bool { return in.line(i)[0] < 0 }) { // on the left
		past, pad = pad, past
	}
	return slices.Concat(past, pad, in.line(last))
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

// count are the numbers from ≤ i < to.
func count(from, to int) []int {
	out := make([]int, 0, max(to-from, 0))
	for ; from < to; from++ {
		out = append(out, from)
	}
	return out
}
