package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/attention"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// symptoms says what the error of a verdict looks like, a sentence each: what token 0 tells, how the
// heads of attention look, spikes that are lost, and where no cause is proven, which rows, columns and
// heads are wrong and by which map. They are facts of tensors, and accuse nothing.
type symptoms struct {
	*Comparison
	run    *diagnose.Run
	target *diagnose.Port // the wrong tensor
	proven bool
	causal known // whether the attention of the model is
}

// known is what the records say of a question.
type known int

const (
	unknown known = iota
	no
	yes
)

// safely lists all symptoms. What panics must not take the report with it.
func (s *symptoms) safely(ctx context.Context) (out []string, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("what the error looks like could not be told: %v", e)
		}
	}()
	s.causal = s.isCausal(s.run.Config)
	return s.all(ctx), nil
}

func (s *symptoms) all(ctx context.Context) (out []string) {
	t := s.target
	if s.Verdict.Kind == localise.KindCapture {
		return nil // the model is right
	}
	if !t.IsRecorded() || !t.IsFloat() || t.Golden.Len() == 0 || t.Golden.Len() > mostSymptoms {
		return nil
	}
	if !s.proven {
		out = append(out, s.shape()...)
	}
	if h, ok := pattern.HeldBy(s.run, t.Case, t.Step)[t]; ok {
		out = append(out, h.Text)
	}
	heads := s.attention(ctx)
	return slices.Concat(out, s.tokenZero(), heads, s.spikes())
}

// shape says which rows, columns or heads of the target are wrong, or by which map all of it is.
func (s *symptoms) shape() (out []string) {
	golden, actual := s.unpadded(s.target)
	if golden == nil {
		return nil
	}
	heads := 0
	if module.InAttention(s.target.Layer) {
		heads = s.run.Config.Heads()
		if qkv := module.QKV(s.target.Layer); qkv == 'k' || qkv == 'v' {
			heads = s.run.Config.KVHeads()
		}
	}
	where, direction := "", ""
	if s.target.HasPadding() {
		where = " (counted without padding)"
	}
	for _, f := range structure.Of(golden, actual, s.target.Floor, heads) {
		switch {
		case f.Kind == structure.Block:
			return []string{f.Text + where} // its rows and columns say no more
		case f.Kind == structure.Cosine:
			direction = f.Text
		case !strings.HasPrefix(f.Kind, "spike/"):
			out = append(out, f.Text+where)
		}
	}
	if len(out) > 0 {
		return out
	}
	if m := structure.Rewritten([]structure.Pair{{Golden: golden, Actual: actual}}, s.target.Floor); m.Kind != structure.MapNone {
		return []string{"the numbers of the golden make the candidate's: " + m.Text}
	}
	if text := structure.Turned(golden, actual, s.target.Floor); text != "" {
		return []string{text}
	}
	width := max(golden.RowLen(), 1)
	rows := op.Spread(golden.Len()/width, max(sampledElements/width, 1))
	if g, a := op.Read(golden, width, rows), op.Read(actual, width, rows); g != nil && a != nil {
		// The candidate must follow, too: what has lost the value is off by all of it.
		if share := min(op.FollowsValue(g, op.Minus(a, g)), op.FollowsValue(g, a)); share >= mostlyFollows {
			return []string{fmt.Sprintf("each element is off by what its own value says (%.0f %% of the squared error): another function of it", 100*share)}
		}
	}
	if direction != "" {
		out = append(out, "no row, column or head stands out, and no map is known; "+direction)
	}
	return out
}

// unpadded returns the two sides without rows of padding.
func (s *symptoms) unpadded(p *diagnose.Port) (golden, actual *tensor.Tensor) {
	keep := p.Kept(nil)
	return diagnose.SelectRows(p.Golden, keep), diagnose.SelectRows(p.Actual, keep)
}

// tokenZero says what it tells that the first token of each sequence is right, or wrong. Under a causal
// mask it sees itself alone: the softmax of one score is 1, whatever the score.
func (s *symptoms) tokenZero() []string {
	zero, later, wrongZero, wrongLater, ok := s.wrongTokens()
	mixes, v := s.mixes() && s.causal != no, s.Verdict
	switch {
	case !ok:
		return nil
	case wrongZero == zero && wrongLater == 0:
		return []string{"token 0 alone is wrong: look at what only it has, the BOS token, position 0, values far larger than those of the others"}
	case !mixes:
		return nil
	case wrongZero == 0 && 2*wrongLater >= later:
		return []string{fmt.Sprintf("token 0 is right, %d of %d later tokens are wrong: %s token 0 sees itself alone, so look at what lets tokens "+
			"see each other: mask, rotary embedding, positions, scale of the scores", wrongLater, later, s.underCausal())}
	case wrongZero == zero && !s.sinks() && !v.Open:
		return []string{fmt.Sprintf("token 0 is wrong, too: %s it sees itself alone, where mask, rotary embedding, positions and scale of the scores "+
			"do nothing; look at embedding, norms, values, heads and linear layers", s.underCausal())}
	}
	return nil
}

func (s *symptoms) underCausal() string {
	if s.causal == yes {
		return "the mask is causal,"
	}
	return "under a causal mask"
}

// wrongTokens counts the first tokens of sequences, the later ones, and of both the wrong ones; false
// where the rows of the target are no tokens of whole sequences.
func (s *symptoms) wrongTokens() (zero, later, wrongZero, wrongLater int, ok bool) {
	t, v := s.target, s.Verdict
	shape := t.Golden.Shape()
	k := s.caseOf(v.Case)
	if len(shape) < 2 || len(shape) > 3 || label.Block(t.Layer) == "" || k == nil || k.Along != nil || k.Golden.Steps()[0] != v.Step {
		return 0, 0, 0, 0, false
	}
	tokens := shape[len(shape)-2]
	d, err := compare.Explain(t.Golden, t.Actual, compare.Tolerance{})
	if tokens < leastTokens || err != nil {
		return 0, 0, 0, 0, false
	}
	first := true
	for i, row := range d.Rows {
		if i%tokens == 0 {
			first = true
		}
		if t.Pads(i) {
			continue
		}
		wrong := 0
		if row.RelL2 > t.Floor.RowRelL2 || row.BadNonFinite > 0 || math.IsNaN(row.RelL2) {
			wrong = 1
		}
		if first {
			zero, wrongZero = zero+1, wrongZero+wrong
		} else {
			later, wrongLater = later+1, wrongLater+wrong
		}
		first = false
	}
	return zero, later, wrongZero, wrongLater, zero > 0 && later > 0
}

// mixes reports whether the code that made the target lets tokens see each other by attention: that of
// an attention, or of a whole block.
func (s *symptoms) mixes() bool {
	layer := label.Name(s.Verdict.Layer)
	if layer == label.Name(label.Block(layer)) {
		return s.Verdict.Open || s.Verdict.Kind == localise.KindLocal // else it is code around attention
	}
	last := strings.ToLower(label.Last(layer))
	return module.InAttention(layer) && (last == "self" || module.InAttention(last))
}

// sinks reports whether attention has learned sinks, which token 0 sees besides itself.
func (s *symptoms) sinks() bool {
	for key := range s.run.Weights {
		if strings.HasSuffix(key, "sinks") {
			return true
		}
	}
	return false
}

// isCausal reads from recorded weights and masks, or the config, whether attention is causal.
func (s *symptoms) isCausal(c checkpoint.Config) known {
	is := func(causal bool) known {
		if causal {
			return yes
		}
		return no
	}
	for _, p := range s.run.Ports {
		shape := p.Golden.Shape()
		if p.Case != s.Verdict.Case || p.Step != s.Verdict.Step || !p.IsFloat() || len(shape) != 4 || shape[2] != shape[3] || shape[3] < 2 {
			continue
		}
		if p.IsInput() && strings.Contains(p.Port, "mask") {
			if m := op.ReadMask(p.Golden, shape[0], shape[2], shape[3], c.Heads()); m != nil && m.Allow != nil {
				m.TakeApart(shape[0], shape[2], shape[3])
				return is(m.Causal)
			}
		}
		if !p.IsInput() && attention.Named(p.Layer, p.Port) && attention.Recorded(p.Golden) {
			return is(!slices.ContainsFunc(attention.Of(p.Golden, nil), func(h attention.Head) bool { return !h.Causal }))
		}
	}
	if names, ok := c["architectures"].([]any); ok && len(names) > 0 {
		if name := fmt.Sprint(names[0]); strings.Contains(name, "ForCausalLM") || strings.Contains(name, "LMHead") {
			return yes
		}
	}
	return unknown
}

// attention says how the heads look of the first attention whose weights are wrong, in the verdict's
// forward pass; of weights that were not recorded, that of the verdict's block.
func (s *symptoms) attention(ctx context.Context) []string {
	v, recorded := s.Verdict, false
	for _, p := range s.run.Ports {
		if p.Case != v.Case || p.Step != v.Step || p.IsInput() || !p.IsRecorded() || !attention.Named(p.Layer, p.Port) ||
			p.Golden.Len() > mostSymptoms || recorded && p.Agrees || !attention.Recorded(p.Golden) {
			continue
		}
		if recorded = true; p.Agrees {
			continue
		}
		if out := attention.Compare(p.Layer, attention.Of(p.Golden, s.padded(p)), attention.Of(p.Actual, s.padded(p))); len(out) > 0 {
			return out
		}
	}
	if recorded || !module.InAttention(s.target.Layer) && !s.mixes() {
		return nil
	}
	block := label.Block(s.target.Layer)
	near := &diagnose.Run{Weights: s.run.Weights, Config: s.run.Config}
	for _, p := range s.run.Ports {
		if b := label.Block(p.Layer); p.Case == v.Case && p.Step == v.Step && (b == "" || b == block) && p.Golden.Len() <= mostSymptoms {
			near.Ports = append(near.Ports, p)
		}
	}
	candidate := attention.All(ctx, candidateOf(near))
	for _, g := range attention.All(ctx, near) {
		if a := g.In(candidate); a != nil && label.Block(g.Layer) == block {
			if out := attention.Compare(g.Layer, g.Heads, a.Heads); len(out) > 0 {
				return out
			}
		}
	}
	return nil
}

// padded marks the queries of attention weights that are padding; nil where that is not known.
func (s *symptoms) padded(weights *diagnose.Port) []bool {
	shape := weights.Golden.Shape()
	for _, p := range s.run.Ports {
		if p.Case == weights.Case && p.Step == weights.Step && p.PadRows != nil && len(shape) == 4 && len(p.Golden.Shape()) == 3 &&
			p.Golden.Shape()[0] == shape[0] && p.Golden.Shape()[1] == shape[2] {
			return p.PadRows
		}
	}
	return nil
}

// spikes says where the first spike is lost, gained or moved: in the target, or in a block behind it.
func (s *symptoms) spikes() []string {
	v, behind := s.Verdict, false
	for _, p := range s.run.Ports {
		behind = behind || p == s.target
		layer := label.Name(p.Layer)
		isBlock := layer == label.Name(label.Block(layer)) && !p.IsInput()
		if p.Case != v.Case || p.Step != v.Step || !behind || p != s.target && !isBlock || p.Agrees || !p.IsRecorded() || !p.IsFloat() ||
			p.Golden.Len() > mostSymptoms {
			continue
		}
		for _, f := range structure.Spikes(p.Golden, p.Actual) {
			if p == s.target {
				return []string{f.Text}
			}
			return []string{fmt.Sprintf("behind it, in %s: %s", p.Layer, f.Text)}
		}
	}
	return nil
}
