package vec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// of makes a tensor of one row.
func of[T tensor.Element](v ...T) *tensor.Tensor { return must(tensor.Of(v, 1, len(v))) }

func must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}

var (
	f, b, n = of[float32], of[bool], of[int64]
	negInf  = float32(math.Inf(-1))
)

func TestSame(t *testing.T) {
	bf16 := must(tensor.New(tensor.BF16, []int{1, 3}, []byte{0, 0, 0, 0, 0x1c, 0xc6})) // 0, 0, −9984
	for _, row := range []struct {
		reason       string
		g, a         *tensor.Tensor
		same, isMask bool
	}{
		{"lowest float32 against −Inf", f(0, 0, -math.MaxFloat32), f(0, 0, negInf), true, true},
		{"−1e4 against the lowest", f(0, 0, -1e4), f(0, 0, -3.39e38), true, true},
		{"−1e4 as bfloat16 has it", f(0, 0, -1e4), bf16, true, true},
		{"the sum of two masks", f(0, -2e4, -1e4), f(0, negInf, negInf), true, true},
		{"additive against bool", f(0, negInf), b(true, false), true, true},
		{"additive against int", f(0, -1e4), n(1, 0), true, true},
		{"bool against int", b(true, false), n(1, 0), true, true},
		{"float of ones and zeros against bool", f(1, 0), b(true, false), true, true},
		{"float of ones and zeros against additive", f(1, 0), f(0, -1e4), true, true},
		{"no padding: zeros against true", f(0, 0), b(true, true), true, true},
		{"no padding: ones against additive zeros is not sure", f(1, 1), f(0, 0), false, false},
		{"a dead output is not a mask that allows everything", f(0, 0), f(1, 1), false, false},
		{"zeros against zeros are compared as numbers", f(0, 0), f(0, 0), false, false},
		{"another place", f(0, -1e4), f(-1e4, 0), false, true},
		{"all allowed against one denied", b(true, true), f(0, -1e4), false, true},
		{"inverted", b(true, false), b(false, true), false, true},
		{"activations", f(0.5, 1), f(0, -1e4), false, false},
		{"a mask against activations", f(0, -1e4), f(0, -3), false, false},
		{"ones and low values", f(1, -1e4), f(0, -1e4), false, false},
		{"NaN", f(0, float32(math.NaN())), f(0, -1e4), false, false},
		{"+Inf", f(0, float32(math.Inf(1))), f(0, -1e4), false, false},
		{"token ids", n(101, 0), b(true, false), false, false},
		{"integers do not add", n(0, -10000), f(0, -1e4), false, false},
		{"other shapes", f(0, -1e4), f(0, 0, -1e4), false, false},
		{"one element", b(true), n(1), true, true},
		{"no element", b(), n(), false, false},
		{"empty", f(), f(), false, false},
	} {
		same, isMask := sameMask(row.g, row.a)
		assert.Equal(t, []bool{row.same, row.isMask}, []bool{same, isMask}, row.reason)
		same, isMask = sameMask(row.a, row.g)
		assert.Equal(t, []bool{row.same, row.isMask}, []bool{same, isMask}, "turned: "+row.reason)
	}
	long := make([]bool, 5000)
	for i := range long {
		long[i] = i%2 == 0
	}
	other := append([]bool{}, long...)
	other[4500] = !other[4500]
	same, isMask := sameMask(must(tensor.Of(long, 5000, 1)), must(tensor.Of(other, 5000, 1)))
	assert.Equal(t, []bool{false, true}, []bool{same, isMask}, "the difference is after the first block")
}

func TestDifferAndConstants(t *testing.T) {
	for _, c := range []struct {
		g, a           *tensor.Tensor
		differ         int
		isMask         bool
		golden, actual string
		reason         string
	}{
		{f(0, -math.MaxFloat32, 0), f(0, -1e4, -1e4), 1, true, "-3.4028235e+38 and 0", "-10000 and 0", "as they are in the files"},
		{f(0, negInf), f(0, -1e9), 0, true, "-Inf and 0", "-1e+09 and 0", "an infinity has no digits"},
		{f(0, -1e4), b(false, false), 1, true, "-10000 and 0", "0", "bools"},
		{f(0, -1e4, -2e4, -3e4, -4e4), f(0, 0, 0, 0, 0), 4, true, "-40000, -30000, -20000, -10000, …", "0", "sums of masks"},
		{f(1, 0.5), f(0, 1), 0, false, "0.5 and 1", "0 and 1", "no masks"},
	} {
		differ, isMask := vec.MasksDiffer(c.g, c.a)
		assert.Equal(t, [2]any{c.differ, c.isMask}, [2]any{differ, isMask}, c.reason)
		assert.Equal(t, [2]string{c.golden, c.actual}, [2]string{vec.MaskConstants(c.g), vec.MaskConstants(c.a)}, c.reason)
	}
	assert.Empty(t, vec.MaskConstants(f()), "an empty one holds nothing")
	assert.Equal(t, "0.1", vec.MaskConstants(of(0.1)), "float64 has more digits")
}

// A bias with a mask in it is compared where nothing is hidden.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		g, a   *tensor.Tensor
		ok     bool
		reason string
	}{
		{f(1, negInf, -2e4, 3), f(2, -3.4e38, -1e4, 4), true, "the same ones are hidden"},
		{f(1, -65500, -2e4, 3), f(2, -1e4, -1e4, 4), true, "with the least of float16, nearly"},
		{f(1, -65600, -2e4, 3), f(2, -1e4, -1e4, 4), false, "with no number that only a mask has"},
		{f(negInf, 2), f(1, 2), false, "one side hides more"},
		{f(negInf, 2, negInf), f(negInf, negInf, negInf), false, "one side hides more, in the middle"},
		{f(1, 2), f(1, 2), false, "nothing is hidden"},
		{f(negInf), f(negInf, negInf), false, "other shapes"},
		{n(-70000), f(negInf), false, "integers do not add"},
	} {
		for _, pair := range [][2]*tensor.Tensor{{c.g, c.a}, {c.a, c.g}} {
			g, a, ok := vec.AllowedByMasks(pair[0], pair[1])
			if assert.Equal(t, c.ok, ok, c.reason); ok {
				assert.Equal(t, []float64{pair[0].At(0), 0, 0, pair[0].At(3)}, []float64{g.At(0), g.At(1), g.At(2), g.At(3)}, c.reason)
				assert.Equal(t, []float64{pair[1].At(0), 0, 0, pair[1].At(3)}, []float64{a.At(0), a.At(1), a.At(2), a.At(3)}, c.reason)
			}
		}
	}
}

func sameMask(golden, actual *tensor.Tensor) (same, isMask bool) {
	differ, isMask := vec.MasksDiffer(golden, actual)
	return isMask && differ == 0, isMask
}
