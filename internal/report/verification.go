package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Verification writes the report of one mode that a layer verification leaves next to its tensors:
// the verdict, the execution order, statistics of the mean squared errors, in all and by component,
// and every layer with its figures and shapes.
func Verification(w io.Writer, r *Report, mode Mode) error {
	if err := r.check(); err != nil {
		return err
	}
	p := newPrinter(TextOptions{Width: 120}, r.Layers)
	p.linef("LAYER VERIFICATION REPORT")
	p.linef("Mode: %s", modeText[mode])
	p.linef("")
	p.verdict(r)
	points := Depth(r)
	p.verificationOrder(r, points)
	p.verificationSummary(r, points, mode)
	p.statistics(points, mode)
	p.details(r, points, mode)
	p.linef("")
	p.prose("", "Source: ", r.Source.String())
	_, err := w.Write(p.Bytes())
	return err
}

var modeText = map[Mode]string{
	Standard: "without injection: each layer saw what its own model computed",
	Injected: "with injection: each layer was given the golden inputs",
}

// verdict writes what is said before any figures.
func (p *printer) verdict(r *Report) {
	d := r.Document(View{})
	p.title(d)
	for i := range d.Sections {
		if s := &d.Sections[i]; slices.Contains([]string{SectionPlace, SectionCauses, SectionJudged}, s.ID) {
			p.write(r, s)
		}
	}
}

func (p *printer) verificationOrder(r *Report, points []Point) {
	p.section("EXECUTION ORDER VERIFICATION")
	switch o := r.Order; {
	case o == nil:
		p.linef("  not known: one of the two sides recorded no order")
	case o.Same:
		layers := map[string]bool{}
		for _, x := range points {
			layers[x.Layer] = true
		}
		p.linef("  PASSED: %s in identical order", count(len(layers), "layer"))
	default:
		p.linef("  DIFFERS: %s in another place (reported only: independent siblings may swap)", count(o.N, "layer"))
		for _, d := range o.Differences {
			p.prose("    ", "", d)
		}
	}
}

func (p *printer) verificationSummary(r *Report, points []Point, mode Mode) {
	p.section("SUMMARY")
	s, unsure := StatisticsOf(points, mode, ""), false
	p.linef("  Total Layers: %d", s.Layers)
	for _, computed := range []bool{false, true} {
		n, byResult := 0, map[string]int{}
		for i := range points {
			for _, l := range points[i].Rows {
				if points[i].Computed == computed && points[i].Worst(mode) != nil && l.In(mode) != nil {
					n++
					byResult[l.resultIn(mode)]++
				}
			}
		}
		var parts []string
		for _, result := range append(statuses, unsureResult) {
			if k := byResult[string(result)]; k > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", k, result))
			}
		}
		what := "Outputs"
		if computed {
			what = "Inputs as they had been computed before the golden ones replaced them (they show the code " +
				"between layers)"
		}
		if n > 0 {
			p.linef("  %s: %d: %s", what, n, strings.Join(parts, ", "))
		}
		unsure = unsure || byResult[unsureResult] > 0
	}
	if n := len(r.Unmatched.Golden); n > 0 {
		p.linef("  Only the golden has: %s", count(n, "port"))
	}
	if n := len(r.Unmatched.Actual); n > 0 {
		p.linef("  Only the candidate has: %s", count(n, "port"))
	}
	if unsure {
		p.linef("  (unsure: the figures do not tell whether the row's tolerance holds in this mode)")
	}
}

// unsureResult is the result of a row whose tolerance the injected figures do not decide.
const unsureResult = "unsure"

// resultIn is the result of a row in a mode: its status, or, of an injected run, what its own
// tolerance says of the injected figures.
func (l *Layer) resultIn(mode Mode) string {
	if mode == Standard || l.Injected == nil {
		return string(l.Status)
	}
	if l.Tolerance == nil {
		return string(StatusIgnored)
	}
	result, _ := judgeMetrics(l.Injected, &Tolerance{}, l.integers(), l.Tolerance)
	return map[outcome]string{holds: string(StatusPass), broken: string(StatusFail), unknown: unsureResult}[result]
}

func (p *printer) statistics(points []Point, mode Mode) {
	p.section("MSE STATISTICS")
	p.figures("  ", StatisticsOf(points, mode, ""))
	p.section("PER-COMPONENT STATISTICS")
	for _, c := range Components {
		s := StatisticsOf(points, mode, c)
		if s.N == 0 {
			continue
		}
		p.linef("  %s:", c)
		p.linef("    Layers: %d", s.Layers)
		p.figures("    MSE ", s)
	}
}

func (p *printer) figures(lead string, s Statistics) {
	if s.N == 0 {
		p.linef("%snothing was compared", lead)
		return
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"Min", s.Min}, {"Max", s.Max}, {"Mean", s.Mean}, {"Median", s.Median}} {
		p.linef("%s%s: %s", lead, f.name, scientific(f.v))
	}
	if s.Zero > 0 {
		p.linef("%sZero: %d (equal bit by bit, or equal in value)", lead, s.Zero)
	}
	if s.Infinite > 0 {
		p.linef("%sInfinite: %d (a NaN or an infinity without its match; counted in Max, Mean and Median)", lead,
			s.Infinite)
	}
}

// scientific writes a figure of a report that people compare with others: "1.234567e-12".
func scientific(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return num(Float(v))
	}
	return fmt.Sprintf("%.6e", v)
}

func (p *printer) details(r *Report, points []Point, mode Mode) {
	p.section("DETAILED LAYER RESULTS (execution order)")
	inputs := map[[3]string][]*Layer{}
	for i := range r.Layers {
		if l := &r.Layers[i]; l.IsInput() && l.Golden != nil {
			k := [3]string{l.Case, l.Step, l.Layer}
			inputs[k] = append(inputs[k], l)
		}
	}
	for i := range points {
		x := &points[i]
		for _, l := range x.Rows {
			m := l.In(mode)
			if m == nil || x.Computed && mode == Standard {
				continue
			}
			note := ""
			if l == x.First && mode == Standard {
				note = "   <== first divergence"
			}
			name := p.names.row(l)
			if x.Computed {
				name += " (computed)"
			}
			p.linef("[%3d] %s: %s%s", i, name, l.resultIn(mode), note)
			p.linef("      MSE: %s   rel. L2: %s   worst row: %s   max |a-g|: %s   1-cosine: %s",
				scientific(m.error()), num(m.RelL2), num(m.RowRelL2), num(m.MaxAbs), num(m.CosineDistance))
			if text := m.nonFinite(); text != "" {
				p.linef("      %s", text)
			}
			var shapes []string
			for _, in := range inputs[[3]string{l.Case, l.Step, l.Layer}] {
				shapes = append(shapes, in.Golden.Shape.list())
			}
			if !x.Computed && len(shapes) > 0 {
				p.linef("      Input shapes: [%s]", strings.Join(shapes, ", "))
			}
			if l.Golden != nil && x.Computed {
				p.linef("      Shapes: [%s]", l.Golden.Shape.list())
			} else if l.Golden != nil {
				p.linef("      Output shapes: [%s]", l.Golden.Shape.list())
			}
		}
	}
}

// list is "[1, 9, 5120]".
func (s Shape) list() string {
	return "[" + strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(s)), "[]"), " ", ", ") + "]"
}
