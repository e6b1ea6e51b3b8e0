package pattern

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/vec"
)

// length is the number of rows of one sequence.
func length(shape []int) int {
	if len(shape) < 2 {
		return 1
	}
	return shape[len(shape)-2]
}

// tableID names what is wrong if a table of this name is read wrongly.
func tableID(layer string) string {
	switch {
	case module.Positions.Has(layer):
		return "embedding/position"
	case module.Types.Has(layer):
		return "embedding/type"
	}
	return "embedding/index"
}

// lastToken is one row of each sequence in all its rows, at the end of a model.
func lastToken(s *diagnose.Scene) (out []diagnose.Prediction) {
	if !s.HasNumbers() {
		return nil
	}
	t := s.Target
	later := func(p *diagnose.Port) bool { return p.Seq > t.Seq && label.Block(p.Layer) != "" }
	n := length(t.Golden.Shape())
	if n < 2 || t.HasPadding() || slices.ContainsFunc(s.Pass(), later) {
		return nil
	}
	rows, marks := s.Rows()
	for _, k := range []int{n - 1, 0} {
		ofEach := make([]bool, t.Rows()) // row k of each sequence
		for r := k; r < len(ofEach); r += n {
			ofEach[r] = true
		}
		held := diagnose.ArrayOf(diagnose.SelectRows(t.Golden, ofEach))
		p := guess("output/last-token", 1, "every row holds row %d", k)
		p.Rows, p.Value = marks, diagnose.NewArray(len(rows), t.Width())
		for i, r := range rows {
			copy(p.Value.Row(i), held.Row(r/n))
		}
		out = append(out, p)
	}
	return out
}

// Embedding is, without the table's weights, rows of the table that the reference itself has shown:
// each id with the row it gave.
func embedding(p *pair) (out []diagnose.Prediction) {
	t := p.Target
	in := p.Input(t.Layer)
	if !t.IsOutput() || !module.Table.Has(t.Layer) || in == nil || in.IsFloat() || in.Golden.Len() != t.Rows() {
		return nil
	}
	id := tableID(t.Layer)
	all := p.Array(in.Golden).Data
	ids, known := make([]int, len(p.rows)), map[int][]float64{}
	for r, at := range p.rows {
		ids[r] = int(all[at])
		known[ids[r]] = p.row(p.Right, r)
	}
	if v, text := p.lookedUp(ids, known); v != nil {
		out = append(out, p.says(id, v, 0, 0, "%s", text))
	}
	if p.otherRows(ids) {
		out = append(out, guess(id, 0, "the inputs of %s are right, and rows that are nothing like the right ones come out, the same for the same "+
			"index: those of other indices, or of another table; give the weights to see", t.Layer))
	}
	return out
}

// otherRows reports whether the wrong rows may be those of other indices: nothing like the right ones,
// the same for the same index, and not the right ones turned.
func (p *pair) otherRows(ids []int) bool {
	shown, wrong := map[int][]float64{}, 0
	for r, id := range ids {
		row, right := p.row(p.Actual, r), p.row(p.Right, r)
		if before := shown[id]; before != nil && vec.Relative(row, before) > sameTableRow {
			return false
		}
		shown[id] = row
		if vec.Relative(row, right) < sameTableRow {
			continue
		}
		if wrong++; math.Abs(floats.Dot(row, right)) > otherRow*floats.Norm(row, 2)*floats.Norm(right, 2) {
			return false
		}
	}
	golden, actual := diagnose.SelectRows(p.Target.Golden, p.marks), diagnose.SelectRows(p.Target.Actual, p.marks)
	return wrong > 0 && !structure.Turned(golden, actual, p.Target.Floor)
}

// lookedUp finds, for each wrong row, the row of the table that it is: one that the reference has
// shown, or one of the weights. nil if a wrong row is none.
func (p *pair) lookedUp(ids []int, known map[int][]float64) ([]float64, string) {
	table := slices.Sorted(maps.Keys(known))
	_, w := p.Weights.Of(p.Target.Layer, "weight")
	if w != nil && len(w.Shape()) == 2 && w.RowLen() == p.Width {
		table = append(table, vec.Sequence(w.Shape()[0])...)
	}
	v := slices.Clone(p.Right)
	var said []string
	for r := range p.rows {
		row := p.row(p.Actual, r)
		if vec.Relative(row, p.row(p.Right, r)) < sameTableRow {
			continue
		}
		at := slices.IndexFunc(table, func(i int) bool {
			own := known[i]
			if own == nil && math.Abs(w.At(i*p.Width)-row[0]) <= sameTableRow*math.Abs(row[0]) {
				own = vec.Read(w, p.Width, []int{i})
			}
			return vec.Relative(row, own) < sameTableRow && copy(p.row(v, r), own) > 0
		})
		if at < 0 {
			return nil, ""
		}
		said = append(said, fmt.Sprintf("%d for %d", table[at], ids[r]))
	}
	return v, fmt.Sprintf("%d of %d rows are those of other indices: %s", len(said), len(p.rows),
		strings.Join(said[:min(len(said), 3)], ", "))
}

// indices is a target of integers: token types, or positions that are all off by a number.
func indices(s *diagnose.Scene) []diagnose.Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || t.Golden.Len() == 0 || t.Golden.Len() != t.Actual.Len() || t.IsFloat() {
		return nil
	}
	g, a := s.Array(t.Golden), s.Array(t.Actual)
	says := func(id string, value *diagnose.Array, format string, args ...any) diagnose.Prediction {
		p := guess(id, 0, format, args...)
		if p.Value = value; value == a {
			p.Params = len(a.Data)
		}
		return p
	}
	first, last := a.Data[0], a.Data[len(a.Data)-1]
	all := g.Map(func(float64) float64 { return first })
	if module.Types.Has(t.Layer) {
		const id = "embedding/type"
		return []diagnose.Prediction{
			says(id, all, "all token types are %g", first),
			says(id, g.Map(func(x float64) float64 { return 1 - x }), "the two token types are exchanged"),
			says(id, a, "the token types are others"),
		}
	}
	id, from, table := "rope/offset", g.Data[0], module.Positions.Has(t.Layer)
	switch {
	case len(g.Data) < 2 || g.Data[1] != from+1 || !table && s.Kind == "input" && module.Table.Has(t.Layer):
		return nil
	case table:
		id = "embedding/position"
	case from != 0 && from != 1, !counts(g): // RoBERTa's begin after the padding's
		return nil
	}
	by := last - g.Data[len(g.Data)-1]
	return []diagnose.Prediction{
		says(id, g.Map(func(x float64) float64 { return x + by }), "the positions begin at %g and not at %g", from+by, from),
		says(id, all, "all positions are %g", first),
		says(id, a, "other positions: the first is %g, the last %g", first, last),
	}
}

// counts reports whether each row of integers counts on from its first one: what positions do, and
// numbers of experts or buckets do not.
func counts(g *diagnose.Array) bool {
	w := g.Width()
	for i, x := range g.Data {
		if i%w > 0 && x != g.Data[i-1]+1 && x != g.Data[i-1] {
			return false
		}
	}
	return w > 2
}
