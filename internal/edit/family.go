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

// Families lists those of a piece: a number that an operator is given, a result that is multiplied or moved by a number,
// the ratio of a geometric table, and each number of a short one. Numbers that stand there are the first.
func Families(b *replay.Base) (out []Family) {
	s := newSite(b, nil)
	of := func(cost int, what string, n int, at []int, said func(p []float64) string, rewrite func(w *writer, o program.Op, p []float64)) {
		out = append(out, Family{what, n, cost, func(p []float64) *Edit {
			s.out = nil
			e := s.addAt("scalar", cost, text("%s: %s", what, said(p)), at, func(w *writer, o program.Op) { rewrite(w, o, p) })
			if e.Kind == "" {
				return nil
			}
			e.Fitted = true
			return e
		}})
	}
	add := func(what string, n int, at []int, rewrite func(w *writer, o program.Op, p []float64)) {
		of(fittedCost, what, n, at, fitted, rewrite)
	}
	more := func(p []float64) string { return fmt.Sprintf("%+.4g", p[0]) }
	for _, g := range ofNumber(s.Piece) {
		of(fittedCost-1, fmt.Sprintf("%g wherever it stands", g.number), 1, g.at, fitted, func(w *writer, o program.Op, p []float64) {
			for _, a := range o.Args {
				if a.Value == g.number {
					w.give(o, a.Name, g.number*(1+p[0]))
					return
				}
			}
			w.failed = true
		})
	}
	for _, g := range groups(s.Piece) {
		o := s.Ops[g[0]]
		for _, a := range o.Args {
			if c, ok := a.Value.(float64); ok && c != 0 && !slices.Contains(fixed, a.Name) {
				what, cost := text("%s of %s", a.Name, o.Name), fittedCost-1 // the number is there
				of(cost, what, 1, g, fitted, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, c*(1+p[0])) })
				of(cost, "a number more than "+what, 1, g, more, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, c+p[0]) })
			}
			if id, ok := a.Value.(program.ID); ok && id != program.None && s.Maker(id) < 0 && s.Values[id].Weight == "" && s.Values[id].Record == 0 {
				s.unknownTable(id, a.Name+" of "+o.Name, func(what string, n int, f func(w *writer, id program.ID, p []float64) program.ID) {
					add(what, n, g, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, f(w, id, p)) })
				})
			}
		}
		v, ok := s.result(o)
		if !ok || !isFloat(v) || slices.Contains(moves, o.Name) {
			continue
		}
		add("a factor of the result of "+o.Name, 1, g, func(w *writer, o program.Op, p []float64) {
			w.after(o, func(w *writer, id program.ID) program.ID { return w.call("mul", id, nil, "self", id, "other", 1+p[0]) })
		})
		of(fittedCost, "a number more than the result of "+o.Name, 1, g, more, func(w *writer, o program.Op, p []float64) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				return w.call("add", id, nil, "self", id, "other", p[0], "alpha", 1)
			})
		})
		if s.tables[g[0]] {
			s.unknownTable(o.Out[0], "the result of "+o.Name, func(what string, n int, f func(w *writer, id program.ID, p []float64) program.ID) {
				add(what, n, g, func(w *writer, o program.Op, p []float64) {
					w.after(o, func(w *writer, _ program.ID) program.ID { return f(w, o.Out[0], p) })
				})
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Family) int { return a.Cost - b.Cost })
	return out
}

// unknownTable lists how the numbers of a constant may be others.
func (s *site) unknownTable(id program.ID, name string, add func(what string, n int, f func(w *writer, id program.ID, p []float64) program.ID)) {
	x := s.Value(id)
	if x == nil || !isFloat(s.Values[id]) || x.Len() < 2 {
		return
	}
	numbers := x.Floats()
	v := s.Values[id]
	if q := sequenceOf(numbers); q.factor == 1 {
		add("the ratio of "+name, 1, func(w *writer, _ program.ID, p []float64) program.ID {
			return w.constant(v, func(i int, y float64) float64 {
				first := numbers[i-i%q.n]
				return first * math.Pow(y/first, 1+p[0])
			}, x)
		})
	}
	if len(numbers) <= mostUnknown && !slices.Contains(numbers, 0) {
		add("the numbers of "+name, len(numbers), func(w *writer, _ program.ID, p []float64) program.ID {
			return w.constant(v, func(i int, y float64) float64 { return y * (1 + p[i]) }, x)
		})
	}
}

// fitted says by how much numbers are others.
func fitted(p []float64) string {
	var out []string
	for _, x := range p[:min(len(p), mostWritten)] {
		out = append(out, fmt.Sprintf("%+.3g", 100*x))
	}
	return strings.Join(out, ", ") + " %"
}

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
