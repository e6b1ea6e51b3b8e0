package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// replayed is what the reference's program says of a case.
type replayed struct {
	*program.Program
	ports    [][]*Port // by port of the program, one for each forward pass; nil where the golden has none
	result   *piece.Result
	alone    bool     // there is no golden
	inferred bool     // the program stands for one that is not known: the golden alone shows what is right
	laid     *laidOut // where forward passes were laid out as one; else nil
	along    *Along   // the path of these
}

// portOf is the port of the program that a port is of; −1 for none.
func (r *replayed) portOf(p *Port) int {
	return slices.IndexFunc(r.ports, func(of []*Port) bool { return slices.Contains(of, p) })
}

// replayAll replays the programs of all cases that have one.
func (c *Comparison) replayAll() error {
	byKey := c.byKey()
	for _, k := range c.Cases {
		if k.Along != nil {
			done, err := c.replayAlong(&k)
			if err != nil {
				return err
			}
			if done {
				continue
			}
		}
		prog, err := k.Program, error(nil)
		if prog == nil || k.Along != nil {
			if prog, err = c.inferred(k); err != nil {
				return err
			}
		}
		r := &replayed{Program: prog, ports: make([][]*Port, len(prog.Ports)), alone: k.alone, inferred: prog != k.Program}
		load, done := c.search.Evidence.Outside(prog)
		defer done()
		run := &piece.Run{Program: prog, Records: make([]piece.Record, len(prog.Ports)),
			Encoding: c.encodings[k.Name].dtype, Load: load}
		k.records(run, r, byKey)
		if r.result, err = piece.Judge(c.ctx, run); err != nil {
			return err
		}
		if d := k.unsaid(run, r.result); d != tensor.Invalid {
			c.Note(fmt.Sprintf("case %s: the run does not say its encoding, and what differs first holds nothing but numbers of %s: it is judged as %s, "+
				"which encoding in run.json or parity compare --assume encoding=… says better", k.Name, d, d))
			run.Encoding = d
			for _, p := range c.Ports {
				if p.Case == k.Name {
					p.downcast = tensor.Invalid
				}
			}
			if r.result, err = piece.Judge(c.ctx, run); err != nil {
				return err
			}
		}
		if found, err := c.leaveOutTies(&k); err != nil {
			return err
		} else if found {
			for i, ports := range r.ports {
				for _, p := range ports {
					p.replayRecord(&run.Records[i], k.alone)
				}
			}
			if r.result, err = piece.Judge(c.ctx, run); err != nil {
				return err
			}
		}
		for i, l := range r.result.Local {
			for _, p := range r.ports[i] {
				p.Local = l
				p.leaveOutDrawn()
			}
		}
		c.replays = append(c.replays, r)
	}
	return nil
}

// records gives a run what was recorded of the program's ports.
func (k *Case) records(run *piece.Run, r *replayed, byKey map[localise.Key]*Port) {
	for i, at := range run.Program.Ports {
		p := byKey[k.keyOf(at)]
		if p == nil {
			continue
		}
		r.ports[i] = []*Port{p}
		p.replayRecord(&run.Records[i], k.alone)
		if x := &run.Records[i]; k.alone && x.Tensor != nil && !x.Source { // no weight is read again
			x.Made = func() (*replay.Array, error) { return arrayOf(p.entry, run.Program.Values[at.Value].DType) }
		}
	}
}

// arrayOf is a tensor in the type that the program has for it.
func arrayOf(t *tensor.Tensor, d tensor.DType) (*replay.Array, error) {
	a, err := replay.FromTensor(t)
	if err != nil || a.DType() == d {
		return a, err
	}
	return replay.Of(d, a.Shape(), a.Floats())
}

// unsaid returns the type of 16 bits in which a run of wider tensors computes that does not say so: most
// pieces are off, and the first that is wrong holds nothing but its numbers. It is Invalid for any
// other run.
func (k *Case) unsaid(run *piece.Run, found *piece.Result) tensor.DType {
	if _, err := tensor.ParseDType(k.Actual.Info.Encoding.Compute); err == nil || len(found.Faults) == 0 || compare.Has16Bits(run.Encoding) {
		return tensor.Invalid
	}
	pieces, wrong := 0, 0
	for _, l := range found.Local {
		if l.Opaque == "" && l.First <= l.Last {
			pieces++
			if l.Wrong {
				wrong++
			}
		}
	}
	t := run.Records[found.Faults[0]].Tensor
	if pieces == 0 || 2*wrong < pieces || t == nil || !t.DType().IsFloat() || t.Len() < localise.LeastFloats {
		return tensor.Invalid
	}
	for _, d := range []tensor.DType{tensor.BF16, tensor.F16} {
		if isOf(t, d) {
			return d
		}
	}
	return tensor.Invalid
}

// isOf reports whether a type holds all numbers of a tensor, and they are not whole.
func isOf(a *replay.Array, d tensor.DType) bool {
	x := a.Floats()
	narrow, err := replay.Of(d, a.Shape(), x)
	if err != nil {
		return false
	}
	whole := true
	for i, v := range narrow.Floats() {
		if v != x[i] {
			return false
		}
		whole = whole && v == math.Trunc(v)
	}
	return !whole
}

// replayRecord sets what the candidate has for a port, as replay takes it. Alone, its golden is made of it,
// and tells nothing.
func (p *Port) replayRecord(r *piece.Record, alone bool) {
	r.Misfit = p.misfit()
	if r.Misfit || !p.Comparable() || p.sides == nil || p.printed != nil {
		return
	}
	if !alone {
		r.Golden = piece.Golden{Known: true, Agrees: p.Agrees, Error: math.Max(p.inFloors()), Measured: p.measured, Tied: p.tied}
	}
	f, ok := p.inOwnShape()
	if !ok {
		return
	}
	var err error
	if r.Tensor, err = replay.FromTensor(f.actual); err == nil {
		r.Tensor, err = p.additive(r.Tensor)
	}
	if err != nil {
		r.Tensor = nil
		return
	}
	r.Source = p.Unjudged()
	if f.pad != nil && slices.Contains(f.pad, true) {
		r.Lines = make([]bool, len(f.pad))
		for i, pad := range f.pad {
			r.Lines[i] = !pad
		}
		r.Complete = padded(r.Tensor, r.Lines)
	}
}

// inFloors returns the error of a port, of the tensor and of its worst row, in noise floors of its type.
func (p *Port) inFloors() (whole, row float64) {
	r, f := p.Base.Result, p.floor()
	switch cost := r.Cost; {
	case p.isDowncast(r):
	case p.measured && cost != nil && r.BadNonFinite == 0:
		return cost.Tensor / compare.MostCost, cost.Row / 2 / compare.MostCost // a row has to show more, see judgeBase
	case !p.DType.IsFloat() && p.Agrees && r.BadNonFinite == 0:
		return 0, 0
	case r.BadNonFinite == 0 && p.DType.IsFloat():
		return r.RelL2 / f.RelL2, r.WorstRow.RelL2 / f.RowRelL2
	}
	return math.Inf(1), math.Inf(1)
}

// leaveOutDrawn leaves out what hangs on random numbers that the reference drew: the candidate has drawn
// others.
func (p *Port) leaveOutDrawn() {
	if p.Local.Drawn && (!p.Agrees || p.misfit()) {
		p.allow(unjudged, "hangs on random numbers, of which each run draws its own")
	}
}

// padded puts the lines of a tensor that are no padding into a replayed one.
func padded(have *replay.Array, lines []bool) func(*replay.Array) (*replay.Array, error) {
	return func(made *replay.Array) (*replay.Array, error) {
		x, own := made.Floats(), have.Floats()
		if len(x) != len(own) || len(lines) == 0 || len(x)%len(lines) != 0 {
			return have, nil
		}
		n := len(x) / len(lines)
		for i, is := range lines {
			if is {
				copy(x[i*n:(i+1)*n], own[i*n:(i+1)*n])
			}
		}
		return replay.Of(made.DType(), have.Shape(), x) // of a narrower type the lowest number would be an infinity
	}
}

// additive returns a bool mask as the numbers that the golden's additive one has for what is denied and
// allowed, so that operators can add it; any other tensor as it is.
func (p *Port) additive(have *replay.Array) (*replay.Array, error) {
	if p.Actual.DType() != tensor.Bool || !p.Golden.DType().IsFloat() {
		return have, nil
	}
	if _, isMask := mask.Differ(p.Golden, p.Actual); !isMask {
		return have, nil
	}
	golden := make([]float64, p.Golden.Len())
	p.Golden.Float64s(golden, 0)
	denied := slices.Min(golden)
	if denied == 0 { // it denies nothing
		denied = -math.MaxFloat32
	}
	x := slices.Clone(have.Floats())
	for i, allowed := range x {
		x[i] = denied * (1 - allowed)
		if allowed == 1 {
			x[i] = 0 // -Inf · 0 is NaN
		}
	}
	return replay.Of(p.Golden.DType(), have.Shape(), x)
}
