package replay

import (
	"math"
	"math/cmplx"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/goparity/goparity/tensor"
)

// Complex numbers are pairs of floats next to one another in the storage: an array of them is a view
// whose strides pass over the imaginary parts, so that views of it need nothing of their own.

// complexes are the operators that turn numbers into complex ones and back.
var complexes = family{
	"view_as_real":    one(func(c *Call) *Array { return c.self().real() }),
	"view_as_complex": one(func(c *Call) *Array { return c.self().asComplex() }),
	"complex": one(func(c *Call) *Array {
		return c.complexly(func(x, y complex128) complex128 { return complex(real(x), real(y)) }, c.tensor("real"), c.tensor("imag"))
	}),
	"polar": one(func(c *Call) *Array {
		return c.complexly(func(x, y complex128) complex128 { return cmplx.Rect(real(x), real(y)) }, c.tensor("abs"), c.tensor("angle"))
	}),
	"_conj": one((*Call).complexUnary), "angle": one((*Call).complexUnary),
	"_fft_c2c": one(transform), "_fft_r2c": one(transform), "_fft_c2r": one(transform),
}

// complexUnaries are the functions of one complex number.
var complexUnaries = map[string]func(x complex128) complex128{
	"neg": func(x complex128) complex128 { return -x }, "exp": cmplx.Exp, "_conj": cmplx.Conj,
	"reciprocal": func(x complex128) complex128 { return 1 / x },
	"sqrt":       cmplx.Sqrt, "log": cmplx.Log, "sin": cmplx.Sin, "cos": cmplx.Cos, "tanh": cmplx.Tanh,
	"sigmoid": func(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) },
	"sgn": func(x complex128) complex128 {
		if x == 0 {
			return 0
		}
		return x / complex(cmplx.Abs(x), 0)
	},
	"abs":   func(x complex128) complex128 { return complex(cmplx.Abs(x), 0) },
	"angle": func(x complex128) complex128 { return complex(cmplx.Phase(x), 0) },
}

func (c *Call) complexUnary() *Array {
	f := complexUnaries[key(c.op.Full)]
	if f == nil {
		fail("complex numbers")
	}
	return c.complexly(func(x, _ complex128) complex128 { return f(x) }, c.self(), c.self())
}

// isApart has the operators that do the same to real and to imaginary parts, and nothing to both.
var isApart = func() map[string]bool {
	all := map[string]bool{}
	for name := range lookups {
		all[name] = true
	}
	for name := range writes {
		all[name] = true
	}
	for _, name := range []string{"sum", "mean", "cumsum", "where", "masked_fill", "tril", "triu"} {
		all[name] = true
	}
	return all
}()

// apart runs a kernel on real parts, and on imaginary ones.
func (c *Call) apart(k kernel) []*Array {
	var parts [2]*Array
	for i := range parts {
		p := *c
		p.imaginary, p.env, p.values, p.more = i == 1, slices.Clone(c.env), slices.Clone(c.values), slices.Clone(c.more)
		for id, a := range p.env {
			switch {
			case a == nil || !a.complex && (!p.imaginary || !a.isFloat()):
			case a.complex:
				re, im := a.parts()
				p.env[id] = [...]*Array{re, im}[i]
			default:
				p.env[id] = newArray(a.dtype, slices.Clone(a.shape), a.d != nil)
			}
		}
		p.value(0).DType, p.value(0).Type = tensor.F64, ""
		parts[i] = k(&p)[0]
	}
	return []*Array{c.complexly(func(x, y complex128) complex128 { return complex(real(x), real(y)) }, parts[0], parts[1])}
}

// complexNumber is one that is written as in Python, nil for another text.
func complexNumber(text string) *Array {
	x, err := strconv.ParseComplex(strings.ReplaceAll(text, "j", "i"), 128)
	if err != nil || !strings.Contains(text, "j") {
		return nil
	}
	return &Array{dtype: tensor.F64, number: true, complex: true, d: []float64{real(x), imag(x)}}
}

// real shows complex numbers with a last axis of real and imaginary part.
func (a *Array) real() *Array {
	if !a.complex {
		fail("%s is not complex", a.dtype)
	}
	v := a.view(append(slices.Clone(a.shape), 2), append(slices.Clone(a.strides), 1), a.off)
	v.complex = false
	return v
}

// parts are the real and the imaginary ones.
func (a *Array) parts() (re, im *Array) {
	if !a.complex {
		return a, newArray(a.dtype, slices.Clone(a.shape), a.d != nil)
	}
	r, d := a.real(), len(a.shape)
	return r.slice(d, 0, 1, 1).without(d), r.slice(d, 1, 1, 1).without(d)
}

// asComplex shows a last axis of real and imaginary part as complex numbers.
func (a *Array) asComplex() *Array {
	r := len(a.shape) - 1
	if r < 0 || a.shape[r] != 2 || a.complex {
		fail("complex numbers of %v", a.shape)
	}
	if a.strides[r] != 1 || a.h != nil {
		a = a.cast(tensor.F32, a.d != nil).pack()
	}
	v := a.view(a.shape[:r], a.strides[:r], a.off)
	v.complex = true
	return v
}

// complexly makes the first result of two operands that are broadcast to one another, complex or not.
func (c *Call) complexly(f func(x, y complex128) complex128, a, b *Array) *Array {
	shape := together(a, b)
	x := a.complexes(shape)
	for i, y := range b.complexes(shape) {
		x[i] = f(x[i], y)
	}
	return c.ofComplex(shape, x)
}

// ofComplex makes the first result of complex numbers, or of their real parts where it is not complex.
func (c *Call) ofComplex(shape []int, x []complex128) *Array {
	out := c.of(0, shape)
	to, parts := out, make([]float64, 0, 2*len(x))
	if out.complex {
		to = out.real()
	}
	for _, v := range x {
		if parts = append(parts, real(v)); out.complex {
			parts = append(parts, imag(v))
		}
	}
	to.write(parts, 0)
	return out
}

// complexes returns the elements in row-major order.
func (a *Array) complexes(shape []int) []complex128 {
	a = a.broadcast(shape)
	x := make([]complex128, a.Len())
	if !a.complex {
		for i, v := range a.floats64() {
			x[i] = complex(v, 0)
		}
		return x
	}
	parts := a.real().floats64()
	for i := range x {
		x[i] = complex(parts[2*i], parts[2*i+1])
	}
	return x
}

// transform is Fourier's along some axes, times 1, 1/√n or 1/n of the n numbers of a signal. What it makes
// of numbers is symmetric: c2r is given the first half of the last axis, and r2c may return it (onesided).
func transform(c *Call) *Array {
	a, dims, name := c.self(), c.ints("dim"), key(c.op.Full)
	if len(dims) == 0 {
		fail("no axis")
	}
	x, shape, n := a.complexes(a.shape), slices.Clone(a.shape), 1.0
	last := axis(dims[len(dims)-1], len(shape))
	for _, d := range dims {
		if d = axis(d, len(shape)); shape[d] == 0 {
			fail("no numbers along axis %d", d)
		}
		if d == last && name == "_fft_c2r" {
			x = mirrored(x, shape, d, c.int("last_dim_size", 0))
		}
		n *= float64(shape[d])
		t := fourier.NewCmplxFFT(shape[d])
		turn := t.Sequence
		if get(c, "forward", name == "_fft_r2c") {
			turn = t.Coefficients
		}
		line, to, inner := make([]complex128, shape[d]), make([]complex128, shape[d]), size(shape[d+1:])
		for i := range len(x) / len(line) {
			from := i/inner*inner*len(line) + i%inner
			for k := range line {
				line[k] = x[from+k*inner]
			}
			for k, v := range turn(to, line) {
				x[from+k*inner] = v
			}
		}
	}
	by := [...]complex128{1, complex(1/math.Sqrt(n), 0), complex(1/n, 0)}[c.int("normalization", 0)]
	for i := range x {
		x[i] *= by
	}
	out := c.ofComplex(shape, x)
	if c.is("onesided") {
		out = out.slice(last, 0, shape[last]/2+1, 1)
	}
	return out
}

// mirrored makes an axis of n numbers of its first half: x[k] = conj(x[n−k]).
func mirrored(x []complex128, shape []int, d, n int) []complex128 {
	m, inner := shape[d], size(shape[d+1:])
	if n < 1 || n/2+1 > m {
		fail("%d numbers of %d", n, m)
	}
	shape[d] = n
	out := make([]complex128, size(shape))
	for i := range out {
		k, from := i/inner%n, i/inner/n*m*inner+i%inner
		if out[i] = x[from+min(k, n-k)*inner]; k > n-k {
			out[i] = cmplx.Conj(out[i])
		}
	}
	return out
}
