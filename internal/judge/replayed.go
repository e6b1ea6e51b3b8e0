package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/dtype"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/report"
	editsearch "github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/trace"
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
				"which encoding in run.json or parity compare --encoding says better", k.Name, d, d))
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
func (k *Case) records(run *piece.Run, r *replayed, byKey map[trace.Key]*Port) {
	for i, at := range run.Program.Ports {
		p := byKey[trace.Key{Case: k.Name, Step: at.Step, Layer: at.Layer, Port: at.Name}]
		if p == nil {
			continue
		}
		r.ports[i] = []*Port{p}
		p.replayRecord(&run.Records[i], k.alone)
		if x := &run.Records[i]; k.alone && x.Tensor != nil && !x.Source { // no weight is read again
			x.Made = func() (*replay.Array, error) { return madeBefore(p.entry, run.Program.Values[at.Value].DType) }
		}
	}
}

// madeBefore is what was replayed as a golden, in the type that the program has for it.
func madeBefore(golden *tensor.Tensor, d tensor.DType) (*replay.Array, error) {
	a, err := replay.FromTensor(golden)
	if err != nil || a.DType() == d {
		return a, err
	}
	return replay.Of(d, a.Shape(), a.Floats())
}

// unsaid returns the type of 16 bits in which a run of wider tensors computes that does not say so: most
// pieces are off, and the first that is wrong holds nothing but its numbers. It is Invalid for any
// other run.
func (k *Case) unsaid(run *piece.Run, found *piece.Result) tensor.DType {
	if _, err := tensor.ParseDType(k.Actual.Info.Encoding.Compute); err == nil || len(found.Faults) == 0 || dtype.Has16Bits(run.Encoding) {
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
	if pieces == 0 || 2*wrong < pieces || t == nil || !t.DType().IsFloat() || t.Len() < trace.LeastFloats {
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
	if r.Misfit || !p.Comparable() || p.frame == nil || p.printed != nil {
		return
	}
	if !alone {
		r.Golden = piece.Golden{Known: true, Agrees: p.Agrees, Error: math.Max(p.inFloors()), Measured: p.measured, Tied: p.tied}
	}
	f, ok := p.ownShape()
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
	r.Source = p.Elsewhere != ""
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
		p.Problem, p.Agrees, p.Elsewhere = "", true, "hangs on random numbers, of which each run draws its own"
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

// placeFaults finds the place among what replay found wrong.
func (c *Comparison) placeFaults() error {
	in := localise.Run{Trace: c.flow(), Given: c.given(), Unordered: c.unordered()}
	for _, k := range c.Cases {
		in.Nested = in.Nested || k.Injected != nil && k.Injected.Info.Injection == dump.Nested
	}
	twins, err := c.twins(in.Trace)
	if err != nil {
		return err
	}
	faults := c.faults(twins)
	c.byPieces(faults)
	settled := len(faults) == 0 && c.settled()
	c.noteWeights()
	for i, p := range c.Ports {
		r := p.record()
		if r.Joined && !r.Agrees {
			r.Twin = twins[i]
		}
		in.Records = append(in.Records, r)
	}
	c.Verdict = localise.Placed(in, faults)
	if other := c.OtherPrompt(); c.Verdict == nil {
		c.Verdict = other
	}
	if c.Verdict == nil && !settled {
		c.Verdict, c.within = c.addsUp(in)
	}
	if c.Verdict != nil {
		c.Verdict.Evidence = append(c.Verdict.Evidence, c.others()...)
	}
	return nil
}

// faults collects what is wrong by itself in all cases, and excuses what is only written otherwise.
func (c *Comparison) faults(twins map[int]string) (faults []localise.Fault) {
	index := map[*Port]int{}
	for i, p := range c.Ports {
		index[p] = i
	}
	held := c.held()
	for _, r := range c.replays {
		known := r.explained(c)
		twin := func(p *Port) string { return twins[index[p]] }
		folded := r.folded(twin)
		if folded != nil {
			twin = func(*Port) string { return "" }
		}
		for i, s := range r.result.Stretches {
			coarse := slices.IndexFunc(s, r.downcast)
			switch f := r.captured(s, index, held, twin); {
			case coarse >= 0: // whatever is made of it
				faults = append(faults, r.faults(s[coarse], index)...)
			case f != nil:
				faults = append(faults, *f)
			case !known[i] && !folded[r.Ports[s[0]].Value]:
				faults = append(faults, r.faults(s[0], index)...)
			default:
				c.excuse(r, s)
			}
		}
		for _, t := range r.result.Faults {
			for _, f := range r.faults(t, index) {
				f.Held = held[c.Ports[f.Index]].Text
				faults = append(faults, f)
			}
		}
		if r.result.Precision != "" {
			c.Note(r.result.Precision + ": everything else is judged with that")
		}
	}
	return faults
}

// noteWeights says how many pieces could not be replayed for want of their weights.
func (c *Comparison) noteWeights() {
	missing, all := 0, 0
	for _, r := range c.replays {
		for _, l := range r.result.Local {
			if all++; strings.Contains(l.Opaque, editsearch.ErrNoWeights.Error()) {
				missing++
			}
		}
	}
	if missing > 0 {
		c.Note(fmt.Sprintf("%d of %d pieces of the reference's program need weights that are not at hand, and were judged by the golden, less sharply: "+
			"--weights says where they are", missing, all))
	}
}

// stretches lists what is only written otherwise.
func (c *Comparison) stretches() (list []report.Stretch) {
	for _, r := range c.replays {
		for _, stretch := range r.result.Stretches {
			var ports []string
			text := ""
			for _, t := range stretch {
				for _, p := range r.ports[t] {
					if p.Rewrite != "" && p.Step == r.ports[stretch[0]][0].Step {
						ports, text = append(ports, label.Join(p.Layer, p.Port)), p.Rewrite+": "+undone
					}
				}
			}
			if len(ports) > 0 {
				list = append(list, report.Stretch{Case: r.Case, Ports: ports, Text: text})
			}
		}
	}
	return list
}

// addsUp says why something fails though nothing is wrong by itself: what a test or the fixture asks for
// is tighter than two right implementations are, or errors add up, and no layer is accused.
func (c *Comparison) addsUp(in localise.Run) (v *localise.Verdict, within string) {
	for _, p := range c.Ports {
		if p.Joined() && !p.Passes() && p.Judged() && !p.Agrees {
			return localise.Drift(in, p.Case, p.Step, "errors add up: no layer makes more of what it was given than rounding does, "+
				"so none is accused; a run in a coarser precision looks like this"), ""
		}
	}
	return nil, "what fails is within the noise of its type: the tolerance asks for more than two right implementations reach, so no place is named"
}

// downcast reports whether the candidate has a port in a coarser type than its run was asked for.
func (r *replayed) downcast(t int) bool {
	return slices.ContainsFunc(r.ports[t], func(p *Port) bool { return p.Comparable() && p.isDowncast(p.Base.Result) })
}

// explained lists for each stretch whether it is another way to write the same: replay has shown it or,
// where it was opaque, its outputs are known maps of the golden's. A single one in a run may be a wrong
// record, unless it is a map that attention undoes by itself.
func (r *replayed) explained(c *Comparison) []bool {
	known := make([]bool, len(r.result.Stretches))
	sure := make([]bool, len(known))
	values := map[program.ID]bool{}
	for i, stretch := range r.result.Stretches {
		known[i], sure[i] = true, true
		for _, t := range stretch {
			l := r.result.Local[t]
			if l == nil || !r.inferred && (l.Opaque == "" || l.Tied) {
				continue
			}
			for _, p := range r.ports[t] {
				if p.Passes() || p.misfit() || !p.Judged() || !p.Golden.DType().IsFloat() {
					continue
				}
				m := c.mapOf(p)
				known[i] = known[i] && m.Kind != structure.MapNone
				sure[i] = m.Kind == structure.MapInterleaved || m.Kind == structure.MapFactor && (ofHeads(m.Factor) || r.wentOnWith(t, p) != nil)
				values[r.Ports[t].Value] = known[i]
			}
		}
	}
	several := 0
	for _, is := range values {
		if is {
			several++
		}
	}
	for i := range known {
		known[i] = known[i] && (sure[i] || several > 1)
	}
	return known
}

// captured returns the fault of a recording that holds another tensor than the model went on with: it
// is what is known to be another one, or the same tensor is right under another name. It is nil for a
// stretch that is only written otherwise.
func (r *replayed) captured(stretch []int, index map[*Port]int, held map[*Port]pattern.Held, twin func(*Port) string) *localise.Fault {
	if r.alone { // what it would be compared with is made of it
		return nil
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			same := ""
			if r.one(stretch) {
				same = twin(p)
			}
			if text := r.recordedOtherwise(t, p, held[p].Text, same); text != "" {
				return &localise.Fault{Index: index[p], Held: text}
			}
		}
	}
	return nil
}

// folded are values that hold the same bytes as another one each, which the reference's do not, while all behind
// them is right. Where several values have such a twin, the candidate has folded the one into the other, as a norm
// into a convolution; where one has, or another record of the value is right, it is the recording that is wrong, and
// folded is nil.
func (r *replayed) folded(twin func(*Port) string) map[program.ID]bool {
	twins, right, values := map[program.ID]bool{}, map[program.ID]bool{}, map[program.ID]bool{}
	for t, ports := range r.ports {
		for _, p := range ports {
			v := r.Ports[t].Value
			right[v] = right[v] || p.Judged() && p.Comparable() && p.Agrees
			twins[v] = twins[v] || p.Judged() && !p.Agrees && twin(p) != ""
		}
	}
	maps.DeleteFunc(twins, func(v program.ID, is bool) bool { return !is || right[v] })
	if len(twins) < 2 {
		return nil
	}
	for _, s := range r.result.Stretches {
		if !slices.ContainsFunc(s, func(t int) bool { return !twins[r.Ports[t].Value] }) {
			values[r.Ports[s[0]].Value] = true
		}
	}
	return values
}

// recordedOtherwise says why the recording of an output is wrong; "" if nothing shows that. twin is what it
// holds the same bytes as.
func (r *replayed) recordedOtherwise(t int, p *Port, held, twin string) string {
	// Where the tensor was recorded again, and is as wrong, it is no matter of the recording.
	again := func(i int) bool {
		return i != t && slices.ContainsFunc(r.ports[i], func(q *Port) bool { return q.Step == p.Step && q.Comparable() && !q.Agrees })
	}
	switch {
	case !p.Judged() || p.Agrees || p.misfit():
		return ""
	case slices.ContainsFunc(r.Records(r.Ports[t].Value), again):
		return ""
	case held != "":
		return held
	case rewritten(p).Kind == structure.MapFactor: // a scale that the candidate's layer leaves to its caller
		return ""
	}
	const text = "what was recorded as %s of %s is not what the model went on with: "
	if q := r.wentOnWith(t, p); q != nil {
		return fmt.Sprintf(text+"the same tensor agrees as %s of %s", p.Port, p.Layer, q.Port, q.Layer)
	}
	if twin != "" {
		return fmt.Sprintf(text+"it holds the same bytes as %s, which the reference's does not", p.Port, p.Layer, twin)
	}
	return ""
}

// wentOnWith is a later record of the tensor of a port that agrees; nil for none.
func (r *replayed) wentOnWith(t int, p *Port) *Port {
	for _, i := range r.Records(r.Ports[t].Value) {
		for _, q := range r.ports[i] {
			if i > t && q.Step == p.Step && q.Comparable() && q.Agrees {
				return q
			}
		}
	}
	return nil
}

// settled reports whether all that fails is known to be right where it was made, or is no more than what
// roundings of 16 bits add up to, and excuses it. What hangs on a choice of 16 bits that may come either way,
// and nothing tells what is right of it, is left open.
func (c *Comparison) settled() bool {
	var excused, open []*Port
	for _, p := range c.Ports {
		if p.Passes() && !p.misfit() || !p.Joined() || !p.Judged() {
			continue
		}
		if !p.byDefault || p.downcast != tensor.Invalid || p.Err != nil {
			return false
		}
		l := p.Local
		right := l != nil && !l.Wrong && (l.Opaque == "" || l.AnyOrder)
		switch {
		case right:
			excused = append(excused, p)
		case (p.tied || l != nil && l.Tied) && dtype.Has16Bits(c.encodings[p.Case].dtype): // in float32 no token goes another way
			if asOne(c.inAllPasses(p)).Error > piece.LeastOf16 && !c.contained(p) {
				open = append(open, p)
			} else {
				excused = append(excused, p)
			}
		case dtype.Has16Bits(p.DType) && !p.measured && p.Base.Result.BadNonFinite == 0 && p.Base.Result.Agrees(compare.Drift(p.DType)):
			excused = append(excused, p)
		default:
			return false
		}
	}
	for _, p := range excused {
		p.Agrees = true
		switch {
		case p.Local != nil && p.Local.Opaque == "":
			p.Benign = "rounding only: every piece of it is right"
		case p.Local != nil && p.Local.AnyOrder:
			p.Benign = "equal numbers do not tell the order of its rows"
		default:
			p.Benign = "rounding only: no layer made it"
		}
	}
	c.leaveOpen(open)
	return true
}

// inAllPasses lists a port in all forward passes of its case.
func (c *Comparison) inAllPasses(p *Port) (ports []*Port) {
	for _, q := range c.Ports {
		if q.Case == p.Case && q.place() == p.place() {
			ports = append(ports, q)
		}
	}
	return ports
}

// contained reports whether an output is made into that of a layer around it, which agrees with the golden.
func (c *Comparison) contained(p *Port) bool {
	return slices.ContainsFunc(c.Ports, func(q *Port) bool {
		return q.Case == p.Case && q.Step == p.Step && label.Inside(p.Layer, q.Layer) && q.Judged() &&
			q.Comparable() && q.Elsewhere == "" && q.Base.Pass
	})
}

// leaveOpen leaves out what nothing tells of whether it is right, and says so: a run with such an output does
// not pass.
func (c *Comparison) leaveOpen(ports []*Port) {
	layers := map[string]bool{}
	for _, p := range ports {
		p.Agrees, p.Elsewhere = true, "hangs on a choice that may come either way, and nothing tells what is right then"
		layers[p.Layer] = true
	}
	if len(ports) > 0 {
		c.open = append(c.open, fmt.Sprintf("%d outputs hang on a choice that may come either way, and are off by more than rounding: "+
			"nothing that is at hand tells whether they are right (--weights may), %s", len(ports), label.Few(slices.Sorted(maps.Keys(layers)))))
	}
}

// one reports whether ports are labels of one value.
func (r *replayed) one(ports []int) bool {
	return !slices.ContainsFunc(ports, func(t int) bool { return r.Ports[t].Value != r.Ports[ports[0]].Value })
}

// mapOf returns the map that makes of a port's golden what the candidate has. A pass of few rows does not show it by
// itself: then those of all passes do.
func (c *Comparison) mapOf(p *Port) structure.Map {
	m := rewritten(p)
	if m.Kind != structure.MapNone || !p.Comparable() || p.Golden.Len() >= fewRows*p.Golden.RowLen() {
		return m
	}
	var golden, actual []*tensor.Tensor
	for _, q := range c.Ports {
		if q.Case != p.Case || q.Layer != p.Layer || q.Port != p.Port || !q.Comparable() || q.misfit() || q.printed != nil {
			continue
		}
		rows := []int{q.Golden.Len() / max(q.Golden.RowLen(), 1), q.Golden.RowLen()}
		g, err := q.Golden.Reshape(rows...)
		a, err2 := q.Actual.Reshape(rows...)
		if err == nil && err2 == nil {
			golden, actual = append(golden, g), append(actual, a)
		}
	}
	if len(golden) < 2 {
		return m
	}
	g, err := tensor.Concat(0, golden...)
	a, err2 := tensor.Concat(0, actual...)
	if err != nil || err2 != nil {
		return m
	}
	return structure.Rewritten(g, a, p.Floor)
}

// excuse notes what is only written otherwise, and how, where its first tensor is a known map of the
// golden's.
func (c *Comparison) excuse(r *replayed, stretch []int) {
	first, how := r.Ports[stretch[0]], ""
	for _, p := range r.ports[stretch[0]] {
		if p.misfit() {
			p.Problem, p.Agrees, p.Elsewhere = "", true, p.Problem+"; it is judged by what is made of it"
			continue
		}
		if m := c.mapOf(p); m.Kind == structure.MapFactor && ofHeads(m.Factor) {
			how = fmt.Sprintf(" (1/√%.0f is folded in)", 1/(m.Factor*m.Factor))
		} else if m.Kind != structure.MapNone {
			how = " (" + m.Text + ")"
		}
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			if !p.Passes() {
				p.Agrees = true
				p.Rewrite = fmt.Sprintf("written otherwise from %s on%s", label.Join(first.Layer, first.Name), how)
			}
		}
	}
}

// ofHeads reports whether a factor is 1/√d of the width d of a head.
func ofHeads(by float64) bool {
	d := 1 / (by * by)
	return by > 0 && d > 3.5 && d < 1025 && math.Abs(d-math.Round(d)) < 1e-4*d
}

// faults describes a port whose piece is wrong, in each forward pass in which it is.
func (r *replayed) faults(t int, index map[*Port]int) (list []localise.Fault) {
	at, l := r.Ports[t], r.result.Local[t]
	lone := at.Input && len(l.Sources) == 0 && r.Maker(at.Value) < 0 && r.Values[at.Value].Input != ""
	passed := r.passes(at)
	for _, p := range r.ports[t] {
		if r.laid != nil && !p.Local.Wrong {
			continue
		}
		f := localise.Fault{Index: index[p], Open: l.Opaque != "", Found: r.found(t, p), Lone: lone, Passed: passed}
		for _, s := range l.Sources {
			for _, q := range r.ports[s] {
				if q.Step == p.Step {
					f.From = append(f.From, index[q])
				}
			}
		}
		list = append(list, f)
	}
	return list
}

// passes reports whether a layer puts out what it was given, as dropout does: it has no operator of its
// own, or it was recorded that it took the same value.
func (r *replayed) passes(at program.Port) bool {
	if at.Input {
		return false
	}
	same := slices.ContainsFunc(r.Records(at.Value), func(i int) bool {
		q := &r.Ports[i]
		return q.Input && q.Layer == at.Layer && q.Step == at.Step
	})
	return same || !label.IsRoot(at.Layer) && !slices.ContainsFunc(r.Ops, func(o program.Op) bool {
		return label.Within(o.Layer, label.Name(at.Layer))
	})
}

// found says in figures what replay found at a port.
func (r *replayed) found(t int, p *Port) string {
	l := r.result.Local[t]
	if l.Opaque != "" {
		text := "what goes into it agrees with the golden, and it does not"
		if !r.inferred {
			text += " (" + l.Opaque + ")"
		}
		return text
	}
	if p.misfit() {
		return p.Problem
	}
	if l.Larger != 0 {
		return fmt.Sprintf("it is %+.2g %% larger throughout than what replay makes of the candidate's own tensors, and roundings are not: they cancel", 100*l.Larger)
	}
	return fmt.Sprintf("replayed from the candidate's own tensors it is off by %.3g, its worst row by %.3g; rounding makes %.1g", l.Error, l.RowError,
		cmp.Or(l.Noise, l.RowNoise))
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
