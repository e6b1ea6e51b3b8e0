package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// asked says how the two runs were asked differently: of an input the verdict's kind is the proof. Positions
// and token types may be made in the model, too.
func asked(s *Scene) []prediction {
	t := s.Target
	if t == nil {
		return nil
	}
	out := guess(s.asks(), -9, "%s of %s is another one", t.Port, t.Layer)
	switch {
	case out.id == "":
		return nil
	case s.golden == nil:
		return []prediction{out}
	}
	// It is recorded on both sides: what the candidate was given is what it has.
	out.value = s.actual
	if n, ok := vec.MasksDiffer(t.Golden, t.Actual); ok && out.id == "input/mask" {
		out.text = fmt.Sprintf("%d of %d elements of %s allow something else: golden %s, candidate %s",
			n, t.Golden.Len(), t.Port, vec.MaskConstants(t.Golden), vec.MaskConstants(t.Actual))
		return []prediction{out}
	}
	g, a := s.all(t.Golden), s.all(t.Actual)
	wrong := slices.DeleteFunc(vec.Sequence(len(g)), func(i int) bool { return g[i] == a[i] || math.IsNaN(g[i]) && math.IsNaN(a[i]) })
	if len(wrong) == 0 {
		return []prediction{out}
	}
	first := wrong[0]
	out.text = fmt.Sprintf("%d of %d elements of %s differ, the first at %s: golden %g, candidate %g",
		len(wrong), len(g), t.Port, tensor.FormatShape(t.Golden.Index(first)), g[first], a[first])
	if s.Kind != localise.KindInput && len(wrong) < len(g) && !vec.AllSame(a) { // single ones may be others for many a reason
		out.params = len(a)
	}
	if id, text := imageOf(t.Golden.Shape(), g, a); id != "" && out.id == "input/tokens" && t.IsFloat() {
		out.id, out.text = id, text
	}
	return []prediction{out}
}

// asks names what the target is of what a model is given; "" for none, or where that is not sure inside of the model.
func (s *Scene) asks() string {
	t := s.Target
	isTable := func(p *Port) bool { return label.PositionTables.Has(p.Layer) }
	switch inside := s.Kind != localise.KindInput; {
	case inside && (t.IsFloat() || s.golden == nil):
		return ""
	case label.TypeTables.Has(t.Layer) || strings.Contains(t.Port, "token_type_ids"):
		return "embedding/type"
	case isTable(t) && (!inside || len(s.golden) > 1 && s.golden[1] == s.golden[0]+1):
		return "embedding/position"
	case strings.Contains(t.Port, "position_ids") || s.countsUp():
		if slices.ContainsFunc(s.pass, isTable) {
			return "embedding/position"
		}
		return "rope/offset"
	case inside:
		return ""
	case strings.Contains(t.Port, "mask") || strings.Contains(t.Layer, "mask") || s.isMask():
		return "input/mask"
	}
	return "input/tokens"
}

// countsUp reports whether whole numbers are positions, and no tokens, whatever they are called: each row counts on by
// one, or has one number, and the tokens of the pass have none of these in this order. Inside of the model nothing else
// counts on from 0 or 1, but for the ids of a table.
func (s *Scene) countsUp() bool {
	t, inside := s.Target, s.Kind != localise.KindInput
	if t.IsFloat() || t.Golden.Len() == 0 || !inside && s.TokenIDs == nil {
		return false
	}
	x, w := s.all(t.Golden), t.Width()
	var prompts [][]int
	if !inside {
		prompts = s.TokenIDs(s.Case, s.Step)
	}
	if inside && (w < 3 || x[0] != 0 && x[0] != 1 || x[1] != x[0]+1) || !inside && len(prompts) == 0 {
		return false
	}
	for row := range slices.Chunk(x, w) {
		for i := 1; i < w; i++ {
			if by := row[i] - row[i-1]; by != 1 && !(inside && by == 0) { // padding stays where it is
				return false
			}
		}
		for _, ids := range prompts {
			for from := 0; from+w <= len(ids); from++ {
				if slices.EqualFunc(ids[from:from+w], row, func(id int, v float64) bool { return float64(id) == v }) {
					return false
				}
			}
		}
	}
	return true
}

// imageOf says how another image, [batch, 3, height, width], comes of the right one; "" for other
// inputs, and for images that do not.
func imageOf(shape []int, g, a []float64) (id, text string) {
	if len(shape) != 4 || shape[1] != 3 {
		return "", ""
	}
	h, w := shape[2], shape[3]
	n := h * w
	same := func(from func(i int) int) bool {
		x := make([]float64, len(g))
		for i := range x {
			x[i] = g[from(i)]
		}
		return vec.Relative(x, a) <= sameImage
	}
	switch {
	case same(func(i int) int { return i + (2-2*(i/n%3))*n }):
		return "image/channels", "the channels of the image stand in the other order, blue first"
	case h == w && same(func(i int) int { return i/n*n + i%w*w + i/w%h }):
		return "image/layout", "height and width of the image are exchanged"
	case same(func(i int) int { return i/(3*n)*3*n + i%(3*n)%3*n + i%(3*n)/3 }):
		return "image/layout", "the image is [height, width, channels] in memory"
	}
	made := slices.Clone(g)
	var factors, offsets [3]float64
	for c := range 3 {
		at := slices.DeleteFunc(vec.Sequence(len(g)), func(i int) bool { return i/n%3 != c })
		x, y := vec.Select(g, len(g), at), vec.Select(a, len(a), at)
		f := vec.LeastSquares([][]float64{x, slices.Repeat([]float64{1}, len(x))}, y)
		if f == nil {
			return "", ""
		}
		factors[c], offsets[c] = f[0], f[1]
		for _, i := range at {
			made[i] = f[0]*g[i] + f[1]
		}
	}
	if vec.Relative(made, a) > sameImage || len(made) < 6*PerParam {
		return "", ""
	}
	return "image/normalise", fmt.Sprintf("the channels of the image are the right ones times %.4g plus %.4g: another mean, deviation or range", factors, offsets)
}

// isMask reports whether the target holds what attention masks hold.
func (s *Scene) isMask() bool {
	t := s.Target.Golden
	some := vec.Read(t, min(t.Len(), maskElements), []int{0})
	return s.Target.IsFloat() && vec.All(some, func(x float64) bool { return x == 0 || x == 1 || !(x > hiddenScore) })
}

// interaction is a layer that is right alone and wrong in the model.
func interaction(s *Scene) []prediction {
	t, text := s.Target, "right when it runs on the golden inputs, wrong in the model on the same inputs"
	if t != nil && t.Injected != nil && t.InjectedAgrees && s.golden != nil {
		text = fmt.Sprintf("alone on the golden inputs it is off by %.1e, in the model on the same inputs by %.1e",
			vec.Relative(s.read(t.Injected), s.golden), vec.Relative(s.actual, s.golden))
	}
	return []prediction{guess("interaction", -9, "%s: the graph, a buffer or a kernel, not the layer's arithmetic", text)}
}

// drift is rounding of which no layer alone is the cause.
func drift(s *Scene) []prediction {
	ports := slices.DeleteFunc(slices.Clone(s.pass), func(p *Port) bool {
		return !p.IsRecorded() || !p.IsFloat() || !p.IsOutput() || p.Golden.Len() == 0
	})
	text := "rounding that grows with the depth"
	if n := len(ports); n > 1 {
		off := func(p *Port) float64 { return vec.Relative(s.all(p.Actual), s.all(p.Golden)) }
		text += fmt.Sprintf(": %s is off by %.1e, %s by %.1e", ports[0].Layer, off(ports[0]), ports[n-1].Layer, off(ports[n-1]))
	}
	return []prediction{guess("drift", -9, "%s", text)}
}
