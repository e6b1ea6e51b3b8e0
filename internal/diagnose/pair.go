package diagnose

import (
	"fmt"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/localise"
)

// pair is the target's golden and candidate's values: the sampled rows that are not padding.
type pair struct {
	// What the candidate should have: the reference's operation on the candidate's own inputs where that is known, else the golden tensor. All are
	// of one shape, [rows, width] where rows were left out.
	golden    *Array
	actual    *Array
	reference *Array // the golden tensor itself
	rows      []bool // which rows of the target they are; nil for all
	index     []int  // their numbers
}

// Pair gives the target's values on both sides; nil where there are none of floats.
func (s *Scene) pair() *pair {
	t := s.Target
	if t == nil || t.Actual == nil || t.Golden.Len() == 0 || t.Golden.Len() != t.Actual.Len() || !t.Golden.DType().IsFloat() {
		return nil
	}
	if s.both != nil {
		return s.both
	}
	p := &pair{rows: s.Sample()}
	if p.rows == nil && t.PadRows != nil {
		p.rows = make([]bool, t.Golden.Len()/max(t.Golden.RowLen(), 1))
		for i := range p.rows {
			p.rows[i] = i >= len(t.PadRows) || !t.PadRows[i]
		}
	}
	n := t.Golden.Len() / max(t.Golden.RowLen(), 1)
	for i := range n {
		if p.rows == nil || p.rows[i] {
			p.index = append(p.index, i)
		}
	}
	if p.rows == nil {
		p.golden, p.actual = s.Array(t.Golden), s.Array(t.Actual)
	} else {
		g, a := selectRows(t.Golden, p.rows), selectRows(t.Actual, p.rows)
		if g == nil || a == nil {
			return nil
		}
		p.golden, p.actual = ArrayOf(g), ArrayOf(a)
	}
	p.reference = p.golden
	if right := s.rebuilt(p.index); right != nil && len(right) == len(p.golden.Data) && relative(right, p.reference.Data) < 64*max(t.Floor.RelL2, 1e-5) {
		p.golden = &Array{Shape: p.golden.Shape, Data: right}
	}
	s.both = p
	return p
}

// of gives the rows of another tensor that go with the pair's, as the candidate had it or as the reference had; nil if it does not go row by row.
func (p *pair) of(s *Scene, q *Port, golden bool) *Array {
	t := q.Golden
	if !golden {
		t = s.actual(q)
	}
	if t == nil || !s.inSample(q) {
		return nil
	}
	if p.rows == nil {
		return s.Array(t)
	}
	if part := selectRows(t, p.rows); part != nil {
		return ArrayOf(part)
	}
	return nil
}

// says makes a prediction of the pair's rows.
func (p *pair) says(id string, value *Array, params, rank int, format string, args ...any) Prediction {
	return Prediction{ID: id, Text: fmt.Sprintf(format, args...), Value: value, Params: params, Rank: rank, Rows: p.rows}
}

// project gives the factor s that makes s·x nearest to y in least squares, over finite pairs; 0 if x is zero.
func project(x, y []float64) float64 {
	var xy, xx float64
	for i, v := range x {
		if d := v * y[i]; !math.IsNaN(d) && !math.IsInf(d, 0) {
			xy += d
			xx += v * v
		}
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// finite reports whether all numbers are.
func finite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// rootMeanSquare over all numbers.
func rootMeanSquare(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(len(x), 1)))
}

// isOutput reports whether the target is what a layer gave, and not what one was given.
func (s *Scene) isOutput() bool {
	return s.Target != nil && localise.RoleOf(s.Target.Port) == localise.Output
}

// isLeaf reports whether the reference recorded nothing inside of a layer.
func (s *Scene) isLeaf(layer string) bool {
	for _, p := range s.Ports {
		if strings.HasPrefix(p.Layer, layer+".") {
			return false
		}
	}
	return true
}

// inAttention reports whether a label lies in an attention.
func inAttention(layer string) bool {
	for part := range strings.SplitSeq(strings.ToLower(layer), ".") {
		if strings.Contains(part, "attn") || strings.Contains(part, "attention") && !strings.Contains(part, "norm") {
			return true
		}
	}
	return false
}

// heads is the number of attention heads of which the target's columns may consist, 0 if that is not known.
func (s *Scene) heads() int {
	if s.Target == nil || !inAttention(s.Target.Layer) {
		return 0
	}
	keys := []string{"num_attention_heads", "n_head", "num_heads", "n_heads"}
	if r := qkvRole(lastPart(s.Target.Layer)); r == 'k' || r == 'v' {
		keys = append([]string{"num_key_value_heads"}, keys...)
	}
	n, _ := s.Config.Int(keys...)
	return n
}

// ofEmbedding reports whether the target is, in the reference, a table's output times a number: what the first block is given.
func (s *Scene) ofEmbedding(p *pair) bool {
	for _, q := range s.Ports {
		if q.Case != s.Case || q.Step != s.Step || q.Seq > s.Target.Seq || q.Golden.Len() != s.Target.Golden.Len() || localise.RoleOf(q.Port) == localise.Input ||
			!tableNames.has(lastPart(q.Layer)) || !q.Golden.DType().IsFloat() {
			continue
		}
		if x := p.of(s, q, true); x != nil && len(x.Data) == len(p.reference.Data) {
			f := project(x.Data, p.reference.Data)
			if relative(p.reference.Data, x.Map(func(v float64) float64 { return f * v }).Data) <= s.Target.Floor.RelL2 {
				return true
			}
		}
	}
	return false
}

// rebuilt gives rows of the target as the reference's operation makes them of the candidate's inputs; nil where the operation is not known or takes
// too long.
func (s *Scene) rebuilt(rows []int) []float64 {
	g := s.graph()
	if g == nil {
		return nil
	}
	g.explain(g.target)
	switch o := g.target.op.(type) {
	case nil, *given:
		return nil
	case *linear:
		if float64(len(rows))*float64(g.target.width)*float64(o.in.width) > 1e9 {
			return nil
		}
	}
	right := fault{eval: g.target.op.eval}
	return g.faulty(g.target, &right).get(g.target, rows)
}
