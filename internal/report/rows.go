package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// metrics returns those that judge the row: the standard run's, else the injected run's, else nil.
func (l *Layer) metrics() *Metrics {
	if l.Standard != nil {
		return l.Standard
	}
	return l.Injected
}

// measure is how far a row with metrics is off: the worst row's relative L2, infinite for NaN or a bad infinity.
func (l *Layer) measure() float64 {
	m := l.metrics()
	if math.IsNaN(float64(m.RowRelL2)) || m.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return float64(m.RowRelL2)
}

// why returns what stands at the end of a row: the limit, the culprit, or the note.
func (l *Layer) why() string {
	switch {
	case l.inherits() && l.Blame != "":
		return "from " + l.Blame
	case l.judged() && !(l.Benign && l.Status == StatusPass):
		return l.Limit()
	case l.Note != "":
		return l.Note
	}
	return map[Status]string{StatusMissing: "the candidate did not record it", StatusUnexpected: "the golden does not have it"}[l.Status]
}

// naming writes the place of a row, with the case and the step where rows differ in these.
type naming bool

func namingOf(rows []Layer) naming {
	return naming(slices.ContainsFunc(rows, func(l Layer) bool { return l.Case != rows[0].Case || l.Step != rows[0].Step }))
}

// row is "model.layers.0 output", with the case and step after it where they differ.
func (cases naming) row(l *Layer) string {
	rest := l.Port
	if cases {
		rest += " " + strings.Trim(l.Case+"."+l.Step, ".")
	}
	return cmp.Or(Clean(l.Layer), "(root)") + strings.TrimRight(" "+Clean(rest), " ")
}

func (l *Layer) compared() bool {
	m := l.metrics()
	return m != nil && m.N > 0 && l.judged()
}

func (l *Layer) failing() bool { return l.Status.failing() }

func (l *Layer) integers() bool {
	return slices.ContainsFunc(l.types(), func(d tensor.DType) bool { return !d.IsFloat() })
}

// Failing lists the rows that keep the run from passing: those wrong by themselves, then what they inherited.
func (r *Report) Failing() []*Layer {
	return append(r.rows((*Layer).fails), r.rows((*Layer).inherits)...)
}

// worst lists all compared rows, the furthest off first, last those whose metrics say nothing.
func (r *Report) worst() []*Layer {
	rows := r.rows((*Layer).compared)
	slices.SortStableFunc(rows, func(a, b *Layer) int {
		if a.Benign != b.Benign {
			return map[bool]int{true: 1, false: -1}[a.Benign]
		}
		return cmp.Compare(b.measure(), a.measure())
	})
	return rows
}

// divergent returns the failing row of the first divergence or at its end, else the first that fails by itself.
func (r *Report) divergent() *Layer {
	failing := r.Failing()
	if d := r.FirstDivergence; d != nil {
		for _, layer := range []string{d.Layer, d.Before} {
			at := [4]string{layer, d.Port, d.Case, d.Step}
			if i := slices.IndexFunc(failing, func(l *Layer) bool { return l.place() == at }); i >= 0 {
				return failing[i]
			}
		}
	}
	if len(failing) > 0 && !failing[0].inherits() {
		return failing[0]
	}
	return nil
}

// The columns of metrics, after the status and the place.
var metricHeads = []string{"off", "max abs", "rel. L2", "worst row", "1-cosine"}

// tableOf is a table of rows of the report, with all that is known of some.
func (d *composer) tableOf(rows []*Layer) *Table {
	t := &Table{Head: slices.Concat([]string{"status", "layer"}, metricHeads, []string{"limit"}), Name: 1, Metrics: len(metricHeads)}
	mark, placed := d.r.divergent(), d.r.FirstDivergence == nil || d.r.placed()
	for i, l := range rows {
		if l == mark && placed {
			t.Mark = i + 1
		}
		t.Rows = append(t.Rows, slices.Concat([]string{string(l.Status), d.names.row(l)}, metricCells(l), []string{l.why()}))
		t.Below = append(t.Below, l.said(d.Verbose || l == mark))
	}
	return t
}

// tabular reports whether the row shows its metrics: of an inherited error they say nothing of the layer.
func (l *Layer) tabular() bool { return l.metrics() != nil && l.Status != StatusInherited }

// metricCells are the metrics of a row below metricHeads, empty where it does not show them.
func metricCells(l *Layer) []string {
	if !l.tabular() {
		return make([]string, len(metricHeads))
	}
	m, off := l.metrics(), noMetric // without atol and rtol the count of mismatches judges nothing
	if l.Counted == nil && l.Tolerance != nil {
		if _, asked := l.Tolerance.Criteria.Tolerance(); asked {
			off = percent(m.Mismatches, m.N)
		}
	}
	return []string{off, num(m.MaxAbs), num(m.RelL2), num(m.RowRelL2), num(m.CosineDistance)}
}

// percent is the share n/all; only none is "0", only all is "100 %".
func percent(n, all int) string {
	share := 100 * float64(n) / float64(all)
	switch {
	case n == 0 || all == 0:
		return "0"
	case n == all:
		return "100 %"
	case share < 0.1:
		return "<0.1 %"
	}
	return fmt.Sprintf("%.1f %%", min(share, 99.9))
}

// said is what else is known of a row that shows its metrics: all of it for the first divergence.
func (l *Layer) said(all bool) (out []string) {
	if !l.tabular() {
		return nil
	}
	if !l.Benign {
		out = append(out, l.metrics().nonFinite())
	}
	if all {
		out = slices.Concat(out, []string{l.quantised()}, l.Violations, l.Detail)
		if l.Note != l.why() {
			out = append(out, l.Note)
		}
	}
	return filled(out)
}

// rows are those of which something holds, in the order in which the values existed.
func (r *Report) rows(holds func(*Layer) bool) (rows []*Layer) {
	for i := range r.Layers {
		if l := &r.Layers[i]; holds(l) {
			rows = append(rows, l)
		}
	}
	return rows
}

func (l *Layer) judged() bool {
	return slices.Contains([]Status{StatusPass, StatusFail, StatusInherited}, l.Status)
}

func (l *Layer) inherits() bool { return l.Status == StatusInherited }

func (l *Layer) fails() bool { return l.Status.failing() && !l.inherits() }

// place tells a row from all others.
func (l *Layer) place() [4]string { return [4]string{l.Layer, l.Port, l.Case, l.Step} }

// judgedTensors are the rows of one pass: those of paths and of generations are not among them. Inputs are evidence.
func judgedTensors(r *Report) (list []Judged) {
	for _, l := range r.rows(func(l *Layer) bool { return l.Stage == "" && !l.IsInput() && (l.compared() || l.Status.failing()) }) {
		if r.Verdict != Error || l.Status != StatusError {
			list = append(list, Judged{Status: l.Status, row: l})
		}
	}
	for _, p := range r.Paths {
		if p.OnePass != nil {
			list = append(list, Judged{Name: "one pass of " + p.Path, Status: statusOf(true, !p.OnePass.Holds), Count: p.OnePass.Outputs})
		}
	}
	return list
}

func tensorsHeadline(r *Report) string {
	compared, names, l := r.compared(), namingOf(r.Layers), r.divergent()
	if worst := r.worst(); r.Verdict == Pass && len(worst) > 0 {
		w := worst[0]
		line := fmt.Sprintf("%s, worst row rel. L2 %s at %s", compared, num(w.metrics().RowRelL2), names.row(w))
		if w.Limit() != "" {
			line += ", limit " + strings.TrimPrefix(w.Limit(), "row ")
		}
		return line
	}
	first := r.first()
	switch {
	case r.FirstDivergence == nil && l != nil:
		first = names.row(l) + " " + failWord[l.Status]
	case r.FirstDivergence == nil || first != "":
	case r.Kind == "unordered":
		first = "which layer is wrong first is not known"
	default:
		first = r.Kind + ": no layer by itself is wrong"
	}
	return joined("; ", first, compared)
}

// Units is by how much a row is off, in units of its limit: max(rel_l2/limit, row_rel_l2/limit), or
// the larger of cost and row_cost over theirs; where other criteria judged, row_rel_l2 over the
// default limit of the two types. A row that passes has at most 1, one that fails more than 1, and
// infinity where a NaN or an infinity has no match, or nothing could be compared. NaN: the row was
// not judged.
func (l *Layer) Units() Float {
	switch {
	case l.Status == StatusMissing || l.Status == StatusError:
		return Float(math.Inf(1))
	case !l.compared() || l.Standard == nil || l.Tolerance == nil:
		return nan
	case l.Status == StatusPass:
		return min(l.units(), 1)
	}
	return max(l.units(), Float(math.Nextafter(1, 2)))
}

func (l *Layer) units() Float {
	m, c := l.Standard, l.Tolerance.Criteria
	over := func(metric Float, limit float64) Float {
		switch {
		case m.BadNonFinite > 0 || math.IsNaN(float64(metric)):
			return Float(math.Inf(1))
		case metric == 0:
			return 0
		}
		return metric / Float(limit)
	}
	if limit, ok := c[compare.Cost]; ok && m.Costs != nil {
		return max(over(m.Cost, limit), over(m.RowCost, limit))
	}
	whole, asked := c[compare.RelL2]
	row, ofRow := c[compare.RowRelL2]
	if !asked && !ofRow {
		row = compare.Default(l.types()...).Limits().RowRelL2
	} else if !ofRow {
		row = whole
	}
	if !asked {
		whole = math.Inf(1)
	}
	return max(over(m.RelL2, whole), over(m.RowRelL2, row))
}

func (l *Layer) types() (types []tensor.DType) {
	for _, s := range []*Side{l.Golden, l.Actual} {
		if s != nil {
			if d, err := tensor.ParseDType(s.DType); err == nil {
				types = append(types, d)
			}
		}
	}
	return types
}

// Cost is what a layer of the candidate took in one forward pass of its own, where its engine measures that.
type Cost struct {
	Case      string    `json:"case"`
	Layer     string    `json:"layer"` // the candidate's own label
	Seconds   Float     `json:"seconds"`
	PeakBytes int64     `json:"peak_bytes"`        // beyond what was held before it ran, the most in any of its calls
	Entropy   []Entropy `json:"entropy,omitempty"` // of an attention whose weights were recorded, by head
}

// Entropy says how far the attention of a head is spread: package diagnose.
type Entropy struct {
	Nats    Float `json:"nats"` // mean over the queries; NaN where none counts
	Part    Float `json:"part"` // of the entropy of equal weights, 0 to 1
	Uniform bool  `json:"uniform,omitempty"`
}

// CostsOf lists what the layers of a run took, where its engine has measured it, in the order in which
// they ran, with the entropy of attention where the weights were recorded in its first forward pass.
func CostsOf(caseName string, run *dump.Run) (list []Cost) {
	if len(run.Info.Costs) == 0 {
		return nil
	}
	entropy := diagnose.FirstHeads(run)
	seen := map[string]bool{}
	for _, e := range run.Entries {
		cost, measured := run.Info.Costs[e.Layer]
		if !measured || seen[e.Layer] {
			continue
		}
		seen[e.Layer] = true
		row := Cost{Case: caseName, Layer: e.Layer, Seconds: Float(cost.Seconds), PeakBytes: cost.Bytes}
		for _, h := range entropy[e.Layer] {
			row.Entropy = append(row.Entropy, Entropy{Nats: Float(h.Entropy), Part: Float(h.Part), Uniform: h.Uniform()})
		}
		list = append(list, row)
	}
	return list
}

// String is "3 MiB, 0.25 s, 2.1 nats, 0.96 of ln n, 2 of 4 heads uniform".
func (c Cost) String() string {
	memory := fmt.Sprintf("%.3g MiB", float64(c.PeakBytes)/(1<<20))
	if c.PeakBytes < 1<<20 {
		memory = fmt.Sprintf("%.3g KiB", float64(c.PeakBytes)/(1<<10))
	}
	text := fmt.Sprintf("%s, %.2g s", memory, float64(c.Seconds))
	nats, part, uniform, n := 0.0, 0.0, 0, 0
	for _, e := range c.Entropy {
		if math.IsNaN(float64(e.Nats)) {
			continue
		}
		nats, part, n = nats+float64(e.Nats), part+float64(e.Part), n+1
		if e.Uniform {
			uniform++
		}
	}
	if n > 0 {
		text += fmt.Sprintf(", %.3g nats, %.2f of ln n", nats/float64(n), part/float64(n))
	}
	if uniform > 0 {
		text += fmt.Sprintf(", %d of %s uniform", uniform, count(len(c.Entropy), "head"))
	}
	return text
}
