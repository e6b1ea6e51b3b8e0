package judge

import (
	"context"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
)

// second looks for faults behind one that is proven, as if that were mended: for tensors that are not
// what the reference's own operation makes of what the candidate was given there. What only inherits
// an error is. Only what is proven is said, and it has to fit far better than the right operation does.
func (s *search) second(ctx context.Context, c *Comparison, run *diagnose.Run, known map[*Port]*diagnose.Port) {
	v := c.Verdict
	places := []string{v.Layer}
	for _, k := range s.causes {
		places = append(places, k.Layer)
	}
	hypotheses := cause.For(localise.KindBetween)
	behind := false
	for _, p := range c.Ports {
		if p.Key == c.target().Key {
			behind = true
		}
		d := known[p]
		if ctx.Err() != nil || len(places) > maxPlaces {
			return
		}
		if !behind || p.Case != v.Case || p.Step != v.Step || !p.comparable() || p.Agrees || !d.IsRecorded() || !d.IsFloat() ||
			p.Injected != nil && p.Injected.agrees {
			continue
		}
		layer := p.Layer
		if d.IsInput() {
			layer = label.Parent(p.Layer)
		}
		if slices.ContainsFunc(places, func(l string) bool { return label.Within(layer, l) || label.Within(l, layer) }) {
			continue
		}
		scene := &diagnose.Scene{Run: run, Kind: localise.KindBetween, Case: p.Case, Step: p.Step, Layer: layer, Target: d}
		miss, ok := scene.Miss(ctx, hypotheses)
		if !ok || miss < aloneFloors*d.Floor.RelL2 {
			continue
		}
		causes := diagnose.Diagnose(ctx, scene, hypotheses)
		if len(causes) == 0 || !causes[0].Proven || causes[0].Fit*aloneFloors > miss {
			continue
		}
		k := causes[0]
		places = append(places, layer, k.Layer)
		if !slices.ContainsFunc(s.causes, func(o diagnose.Cause) bool { return o.ID == k.ID && o.Text == k.Text }) {
			s.causes = append(s.causes, k) // else the same in another block
		}
	}
}
