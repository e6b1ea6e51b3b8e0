package match

import "slices"

// stretch is what lies between two pairs on both sides.
type stretch struct {
	after, before  *node // the golden layers of the pairs; nil at the beginning and the end
	golden, actual []*node
}

// stretches cuts both orders at the longest list of pairs that is in order on both sides.
func stretches(golden, actual []*node, partner func(golden *node) *node) (out []stretch) {
	at := map[*node]int{} // in the candidate's order
	for i, a := range actual {
		at[a] = i
	}
	var pairs []int // places of golden layers with a partner
	for i, g := range golden {
		if _, ok := at[partner(g)]; ok {
			pairs = append(pairs, i)
		}
	}
	other := func(i int) int { return at[partner(golden[i])] }
	var after *node
	i, j := 0, 0
	for _, cut := range increasing(pairs, other) {
		out = append(out, stretch{after, golden[cut], golden[i:cut], actual[j:other(cut)]})
		after, i, j = golden[cut], cut+1, other(cut)+1
	}
	return append(out, stretch{after, nil, golden[i:], actual[j:]})
}

// increasing returns the longest list of items of which the values are in order, too.
func increasing(items []int, value func(int) int) []int {
	var tails []int // index of the last of the best list of each length
	before := make([]int, len(items))
	for i, item := range items {
		n, _ := slices.BinarySearchFunc(tails, value(item), func(t, v int) int { return value(items[t]) - v })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	var out []int
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = before[i] {
			out = append(out, items[i])
		}
	}
	slices.Reverse(out)
	return out
}
