package compare

import "math"

// shares are the quantiles that are reported.
var shares = []float64{0.5, 0.9, 0.99, 0.999, 1}

const (
	quantileBits = 14
	coarseShift  = 63 - quantileBits // there is no sign
	fineShift    = coarseShift - quantileBits
)

// quantiles finds values by their rank in two counts. The bits of numbers ≥ 0 order like the
// numbers: the first count is over the exponent and 3 bits of the mantissa, the second over the
// next 14 bits, within the class where a quantile lies.
type quantiles struct {
	n      int
	coarse []int
	ranks  []int // still to go within the class
	class  []int
	slot   []uint8 // by class: where it is in fine, from 1
	fine   [][]int
}

func newQuantiles(n int) *quantiles { return &quantiles{n: n, coarse: make([]int, 1<<quantileBits)} }

func (q *quantiles) count(d float64) { q.coarse[math.Float64bits(d)>>coarseShift]++ }

// refine ends the first count and reports whether a second one is needed.
func (q *quantiles) refine() bool {
	if q.n == 0 {
		return false
	}
	q.slot = make([]uint8, 1<<quantileBits)
	for _, p := range shares {
		class, rank := find(q.coarse, int(math.Ceil(p*float64(q.n))))
		q.class, q.ranks = append(q.class, class), append(q.ranks, rank)
		if q.slot[class] == 0 {
			q.fine = append(q.fine, make([]int, 1<<quantileBits))
			q.slot[class] = uint8(len(q.fine))
		}
	}
	return true
}

func (q *quantiles) countAgain(d float64) {
	b := math.Float64bits(d)
	if at := q.slot[b>>coarseShift]; at > 0 {
		q.fine[at-1][b>>fineShift&(1<<quantileBits-1)]++
	}
}

func (q *quantiles) result(largest float64) []Quantile {
	var out []Quantile
	for i, class := range q.class {
		low, _ := find(q.fine[q.slot[class]-1], q.ranks[i])
		v := math.Float64frombits(uint64(class)<<coarseShift | uint64(low)<<fineShift)
		if shares[i] == 1 {
			v = largest
		}
		out = append(out, Quantile{P: shares[i], Value: v})
	}
	return out
}

// find returns the class that holds the element of a rank (from 1), and its rank within.
func find(counts []int, rank int) (class, within int) {
	for class, n := range counts {
		if rank <= n {
			return class, rank
		}
		rank -= n
	}
	return len(counts) - 1, 0
}
