package weights

import (
	"bytes"
	"cmp"
	"math"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// figures are what a pass over a weight and the candidate's counts.
type figures struct {
	N          int     `json:"elements"`
	Mismatches int     `json:"mismatches"`      // elements that are not equal after the step
	RelL2      float64 `json:"rel_l2"`          // ‖c − r‖ / ‖r‖
	First      []int   `json:"first,omitempty"` // index of the first mismatch
	Zeros      bool    `json:"-"`               // the candidate's elements are all 0
	refZeros   bool
	looked     int // elements that were looked at
	first      int
	dd, rr     float64
	cc, rc     float64 // Σ c², Σ r·c
	sine       float64 // of the angle between the two
	bad        bool    // a NaN or an infinity that the reference has not
	rows       int     // that have a mismatch
	cast       bool    // equal only after rounding one side to the type of the other
}

// comparer compares two tensors with equally many elements, in order.
type comparer struct {
	ref, cand     *tensor.Tensor
	step          *step
	refTo, candTo func(v float64) float64 // casts of one side to the type of the other
	a, b          []float64
}

// newComparer returns nil if the step does not fit.
func newComparer(ref, cand *tensor.Tensor, s *step) *comparer {
	laid, ok := s.lay(ref)
	if !ok || laid.Len() != cand.Len() {
		return nil
	}
	c := &comparer{ref: laid, cand: cand, step: s}
	if s.turned && ref.Packing() != "" && cand.Packing() == "" {
		// Columns of blocks need all of them: the other side's columns are read.
		if x, err := cand.Transpose(); err == nil {
			c.ref, c.cand = ref, x
		}
	}
	switch coarse := coarser(ref.DType(), cand.DType()); {
	case ref.DType() == cand.DType() && ref.Packing() == "" && cand.Packing() == "":
	case coarse == cand.DType():
		c.refTo = caster(coarse)
	default:
		c.candTo = caster(coarse)
	}
	return c
}

// coarser returns the type with fewer digits, the second if both have as many.
func coarser(a, b tensor.DType) tensor.DType {
	if a.IsFloat() && b.IsFloat() && a.Epsilon() > b.Epsilon() {
		return a
	}
	return b
}

// pass compares elements from, from+1, … to−1 and adds them to f.
func (c *comparer) pass(f *figures, from, to int) {
	f.looked += to - from
	width := max(c.cand.RowLen(), 1)
	eps := cmp.Or(c.step.ulps, ulps) * math.Max(c.ref.DType().Epsilon(), c.cand.DType().Epsilon())
	least := cmp.Or(c.step.ulps, ulps) * math.Max(subnormal(c.ref.DType()), subnormal(c.cand.DType()))
	row := -1
	for from < to {
		n := min(chunk, to-from)
		if len(c.a) < n {
			c.a, c.b = make([]float64, n), make([]float64, n)
		}
		a, b := c.a[:n], c.b[:n]
		c.ref.Float64s(a, from)
		c.cand.Float64s(b, from)
		for i, y := range b {
			x := a[i]
			size := math.Abs(x)
			if c.step.column != nil {
				x *= c.step.column[(from+i)%width]
			}
			if c.step.row != nil {
				r := c.step.row[(from+i)*len(c.step.row)/c.cand.Len()]
				size = math.Abs(x*r.scale) + r.size
				x = x*r.scale + r.shift
			}
			if c.step.number != nil {
				x = c.step.number(x)
			}
			if x == y || x != x && y != y {
				if x*x <= math.MaxFloat64 {
					f.rr, f.cc, f.rc = f.rr+x*x, f.cc+x*x, f.rc+x*x
				}
				f.refZeros, f.Zeros = f.refZeros && x == 0, f.Zeros && y == 0
				continue
			}
			f.refZeros, f.Zeros = f.refZeros && x == 0, f.Zeros && y == 0
			d := y - x
			if math.IsNaN(d) || math.IsInf(d, 0) {
				f.bad = true
			} else {
				f.dd += d * d
				f.rr, f.cc, f.rc = f.rr+x*x, f.cc+y*y, f.rc+x*y
			}
			near := max(eps*math.Max(math.Abs(x), size), least)
			if c.step.number != nil {
				near = min(near, math.Abs(x-a[i])/4) // a step that moves less than that is not seen
			}
			if c.alike(x, y, near) {
				f.cast = true
				continue
			}
			if f.Mismatches == 0 {
				f.first = from + i
			}
			if r := (from + i) / width; r != row {
				row = r
				f.rows++
			}
			f.Mismatches++
		}
		from += n
	}
}

// alike reports whether a number of the reference, after the step, is one of the candidate in another
// type, or as near as the step's own rounding.
func (c *comparer) alike(x, y, near float64) bool {
	switch {
	case !c.step.moves():
		return math.Abs(y-x) <= near || c.rounded(x) == y
	case c.refTo != nil:
		return c.refTo(x) == y && !math.IsInf(y, 0)
	case c.candTo != nil:
		return c.candTo(y) == x && !math.IsInf(x, 0)
	}
	return false
}

// rounded is a number in the coarser type.
func (c *comparer) rounded(v float64) float64 {
	if round := caster(coarser(c.ref.DType(), c.cand.DType())); round != nil {
		return round(v)
	}
	return v
}

// subnormal is the smallest number of a type, the distance of those that are nearly 0.
func subnormal(d tensor.DType) float64 {
	if d == tensor.F16 {
		return 0x1p-24
	}
	return 0
}

func newFigures() *figures { return &figures{Zeros: true, refZeros: true, first: -1} }

// sample looks at some parts.
func (c *comparer) sample() *figures {
	f := newFigures()
	total := c.cand.Len()
	if total <= samples*sampleLen {
		c.pass(f, 0, total)
	} else {
		for i := range samples {
			at := i * (total - sampleLen) / (samples - 1)
			c.pass(f, at, at+sampleLen)
		}
	}
	f.finish(c)
	return f
}

// all looks at everything.
func (c *comparer) all() *figures {
	f := newFigures()
	if c.step.moves() && c.ref.DType() == c.cand.DType() {
		a, okA := c.ref.Bytes()
		b, okB := c.cand.Bytes()
		if okA && okB && bytes.Equal(a, b) {
			f.N, f.looked = c.cand.Len(), c.cand.Len()
			return f
		}
	}
	if cast, same := c.rounds(); same {
		f.N, f.looked, f.cast = c.cand.Len(), c.cand.Len(), cast
		return f
	}
	c.pass(f, 0, c.cand.Len())
	f.finish(c)
	return f
}

func (f *figures) finish(c *comparer) {
	f.N, f.sine = c.cand.Len(), 1
	if f.rr > 0 && f.cc > 0 {
		f.sine = math.Sqrt(math.Max(0, 1-f.rc/f.rr*(f.rc/f.cc)))
	}
	switch {
	case f.rr > 0:
		f.RelL2 = math.Sqrt(f.dd / f.rr)
	case f.dd > 0:
		f.RelL2 = math.MaxFloat64 // the reference is zero
	}
	f.RelL2 = math.Min(f.RelL2, math.MaxFloat64) // JSON has no infinity
	if f.first >= 0 {
		f.First = c.cand.Index(f.first)
	}
}

// rounds reports whether all elements are equal, or the coarser type's nearest ones. It is pass for
// the usual case, at the speed of memory.
func (c *comparer) rounds() (cast, same bool) {
	r, y := c.ref.DType(), c.cand.DType()
	if !c.step.moves() || !r.IsFloat() || !y.IsFloat() || max(r.Size(), y.Size()) > 4 || min(r.Size(), y.Size()) < 2 {
		return false, false
	}
	to, both := coarser(r, y), c.refTo == nil && c.candTo == nil
	a, b := make([]float32, chunk), make([]float32, chunk)
	for from, total := 0, c.cand.Len(); from < total; from += chunk {
		n := min(chunk, total-from)
		a, b := a[:n], b[:n]
		c.ref.Float32s(a, from)
		c.cand.Float32s(b, from)
		if !both {
			if c.candTo != nil {
				a, b = b, a // the one that is rounded first
			}
			changed, ok := nearest(a, b, to)
			if !ok {
				return false, false
			}
			cast = cast || changed
			continue
		}
		for i, v := range a {
			if v != b[i] && (v == v || b[i] == b[i]) {
				return false, false
			}
		}
	}
	return cast, true
}

// nearest reports whether b is a, rounded to a type, and whether that changes an element.
func nearest(a, b []float32, to tensor.DType) (changed, ok bool) {
	differ := false
	for i, v := range a {
		w := b[i]
		if v == w {
			continue
		}
		switch to {
		case tensor.BF16:
			bits := math.Float32bits(v)
			v = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
		case tensor.F16:
			v = smallfloat.RoundF16(v)
		}
		if v != w && (a[i] == a[i] || w == w) || v-v != 0 && a[i]-a[i] == 0 {
			return false, false
		}
		differ = true
	}
	return differ, true
}
