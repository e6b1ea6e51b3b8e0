package replay

import (
	"cmp"
	"slices"

	"github.com/goparity/goparity/internal/vec"
)

// orders are the operators that compare the numbers of a line. NaN comes after all others.
var orders = family{
	"sort": ranked(func(c *Call, x []float64) []int { return ordered(x, c.is("descending"), c.turned()) }),
	"topk": ranked(func(c *Call, x []float64) []int {
		order := ordered(x, get(c, "largest", true), c.turned() || c.mode.Choices)[:c.int("k", 1)]
		if c.turned() && !get(c, "sorted", true) { // in any order
			slices.Reverse(order)
		}
		return order
	}),
	"cummax": ranked(func(_ *Call, x []float64) []int { return running(x, func(v, most float64) bool { return v >= most }) }),
	"cummin": ranked(func(_ *Call, x []float64) []int { return running(x, func(v, least float64) bool { return v <= least }) }),
	"max":    extreme("maximum", greatest, folds["argmax"]), "min": extreme("minimum", least, folds["argmin"]),

	"bucketize":          one(func(c *Call) *Array { return searched(c, c.tensor("boundaries"), c.operand("self")) }),
	"searchsorted":       one(func(c *Call) *Array { return searched(c, c.tensor("sorted_sequence"), c.operand("self")) }),
	"unique_consecutive": distinct(false), "_unique2": distinct(true),
	"histc": one(histogram),
}

// ordered lists the places of numbers in ascending order, or descending; equal ones stay as they are,
// or are turned round.
func ordered(x []float64, descending, ties bool) []int {
	order := vec.Sequence(len(x))
	slices.SortFunc(order, func(i, j int) int { // a stable sort takes twice as long
		a, b, later := x[i], x[j], i-j
		if descending {
			a, b = b, a
		}
		if ties {
			later = -later
		}
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		case a == b:
			return later
		}
		return cmp.Or(cmp.Compare(b2f(a != a), b2f(b != b)), later) // cmp.Compare has NaN in front
	})
	return order
}

// turned reports whether equal numbers are to come in the other order.
func (c *Call) turned() bool { return c.mode.Ties && !c.is("stable") }

// running lists the place of the best number so far, of several the last. NaN is the best.
func running(x []float64, better func(v, best float64) bool) []int {
	order, best := make([]int, len(x)), 0
	for i, v := range x {
		if v != v || better(v, x[best]) {
			best = i
		}
		order[i] = best
	}
	return order
}

// ranked is the kernel of what chooses numbers of each line along an axis, by their places, which are the
// second result.
func ranked(order func(c *Call, x []float64) []int) kernel {
	return func(c *Call) []*Array {
		out := make([]*Array, 2)
		for i := range out {
			if !c.wants(i) {
				continue
			}
			out[i] = c.along(i, c.self(), c.int("k", -1), func(out, x []float64) {
				for j, k := range order(c, x) {
					if out[j] = x[k]; i == 1 {
						out[j] = float64(k)
					}
				}
			})
		}
		return out
	}
}

// extreme is the best number of each line and its place, or the better one of two tensors.
func extreme(of string, best, place func(x []float64) float64) kernel {
	return func(c *Call) []*Array {
		if b := c.maybe("other"); b != nil {
			return []*Array{c.paired(binary[of], c.self(), b)}
		}
		return c.folded(best, place)
	}
}

// searched says before which of ascending numbers each value would come, of the same row if there are
// several.
func searched(c *Call, sorted, values *Array) *Array {
	right := c.is("right") || c.text("side") == "right"
	if c.optional("sorter") != nil {
		fail("searchsorted with a sorter")
	}
	x, y := sorted.floats64(), values.floats64()
	n := sorted.shape[len(sorted.shape)-1]
	out := make([]float64, len(y))
	for i, v := range y {
		row := x
		if len(sorted.shape) > 1 {
			row = x[i/values.shape[len(values.shape)-1]*n:][:n]
		}
		k, _ := slices.BinarySearchFunc(row, v, func(e, v float64) int {
			if e < v || right && e <= v || v != v && e == e {
				return -1
			}
			return 1
		})
		out[i] = float64(k)
	}
	return c.result(0, values.shape, out)
}

// histogram counts numbers in bins of one width; without limits they are the least and the greatest.
func histogram(c *Call) *Array {
	x, n := c.tensor("self").floats64(), size(c.shape(0))
	low, high := c.float("min", 0), c.float("max", 0)
	if low == high && len(x) > 0 {
		low, high = least(x), greatest(x)
	}
	if low == high {
		low, high = low-1, high+1
	}
	out := make([]float64, n)
	for _, v := range x {
		if v >= low && v <= high {
			out[min(int((v-low)/(high-low)*float64(n)), n-1)]++
		}
	}
	return c.result(0, []int{n}, out)
}

// distinct gives numbers without those that are equal to the one before, in ascending order or in their
// own, then which of them each was, and how often each came.
func distinct(ascending bool) kernel {
	return func(c *Call) []*Array {
		a := c.self()
		if c.op.Args.Get("dim") != nil {
			fail("distinct lines")
		}
		x := a.floats64()
		order := vec.Sequence(len(x))
		if ascending {
			order = ordered(x, false, false)
		}
		var values, counts []float64
		which := make([]float64, len(x))
		for _, k := range order {
			if n := len(values); n == 0 || values[n-1] != x[k] {
				values, counts = append(values, x[k]), append(counts, 0)
			}
			counts[len(counts)-1]++
			which[k] = float64(len(values) - 1)
		}
		out := []*Array{c.result(0, []int{len(values)}, values), nil, nil}
		if c.is("return_inverse") {
			out[1] = c.result(1, a.shape, which)
		}
		if c.is("return_counts") {
			out[2] = c.result(2, []int{len(counts)}, counts)
		}
		return out
	}
}
