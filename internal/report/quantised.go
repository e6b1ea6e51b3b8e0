package report

import (
	"fmt"
	"slices"
	"strconv"
)

// Quantisation is what quantisation costs the reference in one row: its distance from the reference
// on the weights before they were quantised. What the candidate adds to that is the row's own
// figures.
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

// quantised says what quantisation costs and the candidate adds: where the first error is, and in
// the last row, which is the model's output.
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
