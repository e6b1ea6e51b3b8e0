package judge

import (
	"slices"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
)

// depth is how far the runs are off along the depth of the model; along is the report of those
// along paths.
func (p *Paths) depth(along *report.Report) *report.PathDepth {
	d := &report.PathDepth{}
	if p.onePass != nil {
		d.Add(report.OnePass, "", p.onePass.Report("", true).Layers)
	}
	for _, k := range p.along.Cases {
		d.Add(k.Along.Name, k.Name, slices.DeleteFunc(slices.Clone(along.Layers), func(l report.Layer) bool { return l.Case != k.Name }))
	}
	return d
}

// places says of each path of a report where it is wrong first: of that of the verdict as the
// verdict does, of the others by the first output that is wrong by itself.
func (p *Paths) places(r *report.Report) {
	if r.Kind != localise.KindPath || r.FirstDivergence.Row == nil {
		return
	}
	d := r.FirstDivergence
	for i := range r.Paths {
		path := &r.Paths[i]
		if path.Case == d.Case {
			path.First = &report.Place{Layer: d.Layer, Port: d.Port, Step: d.Step, Row: *d.Row}
			if len(r.Causes) > 0 && r.Causes[0].Proven {
				path.Cause = r.Causes[0].ID
			}
			continue
		}
		for _, port := range p.along.inOrder() {
			if port.Case != path.Case || !port.Judged() || !port.comparable() || port.passes() {
				continue
			}
			if row := p.along.RowOf(port); row != nil {
				path.First = &report.Place{Layer: port.Layer, Port: port.Port, Step: port.Step, Row: *row}
				break
			}
		}
	}
}

// RowOf is the first wrong row of a port of a run along an execution path; nil for a run that is
// along none, and for a forward pass that was not judged.
func (c *Comparison) RowOf(p *Port) *report.Row {
	if k := c.caseOf(p.Case); k != nil && k.Along != nil && k.Along.Pass(p.Step) != nil {
		return k.Along.row(p, p.Step)
	}
	return nil
}
