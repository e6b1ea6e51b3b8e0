package diagnose

import (
	"context"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
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

// Port is one port of the reference with what the candidate has for it, as match made them alike.
type Port struct {
	Case, Step, Layer, Port string
	Seq                     int            // execution index in the reference
	Golden                  *tensor.Tensor // never nil
	Actual                  *tensor.Tensor // of the standard run; nil if the candidate has none
	Injected                *tensor.Tensor // of the run on golden inputs; nil without one
	Misfit                  *tensor.Tensor // of the standard run, where its shape is another; else nil
	Agrees                  bool           // within the noise floor
	InjectedAgrees          bool
	Floor                   compare.Limits // the noise floor
	PadRows                 []bool         // true for rows that are padding; nil if there are none
}

// Width is the length of the last axis, at least 1.
func (p *Port) Width() int { return max(p.Golden.RowLen(), 1) }

// Rows is the number of rows.
func (p *Port) Rows() int { return p.Golden.Len() / p.Width() }

// IsInput reports whether the port is what its layer was given.
func (p *Port) IsInput() bool { return label.IsInput(p.Port) }

// IsOutput reports whether the port is what its layer returned, or was saved by hand.
func (p *Port) IsOutput() bool {
	role := label.RoleOf(p.Port)
	return role == label.RoleOutput || role == label.RoleTap
}

// IsFloat reports whether the port holds numbers to calculate with, and not ids.
func (p *Port) IsFloat() bool { return p.Golden.DType().IsFloat() }

// IsRecorded reports whether the candidate has a tensor of the golden's shape.
func (p *Port) IsRecorded() bool {
	return p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape())
}

func (p *Port) pads(row int) bool { return row < len(p.PadRows) && p.PadRows[row] }

func (p *Port) hasPadding() bool { return slices.Contains(p.PadRows, true) }

// kept returns the rows of a tensor that are not padding, as one of two axes; the tensor itself where
// there is none, and nil where nothing is left.
func (p *Port) kept(t *tensor.Tensor) *tensor.Tensor {
	if t == nil || !p.hasPadding() {
		return t
	}
	keep := make([]bool, p.Rows())
	for i := range keep {
		keep[i] = !p.pads(i)
	}
	flat, err := t.Reshape(p.Rows(), t.Len()/p.Rows())
	if err == nil {
		flat, err = flat.SelectRows(keep)
	}
	if err != nil || flat.Len() == 0 {
		return nil
	}
	return flat
}

// Run is what is known of a comparison.
type Run struct {
	Ports    []*Port                             // in the reference's execution order, all cases and steps
	Weights  checkpoint.Weights                  // of the reference; nil if not given
	Config   checkpoint.Config                   // of the model, in Hugging Face's keys; nil if not given
	TokenIDs func(caseName, step string) [][]int // that the reference was given in a pass, by sequence; nil if they are not known
}

// Injected returns the run as target saw it when its layer ran on golden inputs, and target in it:
// its tensor is that of the injected run, everything else is golden. What ran inside the layer
// counts as not recorded.
func (r *Run) Injected(target *Port) (out *Run, injected *Port) {
	out = &Run{Weights: r.Weights, Config: r.Config, TokenIDs: r.TokenIDs}
	for _, p := range r.Ports {
		q := *p
		q.Actual, q.Injected, q.Agrees = nil, nil, true
		switch {
		case p == target:
			q.Actual, q.Agrees, injected = p.Injected, p.InjectedAgrees, &q
		case label.Name(p.Layer) != label.Name(target.Layer) && !label.Inside(p.Layer, target.Layer) || p.IsInput() && p.Layer == target.Layer:
			q.Actual = p.Golden
		}
		out.Ports = append(out.Ports, &q)
	}
	return out, injected
}
