package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// How much time the search for causes gets.
const (
	DiagnoseOff  = "off"
	DiagnoseFast = "fast"
	DiagnoseFull = "full"
)

// budgets are the time for all places of a comparison together.
var budgets = map[string]time.Duration{DiagnoseFast: 1500 * time.Millisecond, DiagnoseFull: 10 * time.Second}

// CheckDiagnose refuses an unknown mode.
func CheckDiagnose(mode string) error {
	if mode != "" && mode != DiagnoseOff && budgets[mode] == 0 {
		return fmt.Errorf("diagnose mode %q: want off, fast or full", mode)
	}
	return nil
}

// Diagnosis is what the search for causes is given beside the runs.
type Diagnosis struct {
	Mode string // one of the constants; empty is DiagnoseFull
	// Evidence opens weights and config, when a run failed; nil for none. What it gives is closed by the caller of Compare.
	Evidence func() (diagnose.Weights, diagnose.Config, error)
	Extra    []diagnose.Hypothesis
}

// maxPlaces is how many places of a comparison are diagnosed: the first divergence, and others that do not follow from it.
const maxPlaces = 4

// Causes says why the first divergence happens, and what else went wrong on its own, the best first for each place. It is found out
// once, when a report of a failing run asks. nil if nobody asked for it.
func (c *Comparison) Causes() []diagnose.Cause {
	c.diagnosing.Do(func() {
		if c.diagnosis.Mode == DiagnoseOff || c.Verdict == nil {
			return
		}
		c.causes = c.diagnose()
	})
	return c.causes
}

func (c *Comparison) diagnose() []diagnose.Cause {
	run := &diagnose.Run{Verdict: c.Verdict, TokenIDs: c.tokenIDs}
	if open := c.diagnosis.Evidence; open != nil {
		var err error
		if run.Weights, run.Config, err = open(); err != nil {
			c.causeNotes = append(c.causeNotes, "the cause was looked for without weights or config: "+err.Error())
		}
	}
	known := map[*Port]*diagnose.Port{}
	for _, p := range c.Ports {
		d := p.evidence()
		known[p] = d
		run.Ports = append(run.Ports, d)
	}
	left := budgets[DiagnoseFull]
	if b := budgets[c.diagnosis.Mode]; b > 0 {
		left = b
	}
	ctx, cancel := context.WithTimeout(c.ctx, left)
	defer cancel()
	out := []diagnose.Cause{}
	for i, s := range c.scenes(run, known) {
		s.Failed = func(err error) { c.causeNotes = append(c.causeNotes, err.Error()) }
		causes := diagnose.Diagnose(ctx, s, diagnose.For(s.Kind), diagnose.Options{Extra: c.diagnosis.Extra})
		if i > 0 {
			// Of a place that may follow from the first one only a proof is worth reading.
			causes = slices.DeleteFunc(causes, func(k diagnose.Cause) bool { return !k.Proven })
		}
		out = append(out, causes...)
		if first := c.Verdict.Kind; first != localise.KindLocal && first != localise.KindBetween {
			break // the other kinds are of the run, not of a layer: what is wrong elsewhere may follow from them
		}
	}
	return out
}

// scenes gives the place of the verdict first, then other places that do not follow from it.
func (c *Comparison) scenes(run *diagnose.Run, known map[*Port]*diagnose.Port) []*diagnose.Scene {
	v := c.Verdict
	target := c.target()
	first := &diagnose.Scene{Run: run, Kind: v.Kind, Case: v.Case, Step: v.Step, Layer: v.Layer, After: v.After, Before: v.Before}
	if target != nil {
		first.Case, first.Step, first.Target = target.Case, target.Step, known[target]
	}
	out := []*diagnose.Scene{first}
	for _, p := range c.alone(v) {
		if len(out) == maxPlaces {
			break
		}
		s := &diagnose.Scene{Run: run, Kind: localise.KindLocal, Case: p.Case, Step: p.Step, Layer: p.Layer, Target: known[p]}
		if p.Injected != nil {
			s.Run = run.Injected(known[p])
			s.Target = s.Port(p.Case, p.Step, p.Layer, p.Port)
		}
		out = append(out, s)
	}
	return out
}

// target is the wrong tensor of the verdict.
func (c *Comparison) target() *Port {
	v := c.Verdict
	layers := []string{v.Before, v.Layer}
	var found *Port
	for _, p := range c.Ports {
		at := slices.Index(layers, p.Layer)
		if p.Case != v.Case || p.Step != v.Step || p.Actual == nil || p.Agrees || at < 0 || p.Layer == "" {
			continue
		}
		if p.Port == v.Port && (v.Before == "" || p.Layer == v.Before) {
			return p
		}
		if found == nil {
			found = p
		}
	}
	return found
}

// alone lists the outputs of layers, other than the verdict's and those around it, that are wrong although they ran on the golden inputs, and hold
// no such layer themselves: each is an error of its own. Where no layer ran alone it lists those of the frontier, whose recorded inputs agree.
func (c *Comparison) alone(v *localise.Verdict) []*Port {
	var wrong []*Port
	for _, p := range c.Ports {
		if !p.Judged() || !p.Joined() || p.Err != nil || p.Case != v.Case || p.Step != v.Step {
			continue
		}
		if in := p.Injected; in != nil && in.frame != nil && !in.agrees || in == nil && !p.Agrees && slices.Contains(v.Frontier, p.Layer) {
			wrong = append(wrong, p)
		}
	}
	within := func(inner, outer string) bool { return inner == outer || strings.HasPrefix(inner, outer+".") }
	return slices.DeleteFunc(slices.Clone(wrong), func(p *Port) bool {
		if within(v.Layer, p.Layer) || p.Layer == v.Before {
			return true
		}
		return slices.ContainsFunc(wrong, func(o *Port) bool { return o.Layer != p.Layer && within(o.Layer, p.Layer) })
	})
}

// evidence is the port as hypotheses see it: whole tensors in the golden's own shape, padding rows and all.
func (p *Port) evidence() *diagnose.Port {
	d := &diagnose.Port{Case: p.Case, Step: p.Step, Layer: p.Layer, Port: p.Port, Seq: p.Seq, Golden: p.Golden, Agrees: p.Agrees, Floor: p.Floor}
	if p.frame == nil {
		return d
	}
	if f, err := p.frame(); err == nil {
		d.Golden, d.Actual, d.PadRows = f.golden, f.actual, f.pad
	}
	if in := p.Injected; in != nil && in.frame != nil {
		if f, err := in.frame(); err == nil && slices.Equal(f.golden.Shape(), d.Golden.Shape()) {
			d.Injected, d.InjectedAgrees = f.actual, in.agrees
		}
	}
	return d
}

// frame is a pair in one shape: that of the golden's own tensor where the views only add, drop or join axes or leave rows out.
type frame struct {
	golden, actual *tensor.Tensor
	pad            []bool // rows that do not count; nil if all do
}

func frameOf(golden, actual *dump.Run, pair match.Pair) (f frame, err error) {
	own := golden.Entries[pair.Golden[0]].Tensor
	if f.actual, err = view(actual, pair.Actual, pair.ActualView, nil); err != nil {
		return f, err
	}
	// A candidate without padding rows: its rows are spread to their places.
	if n := len(pair.GoldenView); n > 0 && len(pair.Golden) == 1 && pair.GoldenView[n-1].Kind == match.Rows {
		keep := pair.GoldenView[n-1].Keep
		if spread, err := spreadRows(f.actual, keep, own.Shape()); err == nil {
			f.golden, f.actual = own, spread
			f.pad = rowsWhere(keep, own, false)
			return f, nil
		}
	}
	if f.golden, err = view(golden, pair.Golden, pair.GoldenView, nil); err != nil {
		return f, err
	}
	if pair.RowMask != nil {
		f.pad = rowsWhere(pair.RowMask, f.golden, false)
	}
	if len(pair.Golden) == 1 && isReshape(pair.GoldenView) {
		f.golden = own
		if reshaped, err := f.actual.Reshape(own.Shape()...); err == nil {
			f.actual = reshaped
		}
		if f.pad != nil && len(f.pad) != own.Len()/max(own.RowLen(), 1) {
			f.pad = nil // ids: one row is a sequence
		}
	}
	return f, nil
}

func isReshape(v match.View) bool {
	return !slices.ContainsFunc(v, func(op match.Op) bool { return op.Kind != match.Reshape })
}

// rowsWhere repeats flags of the first axis for the rows of t, and marks those that equal want.
func rowsWhere(flags []bool, t *tensor.Tensor, want bool) []bool {
	rows := t.Len() / max(t.RowLen(), 1)
	each := max(rows/max(len(flags), 1), 1)
	out := make([]bool, rows)
	for i := range out {
		out[i] = i/each < len(flags) && flags[i/each] == want
	}
	return out
}

// spreadRows puts the rows of t where keep is true, in a tensor of another shape with zeros elsewhere.
func spreadRows(t *tensor.Tensor, keep []bool, shape []int) (*tensor.Tensor, error) {
	n, err := tensor.NumElems(shape)
	if err != nil || len(keep) == 0 || n%len(keep) != 0 {
		return nil, fmt.Errorf("%d rows of %s", len(keep), tensor.FormatShape(shape))
	}
	data := t.Copy()
	bytes, _ := data.Bytes()
	row := n / len(keep) * t.DType().Size()
	out := make([]byte, len(keep)*row)
	at := 0
	for i, k := range keep {
		if k {
			if at+row > len(bytes) {
				return nil, fmt.Errorf("%s has less rows than are kept", t)
			}
			copy(out[i*row:], bytes[at:at+row])
			at += row
		}
	}
	return tensor.New(t.DType(), shape, out)
}

// tokenIDs gives the ids that the reference was asked with, by sequence; nil if they were not recorded.
func (c *Comparison) tokenIDs(name string) (ids [][]int) {
	for _, p := range c.Ports {
		if p.Case == name && !p.Golden.DType().IsFloat() && !p.Judged() && p.Port == "input_0" && strings.Contains(p.Layer, "embed") {
			for i := range p.Golden.Len() {
				if i%p.Golden.RowLen() == 0 {
					ids = append(ids, nil)
				}
				ids[len(ids)-1] = append(ids[len(ids)-1], int(p.Golden.At(i)))
			}
			return ids
		}
	}
	return nil
}

// reportCauses puts the causes into a report.
func (c *Comparison) reportCauses(r *report.Report) {
	causes := c.Causes()
	r.Notes = slices.Concat(r.Notes, c.causeNotes)
	if causes == nil {
		return
	}
	r.Causes = []report.Cause{}
	for _, k := range causes {
		r.Causes = append(r.Causes, report.Cause{ID: k.ID, Layer: k.Layer, Proven: k.Proven,
			Fit: report.Float(k.Fit), FitGolden: report.Float(k.FitGolden), Text: k.Text})
	}
}

// evidence opens the weights and the config that lie in the fixture's model folder, once. A model of the hub has none here.
func (f *Fixture) evidence() (diagnose.Weights, diagnose.Config, error) {
	if !f.yaml.Model.Local() {
		return nil, nil, nil
	}
	dir := filepath.Join(f.dir, f.yaml.Model.Path)
	config, err := ReadModelConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.weights == nil {
		if f.weights, err = OpenWeights(dir); err != nil {
			return nil, config, err
		}
	}
	return f.weights.Tensors, config, nil
}
