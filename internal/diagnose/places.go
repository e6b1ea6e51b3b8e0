package diagnose

import (
	"fmt"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// Places tells which rows, columns or heads are wrong where the others are right, and tries what stands there instead: zeros, the right
// values times a factor, one value, the values of other rows or columns.
var Places = Func(func(s *Scene) []Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || !t.Golden.DType().IsFloat() || t.Golden.Len() == 0 || t.Golden.Len() > placesLimit {
		return nil
	}
	golden, actual := t.Golden, t.Actual
	padded := t.hasPadding()
	if padded {
		keep := predicted(t, Prediction{})
		golden, actual = selectRows(golden, keep), selectRows(actual, keep)
	}
	if golden == nil || actual == nil {
		return nil
	}
	var out []Prediction
	found := structure.Of(golden, actual, t.Floor, s.heads())
	if !padded && sequence(t.Golden) > 1 {
		found = perSequence(found, t)
	}
	for _, f := range found {
		if f.Kind == structure.ColumnsBlock && inAttention(t.Layer) {
			// Without a config the heads are not known, but a wrong block that the width holds as a whole number of times is one.
			if d := f.To - f.From + 1; d >= 8 && t.Golden.RowLen()%d == 0 && f.From%d == 0 {
				f.Kind = structure.HeadOne
			}
		} else if f.Kind == structure.ColumnsFrom && inAttention(t.Layer) {
			if d := t.Golden.RowLen() - f.From; d >= 8 && t.Golden.RowLen()%d == 0 {
				f.Kind = structure.HeadOne
			}
		}
		id, rank := placeID(f.Kind)
		if id == "" {
			continue
		}
		if s.mixesRows() && (id == "rows/from" || id == "rows/set") {
			rank = 1 // attention makes such an error of many causes: mask, rotary embedding, positions
		}
		if padded && strings.HasPrefix(f.Kind, "rows/") {
			f.Text += ", counted without padding"
		}
		out = append(out, Prediction{ID: id, Text: f.Text, Rank: rank})
		if p := s.pair(); p != nil && (t.PadRows != nil || p.rows == nil) {
			out = append(out, explainPlace(p, t, s, id, f)...)
		}
	}
	return out
})

// placesLimit is the size up to which wrong places are looked for.
const placesLimit = 1 << 25

// placeID is the cause that a finding names, "" for none, and how sure it is by itself.
func placeID(kind string) (id string, rank int) {
	switch kind {
	case structure.RowsFrom:
		return "rows/from", -1
	case structure.RowsOne, structure.RowsSet, structure.RowsEvery, structure.RowsBlock:
		return "rows/set", -1
	case structure.ColumnsFrom, structure.ColumnsOne, structure.ColumnsSet, structure.ColumnsEvery, structure.ColumnsBlock, structure.HeadSet:
		return "columns/set", -1
	case structure.HeadOne:
		return "head/one", -2
	case structure.Block:
		return "rows/set", 0
	}
	return "", 0
}

// mixesRows reports whether the wrong tensor comes from code that lets rows see each other.
func (s *Scene) mixesRows() bool {
	return inAttention(s.Target.Layer) && (s.Kind != "local" || !s.isLeaf(s.Target.Layer) || lastPart(s.Target.Layer) == "self")
}

// sequence is the number of sequences of a batch [B T …], 1 for other shapes.
func sequence(t *tensor.Tensor) int {
	if s := t.Shape(); len(s) == 3 {
		return s[0]
	}
	return 1
}

// perSequence reads "the last rows of every T" as "from row k of each sequence".
func perSequence(found []structure.Finding, t *Port) []structure.Finding {
	n := t.Golden.Shape()[1]
	for i, f := range found {
		if f.Kind == structure.RowsEvery && f.Period == n && f.From+f.Width == n {
			found[i].Kind = structure.RowsFrom
			found[i].Text = fmt.Sprintf("all rows from %d on in each sequence of %d; %s", f.From, n, f.Text)
		}
	}
	return found
}

// explainPlace predicts the wrong rows or columns.
func explainPlace(p *pair, t *Port, s *Scene, id string, f structure.Finding) []Prediction {
	g, a := p.golden, p.actual
	rows, width := g.Rows(), g.Width()
	wrongRow, wrongColumn := wrongLines(g, a, t.Floor.RowRelL2)
	wrong := func(r, c int) bool { return wrongRow[r] && wrongColumn[c] }
	var gs, as []float64
	for r := range rows {
		for c := range width {
			if wrong(r, c) {
				gs, as = append(gs, g.Row(r)[c]), append(as, a.Row(r)[c])
			}
		}
	}
	if len(as) == 0 || !finite(as) {
		return nil
	}
	var out []Prediction
	add := func(params, rank int, text string, value func(r, c int) float64) {
		v := NewArray(g.Shape...)
		copy(v.Data, g.Data)
		for r := range rows {
			for c := range width {
				if wrong(r, c) {
					v.Row(r)[c] = value(r, c)
				}
			}
		}
		out = append(out, p.says(id, v, params, rank, "%s; there the candidate has %s", f.Text, text))
	}
	add(0, -1, "zeros", func(int, int) float64 { return 0 })
	if k := as[0]; k != 0 && isAll(as, k) {
		add(1, -1, fmt.Sprintf("%.6g everywhere", k), func(int, int) float64 { return k })
	}
	if f := project(gs, as); f != 0 {
		add(1, -1, fmt.Sprintf("the right values times %.6g", f), func(r, c int) float64 { return f * g.Row(r)[c] })
	}
	// Other rows or columns in their place: by the first wrong one that says where its values come from.
	if from := sourceRow(g, a, wrongRow); from != 0 {
		add(0, 2, fmt.Sprintf("the values of the rows %d further on", from), func(r, c int) float64 {
			if r+from < 0 || r+from >= rows {
				return math.Inf(1)
			}
			return g.Row(r + from)[c]
		})
	}
	last := 0
	for last < rows-1 && !wrongRow[last] {
		last++
	}
	if last > 0 {
		add(0, 1, fmt.Sprintf("the values of row %d, the last right one", last-1), func(_, c int) float64 { return g.Row(last - 1)[c] })
		add(0, 1, fmt.Sprintf("the values of the first %d rows again", last), func(r, c int) float64 { return g.Row(r % last)[c] })
	}
	return out
}

// wrongLines marks the rows and the columns that are off by more than a floor.
func wrongLines(g, a *Array, floor float64) (rows, columns []bool) {
	rms := rootMeanSquare(g.Data)
	rows, columns = make([]bool, g.Rows()), make([]bool, g.Width())
	dr, dc := make([]float64, g.Rows()), make([]float64, g.Width())
	for r := range rows {
		for c, x := range g.Row(r) {
			d := a.Row(r)[c] - x
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			dr[r] += d * d
			dc[c] += d * d
		}
	}
	for r := range rows {
		rows[r] = math.Sqrt(dr[r]/float64(g.Width())) > floor*rms
	}
	for c := range columns {
		columns[c] = math.Sqrt(dc[c]/float64(g.Rows())) > floor*rms
	}
	return rows, columns
}

// sourceRow finds the golden row whose values the first wrong row has, relative to it; 0 if there is none.
func sourceRow(g, a *Array, wrong []bool) int {
	for r, w := range wrong {
		if !w {
			continue
		}
		for o := range wrong {
			if o != r && relative(a.Row(r), g.Row(o)) < 1e-3 {
				return o - r
			}
		}
		return 0
	}
	return 0
}
