package piece

import (
	"math"

	"github.com/goparity/goparity/internal/compare"
)

// larger returns by which part of itself a record of 16 bits is larger throughout than what was made of it, if
// that is no rounding; else 0. Roundings are random: their part is small, whatever their size is. That
// of a weight that is 1 % too large, or of another eps, is not.
//
//	part = ⟨have − made, made⟩ / ⟨made, made⟩
//
// It has to be more than one unit of rounding, which a constant may be off, than perNoise times what
// rounding each result makes, and than leastErrors standard errors, of rows and of elements. More than
// mostLarger is seen by its size, and may be another way to write the same.
func (c *comparison) larger() float64 {
	if !compare.Has16Bits(c.Encoding) || len(c.made.x) < leastElements || c.Records[c.port].Rows != nil {
		return 0
	}
	part, err := coherent(c.made, c.have)
	if math.Abs(part) <= c.Encoding.Epsilon() || math.Abs(part) > mostLarger || math.Abs(part) < leastErrors*err {
		return 0
	}
	a, fail := c.replay(c.port, c.out, roundings(c.Encoding)[0], c.basis)
	if fail != nil {
		return 0
	}
	rounded, _ := c.Records[c.port].arrange(a)
	if of, _ := coherent(c.made, rounded); math.Abs(part) <= perNoise*math.Abs(of) {
		return 0
	}
	return part
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
