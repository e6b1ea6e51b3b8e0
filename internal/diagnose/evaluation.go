package diagnose

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// evaluation is one pass over the graph: of the golden tensors, or of the candidate's with one op done wrong.
type evaluation struct {
	g         *graph
	candidate bool
	at        *value // where the fault is
	fault     *fault
	dirty     map[*value]bool
	memo      map[memoKey][]float64
}

type memoKey struct {
	v    *value
	rows uint64
}

func (g *graph) golden() *evaluation { return &evaluation{g: g} }

func (g *graph) faulty(v *value, f *fault) *evaluation {
	return &evaluation{g: g, candidate: true, at: v, fault: f, dirty: map[*value]bool{}, memo: map[memoKey][]float64{}}
}

// get gives rows of a value, one behind the other; nil if that is not known. Nobody writes to the result.
func (e *evaluation) get(v *value, rows []int) []float64 {
	if !e.candidate {
		return read(v.golden, v.width, rows)
	}
	if v.actual != nil && v != e.g.target {
		return read(v.actual, v.width, rows)
	}
	if v != e.at && !e.isDirty(v) {
		return read(v.golden, v.width, rows)
	}
	if len(rows) == 0 {
		return nil
	}
	key := memoKey{v, hashOf(rows)}
	if got, ok := e.memo[key]; ok {
		return got
	}
	var out []float64
	if v == e.at {
		out = e.fault.eval(e, rows)
	} else {
		out = v.op.eval(e, rows)
	}
	e.memo[key] = out
	return out
}

// isDirty reports whether the candidate's value, which it did not record, must be another than the golden one.
func (e *evaluation) isDirty(v *value) bool {
	if v == e.at {
		return true
	}
	if v.actual != nil && v != e.g.target {
		return !v.agrees
	}
	if d, ok := e.dirty[v]; ok || v.op == nil {
		return d
	}
	e.dirty[v] = false
	d := slices.ContainsFunc(v.op.inputs(), e.isDirty)
	e.dirty[v] = d
	return d
}

// all gives every row.
func (e *evaluation) all(v *value) []float64 {
	if v.golden.Len() > decodeMax {
		return nil
	}
	return e.get(v, seq(v.rows))
}

// matching gives, for each of the rows of out, the row of v that belongs to it.
func (e *evaluation) matching(v, out *value, rows []int) []float64 {
	if v.rows == out.rows {
		return e.get(v, rows)
	}
	own := make([]int, len(rows))
	for i, r := range rows {
		if own[i] = v.rowAt(r, out.shape, out.rows); own[i] < 0 {
			return nil
		}
	}
	return e.get(v, own)
}

// hashOf is FNV-1a of the numbers.
func hashOf(rows []int) uint64 {
	h := uint64(14695981039346656037)
	for _, r := range rows {
		h = (h ^ uint64(r)) * 1099511628211
	}
	return h
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func read(t *tensor.Tensor, width int, rows []int) []float64 {
	if len(rows)*width > decodeMax {
		return nil
	}
	out := make([]float64, len(rows)*width)
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		t.Float64s(out[i*width:j*width], rows[i]*width)
		i = j
	}
	return out
}

// spread picks n of m rows: the first, the last and others evenly between; all if there are no more.
func spread(m, n int) []int {
	if m <= n {
		return seq(m)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(int64(i) * int64(m-1) / int64(n-1))
	}
	return out
}

// relative is ‖a − b‖ / ‖b‖: +Inf for tensors that do not go together or hold what is no number.
func relative(a, b []float64) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return math.Inf(1)
	}
	var d, n float64
	for i, x := range b {
		d += (a[i] - x) * (a[i] - x)
		n += x * x
	}
	switch r := math.Sqrt(d / n); {
	case d == 0:
		return 0
	case math.IsNaN(r):
		return math.Inf(1)
	default:
		return r
	}
}
