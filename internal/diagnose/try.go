package diagnose

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Fits says how well somebody's own calculation of a layer's output fits: relative L2 over the rows
// that are not padding.
type Fits struct {
	Candidate float64 // ‖c − p(x_c)‖ / ‖p(x_c)‖: calculated from the candidate's inputs, against its output
	Golden    float64 // ‖p(x_g) − g‖ / ‖g‖: calculated from the golden inputs, against the golden
	Between   float64 // ‖c − g‖ / ‖g‖: the candidate against the golden
	Proven    bool    // the calculation explains the candidate: the rule by which causes are proven
	Right     bool    // the calculation does what the reference does, within the noise floor
}

// Judge compares a calculation with both sides of a port: onActual was made of the candidate's
// inputs, onGolden of the golden ones.
func (p *Port) Judge(onActual, onGolden *tensor.Tensor) (f Fits, err error) {
	shape := p.Golden.Shape()
	made := []*tensor.Tensor{onActual, onGolden}
	for i, t := range made {
		if t.Len() != p.Golden.Len() {
			return f, fmt.Errorf("the calculation gave %s, the layer's output is %s",
				tensor.FormatShape(t.Shape()), tensor.FormatShape(shape))
		}
		if made[i], err = t.Reshape(shape...); err != nil {
			return f, err
		}
	}
	if p.Actual == nil || !slices.Equal(p.Actual.Shape(), shape) {
		return f, fmt.Errorf("the candidate has no %s %s of shape %s", p.Layer, p.Port, tensor.FormatShape(shape))
	}
	all := []*tensor.Tensor{p.Golden, p.Actual, made[0], made[1]}
	if rows := p.counting(nil); rows != nil {
		for i, t := range all {
			if all[i] = SelectRows(t, rows); all[i] == nil {
				return f, fmt.Errorf("%s %s has nothing but padding", p.Layer, p.Port)
			}
		}
	}
	var results [3]compare.Result
	for i, c := range []struct {
		want, got int
		tolerance compare.Tolerance
	}{{0, 1, compare.Tolerance{EqualNaN: true}}, {2, 1, compare.Tolerance{EqualNaN: true}}, {0, 3, compare.Tolerance{}}} {
		if results[i], err = compare.Tensors(all[c.want], all[c.got], c.tolerance); err != nil {
			return f, err
		}
	}
	between, explains, right := results[0], results[1], results[2]
	return Fits{Candidate: distance(explains), Golden: distance(right), Between: distance(between),
		Proven: proves(explains, between, p.Floor), Right: right.Agrees(p.Floor)}, nil
}
