package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/vec"
)

// wrongPlaces tells which rows, columns or heads are wrong where the others are right, and tries what
// stands there instead: zeros, or the right values times a factor.
func wrongPlaces(s *Scene) (out []prediction) {
	t := s.Target
	if t.Golden.Len() > placesMost {
		return nil
	}
	golden, actual, padded := t.kept(t.Golden), t.kept(t.Actual), t.hasPadding()
	for _, f := range compare.Patterns(golden, actual, t.Floor, s.heads()) {
		if shape := t.Golden.Shape(); !padded && len(shape) == 3 {
			f = perSequence(f, shape[1])
		}
		if s.heads() == 0 && s.isHead(f) {
			f.Kind = compare.HeadOne
		}
		id, rank := placeID(f.Kind)
		inRows := strings.HasPrefix(f.Kind, "rows/")
		if id == "" || inRows && slices.Contains(strings.Split(label.Parent(t.Layer), "."), "experts") {
			continue // the rows of an expert are no rows of the model
		}
		if padded && inRows {
			f.Text += ", counted without padding"
		}
		// Attention makes such an error of many causes: mask, rotary embedding, positions, groups of heads.
		// So does code between layers. There the place of an error is no cause.
		// Nor are all rows but the first one: that is what token 0 tells.
		between, rows := s.Kind == localise.KindBetween, id == "rows/from" || id == "rows/set"
		if rows && !between && !s.mixesRows() && (id != "rows/from" || f.From > 1) || !rows && (!between || id != "columns/set") {
			out = append(out, guess(id, rank, "%s", f.Text))
		}
		out = append(out, s.there(id, f.Text)...)
	}
	return out
}

// heads is the number of attention heads of which the target's columns may consist, 0 if that is
// not known.
func (s *Scene) heads() int {
	switch kv := label.QKV(s.Target.Layer); {
	case !label.InAttention(s.Target.Layer):
		return 0
	case kv == 'k' || kv == 'v':
		return s.Config.KVHeads()
	}
	return s.Config.Heads()
}

// isHead reports whether wrong columns of an attention are a head: without a config the heads
// are not known, but a wrong block that the width holds a whole number of times is one.
func (s *Scene) isHead(f compare.Pattern) bool {
	d := f.To - f.From + 1
	if f.Kind == compare.ColumnsFrom {
		d = s.width - f.From
	} else if f.Kind != compare.ColumnsBlock || f.From%d != 0 {
		return false
	}
	return d >= leastHead && s.width%d == 0 && label.InAttention(s.Target.Layer)
}

// placeID is the cause that a finding names, "" for none, and how sure it is by itself.
func placeID(kind string) (id string, rank int) {
	switch {
	case kind == compare.RowsFrom:
		return "rows/from", -1
	case kind == compare.HeadOne:
		return "head/one", -2
	case kind == compare.Block:
		return "rows/set", 0
	case strings.HasPrefix(kind, "rows/"):
		return "rows/set", -1
	case strings.HasPrefix(kind, "columns/"), kind == compare.HeadSet:
		return "columns/set", -1
	}
	return "", 0
}

// mixesRows reports whether the wrong tensor comes from code that lets rows see each other.
func (s *Scene) mixesRows() bool {
	layer := s.Target.Layer
	if in := s.input(layer); in != nil && in.IsFloat() && in.Rows() != s.Target.Rows() || strings.Contains(strings.ToLower(label.Last(layer)), "conv") {
		return true // a convolution, patches
	}
	return label.InAttention(layer) && (s.Kind != localise.KindLocal || label.Last(layer) == "self" ||
		slices.ContainsFunc(s.Ports, func(p *Port) bool { return label.Inside(p.Layer, layer) }))
}

// perSequence reads "the last rows of every n" as "from row k of each sequence".
func perSequence(f compare.Pattern, n int) compare.Pattern {
	if f.Kind == compare.RowsEvery && f.Period == n && f.From+f.Width == n {
		f.Kind = compare.RowsFrom
		f.Text = fmt.Sprintf("all rows from %d on in each sequence of %d; %s", f.From, n, f.Text)
	}
	return f
}

// there predicts what stands in the rows and columns that are off by more than the floor.
func (s *Scene) there(id, where string) (out []prediction) {
	rows, columns := make([]float64, len(s.rows)), make([]float64, s.width)
	for i, x := range s.right {
		d := s.actual[i] - x
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		rows[i/s.width] += d * d
		columns[i%s.width] += d * d
	}
	limit := s.Target.Floor.RowRelL2 * vec.RootMeanSquare(s.right)
	off := func(squares float64, n int) bool { return math.Sqrt(squares/float64(n)) > limit }
	var wrong []int // elements
	for i := range s.right {
		if off(rows[i/s.width], s.width) && off(columns[i%s.width], len(s.rows)) {
			wrong = append(wrong, i)
		}
	}
	g, a := vec.Select(s.right, len(s.right), wrong), vec.Select(s.actual, len(s.right), wrong)
	if len(a) == 0 || !vec.All(a, vec.IsFinite) {
		return nil
	}
	add := func(params int, text string, factor float64) {
		v := slices.Clone(s.right)
		for _, i := range wrong {
			v[i] *= factor
		}
		out = append(out, s.says(id, v, params, -1, "%s; there the candidate has %s", where, text))
	}
	add(0, "zeros", 0)
	if f := vec.Project(g, a); f != 0 && len(wrong) >= PerParam { // so few are anything
		add(1, fmt.Sprintf("the right values times %.6g", f), f)
	}
	return out
}
