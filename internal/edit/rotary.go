package edit

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// whole turns all columns of rows of which the reference turns the first ones alone: what its rotary embedding would be,
// were no part of a head left out.
func whole(s *site) {
	var at []int
	of, turned := map[program.ID]program.ID{}, 0 // rows, by what is made of them
	for i, o := range s.Ops {
		if x, first, ok := s.partly(o); ok {
			at, of[o.Out[0]], turned = append(at, i), x, first
		}
	}
	if len(at) == 0 {
		return
	}
	rows, scale, base := s.rotation(turned)
	if rows == 0 {
		return
	}
	shape := s.shape(of[s.Ops[at[0]].Out[0]])
	width := shape[len(shape)-1]
	for _, neighbours := range []bool{false, true} {
		cos, sin, partner := rotations(rows, width, scale, base, neighbours)
		what := text("all %d columns are turned and not %d", width, turned)
		if neighbours {
			what += ", as neighbours"
		}
		s.addAt("slice", 2, what, at, func(w *writer, o program.Op) {
			x := of[o.Out[0]]
			shape := w.shape(x)
			last := len(shape) - 1
			axis := last - 1
			for axis > 0 && shape[axis] != rows {
				axis--
			}
			like := slices.Repeat([]int{1}, last+1)
			like[axis], like[last] = rows, width
			a := w.two("mul", x, w.numbers(tensor.F32, like, func() []float64 { return cos }))
			w.pass(o, w.two("add", a, w.two("mul", w.selected(x, last, partner), w.numbers(tensor.F32, like, func() []float64 { return sin }))))
		}).ID = "rope/applied"
	}
}

// partly returns the rows of which an operator puts the first columns, which were changed, and the others together again,
// and how many the first are.
func (s *site) partly(o program.Op) (rows program.ID, first int, ok bool) {
	parts, _ := o.Args.Get("tensors").([]program.ID)
	if o.Name != "cat" || len(parts) != 2 || s.Maker(parts[0]) == s.Maker(parts[1]) {
		return 0, 0, false
	}
	cut := s.made(parts[1])
	if !isOne(cut, "slice split_with_sizes") || cut.Out[len(cut.Out)-1] != parts[1] {
		return 0, 0, false
	}
	rows = self(cut)
	a, b, all := s.shape(parts[0]), s.shape(parts[1]), s.shape(rows)
	n := len(all) - 1
	if n < 2 || len(a) != n+1 || len(b) != n+1 || cut.Name == "slice" && intOf(cut, "start") != a[n] {
		return 0, 0, false
	}
	return rows, a[n], a[n]+b[n] == all[n] && slices.Equal(all, s.shape(o.Out[0]))
}

// rotation returns of how many rows, from position 0 on, the piece has cosines and sines, their size, and the base of
// their frequencies, of which columns are turned by half as many; no rows where it has none.
func (s *site) rotation(columns int) (rows int, scale, base float64) {
	for c, t := range s.circles() {
		shape := s.shape(c)
		axis := len(shape) - 2
		n, inner := shape[axis], shape[axis+1]
		if n < 3 || size(shape) != n*inner || inner != columns && 2*inner != columns || !s.turns(onePass(n), c, t, axis) {
			continue
		}
		cos, sin := s.floats(c), s.floats(t)
		at := func(row, column int) complex128 { return complex(cos[row*inner+column], sin[row*inner+column]) }
		by := func(column int) float64 { return cmplx.Phase(at(1, column) / at(0, column)) }
		k := 1
		for k < inner && math.Abs(by(k)-by(0)) < nearTable*math.Abs(by(0)) {
			k++
		}
		if k < inner && math.Abs(cmplx.Phase(at(0, 0))) < nearTable && by(0) > 0 && by(k) > 0 {
			return n, cmplx.Abs(at(0, 0)), math.Pow(by(0)/by(k), float64(columns)/2)
		}
	}
	return 0, 0, 0
}

// rotations returns the cosines and sines by which each column of rows is turned, the sines with the sign of its partner,
// and the partners: those half of all away, or neighbours.
func rotations(rows, width int, scale, base float64, neighbours bool) (cos, sin []float64, partner []int) {
	for row := range rows {
		for c := range width {
			i, to, sign := c%(width/2), (c+width/2)%width, 1.0
			if c < width/2 {
				sign = -1
			}
			if neighbours {
				i, to, sign = c/2, c^1, float64(c%2*2-1)
			}
			angle := float64(row) * math.Pow(base, -2*float64(i)/float64(width))
			cos, sin = append(cos, scale*math.Cos(angle)), append(sin, sign*scale*math.Sin(angle))
			if row == 0 {
				partner = append(partner, to)
			}
		}
	}
	return cos, sin, partner
}
