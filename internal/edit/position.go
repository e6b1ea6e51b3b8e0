package edit

import (
	"iter"
	"maps"
	"math"
	"math/cmplx"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// shifts are other positions of the tokens of a forward pass: by how many each is further on.
func (f *Fed) shifts(add func(rank int, text string, by func(position int) int)) {
	all := func(rank int, text string, by int) { add(rank, text, func(int) int { return by }) }
	if f.From > 0 {
		all(0, "the positions of the forward pass begin at 0 again", -f.From)
		if f.To-f.From > 1 {
			add(1, "all tokens of the forward pass have the position of its first", func(p int) int { return f.From - p })
		}
	}
	if f.Padding > 0 {
		all(0, "the positions count the padding in front", f.Padding)
	}
	for _, by := range []int{1, -1, 2, -2, 3, -3} {
		if by != -f.From && by != f.Padding {
			all(1, text("the positions of the forward pass are off by %+d", by), by)
		}
	}
}

// positions are whole numbers that count the rows: others in the forward pass.
func (s *site) positions() {
	f := s.fed
	for id, v := range s.values() {
		if s.base.Value(id) == nil || isFloat(v) || v.DType == tensor.Bool || v.DType == tensor.Invalid {
			continue
		}
		for _, axis := range f.rowAxes(v.Shape) {
			x := s.floats(id)
			if !f.counts(x, v.Shape, axis) {
				continue
			}
			f.shifts(func(rank int, text string, by func(p int) int) {
				moved := func() []float64 {
					x := slices.Clone(x)
					for p, at := range f.each(v.Shape, axis, f.From, f.To) {
						x[at] = math.Max(x[at]+float64(by(p)), 0)
					}
					return x
				}
				if id == s.Out {
					s.last("state", rank, text, func(w *writer, _ program.ID) program.ID {
						return w.numbers(v.DType, v.Shape, moved)
					}).ID = "state/position"
				}
				s.otherNumbers("state/position", rank, text, map[program.ID]func() []float64{id: moved}, s.takers(id))
			})
		}
	}
}

// counts reports whether the numbers of the sequence's rows are one more from each to the next.
func (f *Fed) counts(x []float64, shape []int, axis int) bool {
	last := math.Inf(-1)
	for p, at := range f.each(shape, axis, 0, len(f.At)) {
		if p > 0 && x[at] != last+1 {
			return false
		}
		last = x[at]
	}
	return len(f.At) > 1
}

// otherNumbers appends an edit after which operators take values with other numbers.
func (s *site) otherNumbers(id string, rank int, text string, of map[program.ID]func() []float64, at []int) {
	s.instead("state", rank, text, at, slices.Collect(maps.Keys(of)), func(w *writer, x program.ID) program.ID {
		return w.numbers(s.Values[x].DType, s.shape(x), of[x])
	}).ID = id
}

// angles are cosines and sines that rows are turned by: those of other positions in the forward pass, for all that take
// them, or for one of several.
func (s *site) angles() {
	for c, t := range s.circles() {
		shape := s.shape(c)
		if s.fed != nil {
			for _, axis := range s.fed.rowAxes(shape) {
				s.turned(s.fed, "state/position", c, t, axis)
			}
			continue
		}
		for axis, n := range shape[:len(shape)-1] {
			if n > 2 {
				s.turned(onePass(n), "", c, t, axis)
			}
		}
	}
}

// circles are the pairs of values of one shape that may be cosines and sines.
func (s *site) circles() iter.Seq2[program.ID, program.ID] {
	var tables []program.ID
	for id, v := range s.values() {
		if isFloat(v) && v.Weight == "" && s.base.Value(id) != nil && len(v.Shape) > 1 {
			tables = append(tables, id)
		}
	}
	return func(yield func(c, t program.ID) bool) {
		for _, c := range tables {
			for _, t := range tables {
				if c != t && slices.Equal(s.shape(c), s.shape(t)) && !yield(c, t) {
					return
				}
			}
		}
	}
}

// turns reports whether two values are cosines and sines of rows of angles, each as much further on.
func (s *site) turns(f *Fed, c, t program.ID, axis int) bool {
	x, y := s.floats(c), s.floats(t)
	shape := s.shape(c)
	inner := size(shape[axis+1:])
	varies := false
	last, by := make([]complex128, inner), make([]complex128, inner)
	for p, at := range f.each(shape, axis, 0, len(f.At)) {
		k, now, ok := at%inner, complex(x[at], y[at]), true
		switch p {
		case 0:
			ok = now != 0
		case 1:
			by[k] = now / last[k]
			ok = math.Abs(cmplx.Abs(by[k])-1) <= near
			varies = varies || cmplx.Abs(by[k]-1) > near
		default:
			ok = varies && cmplx.Abs(now-last[k]*by[k]) <= near*cmplx.Abs(last[k])
		}
		if !ok {
			return false
		}
		last[k] = now
	}
	return varies && len(f.At) > 2
}

// turned lists faults of the positions of two values that are cosines and sines.
func (s *site) turned(f *Fed, id string, c, t program.ID, axis int) {
	if !s.turns(f, c, t, axis) {
		return
	}
	cos, sin, shape := s.floats(c), s.floats(t), s.shape(c)
	inner := size(shape[axis+1:])
	from, angle := make([]complex128, inner), make([]float64, inner) // from each position to the next
	for _, at := range f.each(shape, axis, 0, 1) {
		from[at%inner] = complex(cos[at], sin[at])
	}
	for _, at := range f.each(shape, axis, 1, 2) {
		angle[at%inner] = cmplx.Phase(complex(cos[at], sin[at]) / from[at%inner])
	}
	of, by := s.takers(c), s.takers(t)
	write := func(rank int, what string, shift func(p int) int) {
		rotated := func(old []float64, part func(z complex128) float64) func() []float64 {
			return func() []float64 {
				x := slices.Clone(old)
				for p, at := range f.each(shape, axis, f.From, f.To) {
					x[at] = part(complex(cos[at], sin[at]) * cmplx.Rect(1, angle[at%inner]*float64(shift(p))))
				}
				return x
			}
		}
		numbers := map[program.ID]func() []float64{
			c: rotated(cos, func(z complex128) float64 { return real(z) }),
			t: rotated(sin, func(z complex128) float64 { return imag(z) }),
		}
		s.otherNumbers(id, rank, what, numbers, s.takers(c, t))
		if len(of) != len(by) || len(of) < 2 || len(of) > mostTakers {
			return
		}
		for k := range of {
			at := []int{min(of[k], by[k]), max(of[k], by[k])}
			s.otherNumbers(id, rank+1, text("%s, those of one that is turned: %d of %d", what, k+1, len(of)), numbers, at)
		}
	}
	f.shifts(func(rank int, text string, shift func(p int) int) {
		write(rank, text, shift)
		if s.fed == nil { // a table has an end
			write(rank, text+", not beyond the last row", func(p int) int { return min(max(p+shift(p), 0), f.Rows-1) - p })
		}
	})
}
