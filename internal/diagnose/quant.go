package diagnose

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/tensor"
)

// groupSizes of quantised weights in use, along the inputs.
var groupSizes = []int{8, 16, 32, 64, 128, 256}

// scheme is how a weight was quantised: in groups of size inputs, to whole numbers up to top.
type scheme struct {
	size  int
	top   float64 // 0 where it is not known
	known bool    // the config says so, or the weight shows it: it lies on the grid
}

// schemes are that of the weight if it is known, else all usual group sizes.
func (o *linear) schemes(g *graph, w [][]float64) []scheme {
	in := o.in.width
	if q, ok := g.s.Config["quantization_config"].(map[string]any); ok {
		c := Config(q)
		if size, ok := c.Int("group_size", "q_group_size"); ok {
			if size <= 0 || size > in {
				size = in
			}
			bits, _ := c.Int("bits", "w_bit")
			if bits > 1 && in%size == 0 {
				return []scheme{{size, math.Pow(2, float64(bits-1)) - 1, true}}
			}
		}
	}
	sizes := groupSizes
	if !slices.Contains(sizes, in) {
		sizes = append(slices.Clone(sizes), in)
	}
	var all []scheme
	for _, size := range sizes {
		if size > in || in%size != 0 {
			continue
		}
		for _, top := range []float64{7, 127} {
			if onGrid(w, size, top) {
				return []scheme{{size, top, true}}
			}
		}
		all = append(all, scheme{size: size})
	}
	return all
}

// onGrid reports whether the first rows are whole numbers up to top, times the scale of their group.
func onGrid(w [][]float64, size int, top float64) bool {
	const rows, near = 8, 0.01
	w = w[:min(rows, len(w))]
	for r, scales := range groupScales(w, size) {
		for c, x := range w[r] {
			n := x / scales[c/size] * top
			if scales[c/size] > 0 && math.Abs(n-math.Round(n)) > near*max(1, top/32) {
				return false
			}
		}
	}
	return len(w) > 0
}

// quantised: the scales of a quantised weight do not belong to it. A group of a row has the scale max|w|/top.
func (o *linear) quantised(g *graph, v *value) []fault {
	const limit = 1 << 24
	in, out := o.in.width, o.out.width
	if o.conv || o.w.Len() > limit || !o.w.DType().IsFloat() {
		return nil
	}
	w := rowsOf(o.w, out, in)
	var faults []fault
	for _, sc := range o.schemes(g, w) {
		size, n := sc.size, in/sc.size
		s := groupScales(w, size)
		unsure := 2
		if sc.known {
			unsure = 0
		}
		// with has other scales; the weight is rounded to whole numbers up to top first, unless that is 0.
		with := func(id, text string, rank int, top float64, scale func(r, c int) float64) fault {
			return fault{id: id, text: text, rank: rank + unsure, eval: func(e *evaluation, rows []int) []float64 {
				changed := make([]float64, 0, out*in)
				for r := range w {
					for c, x := range w[r] {
						if own := s[r][c/size]; own > 0 {
							n := x / own
							if top > 0 {
								n = math.Round(n*top) / top
							}
							x = n * scale(r, c)
						}
						changed = append(changed, x)
					}
				}
				t, err := tensor.Of(changed, out, in)
				if err != nil {
					return nil
				}
				return o.with(e, rows, t, o.b, 1)
			}}
		}
		add := func(id, text string, rank int, scale func(r, c int) float64) {
			f := with(id, fmt.Sprintf("%s (groups of %d)", text, size), rank, 0, scale)
			if !sc.known {
				f.refine = func() []fault {
					return []fault{
						with(id, fmt.Sprintf("%s (groups of %d, rounded to 8 bits)", text, size), rank, 127, scale),
						with(id, fmt.Sprintf("%s (groups of %d, rounded to 4 bits)", text, size), rank, 7, scale),
					}
				}
			}
			faults = append(faults, f)
		}
		if n > 1 {
			for _, by := range []int{1, -1} {
				add("quant/group", fmt.Sprintf("each group has the scale of the group %+d", by), 0, func(r, c int) float64 { return s[r][(c/size+by+n)%n] })
			}
			for _, f := range []int{2, 4, 8} {
				if n%f == 0 && n > f {
					add("quant/group", fmt.Sprintf("groups of %d: every scale but each %dth is left out", size*f, f), 0, func(r, c int) float64 { return s[r][c/size/f*f] })
					add("quant/group", fmt.Sprintf("groups of %d, with the first scales of each row", size*f), 0, func(r, c int) float64 { return s[r][c/(size*f)] })
				}
				if size%f == 0 {
					add("quant/group", fmt.Sprintf("groups of %d, with the scales in turn", size/f), 0, func(r, c int) float64 { return s[r][c/(size/f)%n] })
					add("quant/group", fmt.Sprintf("groups of %d, with the scales in turn from row to row", size/f), 1, func(r, c int) float64 {
						at := (r*(in/(size/f)) + c/(size/f)) % (out * n)
						return s[at/n][at%n]
					})
				}
			}
			add("quant/group", "the scales are read as [groups, rows]", 0, func(r, c int) float64 { at := c/size*out + r; return s[at/n][at%n] })
			add("quant/group", "the scales are written as [groups, rows]", 0, func(r, c int) float64 { at := r*n + c/size; return s[at%out][at/out] })
			add("quant/scale", "each row has the scale of its first group", 1, func(r, _ int) float64 { return s[r][0] })
			add("quant/scale", "each row has the largest of its scales", 1, func(r, _ int) float64 { return slices.Max(s[r]) })
		}
		for _, by := range []int{1, -1} {
			add("quant/scale", fmt.Sprintf("each row has the scales of the row %+d", by), 0, func(r, c int) float64 { return s[(r+by+out)%out][c/size] })
		}
		add("quant/scale", "all rows have the scales of the first", 1, func(_, c int) float64 { return s[0][c/size] })
		add("quant/scale", "all have the first scale", 1, func(int, int) float64 { return s[0][0] })
		add("quant/scale", "all have the largest scale", 1, func(int, int) float64 { return largest(s) })
		if !sc.known {
			continue
		}
		add("quant/scale", "the scales are left out", 0, func(int, int) float64 { return sc.top })
		for _, f := range []float64{sc.top / (sc.top + 1), (sc.top + 1) / sc.top, 0.5, 2} {
			add("quant/scale", fmt.Sprintf("all scales are multiplied by %.4g", f), 0, func(r, c int) float64 { return f * s[r][c/size] })
		}
		if v == g.target {
			faults = append(faults, o.factors(size)...)
		}
	}
	return faults
}

func largest(s [][]float64) float64 {
	m := 0.0
	for _, r := range s {
		m = max(m, slices.Max(r))
	}
	return m
}

func rowsOf(t *tensor.Tensor, rows, width int) [][]float64 {
	out := make([][]float64, rows)
	all := read(t, width, seq(rows))
	for r := range out {
		out[r] = all[r*width : (r+1)*width]
	}
	return out
}

// groupScales is max|w| of each group of each row.
func groupScales(w [][]float64, size int) [][]float64 {
	out := make([][]float64, len(w))
	for r, row := range w {
		for at := 0; at < len(row); at += size {
			m := 0.0
			for _, x := range row[at:min(at+size, len(row))] {
				m = max(m, math.Abs(x))
			}
			out[r] = append(out[r], m)
		}
	}
	return out
}

// factors fits one factor for one group of inputs, one for each group, or one for each output.
func (o *linear) factors(size int) []fault {
	n := o.in.width / size
	var faults []fault
	if n > 1 && n <= 64 {
		for p := range n {
			number := 0.0
			faults = append(faults, fault{id: "quant/scale", text: fmt.Sprintf("the scales of group %d of %d are multiplied by a number", p, n), params: 1, fitted: true,
				number: &number, eval: func(e *evaluation, rows []int) []float64 { return o.fitGroups(e, rows, size, p, &number) }})
		}
		faults = append(faults, fault{id: "quant/group", text: fmt.Sprintf("each group of %d inputs is multiplied by a number", size), rank: 2, params: n, fitted: true,
			eval: func(e *evaluation, rows []int) []float64 { return o.fitGroups(e, rows, size, -1, nil) }})
	}
	return append(faults, fault{id: "quant/scale", text: "the scale of each output is another", rank: 2, params: o.out.width, fitted: true,
		eval: func(e *evaluation, rows []int) []float64 { return o.fitColumns(e, rows) }})
}

// fitColumns scales each column of in·Wᵀ.
func (o *linear) fitColumns(e *evaluation, rows []int) []float64 {
	some := spread(o.out.rows, sampleRows)
	y, actual := o.with(e, some, o.w, nil, 0), read(e.g.s.Target.Actual, o.out.width, some)
	bias := addRow(make([]float64, o.out.width), o.out.width, o.b, 1)
	at := o.with(e, rows, o.w, nil, 0)
	if y == nil || at == nil || bias == nil {
		return nil
	}
	out := make([]float64, len(at))
	for c := range o.out.width {
		var ya, yy float64
		for i := c; i < len(y); i += o.out.width {
			ya += y[i] * (actual[i] - bias[c])
			yy += y[i] * y[i]
		}
		f := 1.0
		if yy > 0 {
			f = ya / yy
		}
		for i := c; i < len(at); i += o.out.width {
			out[i] = f*at[i] + bias[c]
		}
	}
	return out
}

// fitGroups scales each group of inputs, or only one of them, by least squares over all elements.
func (o *linear) fitGroups(e *evaluation, rows []int, size, only int, number *float64) []float64 {
	n := o.in.width / size
	w := rowsOf(o.w, o.out.width, o.in.width)
	// The columns: what each group adds, and what is not fitted.
	parts := func(rows []int) (columns [][]float64, rest []float64) {
		x := e.get(o.in, rows)
		if x == nil || !e.g.spend(float64(len(rows)*o.w.Len())) {
			return nil, nil
		}
		rest = addRow(make([]float64, len(rows)*o.out.width), o.out.width, o.b, 1)
		for p := range n {
			column := make([]float64, len(rows)*o.out.width)
			for i := range rows {
				xi := x[i*o.in.width+p*size : i*o.in.width+(p+1)*size]
				for c := range w {
					column[i*o.out.width+c] = floats.Dot(xi, w[c][p*size:(p+1)*size])
				}
			}
			if only >= 0 && p != only {
				for i := range rest {
					rest[i] += column[i]
				}
				continue
			}
			columns = append(columns, column)
		}
		return columns, rest
	}
	some := spread(o.out.rows, probeRows)
	fit, rest := parts(some)
	if fit == nil {
		return nil
	}
	actual := read(e.g.s.Target.Actual, o.out.width, some)
	for i := range actual {
		actual[i] -= rest[i]
	}
	f := leastSquares(fit, actual)
	at, out := parts(rows)
	if f == nil || at == nil {
		return nil
	}
	if number != nil {
		*number = f[0]
	}
	for p := range at {
		for i := range out {
			out[i] += f[p] * at[p][i]
		}
	}
	return out
}
