package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// The table of criteria.
var table = []*Criterion{Atol, Rtol, RelL2, RowRelL2, Cosine, MSE, ULP, SNR, TopK, KL, Noise, Cost, EqualNaN}

// Table returns all criteria, in the order in which they are judged and shown.
func Table() []*Criterion { return slices.Clone(table) }

// The criteria, see their rules. Some of those of tensors must also hold for the worst row, because one row can
// have most of the tensor's norm.
var (
	// If only one of Atol and Rtol has a limit, the other is 0. Integers and bools must be equal,
	// whatever the limits.
	Atol = &Criterion{Key: "atol", JSON: "atol", Short: "atol", Name: "absolute tolerance",
		Rule: "|a − g| ≤ atol + rtol·|g| for every element", Best: 0, Worst: vast, Example: 1e-5,
		Counts: true, Recorded: true, Metrics: within}
	Rtol = &Criterion{Key: "rtol", JSON: "rtol", Short: "rtol", Name: "relative tolerance",
		Rule: "|a − g| ≤ atol + rtol·|g| for every element", Best: 0, Worst: 1, Example: 1e-4,
		Counts: true, Recorded: true, Metrics: withAtol}

	// The worst row of RelL2 and RowRelL2 is that of [Row].
	RelL2 = &Criterion{Key: "rel_l2", JSON: "rel_l2", Short: "L2", Name: "relative L2",
		Rule: "‖a − g‖ / ‖g‖ ≤ rel_l2 for the tensor, and for the worst row where row_rel_l2 is not given",
		Best: 0, Worst: 1, Example: 1e-4, Recorded: true,
		Metrics: func(p Pair, _ float64) ([]Metric, error) { return []Metric{{Value: p.Result.RelL2}}, nil }}
	RowRelL2 = &Criterion{Key: "row_rel_l2", JSON: "row_rel_l2", Short: "row",
		Name: "relative L2 of the worst row",
		Rule: "‖a − g‖ / ‖g‖ ≤ row_rel_l2 for the worst row",
		Best: 0, Worst: 1, Example: 1e-4, Recorded: true,
		Metrics: func(p Pair, _ float64) ([]Metric, error) {
			w := p.Result.WorstRow
			return []Metric{{Value: w.RelL2, Text: inRow("relative L2", w.Index)}}, nil
		}}

	// The Cosine distance of a row that is much smaller than the others is multiplied by
	// max(‖a_row‖, ‖g_row‖)²/(f·RMS)² if that is below 1 (f and RMS as in [Row]), because the
	// direction of a row of zeros and rounding means nothing.
	Cosine = &Criterion{Key: "cosine", JSON: "cosine", Short: "cosine", Name: "cosine",
		Rule: "a·g / (‖a‖‖g‖) ≥ cosine for the tensor and the worst row", Best: 1, Worst: 0, Example: 0.9999,
		Recorded: true, Metrics: cosines}

	// MSE is over the finite pairs.
	MSE = &Criterion{Key: "mse", JSON: "mse", Short: "MSE", Name: "mean squared error",
		Rule: "Σ(a − g)² / n ≤ mse", Best: 0, Worst: vast * vast, Example: 1e-8, Recorded: true,
		Metrics: func(p Pair, _ float64) ([]Metric, error) { return []Metric{{Value: p.Result.MSE}}, nil }}

	// ULP is of finite pairs; the golden value is rounded to the candidate's dtype first. −0 is 0.
	ULP = &Criterion{Key: "ulp", JSON: "ulp", Short: "ULP", Name: "largest distance", Unit: "ULP",
		Rule: "steps of the candidate's dtype between g and a ≤ ulp for every element",
		Best: 0, Worst: mostULPs, Example: 4,
		Metrics: func(p Pair, limit float64) ([]Metric, error) {
			if most := stepsToOne(p.Actual.DType()); limit >= most {
				return nil, misuse("ulp = %g: in %s that accepts 0 in place of 1, want less than %.0f", limit,
					p.Actual.DType(), most)
			}
			u := newULPs(p.Actual.DType())
			pairs(p.Golden, p.Actual, u.add)
			text := fmt.Sprintf("largest distance in %s (element %d)", p.Actual.DType(), u.MaxIndex)
			return []Metric{{Value: u.Max, Text: text}}, nil
		}}

	SNR = &Criterion{Key: "snr", JSON: "snr_db", Short: "SNR", Name: "signal-to-noise ratio", Unit: "dB",
		Rule: "20·log10(‖g‖ / ‖a − g‖) ≥ snr", Best: math.MaxFloat64, Worst: 0, Example: 60, Recorded: true,
		Metrics: func(p Pair, _ float64) ([]Metric, error) { return []Metric{{Value: p.Result.SNR}}, nil }}

	// TopK requires that the k largest values of each row (of equal ones the first) are in the same
	// places on both sides. If several golden values equal the k-th, any of them will do.
	TopK = &Criterion{Key: "top_k", JSON: "top_k", Short: "top", Name: "largest elements of a row",
		Rule: "the top_k largest of each row stand in the same places", Best: math.MaxFloat64, Worst: 0, Whole: true,
		Example: 5,
		Counts:  true, Metrics: tops}

	// KL is Σ p·ln(p/q) with p = softmax(golden row) and q = softmax(actual row).
	KL = &Criterion{Key: "kl", JSON: "kl", Short: "KL", Name: "KL divergence", Unit: "nats",
		Rule: "KL(softmax(g) ‖ softmax(a)) ≤ kl for the worst row", Best: 0, Worst: mostKL, Example: 1e-3,
		Metrics: func(p Pair, limit float64) ([]Metric, error) {
			if n := p.Result.RowLen; limit >= math.Log(float64(n)) {
				return nil, misuse("kl = %g in rows of %d elements: equal values everywhere would pass, want less than "+
					"their ln %d = %.4g", limit, n, n, math.Log(float64(n)))
			}
			row, kl := worstKL(p.Golden, p.Actual)
			return []Metric{{Value: kl, Text: inRow("KL divergence", row)}}, nil
		}}

	// Noise is the candidate's error over the reference's own. In a row the denominator is at least
	// f times its RMS over the rows (f as in [Row]).
	Noise = &Criterion{Key: "noise", JSON: "noise", Short: "noise", Name: noiseName,
		Rule: "‖a − g64‖ / ‖g − g64‖ ≤ noise for the tensor and the worst row, g64 the float64 golden",
		Best: 0, Worst: mostNoise, Example: 3, Metrics: noises}

	// Cost is the candidate's error over what its encoding costs the reference: over the difference of
	// the golden from the reference's own run in that encoding, see [Costs].
	Cost = &Criterion{Key: "cost", JSON: "cost", Short: "cost", Name: costName,
		Rule: costRule, Best: 0, Worst: vastCost(tensor.F16, shortRow), Example: MostCost, Recorded: true, Metrics: costMetrics}

	// EqualNaN measures nothing by itself. If it is 1, NaN matches NaN for all criteria.
	EqualNaN = &Criterion{Key: "equal_nan", JSON: "equal_nan", Short: "equal NaN",
		Name: "NaN matches NaN",
		Rule: "NaN matches NaN", Best: 1, Worst: 0, Example: 1, Recorded: true}
)

const (
	costName  = "error over what the encoding costs the reference"
	noiseName = "error against float64 over the reference's own"
)

func inRow(name string, row int) string {
	return fmt.Sprintf("%s of the worst row (row %d)", name, row)
}

func cosines(p Pair, _ float64) ([]Metric, error) {
	whole := Metric{Value: p.Result.Cosine()}
	if p.Golden == nil {
		// 1 − cosine of any row, with this weight, is at most 2·RelL2² of the worst row.
		row := p.Result.WorstRow.RelL2
		return []Metric{whole, {Key: "row_cosine", Value: 1 - float64(2*row*row), Bound: true,
			Text: "the cosine of the worst row is not among the metrics"}}, nil
	}
	row, distance := worstCosine(p.Golden, p.Actual, p.Result)
	return []Metric{whole, {Key: "row_cosine", Value: 1 - distance, Text: inRow("cosine", row)}}, nil
}

func tops(p Pair, k float64) ([]Metric, error) {
	if k >= float64(p.Golden.RowLen()) {
		return nil, misuse("top_k = %g in rows of %d elements: want fewer than a row has", k, p.Golden.RowLen())
	}
	bad, first := topK(p.Golden, p.Actual, int(k))
	text := fmt.Sprintf("the top %g are others in %d of %d rows, the first is row %d", k, bad, p.Result.Rows, first)
	return []Metric{{Value: float64(bad), Text: text}}, nil
}

// noises compares the error of actual against float64 with that of golden.
func noises(p Pair, _ float64) ([]Metric, error) {
	if p.Refs.Float64 == nil {
		return nil, misuse("the noise criterion needs a float64 golden: record one (references: [float32, float64])")
	}
	if err := check(p.Refs.Float64, p.Actual); err != nil {
		return nil, err
	}
	if _, err := Own(p.Golden, p.Refs.Float64); err != nil {
		return nil, err
	}
	own, other := newRowReader(p.Refs.Float64, p.Golden), newRowReader(p.Refs.Float64, p.Actual)
	r, u := p.Result, unit(p.Result)
	var ownAll, otherAll sum
	for i := range r.Rows {
		ownAll.add(own.moments(i, u).dd)
		otherAll.add(other.moments(i, u).dd)
	}
	least := leastSquare(r.RowLen, r.Rows, ownAll.value())
	row, ratio := worst(r.Rows, func(i int) float64 {
		return ratioL2(other.moments(i, u).dd, max(own.moments(i, u).dd, least))
	})
	return []Metric{{Value: ratioL2(otherAll.value(), ownAll.value())},
		{Key: "row_noise", Value: ratio, Text: inRow(noiseName, row)}}, nil
}
