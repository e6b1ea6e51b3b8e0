package pattern

import (
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
)

// Skipped is a layer that gives back what it was given: a block of which nothing is added, a norm or an activation that
// is not applied.
func Skipped(s *diagnose.Scene) []diagnose.Prediction {
	t := s.Target
	if !s.HasNumbers() || !t.IsOutput() || isCapture(s) {
		return nil
	}
	in := s.Input(t.Layer)
	id, text := "", ""
	switch layer := label.Name(t.Layer); {
	case layer == label.Name(label.Block(layer)):
		id, text = "residual/missing", "the block gives back what it was given: nothing that it computes is added"
		if in == nil {
			in = before(s)
		}
	case module.IsNorm(layer):
		id, text = "norm/missing", "the norm gives back what it was given"
	case s.Kind == localise.KindLocal && s.Made == nil && module.QKV(layer) == 0 && !module.Table.Has(layer) && isLeaf(s, t.Layer):
		id, text = "activation/missing", "the layer gives back what it was given: is it an activation that is not applied?"
	}
	if id == "" || in == nil || !in.IsFloat() || in.Golden.Len() != t.Golden.Len() || !in.IsRecorded() {
		return nil
	}
	p := guess(id, -1, "%s", text)
	p.Value, p.Rows = s.Part(in.Actual), s.Sample()
	return []diagnose.Prediction{p}
}

// isLeaf reports whether nothing was recorded inside a layer.
func isLeaf(s *diagnose.Scene, layer string) bool {
	return !slices.ContainsFunc(s.Pass(), func(p *diagnose.Port) bool { return label.Inside(p.Layer, layer) })
}

// before is the output of the block in front of the target's; nil if there is none.
func before(s *diagnose.Scene) (out *diagnose.Port) {
	for _, p := range s.Pass() {
		if p == s.Target {
			break
		}
		if label.Name(p.Layer) == label.Name(label.Block(p.Layer)) && p.IsOutput() && s.Output(p.Layer) == p {
			out = p
		}
	}
	return out
}
