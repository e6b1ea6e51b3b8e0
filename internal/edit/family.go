package edit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Family is an edit with numbers that are not known: they are found from what the candidate has. All zero change nothing.
type Family struct {
	Text    string
	Numbers int
	Cost    int                     // of the edit
	Edit    func(p []float64) *Edit // nil where it cannot be written
}

// familiesOf lists those of a piece.
type familiesOf struct {
	*site
	out []Family
}

// Families lists those of a piece: a number that an operator is given, a result that is multiplied or moved by a number,
// the ratio of a geometric table, and each number of a short one. Numbers that stand there are the first.
func Families(b *replay.Base) (out []Family) {
	f := familiesOf{site: newSite(b, nil)}
	for _, g := range ofNumber(f.Piece) {
		f.add(fittedCost-1, fmt.Sprintf("%g wherever it stands", g.number), 1, percent, g.at, func(w *writer, o program.Op, p []float64) {
			i := slices.IndexFunc(o.Args, func(a program.Arg) bool { return a.Value == g.number })
			if !w.unless(i >= 0) {
				w.give(o, o.Args[i].Name, g.number*(1+p[0]))
			}
		})
	}
	for _, f.group = range f.groups {
		f.arguments()
		f.result()
	}
	slices.SortStableFunc(f.out, func(a, b Family) int { return a.Cost - b.Cost })
	return f.out
}

func (f *familiesOf) add(cost int, what string, n int, said func(p []float64) string, at []int, rewrite func(w *writer, o program.Op, p []float64)) {
	f.out = append(f.out, Family{what, n, cost, func(p []float64) *Edit {
		e := f.addAt("scalar", cost, text("%s: %s", what, said(p)), at, func(w *writer, o program.Op) { rewrite(w, o, p) })
		if f.site.out = nil; e.Kind == "" {
			return nil
		}
		e.Fitted = true
		return e
	}})
}

// arguments lists other numbers and tables that operators of the group are given.
func (f *familiesOf) arguments() {
	o := f.first()
	for _, a := range o.Args {
		what := text("%s of %s", a.Name, o.Name)
		switch v := a.Value.(type) {
		case float64:
			if v == 0 || slices.Contains(fixed, a.Name) {
				continue
			}
			f.add(fittedCost-1, what, 1, percent, f.group, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, v*(1+p[0])) })
			f.add(fittedCost-1, "a number more than "+what, 1, more, f.group, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, v+p[0]) })
		case program.ID:
			if v == program.None || f.Maker(v) >= 0 || f.Values[v].Weight != "" || f.Values[v].Record != 0 {
				continue
			}
			f.table(v, what, func(w *writer, o program.Op, table func(w *writer) program.ID) { w.give(o, a.Name, table(w)) })
		}
	}
}

// result lists other results of the group.
func (f *familiesOf) result() {
	o := f.first()
	v, ok := f.site.result(o)
	if !ok || !isFloat(v) || isOne(o, moving) {
		return
	}
	then := func(op, what string, from float64, said func(p []float64) string) {
		f.add(fittedCost, what+" the result of "+o.Name, 1, said, f.group, func(w *writer, o program.Op, p []float64) {
			w.after(o, func(w *writer, id program.ID) program.ID { return w.two(op, id, from+p[0]) })
		})
	}
	then("mul", "a factor of", 1, percent)
	then("add", "a number more than", 0, more)
	if f.tables[f.group[0]] {
		f.table(o.Out[0], "the result of "+o.Name, func(w *writer, o program.Op, table func(w *writer) program.ID) {
			w.after(o, func(w *writer, _ program.ID) program.ID { return table(w) })
		})
	}
}

// table lists how the numbers of a constant may be others.
func (f *familiesOf) table(id program.ID, name string, put func(w *writer, o program.Op, table func(w *writer) program.ID)) {
	x, v := f.Value(id), f.Values[id]
	if x == nil || !isFloat(v) || x.Len() < 2 {
		return
	}
	numbers := x.Floats()
	add := func(what string, n int, number func(i int, y float64, p []float64) float64) {
		f.add(fittedCost, what+name, n, percent, f.group, func(w *writer, o program.Op, p []float64) {
			put(w, o, func(w *writer) program.ID {
				return w.table(v.Shape, numbers, func(i int, y float64) float64 { return number(i, y, p) })
			})
		})
	}
	if q := sequenceOf(numbers); q.factor == 1 {
		add("the ratio of ", 1, func(i int, y float64, p []float64) float64 {
			first := numbers[i-i%q.n]
			return first * math.Pow(y/first, 1+p[0])
		})
	}
	if len(numbers) <= mostUnknown && !slices.Contains(numbers, 0) {
		add("the numbers of ", len(numbers), func(i int, y float64, p []float64) float64 { return y * (1 + p[i]) })
	}
}

// percent says by how much numbers are others, and more how much is added to one.
func percent(p []float64) string {
	var out []string
	for _, x := range p[:min(len(p), mostWritten)] {
		out = append(out, fmt.Sprintf("%+.3g", 100*x))
	}
	return strings.Join(out, ", ") + " %"
}

func more(p []float64) string { return fmt.Sprintf("%+.4g", p[0]) }

// Ordered puts what a piece makes in another order along an axis.
func Ordered(b *replay.Base, d int, order []int) *Edit {
	s := newSite(b, nil)
	s.last("layout", 5, text("axis %d in the order %v of the result", d, order[:min(len(order), mostWritten)]), func(w *writer, id program.ID) program.ID {
		return w.selected(id, d, order)
	})
	if len(s.out) == 0 {
		return nil
	}
	return &s.out[0]
}
