package diagnose

import "github.com/goparity/goparity/internal/localise"

// NormOrder tries a residual that is added after the norm and not before it. The norm's input then lacks the residual, as it does where that is
// missing; but what comes after the norm has it.
var NormOrder = Func(func(s *Scene) []Prediction {
	t := s.Target
	p := s.pair()
	if p == nil || localise.RoleOf(t.Port) != localise.Input || !isNormName(lastPart(t.Layer)) {
		return nil
	}
	norm := s.Output(t.Layer)
	if norm == nil || norm.Actual == nil {
		return nil
	}
	after := s.sameGolden(norm)
	var out []Prediction
	for _, sum := range s.sums(p) {
		for _, q := range after {
			made, has := p.of(s, norm, false), p.of(s, q, false)
			if made == nil || has == nil || len(made.Data) != len(sum.rest.Data) || len(has.Data) != len(made.Data) {
				continue
			}
			if relative(has.Data, plus(made, sum.rest).Data) <= max(t.Floor.RelL2, 1e-6) {
				out = append(out, p.says("norm/order", sum.term, 0, -5, "%s is added after the norm %s and not before it", sum.other, t.Layer))
			}
		}
	}
	return out
})

// sameGolden lists the ports that hold the same tensor as p in the reference, and another one in the candidate.
func (s *Scene) sameGolden(p *Port) []*Port {
	var out []*Port
	mark := markOf(p.Golden)
	for _, q := range s.Ports {
		if q.Case == p.Case && q.Step == p.Step && q != p && q.Actual != nil && mark != "" && q.Golden.Len() == p.Golden.Len() && markOf(q.Golden) == mark {
			out = append(out, q)
		}
	}
	return out
}
