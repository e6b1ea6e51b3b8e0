package judge

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
)

// code says of a place which code it is on both sides, and what replay found there.
func (c *Comparison) code(v *localise.Verdict, d *report.Divergence) {
	p, k := c.targetOf(v), c.caseOf(v.Case)
	if p == nil || k == nil {
		return
	}
	if p.ActualSide != nil {
		name, _, _ := strings.Cut(p.ActualSide.Name, " + ")
		layer, _ := label.Split(name)
		d.Candidate = class(k.Actual.Info.Modules, above(layer, p.Layer, v.Layer))
	}
	d.Reference = class(k.Golden.Info.Modules, label.Name(v.Layer))
	r, t := c.replayOf(p)
	if r == nil || r.inferred {
		return
	}
	l := r.result.Local[t]
	if d.Reference = cmp.Or(r.lines(l), d.Reference); d.Reference == "" {
		modules := map[string]dump.Module{}
		for layer, m := range r.Modules {
			modules[layer] = dump.Module(m)
		}
		d.Reference = class(modules, label.Name(v.Layer))
	}
	if l.Opaque != "" || p.misfit() {
		return
	}
	d.Piece = &report.Piece{Error: report.Float(l.Error), RowError: report.Float(l.RowError), Noise: report.Float(cmp.Or(l.Noise, l.RowNoise)), From: []string{}}
	for _, s := range l.Sources {
		d.Piece.From = append(d.Piece.From, label.Join(r.Ports[s].Layer, r.Ports[s].Name))
	}
}

// replayOf returns the replay that judged a port, and the port of its program; nil for none.
func (c *Comparison) replayOf(p *Port) (*replayed, int) {
	for _, r := range c.replays {
		if t := r.portOf(p); t >= 0 && r.result.Local[t] != nil && r.result.Local[t].Wrong {
			return r, t
		}
	}
	return nil, 0
}

// above returns the candidate's layer around its layer that is as far above it as one of the golden's is
// above the golden's.
func above(layer, golden, around string) string {
	layer = label.Name(layer)
	if rest, ok := strings.CutPrefix(label.Name(golden), label.Name(around)+"."); ok {
		for range strings.Count(rest, ".") + 1 {
			layer = layer[:max(strings.LastIndexByte(layer, '.'), 0)]
		}
	}
	return layer
}

// class says where the class of a layer, or of the nearest one around it, is defined, and of one from a
// library also what it stands in: "linear.py:44 Linear in llama.py:88 MLP". It is "" where nothing is known.
func class(modules map[string]dump.Module, layer string) string {
	var found []string
	file := ""
	for ; layer != "" && len(found) < 2; layer = layer[:max(strings.LastIndexByte(layer, '.'), 0)] {
		m, ok := modules[layer]
		if !ok || m.File == file || m.Class == "" || len(found) > 0 && strings.HasSuffix(m.Class, "List") {
			continue
		}
		file = m.File
		found = append(found, fmt.Sprintf("%s:%d %s", filepath.Base(m.File), m.Line, m.Class[strings.LastIndexByte(m.Class, '.')+1:]))
	}
	return strings.Join(found, " in ")
}

// lines names the reference's code of a piece, from its first expression to its last.
func (r *replayed) lines(l *piece.Local) string {
	if l.First > l.Last {
		return ""
	}
	first, last := r.frame(l.First), r.frame(l.Last)
	switch {
	case first == "" || first == last:
		return last
	case last == "":
		return first
	}
	return first + " to " + last
}

func (r *replayed) frame(op int) string {
	o := r.Ops[op]
	if o.Stack < 0 || o.Stack >= len(r.Stacks) || len(r.Stacks[o.Stack]) == 0 {
		return ""
	}
	return r.line(r.Stacks[o.Stack][0])
}

// line is an expression of the reference's source, and where it stands.
func (r *replayed) line(frame int) string {
	f := r.Frames[frame]
	return strings.TrimSpace(fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Text))
}
