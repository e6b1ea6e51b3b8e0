package replay

import "github.com/goparity/goparity/tensor"

// products are those of matrices. In float32 they are calculated in float32, as the reference's are.
var products = family{
	"mm": multiplied("self", "mat2", ""), "addmm": multiplied("mat1", "mat2", "self"),
	"bmm": multiplied("self", "mat2", ""), "baddbmm": multiplied("batch1", "batch2", "self"),
	"mv": multiplied("self", "vec", ""), "dot": multiplied("self", "tensor", ""),
	"_grouped_mm": one(grouped),
}

// multiplied is the kernel of a product of two operands, and what is added to it.
func multiplied(left, right, bias string) kernel {
	return one(func(c *Call) *Array {
		a, b := c.factors(left, right)
		if len(a.shape) == 1 {
			a = a.with(0)
		}
		if len(b.shape) == 1 {
			b = b.with(1)
		}
		p := c.product(a, b)
		if len(p.shape) > len(c.shape(0)) { // of vectors
			p = p.reshape(c.shape(0))
		}
		if bias == "" {
			return c.plus(p, nil)
		}
		return c.plus(p, c.tensor(bias))
	})
}

// product is a·b for matrices [m, k] and [k, n], or as many of them in both, not rounded yet.
func (c *Call) product(a, b *Array) *Array {
	n := len(a.shape)
	if n == 2 && len(b.shape) == 2 {
		return c.product(a.with(0), b.with(0)).without(0)
	}
	if n != 3 || len(b.shape) != 3 || a.shape[2] != b.shape[1] || a.shape[0] != b.shape[0] {
		fail("product of %v and %v", a.shape, b.shape)
	}
	shape := []int{a.shape[0], a.shape[1], b.shape[2]}
	out := newArray(tensor.F32, shape, c.wide(a, b))
	if out.f != nil {
		multiply(out.f, a, b)
		return out
	}
	out.dtype = tensor.F64
	if multiply(out.d, a, b); !a.isFloat() {
		whole(out.d)
	}
	return out
}

// wide reports whether operands are multiplied in float64.
func (c *Call) wide(a, b *Array) bool { return c.mode.Wide || a.d != nil || b.d != nil }

// plus is alpha·product + beta·bias, rounded to the recorded type. A beta of 0 leaves NaN of the bias
// out.
func (c *Call) plus(product, bias *Array) *Array {
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	if bias == nil || beta == 0 && alpha == 1 {
		return product.cast(c.value(0).DType, c.mode.Wide)
	}
	if beta == 0 {
		bias = &Array{dtype: tensor.F64, d: []float64{0}}
	}
	return c.eachOf(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = alpha*v + beta*x[1][i]
		}
	}, []*Array{product, bias})
}

// grouped is the product of rows that belong to groups with a matrix of each: [m, k] with [g, k, n],
// where group i ends at row offs[i]. Rows after the last group are zero.
func grouped(c *Call) *Array {
	a, b := c.factors("self", "mat2")
	offs := c.optional("offs")
	if c.optional("bias") != nil {
		fail("a grouped product with a bias")
	}
	if offs == nil && len(a.shape) == 3 {
		return c.plus(c.product(a, b), nil)
	}
	if offs == nil || len(a.shape) != 2 || len(b.shape) != 3 || offs.Len() != b.shape[0] {
		fail("grouped product of %v and %v", a.shape, b.shape)
	}
	out := newArray(tensor.F32, []int{a.shape[0], b.shape[2]}, c.wide(a, b))
	from := 0
	for i, end := range offs.Floats() {
		n := int(end) - from
		out.slice(0, from, n, 1).put(c.product(a.slice(0, from, n, 1), b.slice(0, i, 1, 1).without(0)))
		from += n
	}
	return out.cast(c.value(0).DType, c.mode.Wide)
}
