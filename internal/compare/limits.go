package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// defaults are, by type, the largest relative L2 of a tensor and of its worst row that pass where
// no one says anything, and up to which two tensors agree when an error is localised: the noise
// floor. Measured in the zoo, November 2026: internal/exam/thresholds.md.
var defaults = map[tensor.DType]struct{ pass, agree Limits }{
	// Not measured.
	tensor.F64: {Limits{1e-9, 1e-9}, Limits{3e-10, 3e-10}},

	// Clean ≤ 1.1e-5 of a tensor, 1.5e-5 of a row; faults ≥ 2.3e-4 of a row.
	tensor.F32: {Limits{1e-4, 1e-4}, Limits{3e-5, 3e-5}},

	// Clean ≤ 2.0e-3, 5.2e-3; 1.0e-2, 4.5e-2 with massive channels. Faults ≥ 4.5e-2, 5.2e-2.
	tensor.F16: {Limits{4e-3, 1e-2}, Limits{4e-3, 1e-2}},

	// Clean ≤ 3.4e-2, 1.0e-1; 6.3e-2, 1.6e-1 in deep models and after a sink row. Faults ≥ 0.32,
	// 0.37.
	tensor.BF16: {Limits{3e-2, 8e-2}, Limits{3e-2, 8e-2}},

	// Not measured: four units, of three bits of mantissa and of fewer.
	tensor.F8E4M3FN:   {Limits{0.25, 0.25}, Limits{0.25, 0.25}},
	tensor.F8E4M3FNUZ: {Limits{0.25, 0.25}, Limits{0.25, 0.25}},
	tensor.F8E5M2:     {Limits{0.5, 0.5}, Limits{0.5, 0.5}},
	tensor.F8E5M2FNUZ: {Limits{0.5, 0.5}, Limits{0.5, 0.5}},
	tensor.F8E8M0FNU:  {Limits{0.5, 0.5}, Limits{0.5, 0.5}},
}

// The least denominator of a row's relative L2, as a part of the RMS row norm. By reason, not
// measured: a few elements can all be near zero by chance.
const (
	shortRow      = 64  // elements under which a row is short
	shortRowFloor = 1   // of a short row
	longRowFloor  = 0.1 // of any other
)

// relFloor is the least denominator of a relative difference: part of the definition of max_rel.
const relFloor = 1e-10

// From here on a limit accepts zeros in place of a golden, and is refused. The other bounds of the
// table follow from the formulas: zeros have a relative L2 of 1, a cosine and an SNR of 0.
const (
	// vast is larger than what a model computes with: the largest float16 is 65504.
	vast = 1e6
	// mostULPs is the distance from 0 to 1 in float64. Of other types it is stepsToOne.
	mostULPs = 1023 << 52
	// mostKL is the divergence of equal logits from a certain answer among nine million. Of shorter
	// rows it is ln n.
	mostKL = 16
	// mostNoise is about the reciprocal of float32's own error.
	mostNoise = 1e6
)

// MostCost is how many times what its encoding costs the reference a candidate may be off.
const MostCost = 3

// What an encoding costs, see cost.
const (
	// falseAlarm is the probability with which pure noise fails in one tensor.
	falseAlarm = 1e-6
	// mostSpare is the most that few elements are allowed for: with less than ten, noise exceeds it,
	// but with more a fault would hide in it. Router weights of 6 elements that were not renormalised
	// are 17 costs off.
	mostSpare = 3
	// drift is by how much errors of 16 bits may exceed the default limits where no layer made
	// them. How fast they add up depends on depth and on sums that cancel. Clean: float16 ≤ 4.5,
	// bfloat16 ≤ 2.1, and each of those ports is explained as well; no fault comes here. Zoo,
	// November 2026.
	drift = 6
)

// Drift is up to where roundings of type d may add up in a run in which no layer is wrong: 6 times
// the limits of [Default].
func Drift(d tensor.DType) Limits {
	l := defaults[d].pass
	return Limits{drift * l.RelL2, drift * l.RowRelL2}
}

// vacuousElements is how much of a tensor is looked at for limits that anything keeps, in whole rows, and
// leastVacuousRows how many rows at least. More take time. By reason, not measured.
const vacuousElements, leastVacuousRows = 1 << 14, 3

// maxLines is the most rows, or columns, that get metrics of their own: 100 bytes each.
const maxLines = 1 << 20

// Default is what is asked where no one says anything: relative L2 of the tensor and of its worst
// row, by the coarsest of the types: those of the two tensors, or the encoding that their runs were
// asked for.
//
//	            tensor  worst row
//	float64     1e-9    1e-9
//	float32     1e-4    1e-4
//	float16     4e-3    1e-2
//	bfloat16    3e-2    8e-2
//	8-bit       0.25    0.25      three bits of mantissa
//	8-bit       0.5     0.5       less
//
// A healthy float32 model stays 6 times below. Of 16 bits the roundings of a few blocks alone come
// to 10 units of 2^−p in the worst row of a clean model (measured: 5.2e-3 in float16 after three
// blocks), so that a row may have 20. Where a side has integers or bools, the elements must be equal.
func Default(types ...tensor.DType) Criteria {
	var l Limits
	for _, d := range types {
		if !d.IsFloat() {
			return Criteria{Atol: 0, Rtol: 0}
		}
		l = l.Max(defaults[d].pass)
	}
	return l.Criteria()
}

// Floor is up to where two tensors "agree" when an error is localised: float64 3e-10, float32 3e-5,
// the others as [Default]; the coarsest type decides. It is zero where a side has integers or bools.
func Floor(types ...tensor.DType) Limits {
	var l Limits
	for _, d := range types {
		if !d.IsFloat() {
			return Limits{}
		}
		l = l.Max(defaults[d].agree)
	}
	return l
}

// sameRun is how many times the default limits a golden may be from the float64 golden of its own
// run. Clean: float32 ≤ 0.1, float16 ≤ 3.3, bfloat16 ≤ 9.5 (sines of large timesteps); another run
// is 1.4 away, 17 times the widest. Zoo, November 2026.
const sameRun = 12

// Own measures how far a golden of floats is from the float64 golden of the same run: the error that
// the reference itself makes. More than 12 times the default limits is no rounding but another run,
// which is an error, and so are other shapes, and a NaN or an infinity without its match.
func Own(golden, ref64 *tensor.Tensor) (Limits, error) {
	r, err := Tensors(ref64, golden, Tolerance{})
	if err != nil {
		return Limits{}, err
	}
	own, most := Limits{r.RelL2, r.WorstRow.RelL2}, defaults[golden.DType()].pass
	if r.BadNonFinite > 0 || own.RelL2 > sameRun*most.RelL2 || own.RowRelL2 > sameRun*most.RowRelL2 {
		return Limits{}, misuse("the float64 golden is not of the same run: it is %.2g from the golden (worst row %.2g, "+
			"%d × NaN or infinity)", own.RelL2, own.RowRelL2, r.BadNonFinite)
	}
	return own, nil
}

// Limits are the largest relative L2 of a tensor and of its worst row.
type Limits struct{ RelL2, RowRelL2 float64 }

// Criteria asks for the limits, but for less than 1, which zeros would keep.
func (l Limits) Criteria() Criteria {
	most := math.Nextafter(1, 0)
	return Criteria{RelL2: min(l.RelL2, most), RowRelL2: min(l.RowRelL2, most)}
}

// Limits are those on relative L2, zero where there is none.
func (c Criteria) Limits() Limits { return Limits{RelL2: c[RelL2], RowRelL2: c[RowRelL2]} }

// Max returns the wider of each limit.
func (l Limits) Max(o Limits) Limits {
	return Limits{max(l.RelL2, o.RelL2), max(l.RowRelL2, o.RowRelL2)}
}

// Agrees reports whether the error is within limits, and every NaN and infinity has its match.
func (r Result) Agrees(l Limits) bool {
	return r.BadNonFinite == 0 && r.RelL2 <= l.RelL2 && r.WorstRow.RelL2 <= l.RowRelL2
}

// Coarser returns the type whose tolerances apply to a pair: the integer type if the other is a
// float, because integers are compared exactly, or the less precise of two floats.
func Coarser(golden, actual tensor.DType) tensor.DType {
	switch {
	case golden.IsFloat() && !actual.IsFloat():
		return actual
	case !golden.IsFloat() && actual.IsFloat(), golden.Epsilon() > actual.Epsilon():
		return golden
	case golden.Epsilon() == actual.Epsilon() && golden.Size() > actual.Size():
		return golden
	default:
		return actual
	}
}

// Has16Bits reports whether a type is a float of 16 bits: the errors of its roundings are as large as
// small faults.
func Has16Bits(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// The limits of patterns and maps. Measured in the zoo, November 2026: internal/exam/thresholds.md.
const (
	// gap is how many times the least wrong line must be as far off as the worst right one before a
	// place is named. Planted rows, columns and heads ≥ 49 (bfloat16), ≥ 1e5 (float32); lines that
	// are wrong by chance ≤ 3.6.
	gap = 4
	// headPart is the part of a head's lines that are wrong where the head is. Not measured: heads
	// of the zoo are wrong in all of their columns or in none; with half of them it is no head.
	headPart = 0.9

	mostRewritten = 1 << 22 // elements of a port by which a map is told; it costs memory, and judges nothing
	mostLines     = 1 << 14 // lines whose order is looked for: it costs time, and judges nothing
	// leastRows is how many rows, or columns, one number of a map has to explain, and leastMapped
	// how many elements one factor. By reason: fewer would be explained by anything.
	leastRows, leastMapped = 3, 32
	// explains is how many times nearer a map must come than no map: numbers that are fitted to noise
	// come a little nearer, too. Rewrites ≥ 10 in bfloat16.
	explains = 4

	// farOff is how many times the limit of a row its prediction may be off before the other rows are looked at:
	// rows of few numbers are measured otherwise. By reason.
	farOff = 100

	// widestShadow is how many times the floor two lines may be apart in one direction: noise of n
	// elements is as large there as its norm, in one case of three.
	widestShadow = 6
)
