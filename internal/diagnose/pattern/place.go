package pattern

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// wrongPlaces tells which rows, columns or heads are wrong where the others are right, and tries what
// stands there instead: zeros, or the right values times a factor.
func wrongPlaces(s *diagnose.Scene) (out []diagnose.Prediction) {
	t := s.Target
	if t == nil || t.Actual == nil || !t.IsFloat() || t.Golden.Len() == 0 || t.Golden.Len() > placesMost {
		return nil
	}
	golden, actual, padded := t.Golden, t.Actual, t.HasPadding()
	if padded {
		golden, actual = diagnose.SelectRows(golden, t.Kept(nil)), diagnose.SelectRows(actual, t.Kept(nil))
	}
	if golden == nil || actual == nil {
		return nil
	}
	p := of(s)
	for _, f := range structure.Of(golden, actual, t.Floor, headsOf(s)) {
		if shape := t.Golden.Shape(); !padded && len(shape) == 3 && shape[0] > 1 {
			f = perSequence(f, shape[1])
		}
		if headsOf(s) == 0 && wholeHead(f, t) {
			f.Kind = structure.HeadOne
		}
		id, rank := placeID(f.Kind)
		if id == "" {
			continue
		}
		if strings.HasPrefix(f.Kind, "rows/") && slices.Contains(strings.Split(label.Parent(t.Layer), "."), "experts") {
			continue // the rows of an expert
		}
		if padded && strings.HasPrefix(f.Kind, "rows/") {
			f.Text += ", counted without padding"
		}
		// Attention makes such an error of many causes: mask, rotary embedding, positions, groups of heads.
		// So does code between layers. There the place of an error is no cause.
		// Nor are all rows but the first one: that is what token 0 tells.
		between, rows := s.Kind == localise.KindBetween, id == "rows/from" || id == "rows/set"
		if rows && !between && !mixesRows(s) && (id != "rows/from" || f.From > 1) || !rows && (!between || id != "columns/set") {
			out = append(out, guess(id, rank, "%s", f.Text))
		}
		if p != nil && (t.PadRows != nil || p.marks == nil) {
			out = append(out, p.place(id, f.Text)...)
		}
	}
	return out
}

// headsOf is the number of attention heads of which the target's columns may consist, 0 if that is
// not known.
func headsOf(s *diagnose.Scene) int {
	switch kv := module.QKV(s.Target.Layer); {
	case !module.InAttention(s.Target.Layer):
		return 0
	case kv == 'k' || kv == 'v':
		return s.Config.KVHeads()
	}
	return s.Config.Heads()
}

// wholeHead reports whether wrong columns of an attention are a head: without a config the heads
// are not known, but a wrong block that the width holds a whole number of times is one.
func wholeHead(f structure.Finding, t *diagnose.Port) bool {
	w, d := t.Golden.RowLen(), f.To-f.From+1
	if f.Kind == structure.ColumnsFrom {
		d = w - f.From
	} else if f.Kind != structure.ColumnsBlock || f.From%d != 0 {
		return false
	}
	return d >= leastHead && w%d == 0 && module.InAttention(t.Layer)
}

// placeID is the cause that a finding names, "" for none, and how sure it is by itself.
func placeID(kind string) (id string, rank int) {
	switch {
	case kind == structure.RowsFrom:
		return "rows/from", -1
	case kind == structure.HeadOne:
		return "head/one", -2
	case kind == structure.Block:
		return "rows/set", 0
	case strings.HasPrefix(kind, "rows/"):
		return "rows/set", -1
	case strings.HasPrefix(kind, "columns/"), kind == structure.HeadSet:
		return "columns/set", -1
	}
	return "", 0
}

// mixesRows reports whether the wrong tensor comes from code that lets rows see each other.
func mixesRows(s *diagnose.Scene) bool {
	layer := s.Target.Layer
	if in := s.Input(layer); in != nil && in.IsFloat() && in.Rows() != s.Target.Rows() || strings.Contains(strings.ToLower(label.Last(layer)), "conv") {
		return true // a convolution, patches
	}
	if !module.InAttention(layer) {
		return false
	}
	inside := func(p *diagnose.Port) bool { return label.Inside(p.Layer, layer) }
	return s.Kind != localise.KindLocal || label.Last(layer) == "self" || slices.ContainsFunc(s.Ports, inside)
}

// perSequence reads "the last rows of every n" as "from row k of each sequence".
func perSequence(f structure.Finding, n int) structure.Finding {
	if f.Kind == structure.RowsEvery && f.Period == n && f.From+f.Width == n {
		f.Kind = structure.RowsFrom
		f.Text = fmt.Sprintf("all rows from %d on in each sequence of %d; %s", f.From, n, f.Text)
	}
	return f
}

// place predicts the wrong rows or columns.
func (p *pair) place(id, where string) (out []diagnose.Prediction) {
	wrongRow, wrongColumn := p.wrongLines()
	var wrong []int // elements
	for i := range p.Right {
		if wrongRow[i/p.Width] && wrongColumn[i%p.Width] {
			wrong = append(wrong, i)
		}
	}
	g, a := vec.Select(p.Right, len(p.Right), wrong), vec.Select(p.Actual, len(p.Right), wrong)
	if len(a) == 0 || !vec.All(a, vec.IsFinite) {
		return nil
	}
	add := func(params int, text string, value func(i int) float64) {
		if len(wrong) < diagnose.PerParam*params {
			return // so few are anything
		}
		v := slices.Clone(p.Right)
		for _, i := range wrong {
			v[i] = value(i)
		}
		out = append(out, p.says(id, v, params, -1, "%s; there the candidate has %s", where, text))
	}
	add(0, "zeros", func(int) float64 { return 0 })
	if f := vec.Project(g, a); f != 0 {
		add(1, fmt.Sprintf("the right values times %.6g", f), func(i int) float64 { return f * p.Right[i] })
	}
	return out
}

// wrongLines marks the rows and the columns that are off by more than the floor.
func (p *pair) wrongLines() (rows, columns []bool) {
	rows, columns = make([]bool, len(p.rows)), make([]bool, p.Width)
	dr, dc := make([]float64, len(rows)), make([]float64, len(columns))
	for i, x := range p.Right {
		d := p.Actual[i] - x
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		dr[i/p.Width] += d * d
		dc[i%p.Width] += d * d
	}
	limit := p.Target.Floor.RowRelL2 * vec.RootMeanSquare(p.Right)
	for r, d := range dr {
		rows[r] = math.Sqrt(d/float64(len(columns))) > limit
	}
	for c, d := range dc {
		columns[c] = math.Sqrt(d/float64(len(rows))) > limit
	}
	return rows, columns
}

// elsewhere is the tensor of another place of the run. If the verdict says that only the dump is
// wrong, it holds what belongs to another name; else the layer gave what an earlier call had left.
func elsewhere(s *diagnose.Scene) (out []diagnose.Prediction) {
	if !s.HasNumbers() {
		return nil
	}
	t := s.Target
	capture := isCapture(s)
	if _, known := HeldBy(s.Run, t.Case, t.Step)[t]; known {
		return nil // all of a series hold what belongs to others
	}
	for _, p := range s.Ports {
		own := p.Case == t.Case && p.Step == t.Step && p.Layer == t.Layer
		if p == t || p.Golden.Len() != t.Golden.Len() || p.Golden.RowLen() != t.Golden.RowLen() ||
			p.Golden.DType() != t.Golden.DType() || own && !capture {
			continue
		}
		for _, x := range []*tensor.Tensor{s.ActualTensor(p), p.Golden} {
			if isSame(t.Actual, x, markFloors*t.Floor.RowRelL2) {
				if held, ok := holds(s, p); ok {
					held.Rows, held.Value = s.Sample(), s.Part(x)
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

func isCapture(s *diagnose.Scene) bool { return s.Kind == "capture" }

// holds says what it means that the target holds what belongs to p.
func holds(s *diagnose.Scene, p *diagnose.Port) (out diagnose.Prediction, ok bool) {
	t := s.Target
	what := p.Layer + " " + p.Port
	if p.Step != t.Step {
		what += " of step " + p.Step
	}
	if p.Case != t.Case {
		what += " of case " + p.Case
	}
	again := p.Layer == t.Layer && p.Port == t.Port // in another step or case
	earlier := p.Seq < t.Seq && t.IsOutput() && label.Last(p.Layer) == label.Last(t.Layer) && p.Port == t.Port
	switch {
	case isCapture(s) && sameFile(s, p):
		return guess("capture/same-file", -1, "one file was written for several layers: it holds %s", what), true
	case isCapture(s):
		return guess("capture/wrong-tensor", 0, "the dump holds %s", what), true
	case again || earlier:
		return guess("state/stale", 0, "it holds %s, which an earlier call left", what), true
	}
	return out, false
}

// sameFile reports whether what the target holds was written last, by a later layer of the same
// name or one of several that hold it.
func sameFile(s *diagnose.Scene, p *diagnose.Port) bool {
	t := s.Target
	if p.Seq > t.Seq && p.Case == t.Case && p.Step == t.Step && p.Port == t.Port &&
		label.Stars(p.Layer) == label.Stars(t.Layer) {
		return true
	}
	holders := 0
	for _, q := range s.Pass() {
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
	return !vec.All(x, func(v float64) bool { return v == x[0] }) && vec.Relative(y, x) <= within
}
