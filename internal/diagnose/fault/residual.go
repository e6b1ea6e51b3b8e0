package fault

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// sum is a calculation of a sum with other terms and factors.
func sum(o *rebuild.Sum, change func(terms []*rebuild.Value, factors []float64)) rebuild.Eval {
	s := *o
	s.Terms, s.Factors = slices.Clone(o.Terms), slices.Clone(o.Factors)
	change(s.Terms, s.Factors)
	return s.Eval
}

// factor is a calculation of a sum with another factor at one term.
func factor(o *rebuild.Sum, i int, f float64) rebuild.Eval {
	return sum(o, func(_ []*rebuild.Value, factors []float64) { factors[i] = f })
}

// ofTables is the cause of a wrong term in a sum of embeddings; "" for other sums.
func ofTables(o *rebuild.Sum, i int) string {
	if slices.ContainsFunc(o.Terms, func(x *rebuild.Value) bool { return !module.Table.Has(x.Owner()) }) {
		return ""
	}
	return TableID(o.Terms[i].Owner())
}

// ResidualMissing is a sum without one of its terms.
func ResidualMissing(o *rebuild.Sum) (out List) {
	for i, x := range o.Terms {
		if len(o.Terms) > 1 {
			f := out.add(factor(o, i, 0), 0, "%s is not added", x)
			f.ID, f.Unless = ofTables(o, i), unrecorded(x)
		}
	}
	return out
}

// ResidualScale is a sum in which a term, or all of it, is multiplied.
func ResidualScale(o *rebuild.Sum) (out List) {
	if len(o.Terms) < 2 {
		return nil
	}
	config := o.Scene().Config
	for i, x := range o.Terms {
		first := len(out)
		c := o.Factors[i]
		if math.Abs(c-1) > sameFactor {
			out.add(factor(o, i, 1), 0, "the factor %.6g of %s is missing", c, x)
			for _, key := range []string{"residual_multiplier", "residual_scale"} {
				if f, ok := config.Float(key); ok && math.Abs(f/c-1) < sameFactor {
					out.add(factor(o, i, 1), 1, "%s of the config is ignored", key).ID = "config/" + key
				}
			}
		}
		for _, f := range []float64{2, 0.5, -1} {
			out.add(factor(o, i, f*c), 1, "%s is added %g times", x, f*c)
		}
		text := x.String() + " is added with a factor"
		if o.Out.IsTarget() {
			f := fitted(o, i, text)
			f.Rank = 1
			out = append(out, f)
		} else {
			out = append(out, o.Out.Searched(text, -maxFactor, maxFactor, nil,
				func(f float64) rebuild.Eval { return factor(o, i, f) }))
		}
		for k := range out[first:] {
			out[first+k].Unless = unrecorded(x)
		}
	}
	for _, f := range []float64{2, 0.5, math.Sqrt2, 1 / math.Sqrt2} {
		out.add(rebuild.Eval(o.Eval).Times(f), 1, "the sum is multiplied by %.4g", f)
	}
	return out
}

// fitted fits the factor of one term to the candidate.
func fitted(o *rebuild.Sum, i int, text string) rebuild.Fault {
	rest := factor(o, i, 0)
	return o.Out.Scaled(text, rebuild.SampleRows, func(e *rebuild.Evaluation, rows []int) ([][]float64, []float64) {
		x, rest := e.Beside(o.Terms[i], o.Out, rows), rest(e, rows)
		if x == nil || rest == nil {
			return nil, nil
		}
		return [][]float64{x}, rest
	})
}

// ResidualSource is a sum with another value for one of its terms.
func ResidualSource(o *rebuild.Sum) (out List) {
	for i, x := range o.Terms {
		for _, other := range o.Graph().Alikes(o.Out) {
			if len(o.Terms) > 1 && !slices.Contains(o.Terms, other) {
				f := out.add(sum(o, func(terms []*rebuild.Value, _ []float64) { terms[i] = other }), 1,
					"%s is added in place of %s", other, x)
				f.ID, f.Unless = ofTables(o, i), unrecorded(x, other)
			}
		}
	}
	return out
}

// ResidualExcess is a sum with one more term.
func ResidualExcess(o *rebuild.Sum) (out List) {
	if len(o.Terms) < 2 {
		return nil
	}
	for _, x := range o.Graph().Alikes(o.Out) {
		if slices.Contains(o.Terms, x) {
			continue
		}
		c := *o
		c.Terms, c.Factors = append(slices.Clone(o.Terms), x), append(slices.Clone(o.Factors), 1)
		out.add(c.Eval, 2, "%s is added, too", x).Unless = unrecorded(x)
	}
	return out
}

// Multiple is a factor that is missing, or another one: embeddings scaled by √hidden.
func Multiple(o *rebuild.Sum) (out List) {
	if len(o.Terms) > 1 {
		return nil
	}
	in, c, id := o.Terms[0], o.Factors[0], "value/scale"
	if module.Table.Has(in.Owner()) {
		id = "embedding/scale"
	}
	for _, w := range []struct {
		text string
		f    float64
	}{{"is missing", 1}, {"is applied twice", c * c}, {"is inverted", 1 / c}} {
		out.add(factor(o, 0, w.f), 0, "the factor %.6g of %s %s", c, in, w.text).ID = id
	}
	if f, ok := o.Scene().Config.Float("embedding_multiplier"); ok && math.Abs(f/c-1) < sameFactor {
		out.add(factor(o, 0, 1), 1, "embedding_multiplier of the config is ignored").ID = "config/embedding_multiplier"
	}
	f := fitted(o, 0, fmt.Sprintf("the factor of %s is not %.6g but another", in, c))
	f.ID, f.Rank = id, 1
	return append(out, f)
}

// Source is another value in the place of one that the reference hands on as it is.
func Source(o *rebuild.Alias) (out List) {
	g, from := o.Graph(), o.In.Layer()
	activation, _ := g.Explain(o.In).(*rebuild.Unary)
	multiple, _ := o.In.Op.(*rebuild.Sum)
	for _, x := range g.Alikes(o.Out) {
		if x == o.In || exchangeID(from, x.Layer()) != "" || multiple != nil && slices.Equal(multiple.Terms, []*rebuild.Value{x}) {
			continue // what is exchanged, and a factor that is missing, are faults of their own
		}
		id, rank, input := "residual/source", 1, from != "" && g.InputOf(from) == x
		switch {
		case input && from == label.Block(from) && label.Block(o.Out.Taker()) == "":
			id, rank = "config/num_hidden_layers", 0
		case input && module.IsNorm(from):
			id = "norm/order"
		case (from == "" || input && g.IsLeaf(from)) && activation != nil && activation.In == x:
			id = "activation/missing"
		}
		f := out.add(rebuild.Same(x), rank, "it is given %s in place of %s", x, o.In)
		if f.ID = id; id == "residual/source" || id == "norm/order" {
			f.Unless = unrecorded(o.In, x)
		}
		both := &rebuild.Sum{Made: o.Made, Terms: []*rebuild.Value{o.In, x}, Factors: []float64{1, 1}}
		f = out.add(both.Eval, 2, "it is given the sum of %s and %s, and not the first alone", o.In, x)
		f.ID, f.Unless = "residual/source", unrecorded(o.In, x)
	}
	if from != "" {
		exchanged(o.Made, o.Out, from, func(id string, x *rebuild.Value) {
			out.add(rebuild.Same(x), 0, "it is given %s in place of %s", x, o.In).ID = id
		})
	}
	if p, ok := o.In.Op.(*rebuild.Part); ok {
		first := min(p.First, 1)
		out.add(rebuild.Same(p.In).Then(func(x []float64) []float64 { return op.Select(x, 2, []int{first}) }), 0,
			"%s is taken from every second column of %s, from column %d on", label.Last(p.Out.Owner()), p.In, first).ID =
			"linear/gate-up"
	}
	if module.Table.Has(from) {
		out.scaledTable(rebuild.Same(o.In), o.Out.Width)
	}
	return out
}

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
	raw := with(o, func(m *rebuild.Modulation) { m.X = in })
	out.add(raw, 0, "what is modulated is the input of %s and not its output", layer).ID = "norm/order"
	if n, ok := g.Explain(o.X).(*rebuild.Norm); ok && n.Weight == nil {
		out.add(raw.Then(n.Of), 0, "%s comes after the modulation and not before it", layer).ID = order
	}
	return out
}
