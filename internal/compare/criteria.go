package compare

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

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
	Unit  string // of the metric and its limit: "dB"; empty for a plain number
	Rule  string // what must hold, with the key for the limit: "20·log10(‖g‖ / ‖a − g‖) ≥ snr"

	// Limits are between Best, the strictest, and Worst, from which on zeros in place of the golden
	// are accepted: it is refused.
	// Best > Worst if larger metrics are better.
	Best, Worst float64
	Whole       bool    // limits must be whole numbers
	Example     float64 // a limit to begin with, for messages

	// Counts says that the metric is not compared with the limit, but is the number of rows or
	// elements that do not keep it, and must be 0.
	Counts bool
	// Recorded says that the metrics in report.json are enough to judge again, without the tensors.
	Recorded bool
	// Metrics returns the metrics that have to keep the limit, of a pair with at least one element.
	// It is nil for a criterion that measures nothing and only changes the others, see [EqualNaN].
	// The error is a [*MisuseError] or a [*ShapeError].
	Metrics func(p Pair, limit float64) ([]Metric, error)
}

// Pair is what a criterion reads its metrics from.
type Pair struct {
	Result  Result
	Counted Tolerance // with which Result counts mismatches
	Asked   Tolerance // the limits of [Atol] and [Rtol]
	Exact   bool      // a side has integers or bools: the elements must be equal

	Golden, Actual *tensor.Tensor // nil if only the metrics of a report are left
	Refs           References     // other runs of the reference
}

// Metric is one number that has to keep a limit.
type Metric struct {
	Key   string // of the violation; if empty, the criterion's
	Value float64
	Text  string // what Value is; if empty, the criterion's name; with Counts or Bound, the whole sentence
	Bound bool   // the metric is unknown, but not worse than Value
}

// Rejudges reports whether parity report can judge by it: the metrics of a report decide it.
func (c *Criterion) Rejudges() bool { return c.Recorded && !c.Switch() }

// Larger reports whether larger metrics are better.
func (c *Criterion) Larger() bool { return c.Best > c.Worst }

// Switch reports whether the criterion can only be turned on, by the limit 1.
func (c *Criterion) Switch() bool { return c.Metrics == nil }

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

// keeps reports whether a metric keeps a limit. NaN keeps none.
func (c *Criterion) keeps(metric, limit float64) bool {
	switch {
	case c.Counts:
		return metric == 0
	case c.Larger():
		return metric >= limit
	}
	return metric <= limit
}

// violation returns the violation of a limit by a metric.
func (c *Criterion) violation(f Metric, limit float64) Violation {
	v := Violation{Criterion: cmp.Or(f.Key, c.Key), Got: f.Value, Want: limit, Text: cmp.Or(f.Text, c.Name)}
	if c.Counts {
		v.Want = 0
		return v
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

// Criteria has limits by criterion. A pair must keep all of them.
//
//	compare.Criteria{compare.RelL2: 1e-4, compare.Cosine: 0.9999}
type Criteria map[*Criterion]float64

// All ranges over the criteria with their limits in the order of [Table]. Criteria that are not in
// the table come last.
func (c Criteria) All() iter.Seq2[*Criterion, float64] {
	place := func(x *Criterion) int {
		if i := slices.Index(table, x); i >= 0 {
			return i
		}
		return len(table)
	}
	keys := slices.SortedFunc(maps.Keys(c), func(x, y *Criterion) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x.Key, y.Key))
	})
	return func(yield func(*Criterion, float64) bool) {
		for _, k := range keys {
			if !yield(k, c[k]) {
				return
			}
		}
	}
}

// Tolerance returns the elementwise tolerance, and whether [Atol] or [Rtol] has a limit. If neither
// has, all elements that are not equal count as mismatches.
func (c Criteria) Tolerance() (t Tolerance, asked bool) {
	_, atol := c[Atol]
	_, rtol := c[Rtol]
	return Tolerance{Atol: c[Atol], Rtol: c[Rtol], EqualNaN: c[EqualNaN] != 0}, atol || rtol
}

// Measures reports whether the criteria have any limit that can fail.
func (c Criteria) Measures() bool {
	for k := range c {
		if !k.Switch() {
			return true
		}
	}
	return false
}

// Validate returns a [*MisuseError] if there is no limit, or if a limit makes no sense (see
// [Criterion.Check]).
func (c Criteria) Validate() error {
	for k, limit := range c.All() {
		if err := k.Check(limit); err != nil {
			return misuse("%s = %v: %v", k.Key, limit, err)
		}
	}
	if !c.Measures() {
		return misuse("no criterion is given: nothing would be judged")
	}
	return nil
}

// complete adds implied limits: the other part of an elementwise tolerance, and the limit of the
// worst row if only the tensor has one.
func (c Criteria) complete() Criteria {
	out := maps.Clone(c)
	if t, asked := c.Tolerance(); asked {
		out[Atol], out[Rtol] = t.Atol, t.Rtol
	}
	l, asked := c[RelL2]
	if _, own := c[RowRelL2]; asked && !own {
		out[RowRelL2] = l
	}
	return out
}

// Violation is a criterion that does not hold.
type Violation struct {
	// Criterion is the key of the criterion; "within" for Atol and Rtol; "row_cosine",
	// "row_noise" or "row_cost" if the worst row does not keep the limit; or "non_finite", which is always
	// judged.
	Criterion string
	Got, Want float64 // the metric and its limit; a count and 0 for within, top_k (rows) and non_finite
	Text      string  // one line for people
}

// Verdict is the judgement of one pair.
type Verdict struct {
	Pass       bool // all criteria hold; an empty tensor (Result.N = 0) passes
	Result     Result
	Tolerance  Tolerance // of the mismatches in Result: that of Atol and Rtol, or zero
	Violations []Violation
}

// Judge compares two tensors and applies the criteria. Only [Noise] and [Cost] need references.
//
// A pair that is not finite and does not match (see [Tensors]) fails whatever the criteria are.
//
// Errors: [*MisuseError], [*ShapeError], [*FaultError].
func (c Criteria) Judge(golden, actual *tensor.Tensor, refs References) (v Verdict, err error) {
	if err := c.Validate(); err != nil {
		return Verdict{}, err
	}
	v.Tolerance, _ = c.Tolerance()
	if v.Result, err = Tensors(golden, actual, v.Tolerance); err != nil {
		return Verdict{}, err
	}
	v.Violations, err = guard(func() (broken []Violation, err error) {
		v.Result = refs.among(golden, actual, v.Result)
		if _, asked := c[Cost]; asked && v.Result.N > 0 {
			if v.Result.Cost, err = refs.costs(golden, actual, v.Result); err != nil {
				return nil, err
			}
		}
		broken, _, err = c.weigh(Pair{Result: v.Result, Counted: v.Tolerance, Asked: v.Tolerance,
			Exact: exact(golden, actual), Golden: golden, Actual: actual, Refs: refs})
		return broken, err
	}, golden, actual, refs.Float64, refs.Encoded)
	if err != nil {
		return Verdict{}, err
	}
	v.Pass = len(v.Violations) == 0
	return v, nil
}

// Recall judges a pair of which only the result is left. Its mismatches were counted with tolerance
// counted; exact says that a side had integers or bools. open lists what the metrics cannot decide, a
// sentence each.
//
// Errors: [*MisuseError].
func (c Criteria) Recall(r Result, counted Tolerance, exact bool) (broken []Violation, open []string, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	asked, _ := c.Tolerance()
	return c.weigh(Pair{Result: r, Counted: counted, Asked: asked, Exact: exact})
}

func (c Criteria) weigh(p Pair) (broken []Violation, open []string, err error) {
	if p.Result.N == 0 {
		return nil, nil, nil
	}
	if p.Result.BadNonFinite > 0 {
		broken = append(broken, nonFinite(p.Result, p.Asked))
	}
	for k, limit := range c.complete().All() {
		switch {
		case k.Switch():
			continue
		case p.Golden == nil && !k.Recorded:
			open = append(open, k.Key+" needs the tensors")
			continue
		}
		metrics, err := k.Metrics(p, limit)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range metrics {
			switch {
			case k.keeps(f.Value, limit):
			case f.Bound:
				open = append(open, f.Text)
			default:
				broken = append(broken, k.violation(f, limit))
			}
		}
	}
	return broken, open, nil
}

// nonFinite is the violation by pairs with a NaN or an infinity that do not match.
func nonFinite(r Result, tol Tolerance) Violation {
	hint := ""
	if r.NaNGolden > 0 && r.NaNActual > 0 && !tol.EqualNaN {
		hint = "; NaN does not match NaN without EqualNaN"
	}
	return Violation{Criterion: "non_finite", Got: float64(r.BadNonFinite), Text: fmt.Sprintf(
		"%d of %d elements are NaN or infinite and do not match (NaN: golden %d, actual %d; Inf: "+
			"golden %d, actual %d)%s",
		r.BadNonFinite, r.N, r.NaNGolden, r.NaNActual, r.InfGolden, r.InfActual, hint)}
}
