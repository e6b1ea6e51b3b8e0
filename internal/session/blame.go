package session

import (
	"slices"

	"github.com/goparity/goparity/internal/localise"
)

// What becomes of a failure that a layer only passes on.
const (
	InheritedFail = "fail"
	InheritedSkip = "skip"
)

// SkipsInherited reports whether tests of layers that only pass on an error are skipped.
func (s *Session) SkipsInherited() bool { return s.cfg.Inherited == InheritedSkip }

// Blame is the layer that made the error of a port that is wrong only because of what it got; "" if the port agrees, made an error itself, or
// nothing shows who did. The first divergence and the model's own output are never excused.
func (c *Comparison) Blame(p *Port) string {
	v := c.Verdict
	if v == nil || p.Agrees || !p.Joined() {
		return ""
	}
	if p.Judged() {
		return v.Blame(p.Case, p.Step, p.Layer)
	}
	// A wrong input was made upstream, but for the one that is the first divergence itself.
	first := p.Case == v.Case && p.Step == v.Step && p.Port == v.Port && slices.Contains([]string{v.Before, v.Layer}, p.Layer)
	if first || v.Kind == localise.KindCapture || v.Kind == localise.KindDrift || v.Kind == localise.KindInput {
		return ""
	}
	return v.Layer
}
