package replay

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// created are the operators that make tensors of nothing.
var created = family{
	"full": one(func(c *Call) *Array {
		if out := c.make(); !out.complex {
			return filled(out, c.float("fill_value", 0))
		}
		return c.copyOf((&Array{dtype: tensor.F64, d: []float64{c.float("fill_value", 0)}}).broadcast(c.shape(0)))
	}),
	"arange": one(func(c *Call) *Array {
		start, step := c.float("start", 0), c.float("step", 1)
		if n := math.Ceil((c.float("end", 0) - start) / step); n != float64(size(c.shape(0))) {
			fail("%v numbers, not %v as recorded", n, c.shape(0))
		}
		return c.counted(func(i int) float64 { return start + float64(i)*step })
	}),
	"linspace": one(func(c *Call) *Array { // counts from both ends, as torch does
		start, end, n := c.float("start", 0), c.float("end", 0), c.int("steps", 1)
		step := (end - start) / float64(max(n-1, 1))
		return c.counted(func(i int) float64 {
			if i < (n+1)/2 {
				return start + float64(i)*step
			}
			return end - float64(n-1-i)*step
		})
	}),
	"eye": one(func(c *Call) *Array {
		w := max(c.int("m", c.int("n", 0)), 1)
		return c.counted(func(i int) float64 { return b2f(i/w == i%w) })
	}),
}

// counted makes the first result of a function of the index of each element.
func (c *Call) counted(f func(i int) float64) *Array {
	out := c.make()
	x := make([]float64, out.Len())
	for i := range x {
		x[i] = f(i)
	}
	out.write(x, 0)
	return out
}
