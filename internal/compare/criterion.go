package compare

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/tensor"
)

// Criterion is one way to judge a pair. The parser of fixture.yaml, the methods of package parity,
// report.json and parity report take everything that they need to know from here. [Table] lists the
// criteria; a new one is a new entry.
type Criterion struct {
	Key   string // in fixture.yaml: "snr"
	JSON  string // in report.json: "snr_db"
	Short string // before a limit in a table of rows: "SNR"
	Name  string // in a sentence: "signal-to-noise ratio"
	Unit  string // of the figure and its limit: "dB"; empty for a plain number
	Rule  string // what must hold, with the key for the limit: "20·log10(‖g‖ / ‖a − g‖) ≥ snr"

	// Limits are between Best, the strictest, and Worst, from which on zeros in place of the golden
	// are accepted: it is refused.
	// Best > Worst if larger figures are better.
	Best, Worst float64
	Whole       bool    // limits must be whole numbers
	Example     float64 // a limit to begin with, for messages

	// Counts says that the figure is not compared with the limit, but is the number of rows or
	// elements that do not keep it, and must be 0.
	Counts bool
	// Recorded says that the figures in report.json are enough to judge again, without the tensors.
	Recorded bool
	// Figures returns the figures that have to keep the limit, of a pair with at least one element.
	// It is nil for a criterion that measures nothing and only changes the others, see [EqualNaN].
	// The error is a [*MisuseError] or a [*ShapeError].
	Figures func(p Pair, limit float64) ([]Figure, error)
}

// Pair is what a criterion reads its figures from.
type Pair struct {
	Result  Result
	Counted Tolerance // with which Result counts mismatches
	Asked   Tolerance // the limits of [Atol] and [Rtol]
	Exact   bool      // a side has integers or bools: the elements must be equal

	Golden, Actual *tensor.Tensor // nil if only the figures of a report are left
	Refs           References     // other runs of the reference
}

// Figure is one number that has to keep a limit.
type Figure struct {
	Key   string // of the violation; if empty, the criterion's
	Value float64
	Text  string // what Value is; if empty, the criterion's name; with Counts or Bound, the whole sentence
	Bound bool   // the figure is unknown, but not worse than Value
}

// Rejudges reports whether parity report can judge by it: the figures of a report decide it.
func (c *Criterion) Rejudges() bool { return c.Recorded && !c.Switch() }

// Larger reports whether larger figures are better.
func (c *Criterion) Larger() bool { return c.Best > c.Worst }

// Switch reports whether the criterion can only be turned on, by the limit 1.
func (c *Criterion) Switch() bool { return c.Figures == nil }

// Check refuses a limit that makes no sense, or that zeros in place of the golden would keep. The
// error says what to write instead.
func (c *Criterion) Check(limit float64) error {
	larger := c.Larger()
	beyond := larger && limit <= c.Worst || !larger && limit >= c.Worst
	stricter := larger && limit > c.Best || !larger && limit < c.Best
	switch {
	case c.Switch() && limit == 1:
		return nil
	case c.Switch():
		return fmt.Errorf("want 1, or no %s at all", c.Key)
	case beyond:
		return fmt.Errorf("that accepts zeros in place of the golden, want %s", c.limits())
	case stricter || math.IsNaN(limit) || c.Whole && limit != math.Trunc(limit):
		return fmt.Errorf("want %s", c.limits())
	}
	return nil
}

// limits describes the allowed limits: "a number above -1, up to 1, such as 0.9999".
func (c *Criterion) limits() string {
	number, bounds := "a number", fmt.Sprintf("from %g, below %g", c.Best, c.Worst)
	if c.Whole {
		number = "a whole number"
	}
	if c.Larger() {
		bounds = fmt.Sprintf("above %g", c.Worst)
		if c.Best < math.MaxFloat64 {
			bounds += fmt.Sprintf(", up to %g", c.Best)
		}
	}
	return fmt.Sprintf("%s %s, such as %g", number, bounds, c.Example)
}

// keeps reports whether a figure keeps a limit. NaN keeps none.
func (c *Criterion) keeps(figure, limit float64) bool {
	switch {
	case c.Counts:
		return figure == 0
	case c.Larger():
		return figure >= limit
	}
	return figure <= limit
}

// violation returns the violation of a limit by a figure.
func (c *Criterion) violation(f Figure, limit float64) Violation {
	v := Violation{Criterion: f.Key, Got: f.Value, Want: limit, Text: f.Text}
	if v.Criterion == "" {
		v.Criterion = c.Key
	}
	if c.Counts {
		v.Want = 0
		return v
	}
	if v.Text == "" {
		v.Text = c.Name
	}
	side, unit := "most", ""
	if c.Larger() {
		side = "least"
	}
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	v.Text = fmt.Sprintf("%s is %s%s, at %s %g%s is asked", v.Text, digits(f.Value, limit), unit, side, limit, unit)
	return v
}

// digits formats a number with at least four digits, and enough to tell it from its limit.
func digits(got, limit float64) string {
	for n := 4; n < 17; n++ {
		s := fmt.Sprintf("%.*g", n, got)
		if s != fmt.Sprintf("%.*g", n, limit) || math.IsInf(got, 0) {
			return s
		}
	}
	return fmt.Sprint(got)
}
