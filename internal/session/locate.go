package session

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/dtype"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// locate finds the first divergence. A run in which every judged port passes has none, and costs nothing more.
func (c *Comparison) locate(ctx context.Context) error {
	if !slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Joined() && !p.passes() || p.misfit() }) {
		return nil
	}
	marks, err := c.marks(ctx)
	if err != nil {
		return err
	}
	if err := c.widen(marks); err != nil {
		return err
	}
	in := localise.Run{Excess: c.excessOf(), Unordered: c.unordered()}
	for _, k := range c.Cases {
		in.Cases = append(in.Cases, k.Name)
		in.Nested = in.Nested || k.Injected != nil && k.Injected.Info.Injection == dump.Nested
	}
	for _, p := range c.Ports {
		r := p.record()
		m := marks[p.key()]
		if r.Same = m.same; r.Joined && !r.Agrees {
			r.Twin = m.twin
		}
		in.Records = append(in.Records, r)
		if !slices.Contains(in.Steps, p.Step) {
			in.Steps = append(in.Steps, p.Step)
		}
	}
	slices.SortFunc(in.Steps, label.Natural)
	if c.Verdict = localise.First(in); c.Verdict == nil {
		c.note("what fails is within the noise of its type: the tolerance asks for more than two right implementations keep, so no place is named")
		return nil
	}
	if c.Verdict.Kind == localise.KindDrift && c.onlyRounding() {
		c.Verdict = nil
		return nil
	}
	c.otherPrompt(c.Verdict)
	c.audited(c.Verdict)
	c.copies(c.Verdict, marks)
	c.unseen(c.Verdict)
	return nil
}

// unordered tells which layers' names say nothing of their order, in cases in which neither side recorded one; nil if there is no such case.
func (c *Comparison) unordered() func(caseName, a, b string) bool {
	cases := map[string]bool{}
	for _, k := range c.Cases {
		if k.Golden.OrderBy == dump.OrderNatural && k.Actual.OrderBy == dump.OrderNatural {
			cases[k.Name] = true
		}
	}
	if len(cases) == 0 {
		return nil
	}
	return func(caseName, a, b string) bool { return cases[caseName] && !label.Ordered(a, b) }
}

// roundings is by how much errors of 16 bits may exceed the default limits where no layer made them. How fast they add up depends on depth and on
// sums that cancel.
const roundings = 6

// explained is what may pass in 16 bits where each layer is seen to make no more of what came in than rounding does. The largest error of a clean
// pair was 0.07 of a tensor and 0.54 of a row.
var explained = compare.Limits{RelL2: 0.2, RowRelL2: 1}

// onlyRounding judges the ports of 16 bits that fail by the defaults again where no layer made the error, with wider limits, and reports whether
// all pass then. If not, nothing has changed.
func (c *Comparison) onlyRounding() bool {
	type wider struct {
		port   *Port
		crit   compare.Criteria
		base   compare.Verdict
		source string
	}
	var all []wider
	for _, p := range c.Ports {
		if !p.Joined() || p.passes() || !p.Judged() {
			continue
		}
		d := dtype.Coarser(p.Golden.DType(), p.Actual.DType())
		if p.Err != nil || !p.byDefault || d != tensor.F16 && d != tensor.BF16 || p.Base.Result.BadNonFinite > 0 {
			return false
		}
		all = append(all, wider{p, p.Criteria, compare.Verdict{}, fmt.Sprintf("%d ×: no layer made the error, roundings add up", roundings)})
	}
	for i := range all {
		w := &all[i]
		l := compare.Default(w.port.Golden.DType(), w.port.Actual.DType()).Limits()
		l = compare.Limits{RelL2: roundings * l.RelL2, RowRelL2: roundings * l.RowRelL2}.Max(w.crit.Limits())
		if r := w.port.Base.Result; !r.Agrees(l) {
			if !c.Verdict.Explained() {
				return false
			}
			l = l.Max(explained)
			w.source = "no layer makes more of what came in than rounding does"
		}
		w.crit = l.Criteria()
		var err error
		if w.base, err = w.port.judge(w.crit); err != nil || !w.base.Pass {
			return false
		}
	}
	for _, w := range all {
		w.port.Criteria, w.port.Base, w.port.Agrees = w.crit, w.base, true
		w.port.Source += ", " + w.source
	}
	return true
}

// record is the port as the localiser sees it.
func (p *Port) record() localise.Record {
	r := localise.Record{Case: p.Case, Step: p.Step, Layer: p.Layer, Port: p.Port, Seq: p.Seq,
		Joined: p.Joined() && p.Err == nil || p.misfit(), Agrees: p.Agrees && !p.misfit(), Integer: !p.Golden.DType().IsFloat(), Len: p.Golden.Len()}
	if in := p.Injected; in != nil {
		r.Alone = &localise.Alone{Agrees: in.agrees, Error: worst(in.result)}
	}
	switch {
	case p.misfit():
		r.Error = math.Inf(1)
	case r.Joined:
		b := p.Base.Result
		r.Error, r.Whole, r.Epsilon = worst(b), b.RelL2, 2*dtype.Coarser(p.Golden.DType(), p.Actual.DType()).Epsilon()
		if p.Benign != "" || r.Integer && r.Agrees {
			r.Error = 0
		} else if r.Integer {
			r.Error = math.Inf(1)
		}
		if d := 2 * b.NormGolden * b.NormDiff; d > 0 && !math.IsInf(d, 0) {
			r.Along = (b.NormActual*b.NormActual - b.NormGolden*b.NormGolden - b.NormDiff*b.NormDiff) / d
		}
		if !r.Agrees && !r.Integer {
			r.Grid = grid(p.Golden, p.Actual)
		}
	}
	return r
}

// worst is the error that the localiser reckons with.
func worst(r compare.Result) float64 {
	if r.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return max(r.RelL2, r.WorstRow.RelL2)
}

// narrower are the types in which a float32 may have been rounded, by the lowest bits of it that are zero then.
var narrower = []struct {
	bits uint32
	unit float64
}{{1<<16 - 1, tensor.BF16.Epsilon()}, {1<<13 - 1, tensor.F16.Epsilon()}}

const (
	gridSample = 4096 // elements that are looked at
	gridLeast  = 16   // and are not zero, at least
)

// grid gives the rounding of the narrower type on whose grid all values of the candidate lie, while those of the golden do not; else 0.
func grid(golden, actual *tensor.Tensor) float64 {
	if golden.DType() != tensor.F32 || actual.DType() != tensor.F32 {
		return 0
	}
	low := func(t *tensor.Tensor) (low uint32, n int) {
		buf := make([]float64, min(t.Len(), gridSample))
		for _, x := range buf[:t.Float64s(buf, 0)] {
			if b := math.Float32bits(float32(x)); b<<1 != 0 {
				low |= b
				n++
			}
		}
		return low, n
	}
	a, n := low(actual)
	g, _ := low(golden)
	for _, t := range narrower {
		if n >= gridLeast && a&t.bits == 0 && g&t.bits != 0 {
			return t.unit
		}
	}
	return 0
}

// widen gives ports of which there is no float64 golden the noise floor of the tensor that they repeat, byte for byte, else the largest of those
// beside them so far: what a layer was given cannot be nearer to the truth than what made it.
func (c *Comparison) widen(marks map[portKey]mark) error {
	type place struct{ caseName, step, parent string }
	type content struct {
		caseName string
		same     int
	}
	floors, copies := map[place]compare.Limits{}, map[content]compare.Limits{}
	for _, p := range c.Ports {
		if !p.Joined() || p.Err != nil || !p.Golden.DType().IsFloat() {
			continue
		}
		here, bytes := place{p.Case, p.Step, parentOf(p.Layer)}, content{p.Case, marks[p.key()].same}
		if p.Golden64 != nil {
			for at := here; ; at.parent = parentOf(at.parent) { // what is inside of a container counts for those beside it too
				floors[at] = floors[at].Max(p.Floor)
				if at.parent == "" {
					break
				}
			}
			if bytes.same > 0 {
				copies[bytes] = copies[bytes].Max(p.Floor)
			}
			continue
		}
		wider, known := copies[bytes]
		if !known {
			wider = floors[here]
		}
		if wider = wider.Max(p.Floor); wider == p.Floor || p.Agrees {
			continue
		}
		p.Floor = wider
		if p.Agrees = p.agrees(); p.Agrees && p.byDefault && !p.passes() {
			p.Criteria = wider.Max(p.Criteria.Limits()).Criteria()
			p.Source = fmt.Sprintf("%d × the reference's own distance from float64, of what made it", noiseRatio)
			var err error
			if p.Base, err = p.judge(p.Criteria); err != nil {
				return err
			}
		}
	}
	return nil
}

func parentOf(layer string) string {
	return layer[:max(strings.LastIndexByte(layer, '.'), 0)]
}
