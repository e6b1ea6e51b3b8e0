package piece

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// Scheme is a way in which engines round what products and tables take: to narrower floats, or to whole
// numbers of 8 bits.
type Scheme struct {
	Text  string    // in words, one of a kind
	Sized bool      // only the size of what it makes is known: kernels round in other ways, too
	Also  []*Scheme // what single pieces of such a run have in its place

	product, table func(*replay.Array, replay.Operand) *replay.Array // nil for what stays
}

// Operands rounds what an operator takes.
func (s *Scheme) Operands(a *replay.Array, o replay.Operand) *replay.Array {
	round := s.product
	if o.Table {
		round = s.table
	}
	if round == nil {
		return a
	}
	return round(a, o)
}

// and returns a scheme for products with another one for tables.
func (s *Scheme) and(table *Scheme) *Scheme {
	both := *s
	both.Text, both.table, both.Also = s.Text+", and "+table.Text, table.table, nil
	for _, a := range s.Also {
		both.Also = append(both.Also, a.and(table))
	}
	return &both
}

// Products are those that engines have, the exact ones first. A run that has numbers of 8 bits in
// its records may round to steps that were fixed before: its ranges are not those of its numbers, and
// only about as large.
func Products(fixed bool) (all []*Scheme) {
	for _, f := range narrow {
		weighted := &Scheme{Text: "products with weights round their operands to " + f.text} // attention may stay as it is
		weighted.product = func(a *replay.Array, o replay.Operand) *replay.Array {
			if !o.Weighted {
				return a
			}
			return f.operand(a, o)
		}
		all = append(all, &Scheme{Text: "products round their operands to " + f.text, Also: []*Scheme{weighted}, product: f.operand})
	}
	sized := *all[len(all)-1]
	sized.Sized, sized.Also = true, nil
	steps := &Scheme{Text: "products take 8 bits, of steps that were fixed before", Sized: true, product: activationGrids[0].operand}
	for _, acts := range activationGrids {
		for _, weights := range weightGrids {
			if acts == nil && weights == nil {
				continue
			}
			s := eightBits(acts, weights)
			switch {
			case acts != nil && weights != nil: // what was looked up in 8 bits is not rounded again; convolutions have one step for all
				s.Also = []*Scheme{eightBits(nil, weights), eightBits(acts, weights.whole())}
			case fixed:
				s.Also = []*Scheme{steps}
			}
			all = append(all, s)
		}
	}
	if all = append(all, &sized); fixed {
		all = append(all, steps)
	}
	return all
}

// eightBits is the scheme of products with weights that has 8 bits for what they take, for the weights, or
// both; nil for neither.
func eightBits(acts, weights *grid) *Scheme {
	s := &Scheme{Text: "products with weights take " + acts.String() + " times " + weights.String()}
	s.product = func(a *replay.Array, o replay.Operand) *replay.Array {
		switch {
		case !o.Weighted:
			return a
		case o.Weight:
			return weights.operand(a, o)
		}
		return acts.operand(a, o)
	}
	return s
}

// Tables are those of embeddings.
func Tables() (all []*Scheme) {
	for _, g := range weightGrids {
		if g != nil {
			all = append(all, &Scheme{Text: "embeddings are " + g.String(), table: g.operand})
		}
	}
	return all
}

// grid is how whole numbers stand for the numbers of an array: step·(q − zero), with q from 0 to levels,
// step = (max − min)/levels and zero = −min/step, of float32. nil is the numbers themselves.
type grid struct {
	lines     bool    // a step for each line that is summed over, not one for all
	symmetric bool    // min is −max
	free      bool    // min is that of the numbers, which need not hold 0, and zero no whole number
	inverse   bool    // numbers are multiplied with 1/step, as torch does
	levels    float64 // 127 and 128 are of 7 bits, which keep sums of pairs in 16 bits
}

// The grids of ONNX Runtime (dynamic quantisation) and torch (fbgemm): int8 from −127, −128 and −64 on,
// uint8, 7 bits.
var (
	activationGrids = []*grid{{levels: 255}, {levels: 127, inverse: true}, {symmetric: true, levels: 254}, {symmetric: true, levels: 255},
		{lines: true, levels: 255}, {lines: true, symmetric: true, levels: 254}, {lines: true, symmetric: true, levels: 255}, nil}
	weightGrids = []*grid{{symmetric: true, levels: 254}, {symmetric: true, levels: 255, inverse: true}, {symmetric: true, levels: 128}, {levels: 255},
		{levels: 127}, {lines: true, symmetric: true, levels: 254}, {lines: true, symmetric: true, levels: 255, inverse: true},
		{lines: true, symmetric: true, levels: 128}, {lines: true, levels: 255}, {lines: true, free: true, inverse: true, levels: 255}, nil}
)

func (g *grid) String() string {
	if g == nil {
		return "float32"
	}
	of, kind := "the whole tensor", "asymmetric"
	if g.lines {
		of = "each line"
	}
	switch {
	case g.symmetric:
		kind = "symmetric"
	case g.free:
		kind = "shifted"
	}
	return fmt.Sprintf("%s 8 bits of %s (%g steps)", kind, of, g.levels)
}

// operand returns the numbers that the grid has for those of an array, of which lines lie along the axis that is summed over.
func (g *grid) operand(a *replay.Array, o replay.Operand) *replay.Array {
	if g == nil {
		return a
	}
	shape, x := a.Shape(), a.Floats()
	n, step := len(x), 1
	if g.lines && len(shape) > 0 {
		n, step = shape[o.Sum], product(shape[o.Sum+1:])
	}
	for i := range x {
		if i/step%n == 0 { // a line begins
			g.line(x[i:], n, step)
		}
	}
	return replaced(a, x)
}

// line rounds n numbers, each step apart from the next.
func (g *grid) line(x []float64, n, step int) {
	lo, hi := 0.0, 0.0
	if g.free {
		lo, hi = x[0], x[0]
	}
	for k := range n {
		lo, hi = math.Min(lo, x[k*step]), math.Max(hi, x[k*step])
	}
	if g.symmetric {
		hi = math.Max(hi, -lo)
		lo = -hi
	}
	unit := float32((hi - lo) / g.levels)
	if unit == 0 || math.IsInf(float64(unit), 0) || unit != unit {
		return
	}
	zero := float64(float32(-lo) / unit)
	switch {
	case g.symmetric:
		zero = math.Ceil(g.levels / 2)
	case !g.free:
		zero = math.RoundToEven(zero)
	}
	for k := range n {
		q := float32(x[k*step]) / unit
		if g.inverse {
			q = float32(x[k*step]) * (1 / unit)
		}
		whole := math.RoundToEven(float64(q))
		if g.free {
			whole = math.RoundToEven(float64(q)+zero) - zero
		}
		x[k*step] = float64(unit) * (math.Min(math.Max(whole+zero, 0), g.levels) - zero)
	}
}

// narrowing is a rounding of float32 to a narrower float.
type narrowing struct {
	text  string
	round func(float32) float32
}

// narrow are those that engines have, TF32 last.
var narrow = []narrowing{
	{"bfloat16", smallfloat.RoundBF16},
	{"float16", smallfloat.RoundF16},
	{"10 bits of mantissa, to nearest (TF32)", func(v float32) float32 { return tf32(v, 1<<12-1+math.Float32bits(v)>>13&1) }},
	{"10 bits of mantissa, ties away (TF32)", func(v float32) float32 { return tf32(v, 1<<12) }}, // cvt.rna.tf32.f32
	{"10 bits of mantissa (TF32)", func(v float32) float32 { return tf32(v, 0) }},
}

// tf32 cuts a float32 to 10 bits of mantissa, with something added before.
func tf32(v float32, add uint32) float32 {
	return math.Float32frombits((math.Float32bits(v) + add) &^ (1<<13 - 1))
}

func (n narrowing) operand(a *replay.Array, _ replay.Operand) *replay.Array {
	if a.DType() != tensor.F32 {
		return a
	}
	x := a.Floats()
	for i, v := range x {
		x[i] = float64(n.round(float32(v)))
	}
	return replaced(a, x)
}

// replaced returns an array with other numbers.
func replaced(a *replay.Array, x []float64) *replay.Array {
	b, err := replay.Of(a.DType(), a.Shape(), x)
	if err != nil { // of a type that has no such numbers
		return a
	}
	return b
}

// whole returns the grid with one step for all.
func (g *grid) whole() *grid {
	one := *g
	one.lines = false
	return &one
}

// gridOf returns the different numbers of a tensor, ascending, if they are a step of 8 bits apart, or
// some; else nil.
func gridOf(x []float64) []float64 {
	values := slices.Compact(slices.Sorted(slices.Values(x)))
	if len(values) < leastValues || len(values) > 256 {
		return nil
	}
	step := stepOf(values)
	for _, v := range values {
		if k := (v - values[0]) / step; !(k < 255.5 && math.Abs(k-math.Round(k)) < offGrid*(k+1)) {
			return nil
		}
	}
	return values
}

// stepOf is the least distance of two numbers that are sorted.
func stepOf(values []float64) float64 {
	step := math.Inf(1)
	for i, v := range values[1:] {
		step = math.Min(step, v-values[i])
	}
	return step
}

// Snapped returns what was made, with the record's number wherever it rounds to that, if the record has
// numbers of 8 bits.
func Snapped(made, record []float64) []float64 {
	values := gridOf(record)
	if values == nil {
		return made
	}
	lo, hi, most := values[0], values[len(values)-1], (0.5+offGrid)*stepOf(values)
	out := slices.Clone(made)
	for i, v := range record {
		if d := out[i] - v; math.Abs(d) <= most || v == lo && d < 0 || v == hi && d > 0 {
			out[i] = v
		}
	}
	return out
}
