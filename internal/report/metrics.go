package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Metrics are the metrics of one pair, golden g and actual a. Maxima and sums run over the n_finite
// pairs in which both are finite, the others are counted. An index is per axis ([] for a scalar),
// null if there is none.
type Metrics struct {
	N            int `json:"n"`              // elements compared
	Finite       int `json:"n_finite"`       // pairs of two finite values
	Mismatches   int `json:"mismatches"`     // not (|a − g| ≤ atol + rtol·|g|)
	BadNonFinite int `json:"bad_non_finite"` // mismatches among the other pairs

	MaxAbs       Float `json:"max_abs"` // max |a − g|
	MaxAbsIndex  []int `json:"max_abs_index"`
	MaxAbsGolden Float `json:"max_abs_golden"`
	MaxAbsActual Float `json:"max_abs_actual"`

	MaxRel       Float `json:"max_rel"` // max |a − g| / max(|g|, 1e-10)
	MaxRelIndex  []int `json:"max_rel_index"`
	MaxRelGolden Float `json:"max_rel_golden"`
	MaxRelActual Float `json:"max_rel_actual"`

	FirstMismatchIndex []int `json:"first_mismatch_index"`

	MSE            Float `json:"mse"`    // Σ(a − g)² / n_finite
	RelL2          Float `json:"rel_l2"` // ‖a − g‖ / ‖g‖
	Cosine         Float `json:"cosine"`
	CosineDistance Float `json:"cosine_distance"` // 1 − cosine, without cancellation
	SNR            Float `json:"snr_db"`          // 20·log10(‖g‖ / ‖a − g‖)

	RowRelL2  Float `json:"row_rel_l2"`  // of the worst row; its denominator has a floor, see package compare
	RowIndex  *int  `json:"row_index"`   // number of that row, counted over all axes but the last
	RowMaxAbs Float `json:"row_max_abs"` // max |a − g| in that row
	MaxAbsRow *int  `json:"max_abs_row"` // number of the row of max_abs, which may be another one

	NaNGolden int `json:"nan_golden"`
	NaNActual int `json:"nan_actual"`
	InfGolden int `json:"inf_golden"`
	InfActual int `json:"inf_actual"`

	*Costs // where the row was judged by it
}

// Costs are the metrics of [compare.Cost]: the error over what the encoding costs the reference.
type Costs struct {
	Cost    Float `json:"cost"`           // of the tensor
	RowCost Float `json:"row_cost"`       // of the worst row
	CostRow *int  `json:"row_cost_index"` // number of that row
	LeftOut int   `json:"cost_left_out"`  // rows of which the reference's run says nothing
}

// MetricsOf is r as the report has it: element numbers become indices per axis of golden.
func MetricsOf(r compare.Result, golden *tensor.Tensor) *Metrics {
	axes := func(i int) []int {
		if i < 0 {
			return nil
		}
		return golden.Index(i)
	}
	m := &Metrics{
		N: r.N, Finite: r.Finite, Mismatches: r.Mismatches, BadNonFinite: r.BadNonFinite,
		MaxAbs: Float(r.MaxAbs.Value), MaxAbsIndex: axes(r.MaxAbs.Index),
		MaxAbsGolden: Float(r.MaxAbs.Golden), MaxAbsActual: Float(r.MaxAbs.Actual),
		MaxRel: Float(r.MaxRel.Value), MaxRelIndex: axes(r.MaxRel.Index),
		MaxRelGolden: Float(r.MaxRel.Golden), MaxRelActual: Float(r.MaxRel.Actual),
		FirstMismatchIndex: axes(r.FirstMismatch),
		MSE:                Float(r.MSE), RelL2: Float(r.RelL2), SNR: Float(r.SNR),
		Cosine: Float(r.Cosine()), CosineDistance: Float(r.CosineDistance),
		RowRelL2: Float(r.WorstRow.RelL2), RowIndex: number(r.WorstRow.Index),
		RowMaxAbs: Float(r.WorstRow.MaxAbs), MaxAbsRow: number(r.WorstRow.MaxAbsRow),
		NaNGolden: r.NaNGolden, NaNActual: r.NaNActual, InfGolden: r.InfGolden, InfActual: r.InfActual,
	}
	if c := r.Cost; c != nil {
		m.Costs = &Costs{Float(c.Tensor), Float(c.Row), number(c.WorstRow), c.LeftOut}
	}
	return m
}

// result is the reverse of MetricsOf, without places within the tensor.
func (m *Metrics) result() compare.Result {
	extreme := func(v Float, index []int, g, a Float) compare.Extreme {
		none := map[bool]int{true: -1}[index == nil]
		return compare.Extreme{Value: float64(v), Index: none, Golden: float64(g), Actual: float64(a)}
	}
	row := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	r := compare.Result{
		N: m.N, Finite: m.Finite, Mismatches: m.Mismatches, BadNonFinite: m.BadNonFinite,
		FirstMismatch: extreme(0, m.FirstMismatchIndex, 0, 0).Index,
		MaxAbs:        extreme(m.MaxAbs, m.MaxAbsIndex, m.MaxAbsGolden, m.MaxAbsActual),
		MaxRel:        extreme(m.MaxRel, m.MaxRelIndex, m.MaxRelGolden, m.MaxRelActual),
		MSE:           float64(m.MSE), RelL2: float64(m.RelL2), SNR: float64(m.SNR), CosineDistance: float64(m.CosineDistance),
		WorstRow:  compare.Row{Index: row(m.RowIndex), RelL2: float64(m.RowRelL2), MaxAbs: float64(m.RowMaxAbs)},
		NaNGolden: m.NaNGolden, NaNActual: m.NaNActual, InfGolden: m.InfGolden, InfActual: m.InfActual,
	}
	if c := m.Costs; c != nil {
		r.Cost = &compare.Costs{Tensor: float64(c.Cost), Row: float64(c.RowCost), WorstRow: row(c.CostRow), LeftOut: c.LeftOut}
	}
	return r
}

func number(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// nonFinite says how many NaN and infinite values the two sides have, if some of them do not match.
func (m *Metrics) nonFinite() string {
	if m.BadNonFinite == 0 {
		return ""
	}
	return fmt.Sprintf("%s of NaN or infinity: golden %d NaN, %d infinite; candidate %d NaN, %d infinite",
		count(m.BadNonFinite, "wrong pair"), m.NaNGolden, m.InfGolden, m.NaNActual, m.InfActual)
}

// Rows is row_rel_l2 of each row of a tensor, in at most 256 bins of neighbours; of a bin the worst counts.
type Rows struct {
	N     int     `json:"n"`      // rows; bin i has the rows from ⌈i·N/bins⌉ on
	RelL2 []Float `json:"rel_l2"` // by bin; Infinity where a NaN or an infinity has no match
}

func rowsOf(lines []compare.Line) *Rows {
	n := len(lines)
	if n == 0 {
		return nil
	}
	r := &Rows{N: n, RelL2: make([]Float, min(n, maxBins))}
	for i, l := range lines {
		off := Float(l.RelL2)
		if l.BadNonFinite > 0 {
			off = Float(math.Inf(1))
		}
		bin := &r.RelL2[i*len(r.RelL2)/n]
		*bin = max(*bin, off)
	}
	return r
}

// Histogram counts the finite pairs of a tensor by |a − g|: Counts[i] of them have 10^(Exponent+i)
// ≤ |a − g| < 10^(Exponent+i+1).
type Histogram struct {
	Equal    int   `json:"equal"` // a = g
	Exponent int   `json:"exponent"`
	Counts   []int `json:"counts"`
}

// Tolerance is what judged a row. In JSON it is one object, with the limits of the asked criteria.
type Tolerance struct {
	Criteria compare.Criteria
	Source   string // where it was written, such as "fixture.yaml:12" or "default for f32"
}

// ToleranceOf returns c, both parts of an elementwise tolerance included; source says where it was written.
func ToleranceOf(c compare.Criteria, source string) *Tolerance {
	t := &Tolerance{Criteria: maps.Clone(c), Source: source}
	if tol, asked := c.Tolerance(); asked {
		t.Criteria[compare.Atol], t.Criteria[compare.Rtol] = tol.Atol, tol.Rtol
	}
	return t
}

// MarshalJSON writes the limits under the keys of their criteria, and the source.
func (t Tolerance) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for c, limit := range t.Criteria.All() {
		if out[c.JSON] = Float(limit); c.Switch() {
			out[c.JSON] = limit != 0
		}
	}
	if t.Source != "" || len(out) == 0 {
		out["source"] = t.Source
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes, and skips criteria that this version does not know.
func (t *Tolerance) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*t = Tolerance{Criteria: compare.Criteria{}}
	if source := fields["source"]; source != nil {
		if err := json.Unmarshal(source, &t.Source); err != nil {
			return err
		}
	}
	for _, c := range compare.Table() {
		value, limit, on := fields[c.JSON], nan, false // null stays so
		var into any = &limit
		if c.Switch() {
			into = &on
		}
		if value == nil {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return fmt.Errorf("%s: %w", c.JSON, err)
		}
		if on {
			limit = 1
		}
		if !math.IsNaN(float64(limit)) {
			t.Criteria[c] = float64(limit)
		}
	}
	return nil
}

// Limit is what judged a row: "row 1e-4", "atol 1e-5 rtol 1e-4", "exact", "cost 0.7 of 3", or nothing.
func (l *Layer) Limit() string {
	if l.Tolerance == nil {
		return ""
	}
	c := l.Tolerance.Criteria
	tol, elementwise := c.Tolerance()
	exact := elementwise && tol.Atol == 0 && tol.Rtol == 0
	row, rows := c[compare.RowRelL2]
	var parts []string
	for k, limit := range c.All() {
		switch {
		case k.Switch(), k == compare.Rtol && exact, k == compare.RelL2 && rows && limit == row:
		case k == compare.Atol && exact:
			parts = append(parts, "exact")
		case k == compare.Cost && l.Standard != nil && l.Standard.Costs != nil: // no column has it
			parts = append(parts, fmt.Sprintf("%s %s of %s", k.Short, num(max(l.Standard.Cost, l.Standard.RowCost)), num(Float(limit))))
		default:
			parts = append(parts, k.Short+" "+num(Float(limit)))
		}
	}
	return strings.Join(parts, " ")
}

// Quantisation is what quantisation costs the reference in one row: its distance from the reference
// on the weights before they were quantised. What the candidate adds to that is the row's own
// metrics.
type Quantisation struct {
	Cost    Float `json:"cost"`     // ‖g − u‖ / ‖u‖, golden g, u of the weights as they were
	RowCost Float `json:"row_cost"` // of the worst row
	// Activations is the part of it that rounding the inputs of products makes: ‖g − g′‖ / ‖g′‖, g′
	// without that. Null if the golden rounds none, or that run is not there.
	Activations *Float `json:"activations,omitempty"`
}

// portion is a relative error: in percent from 0.1 % on.
func portion(f Float) string {
	if f < 1e-3 || !(f < 1e3) {
		return num(f)
	}
	return strconv.FormatFloat(100*float64(f), 'g', 2, 64) + " %"
}

// quantised says what quantisation costs in a row, and what the candidate adds; "" if not known.
func (l *Layer) quantised() string {
	if l.Quantisation == nil || l.Standard == nil {
		return ""
	}
	text := "quantisation costs " + portion(l.Quantisation.Cost)
	if a := l.Quantisation.Activations; a != nil {
		text += fmt.Sprintf(" (rounding the inputs of products %s)", portion(*a))
	}
	text += ", the kernel adds " + portion(l.Standard.RelL2)
	if l.Status == StatusFail || l.Status == StatusError {
		text += ": wrong"
	} else if l.Benign {
		text += ", as inputs do that were rounded another way"
	}
	return text
}

// quantised says what quantisation costs and the candidate adds: at the first error, and in the model's output.
func (r *Report) quantised() (lines []string) {
	shown := []*Layer{r.divergent()}
	if all := r.rows(func(l *Layer) bool { return l.quantised() != "" && l.Status != StatusIgnored }); len(all) > 0 {
		shown = append(shown, all[len(all)-1])
	}
	for _, l := range slices.Compact(shown) {
		if l != nil && l.quantised() != "" {
			lines = append(lines, namingOf(r.Layers).row(l)+": "+l.quantised())
		}
	}
	return lines
}

// Explain adds to the row of a pair that fails criteria where the two differ, how much, and what would pass. d
// is the type whose limits hold, floor the limit up to which the two agree. It returns how many elements
// are outside the elementwise tolerance or, without one, off by more than the noise of the type.
func (l *Layer) Explain(golden, actual *tensor.Tensor, c compare.Criteria, v compare.Verdict, d tensor.DType, floor compare.Limits) (outside int) {
	tol := v.Tolerance
	_, elementwise := c.Tolerance()
	if !elementwise {
		// Without an elementwise tolerance, outside is what the noise of the type cannot explain.
		tol.Rtol = compare.Floor(d).RowRelL2
		if cost := v.Result.Cost; cost != nil && cost.Row > 0 && !math.IsInf(cost.Row, 0) { // what the worst row may be off
			tol.Rtol = v.Result.WorstRow.RelL2 * c[compare.Cost] / cost.Row
		}
		tol.Atol = tol.Rtol * v.Result.NormGolden / math.Sqrt(float64(max(v.Result.Finite, 1)))
	}
	x, err := compare.Explain(golden, actual, tol)
	if err != nil {
		l.Detail = []string{err.Error()}
		return 0
	}
	r := v.Result
	l.Histogram = &Histogram{Equal: x.Equal, Exponent: x.Exponent, Counts: x.Decades}
	l.Rows = rowsOf(x.Rows)
	m := r.MaxAbs
	integers := !golden.DType().IsFloat() || !actual.DType().IsFloat()
	add := func(format string, args ...any) { l.Detail = append(l.Detail, fmt.Sprintf(format, args...)) }
	if m.Value > 0 { // of the finite ones
		add("worst element %s: golden %.9g, actual %.9g, |a−g| %.4g", tensor.FormatShape(golden.Index(m.Index)), m.Golden, m.Actual, m.Value)
	}
	if n, isMask := vec.MasksDiffer(golden, actual); isMask {
		add("masks: the golden holds %s, the candidate %s; %d of %d elements allow something else", vec.MaskConstants(golden),
			vec.MaskConstants(actual), n, r.N)
		return n
	}
	if r.NormActual == 0 && r.NormGolden > 0 && r.Finite == r.N {
		add("it is all zero in the candidate: is a weight missing? MAX reads a missing one as zeros")
	}
	if integers {
		add("%s, %s", x.BadRows.Text("row"), x.BadColumns.Text("column"))
		return x.Mismatches
	}
	add("outside %.3g + %.3g·|g|: %d of %d elements; %s, %s", tol.Atol, tol.Rtol, x.Mismatches, r.N, x.BadRows.Text("row"), x.BadColumns.Text("column"))
	if would := wouldPass(x, tol, actual.DType()); would != "" {
		add("%s", would)
	}
	if need, below := tol.BelowRounding(actual.DType()); below && elementwise {
		add("the tolerance is below the rounding of %s itself: no rtol under %.3g can be kept", actual.DType(), need)
	}
	for _, f := range compare.PatternsOfLines(golden, actual, x.Rows, x.Columns, floor, 0) {
		add("%s", f.Text)
	}
	return x.Mismatches
}

// wouldPass says which elementwise tolerance a failing pair keeps.
func wouldPass(d compare.Detail, tol compare.Tolerance, t tensor.DType) string {
	var parts []string
	if !math.IsInf(d.SmallestAtol, 0) {
		parts = append(parts, fmt.Sprintf("with atol %.4g at rtol %.3g", d.SmallestAtol, tol.Rtol))
	}
	if !math.IsInf(d.SmallestRtol, 0) {
		parts = append(parts, fmt.Sprintf("with rtol %.4g at atol %.3g", d.SmallestRtol, tol.Atol))
	}
	would, far := "", ""
	if len(parts) > 0 {
		would = "elementwise it would pass " + strings.Join(parts, ", or ")
	}
	if d.ULP.Max > 0 {
		far = fmt.Sprintf("largest distance %.4g ULP of %s", d.ULP.Max, t)
	}
	return joined("; ", would, far)
}
