package pattern

import (
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// downcast is a result that went through a type of fewer bits. It is proven if every number of the
// candidate is one of that type, and those of the reference are not. Where the other blocks do so, too,
// it is how the run computes, whose errors add up, and no fault of this layer is proven.
func downcast(p *pair) (out []diagnose.Prediction) {
	const id = "dtype/downcast"
	if !vec.All(p.Actual, vec.IsFinite) {
		return nil
	}
	types := vec.NarrowerThan(p.Target.Actual.DType(), p.Target.Golden.DType())
	for _, n := range types {
		if p.varied() && vec.All(p.Actual, n.Holds) && !vec.All(p.Right, n.Holds) && p.inTwins(n) {
			return []diagnose.Prediction{guess(id, 0, "every number is a %s, of %d bits of significand, here and in the other blocks: "+
				"it is how the run computes", n.Name, n.Bits)}
		}
	}
	for _, n := range types {
		if p.heldBy(n) {
			out = append(out, p.says(id, p.Actual, 0, 0,
				"every number is a %s, of %d bits of significand, and the error is of that size", n.Name, n.Bits))
		}
	}
	if name, rel := p.noiseOf(); name != "" {
		out = append(out, guess(id, -1, "the error is noise of relative L2 %.1e, the size of %s, and the same in every row; "+
			"any other noise of that size looks so", rel, name))
	}
	return out
}

// varied reports whether the candidate has enough different numbers for their type to say anything: a mask
// of zeros and ones is of any type.
func (p *pair) varied() bool {
	different := map[float64]bool{}
	for _, x := range p.Actual {
		if different[x] = true; len(different) > diagnose.PerParam {
			return true
		}
	}
	return false
}

// heldBy reports whether all of the candidate's numbers are of the type, the reference's are not,
// and each lies within the rounding of the type from the reference's: a few units of the element,
// or of the tensor where sums cancel.
func (p *pair) heldBy(n vec.Narrow) bool {
	different := vec.Count(p.Actual[1:], func(x float64) bool { return x != p.Actual[0] })
	if different < diagnose.PerParam || vec.All(p.Right, n.Holds) || !vec.All(p.Actual, n.Holds) || p.evenly(n) ||
		vec.Relative(p.Actual, p.Right) > ofTensor*n.Epsilon() {
		return false
	}
	// A product of rounded operands errs by some roundings of the largest terms: of the RMS for
	// those that cancel.
	rms := vec.RootMeanSquare(p.Right)
	for i, x := range p.Right {
		if math.Abs(p.Actual[i]-x) > ofElement*n.Epsilon()*(math.Abs(x)+rms) {
			return false
		}
	}
	return true
}

// inTwins reports whether the same output of every other block holds numbers of the type alone, too.
func (p *pair) inTwins(n vec.Narrow) bool {
	twins := 0
	for _, q := range p.Pass() {
		if q == p.Target || q.Port != p.Target.Port || q.Layer == p.Target.Layer || label.Stars(q.Layer) != label.Stars(p.Target.Layer) || !q.IsRecorded() {
			continue
		}
		if twins++; !vec.All(p.Part(q.Actual).Data, n.Holds) {
			return false
		}
	}
	return twins > 0
}

// evenly reports whether the candidate's numbers show a grid with one step for all, as integers have it:
// they are multiples of a step, also where a type of so many bits has a finer one. That is no rounding to
// the type, unless it has no finer step itself.
func (p *pair) evenly(n vec.Narrow) bool {
	step := math.Inf(1)
	for _, x := range p.Actual {
		if x != 0 {
			step = min(step, lowestBit(x))
		}
	}
	finer := math.Ldexp(step, n.Bits-2)
	return n.Holds(step/2) && vec.Count(p.Actual, func(x float64) bool { return x != 0 && math.Abs(x) < finer }) >= coarseLeast
}

// lowestBit is the largest power of two of which x is a multiple.
func lowestBit(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(1, exponent-53+bits.TrailingZeros64(uint64(math.Abs(math.Ldexp(fraction, 53)))))
}

// noiseOf returns the type whose rounding is as large as the error, if that has nothing to do with
// the values, neither in proportion nor as any function of them, and is alike in all rows; "" for none.
func (p *pair) noiseOf() (name string, rel float64) {
	rel = vec.Relative(p.Actual, p.Right)
	for _, size := range noiseSizes {
		if rel > size.above && rel < size.below {
			name = size.name
		}
	}
	if name == "" || len(p.Actual) < noiseLeast || len(p.rows) < noiseRows || p.Target.Actual.DType() != tensor.F32 {
		return "", 0
	}
	if _, w := p.Weights.Of(p.Target.Layer, "weight"); w != nil {
		return "", 0 // then rounded operands are tried, and proven
	}
	e := vec.Minus(p.Actual, p.Right)
	if vec.FollowsValue(p.Right, e) > noiseFollows {
		return "", 0
	}
	size, n := floats.Norm(e, 2), math.Sqrt(float64(len(e)))
	correlation := math.Abs(floats.Dot(e, p.Right)) / (size * floats.Norm(p.Right, 2))
	if max(correlation, math.Abs(floats.Sum(e))/(size*n)) > deviations/n+noiseBias {
		return "", 0
	}
	least, most := math.Inf(1), 0.0
	for r := range p.rows {
		f := vec.RootMeanSquare(p.row(e, r)) / max(vec.RootMeanSquare(p.row(p.Right, r)), math.SmallestNonzeroFloat64)
		least, most = min(least, f), max(most, f)
	}
	if most > alikeRows*least {
		return "", 0
	}
	return name, rel
}

// overflow is numbers that were too large for a type: infinite or cut at its largest number.
func overflow(p *pair) (out []diagnose.Prediction) {
	const id = "dtype/overflow"
	for _, t := range vec.Overflowing {
		if n := p.beyond(t.Limit); n > 0 {
			infinite := func(x float64) float64 {
				if math.Abs(x) > t.Limit {
					return math.Inf(int(math.Copysign(1, x)))
				}
				return x
			}
			out = append(out, p.says(id, p.clipped(t.Limit), 0, -1,
				"%d elements are beyond %g, the largest number of %s, and cut there", n, t.Limit, t.Name),
				p.says(id, vec.Map(p.Right, infinite), 0, -1,
					"%d elements are beyond %g, the largest number of %s, and became infinite", n, t.Limit, t.Name))
		}
	}
	isInf := func(x float64) bool { return math.IsInf(x, 0) }
	if n := vec.Count(p.Actual, isInf); n > 0 && vec.Count(p.Right, isInf) == 0 {
		out = append(out, guess(id, -2, "%d of %d elements are infinite, and none in the reference, whose largest is %.4g",
			n, len(p.Actual), vec.MaxAbs(p.Right)))
	}
	return out
}

// clipped is numbers that are cut at one that no type explains.
func clipped(p *pair) []diagnose.Prediction {
	largest := vec.MaxAbs(p.Actual)
	at := vec.Count(p.Actual, func(x float64) bool { return math.Abs(x) == largest })
	if n := p.beyond(largest); at > 1 && largest > 0 && n > 0 {
		return []diagnose.Prediction{p.says("value/clipped", p.clipped(largest), 1, 0,
			"%d elements are beyond ±%.6g and cut there", n, largest)}
	}
	return nil
}

func (p *pair) beyond(limit float64) int {
	return vec.Count(p.Right, func(x float64) bool { return math.Abs(x) > limit })
}

func (p *pair) clipped(limit float64) []float64 {
	return vec.Map(p.Right, func(x float64) float64 { return vec.Clip(x, limit) })
}

// nan is where the first NaN came from.
func nan(p *pair) []diagnose.Prediction {
	n := vec.Count(p.Actual, math.IsNaN)
	if n == 0 || vec.Count(p.Right, math.IsNaN) > 0 {
		return nil
	}
	first := slices.IndexFunc(p.Actual, math.IsNaN)
	where := tensor.FormatShape(p.Target.Golden.Index(p.rows[first/p.Width]*p.Width + first%p.Width))
	out := []diagnose.Prediction{guess("nan/first", -3, "%d of %d elements are NaN, the first at %s; the inputs hold none",
		n, len(p.Actual), where)}
	// What overflows becomes infinite, and the difference of two infinities is NaN: then the NaN is
	// not the cause.
	largest := 0.0
	for _, q := range p.Pass() {
		if q.Layer == p.Target.Layer && q.IsFloat() {
			largest = max(largest, vec.MaxAbs(p.Part(q.Golden).Data))
		}
	}
	if largest < mayOverflow && n < len(p.Actual) {
		value := slices.Clone(p.Right)
		for i, x := range p.Actual {
			if math.IsNaN(x) {
				value[i] = x
			}
		}
		out = append(out, p.says("nan/first", value, 0, 1, "%s; all others are right", out[0].Text))
	}
	return out
}
