package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/tie"
	"github.com/goparity/goparity/internal/trace"
)

// A reference that rounds the inputs of its products to int8 is as near to an engine that does the
// same as other references are, but where a number lies between two whole ones as nearly as the
// noise: there the engine may round the other way, and the row is off by a part of a step. From there
// on the rows that follow from it say nothing below what rounding costs.

// rounded are the layers of a forward pass of which the candidate may have rounded rows another way,
// each as a choice that the rows took.
func (c *Comparison) rounded(flow *trace.Pass, passes *earlier) ways {
	k := c.caseOf(flow.Case)
	how := k.Golden.Info.Activations
	if how == nil {
		return nil
	}
	rounds := map[string]bool{}
	for _, l := range how.Layers {
		rounds[l] = true
	}
	var out ways
	for at := range flow.Events {
		e := &flow.Events[at]
		if !e.Input || label.RoleOf(e.Port) != label.RoleInput || !rounds[label.Name(e.Layer)] {
			continue
		}
		p := c.alike(flow, at)
		if p == nil || p.Golden.RowLen()%how.Block != 0 || p.Golden.RowLen() == 0 {
			continue
		}
		rows := roundingTies(p, how)
		lost := either(out.lost(flow, at, p, c.fed(flow)), passes.lost(flow, at, p, c.fed(flow)))
		t := tie.Ties{Of: p.Golden.Len() / p.Golden.RowLen()}
		for _, r := range rows {
			if r >= len(lost) || !lost[r] {
				t.Rows = append(t.Rows, r)
			}
		}
		if len(t.Rows) > 0 {
			a := another{choice: &choice{flow: flow, at: at, container: e.Layer, index: c.Ports[e.Index]}, Ties: t, rounds: true}
			a.each = c.sequence(flow, t.Of)
			out = append(out, a)
		}
	}
	return out
}

// alike returns a port that both sides have and that agrees, which holds what an input of the golden
// does; nil if there is none.
func (c *Comparison) alike(flow *trace.Pass, at int) *Port {
	for _, i := range append([]int{at}, flow.Copies(at)...) {
		p := c.Ports[flow.Events[i].Index]
		if p.comparable() && !p.misfit() && p.Actual.Len() == p.Golden.Len() {
			return p
		}
	}
	return nil
}

// roundingTies returns the rows of a port in which a number lies so near to the middle of two whole
// ones, in steps of its block, that what the two sides have there may be rounded to either. Rows that
// do not agree are none.
func roundingTies(p *Port, how *dump.Activations) (rows []int) {
	n := p.Golden.RowLen()
	g, a := make([]float64, n), make([]float64, n)
	floor := p.floor().RowRelL2
	for row := range p.Golden.Len() / n {
		p.Golden.Float64s(g, row*n)
		p.Actual.Float64s(a, row*n)
		var off, size float64
		for i, x := range g {
			off += (a[i] - x) * (a[i] - x)
			size += x * x
		}
		if !(math.Sqrt(off) <= floor*math.Sqrt(size)) {
			continue
		}
		for from := 0; from < n; from += how.Block {
			if blockTies(g[from:from+how.Block], a[from:from+how.Block]) {
				rows = append(rows, row)
				break
			}
		}
	}
	return rows
}

// blockTies reports whether a number of a block may be rounded either way.
func blockTies(g, a []float64) bool {
	gs, as := int8Step(g), int8Step(a)
	for i := range g {
		x, y := g[i]/gs, a[i]/as
		if gs == 0 || as == 0 {
			return gs != as
		}
		half := math.Floor(x) + 0.5
		if math.Abs(x-half) <= math.Abs(x-y)+stepNoise {
			return true
		}
	}
	return false
}

// int8Step is the distance of two whole numbers of a block, max|x|/127.
func int8Step(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most / 127
}

// leaveOutRounded judges a port without the rows that were rounded another way, if it is no further
// off, with them, than rounding carries the reference, and its layer makes no more of what it was
// given. A port without any row left passes by that alone.
func (c *Comparison) leaveOutRounded(flow *trace.Pass, p *Port, lost []bool) error {
	if !slices.Contains(lost, true) {
		return nil
	}
	limits, by := compare.Limits{RelL2: roundedInputs, RowRelL2: roundedInputs}, "what inputs of int8 cost"
	if p.Unrounded != nil {
		if r, err := compare.Tensors(p.Unrounded, p.Golden, compare.Tolerance{}); err == nil {
			limits = compare.Limits{RelL2: roundedTwice * r.RelL2, RowRelL2: compare.MostCost * r.WorstRow.RelL2}
			by = fmt.Sprintf("twice what rounding costs the reference, %.2g", limits.RelL2)
		}
	}
	if !p.Base.Result.Agrees(limits) || c.madeItself(flow, p) {
		return nil
	}
	if slices.Contains(lost, false) {
		return p.leaveOut(lost, "follow from an input that was rounded another way")
	}
	p.Agrees = true
	p.Benign = fmt.Sprintf("all rows follow from an input that was rounded another way: off by %.2g, at most %s", p.Base.Result.RelL2, by)
	return nil
}

// madeItself reports whether a layer that rounds its input makes more of a row than rounding what came
// in does: with x the input's row, dx its error, η the relative error of rounding, and G the layer's
// gain, ‖dy‖ > layerRounding·G·(‖dx‖ + 2·η·‖x‖).
func (c *Comparison) madeItself(flow *trace.Pass, p *Port) bool {
	how := c.caseOf(p.Case).Golden.Info.Activations
	if !slices.Contains(how.Layers, label.Name(p.Layer)) || !p.Judged() {
		return false
	}
	for _, i := range flow.Ports(p.Layer) {
		in := c.Ports[flow.Events[i].Index]
		if in.Judged() || !in.comparable() || in.Base.Result.Rows != p.Base.Result.Rows || in.Golden.RowLen()%how.Block != 0 {
			continue
		}
		x, dx, err := norms(in)
		if err != nil {
			return false
		}
		y, dy, err := norms(p)
		if err != nil {
			return false
		}
		gain := 0.0
		for i := range x {
			if x[i] > 0 {
				gain = max(gain, y[i]/x[i])
			}
		}
		eta := roundingError(in, how)
		for i := range x {
			if dy[i] > layerRounding*gain*(dx[i]+2*eta[i]) {
				return true
			}
		}
	}
	return false
}

// roundingError is ‖x − Q(x)‖ of each row of a golden input.
func roundingError(p *Port, how *dump.Activations) []float64 {
	n := p.Golden.RowLen()
	out, x := make([]float64, p.Golden.Len()/n), make([]float64, n)
	for row := range out {
		p.Golden.Float64s(x, row*n)
		sum := 0.0
		for from := 0; from < n; from += how.Block {
			block := x[from : from+how.Block]
			if s := int8Step(block); s > 0 {
				for _, v := range block {
					e := v - s*math.RoundToEven(v/s)
					sum += e * e
				}
			}
		}
		out[row] = math.Sqrt(sum)
	}
	return out
}

// roundedText says which rows were rounded another way.
func (a *another) roundedText() string {
	return fmt.Sprintf("%d of %d rows that %s was given, in case %s, step %s, have a number between two of int8 within the noise, "+
		"which may be rounded either way: those rows and what attends to them are judged behind it by what rounding costs",
		len(a.Rows), a.Of, a.layer(), a.flow.Case, a.flow.Step)
}
