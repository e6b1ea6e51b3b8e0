package diagnose

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// sum is out = Σ cᵢ·xᵢ: a residual connection (two terms), or embeddings of words, positions and types (three).
type sum struct {
	out   *value
	terms []*value
	c     []float64
}

func (o *sum) inputs() []*value { return o.terms }

func (o *sum) eval(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, o.c) }

func (o *sum) with(e *evaluation, rows []int, terms []*value, c []float64) []float64 {
	out := make([]float64, len(rows)*o.out.width)
	for t, x := range terms {
		got := e.matching(x, o.out, rows)
		if len(got) != len(out) {
			return nil
		}
		for i, v := range got {
			out[i] += c[t] * v
		}
	}
	return out
}

// column is the values of some elements of a tensor, as many as are needed to tell which tensors make up another.
type column struct {
	v *value
	x []float64
}

// columns samples v and what may be a term of it: all earlier values of its width whose rows go together with its own.
func columns(g *graph, v *value, terms []*value) (target []float64, out []column) {
	const nRows, nCols = 12, 24
	rows, cols := spread(v.rows, nRows), spread(v.width, nCols)
	pick := func(x []float64) []float64 {
		var out []float64
		for i := range rows {
			for _, c := range cols {
				out = append(out, x[i*v.width+c])
			}
		}
		return out
	}
	e := g.golden()
	for _, x := range terms {
		if x.width == v.width {
			if got := e.matching(x, v, rows); got != nil {
				out = append(out, column{x, pick(got)})
			}
		}
	}
	return pick(read(v.golden, v.width, rows)), out
}

// findSum looks for two values that add up to v, for three of embeddings, and for two with a constant factor at one of them.
func findSum(g *graph, v *value) []op {
	t, cols := columns(g, v, g.before(v))
	n := float64(len(cols))
	if !g.spend(n * n * float64(len(t))) {
		return nil
	}
	var best *sum
	least := v.noise()
	try := func(miss float64, o *sum) {
		if miss < least {
			least, best = miss/2, o
		}
	}
	rest, size := make([]float64, len(t)), floats.Norm(t, 2)
	for i, a := range cols {
		for k := range t {
			rest[k] = t[k] - a.x[k]
		}
		for j, b := range cols {
			if j < i {
				try(floats.Distance(rest, b.x, 2)/size, &sum{v, []*value{a.v, b.v}, []float64{1, 1}})
			}
		}
	}
	if best == nil && nearEmbeddings(v) {
		for i, a := range cols {
			for j, b := range cols[:i] {
				for k := range t {
					rest[k] = t[k] - a.x[k] - b.x[k]
				}
				for _, c := range cols[:j] {
					try(floats.Distance(rest, c.x, 2)/size, &sum{v, []*value{a.v, b.v, c.v}, []float64{1, 1, 1}})
				}
			}
		}
	}
	if best == nil {
		// One of the two has a factor (a residual multiplier).
		for _, a := range cols {
			for k := range t {
				rest[k] = t[k] - a.x[k]
			}
			for _, b := range cols {
				if a.v == b.v {
					continue
				}
				f := floats.Dot(rest, b.x) / floats.Dot(b.x, b.x)
				for k := range rest {
					rest[k] -= f * b.x[k]
				}
				if miss := floats.Norm(rest, 2) / floats.Norm(t, 2); !math.IsNaN(miss) && math.Abs(f) > 1e-3 {
					try(8*miss, &sum{v, []*value{a.v, b.v}, []float64{1, f}}) // it fits more easily
				}
				for k := range t {
					rest[k] = t[k] - a.x[k]
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	return []op{best}
}

// nearEmbeddings reports whether v is made in front of the blocks.
func nearEmbeddings(v *value) bool {
	return slices.ContainsFunc(v.ports, func(p *Port) bool { return blockOf(p.Layer) == "" })
}

func (o *sum) faults(g *graph, v *value) []fault {
	var out []fault
	ones := func() []float64 { return slices.Clone(o.c) }
	tables := !slices.ContainsFunc(o.terms, func(x *value) bool { return !tableNames.has(lastPart(x.name())) })
	for i, x := range o.terms {
		name := lastPart(x.name())
		c := ones()
		c[i] = 0
		id, text := "residual/missing", x.text()+" is not added"
		if tables {
			id = tableID(name)
		}
		out = append(out, fault{id: id, text: text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }})
		if math.Abs(o.c[i]-1) > 1e-3 {
			c := ones()
			c[i] = 1
			missing := fault{id: "residual/scale", text: fmt.Sprintf("the factor %.6g of %s is missing", o.c[i], x.text()),
				eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }}
			out = append(out, missing)
			for _, key := range []string{"residual_multiplier", "residual_scale"} {
				if f, ok := g.s.Config.Float(key); ok && math.Abs(f/o.c[i]-1) < 1e-3 {
					missing.id, missing.rank, missing.text = "config/"+key, 1, key+" of the config is ignored"
					out = append(out, missing)
				}
			}
		}
		for _, f := range []float64{2, 0.5, -1} {
			c := ones()
			c[i] *= f
			out = append(out, fault{id: "residual/scale", text: fmt.Sprintf("%s is added %g times", x.text(), c[i]), rank: 1,
				eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }})
		}
		if v == g.target {
			number := 0.0
			out = append(out, fault{id: "residual/scale", text: x.text() + " is added with a factor", rank: 1, params: 1, fitted: true, number: &number,
				eval: func(e *evaluation, rows []int) []float64 {
					if f, ok := o.factor(g, e, i); ok {
						c := ones()
						c[i], number = f, f
						return o.with(e, rows, o.terms, c)
					}
					return nil
				}})
		} else {
			out = append(out, g.fitted(v, "residual/scale", x.text()+" is added with a factor", -4, 4, 0, func(f float64) float64 { return f }, func(f float64) func(*evaluation, []int) []float64 {
				c := ones()
				c[i] = f
				return func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }
			}))
		}
		for _, other := range g.alikes(v) {
			if slices.Contains(o.terms, other) {
				continue
			}
			terms := slices.Clone(o.terms)
			terms[i] = other
			id := "residual/source"
			if tables {
				id = tableID(name)
			}
			out = append(out, fault{id: id, text: fmt.Sprintf("%s is added in place of %s", other.text(), x.text()), rank: 1,
				eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, terms, o.c) }})
		}
	}
	for _, f := range []float64{2, 0.5, math.Sqrt2, 1 / math.Sqrt2} {
		c := ones()
		for i := range c {
			c[i] *= f
		}
		out = append(out, fault{id: "residual/scale", text: fmt.Sprintf("the sum is multiplied by %.4g", f), rank: 1,
			eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }})
	}
	return out
}

// factor fits the factor of one term to the candidate.
func (o *sum) factor(g *graph, e *evaluation, i int) (float64, bool) {
	rows := spread(o.out.rows, sampleRows)
	x := e.matching(o.terms[i], o.out, rows)
	c := slices.Clone(o.c)
	c[i] = 0
	rest := o.with(e, rows, o.terms, c)
	if x == nil || rest == nil {
		return 0, false
	}
	actual := read(g.s.Target.Actual, o.out.width, rows)
	for k := range rest {
		rest[k] = actual[k] - rest[k]
	}
	f := floats.Dot(rest, x) / floats.Dot(x, x)
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// multiple is out = c·in: embeddings scaled by √hidden.
type multiple struct {
	in, out *value
	c       float64
}

func (o *multiple) inputs() []*value { return []*value{o.in} }

func (o *multiple) eval(e *evaluation, rows []int) []float64 {
	if o.c == 0 {
		// Of the golden tensors, once.
		some := spread(o.out.rows, probeRows)
		x, y := read(o.in.golden, o.in.width, some), read(o.out.golden, o.out.width, some)
		o.c = floats.Dot(x, y) / floats.Dot(x, x)
	}
	return scaled(e.get(o.in, rows), o.c)
}

func (o *multiple) faults(g *graph, _ *value) []fault {
	id := "value/scale"
	if tableNames.has(lastPart(o.in.name())) {
		id = "embedding/scale"
	}
	var out []fault
	add := func(text string, f float64) {
		out = append(out, fault{id: id, text: fmt.Sprintf("the factor %.6g of %s %s", o.c, o.in.text(), text),
			eval: func(e *evaluation, rows []int) []float64 { return scaled(e.get(o.in, rows), f) }})
	}
	add("is missing", 1)
	if f, ok := g.s.Config.Float("embedding_multiplier"); ok && math.Abs(f/o.c-1) < 1e-3 {
		out = append(out, fault{id: "config/embedding_multiplier", rank: 1, text: "embedding_multiplier of the config is ignored",
			eval: func(e *evaluation, rows []int) []float64 { return e.get(o.in, rows) }})
	}
	add("is applied twice", o.c*o.c)
	add("is inverted", 1/o.c)
	number := 0.0
	return append(out, fault{id: id, text: fmt.Sprintf("the factor of %s is not %.6g but another", o.in.text(), o.c), params: 1, fitted: true, rank: 1, number: &number,
		eval: func(e *evaluation, rows []int) []float64 {
			some := spread(o.out.rows, sampleRows)
			x := e.get(o.in, some)
			if x == nil {
				return nil
			}
			number = floats.Dot(read(e.g.s.Target.Actual, o.out.width, some), x) / floats.Dot(x, x)
			return scaled(e.get(o.in, rows), number)
		}})
}
