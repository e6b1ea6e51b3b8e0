// Package export writes what only the command needs of a report: one HTML file that loads nothing (a content security
// policy sees to that) and in which everything from a dump is text, the depth as PNG, and links to the files of a
// report in a JUnit file.
package export

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the assets
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
)

// uPlot 1.6.32, MIT licence: assets/uPlot.LICENSE, which the page repeats: a minified file keeps no comment.
var (
	//go:embed assets/uPlot.min.js
	uplotJS string
	//go:embed assets/uPlot.min.css
	uplotCSS string
	//go:embed assets/uPlot.LICENSE
	uplotLicence string
	//go:embed assets/page.js
	pageJS string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.html
	pageHTML string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{"upper": upper, "about": about, "text": text}).Parse(pageHTML))

type content struct {
	Policy  string
	Style   template.CSS
	Scripts []template.JS
	Data    template.JS // JSON, in which Go escapes <, > and &
	Licence string
	Doc     *report.Document
	Texts   []textChart
	LeftOut int
}

// HTML writes the page of the report that lies in file, which the next command names. Reports of more than 8,000
// rows are shown in part: the failing ones first, then outputs.
func HTML(w io.Writer, r *report.Report, file string) error {
	d := dataOf(r)
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	style := uplotCSS + "\n" + pageCSS
	c := content{Style: template.CSS(style), Scripts: []template.JS{template.JS(uplotJS), template.JS(pageJS)},
		Data: template.JS(data), Licence: uplotLicence, Doc: r.Document(report.View{Verbose: true, File: file}), Texts: textCharts(r), LeftOut: d.LeftOut}
	c.Policy = fmt.Sprintf("default-src 'none'; script-src %s %s; style-src %s; base-uri 'none'; form-action 'none'",
		hash(uplotJS), hash(pageJS), hash(style))
	var b bytes.Buffer
	if err := page.Execute(&b, c); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// hash is how a policy names a text that it allows.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// about is what docs/causes.md says about a cause, but for its ids.
func about(id string) []docs.Part {
	parts := docs.Cause(id)
	return parts[min(1, len(parts)):]
}

func upper(v report.Verdict) string { return strings.ToUpper(string(v)) }

// text makes a string from a dump fit to show.
func text(s string) string {
	s = report.Clean(s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText-1]) + "…"
	}
	return s
}

type data struct {
	Rows       []row    `json:"rows"`
	Points     []point  `json:"points"`
	Components []string `json:"components"`
	Several    bool     `json:"several"` // cases or steps
	Injected   bool     `json:"injected"`
	Paths      *paths   `json:"paths,omitempty"`
	LeftOut    int      `json:"-"`
}

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

// rounded are metrics of four digits, which keeps a page small; counts stay exact.
func rounded(metrics ...report.Float) []report.Float {
	for i, f := range metrics {
		if v := float64(f); v != math.Trunc(v) {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
			metrics[i] = report.Float(v)
		}
	}
	return metrics
}

// metricsOf are metrics by their place, as page.js reads them: counts among them stay exact.
func metricsOf(m *report.Metrics) []report.Float {
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
		Standard: metricsOf(l.Standard), Injected: metricsOf(l.Injected)}
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

// paths is the picture of execution paths × depth: a row for each run, one pass first, whose columns are layers in
// the reference's order, or several neighbours where there are many.
type paths struct {
	Columns []string  `json:"columns"` // the first layer of each
	Worst   float64   `json:"worst"`   // finite error, in units of the limit
	Rows    []pathRow `json:"rows"`
}

type pathRow struct {
	Name   string         `json:"n"`           // "one pass", "decode:8", with the case where a path has several
	Errors []report.Float `json:"e"`           // by column, in units of the limit; NaN if no layer of it was compared
	Layers []string       `json:"l,omitempty"` // the worst of each column, where columns are several layers
	First  int            `json:"f"`           // the column of the first divergence, −1 for none
	Text   string         `json:"t"`           // what the row shows, in words
}

func pathsOf(r *report.Report) *paths {
	d := r.PathDepth
	if d == nil || len(d.Layers) == 0 || len(r.Paths) == 0 {
		return nil
	}
	out := &paths{}
	each := (len(d.Layers) + maxColumns - 1) / maxColumns
	for column := range slices.Chunk(d.Layers, each) {
		out.Columns = append(out.Columns, text(column[0]))
	}
	runs := slices.Clone(d.Runs)
	slices.SortStableFunc(runs, func(a, b report.PathError) int { return rank(a) - rank(b) })
	for _, run := range runs[:min(len(runs), maxPaths)] {
		row := pathRow{Name: text(run.Path), First: -1, Text: run.Text(d.Layers)}
		if run.Path == report.OnePass {
			row.Name = "one pass"
		} else if slices.ContainsFunc(runs, func(o report.PathError) bool { return o.Path == run.Path && o.Case != run.Case }) {
			row.Name = text(run.Path + " " + run.Case)
		}
		errors := run.Errors[:min(len(run.Errors), len(d.Layers))]
		for i := range out.Columns {
			worst, at := math.NaN(), ""
			for k := i * each; k < min((i+1)*each, len(errors)); k++ {
				if e := float64(errors[k]); !math.IsNaN(e) && !(e <= worst) {
					worst, at = e, text(d.Layers[k])
				}
			}
			if !math.IsInf(worst, 1) && worst > out.Worst {
				out.Worst = worst
			}
			row.Errors = append(row.Errors, report.Float(worst))
			if each > 1 {
				row.Layers = append(row.Layers, at)
			}
		}
		i := slices.IndexFunc(r.Paths, func(p report.Path) bool { return p.Path == run.Path && p.Case == run.Case })
		if i >= 0 && r.Paths[i].First != nil {
			row.First = firstOf(d.Layers, errors, r.Paths[i].First.Layer) / each
			row.Text = "first divergence " + r.Paths[i].First.String() + "; " + row.Text
		}
		row.Text, row.Errors = text(row.Text), rounded(row.Errors...)
		out.Rows = append(out.Rows, row)
	}
	return out
}

func rank(run report.PathError) int {
	if run.Path == report.OnePass {
		return 0
	}
	return 1
}

// firstOf is the index of the layer of a first divergence, or of the first layer in it that shows the error.
func firstOf(layers []string, errors []report.Float, layer string) int {
	for i, e := range errors {
		if label.Within(layers[i], layer) && e > 1 {
			return i
		}
	}
	return max(slices.Index(layers, layer), 0)
}

// textChart is a generation as the template draws it, ten units for each token: by how much the reference's token is
// ahead in both runs above 100, and how far the two distributions are apart, KL, between 104 and 154. Scales are
// logarithmic: gaps from a hundredth of the noise over the noise itself, at 75, to a million times it; KL from 1e-12
// to 10 nats.
type textChart struct {
	Name, Text string
	Width      int
	Bars       []tokenBar
}

type tokenBar struct {
	X, GapY, GapHeight, OwnY, KLY, KLHeight int
	Own                                     bool // in the candidate the reference's token is ahead
	Fill, Title                             string
}

// fills are the colours of what the candidate chose.
var fills = map[string]string{"same": "#6f9fc8", "tie": "#e69f00", "diverged": "#a01020"}

func textCharts(r *report.Report) (out []textChart) {
	for i := range r.Generations[:min(len(r.Generations), maxTexts)] {
		g := &r.Generations[i]
		from := 0
		if g.At != nil { // what the verdict is about is in the picture
			from = max(min(*g.At-maxTokens/4, len(g.Positions)-maxTokens), 0)
		}
		shown := g.Positions[from:min(len(g.Positions), from+maxTokens)]
		c := textChart{Name: text(g.Case), Text: text(g.Text), Width: max(10*len(shown), 10)}
		if len(shown) < len(g.Positions) {
			c.Text += fmt.Sprintf(" (the picture has tokens %d to %d)", from, from+len(shown)-1)
		}
		for k, t := range shown {
			gap, kl := high(float64(t.Gap), -2, 6, 100), high(float64(t.KL), -12, 1, 50)
			b := tokenBar{X: 10 * k, GapY: 100 - gap, GapHeight: gap, KLY: 154 - kl, KLHeight: kl, Fill: fills[t.Choice],
				Title: text(fmt.Sprintf("token %d: %s", from+k, t.String()))}
			if own := math.Abs(float64(t.OwnGap)); !math.IsNaN(own) && t.OwnGap >= 0 {
				b.Own, b.OwnY = true, 99-high(own, -2, 6, 98)
			}
			c.Bars = append(c.Bars, b)
		}
		out = append(out, c)
	}
	return out
}

// high is where a number lies between two powers of ten, as a part of a height; at least 1.
func high(x, from, to float64, of int) int {
	if math.IsNaN(x) {
		return 1
	}
	share := (math.Log10(max(x, math.SmallestNonzeroFloat64)) - from) / (to - from)
	return max(int(math.Round(min(max(share, 0), 1)*float64(of))), 1)
}
