package pattern

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// FedPositions is a target of integers in a forward pass of an execution path, all off by a number:
// its positions.
func FedPositions(s *diagnose.Scene) []diagnose.Prediction {
	t := s.Target
	if s.Fed == nil || t == nil || t.IsFloat() || !t.IsRecorded() {
		return nil
	}
	g, a := s.Array(t.Golden).Data, s.Array(t.Actual).Data
	from := s.Fed.From
	if len(g) <= from {
		return nil
	}
	g, a = g[from:], a[from:]
	by := a[0] - g[0]
	off := func(i int) bool { return a[i]-g[i] == by }
	text := ""
	switch {
	case by == 0:
		return nil
	case slices.ContainsFunc(op.Sequence(len(g)), func(i int) bool { return !off(i) }):
		if slices.ContainsFunc(a, func(x float64) bool { return x != a[0] }) {
			return nil
		}
		text = fmt.Sprintf("all tokens of the forward pass have position %g", a[0])
	case from > 0 && by == -g[0]:
		text = "the positions of the forward pass begin at 0 again"
	case s.Fed.Padding > 0 && int(by) == s.Fed.Padding:
		text = fmt.Sprintf("the positions count the padding in front, %d rows", s.Fed.Padding)
	default:
		text = fmt.Sprintf("the positions of the forward pass are off by %+g", by)
	}
	p := guess("state/position", -3, "%s", text)
	value := diagnose.NewArray(t.Golden.Shape()...)
	copy(value.Data, s.Array(t.Actual).Data)
	p.Value = value
	return []diagnose.Prediction{p}
}

// FedRows are rows of another sequence, or of the run before, in place of the target's own.
func FedRows(s *diagnose.Scene) (out []diagnose.Prediction) {
	t := s.Target
	if s.Fed == nil || !s.HasNumbers() {
		return nil
	}
	for _, other := range s.Fed.Others {
		if other.Same || other.Kind != diagnose.Beside && other.Kind != diagnose.Before {
			continue
		}
		id, text := "state/sequence", "it has the rows of "+other.Text
		if other.Kind == diagnose.Before {
			id, text = "state/stale", "it has the rows that "+other.Text+" left"
		}
		for _, x := range []*tensor.Tensor{other.Golden(t.Layer, t.Port), other.Tensor(t.Layer, t.Port)} {
			if x == nil || x.RowLen() != t.Golden.RowLen() {
				continue
			}
			shifts := []int{0}
			if by := s.Fed.From - other.Cached; by != 0 && other.Kind == diagnose.Beside {
				shifts = append(shifts, by)
			}
			for _, by := range shifts {
				if value, rows := inPlace(s, x, by); value != nil {
					p := guess(id, -1, "%s", text)
					p.Value, p.Rows = value, rows
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// inPlace puts the rows of another tensor in the target's places, as far as it has them, as many
// rows further on.
func inPlace(s *diagnose.Scene, x *tensor.Tensor, by int) (value *diagnose.Array, rows []bool) {
	t := s.Target
	if s.Sample() != nil || x.Len() == 0 {
		return nil, nil
	}
	value = diagnose.NewArray(t.Golden.Shape()...)
	rows = make([]bool, t.Rows())
	all, w := op.ReadAll(x), t.Width()
	for i := range rows {
		if at := i - by; at >= 0 && (at+1)*w <= len(all) {
			rows[i] = true
			copy(value.Data[i*w:(i+1)*w], all[at*w:])
		}
	}
	return value, rows
}

// Cached is attention that looks at more keys than the sequence has: the weights that the candidate
// recorded have more columns, and those of the sequence's own keys are right but for a factor a row.
func Cached(s *diagnose.Scene) []diagnose.Prediction {
	g := rebuild.Of(s)
	if g == nil {
		return nil
	}
	o, ok := g.Explain(g.Target).(*rebuild.Attention)
	if !ok || o.OfWeights || o.Keys != 0 || o.Axis != op.OverKeys {
		return nil
	}
	want := []int{o.Sequences, o.Heads, o.Tokens, o.Tokens}
	for _, p := range s.Pass() {
		if p.Layer != o.Layer || p.Misfit == nil || !slices.Equal(p.Golden.Shape(), want) {
			continue
		}
		shape := p.Misfit.Shape()
		if len(shape) != 4 || !slices.Equal(shape[:3], want[:3]) || shape[3] <= o.Tokens || p.Misfit.Len() > op.DecodeMax {
			continue
		}
		w := o.Weigh(g.With(g.Target, nil))
		if w == nil {
			return nil
		}
		more := shape[3] - o.Tokens
		for front, side := range []string{"behind", "in front of"} {
			if sameShares(o, w, op.ReadAll(p.Misfit), shape[3], front*more) {
				return []diagnose.Prediction{guess("state/stale", -3,
					"attention looks at %d keys %s those of the sequence, which an earlier call left in the cache; the weights of its own keys are right but for their sum",
					more, side)}
			}
		}
	}
	return nil
}

// sameShares reports whether the weights of the sequence's own keys, which begin at a column, are those
// of an attention but for their sum.
func sameShares(o *rebuild.Attention, w *op.Weighed, x []float64, width, first int) bool {
	for r := range len(x) / width {
		own := slices.Clone(x[r*width+first:][:o.Tokens])
		sum := floats.Sum(own)
		if sum <= 0 {
			return false
		}
		right := w.Weights(r/o.Tokens/o.Heads, r/o.Tokens%o.Heads, r%o.Tokens)
		if op.Relative(op.Scaled(own, 1/sum), right) > max(markFloors*o.Out.Noise(), leastFloor) {
			return false
		}
	}
	return len(x) > 0
}
