package diagnose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
)

// lastToken is one row of each sequence in all its rows, at the end of a model.
func lastToken(s *Scene) (out []prediction) {
	t, n := s.Target, 1 // rows of one sequence
	if shape := t.Golden.Shape(); len(shape) > 1 {
		n = shape[len(shape)-2]
	}
	later := func(p *Port) bool { return p.Seq > t.Seq && label.Block(p.Layer) != "" }
	if n < 2 || t.hasPadding() || slices.ContainsFunc(s.pass, later) {
		return nil
	}
	for _, k := range []int{n - 1, 0} {
		var value []float64
		for _, r := range s.rows {
			value = append(value, vec.Read(t.Golden, s.width, []int{r/n*n + k})...)
		}
		out = append(out, s.says("output/last-token", value, 0, 1, "every row holds row %d", k))
	}
	return out
}

// embedding is, without the table's weights, rows of the table that the reference itself has shown:
// each id with the row it gave.
func embedding(s *Scene) (out []prediction) {
	t := s.Target
	in := s.input(t.Layer)
	if !t.IsOutput() || !module.Table.Has(t.Layer) || in == nil || in.IsFloat() || in.Golden.Len() != t.Rows() {
		return nil
	}
	id := "embedding/index"
	switch {
	case module.Positions.Has(t.Layer):
		id = "embedding/position"
	case module.Types.Has(t.Layer):
		id = "embedding/type"
	}
	ids, known := make([]int, len(s.rows)), map[int][]float64{}
	for r, at := range s.rows {
		ids[r] = int(s.all(in.Golden)[at])
		known[ids[r]] = s.row(s.right, r)
	}
	if v, text := s.lookedUp(ids, known); v != nil {
		out = append(out, s.says(id, v, 0, 0, "%s", text))
	}
	if s.otherRows(ids) {
		out = append(out, guess(id, 0, "the inputs of %s are right, and rows that are nothing like the right ones come out, the same for the same "+
			"index: those of other indices, or of another table; give the weights to see", t.Layer))
	}
	return out
}

// otherRows reports whether the wrong rows may be those of other indices: nothing like the right ones, and
// the same for the same index.
func (s *Scene) otherRows(ids []int) bool {
	shown, wrong := map[int][]float64{}, 0
	for r, id := range ids {
		row, right := s.row(s.actual, r), s.row(s.right, r)
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
	return wrong > 0
}

// lookedUp finds, for each wrong row, the row of the table that it is: one that the reference has
// shown, or one of the weights. nil if a wrong row is none.
func (s *Scene) lookedUp(ids []int, known map[int][]float64) ([]float64, string) {
	table := slices.Sorted(maps.Keys(known))
	_, w := s.Weights.Of(s.Target.Layer, "weight")
	if w != nil && len(w.Shape()) == 2 && w.RowLen() == s.width {
		table = append(table, vec.Sequence(w.Shape()[0])...)
	}
	v := slices.Clone(s.right)
	var said []string
	for r := range s.rows {
		row := s.row(s.actual, r)
		if vec.Relative(row, s.row(s.right, r)) < sameTableRow {
			continue
		}
		at := slices.IndexFunc(table, func(i int) bool {
			own := known[i]
			if own == nil && math.Abs(w.At(i*s.width)-row[0]) <= sameTableRow*math.Abs(row[0]) {
				own = vec.Read(w, s.width, []int{i})
			}
			return vec.Relative(row, own) < sameTableRow && copy(s.row(v, r), own) > 0
		})
		if at < 0 {
			return nil, ""
		}
		said = append(said, fmt.Sprintf("%d for %d", table[at], ids[r]))
	}
	return v, fmt.Sprintf("%d of %d rows are those of other indices: %s", len(said), len(s.rows),
		strings.Join(said[:min(len(said), 3)], ", "))
}
