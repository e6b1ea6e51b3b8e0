package diagnose

import (
	"math"
	"strings"

	"github.com/goparity/goparity/internal/localise"
)

// Dropout tries zeros strewn over the tensor, with the rest scaled by 1/(1−p): a dropout that is still on. It is looked for in the target
// and in each term of a sum that makes it.
var Dropout = Func(func(s *Scene) []Prediction {
	p := s.pair()
	if p == nil {
		return nil
	}
	var out []Prediction
	if v, rate := dropped(p.golden, p.actual); v != nil {
		out = append(out, p.says("dropout", v, 1, 0, "dropout is on: %.3g of the elements are 0, the others are multiplied by %.4g", rate, 1/(1-rate)))
	}
	for _, sum := range s.sums(p) {
		if v, rate := dropped(sum.term, minus(p.actual, sum.rest)); v != nil {
			out = append(out, p.says("dropout", plus(v, sum.rest), 1, 0, "dropout of %s is on: %.3g of the elements are 0, the others are multiplied by %.4g",
				sum.name, rate, 1/(1-rate)))
		}
	}
	return out
})

// dropped gives g after a dropout of which a shows the mask, and its rate; nil if a is something else. The zeros must come at the rate that the
// factor of the others tells, and in no row or column alone.
func dropped(g, a *Array) (*Array, float64) {
	zeros, n := 0, 0
	var xy, xx float64
	scale := rootMeanSquare(g.Data)
	for i, x := range g.Data {
		if math.Abs(x) < 1e-3*scale {
			continue // says nothing
		}
		n++
		if math.Abs(a.Data[i]) < 1e-5*scale {
			zeros++
			continue
		}
		xy += x * a.Data[i]
		xx += x * x
	}
	if n < perParam || zeros == 0 || zeros == n || xx == 0 {
		return nil, 0
	}
	factor := xy / xx
	rate := 1 - 1/factor
	share := float64(zeros) / float64(n)
	// Four standard deviations of a binomial share, and one of a small tensor.
	if rate <= 0 || rate >= 1 || math.Abs(share-rate) > 4*math.Sqrt(rate*(1-rate)/float64(n))+1/float64(n) {
		return nil, 0
	}
	out := NewArray(g.Shape...)
	for i, x := range g.Data {
		if math.Abs(a.Data[i]) >= 1e-5*scale {
			out.Data[i] = factor * x
		}
	}
	return out, rate
}

// addition is a target of the reference as a term and the rest: golden = term + rest, where both were recorded before it.
type addition struct {
	name, other string
	term, rest  *Array // the candidate's
}

// sums finds the pairs of recorded tensors that make the golden target.
func (s *Scene) sums(p *pair) []addition {
	near := s.sources(8)
	var out []addition
	for i, x := range near {
		for _, y := range near[:i] {
			gx, gy := p.of(s, x, true), p.of(s, y, true)
			if gx == nil || gy == nil || len(gx.Data) != len(p.golden.Data) || len(gy.Data) != len(gx.Data) ||
				relative(plus(gx, gy).Data, p.golden.Data) > max(s.Target.Floor.RelL2, 1e-6) {
				continue
			}
			ax, ay := p.of(s, x, false), p.of(s, y, false)
			if ax != nil && ay != nil {
				out = append(out, addition{x.Layer, y.Layer, ax, ay}, addition{y.Layer, x.Layer, ay, ax})
			}
		}
	}
	return out
}

// sources lists the recorded tensors of the target's shape that existed before it, the nearest first and each value once.
func (s *Scene) sources(most int) []*Port {
	var out []*Port
	seen := map[string]bool{markOf(s.Target.Golden): true}
	end := s.Target.Seq
	if localise.RoleOf(s.Target.Port) == localise.Input {
		// It existed before anything inside its layer ran.
		for _, q := range s.Ports {
			if q.Case == s.Case && q.Step == s.Step && (q.Layer == s.Target.Layer || strings.HasPrefix(q.Layer, s.Target.Layer+".")) {
				end = min(end, q.Seq)
			}
		}
	}
	for i := len(s.Ports) - 1; i >= 0 && len(out) < most; i-- {
		q := s.Ports[i]
		if q.Case != s.Case || q.Step != s.Step || q == s.Target || q.Seq > end || q.Golden.Len() != s.Target.Golden.Len() ||
			q.Golden.RowLen() != s.Target.Golden.RowLen() || !q.Golden.DType().IsFloat() {
			continue
		}
		if mark := markOf(q.Golden); mark != "" && !seen[mark] {
			seen[mark] = true
			out = append(out, q)
		}
	}
	return out
}

func plus(a, b *Array) *Array  { return a.Zip(b, func(x, y float64) float64 { return x + y }) }
func minus(a, b *Array) *Array { return a.Zip(b, func(x, y float64) float64 { return x - y }) }
