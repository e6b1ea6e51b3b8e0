package compare

import (
	"math"
	"unsafe"

	"github.com/goparity/goparity/tensor"
)

// statsCall has the arguments and the answer of a statistics kernel. internal/kernelgen knows the
// offsets.
type statsCall struct {
	data                   unsafe.Pointer
	n                      int
	pivot                  float64
	_                      uint64
	d, dd, xx, least, most [4]float64
	bad                    [4]uint64
}

var _ [unsafe.Offsetof(statsCall{}.d)]struct{} = [32]struct{}{}

var statsKernels = map[tensor.DType]func(*byte){tensor.F32: statsF32AVX2, tensor.F64: statsF64AVX2,
	tensor.BF16: statsBF16AVX2, tensor.F16: statsF16AVX2}

// reader returns the function that adds n elements from at: by a kernel where the values are finite
// and lie in order, or of a type that is exact in float32.
func (m *spread) reader(t *tensor.Tensor) func(at, n int) {
	if isa == 0 {
		return m.decoded(t)
	}
	kernel, size := statsKernels[t.DType()], t.DType().Size()
	if data, ok := t.Bytes(); ok && kernel != nil {
		return func(at, n int) { m.kernel(kernel, t, at, n, unsafe.Pointer(&data[at*size])) }
	}
	return func(at, n int) {
		values := grow(&m.values, n)
		t.Float64s(values, at)
		m.kernel(statsF64AVX2, t, at, n, unsafe.Pointer(&values[0]))
	}
}

// kernel adds n elements of t from at, which lie at data in the type of the kernel.
func (m *spread) kernel(kernel func(*byte), t *tensor.Tensor, at, n int, data unsafe.Pointer) {
	c := statsCall{data: data, n: n &^ 7, pivot: m.pivot}
	if c.n > 0 {
		for i := range 4 {
			c.least[i], c.most[i] = math.Inf(1), math.Inf(-1)
		}
		kernel((*byte)(unsafe.Pointer(&c)))
		if c.bad != [4]uint64{} {
			c.n = 0 // to be told apart
		} else {
			for i := range 4 {
				m.min, m.max = min(m.min, c.least[i]), max(m.max, c.most[i])
			}
			m.finite += c.n
			m.d.add(total4(&c.d))
			m.dd.add(total4(&c.dd))
			m.xx.add(total4(&c.xx))
		}
	}
	if rest := n - c.n; rest > 0 {
		values := make([]float64, rest)
		t.Float64s(values, at+c.n)
		m.add(values)
	}
}

func total4(v *[4]float64) float64 { return (v[0] + v[2]) + (v[1] + v[3]) }
