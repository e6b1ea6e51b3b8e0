package diagnose

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// values is what is done to every element alike: one value everywhere, or a factor, an offset,
// another sign.
func values(s *Scene) []prediction {
	switch {
	case vec.AllSame(s.actual):
		return []prediction{s.constant(s.actual[0])}
	case !vec.All(s.actual, vec.IsFinite):
		return nil
	}
	const sign = "value/sign"
	size := vec.Map(s.right, math.Abs)
	out := []prediction{
		s.says(sign, vec.Scaled(s.right, -1), 0, 0, "the sign is wrong: −x"),
		s.says(sign, size, 0, 0, "the sign is lost: |x|"),
		s.says(sign, vec.Scaled(size, -1), 0, 0, "the sign is lost: −|x|"),
	}
	if f := vec.Project(s.right, s.actual); f != 0 && math.Abs(f-1) > sameScale/10 {
		id, params := "value/scale", 1
		name, exact := s.nameOf(f)
		if exact != 0 {
			f, params = exact, 0
			if s.isEmbedded() {
				id = "embedding/scale"
			}
		}
		out = append(out, s.says(id, vec.Scaled(s.right, f), params, 0, "every element is multiplied by %s", name))
	}
	if o := floats.Sum(vec.Minus(s.actual, s.right)) / float64(len(s.actual)); o != 0 {
		added := vec.Map(s.right, func(x float64) float64 { return x + o })
		out = append(out, s.says("value/offset", added, 1, 0, "%.6g is added to every element", o))
	}
	return out
}

// isEmbedded reports whether the target is what a layer makes of whole numbers, as a table of embeddings does, or stands
// directly after that.
func (s *Scene) isEmbedded() (is bool) {
	for _, x := range s.pass {
		if s.Target.IsInput() && label.Within(x.Layer, s.Target.Layer) {
			return is
		}
		if x.IsOutput() && slices.Equal(x.Golden.Shape(), s.Target.Golden.Shape()) {
			in := s.input(x.Layer)
			is = in != nil && !in.IsFloat()
		}
		if x == s.Target {
			return is
		}
	}
	return false
}

func (s *Scene) constant(k float64) prediction {
	id, params, text := "value/constant", 1, fmt.Sprintf("every element is %.6g", k)
	if k == 0 {
		params, text = 0, "every element is 0: is a weight missing? MAX reads a missing one as zeros"
		if s.Target.IsOutput() && label.TypeTables.Has(s.Target.Layer) {
			id = "embedding/type"
		}
	}
	return s.says(id, vec.Map(s.right, func(float64) float64 { return k }), params, 0, "%s", text)
}

// nameOf says where a factor may come from: the sizes of the model, their roots, or a small whole
// number. exact is that factor, 0 for none.
func (s *Scene) nameOf(f float64) (text string, exact float64) {
	hidden := s.Config.Hidden()
	sizes := []int{s.width, hidden, hidden / max(s.Config.Heads(), 1)}
	names := []string{", the width", ", the hidden size", ", the size of a head"}
	for n := 2; n <= wholeFactors; n++ {
		sizes = append(sizes, n)
	}
	for i, n := range sizes {
		size, name := float64(n), fmt.Sprint(n)
		forms := []string{"%s", "1/%s", "√%s", "1/√%s"}
		factors := []float64{size, 1 / size, math.Sqrt(size), 1 / math.Sqrt(size)}
		if i < len(names) {
			name += names[i]
		} else {
			factors = factors[:2]
		}
		for k, is := range factors {
			if text := fmt.Sprintf(forms[k], name); n > 0 && math.Abs(f/is-1) < sameScale {
				if k > 1 { // who reads a root sees no number
					text = fmt.Sprintf("%.6g, ", f) + text
				}
				return text, is
			}
		}
	}
	return fmt.Sprintf("%.6g", f), 0
}

// dropout is zeros strewn over the tensor, with the rest scaled by 1/(1−p): a dropout that is still
// on. The zeros must come at the rate that the factor of the others tells, within some standard
// deviations of a binomial share.
func dropout(s *Scene) []prediction {
	zeros, n := 0, 0
	var xy, xx float64
	scale := vec.RootMeanSquare(s.right)
	isZero := func(i int) bool { return math.Abs(s.actual[i]) < droppedBelow*scale }
	for i, x := range s.right {
		switch {
		case math.Abs(x) < tellsNothing*scale:
			continue
		case isZero(i):
			zeros++
		default:
			xy, xx = xy+x*s.actual[i], xx+x*x
		}
		n++
	}
	if n < PerParam || zeros == 0 || zeros == n || xx == 0 {
		return nil
	}
	factor, share, each := xy/xx, float64(zeros)/float64(n), 1/float64(n)
	rate := 1 - 1/factor
	if !(rate > 0 && rate < 1 && math.Abs(share-rate) <= deviations*math.Sqrt(rate*(1-rate)*each)+each) {
		return nil
	}
	value := make([]float64, len(s.right))
	for i, x := range s.right {
		if !isZero(i) {
			value[i] = factor * x
		}
	}
	return []prediction{s.says("dropout", value, 1, 0, "dropout is on: %.3g of the elements are 0, the others are multiplied by %.4g", rate, factor)}
}

// downcast is a result that went through a type of fewer bits. It is proven if every number of the
// candidate is one of that type, and those of the reference are not. Where the other blocks do so, too,
// it is how the run computes, whose errors add up, and no fault of this layer is proven.
func downcast(s *Scene) (out []prediction) {
	const id = "dtype/downcast"
	if !vec.All(s.actual, vec.IsFinite) || !s.varied() {
		return nil
	}
	if name, off := s.noise(); name != "" {
		out = append(out, guess(id, -1, "the error is noise of relative L2 %.1e, the size of %s, and the same in every row; "+
			"any other noise of that size looks so", off, name))
	}
	for _, n := range vec.NarrowerThan(s.Target.Actual.DType(), s.Target.Golden.DType()) {
		if vec.All(s.right, n.Holds) || !vec.All(s.actual, n.Holds) {
			continue
		}
		if s.inTwins(n) {
			return []prediction{guess(id, 0, "every number is a %s, of %d bits of significand, here and in the other blocks: "+
				"it is how the run computes", n.Name, n.Bits)}
		}
		if s.rounded(n) {
			out = append(out, s.says(id, s.actual, 0, 0,
				"every number is a %s, of %d bits of significand, and the error is of that size", n.Name, n.Bits))
		}
	}
	return out
}

// varied reports whether the candidate has enough different numbers for their type to say anything: a mask
// of zeros and ones is of any type.
func (s *Scene) varied() bool {
	different := map[float64]bool{}
	return slices.ContainsFunc(s.actual, func(x float64) bool { different[x] = true; return len(different) > PerParam })
}

// rounded reports whether each of the candidate's numbers lies within the rounding of a type from the
// reference's: a few units of the element, or of the tensor where sums cancel.
func (s *Scene) rounded(n vec.Narrow) bool {
	if s.evenly(n) || vec.Relative(s.actual, s.right) > ofTensor*n.Epsilon() {
		return false
	}
	// A product of rounded operands errs by some roundings of the largest terms: of the RMS for
	// those that cancel.
	rms := vec.RootMeanSquare(s.right)
	for i, x := range s.right {
		if math.Abs(s.actual[i]-x) > ofElement*n.Epsilon()*(math.Abs(x)+rms) {
			return false
		}
	}
	return true
}

// inTwins reports whether the same output of every other block holds numbers of the type alone, too.
func (s *Scene) inTwins(n vec.Narrow) bool {
	twins := 0
	for _, q := range s.pass {
		if q == s.Target || q.Port != s.Target.Port || q.Layer == s.Target.Layer || label.Stars(q.Layer) != label.Stars(s.Target.Layer) || !q.IsRecorded() {
			continue
		}
		if twins++; !vec.All(s.all(q.Actual), n.Holds) {
			return false
		}
	}
	return twins > 0
}

// evenly reports whether the candidate's numbers show a grid with one step for all, as integers have it:
// they are multiples of a step, also where a type of so many bits has a finer one. That is no rounding to
// the type, unless it has no finer step itself.
func (s *Scene) evenly(n vec.Narrow) bool {
	step := math.Inf(1)
	for _, x := range s.actual {
		if x != 0 {
			step = min(step, lowestBit(x))
		}
	}
	finer := math.Ldexp(step, n.Bits-2)
	return n.Holds(step/2) && vec.Count(s.actual, func(x float64) bool { return x != 0 && math.Abs(x) < finer }) >= coarseLeast
}

// lowestBit is the largest power of two of which x is a multiple.
func lowestBit(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(1, exponent-53+bits.TrailingZeros64(uint64(math.Abs(math.Ldexp(fraction, 53)))))
}

// noise returns the type whose rounding is as large as the error, if that is no function of the values and alike in all
// rows; "" for none, and where rounded operands can be tried.
func (s *Scene) noise() (name string, off float64) {
	off = vec.Relative(s.actual, s.right)
	i := slices.IndexFunc(noiseSizes, func(n noiseSize) bool { return off > n.above && off < n.below })
	_, weight := s.Weights.Of(s.Target.Layer, "weight")
	if i < 0 || weight != nil || len(s.actual) < noiseLeast || len(s.rows) < noiseRows || s.Target.Actual.DType() != tensor.F32 {
		return "", 0
	}
	e, n := vec.Minus(s.actual, s.right), math.Sqrt(float64(len(s.actual)))
	proportional := math.Abs(floats.Dot(e, s.right)) / (floats.Norm(e, 2) * floats.Norm(s.right, 2))
	biased := math.Abs(floats.Sum(e)) / (floats.Norm(e, 2) * n)
	if max(proportional, biased) > deviations/n+noiseBias || vec.FollowsValue(s.right, e) > noiseFollows {
		return "", 0
	}
	least, most := math.Inf(1), 0.0
	for r := range s.rows {
		f := vec.RootMeanSquare(s.row(e, r)) / max(vec.RootMeanSquare(s.row(s.right, r)), math.SmallestNonzeroFloat64)
		least, most = min(least, f), max(most, f)
	}
	if most > alikeRows*least {
		return "", 0
	}
	return noiseSizes[i].name, off
}

// overflow is numbers that were too large for a type: infinite or cut at its largest number.
func overflow(s *Scene) (out []prediction) {
	const id = "dtype/overflow"
	for _, t := range vec.Overflowing {
		if n := s.beyond(t.Limit); n > 0 {
			infinite := func(x float64) float64 {
				if math.Abs(x) > t.Limit {
					return math.Inf(int(math.Copysign(1, x)))
				}
				return x
			}
			const text = "%d elements are beyond %g, the largest number of %s, and "
			out = append(out, s.says(id, s.clippedAt(t.Limit), 0, -1, text+"cut there", n, t.Limit, t.Name),
				s.says(id, vec.Map(s.right, infinite), 0, -1, text+"became infinite", n, t.Limit, t.Name))
		}
	}
	isInf := func(x float64) bool { return math.IsInf(x, 0) }
	if n := vec.Count(s.actual, isInf); n > 0 && vec.Count(s.right, isInf) == 0 {
		out = append(out, guess(id, -2, "%d of %d elements are infinite, and none in the reference, whose largest is %.4g",
			n, len(s.actual), vec.MaxAbs(s.right)))
	}
	return out
}

// beyond counts the right numbers that are too large for a limit.
func (s *Scene) beyond(limit float64) int {
	return vec.Count(s.right, func(x float64) bool { return math.Abs(x) > limit })
}

func (s *Scene) clippedAt(limit float64) []float64 {
	return vec.Map(s.right, func(x float64) float64 { return vec.Clip(x, limit) })
}

// nan is where the first NaN came from.
func nan(s *Scene) []prediction {
	n := vec.Count(s.actual, math.IsNaN)
	if n == 0 || vec.Count(s.right, math.IsNaN) > 0 {
		return nil
	}
	first := slices.IndexFunc(s.actual, math.IsNaN)
	where := tensor.FormatShape(s.Target.Golden.Index(s.rows[first/s.width]*s.width + first%s.width))
	out := []prediction{guess("nan/first", -3, "%d of %d elements are NaN, the first at %s; the inputs hold none", n, len(s.actual), where)}
	// What overflows becomes infinite, and the difference of two infinities is NaN: then the NaN is
	// not the cause.
	largest := 0.0
	for _, q := range s.pass {
		if q.Layer == s.Target.Layer && q.IsFloat() {
			largest = max(largest, vec.MaxAbs(s.all(q.Golden)))
		}
	}
	if largest < mayOverflow && n < len(s.actual) {
		value := slices.Clone(s.right)
		for i, x := range s.actual {
			if math.IsNaN(x) {
				value[i] = x
			}
		}
		out = append(out, s.says("nan/first", value, 0, 1, "%s; all others are right", out[0].text))
	}
	return out
}
