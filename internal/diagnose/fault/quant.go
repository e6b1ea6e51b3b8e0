package fault

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// scheme is how a weight was quantised: in groups of size inputs, to whole numbers up to top.
type scheme struct {
	size int
	top  float64 // 0 where it is not known; else the config says so, or the weight lies on the grid
}

// schemes are that of the weight if it is known, else all usual group sizes.
func schemes(o *rebuild.Linear, w [][]float64) []scheme {
	in := o.In.Width
	if q, ok := o.Scene().Config["quantization_config"].(map[string]any); ok {
		c := checkpoint.Config(q)
		if size, ok := c.Int("group_size", "q_group_size"); ok {
			if size <= 0 || size > in {
				size = in
			}
			if bits, _ := c.Int("bits", "w_bit"); bits > 1 && in%size == 0 {
				return []scheme{{size, math.Pow(2, float64(bits-1)) - 1}}
			}
		}
	}
	sizes := slices.Clone(op.GroupSizes)
	if !slices.Contains(sizes, in) {
		sizes = append(sizes, in)
	}
	var all []scheme
	for _, size := range sizes {
		if size > in || in%size != 0 {
			continue
		}
		for _, top := range []float64{7, 127} {
			if op.OnGrid(w, size, top) {
				return []scheme{{size, top}}
			}
		}
		all = append(all, scheme{size, 0})
	}
	return all
}

// quantised lists a linear layer with scales that do not belong to its weight.
type quantised struct {
	List
	o       *rebuild.Linear
	w, s    [][]float64 // the weight, and the scale of each group of each row
	size    int         // of a group
	n       int         // groups in a row
	in, out int
	sure    bool // the scheme is known
}

// Quantised is a linear layer with a quantised weight whose scales do not belong to it. The scale
// of a group is max|w| / top.
func Quantised(o *rebuild.Linear) (out List) {
	if o.Conv || o.W.Len() > roundedWeight || !o.W.DType().IsFloat() {
		return nil
	}
	w := o.W.Rows()
	for _, sc := range schemes(o, w) {
		q := &quantised{o: o, w: w, s: op.GroupScales(w, sc.size), size: sc.size, n: o.In.Width / sc.size,
			in: o.In.Width, out: o.Out.Width, sure: sc.top > 0}
		if q.n > 1 {
			q.groups()
		}
		q.rows()
		if q.sure {
			q.multiples(sc.top)
			if o.Out.IsTarget() {
				q.fitted()
			}
		}
		out = append(out, q.List...)
	}
	return out
}

// scaled appends a weight whose element at row r and column c has another scale. Where the scheme
// is not known, it is tried without rounding first.
func (q *quantised) scaled(id string, rank int, text string, scale func(r, c int) float64) {
	with := func(rounded string, top float64) rebuild.Fault {
		return rebuild.Fault{ID: id, Rank: rank, Text: fmt.Sprintf("%s (groups of %d%s)", text, q.size, rounded),
			Eval: made(q.o, func() *op.Matrix { return op.MatrixOf(op.Rescaled(q.w, q.size, top, scale), q.out, q.in) })}
	}
	if !q.sure {
		rank += unsureRank
	}
	f := with("", 0)
	if !q.sure {
		f.Refine = func() []rebuild.Fault {
			return []rebuild.Fault{with(", rounded to 8 bits", 127), with(", rounded to 4 bits", 7)}
		}
	}
	q.List = append(q.List, f)
}

// groups appends scales of other groups of the row.
func (q *quantised) groups() {
	s, size, n := q.s, q.size, q.n
	add := func(rank int, text string, scale func(r, c int) float64) { q.scaled("quant/group", rank, text, scale) }
	for _, by := range []int{1, -1} {
		add(0, fmt.Sprintf("each group has the scale of the group %+d", by),
			func(r, c int) float64 { return s[r][(c/size+by+n)%n] })
	}
	for _, f := range []int{2, 4, 8} {
		if n%f == 0 && n > f {
			add(0, fmt.Sprintf("groups of %d: every scale but each %dth is left out", size*f, f),
				func(r, c int) float64 { return s[r][c/size/f*f] })
			add(0, fmt.Sprintf("groups of %d, with the first scales of each row", size*f),
				func(r, c int) float64 { return s[r][c/(size*f)] })
		}
		if small := size / f; size%f == 0 {
			add(0, fmt.Sprintf("groups of %d, with the scales in turn", small),
				func(r, c int) float64 { return s[r][c/small%n] })
			add(1, fmt.Sprintf("groups of %d, with the scales in turn from row to row", small),
				func(r, c int) float64 {
					at := (r*(q.in/small) + c/small) % (q.out * n)
					return s[at/n][at%n]
				})
		}
	}
	add(0, "the scales are read as [groups, rows]", func(r, c int) float64 {
		at := c/size*q.out + r
		return s[at/n][at%n]
	})
	add(0, "the scales are written as [groups, rows]", func(r, c int) float64 {
		at := r*n + c/size
		return s[at%q.out][at/q.out]
	})
	q.scaled("quant/scale", 1, "each row has the scale of its first group", func(r, _ int) float64 { return s[r][0] })
	q.scaled("quant/scale", 1, "each row has the largest of its scales",
		func(r, _ int) float64 { return slices.Max(s[r]) })
}

// rows appends scales of other rows.
func (q *quantised) rows() {
	s, size := q.s, q.size
	for _, by := range []int{1, -1} {
		q.scaled("quant/scale", 0, fmt.Sprintf("each row has the scales of the row %+d", by),
			func(r, c int) float64 { return s[(r+by+q.out)%q.out][c/size] })
	}
	q.scaled("quant/scale", 1, "all rows have the scales of the first", func(_, c int) float64 { return s[0][c/size] })
	largest := floats.Max(slices.Concat(s...))
	q.scaled("quant/scale", 1, "all have the first scale", func(int, int) float64 { return s[0][0] })
	q.scaled("quant/scale", 1, "all have the largest scale", func(int, int) float64 { return largest })
}

// multiples appends scales that are multiplied: by what zero points and off-by-one limits make of
// them.
func (q *quantised) multiples(top float64) {
	q.scaled("quant/scale", 0, "the scales are left out", func(int, int) float64 { return top })
	for _, f := range []float64{top / (top + 1), (top + 1) / top, 0.5, 2} {
		q.scaled("quant/scale", 0, fmt.Sprintf("all scales are multiplied by %.4g", f),
			func(r, c int) float64 { return f * q.s[r][c/q.size] })
	}
}

// fitted fits one factor for one group of inputs, one for each group, or one for each output.
func (q *quantised) fitted() {
	add := func(id string, params int, f rebuild.Fault) {
		if f.ID, f.Params = id, params; params > 1 {
			f.Rank, f.Number = 2, nil
		}
		q.List = append(q.List, f)
	}
	v := q.o.Out
	if q.n > 1 && q.n <= maxGroups {
		for p := range q.n {
			text := fmt.Sprintf("the scales of group %d of %d are multiplied by a number", p, q.n)
			add("quant/scale", 1, v.Scaled(text, rebuild.ProbeRows, q.parts(p)))
		}
		text := fmt.Sprintf("each group of %d inputs is multiplied by a number", q.size)
		add("quant/group", q.n, v.Scaled(text, rebuild.ProbeRows, q.parts(-1)))
	}
	add("quant/scale", q.out, rebuild.Fault{Text: "the scale of each output is another", Eval: q.columns})
}

// parts returns what each group of inputs adds to the output, or only one of them, and the rest.
func (q *quantised) parts(only int) rebuild.Parts {
	return func(e *rebuild.Evaluation, rows []int) (parts [][]float64, rest []float64) {
		x := e.Get(q.o.In, rows)
		if x == nil || !q.o.Graph().Spend(q.o.Work(len(rows))) {
			return nil, nil
		}
		rest = make([]float64, len(rows)*q.out)
		for i := 0; i < len(rest) && q.o.B != nil; i += q.out {
			copy(rest[i:], q.o.B)
		}
		for p := range q.n {
			part := make([]float64, len(rest))
			for i := range rows {
				xi := x[i*q.in+p*q.size : i*q.in+(p+1)*q.size]
				for c, w := range q.w {
					part[i*q.out+c] = floats.Dot(xi, w[p*q.size:(p+1)*q.size])
				}
			}
			if only < 0 || p == only {
				parts = append(parts, part)
			} else {
				floats.Add(rest, part)
			}
		}
		return parts, rest
	}
}

// columns scales each column of in·Wᵀ to fit the candidate.
func (q *quantised) columns(e *rebuild.Evaluation, rows []int) []float64 {
	product := with(q.o, func(l *rebuild.Linear) { l.B = nil })
	some := op.Spread(q.o.Out.Rows, rebuild.SampleRows)
	fit, out, actual := product(e, some), product(e, rows), q.o.Out.Wrong(some)
	if fit == nil || out == nil {
		return nil
	}
	for c := range q.out {
		b := 0.0
		if q.o.B != nil {
			b = q.o.B[c]
		}
		column := []int{c}
		wrong := op.Select(actual, q.out, column)
		floats.AddConst(-b, wrong)
		f := op.Project(op.Select(fit, q.out, column), wrong)
		for i := c; i < len(out); i += q.out {
			out[i] = f*out[i] + b
		}
	}
	return out
}
