package diagnose

import (
	"context"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Scene is one place at which the candidate leaves the reference: a tensor that is wrong although
// what it is made of is right.
type Scene struct {
	*Run
	Kind       string // localise's
	Case, Step string
	Layer      string // that made the error; the innermost container for between
	Target     *Port  // the wrong tensor
	// Open says that not all that the target is made of was recorded on both sides. Then nothing is
	// proven, and what does not fit as well as a proof is not worth saying.
	Open bool
	// Made is what the reference's program makes of what the candidate was given, in the shape of Target; nil where that
	// is not known.
	Made *tensor.Tensor
	// Failed is told of a hypothesis that panicked; nil is silent.
	Failed func(error)

	ctx     context.Context // ends with the budget
	unshown []Cause         // predictions that fit too little to be shown
	pass    []*Port         // of the case and step, in the reference's execution order
	decoded map[*tensor.Tensor][]float64

	// The target's numbers on both sides, in the rows that are looked at: those that are no padding, of
	// a large tensor some. They are nil where the sides do not have as many. right is what the
	// candidate should have: what is made of its own inputs where that is known, else golden.
	golden, right, actual []float64
	rows                  []int
	width                 int
}

// begin reads the target.
func (s *Scene) begin(ctx context.Context) {
	s.ctx, s.unshown, s.pass, s.decoded = ctx, nil, nil, map[*tensor.Tensor][]float64{}
	s.golden, s.right, s.actual = nil, nil, nil
	for _, p := range s.Ports {
		if p.Case == s.Case && p.Step == s.Step {
			s.pass = append(s.pass, p)
		}
	}
	t := s.Target
	if t == nil || t.Actual == nil || t.Golden.Len() == 0 || t.Actual.Len() != t.Golden.Len() {
		return
	}
	s.width = t.Width()
	keep := t.Rows()
	if t.Golden.Len() >= sampleFrom {
		keep = max(sampleKeep/s.width, sampleLeast)
	}
	if s.rows = slices.DeleteFunc(vec.Spread(t.Rows(), keep), t.pads); len(s.rows) == 0 {
		return
	}
	golden, actual := s.read(t.Golden), s.read(t.Actual)
	if golden == nil || actual == nil {
		return
	}
	s.golden, s.right, s.actual = golden, golden, actual
	if made := s.read(s.Made); vec.Relative(made, golden) < nearGolden*max(t.Floor.RelL2, leastFloor) {
		s.right = made
	}
}

// late reports whether the time for diagnosis is over.
func (s *Scene) late() bool { return s.ctx.Err() != nil }

// read decodes the rows of a tensor that are looked at; nil if it has not as many elements as the target.
func (s *Scene) read(t *tensor.Tensor) []float64 {
	if t == nil || t.Len() != s.Target.Golden.Len() {
		return nil
	}
	return vec.Read(t, s.width, s.rows)
}

// all decodes a tensor once for all hypotheses. No one writes to the result.
func (s *Scene) all(t *tensor.Tensor) []float64 {
	x, ok := s.decoded[t]
	if !ok {
		x = vec.ReadAll(t)
		s.decoded[t] = x
	}
	return x
}

// row is row i of those that are looked at.
func (s *Scene) row(x []float64, i int) []float64 { return x[i*s.width : (i+1)*s.width] }

// input returns the main input of a layer; nil if the reference recorded none.
func (s *Scene) input(layer string) *Port {
	for _, name := range []string{"input_0", "input_hidden_states", "input_x", "input_input"} {
		if i := slices.IndexFunc(s.pass, func(p *Port) bool { return p.Layer == layer && p.Port == name }); i >= 0 {
			return s.pass[i]
		}
	}
	return nil
}

// says predicts the rows that are looked at.
func (s *Scene) says(id string, value []float64, params, rank int, format string, args ...any) prediction {
	return prediction{id: id, text: fmt.Sprintf(format, args...), value: value, params: params, rank: rank}
}

// guess names a cause without numbers.
func guess(id string, rank int, format string, args ...any) prediction {
	return prediction{id: id, text: fmt.Sprintf(format, args...), rank: rank}
}
