package diagnose

import (
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

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
