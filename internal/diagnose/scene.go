package diagnose

import (
	"context"
	"slices"
	"sync"

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

// Pads reports whether row i is padding.
func (p *Port) Pads(i int) bool { return i < len(p.PadRows) && p.PadRows[i] }

// HasPadding reports whether a row is padding.
func (p *Port) HasPadding() bool { return slices.Contains(p.PadRows, true) }

// IsRecorded reports whether the candidate has a tensor of the golden's shape.
func (p *Port) IsRecorded() bool {
	return p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape())
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

// Scene is one place at which the candidate leaves the reference: a tensor that is wrong although
// what it is made of is right.
type Scene struct {
	*Run
	Kind          string // localise's
	Case, Step    string
	Layer         string // that made the error; the innermost container for between
	After, Before string // the interval of between
	Target        *Port  // the wrong tensor
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
	sample  []bool
	once    sync.Once
	pass    []*Port
	ports   map[[2]string]*Port
	arrays  map[*tensor.Tensor]*Array
	parts   map[*tensor.Tensor]*Array
}

func (s *Scene) init() {
	s.once.Do(func() {
		s.ports = map[[2]string]*Port{}
		s.arrays, s.parts = map[*tensor.Tensor]*Array{}, map[*tensor.Tensor]*Array{}
		for _, p := range s.Ports {
			if p.Case == s.Case && p.Step == s.Step {
				s.pass = append(s.pass, p)
				s.ports[[2]string{p.Layer, p.Port}] = p
			}
		}
	})
}

// Pass returns the ports of the scene's case and step, in the reference's execution order.
func (s *Scene) Pass() []*Port {
	s.init()
	return s.pass
}

// MainInputs are the ports that a layer takes what it is about at, the usual first.
var MainInputs = []string{"input_0", "input_hidden_states", "input_x", "input_input"}

// Input returns the main input of a layer; nil if the reference recorded none.
func (s *Scene) Input(layer string) *Port {
	s.init()
	for _, port := range MainInputs {
		if p := s.ports[[2]string{layer, port}]; p != nil {
			return p
		}
	}
	return nil
}

// HasNumbers reports whether the target has numbers on both sides, as many on one as on the other.
func (s *Scene) HasNumbers() bool {
	t := s.Target
	return t != nil && t.Actual != nil && t.IsFloat() && t.Golden.Len() > 0 && t.Golden.Len() == t.Actual.Len()
}

// Array decodes a tensor once for all hypotheses of the scene. No one writes to the result.
func (s *Scene) Array(t *tensor.Tensor) *Array {
	s.init()
	return cached(s.arrays, t, ArrayOf)
}

// ActualTensor is what the candidate had at a port: the golden tensor where it recorded none, for
// the port's own error is not what is looked for. nil for no port, and for a target without a
// tensor.
func (s *Scene) ActualTensor(p *Port) *tensor.Tensor {
	switch {
	case p == nil:
		return nil
	case p.IsRecorded():
		return p.Actual
	case p == s.Target:
		return nil
	}
	return p.Golden
}

// cached returns the value of a key, made at the first call.
func cached[K comparable, V any](m map[K]V, key K, of func(K) V) V {
	v, ok := m[key]
	if !ok {
		v = of(key)
		m[key] = v
	}
	return v
}
