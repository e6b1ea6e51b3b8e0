package diagnose

import (
	"fmt"
	"slices"
)

// LastToken tries other rows of the tensor from which the reference took some: the first token in place of the last, the last of the padding,
// or the last row everywhere.
var LastToken = Func(func(s *Scene) []Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || !t.Golden.DType().IsFloat() || t.Golden.Len() == 0 || t.Golden.Len() != t.Actual.Len() {
		return nil
	}
	p := s.pair()
	if p == nil {
		return nil
	}
	var out []Prediction
	g := s.Array(t.Golden)
	if n := length(g.Shape); n > 1 && g.Rows()%n == 0 && !t.hasPadding() && s.nearEnd() {
		for _, k := range []int{n - 1, 0} {
			out = append(out, Prediction{ID: "output/last-token", Rank: 1, Text: fmt.Sprintf("every row holds row %d", k),
				Value: g.MapRows(func(r int, dst, _ []float64) { copy(dst, g.Row(r-r%n+k)) })})
		}
	}
	// Where the reference keeps one row of each sequence, another row of the source.
	for i := len(s.Ports) - 1; i >= 0 && len(out) < 64; i-- {
		q := s.Ports[i]
		if q.Case != s.Case || q.Step != s.Step || q == t || q.Seq > t.Seq || !q.Golden.DType().IsFloat() || q.Golden.RowLen() != t.Golden.RowLen() ||
			q.Golden.Len() <= t.Golden.Len() {
			continue
		}
		source, actual := s.Array(q.Golden), s.Actual(q)
		n := length(source.Shape)
		if n < 2 || source.Rows() != g.Rows()*n || actual == nil {
			continue
		}
		taken := make([]int, g.Rows())
		for r := range taken {
			taken[r] = slices.IndexFunc(seq(n), func(k int) bool { return relative(source.Row(r*n+k), g.Row(r)) <= t.Floor.RowRelL2 })
		}
		if slices.Contains(taken, -1) {
			continue
		}
		add := func(text string, row func(r int) int) {
			out = append(out, Prediction{ID: "output/last-token", Text: text,
				Value: g.MapRows(func(r int, dst, _ []float64) { copy(dst, actual.Row(r*n+min(max(row(r), 0), n-1))) })})
		}
		add(fmt.Sprintf("the first token of %s is taken, and not token %d", q.Layer, taken[0]), func(int) int { return 0 })
		add(fmt.Sprintf("the last row of %s is taken, padding or not", q.Layer), func(int) int { return n - 1 })
		for _, by := range []int{-1, 1, -2} {
			add(fmt.Sprintf("token %+d from the right one of %s is taken", by, q.Layer), func(r int) int { return taken[r] + by })
		}
		break
	}
	return out
})

// length is the number of rows of one sequence.
func length(shape []int) int {
	if len(shape) < 2 {
		return 1
	}
	return shape[len(shape)-2]
}

func (p *Port) hasPadding() bool { return slices.Contains(p.PadRows, true) }

// nearEnd reports whether nothing of a numbered block comes after the target: it is the model's output, or what its head takes.
func (s *Scene) nearEnd() bool {
	return !slices.ContainsFunc(s.Ports, func(p *Port) bool {
		return p.Case == s.Case && p.Step == s.Step && p.Seq > s.Target.Seq && blockOf(p.Layer) != ""
	})
}
