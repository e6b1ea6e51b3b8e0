package rebuild

import (
	"cmp"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Value is one tensor of the reference, under all the names by which it was recorded: a layer's
// output is often the next one's input.
type Value struct {
	Rows, Width int
	Op          Op // how the reference made it; nil if Explain did not find out

	g      *Graph
	ports  []*diagnose.Port // in the order in which they existed
	at     int              // the time of the first of them
	golden *tensor.Tensor
	actual *tensor.Tensor // of the candidate; nil if it recorded none
	agrees bool           // actual is right
	tried  bool           // to explain it
}

func (g *Graph) value(p *diagnose.Port, at int) *Value {
	return &Value{g: g, at: at, golden: p.Golden, Rows: p.Rows(), Width: p.Width()}
}

// add notes a port that holds the value. What the candidate has there counts unless the port is the
// target.
func (v *Value) add(p *diagnose.Port) {
	v.ports = append(v.ports, p)
	v.record(p)
}

// record takes what the candidate has at a port, if it has anything and the value nothing yet.
func (v *Value) record(p *diagnose.Port) {
	if v.actual == nil && p != v.g.Scene.Target && p.IsRecorded() {
		v.actual, v.agrees = p.Actual, p.Agrees
	}
}

// IsTarget reports whether the value is the wrong one.
func (v *Value) IsTarget() bool { return v == v.g.Target }

// BecomesTarget reports whether the wrong value is this one, handed on.
func (v *Value) BecomesTarget() bool {
	a, ok := v.g.Target.Op.(*Alias)
	return ok && a.In == v
}

// IsFloat reports whether the value is of numbers, and not of ids.
func (v *Value) IsFloat() bool { return v.golden.DType().IsFloat() }

// IsRecorded reports whether the candidate recorded the value.
func (v *Value) IsRecorded() bool { return v.actual != nil }

// Golden reads rows of the reference's tensor.
func (v *Value) Golden(rows []int) []float64 { return op.Read(v.golden, v.Width, rows) }

// Wrong reads rows of the target as the candidate has them. The value has its shape.
func (v *Value) Wrong(rows []int) []float64 {
	return op.Read(v.g.Scene.Target.Actual, v.Width, rows)
}

// IsLike reports whether two values have the same number of rows and columns.
func (v *Value) IsLike(o *Value) bool { return v.Width == o.Width && v.Rows == o.Rows }

// Layer is the layer that put the value out first, "" for one that only went in.
func (v *Value) Layer() string {
	for _, p := range v.ports {
		if !p.IsInput() {
			return p.Layer
		}
	}
	return ""
}

// Taker is the layer of the value's first port.
func (v *Value) Taker() string { return v.ports[0].Layer }

// Owner is the layer that put the value out first, or else the first that took it.
func (v *Value) Owner() string { return cmp.Or(v.Layer(), v.Taker()) }

// String names the value for people.
func (v *Value) String() string {
	if layer := v.Layer(); layer != "" {
		return "the output of " + layer
	}
	return "the input of " + v.Taker()
}

// Noise is the relative error that a right op may have on the golden tensors: they were rounded on
// their way.
func (v *Value) Noise() float64 {
	floor := 0.0
	for _, p := range v.ports {
		floor = max(floor, p.Floor.RelL2)
	}
	if d := v.golden.DType(); d.IsFloat() && d != tensor.F64 && d != tensor.F32 && d != tensor.F16 {
		return max(floor, noiseB16More)
	}
	return max(floor, v.Rounding())
}

// Rounding is how far an op of one layer, calculated again of its recorded inputs, may be from what
// was recorded of it.
func (v *Value) Rounding() float64 {
	switch v.golden.DType() {
	case tensor.F64:
		return noise64
	case tensor.F32:
		return noise32
	case tensor.F16:
		return noise16
	}
	return noiseB16
}

// rowAt is the row of v that belongs to row i of out: v may lack leading axes (a bias, a position
// table) or inner ones (one row of modulation for each of the batch). −1 if they do not go
// together.
func (v *Value) rowAt(i int, out *Value) int {
	shape, own := out.golden.Shape(), v.golden.Shape()
	switch {
	case v.Rows == out.Rows:
		return i
	case v.Rows == 0 || out.Rows%v.Rows != 0:
		return -1
	case len(shape) > 1 && v.Rows == shape[0] && own[0] == shape[0]:
		return i / (out.Rows / v.Rows)
	}
	return i % v.Rows
}
