package parity

import (
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/tensor"
)

// Scene is what a hypothesis is given: one place at which the candidate leaves the reference, and
// everything that was recorded of that forward pass on both sides.
type Scene struct {
	Kind          string // what kind of divergence it is: "local", "between", … (docs/report.md)
	Case, Step    string // of the forward pass
	Layer         string // that made the error; the innermost container for "between"
	After, Before string // the interval of "between": empty After is the container's beginning, empty Before its end

	Target  *Port                     // the wrong tensor; nil where no tensor shows the error
	Ports   []*Port                   // in the reference's execution order
	Weights map[string]*tensor.Tensor // of the reference, by Hugging Face's keys; nil if not given
	Config  map[string]any            // config.json; nil if not given
}

// Port is one recorded tensor of the reference with what the candidate has for it.
type Port struct {
	Layer, Port string         // "model.layers.0.mlp", "output"
	Golden      *tensor.Tensor // never nil
	Actual      *tensor.Tensor // nil if the candidate has none
	Agrees      bool           // the two are within the noise floor
	PadRows     []bool         // true for rows that are padding; nil if there are none
}

// Find returns a port by its layer and name; nil if the reference has none.
func (s *Scene) Find(layer, port string) *Port {
	i := slices.IndexFunc(s.Ports, func(p *Port) bool { return p.Layer == layer && p.Port == port })
	if i < 0 {
		return nil
	}
	return s.Ports[i]
}

// Output returns the main output of a layer; nil if the reference recorded none.
func (s *Scene) Output(layer string) *Port { return s.first(layer, diagnose.MainOutputs) }

// Input returns the main input of a layer; nil if the reference recorded none.
func (s *Scene) Input(layer string) *Port { return s.first(layer, diagnose.MainInputs) }

func (s *Scene) first(layer string, ports []string) *Port {
	for _, port := range ports {
		if p := s.Find(layer, port); p != nil {
			return p
		}
	}
	return nil
}

// Golden decodes the reference's tensor of a port; nil for no port.
func (s *Scene) Golden(p *Port) *Array {
	if p == nil {
		return nil
	}
	return ArrayOf(p.Golden)
}

// Actual decodes what the candidate had at a port: the golden tensor where it recorded none, for
// the port's own error is not what is looked for. nil for no port, and for a target without a
// tensor.
func (s *Scene) Actual(p *Port) *Array {
	switch {
	case p == nil:
		return nil
	case p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape()):
		return ArrayOf(p.Actual)
	case p == s.Target:
		return nil
	}
	return ArrayOf(p.Golden)
}

// Weight decodes a weight of a layer, Weight("model.layers.0.self_attn.q_proj", "weight"): the one
// whose key's module is the end of the layer's name at a dot, the longest match, or else the only
// one of whose module the name is the end. nil if there is none.
func (s *Scene) Weight(layer, name string) *Array {
	if _, t := checkpoint.Weights(s.Weights).Of(layer, name); t != nil {
		return ArrayOf(t)
	}
	return nil
}

// Array is a tensor in float64, row-major: what hypotheses calculate with. Its rows are along the
// last axis; a scalar is one row of one element.
type Array struct {
	Shape []int
	Data  []float64 // as many elements as the product of Shape
}

// ArrayOf decodes a tensor. Integers and bools become numbers.
func ArrayOf(t *tensor.Tensor) *Array { return (*Array)(diagnose.ArrayOf(t)) }

// NewArray returns an array of zeros.
func NewArray(shape ...int) *Array { return (*Array)(diagnose.NewArray(shape...)) }

// Rows is the number of rows.
func (a *Array) Rows() int { return (*diagnose.Array)(a).Rows() }

// Width is the length of the last axis.
func (a *Array) Width() int { return (*diagnose.Array)(a).Width() }

// Row is row i, in place.
func (a *Array) Row(i int) []float64 { return (*diagnose.Array)(a).Row(i) }

// Map returns a new array of f of each element.
func (a *Array) Map(f func(float64) float64) *Array { return (*Array)((*diagnose.Array)(a).Map(f)) }

// Zip returns a new array of f of the elements of a and b; nil if their numbers differ.
func (a *Array) Zip(b *Array, f func(x, y float64) float64) *Array {
	if b == nil || len(a.Data) != len(b.Data) {
		return nil
	}
	c := &Array{Shape: a.Shape, Data: make([]float64, len(a.Data))}
	for i, x := range a.Data {
		c.Data[i] = f(x, b.Data[i])
	}
	return c
}
