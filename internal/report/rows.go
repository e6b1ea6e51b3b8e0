package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// figures returns those that judge the row: the standard run's, else the injected run's, else nil.
func (l *Layer) figures() *Metrics {
	if l.Standard != nil {
		return l.Standard
	}
	return l.Injected
}

// measure returns how far the row is off, for sorting: the worst row's relative L2. A NaN or an
// infinity that does not match counts as infinite.
func (l *Layer) measure() float64 {
	m := l.figures()
	if m == nil {
		return -1
	}
	if math.IsNaN(float64(m.RowRelL2)) || m.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return float64(m.RowRelL2)
}

// why returns what stands at the end of a row: the limit, the culprit, or the note.
func (l *Layer) why() string {
	switch {
	case l.Status == StatusInherited && l.Blame != "":
		return "from " + l.Blame
	case l.Benign && l.Status == StatusPass:
		return l.Note
	case l.Status == StatusPass || l.Status == StatusFail || l.Status == StatusInherited:
		return l.Limit()
	case l.Note != "":
		return l.Note
	case l.Status == StatusMissing:
		return "the candidate did not record it"
	case l.Status == StatusUnexpected:
		return "the golden does not have it"
	}
	return ""
}

// naming writes the place of a row. The case and the step are left out where all rows have the
// same.
type naming struct{ cases bool }

func namingOf(rows []Layer) naming {
	return naming{cases: slices.ContainsFunc(rows, func(l Layer) bool {
		return l.Case != rows[0].Case || l.Step != rows[0].Step
	})}
}

// row is "model.layers.0 output", with the case and step after it where they differ.
func (n naming) row(l *Layer) string {
	layer, rest := Clean(l.Layer), l.Port
	if layer == "" {
		layer = "(root)"
	}
	if n.cases {
		rest += " " + strings.Trim(l.Case+"."+l.Step, ".")
	}
	return layer + strings.TrimRight(" "+Clean(rest), " ")
}

// shortName is the place of a row in at most so many columns: the layer's name gives way first.
func shortName(place string, columns int) string {
	layer, rest, more := strings.Cut(place, " ")
	if more {
		rest = " " + rest
	}
	return cut(shorten(layer, max(columns-width(rest), 12))+rest, columns)
}

// compared reports whether the row was judged by the figures of at least one element.
func (l *Layer) compared() bool {
	switch l.Status {
	case StatusPass, StatusFail, StatusInherited:
		m := l.figures()
		return m != nil && m.N > 0
	}
	return false
}

// failing reports whether the row by itself keeps a run from passing.
func (l *Layer) failing() bool {
	switch l.Status {
	case StatusFail, StatusInherited, StatusMissing, StatusError:
		return true
	}
	return false
}

// integers reports whether a side has integers or bools.
func (l *Layer) integers() bool {
	return slices.ContainsFunc(l.types(), func(d tensor.DType) bool { return !d.IsFloat() })
}

// Failing lists the rows that keep the run from passing: those that are wrong by themselves, then
// what they inherited, each in the order in which the values existed.
func (r *Report) Failing() []*Layer {
	var own, inherited []*Layer
	for i := range r.Layers {
		switch l := &r.Layers[i]; {
		case l.Status == StatusInherited:
			inherited = append(inherited, l)
		case l.failing():
			own = append(own, l)
		}
	}
	return append(own, inherited...)
}

// worst lists all compared rows, those that are furthest off first; last those whose figures say
// nothing.
func (r *Report) worst() []*Layer {
	var rows []*Layer
	for i := range r.Layers {
		if r.Layers[i].compared() {
			rows = append(rows, &r.Layers[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *Layer) int {
		if a.Benign != b.Benign {
			return map[bool]int{true: 1, false: -1}[a.Benign]
		}
		return cmp.Compare(b.measure(), a.measure())
	})
	return rows
}

// divergent returns the failing row of the first divergence (of an interval: the row at its end),
// else the first that fails by itself, else nil.
func (r *Report) divergent() *Layer {
	var first, end *Layer
	for _, l := range r.Failing() {
		if d := r.FirstDivergence; d != nil && l.Port == d.Port && l.Case == d.Case && l.Step == d.Step {
			if l.Layer == d.Layer {
				return l
			}
			if l.Layer == d.Before {
				end = l
			}
		}
		if first == nil && l.Status != StatusInherited {
			first = l
		}
	}
	if end != nil {
		return end
	}
	return first
}
