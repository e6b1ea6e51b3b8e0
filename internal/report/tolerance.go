package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/compare"
)

// Tolerance is what judged a row. In JSON it is one object, with the limits of the asked criteria.
type Tolerance struct {
	Criteria compare.Criteria
	Source   string // where it was written, such as "fixture.yaml:12" or "default for f32"
}

// ToleranceOf returns c as the report has it, both parts of an elementwise tolerance included;
// source says where it was written.
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
