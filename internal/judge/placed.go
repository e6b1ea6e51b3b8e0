package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	editsearch "github.com/goparity/goparity/internal/search"
)

// placeFaults finds the place among what replay found wrong.
func (c *Comparison) placeFaults() error {
	twins, err := c.twins()
	if err != nil {
		return err
	}
	faults := c.faults(twins)
	c.byPieces(faults)
	settled := len(faults) == 0 && c.settled()
	c.noteWeights()
	flow := c.flow()
	flow.Unordered = map[string]bool{}
	for _, k := range c.Cases {
		flow.Nested = flow.Nested || k.Injected != nil && k.Injected.Info.Injection == dump.Nested
		flow.Unordered[k.Name] = k.Golden.OrderBy == dump.OrderNatural && k.Actual.OrderBy == dump.OrderNatural
	}
	for i, p := range c.Ports {
		flow.Entries[i].Record = p.record()
	}
	v := flow.Placed(faults)
	if v == nil {
		if v = c.OtherPrompt(); v == nil && !settled {
			v = c.addsUp()
		}
	}
	if c.Verdict = v; v != nil {
		c.given(v)
		v.Evidence = append(v.Evidence, c.others()...)
	}
	return nil
}

// faults collects what is wrong by itself in all cases, and excuses what is only written otherwise.
func (c *Comparison) faults(twins map[*Port]string) (faults []localise.Fault) {
	index := map[*Port]int{}
	for i, p := range c.Ports {
		index[p] = i
	}
	held := c.held()
	for _, r := range c.replays {
		known := r.explained(c)
		folded, twins := r.folded(twins), twins
		if folded != nil {
			twins = nil
		}
		for i, s := range r.result.Stretches {
			coarse := slices.IndexFunc(s, r.downcast)
			switch f := r.captured(s, index, held, twins); {
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

// downcast reports whether the candidate has a port in a coarser type than its run was asked for.
func (r *replayed) downcast(t int) bool {
	return slices.ContainsFunc(r.ports[t], func(p *Port) bool { return p.Comparable() && p.isDowncast(p.Base.Result) })
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
	l, figures := r.result.Local[t], p.Base.Result
	switch {
	case l.Opaque != "":
		text := fmt.Sprintf("what goes into it agrees with the golden, and it does not: off by relative L2 %.3g, its worst row by %.3g",
			figures.RelL2, figures.WorstRow.RelL2)
		if !r.inferred {
			text += " (" + l.Opaque + ")"
		}
		return text
	case p.misfit():
		return p.Problem
	case l.Larger != 0:
		return fmt.Sprintf("it is %+.2g %% larger throughout than what replay makes of the candidate's own tensors, and roundings are not: they cancel", 100*l.Larger)
	}
	return fmt.Sprintf("replayed from the candidate's own tensors it is off by %.3g, its worst row by %.3g; rounding makes %.1g", l.Error, l.RowError,
		cmp.Or(l.Noise, l.RowNoise))
}
