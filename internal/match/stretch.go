package match

import "slices"

// stretch is what lies between two pairs on both sides.
type stretch struct {
	after, before  *node // the golden layers of the pairs; nil at the beginning and the end
	golden, actual []*node
}

// stretches cuts both orders at the longest list of pairs that is in order on both sides.
func stretches(golden, actual []*node, partner func(golden *node) *node) (out []stretch) {
	places := map[*node]int{} // in the candidate's order
	for i, a := range actual {
		places[a] = i
	}
	other, before := make([]int, len(golden)), make([]int, len(golden)) // place of the partner, the pair before it in the list
	tails := []int{-1}                                                  // by length, the last pair of the best list of it
	for i, g := range golden {
		at, ok := places[partner(g)]
		if !ok {
			continue
		}
		n, _ := slices.BinarySearchFunc(tails[1:], at, func(tail, at int) int { return other[tail] - at })
		other[i], before[i] = at, tails[n]
		tails = slices.Replace(tails, n+1, min(n+2, len(tails)), i)
	}
	var cuts []int
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		cuts = append(cuts, i)
	}
	var after *node
	i, j := 0, 0
	for _, cut := range slices.Backward(cuts) {
		out = append(out, stretch{after, golden[cut], golden[i:cut], actual[j:other[cut]]})
		after, i, j = golden[cut], cut+1, other[cut]+1
	}
	return append(out, stretch{after, nil, golden[i:], actual[j:]})
}
