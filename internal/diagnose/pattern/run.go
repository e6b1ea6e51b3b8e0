package pattern

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// asked says how the two runs were asked differently: the verdict's kind is the proof.
func asked(s *diagnose.Scene) []diagnose.Prediction {
	t := s.Target
	if t == nil {
		return nil
	}
	id := "input/tokens"
	switch {
	case module.Positions.Has(t.Layer):
		id = "embedding/position"
	case strings.Contains(t.Port, "position_ids") || countsUp(s, t.Golden):
		id = "rope/offset"
		if slices.ContainsFunc(s.Pass(), func(p *diagnose.Port) bool { return module.Positions.Has(p.Layer) }) {
			id = "embedding/position" // a table of them
		}
	case module.Types.Has(t.Layer) || strings.Contains(t.Port, "token_type_ids"):
		id = "embedding/type"
	case strings.Contains(t.Port, "mask") || strings.Contains(t.Layer, "mask") || isMask(t):
		id = "input/mask"
	}
	out := guess(id, -9, "%s of %s is another one", t.Port, t.Layer)
	if t.Actual == nil || t.Actual.Len() != t.Golden.Len() {
		return []diagnose.Prediction{out}
	}
	g, a := s.Array(t.Golden), s.Array(t.Actual)
	if n, ok := mask.Differ(t.Golden, t.Actual); ok && id == "input/mask" {
		out.Text = fmt.Sprintf("%d of %d elements of %s allow something else: golden %s, candidate %s",
			n, len(g.Data), t.Port, mask.Constants(t.Golden), mask.Constants(t.Actual))
		out.Value = a
		return []diagnose.Prediction{out}
	}
	wrong := slices.DeleteFunc(vec.Sequence(len(g.Data)), func(i int) bool {
		return g.Data[i] == a.Data[i] || math.IsNaN(g.Data[i]) && math.IsNaN(a.Data[i])
	})
	if len(wrong) == 0 {
		return []diagnose.Prediction{out}
	}
	first := wrong[0]
	out.Text = fmt.Sprintf("%d of %d elements of %s differ, the first at %s: golden %g, candidate %g",
		len(wrong), len(g.Data), t.Port, tensor.FormatShape(t.Golden.Index(first)), g.Data[first], a.Data[first])
	if by := shiftOf(g, a); by != 0 {
		out.Text += fmt.Sprintf("; the candidate's stand %s", places(by, "place"))
	}
	if id, text := imageOf(g, a); id != "" && out.ID == "input/tokens" && t.IsFloat() {
		out.ID, out.Text = id, text
	}
	// The input is recorded on both sides: what the candidate was given is what it has.
	out.Value = a
	return []diagnose.Prediction{out}
}

// countsUp reports whether whole numbers are positions, and no tokens, whatever they are called: each
// row counts on by one, or has one number, and the tokens of the pass have none of these in this order.
func countsUp(s *diagnose.Scene, t *tensor.Tensor) bool {
	if t.DType().IsFloat() || s.TokenIDs == nil || t.Len() == 0 {
		return false
	}
	prompts, w := s.TokenIDs(s.Case, s.Step), t.RowLen()
	if len(prompts) == 0 || w == 0 {
		return false
	}
	x := s.Array(t).Data
	for at := 0; at < len(x); at += w {
		for i := at + 1; i < at+w; i++ {
			if x[i] != x[i-1]+1 {
				return false
			}
		}
		for _, ids := range prompts {
			for from := 0; from+w <= len(ids); from++ {
				if slices.EqualFunc(ids[from:from+w], x[at:at+w], func(id int, v float64) bool { return float64(id) == v }) {
					return false
				}
			}
		}
	}
	return len(x) > 0
}

// imageOf says how another image, [batch, 3, height, width], comes of the right one; "" for other
// inputs, and for images that do not.
func imageOf(g, a *diagnose.Array) (id, text string) {
	if len(g.Shape) != 4 || g.Shape[1] != 3 {
		return "", ""
	}
	h, w := g.Shape[2], g.Shape[3]
	n := h * w
	same := func(from func(i int) int) bool {
		x := make([]float64, len(g.Data))
		for i := range x {
			x[i] = g.Data[from(i)]
		}
		return vec.Relative(x, a.Data) <= sameImage
	}
	switch {
	case same(func(i int) int { return i + (2-2*(i/n%3))*n }):
		return "image/channels", "the channels of the image stand in the other order, blue first"
	case h == w && same(func(i int) int { return i/n*n + i%w*w + i/w%h }):
		return "image/layout", "height and width of the image are exchanged"
	case same(func(i int) int { return i/(3*n)*3*n + i%(3*n)%3*n + i%(3*n)/3 }):
		return "image/layout", "the image is [height, width, channels] in memory"
	}
	made := make([]float64, len(g.Data))
	var factors, offsets [3]float64
	for c := range 3 {
		var x, y []float64
		for i := range g.Data {
			if i/n%3 == c {
				x, y = append(x, g.Data[i]), append(y, a.Data[i])
			}
		}
		ones := slices.Repeat([]float64{1}, len(x))
		f := vec.LeastSquares([][]float64{x, ones}, y)
		if f == nil {
			return "", ""
		}
		factors[c], offsets[c] = f[0], f[1]
		for i := range g.Data {
			if i/n%3 == c {
				made[i] = f[0]*g.Data[i] + f[1]
			}
		}
	}
	if vec.Relative(made, a.Data) > sameImage || len(made) < 6*diagnose.PerParam {
		return "", ""
	}
	return "image/normalise", fmt.Sprintf("the channels of the image are the right ones times %.4g plus %.4g: another mean, deviation or range", factors, offsets)
}

// isMask reports whether a tensor holds what attention masks hold.
func isMask(p *diagnose.Port) bool {
	for i := range min(p.Golden.Len(), maskElements) {
		if x := p.Golden.At(i); x != 0 && x != 1 && x > hiddenScore {
			return false
		}
	}
	return p.IsFloat()
}

// shiftOf returns by how many places one row of ids is late, 0 if it is not.
func shiftOf(g, a *diagnose.Array) int {
	w := g.Width()
	for _, by := range []int{1, -1, 2, -2} {
		if w <= 3 {
			break
		}
		from, to := max(by, 0), min(w, w+by)
		before := g.Data[from-by : to-by]
		if slices.Equal(a.Data[from:to], before) && !slices.Equal(g.Data[from:to], before) {
			return by
		}
	}
	return 0
}

// interaction is a layer that is right alone and wrong in the model.
func interaction(s *diagnose.Scene) []diagnose.Prediction {
	t, text := s.Target, "right when it runs on the golden inputs, wrong in the model on the same inputs"
	if t != nil && t.Injected != nil && t.InjectedAgrees && t.Actual != nil {
		golden := s.Part(t.Golden).Data
		text = fmt.Sprintf("alone on the golden inputs it is off by %.1e, in the model on the same inputs by %.1e",
			vec.Relative(s.Part(t.Injected).Data, golden), vec.Relative(s.Part(t.Actual).Data, golden))
	}
	return []diagnose.Prediction{guess("interaction", -9,
		"%s: the graph, a buffer or a kernel, not the layer's arithmetic", text)}
}

// drift is rounding of which no layer alone is the cause.
func drift(s *diagnose.Scene) []diagnose.Prediction {
	var ports []*diagnose.Port
	for _, p := range s.Pass() {
		if p.Actual != nil && p.Actual.Len() == p.Golden.Len() && p.IsFloat() && p.IsOutput() && p.Golden.Len() > 0 {
			ports = append(ports, p)
		}
	}
	text := "rounding that grows with the depth"
	if n := len(ports); n > 1 {
		off := func(p *diagnose.Port) float64 { return vec.Relative(s.Array(p.Actual).Data, s.Array(p.Golden).Data) }
		first, last := ports[0], ports[n-1]
		text += fmt.Sprintf(": %s is off by %.1e, %s by %.1e", first.Layer, off(first), last.Layer, off(last))
	}
	return []diagnose.Prediction{guess("drift", -9, "%s", text)}
}
