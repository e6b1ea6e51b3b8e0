package edit

import (
	"fmt"
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
	all := func(by int) func(int) int { return func(int) int { return by } }
	if f.From > 0 {
		add(0, "the positions of the forward pass begin at 0 again", all(-f.From))
		if f.To-f.From > 1 {
			add(1, "all tokens of the forward pass have the position of its first", func(p int) int { return f.From - p })
		}
	}
	if f.Padding > 0 {
		add(0, "the positions count the padding in front", all(f.Padding))
	}
	for _, by := range []int{1, -1, 2, -2, 3, -3} {
		if by != -f.From && by != f.Padding {
			add(1, fmt.Sprintf("the positions of the forward pass are off by %+d", by), all(by))
		}
	}
}

// positions are whole numbers that count the rows: others in the forward pass.
func (s *site) positions() {
	f := s.fed
	for i, v := range s.Values {
		id := program.ID(i)
		x := s.Value(id)
		if x == nil || isFloat(v) || v.DType == tensor.Bool || v.DType == tensor.Invalid {
			continue
		}
		for _, axis := range f.rowAxes(x.Shape()) {
			numbers := x.Floats()
			if !f.counts(numbers, v.Shape, axis) {
				continue
			}
			f.shifts(func(rank int, text string, by func(p int) int) {
				moved := func() []float64 {
					x := slices.Clone(numbers)
					f.each(v.Shape, axis, func(p, at int) { x[at] = math.Max(x[at]+float64(by(p)), 0) })
					return x
				}
				if id == s.Out {
					s.lastOf("state/position", rank, text, func(w *writer, _ program.ID) program.ID {
						return w.numbered(program.Value{Shape: v.Shape, DType: v.DType}, moved)
					})
				}
				s.otherNumbers("state/position", rank, text, map[program.ID]func() []float64{id: moved}, s.takers(id))
			})
		}
	}
}

// counts reports whether the numbers of the sequence's rows are one more from each to the next.
func (f *Fed) counts(x []float64, shape []int, axis int) bool {
	last, ok := math.Inf(-1), len(f.At) > 1
	f.eachOf(shape, axis, 0, len(f.At), func(p, at int) {
		ok = ok && (p == 0 || x[at] == last+1)
		last = x[at]
	})
	return ok
}

// each calls do for each element of the rows of the forward pass, and eachOf for those of some positions.
func (f *Fed) each(shape []int, axis int, do func(position, at int)) {
	f.eachOf(shape, axis, f.From, f.To, do)
}

func (f *Fed) eachOf(shape []int, axis, from, to int, do func(position, at int)) {
	outer, inner := size(shape[:axis]), size(shape[axis+1:])
	each := outer / f.Lines
	for p := from; p < min(to, len(f.At)); p++ {
		for o := f.Line * each; o < (f.Line+1)*each; o++ {
			for i := range inner {
				do(p, (o*shape[axis]+f.At[p])*inner+i)
			}
		}
	}
}

// otherNumbers appends an edit after which operators take values with other numbers.
func (s *site) otherNumbers(id string, rank int, text string, of map[program.ID]func() []float64, at []int) {
	if len(at) == 0 {
		return
	}
	s.instead("state", rank, text, at, slices.Collect(maps.Keys(of)), func(w *writer, x program.ID) program.ID {
		return w.numbered(program.Value{Shape: s.Value(x).Shape(), DType: s.Values[x].DType}, of[x])
	}).ID = id
}

// angles are cosines and sines that rows are turned by: those of other positions in the forward pass, for all that take
// them, or for one of several.
func (s *site) angles() {
	for c, t := range s.circles() {
		shape := s.shape(c)
		if s.fed != nil {
			for _, axis := range s.fed.rowAxes(shape) {
				if s.turns(s.fed, c, t, axis) {
					s.turned(s.fed, "state/position", c, t, axis)
				}
			}
			continue
		}
		for axis, n := range shape[:len(shape)-1] {
			if f := onePass(n); n > 2 && s.turns(f, c, t, axis) {
				s.turned(f, "", c, t, axis)
			}
		}
	}
}

// circles are the pairs of values of one shape that may be cosines and sines.
func (s *site) circles() iter.Seq2[program.ID, program.ID] {
	return func(yield func(c, t program.ID) bool) {
		for i := range s.Values {
			for j := range s.Values {
				c, t := program.ID(i), program.ID(j)
				if i != j && slices.Equal(s.shape(c), s.shape(t)) && s.isTable(c) && s.isTable(t) && !yield(c, t) {
					return
				}
			}
		}
	}
}

// isTable reports whether a value may be cosines or sines.
func (s *site) isTable(id program.ID) bool {
	v := s.Values[id]
	return isFloat(v) && v.Weight == "" && s.Value(id) != nil && len(v.Shape) > 1
}

// turns reports whether two values are cosines and sines of rows of angles, each as much further on.
func (s *site) turns(f *Fed, c, t program.ID, axis int) bool {
	x, y := s.floats(c), s.floats(t)
	shape := s.Value(c).Shape()
	inner := size(shape[axis+1:])
	ok, varies := len(f.At) > 2 && f.onCircle(x, y, shape, axis), false
	if !ok {
		return false
	}
	var last, by []complex128
	for range inner {
		last, by = append(last, 0), append(by, 0)
	}
	f.eachOf(shape, axis, 0, len(f.At), func(p, at int) {
		k, now := at%inner, complex(x[at], y[at])
		switch r := cmplx.Abs(last[k]); {
		case p == 0:
			ok = ok && now != 0
		case p == 1:
			by[k] = now / last[k]
			ok = ok && math.Abs(cmplx.Abs(by[k])-1) <= near
			varies = varies || cmplx.Abs(by[k]-1) > near
		default:
			ok = ok && cmplx.Abs(now-last[k]*by[k]) <= near*r
		}
		last[k] = now
	})
	return ok && varies
}

// onCircle reports whether the first numbers of the first two rows have one size, so that all are worth a look.
func (f *Fed) onCircle(x, y []float64, shape []int, axis int) bool {
	inner := size(shape[axis+1:])
	from := f.Line * size(shape[:axis]) / f.Lines * shape[axis]
	for k := range min(inner, 4) {
		a, b := (from+f.At[0])*inner+k, (from+f.At[1])*inner+k
		if math.Abs(math.Hypot(x[a], y[a])-math.Hypot(x[b], y[b])) > near*math.Hypot(x[a], y[a]) {
			return false
		}
	}
	return true
}

// floats are the elements of a value of the piece, read once.
func (s *site) floats(id program.ID) []float64 {
	x, ok := s.read[id]
	if !ok {
		x = s.Value(id).Floats()
		s.read[id] = x
	}
	return x
}

// turned lists faults of the positions of cosines and sines.
func (s *site) turned(f *Fed, id string, c, t program.ID, axis int) {
	cos, sin := s.floats(c), s.floats(t)
	shape := s.Value(c).Shape()
	inner := size(shape[axis+1:])
	from, angle := make([]complex128, inner), make([]float64, inner) // from each position to the next
	f.eachOf(shape, axis, 0, 1, func(_, at int) { from[at%inner] = complex(cos[at], sin[at]) })
	f.eachOf(shape, axis, 1, 2, func(_, at int) { angle[at%inner] = cmplx.Phase(complex(cos[at], sin[at]) / from[at%inner]) })
	of, by := s.takers(c), s.takers(t)
	write := func(rank int, text string, shift func(p int) int) {
		rotated := func(old []float64, part func(complex128) float64) func() []float64 {
			return func() []float64 {
				x := slices.Clone(old)
				f.each(shape, axis, func(p, at int) {
					x[at] = part(complex(cos[at], sin[at]) * cmplx.Rect(1, angle[at%inner]*float64(shift(p))))
				})
				return x
			}
		}
		numbers := map[program.ID]func() []float64{c: rotated(cos, func(z complex128) float64 { return real(z) }), t: rotated(sin, func(z complex128) float64 { return imag(z) })}
		at := slices.Concat(of, by)
		slices.Sort(at)
		s.otherNumbers(id, rank, text, numbers, slices.Compact(at))
		if len(of) == len(by) && len(of) > 1 && len(of) <= mostTakers {
			for k := range of {
				at := []int{of[k], by[k]}
				slices.Sort(at)
				s.otherNumbers(id, rank+1, text+fmt.Sprintf(", those of one that is turned: %d of %d", k+1, len(of)), numbers, at)
			}
		}
	}
	f.shifts(func(rank int, text string, shift func(p int) int) {
		write(rank, text, shift)
		if s.fed == nil { // a table has an end
			write(rank, text+", not beyond the last row", func(p int) int { return min(max(p+shift(p), 0), f.Rows-1) - p })
		}
	})
}
