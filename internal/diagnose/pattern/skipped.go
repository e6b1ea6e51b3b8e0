package pattern

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
)

// skipped is a layer that gives back what it was given: a block of which nothing is added, a norm or an activation that
// is not applied.
func skipped(s *diagnose.Scene) []diagnose.Prediction {
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
	if id == "activation/missing" && scales(s.Part(in.Golden), s.Part(t.Golden), t.Width()) {
		id, text = "residual/scale", "the layer gives back what it was given: its columns are not multiplied by their factors"
	}
	p := guess(id, -1, "%s", text)
	p.Value, p.Rows = s.Part(in.Actual), s.Sample()
	return []diagnose.Prediction{p}
}

// scales reports whether each column of the rows of y is that of x times a factor of its own, as a layer scale has them;
// where no column has both signs it may be a ReLU.
func scales(x, y *diagnose.Array, width int) bool {
	if len(x.Data) != len(y.Data) || len(x.Data) < 2*width {
		return false
	}
	bothSigns := false
	for c := range width {
		most := c
		for i := c; i < len(x.Data); i += width {
			if math.Abs(x.Data[i]) > math.Abs(x.Data[most]) {
				most = i
			}
		}
		if x.Data[most] == 0 {
			continue
		}
		factor := y.Data[most] / x.Data[most]
		for i := c; i < len(x.Data); i += width {
			if !(math.Abs(y.Data[i]-factor*x.Data[i]) <= sameRow*math.Abs(y.Data[most])) {
				return false
			}
			bothSigns = bothSigns || x.Data[i]*x.Data[most] < 0
		}
	}
	return bothSigns
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
		if label.Name(p.Layer) == label.Name(label.Block(p.Layer)) && p.IsOutput() {
			out = p
		}
	}
	return out
}
