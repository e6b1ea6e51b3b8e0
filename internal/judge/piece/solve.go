package piece

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
)

// solve looks for edits that are made of what the candidate has: the order of its slices, and numbers.
func (f *finder) solve() error {
	made := f.base.Value(f.s.Piece.Out)
	left := f.left(made)
	if left == nil {
		return nil
	}
	var orders []*edit.Edit
	for d := 0; made.Len() == len(left) && d < len(made.Shape()); d++ {
		if order := ordered(made, f.s.Want, d); order != nil {
			if e := edit.Ordered(f.base, d, order); e != nil {
				orders = append(orders, e)
			}
		}
	}
	if fit, err := f.try(orders...); fit || err != nil || !vec.All(left, vec.IsFinite) {
		return err
	}
	families := edit.Families(f.base)
	f.r.Listed += len(families)
	for _, family := range families {
		if len(left) < equations*family.Numbers {
			continue
		}
		if err := f.newton(family, left); err != nil {
			return err
		}
	}
	return nil
}

// left is what is too much in each number of a result; nil where it has others.
func (f *finder) left(a *replay.Array) []float64 {
	x := f.s.Numbers(a)
	if len(x) != len(f.s.Want) {
		return nil
	}
	return vec.Minus(x, f.s.Want)
}

// ordered returns in which order the slices of an array along an axis are those of the candidate: nil where they are in
// none, or in the same.
func ordered(made *replay.Array, want []float64, d int) []int {
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
	for outer := range len(x) / n / inner {
		for k := range inner {
			by := rng.NormFloat64()
			for i := range n {
				at := (outer*n+i)*inner + k
				ours[i] += by * x[at]
				theirs[i] += by * want[at]
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
		d, err := f.step(family, p, left)
		if d == nil || err != nil {
			return err
		}
		floats.Sub(p, d)
		e := family.Edit(p)
		if e == nil {
			return nil
		}
		fits, err := f.try(e)
		if n := len(f.r.Fits); fits && found { // twice: the better one stays
			if f.r.Fits[n-1].Off < f.r.Fits[n-2].Off {
				f.r.Fits[n-2] = f.r.Fits[n-1]
			}
			f.r.Fits = f.r.Fits[:n-1]
		}
		if found || err != nil {
			return err
		}
		found = fits
		a, err := f.run(e)
		if a == nil || err != nil {
			return err
		}
		r := f.left(a)
		if r == nil || !fits && !(floats.Norm(r, 2) < converges*floats.Norm(left, 2)) {
			return nil
		}
		left = r
	}
	return nil
}

// step solves for by how much too large each number is, by least squares; nil where that is not told.
func (f *finder) step(family edit.Family, p, left []float64) ([]float64, error) {
	var hang [][]float64 // what is left, on each number
	for k := range p {
		q := slices.Clone(p)
		q[k] += step
		e := family.Edit(q)
		if e == nil || !f.pay(e) {
			return nil, nil
		}
		a, err := f.run(e)
		if a == nil || err != nil {
			return nil, err
		}
		r := f.left(a)
		if r == nil {
			return nil, nil
		}
		hang = append(hang, vec.Scaled(vec.Minus(r, left), 1/step))
	}
	return vec.LeastSquares(hang, left), nil
}
