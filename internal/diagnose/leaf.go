package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// findLeaf tries what a layer without layers inside may be: by its weights where they are given, else by what it does.
func findLeaf(g *graph, v *value) []op {
	layer, _ := v.made()
	if layer == "" || !g.leaves[layer] {
		return nil
	}
	ops := findAngles(g, v, layer)
	in := g.inputOf(layer)
	if in == nil {
		return ops
	}
	key, w := g.s.weight(layer, "weight")
	_, b := g.s.weight(layer, "bias")
	if w == nil && headNames.has(lastPart(layer)) {
		key, w = g.embedding(v.width, in.width) // tied
	}
	switch {
	case w != nil && len(w.Shape()) == 2 && !in.golden.DType().IsFloat():
		if w.Shape()[1] == v.width && in.golden.Len() == v.rows {
			ops = append(ops, &table{in: in, out: v, layer: layer, w: w})
		}
	case w != nil && len(w.Shape()) == 2 && in.rows == v.rows:
		m := linear{in: in, out: v, layer: layer, key: key, w: w, b: b}
		if w.Shape()[0] == v.width && w.Shape()[1] == in.width {
			ops = append(ops, &m)
		}
		if w.Shape()[1] == v.width && w.Shape()[0] == in.width {
			conv := m
			conv.conv = true // GPT-2's Conv1D keeps [in, out]; a square one tells by its golden output
			ops = append(ops, &conv)
		}
	case in.golden.DType().IsFloat() && in.rows == v.rows && in.width == v.width:
		ops = append(ops, findNorm(g, in, v, layer, w, b)...)
		if w == nil {
			ops = append(ops, unaryOps(in)...)
		}
	}
	if w == nil && in.golden.DType().IsFloat() && in.rows == v.rows {
		if m := learn(g, in, v, layer); m != nil {
			ops = append(ops, m)
		}
	}
	return ops
}

// embedding is the table of tokens: the weight of the first embedding whose shape is that of a head.
func (g *graph) embedding(vocab, width int) (string, *tensor.Tensor) {
	var keys []string
	for key, t := range g.s.Weights {
		if s := t.Shape(); len(s) == 2 && s[0] == vocab && s[1] == width && tableNames.has(lastPart(moduleOf(key))) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return "", nil
	}
	slices.Sort(keys)
	return keys[0], g.s.Weights[keys[0]]
}

// given is a layer whose arithmetic is not known: without its weights, only what its golden output shows.
type given struct {
	v     *value
	layer string
	input *value
}

func (o *given) inputs() []*value {
	if o.input == nil {
		return nil
	}
	return []*value{o.input}
}

func (o *given) eval(e *evaluation, rows []int) []float64 {
	if e.candidate && o.input != nil && e.isDirty(o.input) {
		return nil
	}
	return read(o.v.golden, o.v.width, rows)
}

func (o *given) faults(g *graph, v *value) []fault {
	if o.input != nil && !o.input.golden.DType().IsFloat() {
		return nil
	}
	out := siblingOutputs(g, v, o.layer)
	out = append(out, exchanged(o, g, v, o.layer)...)
	out = append(out, constantRow(o, g, v)...)
	if o.input != nil && v == g.target {
		out = append(out, o.guesses(g, v)...)
	}
	return out
}

// guesses are what goes wrong with weights, where they are not given.
func (o *given) guesses(g *graph, v *value) []fault {
	name := lastPart(o.layer)
	rows := spread(v.rows, probeRows)
	golden, actual := read(v.golden, v.width, rows), read(g.s.Target.Actual, v.width, rows)
	var out []fault
	add := func(id, text string) {
		out = append(out, fault{id: id, guess: true, rank: 3 + len(out), text: text + "; give the weights to see"})
	}
	quantised := g.s.Config["quantization_config"] != nil
	switch bad := badColumns(golden, actual, v.width, 5*v.noise()); {
	case isNormName(name):
		add("norm/weight", "the weight of the norm may be another")
	case len(bad) == 0:
	case len(bad) < v.width:
		add("linear/corrupt", "rows "+ranges(bad)+" of W may hold something else")
	case headNames.has(name):
		add("output/tied", "the head may have other weights than the embeddings, or theirs by mistake")
	case quantised:
		add("quant/group", "the scales of the groups may be exchanged")
		add("quant/scale", "the scales may be others")
	case o.input.width == v.width:
		add("linear/transposed", "W may be used where Wᵀ should be")
		add("linear/other-layer", "the weights may be those of another layer")
	default:
		add("linear/other-layer", "the weights may be those of another layer")
		add("linear/transposed", "the memory of W may be read in the other order")
	}
	return out
}

// siblingOutputs: the layer put out what its sibling should (q and k exchanged, gate and up).
func siblingOutputs(g *graph, v *value, layer string) []fault {
	var out []fault
	for _, x := range g.siblings(layer) {
		name, _ := x.made()
		if x.rows != v.rows || x.width != v.width {
			continue
		}
		if id := exchangeID(layer, name); id != "" {
			out = append(out, fault{id: id, rank: 1, text: fmt.Sprintf("%s has the weights of %s", lastPart(layer), lastPart(name)),
				eval: func(_ *evaluation, rows []int) []float64 { return read(x.golden, x.width, rows) }})
		}
	}
	return out
}

// exchangeID names what it is if one layer has the place of another; "" if they have nothing in common.
func exchangeID(a, b string) string {
	switch a, b = lastPart(a), lastPart(b); {
	case qkvRole(a) != 0 && qkvRole(b) != 0 && qkvRole(a) != qkvRole(b):
		return "linear/qkv-order"
	case gateNames.has(a) && upNames.has(b), upNames.has(a) && gateNames.has(b):
		return "linear/gate-up"
	}
	return ""
}

// exchanged: the parts of a fused projection in another order.
func exchanged(o op, g *graph, v *value, layer string) []fault {
	var out []fault
	add := func(id, text string, from []int) {
		out = append(out, fault{id: id, text: text, eval: func(e *evaluation, rows []int) []float64 {
			return permuteColumns(o.eval(e, rows), v.width, from)
		}})
	}
	switch name := lastPart(layer); {
	case fusedGateNames.has(name) && v.width%2 == 0:
		add("linear/gate-up", "the halves gate and up of "+layer+" are exchanged", blocks(v.width, []int{v.width / 2, v.width / 2}, []int{1, 0}))
		add("linear/gate-up", "gate and up are read from alternate columns of "+layer, interleave(v.width, 2))
		add("linear/gate-up", "gate and up, which alternate in the columns of "+layer+", are read as halves", interleave(v.width, v.width/2))
	case fusedNames.has(name):
		q, k := g.fusedParts(v)
		if q == 0 {
			break
		}
		parts, names := []int{q, k, k}, []string{"q", "k", "v"}
		for _, p := range [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}} {
			add("linear/qkv-order", fmt.Sprintf("the parts of %s stand in the order %s, %s, %s", layer, names[p[0]], names[p[1]], names[p[2]]), blocks(v.width, parts, p))
		}
		if q == k {
			for _, h := range g.headCounts(q) {
				d := q / h
				from, back := make([]int, v.width), make([]int, v.width)
				for c := range v.width {
					part, head, i := c/q, c%q/d, c%d
					from[c] = (head*3+part)*d + i
					back[(head*3+part)*d+i] = c
				}
				add("linear/qkv-order", fmt.Sprintf("%s is read as [%d heads, 3, %d] and not as [3, heads, %d]", layer, h, d, d), from)
				add("linear/qkv-order", fmt.Sprintf("%s is read as [3, %d heads, %d] and not as [heads, 3, %d]", layer, h, d, d), back)
			}
		}
	}
	return out
}

// fusedParts is the widths of q and of k (v has the same) in a fused projection; 0 if the config does not say and they are not equal.
func (g *graph) fusedParts(v *value) (q, kv int) {
	heads, _ := g.s.Config.Int("num_attention_heads", "n_head", "num_heads")
	kvHeads, ok := g.s.Config.Int("num_key_value_heads")
	if !ok {
		kvHeads = heads
	}
	if n := heads + 2*kvHeads; n > 0 && v.width%n == 0 {
		return v.width / n * heads, v.width / n * kvHeads
	}
	if v.width%3 == 0 {
		return v.width / 3, v.width / 3
	}
	return 0, 0
}

// blocks lists the source of each column if the parts of these widths come in another order; nil if the result has not the same width.
func blocks(width int, parts, order []int) []int {
	starts, at := make([]int, len(parts)), 0
	for i, n := range parts {
		starts[i] = at
		at += n
	}
	var from []int
	for _, p := range order {
		for i := range parts[p] {
			from = append(from, starts[p]+i)
		}
	}
	if len(from) != width {
		return nil
	}
	return from
}

// interleave lists the source of each column if the columns are read with a stride.
func interleave(width, stride int) []int {
	from := make([]int, 0, width)
	for s := range stride {
		for c := s; c < width; c += stride {
			from = append(from, c)
		}
	}
	return from
}

func permuteColumns(x []float64, width int, from []int) []float64 {
	if x == nil || len(from) != width {
		return nil
	}
	out := make([]float64, len(x))
	for r := 0; r < len(x); r += width {
		for c, f := range from {
			out[r+c] = x[r+f]
		}
	}
	return out
}

// constantRow: every row is off by one and the same row: a bias that is missing or that was added twice. Without the weights the bias is
// taken from the candidate, and the golden's mean row tells its sign.
func constantRow(o op, g *graph, v *value) []fault {
	if v != g.target {
		return nil
	}
	rows := spread(v.rows, sampleRows)
	golden, actual := o.eval(g.faulty(v, &fault{}), rows), read(g.s.Target.Actual, v.width, rows)
	if golden == nil || len(rows) < 2 {
		return nil
	}
	off, mean := make([]float64, v.width), make([]float64, v.width)
	for i, x := range golden {
		off[i%v.width] += (actual[i] - x) / float64(len(rows))
		mean[i%v.width] += x / float64(len(rows))
	}
	dot := 0.0
	for i, x := range off {
		dot += x * mean[i]
	}
	eval := func(e *evaluation, rows []int) []float64 {
		out := slices.Clone(o.eval(e, rows))
		for i := range out {
			out[i] += off[i%v.width]
		}
		return out
	}
	missing := fault{id: "linear/bias-missing", text: "the bias is missing: every row is off by one row", params: v.width, fitted: true, eval: eval}
	twice := fault{id: "linear/bias-twice", text: "the bias is added twice: every row is off by one row", params: v.width, fitted: true, eval: eval}
	if dot > 0 {
		missing.rank = 1
	} else {
		twice.rank = 1
	}
	return []fault{missing, twice}
}

// table is an embedding: rows of w by index.
type table struct {
	in, out *value
	layer   string
	w       *tensor.Tensor
}

func (o *table) inputs() []*value { return []*value{o.in} }

func (o *table) eval(e *evaluation, rows []int) []float64 {
	return o.look(e, rows, func(i int) int { return i })
}

func (o *table) look(e *evaluation, rows []int, index func(int) int) []float64 {
	ids := e.ids(o.in)
	out := make([]float64, 0, len(rows)*o.out.width)
	for _, r := range rows {
		if r >= len(ids) {
			return nil
		}
		i := index(int(ids[r]))
		if i < 0 || i >= o.w.Shape()[0] {
			return nil
		}
		out = append(out, read(o.w, o.out.width, []int{i})...)
	}
	return out
}

// found takes, for each token that is wrong, the row of the table that the candidate's is. Each is one number of many possible ones.
func (o *table) found(e *evaluation, rows []int) []float64 {
	width, n := o.out.width, o.w.Shape()[0]
	right := o.eval(e, rows)
	if right == nil || n*width > decodeMax || !e.g.spend(float64(len(rows)*n)) {
		return nil
	}
	all, actual := read(o.w, width, seq(n)), read(e.g.s.Target.Actual, width, rows)
	noise := o.out.noise()
	for i := range rows {
		own, is := actual[i*width:(i+1)*width], right[i*width:(i+1)*width]
		if relative(own, is) <= noise {
			continue
		}
		at := -1
		for r := range n {
			row := all[r*width : (r+1)*width]
			if math.Abs(row[0]-own[0]) <= 0.1*math.Abs(own[0])+noise && relative(own, row) <= noise {
				at = r
				break
			}
		}
		if at < 0 {
			return nil
		}
		copy(is, all[at*width:(at+1)*width])
	}
	return right
}

// ids gives integers as numbers.
func (e *evaluation) ids(v *value) []float64 {
	t := v.golden
	if e.candidate && v.actual != nil {
		t = v.actual
	}
	return read(t, t.Len(), []int{0})
}

func (o *table) faults(_ *graph, v *value) []fault {
	id := tableID(lastPart(o.layer))
	n := o.w.Shape()[0]
	var out []fault
	for _, by := range []int{-1, 1, 2, -2, 3} {
		out = append(out, fault{id: id, text: fmt.Sprintf("row i%+d of the table is read for index i", by),
			eval: func(e *evaluation, rows []int) []float64 {
				return o.look(e, rows, func(i int) int { return min(max(i+by, 0), n-1) })
			}})
	}
	constants := []int{0}
	if n > 1 && n <= 16 {
		constants = seq(n)
	}
	for _, c := range constants {
		out = append(out, fault{id: id, text: fmt.Sprintf("row %d of the table is read for every index", c),
			eval: func(e *evaluation, rows []int) []float64 { return o.look(e, rows, func(int) int { return c }) }})
	}
	if n == 2 {
		out = append(out, fault{id: id, text: "the two rows of the table are exchanged",
			eval: func(e *evaluation, rows []int) []float64 { return o.look(e, rows, func(i int) int { return 1 - i }) }})
	}
	out = append(out, fault{id: id, text: "other rows of the table are read", params: 1, fitted: true, rank: 1, eval: o.found})
	for _, f := range []float64{math.Sqrt(float64(v.width)), 1 / math.Sqrt(float64(v.width))} {
		out = append(out, fault{id: "embedding/scale", text: fmt.Sprintf("the embeddings are multiplied by %.6g", f),
			eval: func(e *evaluation, rows []int) []float64 { return scaled(o.eval(e, rows), f) }})
	}
	return out
}

func scaled(x []float64, f float64) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, len(x))
	for i := range x {
		out[i] = f * x[i]
	}
	return out
}
