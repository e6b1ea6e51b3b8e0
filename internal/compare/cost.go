package compare

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/goparity/goparity/tensor"
)

// References are other runs of the reference, of which some criteria measure how far off a right
// candidate may be. Each is nil where there is none; shapes are the golden's.
type References struct {
	Float64 *tensor.Tensor // in float64, for [Noise]
	Encoded *tensor.Tensor // in the encoding of the candidate, for [Cost]
	// Encoding is that encoding: Encoded itself may be wider, as float32 logits of a bfloat16 run.
	Encoding tensor.DType
	// RowNorm returns the RMS norm of the rows that the golden's are some of, as those of one forward
	// pass among those of all: a row alone may be near zero by chance. It is asked for short rows only;
	// nil says that the golden has all.
	RowNorm func() float64
}

// rowNorm is RowNorm where it counts, else 0.
func (r References) rowNorm(rowLen int) float64 {
	if r.RowNorm == nil || rowLen >= shortRow {
		return 0
	}
	return r.RowNorm()
}

// among measures short rows, and a tensor of them, against those that they are some of.
func (r References) among(golden, actual *tensor.Tensor, res Result) Result {
	norm := r.rowNorm(res.RowLen)
	if all := norm * math.Sqrt(float64(res.Rows)); all > res.NormGolden {
		res.RelL2 = res.NormDiff / all
	} else {
		return res
	}
	rd := newRowReader(golden, actual)
	w := Row{MaxAbsRow: res.WorstRow.MaxAbsRow}
	w.Index, w.RelL2 = worst(res.Rows, func(row int) float64 {
		m := rd.moments(row, 1)
		return math.Sqrt(m.dd) / max(math.Sqrt(m.gg), norm)
	})
	w.MaxAbs = newPass(golden, actual, Tolerance{}).largestOfRow(w.Index)
	res.WorstRow = w
	return res
}

// costRule is the rule of [Cost] for a row, and for the tensor as one.
const costRule = "‖a − g‖ / min(q·max(‖Δ‖, ‖Δ_all‖/‖g_all‖·d, ε·d), most·d/3) ≤ cost for the tensor and each row, " +
	"Δ = r − g, r the reference in the candidate's encoding"

// Costs is how far a candidate is off, in units of what its encoding costs the reference. With g the
// golden, r the reference in the candidate's encoding and Δ = r − g, a row of the candidate a is off
// by
//
//	‖a − g‖ / min(q·max(‖Δ‖, ‖Δ_all‖/‖g_all‖·d, ε·d), most·d/3)
//
// times what it costs. ε is the unit of rounding of the encoding and d the row's denominator, see
// [Row]; of the tensor d is ‖g_all‖. Rows in which r is not finite and g is are left out. q, from 1 to
// 3, allows for few elements: a third of √F, F the quantile of the ratio of two variances, of a row of
// w elements and of all n, that pure noise exceeds in one tensor of a million. So a plain 3 is the
// limit where w and n are large. most is the part of d that errors of clean runs add up to at most,
// see [Drift].
type Costs struct {
	Tensor, Row float64 // of the tensor, of the worst row; +Inf where nothing may be off
	WorstRow    int     // −1 if all rows are left out
	LeftOut     int     // rows
}

// costs measures what [Cost] judges by. The error is a [*MisuseError] or a [*ShapeError].
func (r References) costs(golden, actual *tensor.Tensor, result Result) (*Costs, error) {
	if r.Encoded == nil {
		return nil, misuse("the cost criterion needs the reference's run in the candidate's encoding: record one " +
			"(references: [float32, bfloat16]), or name it: parity compare --also noise=DUMP")
	}
	if err := check(r.Encoded, actual); err != nil {
		return nil, err
	}
	candidate, encoded := newRowReader(golden, actual), newRowReader(golden, r.Encoded)
	rows := make([]struct{ error, delta, golden float64 }, result.Rows)
	c := &Costs{WorstRow: -1}
	var error, delta, norm sum
	for i := range rows {
		m, s := encoded.moments(i, 1), &rows[i]
		s.error, s.delta, s.golden = candidate.moments(i, 1).dd, m.dd, m.gg
		if m.odd > 0 {
			s.delta = math.NaN()
			c.LeftOut++
			continue
		}
		error.add(s.error)
		delta.add(s.delta)
		norm.add(s.golden)
	}
	kept := result.Rows - c.LeftOut
	n := kept * result.RowLen
	if n == 0 {
		return c, nil
	}
	eps, most := r.Encoding.Epsilon(), Drift(r.Encoding)
	all := max(math.Sqrt(norm.value()), r.rowNorm(result.RowLen)*math.Sqrt(float64(kept)))
	relative := 0.0
	if all > 0 {
		relative = math.Sqrt(delta.value()) / all
	}
	times := func(off, floor, size, most float64) float64 {
		if floor = min(floor, most*size/MostCost); off > 0 {
			return off / floor // +Inf where nothing may be off
		}
		return 0
	}
	if n < shortRow {
		most.RelL2 = most.RowRelL2 // as uncertain as a row
	}
	c.Tensor = times(math.Sqrt(error.value()), spare(n, n, 1)*max(relative, eps)*all, all, most.RelL2)
	q := spare(result.RowLen, n, kept)
	least := rowFloor(result.RowLen) * all / math.Sqrt(float64(kept))
	c.WorstRow, c.Row = worst(len(rows), func(row int) float64 {
		s := rows[row]
		if math.IsNaN(s.delta) {
			return -1
		}
		size := max(math.Sqrt(s.golden), least)
		floor := q * max(math.Sqrt(s.delta), relative*size, eps*size)
		return times(math.Sqrt(s.error), floor, size, most.RowRelL2)
	})
	return c, nil
}

// spare is q of [Costs]: the size of a row of w elements against the RMS of n, of which one in rows is
// looked at, in units of the limit.
func spare(w, n, rows int) float64 {
	f := distuv.F{D1: float64(w), D2: float64(n)}
	return min(max(1, math.Sqrt(f.Quantile(1-falseAlarm/float64(rows)))/MostCost), mostSpare)
}

// vastCost is the cost limit from which on zeros in place of a golden of n elements pass.
func vastCost(d tensor.DType, n int) float64 {
	most := Drift(d)
	if n < shortRow {
		return MostCost / most.RowRelL2
	}
	return MostCost / most.RelL2
}

func costMetrics(p Pair, limit float64) ([]Metric, error) {
	c, name := p.Result.Cost, costName
	if c == nil {
		return []Metric{{Value: math.Inf(1), Bound: true, Text: "what the encoding costs the reference is not among the metrics"}}, nil
	}
	if d := p.Refs.Encoding; d != tensor.Invalid {
		if most := vastCost(d, p.Result.N); limit >= most {
			return nil, misuse("cost = %g: in %s that accepts zeros in place of the golden, want less than %.3g", limit, d, most)
		}
		name = fmt.Sprintf("error over what %s costs the reference", d)
	}
	return []Metric{{Value: c.Tensor, Text: name}, {Key: "row_cost", Value: c.Row, Text: inRow(name, c.WorstRow)}}, nil
}
