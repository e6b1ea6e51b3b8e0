package diagnose

import (
	"fmt"
	"strings"
)

// AddedTable tries a table of positions that is added to a tensor: missing, or read from another row on. The table is a weight whose name says so,
// or what the reference adds alike in every sequence of a batch.
var AddedTable = Func(func(s *Scene) []Prediction {
	t := s.Target
	p := s.pair()
	if p == nil || len(p.golden.Data) != t.Golden.Len() {
		return nil
	}
	n, w := length(t.Golden.Shape()), t.Golden.RowLen()
	if n < 2 || p.golden.Rows()%n != 0 {
		return nil
	}
	var out []Prediction
	for _, q := range s.sources(6) {
		x, gx := p.of(s, q, false), p.of(s, q, true)
		if x == nil || gx == nil || len(x.Data) != len(p.golden.Data) {
			continue
		}
		added := minus(p.reference, gx)
		table, name := s.positions(added, n, w)
		if table == nil {
			continue
		}
		out = append(out, p.says("embedding/position", x, 0, -1, "%s is not added to the output of %s", name, q.Layer))
		for _, by := range []int{-2, -1, 1, 2} {
			rows := make([]bool, p.golden.Rows())
			v := x.MapRows(func(r int, dst, src []float64) {
				at := r%n + by
				if rows[r] = at >= 0 && at < table.Rows(); rows[r] {
					for c := range dst {
						dst[c] = src[c] + table.Row(at)[c]
					}
				}
			})
			out = append(out, Prediction{ID: "embedding/position", Text: fmt.Sprintf("%s is read %+d rows off", name, by), Value: v, Rows: rows})
		}
		for k := range min(table.Rows(), 2) {
			out = append(out, p.says("embedding/position", x.MapRows(func(_ int, dst, src []float64) {
				for c := range dst {
					dst[c] = src[c] + table.Row(k)[c]
				}
			}), 0, 0, "row %d of %s is added everywhere", k, name))
		}
	}
	return out
})

// positions gives the table of which added is the first n rows in every sequence; nil if there is none.
func (s *Scene) positions(added *Array, n, w int) (table *Array, name string) {
	for key, t := range s.Weights {
		if !strings.Contains(key, "pos") || t.Len() < n*w || t.RowLen() != w || t.Len() > layoutLimit {
			continue
		}
		table := &Array{Shape: []int{t.Len() / w, w}, Data: s.Array(t).Data}
		if relative(repeated(table, added).Data, added.Data) < 1e-4 {
			return table, key
		}
	}
	if added.Rows() == n {
		return nil, "" // one sequence: anything may have been added
	}
	first := &Array{Shape: []int{n, w}, Data: added.Data[:n*w]}
	if rootMeanSquare(first.Data) > 0 && relative(repeated(first, added).Data, added.Data) < 1e-4 {
		return first, "what the reference adds to every sequence"
	}
	return nil, ""
}

// repeated is a table's first rows for each sequence of like.
func repeated(table, like *Array) *Array {
	n := length(like.Shape)
	return like.MapRows(func(r int, dst, _ []float64) { copy(dst, table.Row(r%n)) })
}
