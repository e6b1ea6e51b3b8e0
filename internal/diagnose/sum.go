package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
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
	rest := make([]float64, len(t))
	for i, a := range cols {
		for k := range t {
			rest[k] = t[k] - a.x[k]
		}
		for j, b := range cols {
			if j < i {
				try(norm2(rest, b.x)/norm(t), &sum{v, []*value{a.v, b.v}, []float64{1, 1}})
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
					try(norm2(rest, c.x)/norm(t), &sum{v, []*value{a.v, b.v, c.v}, []float64{1, 1, 1}})
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
				f := dot(rest, b.x) / dot(b.x, b.x)
				for k := range rest {
					rest[k] -= f * b.x[k]
				}
				if miss := norm(rest) / norm(t); !math.IsNaN(miss) && math.Abs(f) > 1e-3 {
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

// norm2 is ‖a − b‖.
func norm2(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += (x - b[i]) * (x - b[i])
	}
	return math.Sqrt(s)
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

// nearEmbeddings reports whether v is made in front of the blocks.
func nearEmbeddings(v *value) bool {
	return slices.ContainsFunc(v.ports, func(p *Port) bool { return blockOf(p.Layer) == "" })
}

func (o *sum) faults(g *graph, v *value) []fault {
	var out []fault
	ones := func() []float64 { return slices.Clone(o.c) }
	for i, x := range o.terms {
		name := lastPart(x.name())
		c := ones()
		c[i] = 0
		id, text := "residual/missing", x.text()+" is not added"
		switch {
		case positionNames.has(name):
			id = "embedding/position"
		case typeNames.has(name):
			id = "embedding/type"
		case tableNames.has(name) && tableRole(name) == 'w':
			id = "embedding/index"
		case v == g.target && addedLater(g, x):
			id, text = "norm/order", x.text()+" is added after the norm and not before"
		}
		out = append(out, fault{id: id, text: text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }})
		for _, f := range []float64{2, 0.5, -1} {
			c := ones()
			c[i] *= f
			out = append(out, fault{id: "residual/scale", text: fmt.Sprintf("%s is added %g times", x.text(), c[i]), rank: 1,
				eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.terms, c) }})
		}
		out = append(out, fault{id: "residual/scale", text: x.text() + " is added with a factor", rank: 1, params: 1, fitted: true,
			eval: func(e *evaluation, rows []int) []float64 {
				if f, ok := o.factor(g, e, i); ok {
					c := ones()
					c[i] = f
					return o.with(e, rows, o.terms, c)
				}
				return nil
			}})
		for _, other := range g.alikes(v) {
			if slices.Contains(o.terms, other) {
				continue
			}
			terms := slices.Clone(o.terms)
			terms[i] = other
			id := "residual/source"
			if len(o.terms) > 2 {
				id = "embedding/index"
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
	f := dot(rest, x) / dot(x, x)
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
		o.c = dot(x, y) / dot(x, x)
	}
	return scaled(e.get(o.in, rows), o.c)
}

func (o *multiple) faults(*graph, *value) []fault {
	id := "value/scale"
	if tableNames.has(lastPart(o.in.name())) {
		id = "embedding/scale"
	}
	var out []fault
	for f, text := range map[float64]string{1: "is missing", o.c * o.c: "is applied twice", 1 / o.c: "is inverted"} {
		out = append(out, fault{id: id, text: fmt.Sprintf("the factor %.6g of %s %s", o.c, o.in.text(), text),
			eval: func(e *evaluation, rows []int) []float64 { return scaled(e.get(o.in, rows), f) }})
	}
	return append(out, fault{id: id, text: fmt.Sprintf("the factor of %s is another than %.6g", o.in.text(), o.c), params: 1, fitted: true, rank: 1,
		eval: func(e *evaluation, rows []int) []float64 {
			some := spread(o.out.rows, sampleRows)
			x := e.get(o.in, some)
			if x == nil {
				return nil
			}
			return scaled(e.get(o.in, rows), dot(read(e.g.s.Target.Actual, o.out.width, some), x)/dot(x, x))
		}})
}

// addedLater reports whether the candidate adds x to what the norm puts out whose input the target is: post-norm became pre-norm.
func addedLater(g *graph, x *value) bool {
	t := g.s.Target
	normed := g.s.Output(t.Layer)
	if !isNormName(lastPart(t.Layer)) || normed == nil || normed.Actual == nil || normed == t {
		return false
	}
	rows := spread(g.target.rows, probeRows)
	shape := normed.Golden.Shape()
	if !slices.Equal(shape, g.target.shape) || !slices.Equal(normed.Actual.Shape(), shape) {
		return false
	}
	want := read(normed.Actual, g.target.width, rows)
	for i, v := range g.faulty(g.target, &fault{}).matching(x, g.target, rows) {
		want[i] += v
	}
	mark := markOf(normed.Golden)
	return mark != "" && slices.ContainsFunc(g.s.Ports, func(p *Port) bool {
		return p != normed && p.Case == t.Case && p.Step == t.Step && p.Actual != nil && slices.Equal(p.Golden.Shape(), shape) && slices.Equal(p.Actual.Shape(), shape) &&
			markOf(p.Golden) == mark && relative(read(p.Actual, g.target.width, rows), want) <= 10*g.target.noise()
	})
}

// shifted is out = in + p with a parameter p of the model that no layer of its own holds: a table of positions.
type shifted struct {
	in, out *value
	key     string
	w       *tensor.Tensor
}

func findParameter(g *graph, v *value) []op {
	var ops []op
	for key, w := range g.s.Weights {
		if s := w.Shape(); len(s) >= 2 && s[len(s)-1] == v.width && w.Len() > v.width && v.rows%(w.Len()/v.width) == 0 && blockOf(key) == "" {
			for _, x := range g.alikes(v) {
				ops = append(ops, &shifted{x, v, key, w})
			}
		}
	}
	return ops
}

func (o *shifted) inputs() []*value { return []*value{o.in} }

func (o *shifted) eval(e *evaluation, rows []int) []float64 {
	return o.with(e, rows, 1, func(r, _ int) int { return r })
}

// with adds f times row at(r, n) of the n rows of the parameter.
func (o *shifted) with(e *evaluation, rows []int, f float64, at func(r, n int) int) []float64 {
	x := slices.Clone(e.get(o.in, rows))
	if x == nil {
		return nil
	}
	n := o.w.Len() / o.out.width
	for i, r := range rows {
		for c, p := range read(o.w, o.out.width, []int{at(r%n, n)}) {
			x[i*o.out.width+c] += f * p
		}
	}
	return x
}

func (o *shifted) faults(*graph, *value) []fault {
	add := func(text string, f float64, at func(r, n int) int) fault {
		return fault{id: "embedding/position", text: o.key + " is " + text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, f, at) }}
	}
	same := func(r, _ int) int { return r }
	out := []fault{add("not added", 0, same), add("added twice", 2, same), add("subtracted", -1, same),
		add("the same for all tokens: its first row", 1, func(int, int) int { return 0 }),
		add("added in the reverse order", 1, func(r, n int) int { return n - 1 - r })}
	for _, by := range []int{1, -1, 2} {
		out = append(out, add(fmt.Sprintf("added with the row moved by %d", by), 1, func(r, n int) int { return min(max(r+by, 0), n-1) }),
			add(fmt.Sprintf("added with the row moved by %d, round the end", by), 1, func(r, n int) int { return (r + by + n) % n }))
	}
	return out
}
