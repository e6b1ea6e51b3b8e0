package report

import (
	"fmt"
	"io"
)

// Modes writes a summary that compares the two modes: for each layer that is wrong in one of them,
// how far off it is in both, and whether it is wrong on golden inputs too.
func Modes(w io.Writer, r *Report) error {
	if err := r.check(); err != nil {
		return err
	}
	p := newPrinter(TextOptions{Width: 120}, r.Layers)
	p.verdict(r)
	points := Depth(r)
	standard, injected := StatisticsOf(points, Standard, ""), StatisticsOf(points, Injected, "")
	p.section("MSE")
	table := [][]string{{"", "without injection", "with injection"}}
	for _, f := range []struct {
		name string
		of   func(Statistics) string
	}{
		{"layers", func(s Statistics) string { return fmt.Sprint(s.Layers) }},
		{"tensors", func(s Statistics) string { return fmt.Sprint(s.N) }},
		{"min", func(s Statistics) string { return scientific(s.Min) }},
		{"max", func(s Statistics) string { return scientific(s.Max) }},
		{"mean", func(s Statistics) string { return scientific(s.Mean) }},
		{"median", func(s Statistics) string { return scientific(s.Median) }},
		{"zero", func(s Statistics) string { return fmt.Sprint(s.Zero) }},
		{"infinite", func(s Statistics) string { return fmt.Sprint(s.Infinite) }},
	} {
		cells := []string{f.name, noFigure, noFigure}
		for i, stats := range []Statistics{standard, injected} {
			if stats.N > 0 {
				cells[i+1] = f.of(stats)
			}
		}
		table = append(table, cells)
	}
	for _, c := range Components {
		s, i := StatisticsOf(points, Standard, c), StatisticsOf(points, Injected, c)
		cells := []string{"mean of " + string(c), noFigure, noFigure}
		for k, stats := range []Statistics{s, i} {
			if stats.N > 0 {
				cells[k+1] = scientific(stats.Mean)
			}
		}
		if s.N+i.N > 0 {
			table = append(table, cells)
		}
	}
	p.columns(table)
	if injected.N == 0 {
		p.linef("")
		p.linef("There was no injected run: it is not known which layers are wrong on golden inputs too.")
	} else {
		p.errors(points)
	}
	p.linef("")
	p.prose("", "Source: ", r.Source.String())
	_, err := w.Write(p.Bytes())
	return err
}

// errors lists the rows that are wrong in one of the modes.
func (p *printer) errors(points []Point) {
	p.section("Layers that are wrong in one of the modes (relative L2)")
	table := [][]string{{"layer", "without", "with injection", "local", "inherited", ""}}
	n := 0
	for i := range points {
		for _, l := range points[i].Rows {
			s, in := l.resultIn(Standard), l.resultIn(Injected)
			wrong := func(result string) bool {
				return result == string(StatusFail) || result == string(StatusInherited) ||
					result == string(StatusError)
			}
			name := p.names.row(l)
			if points[i].Computed {
				name, s = name+" (computed)", ""
			}
			if l.Standard == nil || !wrong(s) && !(l.Injected != nil && wrong(in)) {
				continue
			}
			if n++; n > maxModeRows {
				continue
			}
			cells := []string{name, num(l.Standard.RelL2), noFigure, noFigure, noFigure, "not injected"}
			if l.Injected != nil {
				cells[2] = num(l.Injected.RelL2)
				switch {
				case in == unsureResult:
					cells[5] = ""
				case !wrong(in):
					cells[5] = "right on golden inputs"
				case points[i].Computed:
					cells[5] = "as the code before it computed it"
				default:
					cells[5] = "wrong on golden inputs too"
				}
			}
			if l.LocalL2 != nil && l.InheritedL2 != nil {
				cells[3], cells[4] = num(*l.LocalL2), num(*l.InheritedL2)
			}
			table = append(table, cells)
		}
	}
	if n == 0 {
		p.linef("  none")
		return
	}
	p.columns(table)
	if n > maxModeRows {
		p.linef("  … and %d more, all in report.json", n-maxModeRows)
	}
	p.linef("  local = ‖a_injected − g‖, inherited = ‖a_standard − a_injected‖")
	p.linef("  A layer that contains others may be wrong on golden inputs because one of these is; the verdict above " +
		"says which made the error.")
}
