package compare

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// unit is what values are multiplied with before they are squared: 1, except for tensors of extreme numbers.
func unit(r Result) float64 {
	norm := max(r.NormGolden, r.NormActual)
	return math.Ldexp(1, inRange(norm*norm))
}

// moments has the sums over the finite pairs of a row, of values times a unit.
type moments struct {
	dd, gg, aa, ab float64
	odd            int // pairs of which the first value alone is finite
}

// moments are those of a row of the first two tensors.
func (r *rowReader) moments(row int, unit float64) (m moments) {
	r.read(row, func(_ int, v [][]float64) {
		for j, g := range v[0] {
			a := v[1][j]
			switch {
			case !finite(g):
			case !finite(a):
				m.odd++
			default:
				g, a = float64(g*unit), float64(a*unit)
				d := a - g
				m.dd += float64(d * d)
				m.gg += float64(g * g)
				m.aa += float64(a * a)
				m.ab += float64(a * g)
			}
		}
	})
	return m
}

// worstCosine returns the row with the largest cosine distance, weighted as Criteria.Cosine says.
func worstCosine(golden, actual *tensor.Tensor, r Result) (row int, distance float64) {
	u := unit(r)
	norm := r.NormGolden * u
	f := rowFloor(r.RowLen)
	least := f * f * norm * norm / float64(r.Rows)
	row = -1
	rd := newRowReader(golden, actual)
	for i := range r.Rows {
		m := rd.moments(i, u)
		d := cosineDistance(m.dd, m.gg, m.aa, m.ab)
		if n := max(m.gg, m.aa); n < least {
			d *= n / least
		}
		if row < 0 || d > distance {
			row, distance = i, d
		}
	}
	return row, distance
}

// topK counts the rows whose k largest elements are in other places, and returns the first of these
// rows. A constant row has no largest elements: it is another one than a row that has.
func topK(golden, actual *tensor.Tensor, k int) (bad, first int) {
	first = -1
	rd := newRowReader(golden, actual)
	gs, as := make([]ranked, 0, k+1), make([]ranked, 0, k+1)
	for row := range rd.rows() {
		gs, as = gs[:0], as[:0]
		var g0, a0 float64
		flatGolden, flatActual := true, true
		rd.read(row, func(start int, v [][]float64) {
			if start == 0 {
				g0, a0 = v[0][0], v[1][0]
			}
			for j := range v[0] {
				flatGolden, flatActual = flatGolden && v[0][j] == g0, flatActual && v[1][j] == a0
				gs = insert(gs, ranked{v[0][j], start + j}, k)
				as = insert(as, ranked{v[1][j], start + j}, k)
			}
		})
		// All elements above the k-th golden value must be among them; those that equal it may.
		edge := gs[k-1].value
		above, found, below := 0, 0, 0
		for _, r := range gs {
			if r.value > edge {
				above++
			}
		}
		for _, r := range as {
			switch g := number(golden.At(row*golden.RowLen() + r.index)); {
			case g > edge:
				found++
			case g < edge:
				below++
			}
		}
		if found < above || below > 0 || flatActual && !flatGolden {
			bad++
			if first < 0 {
				first = row
			}
		}
	}
	return bad, first
}

type ranked struct {
	value float64
	index int
}

// number replaces NaN with the smallest value.
func number(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(-1)
	}
	return x
}

// insert keeps the k largest elements in order. It is called for elements in the order of their
// indices.
func insert(best []ranked, r ranked, k int) []ranked {
	r.value = number(r.value)
	if len(best) == k && r.value <= best[k-1].value {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, r, func(x, y ranked) int {
		if x.value >= y.value {
			return -1
		}
		return 1
	})
	best = slices.Insert(best, at, r)
	return best[:min(k, len(best))]
}

// worstKL returns the row with the largest Kullback-Leibler divergence of softmax(golden) from
// softmax(actual), in nats. Pairs with a NaN are left out, −Inf has probability 0, and a row with
// +Inf has no softmax: its divergence is +Inf.
func worstKL(golden, actual *tensor.Tensor) (row int, kl float64) {
	row = -1
	rd := newRowReader(golden, actual)
	for i := range rd.rows() {
		if d := rowKL(rd, i); row < 0 || d > kl {
			row, kl = i, d
		}
	}
	return row, kl
}

func rowKL(rd *rowReader, row int) float64 {
	each := func(f func(g, a float64)) {
		rd.read(row, func(_ int, v [][]float64) {
			for j, g := range v[0] {
				if a := v[1][j]; !math.IsNaN(g) && !math.IsNaN(a) {
					f(g, a)
				}
			}
		})
	}
	mg, ma := math.Inf(-1), math.Inf(-1)
	each(func(g, a float64) { mg, ma = max(mg, g), max(ma, a) })
	switch {
	case math.IsInf(mg, -1) && math.IsInf(ma, -1):
		return 0
	case math.IsInf(mg, 0) || math.IsInf(ma, 0):
		return math.Inf(1)
	}
	var sg, sa sum
	each(func(g, a float64) {
		sg.add(math.Exp(g - mg))
		sa.add(math.Exp(a - ma))
	})
	lg, la := math.Log(sg.value()), math.Log(sa.value())
	var kl sum
	each(func(g, a float64) {
		if p := math.Exp(g - mg - lg); p > 0 {
			kl.add(p * ((g - mg - lg) - (a - ma - la)))
		}
	})
	return max(kl.value(), 0)
}

type noiseRatio struct {
	ratio, rowRatio float64
	row             int
}

// noise compares the error of actual against float64 with that of golden.
func noise(golden, actual, ref64 *tensor.Tensor, r Result) noiseRatio {
	u := unit(r)
	of := [2]*rowReader{newRowReader(ref64, golden), newRowReader(ref64, actual)}
	var own, other sum
	for i := range r.Rows {
		own.add(of[0].moments(i, u).dd)
		other.add(of[1].moments(i, u).dd)
	}
	n := noiseRatio{ratio: ratioL2(other.value(), own.value()), row: -1}
	f := rowFloor(r.RowLen)
	least := f * f * own.value() / float64(r.Rows)
	for i := range r.Rows {
		if x := ratioL2(of[1].moments(i, u).dd, max(of[0].moments(i, u).dd, least)); n.row < 0 || x > n.rowRatio {
			n.row, n.rowRatio = i, x
		}
	}
	return n
}
