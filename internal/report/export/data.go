package export

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
)

// data is what the page's script reads.
type data struct {
	Rows       []row    `json:"rows"`
	Points     []point  `json:"points"`
	Components []string `json:"components"`
	Several    bool     `json:"several"` // cases or steps
	Injected   bool     `json:"injected"`
	Paths      *paths   `json:"paths,omitempty"`
	LeftOut    int      `json:"-"`
}

// row is one row of the table.
type row struct {
	Layer     string         `json:"l"`
	Port      string         `json:"p"`
	Case      string         `json:"c,omitempty"`
	Step      string         `json:"s,omitempty"`
	Status    string         `json:"st"`
	Component string         `json:"k"`
	Input     bool           `json:"in,omitempty"`
	First     bool           `json:"f,omitempty"`
	Blame     string         `json:"b,omitempty"`
	Note      string         `json:"n,omitempty"`
	Limit     string         `json:"t,omitempty"`
	Source    string         `json:"ts,omitempty"` // of the tolerance
	Shape     string         `json:"sh,omitempty"`
	Golden    string         `json:"g,omitempty"`
	Actual    string         `json:"a,omitempty"`
	Standard  []report.Float `json:"m,omitempty"`
	Injected  []report.Float `json:"i,omitempty"`
	Split     []report.Float `json:"x,omitempty"` // local, inherited, cosine of the two
	Lines     []string       `json:"d,omitempty"` // violations and details
	Bins      []report.Float `json:"r,omitempty"` // relative L2 of rows
	RowCount  int            `json:"rn,omitempty"`
	Equal     int            `json:"he,omitempty"`
	Exponent  int            `json:"hx,omitempty"`
	Counts    []int          `json:"h,omitempty"`
}

// point is one place along the depth: the rows that are drawn there.
type point struct {
	Standard int  `json:"m"` // number of the row, −1 for none
	Injected int  `json:"i"`
	First    bool `json:"f,omitempty"` // the first divergence is here
}

// rounded are figures of four digits, which keeps a page small; counts stay exact.
func rounded(figures ...report.Float) []report.Float {
	for i, f := range figures {
		if v := float64(f); v != math.Trunc(v) {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
			figures[i] = report.Float(v)
		}
	}
	return figures
}

// figuresOf are figures by their place: max abs, relative L2, worst row, 1 − cosine, MSE, mismatches, elements, SNR,
// non-finite pairs without a match.
func figuresOf(m *report.Metrics) []report.Float {
	if m == nil {
		return nil
	}
	return rounded(m.MaxAbs, m.RelL2, m.RowRelL2, m.CosineDistance, m.MSE, report.Float(m.Mismatches), report.Float(m.N), m.SNR,
		report.Float(m.BadNonFinite))
}

func dataOf(r *report.Report) data {
	d := data{Rows: []row{}, Points: []point{}, Paths: pathsOf(r)}
	points := report.Depth(r)
	var first *report.Layer
	for i := range points {
		first = cmp.Or(points[i].First, first)
	}
	at := map[*report.Layer]int{} // the number of its row, from 1
	for _, i := range chosen(r) {
		l := &r.Layers[i]
		d.Rows = append(d.Rows, rowOf(l, l == first))
		at[l] = len(d.Rows)
		d.Several = d.Several || l.Case != r.Layers[0].Case || l.Step != r.Layers[0].Step
		d.Injected = d.Injected || l.Injected != nil
	}
	d.LeftOut = len(r.Layers) - len(d.Rows)
	for i := range points {
		x := &points[i]
		p := point{at[x.Worst(report.Standard)] - 1, at[x.Worst(report.Injected)] - 1, x.First != nil}
		if p.Standard >= 0 || p.Injected >= 0 {
			d.Points = append(d.Points, p)
		}
	}
	for _, c := range report.Components {
		d.Components = append(d.Components, string(c))
	}
	return d
}

// chosen lists the numbers of the rows that are shown, in order.
func chosen(r *report.Report) []int {
	rank := func(i int) int {
		switch l := &r.Layers[i]; {
		case l.Status != report.StatusPass && l.Status != report.StatusIgnored:
			return 0
		case !l.IsInput():
			return 1
		}
		return 2
	}
	out := vec.Sequence(len(r.Layers))
	slices.SortStableFunc(out, func(i, k int) int { return rank(i) - rank(k) })
	out = out[:min(len(out), maxRows)]
	slices.Sort(out)
	return out
}

func rowOf(l *report.Layer, first bool) row {
	side := func(s *report.Side) (name, shape string) {
		if s == nil {
			return "", ""
		}
		return text(s.Name + " " + s.DType + " " + s.Shape.String()), s.Shape.String()
	}
	x := row{Layer: cmp.Or(text(l.Layer), "(root)"), Port: text(l.Port), Case: text(l.Case), Step: text(l.Step),
		Status: string(l.Status), Component: string(report.ComponentOf(l.Layer)),
		Input: l.IsInput(), First: first, Blame: text(l.Blame), Note: text(l.Note), Limit: text(l.Limit()),
		Standard: figuresOf(l.Standard), Injected: figuresOf(l.Injected)}
	if l.Benign { // no limit let it pass
		x.Limit = x.Note
	}
	if l.Tolerance != nil {
		x.Source = text(l.Tolerance.Source)
	}
	x.Actual, _ = side(l.Actual)
	x.Golden, x.Shape = side(l.Golden)
	if l.LocalL2 != nil && l.InheritedL2 != nil && l.LocalInheritedCosine != nil {
		x.Split = rounded(*l.LocalL2, *l.InheritedL2, *l.LocalInheritedCosine)
	}
	said := slices.Concat(l.Violations, l.Detail)
	for _, s := range said[:min(len(said), maxLines)] {
		x.Lines = append(x.Lines, text(s))
	}
	if l.Rows != nil {
		x.RowCount = l.Rows.N
		x.Bins = rounded(slices.Clone(l.Rows.RelL2[:min(len(l.Rows.RelL2), maxBins)])...)
	}
	if h := l.Histogram; h != nil {
		x.Equal, x.Exponent, x.Counts = h.Equal, h.Exponent, h.Counts[:min(len(h.Counts), maxBins)]
	}
	return x
}
