package diagnose

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// Port is one port of the reference with what the candidate has for it, as match made them alike.
type Port struct {
	Case, Step, Layer, Port string
	Seq                     int            // execution index in the reference
	Golden                  *tensor.Tensor // never nil
	Actual                  *tensor.Tensor // of the standard run; nil if the candidate has none
	Injected                *tensor.Tensor // of the run on golden inputs; nil without one
	Agrees                  bool           // within the noise floor
	InjectedAgrees          bool
	Floor                   compare.Limits // the noise floor
	PadRows                 []bool         // true for rows that are padding; nil if there are none
}

// Run is what is known of a comparison.
type Run struct {
	Ports    []*Port // in the reference's execution order, all cases and steps
	Verdict  *localise.Verdict
	Weights  Weights // of the reference; nil if not given
	Config   Config  // of the model, in Hugging Face's keys; nil if not given
	TokenIDs func(caseName string) [][]int
}

// Injected is the run as target saw it when its layer ran on golden inputs: target's tensor is that of the injected run, everything else
// is golden.
func (r *Run) Injected(target *Port) *Run {
	out := &Run{Verdict: r.Verdict, Weights: r.Weights, Config: r.Config, TokenIDs: r.TokenIDs}
	for _, p := range r.Ports {
		q := *p
		q.Actual, q.Injected, q.Agrees = nil, nil, true
		switch {
		case p == target:
			q.Actual, q.Agrees = p.Injected, p.InjectedAgrees
		case p.Layer == target.Layer && localise.RoleOf(p.Port) == localise.Input:
			q.Actual = p.Golden
		}
		out.Ports = append(out.Ports, &q)
	}
	return out
}

// Port finds a port; nil if the reference has none.
func (r *Run) Port(caseName, step, layer, port string) *Port {
	for _, p := range r.Ports {
		if p.Case == caseName && p.Step == step && p.Layer == layer && p.Port == port {
			return p
		}
	}
	return nil
}

// Weights are the reference's, by Hugging Face's keys.
type Weights map[string]*tensor.Tensor

// Config is config.json.
type Config map[string]any

// Float gives the first of the keys that holds a number.
func (c Config) Float(keys ...string) (float64, bool) {
	for _, k := range keys {
		switch v := c[k].(type) {
		case float64:
			return v, true
		case int:
			return float64(v), true
		}
	}
	return 0, false
}

// Int gives the first of the keys that holds a whole number.
func (c Config) Int(keys ...string) (int, bool) {
	if f, ok := c.Float(keys...); ok && f == float64(int(f)) {
		return int(f), true
	}
	return 0, false
}

// String gives the first of the keys that holds a string.
func (c Config) String(keys ...string) string {
	for _, k := range keys {
		if s, ok := c[k].(string); ok {
			return s
		}
	}
	return ""
}

// Scene is one place at which the candidate leaves the reference: a tensor that is wrong although what it is made of is right.
type Scene struct {
	*Run
	Kind          string // localise's
	Case, Step    string
	Layer         string // that made the error; the innermost container for between
	After, Before string // the interval of between
	Target        *Port  // the wrong tensor
	// Failed is told of a hypothesis that panicked; nil is silent.
	Failed func(error)

	ctx    context.Context // ends with the budget
	sample []bool
	both   *pair
	near   *graph
	looked bool // for near
	once   sync.Once
	ports  map[[2]string]*Port
	arrays map[*tensor.Tensor]*Array
	parts  map[*tensor.Tensor]*Array
}

// Find gives a port of the scene's case and step; nil if the reference has none.
func (s *Scene) Find(layer, port string) *Port {
	s.once.Do(func() {
		s.ports, s.arrays, s.parts = map[[2]string]*Port{}, map[*tensor.Tensor]*Array{}, map[*tensor.Tensor]*Array{}
		for _, p := range s.Ports {
			if p.Case == s.Case && p.Step == s.Step {
				s.ports[[2]string{p.Layer, p.Port}] = p
			}
		}
	})
	return s.ports[[2]string{layer, port}]
}

// Output gives the main output of a layer; nil if the reference recorded none.
func (s *Scene) Output(layer string) *Port {
	for _, port := range []string{"output", "output_0", "output.0"} {
		if p := s.Find(layer, port); p != nil {
			return p
		}
	}
	return nil
}

// Input gives the main input of a layer; nil if the reference recorded none.
func (s *Scene) Input(layer string) *Port {
	for _, port := range []string{"input_0", "input_hidden_states", "input_x", "input_input"} {
		if p := s.Find(layer, port); p != nil {
			return p
		}
	}
	return nil
}

// Array decodes a tensor once for all hypotheses of the scene. Nobody writes to the result.
func (s *Scene) Array(t *tensor.Tensor) *Array {
	s.Find("", "")
	a := s.arrays[t]
	if a == nil {
		a = ArrayOf(t)
		s.arrays[t] = a
	}
	return a
}

// Golden decodes the reference's tensor of a port, nil for no port.
func (s *Scene) Golden(p *Port) *Array {
	if p == nil {
		return nil
	}
	return s.Array(p.Golden)
}

// Actual decodes what the candidate had at a port; where it recorded nothing, the golden tensor if the port's own error is not what is
// looked for. nil for no port.
func (s *Scene) Actual(p *Port) *Array {
	switch {
	case p == nil:
		return nil
	case p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape()):
		return s.Array(p.Actual)
	case p == s.Target:
		return nil
	}
	return s.Array(p.Golden)
}

// Weight finds a weight of a layer: Weight("model.model.layers.0.self_attn.q_proj", "weight"). A key's module is the end of the layer's label
// at a dot, or the label is the end of the key's module; the longest match counts. nil if there is none.
func (s *Scene) Weight(layer, name string) *Array {
	if _, t := s.weight(layer, name); t != nil {
		return s.Array(t)
	}
	return nil
}

// weight is Weight without decoding, with the key.
func (s *Scene) weight(layer, name string) (string, *tensor.Tensor) {
	label := layer
	for label != "" {
		if t := s.Weights[label+"."+name]; t != nil {
			return label + "." + name, t
		}
		_, rest, ok := strings.Cut(label, ".")
		if !ok {
			break
		}
		label = rest
	}
	var found string
	for key := range s.Weights {
		if strings.HasSuffix(key, "."+layer+"."+name) {
			if found != "" {
				return "", nil // two are no answer
			}
			found = key
		}
	}
	return found, s.Weights[found]
}
