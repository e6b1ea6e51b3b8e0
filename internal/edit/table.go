package edit

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// sequence is a table that repeats n falling numbers x_i = g_i·(m_i + (1−m_i)/factor) of a geometric one g_i = first·ratio^i:
// the frequencies of rotary embeddings. For long contexts the last ones are divided by a factor: m falls from 1 to 0.
type sequence struct {
	n            int // 0 for another table
	first, ratio float64
	base         float64   // ratio^−n, as it is written in configurations
	factor       float64   // 1 where all are geometric, 0 where they only fall
	ramp         []float64 // m
}

// sequenceOf is the one that numbers are.
func sequenceOf(x []float64) (q sequence) {
	if len(x) < 4 || x[0] <= 0 {
		return q
	}
	n := 1
	for ; n < len(x) && x[n] < x[n-1] && x[n] > 0; n++ {
	}
	if n < 4 || len(x)%n != 0 || len(x)/n > 8 {
		return q
	}
	q = sequence{n: n, first: x[0]}
	near := nearTable
	if !slices.ContainsFunc(x, func(v float64) bool { return math.Float32bits(float32(v))&0xffff != 0 }) {
		near = nearRounded
	}
	all := math.Pow(x[n-1]/x[0], 1/float64(n-1))
	for _, q.ratio = range []float64{all, x[n-1] / x[n-2], x[1] / x[0]} { // where it is scaled its end tells, or its beginning
		q.base = math.Round(math.Pow(q.ratio, -float64(n))*1e3) / 1e3
		q.ramp = mapped(upTo(n), func(i int) float64 { return x[i] / q.geometric(i) })
		if !slices.ContainsFunc(q.ramp, func(m float64) bool { return math.Abs(m-1) > near }) {
			q.factor = 1
			return q
		}
		q.factor = 1 / q.ramp[n-1]
		for i, m := range q.ramp {
			q.ramp[i] = (m - 1/q.factor) / (1 - 1/q.factor)
		}
		if q.factor > 1+near && slices.IsSortedFunc(q.ramp, func(a, b float64) int { return cmp.Compare(b+near, a) }) {
			return q
		}
	}
	q.ramp, q.factor = nil, 0
	return q
}

// geometric is the i-th number of the geometric table.
func (q sequence) geometric(i int) float64 { return q.first * math.Pow(q.ratio, float64(i%q.n)) }

// scaled is the i-th number of a table whose last numbers are divided by another factor.
func (q sequence) scaled(i int, factor float64) float64 {
	m := q.ramp[i%q.n]
	return q.geometric(i) * (m + (1-m)/factor)
}

// Other bases and factors of such tables.
var (
	bases = []float64{500, 1000, 2500, 5000, 10000, 20000, 50000, 100000, 150000, 200000, 250000, 500000,
		1000000, 2000000, 5000000, 10000000}
	factors = []float64{2, 4, 8, 16, 32, 64, 0.5, 0.25, 0.125, 1.0 / 3, 3}
)

// tables makes of a constant or of a result of one axis that falls geometrically another such table.
func tables(s *site) {
	if s.single && isFloat(s.result) {
		s.table(s.op.Out[0], s.op.Name, (*writer).after)
	}
	for _, x := range s.operands {
		if s.Maker(x.id) < 0 && isFloat(s.Values[x.id]) {
			s.table(x.id, "the constant of "+s.op.Name, func(w *writer, o program.Op, f change) { w.give(o, x.name, f(w, x.id)) })
		}
	}
}

// table lists other bases and factors of a table, other factors by which its last numbers are scaled, and such a table
// without that.
func (s *site) table(id program.ID, name string, put func(w *writer, o program.Op, f change)) {
	x := s.base.Value(id)
	if x == nil {
		return
	}
	numbers := x.Floats()
	q := sequenceOf(numbers)
	add := func(what string, to float64, f change) {
		s.add("table", 1, what, func(w *writer, o program.Op) { put(w, o, f) }).Number = to
	}
	other := func(what string, to float64, number func(i int, x float64) float64) {
		add(what, to, func(w *writer, _ program.ID) program.ID { return w.table(s.shape(id), numbers, number) })
	}
	part := func(i int) float64 { return float64(i%q.n) / float64(q.n) }
	for _, c := range bases {
		switch {
		case q.n == 0:
			return
		case q.factor != 1:
			other(text("%s → a geometric one of base %.4g", name, c), c, func(i int, _ float64) float64 { return q.first * math.Pow(c, -part(i)) })
		case c != q.base:
			other(text("base of %s: %.4g → %.4g", name, q.base, c), c, func(i int, _ float64) float64 { return q.first * math.Pow(c, -part(i)) })
		}
	}
	switch q.factor {
	case 0:
		return
	case 1:
		for _, f := range factors {
			add(text("%s times %.4g", name, f), f, times(f))
		}
		return
	}
	other(name+" without its scaling", 0, func(i int, _ float64) float64 { return q.geometric(i) })
	other(text("%s scaled by %.4g throughout", name, q.factor), q.factor, func(i int, _ float64) float64 { return q.geometric(i) / q.factor })
	for _, f := range factors {
		if f > 1 && math.Abs(f-q.factor) > nearTable*q.factor {
			other(text("%s scaled by %.4g and not %.4g", name, f, q.factor), f, func(i int, _ float64) float64 { return q.scaled(i, f) })
		}
	}
}

// table adds numbers to the patch that are made of others, one by one.
func (w *writer) table(shape []int, x []float64, f func(i int, x float64) float64) program.ID {
	return w.numbers(tensor.F32, shape, func() []float64 {
		return mapped(upTo(len(x)), func(i int) float64 { return f(i, x[i]) })
	})
}

// spacing is a way to put n points on a stretch of length 1: the i-th at (i + shift)/(n − less).
type spacing struct {
	name        string
	shift, less float64
}

var points = []spacing{{"from end to end", 0, 1}, {"middles of parts", 0.5, 0}, {"beginnings of parts", 0, 0}}

// spaced takes other points of the same stretch than equally spaced constants are, as coordinates of pixels may be: all
// those of a line.
func spaced(s *site) {
	for _, at := range grouped(upTo(len(s.Ops)), func(i int) (line int, ok bool) {
		if _, step, _ := s.spacing(s.Ops[i]); step == 0 {
			return 0, false
		}
		if line, ok = s.line(i); !ok {
			line = -1 - i
		}
		return line, true
	}) {
		for _, is := range points {
			for _, other := range points {
				if is == other {
					continue
				}
				s.addAt("table", 2, text("points of %s: %s → %s", s.Ops[at[0]].Name, is.name, other.name), at, func(w *writer, o program.Op) {
					first, step, n := s.spacing(o)
					by := (n - is.less) / (n - other.less)
					begin := first - is.shift*step + other.shift*step*by
					w.after(o, func(w *writer, id program.ID) program.ID { return w.two("add", w.two("mul", id, by), begin-first*by) })
				}).ID = "embedding/position"
			}
		}
		s.stretched(at)
	}
}

// stretched puts equally spaced constants on another stretch: from 0 on, or around it, or falling; those of one stretch alike.
func (s *site) stretched(at []int) {
	first, step, n := s.spacing(s.Ops[at[0]])
	last := first + step*(n-1)
	is := func(i int) bool {
		f, by, n := s.spacing(s.Ops[i])
		return math.Abs(f-first)+math.Abs(f+by*(n-1)-last) <= nearTable*math.Abs(step)
	}
	if others := slices.DeleteFunc(slices.Clone(at), is); len(others) > 0 {
		s.stretched(others)
	}
	at = slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !is(i) })
	for _, to := range [][2]float64{{0, last}, {-last, last}, {last, first}, {0, 1}, {-1, 1}} {
		falls := to[0] > to[1] && s.Ops[at[0]].Name == "slice" // what is made of a part of them may be flipped itself
		if falls || math.Abs(to[0]-first)+math.Abs(to[1]-last) < nearTable*math.Abs(step) || to[0] == to[1] {
			continue
		}
		by := (to[1] - to[0]) / (last - first)
		s.addAt("table", 2, text("from %.4g to %.4g → from %.4g to %.4g", first, last, to[0], to[1]), at, func(w *writer, o program.Op) {
			w.after(o, func(w *writer, id program.ID) program.ID { return w.two("add", w.two("mul", id, by), to[0]-first*by) })
		}).ID = "embedding/position"
	}
}

// spacing is that of the n equally spaced constants of one axis that an operator makes; the step is 0 where they are none, or
// count.
func (s *site) spacing(o program.Op) (first, step, n float64) {
	v, ok := s.resultOf(o)
	if !ok || !isOne(o, "linspace slice mul div add sub") || len(v.Shape) != 1 || v.Shape[0] < 3 || !isFloat(v) || !s.constant(o.Out[0]) {
		return 0, 0, 0
	}
	x := s.floats(o.Out[0])
	first, n = x[0], float64(len(x))
	step = (x[len(x)-1] - first) / (n - 1)
	for i, v := range x {
		if step == math.Trunc(step) || math.Abs(v-first-float64(i)*step) > nearTable*math.Abs(step) {
			return 0, 0, 0
		}
	}
	return first, step, n
}
