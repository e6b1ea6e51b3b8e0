package judge

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// unfoldSteps lays the steps of a run up to that of a scene out as one pass, where each feeds the next
// tokens of the same sequences and a cache holds those before: then attention has the keys and values
// of all tokens, as they were recorded. It returns nil where the steps do not show that.
func unfoldSteps(first *diagnose.Scene, v *localise.Verdict) *diagnose.Scene {
	t := first.Target
	if t == nil || t.Actual == nil || first.Kind != localise.KindBetween && first.Kind != localise.KindLocal {
		return nil
	}
	s := stepsOf(first.Run, t)
	if len(s.tokens) < 2 {
		return nil
	}
	run := &diagnose.Run{Weights: first.Weights, Config: first.Config, TokenIDs: first.TokenIDs}
	var found *diagnose.Port
	for _, p := range first.Ports {
		if p.Case != t.Case || p.Step != t.Step {
			continue
		}
		d := s.join(p)
		if d == nil {
			continue
		}
		if p == t {
			found = d
		}
		run.Ports = append(run.Ports, d)
	}
	if found == nil || found.Actual == nil {
		return nil
	}
	out := &diagnose.Scene{Run: run, Kind: first.Kind, Case: first.Case, Step: first.Step, Layer: first.Layer, After: first.After,
		Before: first.Before, Target: found, Open: v.Open,
		Fed: &diagnose.Fed{From: s.total - s.tokens[len(s.tokens)-1], Steps: true, Pads: s.pads(found.Rows())}}
	return out
}

// steps are those of a run up to one, with the number of tokens that each feeds.
type steps struct {
	tokens []int
	total  int
	ports  []map[[2]string]*diagnose.Port // by step: layer and port
}

// stepsOf counts the tokens of each step by the first tensor of token ids, or of hidden states, that
// all of them have: only its axis of tokens may differ.
func stepsOf(run *diagnose.Run, t *diagnose.Port) (s steps) {
	var names []string
	for _, p := range run.Ports {
		if p.Case != t.Case {
			continue
		}
		at := slices.Index(names, p.Step)
		if at < 0 {
			if slices.Contains(names, t.Step) {
				continue // a step behind that of the target
			}
			names, at = append(names, p.Step), len(names)
			s.ports = append(s.ports, map[[2]string]*diagnose.Port{})
		}
		s.ports[at][[2]string{p.Layer, p.Port}] = p
	}
	if len(names) < 2 || names[len(names)-1] != t.Step {
		return steps{}
	}
	for _, p := range run.Ports {
		shape := p.Golden.Shape()
		if p.Case != t.Case || p.Step != t.Step || len(shape) != 3 || !p.IsFloat() || !p.IsOutput() {
			continue
		}
		for _, ports := range s.ports {
			q := ports[[2]string{p.Layer, p.Port}]
			if q == nil || len(q.Golden.Shape()) != 3 || q.Golden.Shape()[0] != shape[0] || q.Golden.Shape()[2] != shape[2] {
				return steps{}
			}
			s.tokens = append(s.tokens, q.Golden.Shape()[1])
			s.total += q.Golden.Shape()[1]
		}
		return s
	}
	return steps{}
}

// pads marks the rows of the sequences that are padding in any step, as most ports have them; nil if
// there are none, or if a sequence has another number of rows than tokens.
func (s *steps) pads(rows int) []bool {
	out, some := make([]bool, rows), false
	from := 0
	for i, ports := range s.ports {
		n := s.tokens[i]
		for _, p := range ports {
			if !p.HasPadding() || len(p.PadRows)*s.total != rows*n {
				continue
			}
			for r, pad := range p.PadRows {
				if pad {
					out[r/n*s.total+from+r%n], some = true, true
				}
			}
		}
		from += n
	}
	if !some {
		return nil
	}
	return out
}

// join joins the tensors that a port of the last step has in all steps; nil where they have no axis
// of tokens. Of a port that the candidate did not record in some of them it has none.
func (s *steps) join(p *diagnose.Port) *diagnose.Port {
	axis := s.axis(p)
	if axis < 0 {
		return nil
	}
	var goldens, actuals []*tensor.Tensor
	agrees := true
	for _, ports := range s.ports {
		q := ports[[2]string{p.Layer, p.Port}]
		if q == nil {
			return nil
		}
		goldens = append(goldens, s.whole(q.Golden, axis))
		if q.IsRecorded() && len(actuals) == len(goldens)-1 {
			actuals = append(actuals, s.whole(q.Actual, axis))
		}
		agrees = agrees && q.Agrees
	}
	golden := concat(axis, goldens)
	if golden == nil {
		return nil
	}
	d := *p
	d.Golden, d.Actual, d.Injected, d.Agrees = golden, nil, nil, agrees
	if len(actuals) == len(goldens) {
		d.Actual = concat(axis, actuals)
	}
	d.PadRows = s.earlier(golden.Shape(), axis, p)
	return &d
}

func concat(axis int, parts []*tensor.Tensor) *tensor.Tensor {
	if slices.Contains(parts, nil) {
		return nil
	}
	t, err := tensor.Concat(axis, parts...)
	if err != nil {
		return nil
	}
	return t
}

// axis is the axis of a port's tensors along which the steps have as many elements as they feed
// tokens, the others being the same but for the last of masks and weights of attention; −1 for none.
func (s *steps) axis(p *diagnose.Port) int {
	last := p.Golden.Shape()
	for axis := max(len(last)-3, 0); axis < len(last); axis++ {
		fits := func(step int) bool {
			q := s.ports[step][[2]string{p.Layer, p.Port}]
			if q == nil || len(q.Golden.Shape()) != len(last) {
				return false
			}
			for i, n := range q.Golden.Shape() {
				switch {
				case i == axis && n != s.tokens[step], i != axis && n != last[i] && (i != len(last)-1 || !s.isKeys(q, step)):
					return false
				}
			}
			return true
		}
		all := true
		for step := range s.ports {
			all = all && fits(step)
		}
		if all {
			return axis
		}
	}
	return -1
}

// isKeys reports whether the last axis of a tensor counts all tokens that were fed.
func (s *steps) isKeys(p *diagnose.Port, step int) bool {
	n := 0
	for _, m := range s.tokens[:step+1] {
		n += m
	}
	shape := p.Golden.Shape()
	return len(shape) == 4 && shape[3] == n
}

// whole returns what has an axis of keys, which grows from step to step, with one of all keys: those
// that came later are hidden. Other tensors stay as they are.
func (s *steps) whole(t *tensor.Tensor, axis int) *tensor.Tensor {
	shape := t.Shape()
	if len(shape) != 4 || axis != 2 || !s.growing(shape[3]) {
		return t
	}
	x := make([]float64, t.Len())
	t.Float64s(x, 0)
	hidden := 0.0
	for _, v := range x {
		hidden = math.Min(hidden, v)
	}
	have, out := shape[3], make([]float64, 0, t.Len()/shape[3]*s.total)
	for at := 0; at < len(x); at += have {
		out = append(append(out, x[at:at+have]...), slices.Repeat([]float64{hidden}, s.total-have)...)
	}
	w, err := tensor.Of(out, shape[0], shape[1], shape[2], s.total)
	if err != nil {
		return nil
	}
	return w
}

// growing reports whether n tokens are those that the first steps feed.
func (s *steps) growing(n int) bool {
	for _, m := range s.tokens {
		if n -= m; n == 0 {
			return true
		}
	}
	return false
}

// earlier marks the rows of earlier steps, and those that the port has as padding itself.
func (s *steps) earlier(shape []int, axis int, p *diagnose.Port) []bool {
	if axis == len(shape)-1 {
		return nil // ids
	}
	inner, rows := 1, 1
	for i, n := range shape[:len(shape)-1] {
		rows *= n
		if i > axis {
			inner *= n
		}
	}
	own := s.tokens[len(s.tokens)-1]
	out := make([]bool, rows)
	for r := range out {
		token := r / inner % s.total
		out[r] = token < s.total-own
		if at := (r/inner/s.total*own+token-(s.total-own))*inner + r%inner; !out[r] && p.Pads(at) {
			out[r] = true
		}
	}
	return out
}
