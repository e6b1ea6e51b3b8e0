package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

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
		case (p.tied || l != nil && l.Tied) && compare.Has16Bits(c.encodings[p.Case].dtype): // in float32 no token goes another way
			if asOne(c.inAllPasses(p)).Error > piece.LeastOf16 && !c.contained(p) {
				open = append(open, p)
			} else {
				excused = append(excused, p)
			}
		case compare.Has16Bits(p.DType) && !p.measured && !p.outliers && p.Base.Result.BadNonFinite == 0 && p.Base.Result.Agrees(compare.Drift(p.DType)):
			excused = append(excused, p)
		default:
			return false
		}
	}
	for _, p := range excused {
		why := "rounding only: no layer made it"
		if p.Local != nil && p.Local.AnyOrder {
			why = "equal numbers do not tell the order of its rows"
		} else if p.Local != nil && p.Local.Opaque == "" {
			why = "rounding only: every piece of it is right"
		}
		p.allow(equivalent, "%s", why)
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
			q.Comparable() && !q.Unjudged() && q.Base.Pass
	})
}

// leaveOpen leaves out what nothing tells of whether it is right, and says so: a run with such an output does
// not pass.
func (c *Comparison) leaveOpen(ports []*Port) {
	layers := map[string]bool{}
	for _, p := range ports {
		p.allow(unjudged, "hangs on a choice that may come either way, and nothing tells what is right then")
		layers[p.Layer] = true
	}
	if len(ports) > 0 {
		c.find(uncovered, fmt.Sprintf("%d outputs hang on a choice that may come either way, and are off by more than rounding: "+
			"nothing that is at hand tells whether they are right (--weights may), %s", len(ports), label.Few(slices.Sorted(maps.Keys(layers)))))
	}
}

// addsUp says why something fails though nothing is wrong by itself: what a test or the fixture asks for
// is tighter than two right implementations are, or errors add up, and no layer is accused.
func (c *Comparison) addsUp() *localise.Verdict {
	for _, p := range c.Ports {
		if p.Joined() && !p.Passes() && p.Judged() && !p.Agrees {
			return c.flow().Drift(p.Case, p.Step, "errors add up: no layer makes more of what it was given than rounding does, "+
				"so none is accused; a run in a coarser precision looks like this")
		}
	}
	c.find(whenWrong, "what fails is within the noise floor of its type, and no place is named: the tolerance is tighter than two right implementations agree")
	return nil
}
