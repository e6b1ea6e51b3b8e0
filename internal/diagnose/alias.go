package diagnose

import (
	"fmt"
	"math"
	"slices"
)

// alias is out = in: a layer is given what another one put out.
type alias struct{ in, out *value }

func (o *alias) inputs() []*value { return []*value{o.in} }

func (o *alias) eval(e *evaluation, rows []int) []float64 { return e.get(o.in, rows) }

func findAlias(g *graph, v *value) []op {
	var ops []op
	mark := markOf(v.golden)
	for _, x := range g.alikes(v) {
		if mark != "" && slices.Equal(x.shape, v.shape) && markOf(x.golden) == mark {
			ops = append(ops, &alias{x, v})
		}
	}
	return ops
}

func (o *alias) faults(g *graph, v *value) []fault {
	var out []fault
	from, _ := o.in.made()
	for _, x := range g.alikes(v) {
		if x == o.in {
			continue
		}
		other, _ := x.made()
		id, rank := "residual/source", 1
		switch {
		case exchangeID(from, other) != "":
			continue // below
		case from != "" && from == blockOf(from) && g.inputOf(from) == x && blockOf(v.ports[0].Layer) == "":
			id, rank = "config/num_hidden_layers", 0
		case from == "" && g.activationOf(o.in, x):
			id = "activation/missing"
		case from != "" && g.inputOf(from) == x && isNormName(lastPart(from)):
			id = "norm/order"
		case from != "" && g.inputOf(from) == x && g.leaves[from]:
			if g.activationOf(o.in, x) {
				id = "activation/missing"
			}
		}
		out = append(out, fault{id: id, rank: rank, text: fmt.Sprintf("it is given %s in place of %s", x.text(), o.in.text()),
			eval: func(e *evaluation, rows []int) []float64 { return e.get(x, rows) }})
	}
	if from != "" {
		for _, x := range g.siblings(from) {
			other, _ := x.made()
			if id := exchangeID(from, other); id != "" && x.width == v.width && x.rows == v.rows {
				out = append(out, fault{id: id, text: fmt.Sprintf("it is given %s in place of %s", x.text(), o.in.text()),
					eval: func(e *evaluation, rows []int) []float64 { return e.get(x, rows) }})
			}
		}
	}
	if p, ok := o.in.op.(*part); ok {
		out = append(out, p.alternate())
	}
	if tableNames.has(lastPart(from)) {
		for _, f := range []float64{math.Sqrt(float64(v.width)), 1 / math.Sqrt(float64(v.width))} {
			out = append(out, fault{id: "embedding/scale", text: fmt.Sprintf("the embeddings are multiplied by %.6g", f),
				eval: func(e *evaluation, rows []int) []float64 { return scaled(e.get(o.in, rows), f) }})
		}
	}
	return out
}

// activationOf reports whether the reference makes v of x by an activation.
func (g *graph) activationOf(v, x *value) bool {
	g.explain(v)
	u, ok := v.op.(*unary)
	return ok && u.in == x
}

// row is one row of each sequence: out[b] = in[b, at]; the last token's for a head, the first one's for a pooler.
type row struct {
	in, out *value
	at, n   int
}

func (o *row) inputs() []*value { return []*value{o.in} }

func (o *row) eval(e *evaluation, rows []int) []float64 { return o.pick(e, rows, o.at) }

func (o *row) pick(e *evaluation, rows []int, at int) []float64 {
	own := make([]int, len(rows))
	for i, r := range rows {
		own[i] = r*o.n + at
	}
	return e.get(o.in, own)
}

func findRow(g *graph, v *value) []op {
	var ops []op
	for _, x := range g.before(v) {
		if x.width != v.width || x.rows <= v.rows || x.rows%v.rows != 0 {
			continue
		}
		n := x.rows / v.rows
		ops = append(ops, &row{x, v, n - 1, n}, &row{x, v, 0, n})
	}
	return ops
}

func (o *row) faults(*graph, *value) []fault {
	var out []fault
	for _, at := range []int{0, o.n - 1, o.n - 2, 1} {
		if at >= 0 && at < o.n && at != o.at {
			out = append(out, fault{id: "output/last-token", text: fmt.Sprintf("row %d of each sequence is taken, and not row %d of %d", at, o.at, o.n),
				eval: func(e *evaluation, rows []int) []float64 { return o.pick(e, rows, at) }})
		}
	}
	mean := func(e *evaluation, rows []int) []float64 {
		out := make([]float64, len(rows)*o.out.width)
		for at := range o.n {
			x := o.pick(e, rows, at)
			if x == nil {
				return nil
			}
			for i := range out {
				out[i] += x[i] / float64(o.n)
			}
		}
		return out
	}
	return append(out, fault{id: "output/last-token", text: "the mean over the tokens is taken, and not one row", eval: mean})
}
