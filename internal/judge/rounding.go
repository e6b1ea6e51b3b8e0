package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// onlyRounding judges the 16-bit ports that fail by the defaults again, with wider limits, where no
// layer made the error, and reports whether all pass then. If not, nothing has changed.
func (c *Comparison) onlyRounding(drift *localise.Verdict) bool {
	type wider struct {
		port   *Port
		limits compare.Limits
		source string
	}
	var all []wider
	for _, p := range c.Ports {
		if !p.Joined() || p.passes() || !p.Judged() {
			continue
		}
		if p.Err != nil || !p.byDefault || !rounds(p.DType) || p.downcast != tensor.Invalid || p.beyondCost() || p.Base.Result.BadNonFinite > 0 {
			return false
		}
		w := wider{port: p, source: "as far as roundings add up: no layer made the error",
			limits: p.Criteria.Limits().Max(compare.Drift(p.DType))}
		if !p.Base.Result.Agrees(w.limits) {
			if w.limits = w.limits.Max(explained); !p.Base.Result.Agrees(w.limits) || !drift.Explained() {
				return false
			}
			w.source = "no layer makes more of what came in than rounding does"
		}
		all = append(all, w)
	}
	for _, w := range all {
		if w.port.again(w.limits.Criteria(), w.port.Source+", "+w.source) != nil {
			return false
		}
		w.port.Agrees = true
	}
	return true
}

// poolRows judges a port of few elements again that fails by the defaults, as one token of a decode
// step or a gate of width 1 may: what is small there by chance is as uncertain as its like. As the
// least denominator of a short row is the RMS of all rows, so it is here that of the port's rows in
// all forward passes.
func (c *Comparison) poolRows() error {
	type sum struct{ squares, elements float64 }
	pool := map[output]sum{}
	few := func(p *Port) bool {
		return p.comparable() && p.byDefault && p.printed == nil && p.DType.IsFloat() && p.Golden.Len() > 0 && p.Golden.Len() < fewElements
	}
	failing := slices.ContainsFunc(c.Ports, func(p *Port) bool { return few(p) && !p.Base.Pass })
	if !failing {
		return nil
	}
	for _, p := range c.Ports {
		if p.comparable() && p.Golden.RowLen() < fewElements {
			s := pool[output{p.Layer, p.Port}]
			n := p.Base.Result.NormGolden
			pool[output{p.Layer, p.Port}] = sum{s.squares + n*n, s.elements + float64(p.Golden.Len())}
		}
	}
	for _, p := range c.Ports {
		if !few(p) || p.Base.Pass && p.Agrees {
			continue
		}
		s, n := pool[output{p.Layer, p.Port}], p.Base.Result.NormGolden
		by := math.Sqrt(s.squares / s.elements * float64(p.Golden.Len()) / (n * n))
		if !(by > 1) || math.IsInf(by, 0) {
			continue
		}
		scaled := func(l compare.Limits) compare.Limits {
			return compare.Limits{RelL2: by * l.RelL2, RowRelL2: by * l.RowRelL2}
		}
		if !p.Base.Result.Agrees(scaled(p.Floor)) {
			continue
		}
		p.Floor, p.pooled = scaled(p.Floor), by
		if err := p.again(scaled(p.Criteria.Limits()).Criteria(), fmt.Sprintf("%s, × %.2g: the RMS of this port in all forward passes", p.Source, by)); err != nil {
			return err
		}
		p.Agrees = p.agrees()
	}
	return nil
}

// widenSoftmax judges probabilities again that fail by the defaults. An error of a score is the
// relative error of its probability, and scores err by their size: that of the largest is about the
// logarithm of the ratio of a row's largest probability to its smallest.
func (c *Comparison) widenSoftmax() error {
	for _, p := range c.Ports {
		if !p.comparable() || !p.byDefault || p.printed != nil || p.Base.Pass && p.Agrees || p.Base.Result.BadNonFinite > 0 {
			continue
		}
		most, mean := spread(p.Golden)
		eps := p.DType.Epsilon()
		limits := compare.Limits{RelL2: scoreNoise * eps * mean, RowRelL2: scoreNoise * eps * most}
		if !p.measured {
			limits = limits.Max(p.Floor)
		}
		if most == 0 || !p.Base.Result.Agrees(limits) {
			continue
		}
		p.Floor, p.measured = p.Floor.Max(limits), false
		source := fmt.Sprintf("%s, or %d roundings of scores that are up to %.2g apart", p.Source, scoreNoise, most)
		if err := p.again(p.Criteria.Limits().Max(limits).Criteria(), source); err != nil {
			return err
		}
		p.Agrees = p.agrees()
	}
	return nil
}

// spread returns ln(largest/smallest) of the rows of probabilities: the most, and the root mean
// square; 0 for anything else. Masked elements, which are zero, do not count.
func spread(t *tensor.Tensor) (most, mean float64) {
	n := t.RowLen()
	if !t.DType().IsFloat() || n < 2 || t.Len() == 0 {
		return 0, 0
	}
	row := make([]float64, n)
	rows := t.Len() / n
	for r := range rows {
		t.Float64s(row, r*n)
		sum, least := 0.0, math.Inf(1)
		for _, x := range row {
			if x < 0 || math.IsNaN(x) {
				return 0, 0
			}
			if sum += x; x > 0 {
				least = min(least, x)
			}
		}
		if math.Abs(sum-1) > 0.01 {
			return 0, 0
		}
		l := math.Log(slices.Max(row) / least)
		most, mean = max(most, l), mean+l*l/float64(rows)
	}
	return most, math.Sqrt(mean)
}

// widen raises the noise floor of ports without a float64 golden to that of the tensor that they
// repeat, byte for byte, else to the largest so far of the layers next to them: what a layer was
// given cannot be nearer to the truth than what made it.
func (c *Comparison) widen(flow *trace.Trace) error {
	type pass struct{ caseName, step string }
	type place struct {
		pass
		parent string
	}
	type content struct {
		pass
		same int
	}
	beside, copies := map[place]compare.Limits{}, map[content]compare.Limits{}
	for i, p := range c.Ports {
		if !p.comparable() || !p.Golden.DType().IsFloat() {
			continue
		}
		in := pass{p.Case, p.Step}
		bytes := content{in, flow.Entries[i].Same}
		if p.Golden64 == nil {
			wider, known := copies[bytes]
			if !known {
				wider = beside[place{in, label.Parent(p.Layer)}]
			}
			if err := p.widen(wider.Max(p.Floor)); err != nil {
				return err
			}
			continue
		}
		for around := label.Parent(p.Layer); ; around = label.Parent(around) { // a layer counts for its containers too
			at := place{in, around}
			beside[at] = beside[at].Max(p.Floor)
			if around == "" {
				break
			}
		}
		if bytes.same > 0 {
			copies[bytes] = copies[bytes].Max(p.Floor)
		}
	}
	return nil
}

// widen judges a port that does not agree by a wider noise floor.
func (p *Port) widen(floor compare.Limits) error {
	if floor == p.Floor || p.Agrees {
		return nil
	}
	p.Floor = floor
	if p.Agrees = p.agrees(); !p.Agrees || !p.byDefault || p.passes() {
		return nil
	}
	return p.again(floor.Max(p.Criteria.Limits()).Criteria(),
		fmt.Sprintf("%d × the reference's own distance from float64, of what made it", noiseRatio))
}

// excess returns the factor by which the error of a layer's output exceeds, in the worst row, what
// the error of its input and rounding make of it; input and output are indices of ports:
//
//	max over rows ‖dy‖ / (c·G·(‖dx‖ + ε‖x‖) + ε‖y‖)
//
// x and y are the golden's rows, dx and dy the candidate's distance from them, ε the rounding of
// the coarser type, G the layer's gain: the largest ‖y‖/‖x‖ of all rows. c = min(1,
// headroom·max‖y‖ / (G‖x‖)) is below 1 where the layer divides large rows, as a norm does. Where
// large terms cancel, y is small and its noise is not: that is why the input's row is the measure.
// Clean layers of 16 bits measured 0.3 to 2, wrong ones 8 to 900.
//
// It is NaN if rows of the two do not belong together, +Inf for a NaN or an infinity that has no
// match.
func (c *Comparison) excess(input, output int) float64 {
	in, out := c.Ports[input], c.Ports[output]
	if !in.comparable() || !out.comparable() || out.Base.Result.Rows != in.Base.Result.Rows {
		return math.NaN()
	}
	if out.Base.Result.BadNonFinite > 0 {
		return math.Inf(1)
	}
	x, dx, err := norms(in)
	if err != nil {
		return math.NaN()
	}
	y, dy, err := norms(out)
	if err != nil {
		return math.NaN()
	}
	var gain, most float64
	for i := range x {
		if x[i] > 0 {
			gain = max(gain, y[i]/x[i])
		}
		most = max(most, y[i])
	}
	eps := out.DType.Epsilon()
	worst := 0.0
	for i := range x {
		g := gain
		if x[i] > 0 {
			g = min(g, headroom*most/x[i])
		}
		if dy[i] > 0 {
			worst = max(worst, dy[i]/(g*(dx[i]+eps*x[i])+eps*y[i]))
		}
	}
	return worst
}

// fewRows reports whether at most a quarter of a port's rows is off by more than half of what a row
// may be.
func (c *Comparison) fewRows(index int) bool {
	p := c.Ports[index]
	if !p.comparable() || p.Base.Result.BadNonFinite > 0 {
		return false
	}
	size, off, err := norms(p)
	if err != nil {
		return false
	}
	least := p.Base.Result.NormGolden / math.Sqrt(float64(max(len(size), 1)))
	many := 0
	for i := range size {
		if off[i] > p.floor().RowRelL2/2*max(size[i], least/10) {
			many++
		}
	}
	return 4*many <= len(size)
}

// norms returns the norm of each row of the golden, and of the candidate's distance from it, over
// finite pairs.
func norms(p *Port) (golden, diff []float64, err error) {
	rows, n := p.Base.Result.Rows, p.Base.Result.RowLen
	golden, diff = make([]float64, rows), make([]float64, rows)
	g, a := make([]float64, n), make([]float64, n)
	err = mapfile.Guard(func() error {
		for row := range rows {
			p.Golden.Float64s(g, row*n)
			p.Actual.Float64s(a, row*n)
			for i, x := range g {
				if d := a[i] - x; !math.IsNaN(d) && !math.IsInf(d, 0) {
					golden[row] += x * x
					diff[row] += d * d
				}
			}
			golden[row], diff[row] = math.Sqrt(golden[row]), math.Sqrt(diff[row])
		}
		return nil
	})
	return golden, diff, err
}
