package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// ways are modulations out = x·(X + XM·m) + z·(Z + ZM·m) in place of the right one.
type ways []struct {
	id, text string
	op.Modulation
}

const (
	missing, order = "modulation/missing", "modulation/order"
	noResidual     = "residual/missing"
)

var wrongGates = ways{
	{missing, "the gate is missing", op.Modulation{X: 1, Z: 1}},
	{missing, "the gate is 1 + gate", op.Modulation{X: 1, Z: 1, ZM: 1}},
	{noResidual, "x, to which gate·y is added, is missing", op.Modulation{ZM: 1}},
	{noResidual, "gate·y is not added", op.Modulation{X: 1}},
	{order, "the gate multiplies x + y", op.Modulation{XM: 1, ZM: 1}},
	{order, "the gate multiplies x and not y", op.Modulation{XM: 1, Z: 1}},
}

var wrongScaleShifts = ways{
	{missing, "1 + is missing: x·scale + shift", op.Modulation{XM: 1, Z: 1}},
	{missing, "the shift is missing", op.Modulation{X: 1, XM: 1}},
	{missing, "the scale is missing", op.Modulation{X: 1, Z: 1}},
	{missing, "scale and shift are missing", op.Modulation{X: 1}},
	{order, "the shift is added before the scale: (x + shift)·(1 + scale)", op.Modulation{X: 1, XM: 1, Z: 1, ZM: 1}},
	{order, "the scale is subtracted: x·(1 − scale) + shift", op.Modulation{X: 1, XM: -1, Z: 1}},
}

// Modulation is a modulation with another formula, other parts of the projection, or other values.
func Modulation(o *rebuild.Modulation) (out List) {
	add := func(id string, rank int, text string, change func(m *rebuild.Modulation)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	formulas := wrongScaleShifts
	if o.Z != nil {
		formulas = wrongGates
	} else {
		out = normBefore(o)
	}
	for _, w := range formulas {
		add(w.id, 0, w.text, func(m *rebuild.Modulation) { m.Modulation = w.Modulation })
	}
	if o.Z == nil {
		add(missing, 0, "1 + is missing, and scale and shift are exchanged", func(m *rebuild.Modulation) {
			m.Modulation, m.Part, m.Shift = op.Modulation{XM: 1, Z: 1}, o.Shift, o.Part
		})
	}
	for a := range o.Parts {
		if o.Z != nil {
			if a != o.Part {
				add(order, 0, fmt.Sprintf("part %d of the modulation is the gate, and not part %d", a, o.Part),
					func(m *rebuild.Modulation) { m.Part = a })
			}
			continue
		}
		for b := range o.Parts {
			if a != b && (a != o.Part || b != o.Shift) {
				add(order, 0, fmt.Sprintf("scale and shift are parts %d and %d of the modulation, and not %d and %d",
					a, b, o.Part, o.Shift), func(m *rebuild.Modulation) { m.Part, m.Shift = a, b })
			}
		}
	}
	if o.Z == nil {
		return out
	}
	for _, other := range o.Graph().Alikes(o.Out) {
		if other != o.X && other != o.Z {
			add("residual/source", 1, fmt.Sprintf("gate·y is added to %s and not to %s", other, o.X),
				func(m *rebuild.Modulation) { m.X = other })
			add("residual/source", 2, fmt.Sprintf("the gate multiplies %s and not %s", other, o.Z),
				func(m *rebuild.Modulation) { m.Z = other })
		}
	}
	return out
}

// normBefore is the norm in front of a modulation left out, or behind it.
func normBefore(o *rebuild.Modulation) (out List) {
	g, layer := o.Graph(), o.X.Layer()
	in := g.InputOf(layer)
	if !g.IsLeaf(layer) || !module.IsNorm(layer) || in == nil || !in.IsLike(o.X) {
		return nil
	}
	raw := *o
	raw.X = in
	out.add(raw.Eval, 0, "what is modulated is the input of %s and not its output", layer).ID = "norm/order"
	if n, ok := g.Explain(o.X).(*rebuild.Norm); ok && n.Weight == nil {
		out.add(rebuild.Eval(raw.Eval).Then(n.Of), 0, "%s comes after the modulation and not before it", layer).ID = order
	}
	return out
}
