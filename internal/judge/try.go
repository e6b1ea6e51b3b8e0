package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Tried says how far down a candidate is what the reference's program makes, as it is and with edits.
type Tried struct {
	Case         string
	Edits        []string // each with its place and line
	Before, With Reach
}

// Reach is how far down a run is right.
type Reach struct {
	Right, Of int
	First     string // the first output that is wrong by itself; "" for none
	at        int
}

// Further reports whether the edits bring the run further down: no output is wrong by itself any more, or the first
// one comes later.
func (t *Tried) Further() bool {
	return t.With.First == "" || t.Before.First != "" && t.With.at > t.Before.at
}

func (r Reach) String() string {
	text := fmt.Sprintf("%d of %d tensors are what the program makes of those before them", r.Right, r.Of)
	if r.First != "" {
		text += "; the first that is not is " + r.First
	}
	return text
}

// Try applies edits to the reference's program of each case, and judges the candidate by it. Each is written as
// edit.Written, and applies to all layers that its pattern matches and to all their calls.
func (c *Comparison) Try(ctx context.Context, edits []string) (out []Tried, err error) {
	if err := c.replayOnce(); err != nil {
		return nil, err
	}
	for r := range c.known() {
		t := Tried{Case: r.Case}
		edited, made, err := r.edit(ctx, edits)
		if err != nil {
			return nil, err
		}
		t.Edits = made
		for p, reach := range map[*program.Program]*Reach{r.Program: &t.Before, edited: &t.With} {
			result, err := r.result.By(ctx, p, r.load)
			if err != nil {
				return nil, err
			}
			*reach = r.reach(result)
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the golden has no program to edit: goparity.record(…, program=True) writes it", ErrNothing)
	}
	return out, nil
}

// edit applies edits to a program.
func (r *replayed) edit(ctx context.Context, edits []string) (*program.Program, []string, error) {
	var changes []program.Change
	var texts []string
	for _, text := range edits {
		w, err := edit.Parse(text)
		if err != nil {
			return nil, nil, err
		}
		ops, err := r.named(w)
		if err != nil {
			return nil, nil, err
		}
		done := map[int]bool{}
		for _, op := range ops {
			if done[op] {
				continue // of a group, with another one
			}
			cut, of, t := r.result.Holding(op, r.load)
			if cut == nil {
				return nil, nil, fmt.Errorf("operator %d of %s is in no piece that was replayed", w.Op, r.Ops[op].Layer)
			}
			base, err := replay.NewBase(ctx, cut, of, replay.Mode{})
			if err != nil {
				return nil, nil, err
			}
			var fed *edit.Fed
			if site := r.result.Site(t, r.load, nil, false); site != nil {
				fed, _ = r.fed(t, site)
			}
			e, err := w.Find(base, r.readable(), fed, slices.Index(cut.Origin, op))
			if err != nil {
				return nil, nil, err
			}
			for _, k := range e.At {
				if done[cut.Origin[k]] {
					delete(e.Patch.Ops, k)
				}
				done[cut.Origin[k]] = true
			}
			changes = append(changes, program.Change{Piece: cut, Ops: e.Patch.Ops, Made: e.Patch.Made})
			texts = append(texts, fmt.Sprintf("%s:%d %q, %s", r.Ops[op].Layer, w.Op, e.Text, r.frame(op)))
		}
	}
	p, err := r.Program.Edited(changes)
	return p, texts, err
}

// named lists the operators that an edit is of, one for each call of each layer that it names.
func (r *replayed) named(w edit.Written) (ops []int, err error) {
	pattern, err := label.CompilePattern(w.Layer)
	if err != nil {
		return nil, err
	}
	layers := map[string]int{}
	for i, n := range r.Ordinals() {
		if layer := r.Ops[i].Layer; pattern.Match(layer) {
			if layers[layer] = max(layers[layer], n); n == w.Op {
				ops = append(ops, i)
			}
		}
	}
	if len(ops) > 0 {
		return ops, nil
	}
	for layer, n := range layers {
		return nil, fmt.Errorf("the last operator of %s is %d: parity compare --edit LAYER lists them", layer, n)
	}
	return nil, fmt.Errorf("no operator of the reference's program ran in a layer %s itself: parity compare --edit '*' lists those that have some", w.Layer)
}

// reach says how far down a run is right.
func (r *replayed) reach(result *piece.Result) (out Reach) {
	for t, l := range result.Local {
		if l.Opaque == "" && len(r.ports[t]) > 0 {
			out.Of++
		}
	}
	out.Right = out.Of - len(result.Faults)
	if len(result.Faults) > 0 {
		at := r.Ports[result.Faults[0]]
		out.at = result.Faults[0]
		out.First = fmt.Sprintf("%s of %s, off by relative L2 %.2g", at.Name, at.Layer, result.Local[out.at].Error)
		if at.Step != "0" {
			out.First += " in step " + at.Step
		}
	}
	return out
}

// Operators lists the operators of the first call of the layers that match a pattern, as edits name them, with the
// code that ran them.
func (c *Comparison) Operators(layer string) (lines []string, err error) {
	if err := c.replayOnce(); err != nil {
		return nil, err
	}
	pattern, err := label.CompilePattern(layer)
	if err != nil {
		return nil, err
	}
	for r := range c.known() {
		for i, n := range r.Ordinals() {
			o := &r.Ops[i]
			if o.Call != 1 || !pattern.Match(o.Layer) {
				continue
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", o.Layer, n, o.Name, r.frame(i))))
		}
		if len(lines) > 0 {
			return lines, nil
		}
	}
	return nil, fmt.Errorf("no operator of a reference's program ran in a layer %s", layer)
}

// replayOnce replays a run that passes, too.
func (c *Comparison) replayOnce() error {
	if c.replays != nil {
		return nil
	}
	return c.replayAll()
}
