package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// kinds that localise may give beside its constants.
const (
	kindCapture = "capture"
	kindDrift   = "drift"
	kindWeights = "weights"
)

// Asked says how the two runs were asked differently: the verdict's kind is the proof.
var Asked = Func(func(s *Scene) []Prediction {
	t := s.Target
	if s.Kind != localise.KindInput || t == nil {
		return nil
	}
	id := "input/tokens"
	if strings.Contains(t.Port, "mask") || strings.Contains(t.Layer, "mask") || isMask(t) {
		id = "input/mask"
	}
	switch name := lastPart(t.Layer); {
	case positionNames.has(name):
		id = "embedding/position"
	case strings.Contains(t.Port, "position_ids"):
		id = "rope/offset"
	case typeNames.has(name) || strings.Contains(t.Port, "token_type_ids"):
		id = "embedding/type"
	}
	out := Prediction{ID: id, Rank: -9, Text: fmt.Sprintf("%s of %s is another one", t.Port, t.Layer)}
	if t.Actual == nil || t.Actual.Len() != t.Golden.Len() {
		return []Prediction{out}
	}
	g, a := s.Array(t.Golden), s.Array(t.Actual)
	n, first := 0, -1
	for i, x := range g.Data {
		if x != a.Data[i] && !(math.IsNaN(x) && math.IsNaN(a.Data[i])) {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return []Prediction{out}
	}
	out.Text = fmt.Sprintf("%d of %d elements of %s differ, the first at %s: golden %g, candidate %g", n, len(g.Data), t.Port,
		tensor.FormatShape(t.Golden.Index(first)), g.Data[first], a.Data[first])
	if by := shiftOf(g, a); by != 0 {
		out.Text += fmt.Sprintf("; the candidate's stand %s", places(by, "place"))
	}
	// The input is recorded on both sides: what the candidate was given is what it has.
	out.Value = a
	return []Prediction{out}
})

// isMask reports whether a tensor holds what attention masks hold.
func isMask(p *Port) bool {
	if len(p.Golden.Shape()) >= 4 {
		return true
	}
	for i := range min(p.Golden.Len(), 4096) {
		if x := p.Golden.At(i); x != 0 && x != 1 && x > -1e3 {
			return false
		}
	}
	return p.Golden.DType().IsFloat()
}

// shiftOf gives by how many places one row of ids is late, 0 if it is not.
func shiftOf(g, a *Array) int {
	w := g.Width()
	for _, by := range []int{1, -1, 2, -2} {
		ok, moved := true, false
		for i := range w {
			if j := i - by; j >= 0 && j < w {
				ok = ok && a.Data[i] == g.Data[j]
				moved = moved || g.Data[i] != g.Data[j]
			}
		}
		if ok && moved && w > 3 {
			return by
		}
	}
	return 0
}

// Whole names the causes of a whole run: interaction is a layer that is right alone and wrong in the model; drift is no layer that is wrong alone.
var Whole = Func(func(s *Scene) []Prediction {
	t := s.Target
	switch {
	case s.Kind == localise.KindInteraction:
		p := Prediction{ID: "interaction", Rank: -9, Text: "right when it runs on the golden inputs, wrong in the model on the same inputs: the graph, a buffer or a kernel, not the layer's arithmetic"}
		if t != nil && t.Injected != nil && t.InjectedAgrees && t.Actual != nil {
			p.Text = fmt.Sprintf("alone on the golden inputs it is off by %.1e, in the model on the same inputs by %.1e: the graph, a buffer or a kernel, not the layer's arithmetic",
				relative(s.Part(t.Injected).Data, s.Part(t.Golden).Data), relative(s.Part(t.Actual).Data, s.Part(t.Golden).Data))
		}
		return []Prediction{p}
	case s.Kind == kindDrift:
		return []Prediction{{ID: "drift", Rank: -9, Text: "rounding that grows with the depth" + s.growth()}}
	}
	return nil
})

// growth quotes the first and the last error of the outputs.
func (s *Scene) growth() string {
	var first, last *Port
	for _, p := range s.Ports {
		if p.Case == s.Case && p.Step == s.Step && p.Actual != nil && p.Actual.Len() == p.Golden.Len() && p.Golden.DType().IsFloat() &&
			localise.RoleOf(p.Port) == localise.Output && p.Golden.Len() > 0 {
			if first == nil {
				first = p
			}
			last = p
		}
	}
	if first == nil || first == last {
		return ""
	}
	off := func(p *Port) float64 { return relative(s.Array(p.Actual).Data, s.Array(p.Golden).Data) }
	return fmt.Sprintf(": %s is off by %.1e, %s by %.1e", first.Layer, off(first), last.Layer, off(last))
}

// Elsewhere finds the tensor that the target holds in another place of the run. If the verdict says that only the dump is wrong, it holds what
// belongs to another name; else the layer gave what an earlier call had left.
var Elsewhere = Func(func(s *Scene) []Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || !t.Golden.DType().IsFloat() || t.Golden.Len() == 0 || t.Actual.Len() != t.Golden.Len() {
		return nil
	}
	mark := looseMark(t.Actual)
	var out []Prediction
	for _, p := range s.Ports {
		if p == t || p.Golden.Len() != t.Golden.Len() || p.Golden.RowLen() != t.Golden.RowLen() || p.Golden.DType() != t.Golden.DType() ||
			p.Case == t.Case && p.Step == t.Step && p.Layer == t.Layer && s.Kind != kindCapture {
			continue
		}
		for _, x := range []*tensor.Tensor{s.actual(p), p.Golden} {
			if x == nil || !mark.near(x, t.Floor.RowRelL2) {
				continue
			}
			if text, id, rank := s.holds(p); id != "" {
				out = append(out, Prediction{ID: id, Text: text, Rank: rank, Rows: s.Sample(), Value: s.Part(x)})
			}
			break
		}
	}
	if s.Kind == kindCapture {
		out = append(out, Prediction{ID: "capture/wrong-tensor", Rank: -1,
			Text: "the dump's " + t.Layer + " " + t.Port + " is wrong, and what was made of it is right"})
	}
	return out
})

// holds says what it means that the target holds what belongs to p.
func (s *Scene) holds(p *Port) (text, id string, rank int) {
	t := s.Target
	what := p.Layer + " " + p.Port
	if p.Step != t.Step {
		what += " of step " + p.Step
	}
	if p.Case != t.Case {
		what += " of case " + p.Case
	}
	same := p.Layer == t.Layer && p.Port == t.Port // in another step or case
	earlier := p.Seq < t.Seq
	switch {
	case s.Kind == kindCapture && sameFile(s, p):
		return "one file was written for several layers: it holds " + what, "capture/same-file", -1
	case s.Kind == kindCapture:
		return "the dump holds " + what, "capture/wrong-tensor", 0
	case same:
		return "it holds " + what + ", which an earlier call left", "state/stale", 0
	case earlier && s.isOutput() && lastPart(p.Layer) == lastPart(t.Layer) && p.Port == t.Port:
		return "it holds " + what + ", which an earlier call left", "state/stale", 0
	}
	return "", "", 0
}

// unnumbered is a label without its numbers: the same for the layers of all blocks.
func unnumbered(layer string) string {
	parts := strings.Split(layer, ".")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return strings.Trim(part, "0123456789") == "" }), ".")
}

// sameFile reports whether what the target holds was written last, by a later layer of the same name or one of several that hold it.
func sameFile(s *Scene, p *Port) bool {
	t := s.Target
	if p.Seq > t.Seq && p.Case == t.Case && p.Step == t.Step && p.Port == t.Port && unnumbered(p.Layer) == unnumbered(t.Layer) {
		return true
	}
	holders := 0
	mark := looseMark(t.Actual)
	for _, q := range s.Ports {
		if q.Case == t.Case && q.Step == t.Step && q.Actual != nil && !q.Agrees && q.Actual.Len() == t.Actual.Len() && localise.RoleOf(q.Port) == localise.Output && mark.near(q.Actual, 0) {
			holders++
		}
	}
	return holders > 1
}

// loose is some elements of a tensor.
type loose struct {
	at   []int
	x    []float64
	size float64
}

func looseMark(t *tensor.Tensor) loose {
	const n = 32
	var l loose
	for i := range n {
		at := int(uint64(i) * uint64(t.Len()-1) / (n - 1))
		l.at = append(l.at, at)
		l.x = append(l.x, t.At(at))
	}
	l.size = rootMeanSquare(l.x)
	return l
}

// near reports whether these elements of a tensor are the same within a relative error; a constant says nothing.
func (l loose) near(t *tensor.Tensor, floor float64) bool {
	if t.Len() == 0 || l.at[len(l.at)-1] >= t.Len() || l.size == 0 || !slices.ContainsFunc(l.x, func(x float64) bool { return x != l.x[0] }) {
		return false
	}
	for i, at := range l.at {
		if !(math.Abs(t.At(at)-l.x[i]) <= 4*floor*(l.size+math.Abs(l.x[i]))) {
			return false
		}
	}
	return true
}
