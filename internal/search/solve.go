package search

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/replay"
)

// solved looks for edits that are made of what the candidate has: the order of its slices, and numbers. residual is what
// is too much in what the piece makes.
func (f *finder) solved(residual []float64) error {
	made := f.base.Value(f.s.Piece.Out)
	if made.Len() == len(residual) {
		for d := range made.Shape() {
			if order := ordered(made, residual, d); order != nil {
				if e := edit.Ordered(f.base, d, order); e != nil {
					if _, err := f.try(e); err != nil {
						return err
					}
				}
			}
		}
	}
	if len(f.r.Fits) > 0 || slices.ContainsFunc(residual, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return nil
	}
	families := edit.Families(f.base)
	f.r.Listed += len(families)
	for _, family := range families {
		if len(residual) < equations*family.Numbers {
			continue
		}
		if err := f.newton(family, residual); err != nil {
			return err
		}
	}
	return nil
}

// ordered returns in which order the slices of an array along an axis are those of the candidate: nil where they are in
// none, or in the same.
func ordered(made *replay.Array, residual []float64, d int) []int {
	shape, x := made.Shape(), made.Floats()
	n, inner := shape[d], 1
	for _, k := range shape[d+1:] {
		inner *= k
	}
	if n < 2 || n > mostSlices || len(x)/n < leastSlice {
		return nil
	}
	rng := rand.New(rand.NewPCG(1, 2))
	ours, theirs := make([]float64, n), make([]float64, n) // each slice as one number
	var scale float64
	for outer := range len(x) / n / inner {
		for k := range inner {
			by := rng.NormFloat64()
			for i := range n {
				at := (outer*n+i)*inner + k
				ours[i] += by * x[at]
				theirs[i] += by * (x[at] - residual[at])
				scale = math.Max(scale, math.Abs(x[at]))
			}
		}
	}
	order, taken, same := make([]int, n), make([]bool, n), true
	for i := range n {
		best := 0
		for k := range n {
			if math.Abs(ours[k]-theirs[i]) < math.Abs(ours[best]-theirs[i]) {
				best = k
			}
		}
		if taken[best] {
			return nil
		}
		order[i], taken[best], same = best, true, same && best == i
	}
	if same {
		return nil
	}
	return order
}

// newton finds the numbers of a family with which it makes what the candidate has. Where they fit they are found once
// better, as those of others may be.
func (f *finder) newton(family edit.Family, left []float64) error {
	p, found := make([]float64, family.Numbers), false
	for range steps {
		columns := make([][]float64, len(p))
		for k := range p {
			q := slices.Clone(p)
			q[k] += step
			e := family.Edit(q)
			if e == nil || !f.pay(e) {
				return nil
			}
			a, err := f.run(e)
			if a == nil || err != nil {
				return err
			}
			columns[k] = f.s.Residual(a)
			if len(columns[k]) != len(left) {
				return nil
			}
			for i, v := range left {
				columns[k][i] = (columns[k][i] - v) / step
			}
		}
		d := leastSquares(columns, left)
		if d == nil {
			return nil
		}
		for k := range p {
			p[k] -= d[k]
		}
		e := family.Edit(p)
		if e == nil {
			return nil
		}
		fits, err := f.try(e)
		if fits && found { // twice: the better one stays
			n := len(f.r.Fits)
			if f.r.Fits[n-1].Off < f.r.Fits[n-2].Off {
				f.r.Fits[n-2] = f.r.Fits[n-1]
			}
			f.r.Fits = f.r.Fits[:n-1]
		}
		if found || err != nil {
			return err
		}
		found = fits
		a, err := f.base.Run(e.Patch)
		if err != nil {
			return nil
		}
		r := f.s.Residual(a)
		if len(r) != len(left) || !fits && !(norm(r) < converges*norm(left)) {
			return nil
		}
		left = r
	}
	return nil
}

// leastSquares solves for the factors of columns that make b; nil where they are not told.
func leastSquares(columns [][]float64, b []float64) []float64 {
	n := len(columns)
	a, y := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		for k := range n {
			a.Set(i, k, dot(columns[i], columns[k]))
		}
		y.SetVec(i, dot(columns[i], b))
	}
	var x mat.VecDense
	if err := x.SolveVec(a, y); err != nil {
		return nil
	}
	return x.RawVector().Data
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func norm(x []float64) float64 { return math.Sqrt(dot(x, x)) }
