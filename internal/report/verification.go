package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Verification is the document of one mode that a layer verification leaves next to its tensors: the verdict, the
// execution order, statistics of the mean squared errors, in all and by component, and every layer with its figures
// and shapes.
func (r *Report) Verification(mode Mode) *Document {
	d, points := r.composed(), Depth(r)
	d.Heading = "LAYER VERIFICATION REPORT, " + modeText[mode]
	d.executed(points)
	d.outcomes(points, mode)
	d.statistics(points, mode)
	d.details(points, mode)
	d.source()
	return &d.Document
}

// Modes is the document that compares the two modes: for each layer that is wrong in one of them, how far off it is
// in both, and whether it is wrong on golden inputs too.
func (r *Report) Modes() *Document {
	d, points := r.composed(), Depth(r)
	d.statistics(points, Standard, Injected)
	if StatisticsOf(points, Injected, "").N == 0 {
		d.add(Section{Heading: "With injection", Lines: lines("", "There was no injected run: it is not known which layers are wrong on golden inputs too.")}, 1)
	} else {
		d.wrongInModes(points)
	}
	d.source()
	return &d.Document
}

// composed has what is said before any figures.
func (r *Report) composed() *composer {
	d := r.composer(View{})
	d.place()
	d.causes()
	d.judged()
	return d
}

var modeText = map[Mode]string{
	Standard: "without injection: each layer saw what its own model computed",
	Injected: "with injection: each layer was given the golden inputs",
}

func (d *composer) executed(points []Point) {
	s := Section{Heading: "EXECUTION ORDER VERIFICATION"}
	switch o := d.r.Order; {
	case o == nil:
		s.Lines = lines("", "not known: one of the two sides recorded no order")
	case o.Same:
		s.Lines = lines("PASSED", count(StatisticsOf(points, Standard, "").Layers, "layer")+" in identical order")
	default:
		what := fmt.Sprintf("%s in another place (reported only: independent siblings may swap)", count(o.N, "layer"))
		s.Lines = append(lines("DIFFERS", what), lines("", o.Differences...)...)
	}
	d.add(s, len(s.Lines))
}

// outcomes counts the rows of a mode by what came of them.
func (d *composer) outcomes(points []Point, mode Mode) {
	all := lines("Total Layers", fmt.Sprint(StatisticsOf(points, mode, "").Layers))
	byResult := map[string]int{}
	for _, x := range inMode(points, mode) {
		byResult[x.kind()+" "+x.resultIn(mode)]++
	}
	for _, kind := range []string{"outputs", computedKind} {
		var parts []string
		for _, result := range append(statuses, unsureResult) {
			if n := byResult[kind+" "+string(result)]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, result))
			}
		}
		all = append(all, lines(kind, strings.Join(parts, ", "))...)
	}
	for i, lones := range [][]Lone{d.r.Unmatched.Golden, d.r.Unmatched.Actual} {
		if len(lones) > 0 {
			all = append(all, lines("only the "+[]string{"golden", "candidate"}[i]+" has", count(len(lones), "port"))...)
		}
	}
	if byResult["outputs "+unsureResult]+byResult[computedKind+" "+unsureResult] > 0 {
		all = append(all, lines(unsureResult, "the figures do not tell whether the row's tolerance holds in this mode")...)
	}
	d.add(Section{Heading: "SUMMARY", Lines: all}, len(all))
}

// computedKind are rows of inputs in an injected run.
const computedKind = "inputs as they had been computed before the golden ones replaced them"

// placed is a row with the point at which it stands.
type placed struct {
	*Layer
	at *Point
}

func (x placed) kind() string {
	if x.at.Computed {
		return computedKind
	}
	return "outputs"
}

// inMode lists the rows that have figures in a mode.
func inMode(points []Point, mode Mode) (rows []placed) {
	for i := range points {
		for _, l := range points[i].Rows {
			if l.In(mode) != nil && !(points[i].Computed && mode == Standard) {
				rows = append(rows, placed{l, &points[i]})
			}
		}
	}
	return rows
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
	result, _ := l.judge(l.Injected, &Tolerance{}, l.Tolerance)
	return map[outcome]string{holds: string(StatusPass), broken: string(StatusFail), unknown: unsureResult}[result]
}

// statistics are those of the mean squared errors, in all and of each component.
func (d *composer) statistics(points []Point, modes ...Mode) {
	t := &Table{Head: []string{"", "layers", "tensors", "min", "max", "mean", "median", "zero", "infinite"}, Figures: 8}
	for _, mode := range modes {
		for _, c := range append([]Component{""}, Components...) {
			s, name := StatisticsOf(points, mode, c), cmp.Or(string(c), "all")
			if s.N == 0 {
				continue
			}
			if len(modes) > 1 {
				name += map[Mode]string{Standard: ", without injection", Injected: ", with injection"}[mode]
			}
			row := []string{name, fmt.Sprint(s.Layers), fmt.Sprint(s.N)}
			for _, v := range []float64{s.Min, s.Max, s.Mean, s.Median} {
				row = append(row, scientific(v))
			}
			t.Rows = append(t.Rows, append(row, fmt.Sprint(s.Zero), fmt.Sprint(s.Infinite)))
		}
	}
	s := Section{Heading: "MSE STATISTICS", Table: t, Lines: lines("", "zero: equal bit by bit, or equal in value. "+
		"infinite: a NaN or an infinity without its match; counted in max, mean and median")}
	if len(t.Rows) == 0 {
		s.Table, s.Lines = nil, lines("", "nothing was compared")
	}
	d.Sections = append(d.Sections, s)
}

// scientific writes a figure of a report that people compare with others: "1.234567e-12".
func scientific(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return num(Float(v))
	}
	return fmt.Sprintf("%.6e", v)
}

// details lists each row with its figures and shapes.
func (d *composer) details(points []Point, mode Mode) {
	key := func(l *Layer) [3]string { return [3]string{l.Case, l.Step, l.Layer} }
	inputs := map[[3]string][]string{}
	for i := range d.r.Layers {
		if l := &d.r.Layers[i]; l.IsInput() && l.Golden != nil {
			inputs[key(l)] = append(inputs[key(l)], l.Golden.Shape.String())
		}
	}
	t := &Table{Head: []string{"layer", "MSE", "rel. L2", "worst row", "max |a-g|", "1-cosine", "result", "shape", "inputs", ""}, Figures: 5}
	for _, x := range inMode(points, mode) {
		m, name, shape, given, note := x.In(mode), d.names.row(x.Layer), "", inputs[key(x.Layer)], x.In(mode).nonFinite()
		if x.at.Computed {
			name, given = name+" (computed)", nil
		}
		if x.Golden != nil {
			shape = x.Golden.Shape.String()
		}
		if x.Layer == x.at.First && mode == Standard {
			note = strings.TrimSuffix("first divergence; "+note, "; ")
		}
		t.Rows = append(t.Rows, []string{name, scientific(m.error()), num(m.RelL2), num(m.RowRelL2), num(m.MaxAbs), num(m.CosineDistance),
			x.resultIn(mode), shape, strings.Join(given, ", "), note})
	}
	d.Sections = append(d.Sections, Section{Heading: "DETAILED LAYER RESULTS (execution order)", Table: t})
}

// wrongInModes lists the rows that are wrong in one of the modes.
func (d *composer) wrongInModes(points []Point) {
	t := &Table{Head: []string{"layer", "without", "with injection", "local", "inherited", ""}, Figures: 4}
	wrong := func(result string) bool {
		return result == string(StatusFail) || result == string(StatusInherited) || result == string(StatusError)
	}
	for i := range points {
		for _, l := range points[i].Rows {
			name, computed, in := d.names.row(l), points[i].Computed, l.resultIn(Injected)
			if l.Standard == nil || (computed || !wrong(string(l.Status))) && (l.Injected == nil || !wrong(in)) {
				continue
			}
			if computed {
				name += " (computed)"
			}
			row := []string{name, num(l.Standard.RelL2), noFigure, noFigure, noFigure, "not injected"}
			if l.Injected != nil {
				row[2] = num(l.Injected.RelL2)
				switch {
				case in == unsureResult:
					row[5] = ""
				case !wrong(in):
					row[5] = "right on golden inputs"
				case computed:
					row[5] = "as the code before it computed it"
				default:
					row[5] = "wrong on golden inputs too"
				}
			}
			if l.LocalL2 != nil && l.InheritedL2 != nil {
				row[3], row[4] = num(*l.LocalL2), num(*l.InheritedL2)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	s := Section{Heading: "Layers that are wrong in one of the modes (relative L2)", Lines: lines("", "none")}
	if len(t.Rows) > 0 {
		n := d.shown(len(t.Rows), maxModeRows)
		s.More, t.Rows = len(t.Rows)-n, t.Rows[:n]
		s.Table, s.Lines = t, lines("", "local = ‖a_injected − g‖, inherited = ‖a_standard − a_injected‖",
			"A layer that contains others may be wrong on golden inputs because one of these is; the verdict above says which made the error.")
	}
	d.Sections = append(d.Sections, s)
}
