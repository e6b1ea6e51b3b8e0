package vec

import (
	"cmp"
	"slices"
)

// FollowsValue is the part of the squared errors e that follows from the values x beside them: the
// elements are sorted by value, and each error is compared with the mean of its two neighbours'. It is
// near 1 where the error is a smooth function of the value, and near 0 for noise, which misses that
// mean by 3/2 of its variance. 0 for fewer than 64 elements or without an error; of more than 2^16
// elements some are looked at. NaN and infinities are left out.
func FollowsValue(x, e []float64) float64 {
	var at []int
	for _, i := range Spread(len(x), followsMost) {
		if IsFinite(x[i]) && IsFinite(e[i]) {
			at = append(at, i)
		}
	}
	if len(at) < followsLeast {
		return 0
	}
	slices.SortFunc(at, func(i, j int) int { return cmp.Or(cmp.Compare(x[i], x[j]), i-j) })
	var missed, all float64
	for k := 1; k < len(at)-1; k++ {
		d := e[at[k]] - (e[at[k-1]]+e[at[k+1]])/2
		missed, all = missed+d*d, all+e[at[k]]*e[at[k]]
	}
	if all == 0 {
		return 0
	}
	return max(0, 1-missed/(1.5*all))
}
