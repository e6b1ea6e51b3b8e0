package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// figures are those that judge the row: the standard run's, else the injected run's, else nil.
func (l *Layer) figures() *Metrics {
	if l.Standard != nil {
		return l.Standard
	}
	return l.Injected
}

// measure is how far the row is off, for sorting: the worst row's relative L2. A NaN or an infinity that does not match
// counts as infinite.
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

// limit is the tolerance in short: "row 1e-4", "atol 1e-5 rtol 1e-4", "exact".
func (l *Layer) limit() string {
	t := l.Tolerance
	if t == nil {
		return ""
	}
	var parts []string
	add := func(name string, f *Float) {
		if f != nil {
			parts = append(parts, name+" "+num(*f))
		}
	}
	if t.Atol != nil && t.Rtol != nil && *t.Atol == 0 && *t.Rtol == 0 {
		parts = append(parts, "exact")
	} else {
		add("atol", t.Atol)
		add("rtol", t.Rtol)
	}
	add("row", t.RowRelL2)
	if t.RowRelL2 == nil || t.RelL2 != nil && *t.RelL2 != *t.RowRelL2 {
		add("L2", t.RelL2)
	}
	add("cosine", t.Cosine)
	add("MSE", t.MSE)
	add("ULP", t.ULP)
	add("SNR", t.SNR)
	add("KL", t.KL)
	add("noise", t.Noise)
	if t.TopK > 0 {
		parts = append(parts, fmt.Sprintf("top %d", t.TopK))
	}
	return strings.Join(parts, " ")
}

// nonFinite says how many NaN and infinite values the two sides have, if some of them do not match.
func (m *Metrics) nonFinite() string {
	if m.BadNonFinite == 0 {
		return ""
	}
	return fmt.Sprintf("%s of NaN or infinity: golden %d NaN, %d infinite; candidate %d NaN, %d infinite",
		count(m.BadNonFinite, "wrong pair"), m.NaNGolden, m.InfGolden, m.NaNActual, m.InfActual)
}

// why is what stands at the end of a row: the limit, the culprit, or the note.
func (l *Layer) why() string {
	switch {
	case l.Status == StatusInherited && l.Blame != "":
		return "from " + l.Blame
	case l.Status == StatusPass || l.Status == StatusFail || l.Status == StatusInherited:
		return l.limit()
	case l.Note != "":
		return l.Note
	case l.Status == StatusMissing:
		return "the candidate did not record it"
	case l.Status == StatusUnexpected:
		return "the golden does not have it"
	}
	return ""
}

// naming writes the place of a row. The case and the step are left out where all rows have the same.
type naming struct{ cases bool }

func namingOf(rows []Layer) naming {
	return naming{cases: slices.ContainsFunc(rows, func(l Layer) bool {
		return l.Case != rows[0].Case || l.Step != rows[0].Step
	})}
}

// row is the place of a row in full: "model.layers.0 output", with the case and step behind it where they differ.
func (n naming) row(l *Layer) string { return n.short(l, math.MaxInt) }

// short is row in at most so many columns: the layer's name gives way first.
func (n naming) short(l *Layer, columns int) string {
	layer, rest := clean(l.Layer), l.Port
	if layer == "" {
		layer = "(root)"
	}
	if n.cases {
		rest += " " + strings.Trim(l.Case+"."+l.Step, ".")
	}
	rest = strings.TrimRight(" "+clean(rest), " ")
	return cut(shorten(layer, max(columns-width(rest), 12))+rest, columns)
}

// failing lists the rows that keep the run from passing, in execution order.
func (r *Report) failing() []*Layer {
	var rows []*Layer
	for i := range r.Layers {
		if r.Layers[i].failing() {
			rows = append(rows, &r.Layers[i])
		}
	}
	return rows
}

// worst lists all compared rows, those that are furthest off first.
func (r *Report) worst() []*Layer {
	var rows []*Layer
	for i := range r.Layers {
		if r.Layers[i].compared() {
			rows = append(rows, &r.Layers[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *Layer) int { return cmp.Compare(b.measure(), a.measure()) })
	return rows
}

// divergent is the failing row of the first divergence (of an interval: the row at its end), else the first that fails by
// itself, else nil.
func (r *Report) divergent() *Layer {
	var first, end *Layer
	for _, l := range r.failing() {
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

// kinds explains the kinds of a first divergence.
var kinds = map[string]string{
	"input":       "A model input differs: the two runs were not asked the same.",
	"weights":     "The weights that were loaded are not those of the checkpoint.",
	"capture":     "The recorded tensor is not the one that the model computed: the recording is wrong, not the model.",
	"interaction": "The layer is right on the golden inputs and wrong in the assembled model, although its recorded inputs agree.",
	"between":     "The error is in the container's own code, between two of its layers: residual, activation, reshape, mask, rotary, softmax.",
	"local":       "The layer's recorded inputs agree and its output does not: it computes something else.",
	"drift":       "No layer differs by itself; small errors grow until the end differs.",
	"unordered":   "Several layers differ, and nothing tells which of them ran first.",
}

// headline is the verdict in one line, without the word pass, fail or error.
func (r *Report) headline() string {
	s, n := Count(r.Layers), namingOf(r.Layers)
	compared := fmt.Sprintf("%s, %s compared", count(s.Layers, "layer"), count(s.Compared, "tensor"))
	switch r.Verdict {
	case Pass:
		w := r.worst()[0]
		line := fmt.Sprintf("%s, worst row rel. L2 %s at %s", compared, num(w.figures().RowRelL2), n.row(w))
		if w.limit() != "" {
			line += ", limit " + strings.TrimPrefix(w.limit(), "row ")
		}
		return line
	case Fail:
		if d := r.FirstDivergence; d != nil {
			if d.Layer == "" && r.Kind == "unordered" {
				return "which layer is wrong first is not known; " + compared
			}
			if d.Layer == "" {
				return r.Kind + ": no layer by itself is wrong; " + compared
			}
			return "first divergence " + clean(d.Layer) + d.interval()
		}
		if l := r.divergent(); l != nil {
			return fmt.Sprintf("%s %s; %s", n.row(l), failWord[l.Status], compared)
		}
		return compared
	}
	if r.Error != "" {
		return clean(r.Error)
	}
	if l := r.divergent(); l != nil {
		return fmt.Sprintf("%s %s: %s", n.row(l), failWord[l.Status], clean(l.why()))
	}
	return "nothing was compared"
}

var failWord = map[Status]string{
	StatusFail: "differs", StatusInherited: "differs", StatusMissing: "is missing", StatusError: "could not be compared",
}

// interval says between which layers the place lies: ", between a and b", ", after a", or "".
func (d *Divergence) interval() string {
	switch {
	case d.After != "" && d.Before != "":
		return ", between " + clean(d.After) + " and " + clean(d.Before)
	case d.After != "":
		return ", after " + clean(d.After)
	case d.Before != "":
		return ", before " + clean(d.Before)
	}
	return ""
}

// counts is "194 tensors compared: 170 pass, 3 fail, 21 inherited. 2 missing, 5 ignored."
func (s Summary) counts() string {
	list := func(of ...Status) string {
		var parts []string
		for _, status := range of {
			if n := s.Status[status]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, status))
			}
		}
		return strings.Join(parts, ", ")
	}
	return list(statuses...)
}

// line is the source in one line: "replayed run of 2026-11-21, max 26.7.0, cpu, float32; golden torch 2.15.0, cpu, float32".
func (s Source) line() string {
	actual := "replayed run"
	if s.Live {
		actual = "live run"
	}
	if date, _, _ := strings.Cut(s.Date, "T"); date != "" {
		actual += " of " + date
	}
	if e := s.Actual.String(); e != "" {
		actual += ", " + e
	}
	if e := s.Golden.String(); e != "" {
		actual += "; golden " + e
	}
	return clean(actual)
}

// String is "max 26.7.0, cpu, float32": what is known of it, else the path.
func (e Engine) String() string {
	name := e.Name
	if v := e.Versions[e.Name]; v != "" {
		name += " " + v
	}
	var parts []string
	for _, s := range []string{name, e.Device, e.Encoding} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return e.Path
	}
	return strings.Join(parts, ", ")
}
