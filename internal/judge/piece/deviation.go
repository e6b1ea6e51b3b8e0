package piece

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/vec"
)

// deviation is the relative L2 error of a tensor and of its worst row.
type deviation struct{ whole, row float64 }

func (d deviation) max(o deviation) deviation {
	return deviation{math.Max(d.whole, o.whole), math.Max(d.row, o.row)}
}

func (d deviation) exceeds(limit deviation) bool {
	return !(d.whole <= limit.whole && d.row <= limit.row)
}

// numbers are the elements of a tensor, in rows along its last axis.
type numbers struct {
	x     []float64
	width int
}

func (n numbers) rows() int {
	if n.width == 0 {
		return 0
	}
	return len(n.x) / n.width
}

func (n numbers) row(i int) []float64 { return n.x[i*n.width : (i+1)*n.width] }

// meaning returns an additive mask as what it denies, and other numbers as they are: −1e4 and −inf
// deny the same.
func (n numbers) meaning() numbers {
	if slices.ContainsFunc(n.x, func(v float64) bool { return v != 0 && !vec.Denied(v) }) {
		return n
	}
	x := make([]float64, len(n.x))
	for i, v := range n.x {
		if v != 0 {
			x[i] = 1
		}
	}
	return numbers{x, n.width}
}

// apart returns the difference of two elements, and what the second adds to a norm. Equal numbers,
// two NaN, and two that are as good as infinite do not differ; of the latter nothing is added.
func apart(a, b float64) (diff, norm float64) {
	if math.Abs(b) > huge {
		if a == b || math.Abs(a) > huge && math.Signbit(a) == math.Signbit(b) {
			return 0, 0
		}
		return math.Inf(1), 0
	}
	if a == b || a != a && b != b {
		if b != b {
			b = 0
		}
		return 0, b
	}
	return a - b, b
}

// rowErrors returns ‖a−b‖ and ‖b‖ of each row of b. a may have the same elements in another shape.
func rowErrors(a, b numbers) (diffs, norms []float64) {
	a.width = b.width
	diffs, norms = make([]float64, b.rows()), make([]float64, b.rows())
	for i := range diffs {
		x, y := a.row(i), b.row(i)
		var d2, n2 float64
		for k := range y {
			d, n := apart(x[k], y[k])
			d2 += d * d
			n2 += n * n
		}
		diffs[i], norms[i] = math.Sqrt(d2), math.Sqrt(n2)
	}
	return diffs, norms
}

// rowsApart is the error of each row of a, relative to that of b.
func rowsApart(a, b numbers) []float64 {
	diffs, norms := rowErrors(a, b)
	for i := range diffs {
		diffs[i] = relative(diffs[i], norms[i])
	}
	return diffs
}

// difference returns the error of a, relative to b, over the rows that count; nil: all. A row is
// measured by its own norm, or leastRow of the RMS of all if that is larger; what has no norm, by 1.
// A NaN or an infinity without a partner makes it infinite.
func difference(a, b numbers, counts func(row int) bool) deviation {
	a, b = a.meaning(), b.meaning()
	diffs, norms := rowErrors(a, b)
	var d2, n2 float64
	n := 0
	for i := range diffs {
		if counts == nil || counts(i) {
			d2, n2, n = d2+diffs[i]*diffs[i], n2+norms[i]*norms[i], n+1
		}
	}
	if n == 0 {
		return deviation{}
	}
	f := deviation{whole: relative(math.Sqrt(d2), math.Sqrt(n2))}
	least := leastRow * math.Sqrt(n2/float64(n))
	for i := range diffs {
		if counts == nil || counts(i) {
			f.row = math.Max(f.row, relative(diffs[i], math.Max(norms[i], least)))
		}
	}
	return f
}

func relative(diff, norm float64) float64 {
	switch {
	case diff != diff:
		return math.Inf(1)
	case norm == 0:
		return diff
	}
	return diff / norm
}

// larger returns by which part of itself a record of 16 bits is larger throughout than what was made of it, if
// that is no rounding; else 0. Roundings are random: their part is small, whatever their size is. That
// of a weight that is 1 % too large, or of another eps, is not.
//
//	part = ⟨have − made, made⟩ / ⟨made, made⟩
//
// It has to be more than one unit of rounding, which a constant may be off (leastUnits where few slices along an axis
// hold the numbers: what one channel is multiplied with was rounded several times), than perNoise times what
// rounding each result makes, and than leastErrors standard errors, of rows and of elements. More than
// mostLarger is seen by its size, and may be another way to write the same.
func (c *comparison) larger() float64 {
	if !compare.Has16Bits(c.Encoding) || len(c.made.x) < leastElements || c.Records[c.port].Rows != nil {
		return 0
	}
	part, err := coherent(c.made, c.have)
	size, unit := math.Abs(part), c.Encoding.Epsilon()
	if size <= unit || size > mostLarger || size < leastErrors*err || size <= leastUnits*unit && c.few() {
		return 0
	}
	rounded, fail := c.in(roundings(c.Encoding)[0])
	if fail != nil {
		return 0
	}
	if of, _ := coherent(c.made, rounded); math.Abs(part) <= perNoise*math.Abs(of) {
		return 0
	}
	return part
}

// few reports whether fewer than leastRows of the slices along an axis hold what a tensor consists of.
func (c *comparison) few() bool {
	shape, stride := c.Records[c.port].Tensor.Shape(), len(c.made.x)
	for _, n := range shape {
		stride /= max(n, 1)
		if n < leastRows || stride == 0 {
			continue
		}
		of := make([]float64, n)
		for i, x := range c.made.x {
			of[i/stride%n] += float64(x * x)
		}
		var sum, squares float64
		for _, x := range of {
			sum, squares = sum+x, squares+float64(x*x)
		}
		if sum*sum < leastRows*squares {
			return true
		}
	}
	return false
}

// coherent returns by which part of itself one tensor is larger than another, and the standard error of
// that: the larger of what rows and elements tell.
func coherent(made, have numbers) (part, err float64) {
	have.width = made.width
	var square, product float64
	sum := func(i int) (s2, sp, pp float64) { // of a row: made², difference·made, and the squares of the latter's rest
		for k, m := range made.row(i) {
			if d, n := apart(have.row(i)[k], m); n != 0 && !math.IsInf(d, 0) {
				s2, sp, pp = s2+m*m, sp+d*m, pp+(d-part*m)*(d-part*m)*m*m
			}
		}
		return s2, sp, pp
	}
	for i := range made.rows() {
		s2, sp, _ := sum(i)
		square, product = square+s2, product+sp
	}
	if square == 0 {
		return 0, inf
	}
	part = product / square
	var rows, elements float64
	for i := range made.rows() {
		s2, sp, pp := sum(i)
		rows, elements = rows+(sp-part*s2)*(sp-part*s2), elements+pp
	}
	if made.rows() < leastRows {
		rows = 0
	}
	return part, math.Sqrt(math.Max(rows, elements)) / square
}
