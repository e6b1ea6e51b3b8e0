package export

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/report"
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
	Layer     string   `json:"l"`
	Port      string   `json:"p"`
	Case      string   `json:"c,omitempty"`
	Step      string   `json:"s,omitempty"`
	Status    string   `json:"st"`
	Component string   `json:"k"`
	Input     bool     `json:"in,omitempty"`
	First     bool     `json:"f,omitempty"`
	Blame     string   `json:"b,omitempty"`
	Note      string   `json:"n,omitempty"`
	Limit     string   `json:"t,omitempty"`
	Source    string   `json:"ts,omitempty"` // of the tolerance
	Shape     string   `json:"sh,omitempty"`
	Golden    string   `json:"g,omitempty"`
	Actual    string   `json:"a,omitempty"`
	Standard  figures  `json:"m,omitempty"`
	Injected  figures  `json:"i,omitempty"`
	Split     figures  `json:"x,omitempty"` // local, inherited, cosine of the two
	Lines     []string `json:"d,omitempty"` // violations and details
	Bins      figures  `json:"r,omitempty"` // relative L2 of rows
	RowCount  int      `json:"rn,omitempty"`
	Equal     int      `json:"he,omitempty"`
	Exponent  int      `json:"hx,omitempty"`
	Counts    []int    `json:"h,omitempty"`
}

// point is one place along the depth: the rows that are drawn there.
type point struct {
	Standard int  `json:"m"` // number of the row, −1 for none
	Injected int  `json:"i"`
	First    bool `json:"f,omitempty"` // the first divergence is here
}

// figures are numbers of four digits, by their place: max abs, relative L2, worst row, 1 − cosine,
// MSE, mismatches, elements, SNR, non-finite pairs without a match.
type figures []float64

func (f figures) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range f {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			word, err := json.Marshal(report.Float(v))
			if err != nil {
				return nil, err
			}
			b = append(b, word...)
		case v == math.Trunc(v) && math.Abs(v) < 1e15:
			b = strconv.AppendFloat(b, v, 'f', -1, 64)
		default:
			b = strconv.AppendFloat(b, v, 'g', 4, 64)
		}
	}
	return append(b, ']'), nil
}

func figuresOf(m *report.Metrics) figures {
	if m == nil {
		return nil
	}
	return figures{float64(m.MaxAbs), float64(m.RelL2), float64(m.RowRelL2), float64(m.CosineDistance),
		float64(m.MSE), float64(m.Mismatches), float64(m.N), float64(m.SNR), float64(m.BadNonFinite)}
}

func dataOf(r *report.Report) data {
	d := data{Rows: []row{}, Points: []point{}, Paths: pathsOf(r)}
	points := report.Depth(r)
	at := map[*report.Layer]int{}
	var first *report.Layer
	for i := range points {
		if points[i].First != nil {
			first = points[i].First
		}
	}
	for _, i := range chosen(r) {
		l := &r.Layers[i]
		at[l] = len(d.Rows)
		d.Rows = append(d.Rows, rowOf(l, l == first))
		d.Several = d.Several || l.Case != r.Layers[0].Case || l.Step != r.Layers[0].Step
		d.Injected = d.Injected || l.Injected != nil
	}
	d.LeftOut = len(r.Layers) - len(d.Rows)
	place := func(l *report.Layer) int {
		if i, ok := at[l]; ok {
			return i
		}
		return -1
	}
	for i := range points {
		x := &points[i]
		p := point{place(x.Worst(report.Standard)), place(x.Worst(report.Injected)), x.First != nil}
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
	rank := func(l *report.Layer) int {
		switch {
		case l.Status != report.StatusPass && l.Status != report.StatusIgnored:
			return 0
		case !l.IsInput():
			return 1
		}
		return 2
	}
	var out []int
	for want := range 3 {
		for i := range r.Layers {
			if rank(&r.Layers[i]) == want && len(out) < maxRows {
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}

func rowOf(l *report.Layer, first bool) row {
	x := row{Layer: text(l.Layer), Port: text(l.Port), Case: text(l.Case), Step: text(l.Step),
		Status: string(l.Status), Component: string(report.ComponentOf(l.Layer)),
		Input: l.IsInput(), First: first, Blame: text(l.Blame), Note: text(l.Note), Limit: text(l.Limit()),
		Standard: figuresOf(l.Standard), Injected: figuresOf(l.Injected)}
	if x.Layer == "" {
		x.Layer = "(root)"
	}
	if l.Benign { // no limit let it pass
		x.Limit = x.Note
	}
	if l.Tolerance != nil {
		x.Source = text(l.Tolerance.Source)
	}
	side := func(s *report.Side) string { return text(s.Name + " " + s.DType + " " + s.Shape.String()) }
	if l.Golden != nil {
		x.Golden, x.Shape = side(l.Golden), l.Golden.Shape.String()
	}
	if l.Actual != nil {
		x.Actual = side(l.Actual)
	}
	if l.LocalL2 != nil && l.InheritedL2 != nil && l.LocalInheritedCosine != nil {
		x.Split = figures{float64(*l.LocalL2), float64(*l.InheritedL2), float64(*l.LocalInheritedCosine)}
	}
	if lines := append(slices.Clone(l.Violations), l.Detail...); len(lines) > 0 {
		x.Lines = texts(lines, maxLines)
	}
	if l.Rows != nil {
		x.RowCount = l.Rows.N
		for _, f := range l.Rows.RelL2[:min(len(l.Rows.RelL2), maxBins)] {
			x.Bins = append(x.Bins, float64(f))
		}
	}
	if h := l.Histogram; h != nil {
		x.Equal, x.Exponent, x.Counts = h.Equal, h.Exponent, h.Counts[:min(len(h.Counts), maxBins)]
	}
	return x
}
