package match

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// value is what a tensor holds, by a sample. Equal tensors of a run are one value.
type value struct {
	n      int       // elements of the tensor, padding rows left out
	sample []float32 // of them
	norm   float64   // of the sample
	proj   [projections]float64
	// table says that it may be one of positions or a mask, which models share that have nothing else
	// in common.
	table bool

	from  []*node // the layers whose output it is
	other *value  // the other run's value that it equals; nil if there is none
}

// signs are the random directions of the projections, the same for all samples.
var signs = func() (s [projections][maxSample]float32) {
	r := rand.New(rand.NewPCG(1, 2))
	for k := range s {
		for i := range s[k] {
			s[k][i] = float32(2*r.IntN(2) - 1)
		}
	}
	return s
}()

// sampleOf reads a sample, without padding rows. It returns nil for what is not known by its value:
// integers, few elements, a constant. What is not finite counts as zero.
func sampleOf(t *tensor.Tensor, padding layout.Padding) *value {
	if !t.DType().IsFloat() {
		return nil
	}
	if f, _ := padding.Fit(t.Shape(), t.Shape(), layout.Allow{}); f.RowMask != nil {
		if rows, err := t.SelectRows(f.RowMask); err == nil {
			t = rows
		}
	}
	n := t.Len()
	if n < minElements {
		return nil
	}
	v := &value{n: n}
	if n <= maxSample {
		v.sample = make([]float32, n)
		t.Float32s(v.sample, 0)
	} else {
		v.sample = make([]float32, maxSample)
		runs := maxSample / sampleRun
		for i := range runs {
			t.Float32s(v.sample[i*sampleRun:(i+1)*sampleRun], i*(n-sampleRun)/(runs-1))
		}
	}
	broken := v.repair()
	if !v.project() {
		return nil
	}
	v.table = broken || isTable(v.sample[:min(t.RowLen(), len(v.sample))], v.sample)
	return v
}

// repair writes zeros for what is not finite, and reports whether there was any.
func (v *value) repair() (broken bool) {
	for i, x := range v.sample {
		if d := x - x; d != d {
			v.sample[i], broken = 0, true
		}
	}
	return broken
}

// project computes the norm and the projections; false if the sample tells nothing.
func (v *value) project() bool {
	var sum float64
	for _, x := range v.sample {
		sum += float64(x) * float64(x)
	}
	v.norm = math.Sqrt(sum)
	if v.norm == 0 || math.IsInf(sum, 0) || slices.Min(v.sample) == slices.Max(v.sample) {
		return false
	}
	for k := range v.proj {
		var dot float32
		for i, x := range v.sample {
			dot += signs[k][i] * x
		}
		v.proj[k] = float64(dot) / v.norm
	}
	return true
}

// isTable reports whether numbers may be a mask or a table of positions: few different ones, or a
// first row of one number.
func isTable(row, sample []float32) bool {
	if len(row) > 1 && slices.Min(row) == slices.Max(row) {
		return true
	}
	distinct := map[float32]bool{}
	for _, x := range sample {
		if distinct[x] = true; len(distinct) > 4 {
			return softmax(row, sample)
		}
	}
	return true
}

// softmax reports whether rows may be probabilities, which are alike in all models.
func softmax(row, sample []float32) bool {
	if slices.Min(sample) < 0 || slices.Max(sample) > 1 {
		return false
	}
	var sum float64
	for _, x := range row {
		sum += float64(x)
	}
	return math.Abs(sum-1) < 1e-2
}

// same reports whether two tensors of one run are equal.
func (v *value) same(o *value) bool {
	return v.n == o.n && v.norm == o.norm && v.proj == o.proj && slices.Equal(v.sample, o.sample)
}

// distance is ‖v − o‖ / ‖v‖ of the samples, +Inf if they are of tensors of different sizes.
func (v *value) distance(o *value) float64 {
	if v.n != o.n {
		return math.Inf(1)
	}
	var sum float64
	for i, x := range v.sample {
		d := float64(x) - float64(o.sample[i])
		sum += d * d
	}
	return math.Sqrt(sum) / v.norm
}

// near reports whether the distance may be within a tolerance, by the projections.
func (v *value) near(o *value, tolerance float64) bool {
	var sum float64
	for k := range v.proj {
		d := v.proj[k] - o.proj[k]
		sum += d * d
	}
	return sum <= projections*9*tolerance*tolerance
}

// correlation is the cosine of the deviations of two samples of one size from their means.
func (v *value) correlation(o *value) float64 {
	n := float64(len(v.sample))
	var a, b, ab, aa, bb float64
	for i, x := range v.sample {
		x, y := float64(x), float64(o.sample[i])
		a, b, ab, aa, bb = a+x, b+y, ab+x*y, aa+x*x, bb+y*y
	}
	d := math.Sqrt((aa - a*a/n) * (bb - b*b/n))
	if d == 0 || math.IsNaN(d) {
		return 0
	}
	return (ab - a*b/n) / d
}

// resemblance is the correlation of two values that may be those of one layer on both sides of an
// error; 0 where it may be chance.
func (v *value) resemblance(o *value) float64 {
	if v == nil || o == nil || v.n != o.n || v.table || o.table || !v.near(o, 0.45) {
		return 0
	}
	if c := v.correlation(o); c*math.Sqrt(float64(len(v.sample))) >= alikeSigmas {
		return c
	}
	return 0
}
