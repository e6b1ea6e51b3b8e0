package diagnose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// elsewhere is the tensor of another place of the run. If the verdict says that only the dump is
// wrong, it holds what belongs to another name; else the layer gave what an earlier call had left.
func elsewhere(s *Scene) (out []prediction) {
	t, capture := s.Target, s.Kind == localise.KindCapture
	if _, known := HeldBy(s.Run, t.Case, t.Step)[t]; known {
		return nil // all of a series hold what belongs to others
	}
	for _, p := range s.Ports {
		own := p.Case == t.Case && p.Step == t.Step && p.Layer == t.Layer
		if p == t || p.Golden.Len() != t.Golden.Len() || p.Golden.RowLen() != t.Golden.RowLen() ||
			p.Golden.DType() != t.Golden.DType() || own && !capture {
			continue
		}
		have := p.Golden // where nothing was recorded: its own error is not what is looked for
		if p.IsRecorded() {
			have = p.Actual
		}
		for _, x := range []*tensor.Tensor{have, p.Golden} {
			if isSame(t.Actual, x, markFloors*t.Floor.RowRelL2) {
				if held, ok := s.holds(p); ok {
					held.value = s.read(x)
					out = append(out, held)
				}
				break
			}
		}
	}
	if capture {
		out = append(out, guess("capture/wrong-tensor", -1, "the dump's %s %s is wrong, and what was made of it is right",
			t.Layer, t.Port))
	}
	return out
}

// holds says what it means that the target holds what belongs to p.
func (s *Scene) holds(p *Port) (out prediction, ok bool) {
	t, what := s.Target, p.Layer+" "+p.Port
	if p.Step != t.Step {
		what += " of step " + p.Step
	}
	if p.Case != t.Case {
		what += " of case " + p.Case
	}
	again := p.Layer == t.Layer && p.Port == t.Port // in another step or case
	earlier := p.Seq < t.Seq && t.IsOutput() && label.Last(p.Layer) == label.Last(t.Layer) && p.Port == t.Port
	switch capture := s.Kind == localise.KindCapture; {
	case capture && s.sameFile(p):
		return guess("capture/same-file", -1, "one file was written for several layers: it holds %s", what), true
	case capture:
		return guess("capture/wrong-tensor", 0, "the dump holds %s", what), true
	case again || earlier:
		return guess("state/stale", 0, "it holds %s, which an earlier call left", what), true
	}
	return out, false
}

// sameFile reports whether what the target holds was written last, by a later layer of the same
// name or one of several that hold it.
func (s *Scene) sameFile(p *Port) bool {
	t := s.Target
	if p.Seq > t.Seq && p.Case == t.Case && p.Step == t.Step && p.Port == t.Port &&
		label.Stars(p.Layer) == label.Stars(t.Layer) {
		return true
	}
	holders := 0
	for _, q := range s.pass {
		if !q.Agrees && q.IsOutput() && isSame(t.Actual, q.Actual, 0) {
			holders++
		}
	}
	return holders > 1
}

// isSame reports whether some elements of two tensors are the same within a relative error; a
// constant says nothing.
func isSame(t, other *tensor.Tensor, within float64) bool {
	if other == nil || other.Len() != t.Len() {
		return false
	}
	var x, y []float64
	for _, at := range vec.Spread(t.Len(), markElements) {
		x, y = append(x, t.At(at)), append(y, other.At(at))
	}
	return !vec.AllSame(x) && vec.Relative(y, x) <= within
}

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
	if !t.IsOutput() || !label.Tables.Has(t.Layer) || in == nil || in.IsFloat() || in.Golden.Len() != t.Rows() {
		return nil
	}
	id := "embedding/index"
	switch {
	case label.PositionTables.Has(t.Layer):
		id = "embedding/position"
	case label.TypeTables.Has(t.Layer):
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
