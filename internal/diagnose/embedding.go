package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Embedding tries, without the table's weights, rows of the table that the reference itself has shown: each id with the row it gave. And for
// positions that were recorded as numbers, other positions.
var Embedding = Func(func(s *Scene) []Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || t.Golden.Len() == 0 || t.Golden.Len() != t.Actual.Len() {
		return nil
	}
	if !t.Golden.DType().IsFloat() {
		if typeNames.has(lastPart(t.Layer)) {
			return s.otherTypes()
		}
		return s.otherPositions()
	}
	if !s.isOutput() || !tableNames.has(lastPart(t.Layer)) {
		return nil
	}
	in := s.Input(t.Layer)
	if in == nil || in.Golden.DType().IsFloat() || in.Golden.Len() != t.Golden.Len()/max(t.Golden.RowLen(), 1) {
		return nil
	}
	p := s.pair()
	if p == nil || len(p.golden.Data) != t.Golden.Len() {
		return nil
	}
	ids := s.Array(in.Golden).Data
	known := map[int][]float64{}
	for r, id := range ids {
		known[int(id)] = p.golden.Row(r)
	}
	kind := tableID(lastPart(t.Layer))
	var out []Prediction
	for _, by := range []int{-2, -1, 1, 2} {
		v := NewArray(p.golden.Shape...)
		rows := make([]bool, v.Rows())
		for r, id := range ids {
			if row := known[int(id)+by]; row != nil {
				rows[r] = true
				copy(v.Row(r), row)
			}
		}
		if slices.Contains(rows, true) {
			out = append(out, Prediction{ID: kind, Text: fmt.Sprintf("row i%+d of the table is read for index i", by), Value: v, Rows: rows})
		}
	}
	seen := map[int]bool{}
	for _, id := range ids {
		if row := known[int(id)]; !seen[int(id)] && len(seen) < 16 {
			seen[int(id)] = true
			out = append(out, Prediction{ID: kind, Text: fmt.Sprintf("row %d of the table is read for every index", int(id)),
				Value: p.golden.MapRows(func(_ int, dst, _ []float64) { copy(dst, row) })})
		}
	}
	if v, text := s.lookedUp(p, ids, known); v != nil {
		out = append(out, Prediction{ID: kind, Rank: 1, Text: text, Value: v})
	}
	return append(out, Prediction{ID: kind, Rank: 0, Text: "the inputs of " + t.Layer + " are right, and rows of another index come out"})
})

// lookedUp finds, for each wrong row, the row of the table that it is: one that the reference has shown, or one of the weights. nil if a wrong
// row is in none.
func (s *Scene) lookedUp(p *pair, ids []float64, known map[int][]float64) (*Array, string) {
	_, w := s.weight(s.Target.Layer, "weight")
	if w != nil && (len(w.Shape()) != 2 || w.RowLen() != p.golden.Width()) {
		w = nil
	}
	find := func(row []float64) ([]float64, int) {
		for id, k := range known {
			if relative(row, k) < 1e-4 {
				return k, id
			}
		}
		if w == nil {
			return nil, 0
		}
		for id := range w.Shape()[0] {
			if x := w.At(id * len(row)); math.Abs(x-row[0]) > 1e-4*math.Abs(row[0]) {
				continue
			}
			if k := read(w, len(row), []int{id}); relative(row, k) < 1e-4 {
				return k, id
			}
		}
		return nil, 0
	}
	v := NewArray(p.golden.Shape...)
	var said []string
	n := 0
	for r := range v.Rows() {
		row := p.actual.Row(r)
		if relative(row, p.golden.Row(r)) < 1e-4 {
			copy(v.Row(r), p.golden.Row(r))
			continue
		}
		k, id := find(row)
		if k == nil {
			return nil, ""
		}
		copy(v.Row(r), k)
		if n++; n <= 3 {
			said = append(said, fmt.Sprintf("%d for %d", id, int(ids[r])))
		}
	}
	return v, fmt.Sprintf("%d of %d rows are those of other indices: %s", n, v.Rows(), strings.Join(said, ", "))
}

// otherTypes: the target holds the token types, of which there are few.
func (s *Scene) otherTypes() []Prediction {
	g, a := s.Array(s.Target.Golden), s.Array(s.Target.Actual)
	return []Prediction{
		{ID: "embedding/type", Text: fmt.Sprintf("all token types are %g", a.Data[0]), Value: g.Map(func(float64) float64 { return a.Data[0] })},
		{ID: "embedding/type", Text: "the two token types are exchanged", Value: g.Map(func(x float64) float64 { return 1 - x })},
		{ID: "embedding/type", Text: "the token types are others", Value: a, Params: len(a.Data)},
	}
}

// otherPositions: the target holds positions that are all off by a number, or all alike.
func (s *Scene) otherPositions() []Prediction {
	g, a := s.Array(s.Target.Golden), s.Array(s.Target.Actual)
	start := g.Data[0] == 0 || g.Data[0] == 1 || positionNames.has(lastPart(s.Target.Layer)) // RoBERTa's begin behind the padding's
	if !start || len(g.Data) < 2 || g.Data[1] != g.Data[0]+1 || s.Kind == "input" && tableNames.has(lastPart(s.Target.Layer)) &&
		!positionNames.has(lastPart(s.Target.Layer)) {
		return nil
	}
	id := "rope/offset"
	if positionNames.has(lastPart(s.Target.Layer)) {
		id = "embedding/position"
	}
	by := a.Data[len(a.Data)-1] - g.Data[len(g.Data)-1]
	first := a.Data[0]
	return []Prediction{
		{ID: id, Text: fmt.Sprintf("the positions begin at %g and not at %g", g.Data[0]+by, g.Data[0]), Value: g.Map(func(x float64) float64 { return x + by })},
		{ID: id, Text: fmt.Sprintf("all positions are %g", first), Value: g.Map(func(float64) float64 { return first })},
		{ID: id, Text: fmt.Sprintf("other positions: the first is %g, the last %g", first, a.Data[len(a.Data)-1]), Value: a, Params: len(a.Data)},
	}
}
