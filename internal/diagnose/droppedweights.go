package diagnose

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// DroppedWeights tries a dropout of the attention's weights. The weights w that the candidate used follow from the context c = w·v where there are no more
// keys than a head has elements; each must be 0 or 1/(1−p) times that of the softmax.
var DroppedWeights = Func(func(s *Scene) []Prediction {
	g := s.graph()
	if g == nil {
		return nil
	}
	g.explain(g.target)
	o, ok := g.target.op.(*attention)
	if !ok || o.base.write != byHead || o.base.roll != 0 || o.t > o.base.d || o.base.heads*o.base.d != g.target.width {
		return nil
	}
	solves := float64(o.b*o.base.heads*o.t) * float64(o.t*o.t*o.base.d)
	right := fault{eval: o.eval}
	c := o.attend(g.faulty(g.target, &right), &o.base)
	if c == nil || !g.spend(4*solves) {
		return nil
	}
	d := &droppedWeights{s: s, o: o, c: c, actual: s.Array(s.Target.Actual)}
	if !finite(d.actual.Data) || !d.solve() {
		return nil
	}
	rate, ok := d.rate()
	if !ok {
		return nil
	}
	return []Prediction{{ID: "dropout", Params: 1, Value: d.context(1 / (1 - rate)),
		Text: fmt.Sprintf("dropout of the attention weights is on: %.3g of them are 0, the others are multiplied by %.4g", d.share(), 1/(1-rate))}}
})

type droppedWeights struct {
	s      *Scene
	o      *attention
	c      *attending
	actual *Array
	ratio  [][]float64 // of each row and head, the candidate's weight over the softmax's; NaN for a weight too small to tell
	sure   []float64   // those of the weights that are large enough to be exact
}

// real reports whether a row is no padding.
func (d *droppedWeights) real(row int) bool {
	pad := d.s.Target.PadRows
	return row >= len(pad) || !pad[row]
}

// solve finds the weights of each row and head by least squares.
func (d *droppedWeights) solve() bool {
	o := d.o
	n, size := o.base.heads, o.base.d
	d.ratio = make([][]float64, o.b*o.t*n)
	for b := range o.b {
		for h := range n {
			v := mat.NewDense(size, o.t, nil)
			for key := range o.t {
				v.SetCol(key, d.c.v(b, d.c.kvHead(h), key))
			}
			var qr mat.QR
			qr.Factorize(v)
			if qr.Cond() > 1e4 {
				return false
			}
			for t := range o.t {
				row := b*o.t + t
				if !d.real(row) || d.s.Late() {
					continue
				}
				var w mat.VecDense
				if qr.SolveVecTo(&w, false, mat.NewVecDense(size, slices.Clone(d.actual.Row(row)[h*size:(h+1)*size]))) != nil {
					return false
				}
				ratio := make([]float64, o.t)
				for key, p := range d.c.weightsOf(b, h, t) {
					if ratio[key] = math.NaN(); p > 1e-5 {
						ratio[key] = w.AtVec(key) / p
					}
					if p > 1e-2 {
						d.sure = append(d.sure, ratio[key])
					}
				}
				d.ratio[row*n+h] = ratio
			}
		}
	}
	return true
}

// rate is p, if every weight is 0 or 1/(1−p) times what it should be and as many are 0 as p says, within four standard deviations.
func (d *droppedWeights) rate() (float64, bool) {
	all := len(d.sure)
	kept := slices.DeleteFunc(slices.Clone(d.sure), func(x float64) bool { return math.Abs(x) <= 0.05 })
	if len(kept) < perParam || len(kept) == all {
		return 0, false
	}
	slices.Sort(kept)
	factor := kept[len(kept)/2]
	rate := 1 - 1/factor
	if rate < 1e-3 || rate > 0.95 {
		return 0, false
	}
	for _, x := range kept {
		if math.Abs(x/factor-1) > 0.05 {
			return 0, false
		}
	}
	return rate, math.Abs(d.share()-rate) <= 4*math.Sqrt(rate*(1-rate)/float64(all))
}

// share is how many of the sure weights are 0.
func (d *droppedWeights) share() float64 {
	zero := count(d.sure, func(x float64) bool { return math.Abs(x) <= 0.05 })
	return float64(zero) / float64(max(len(d.sure), 1))
}

// context is what the attention gives with these weights, each 0 or a factor times what it should be, whichever is nearer.
func (d *droppedWeights) context(factor float64) *Array {
	o := d.o
	n, size := o.base.heads, o.base.d
	out := NewArray(d.actual.Shape...)
	for row := range out.Rows() {
		for h := range n {
			ratio := d.ratio[row*n+h]
			if ratio == nil {
				continue
			}
			b, t := row/o.t, row%o.t
			dst := out.Row(row)[h*size : (h+1)*size]
			for key, p := range d.c.weightsOf(b, h, t) {
				if x := ratio[key]; !math.IsNaN(x) && x < factor/2 {
					continue
				}
				for j, v := range d.c.v(b, d.c.kvHead(h), key) {
					dst[j] += factor * p * v
				}
			}
		}
	}
	return out
}
