package op

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Order is how the columns of a token are read as heads, or heads are written as columns.
type Order int

// The orders. Of them ByHead is right.
const (
	ByHead   Order = iota // [tokens, heads, elements]
	ByColumn              // [tokens, elements, heads]
	Unmoved               // [heads, tokens, elements] in place of it: a missing transposition
)

// Axis is what the softmax goes over.
type Axis int

// The axes. Of them OverKeys is right.
const (
	OverKeys Axis = iota
	OverQueries
	OverHeads
)

// Columns is where q, k or v stand in the columns of a projection.
type Columns struct {
	At      int  // the first column
	Part    int  // of a fused projection: 0, 1 or 2
	Grouped bool // fused as [heads, 3, elements], and not as [3, heads, elements]
	Order   Order
}

// Attention is the context of Sequences of Tokens each, in each head
//
//	softmax(Scale·Q·Kᵀ + mask) · V        (arXiv 1706.03762)
//
// with Q and K rotated, and with a group of heads for each head of K and V (arXiv 2305.13245). The
// context is [Sequences·Tokens, Heads·Dim].
type Attention struct {
	Sequences, Tokens int
	Heads, KV, Dim    int // KV heads of K and V; Dim elements each
	Q, K, V           Columns
	Write             Order
	Scale             float64
	Cap               float64   // scores are bent by SoftCap; 0 for none
	Sinks             []float64 // one more score for each head, of which nothing is taken; nil for none
	Rope              Rope
	Mask              *Mask
	Axis              Axis

	// Which head of K and V a head uses: h/(Heads/KV) if all are zero.
	Tiled  bool // h mod KV
	RollKV int  // so many further
	OneKV  bool // always 0
	// Roll moves the heads of the context.
	Roll int
}

// Width is the number of columns of the context.
func (a *Attention) Width() int { return a.Heads * a.Dim }

// Work is the number of multiplications for n rows.
func (a *Attention) Work(n int) float64 {
	if a.Axis == OverQueries {
		n = a.Sequences * a.Tokens
	}
	return float64(2*n*a.Tokens*a.Width() + a.Sequences*a.Tokens*a.Width())
}

// heads are the heads of a projection, each read and rotated when it is first asked for.
type heads struct {
	a       *Attention
	x       []float64
	width   int
	n       int // heads
	columns Columns
	angles  *angles
	known   [][]float64 // by sequence, head and token
}

// heads reads a projection [Sequences·Tokens, width] as n heads; nil if it cannot be read so.
func (a *Attention) heads(x []float64, c Columns, n int, r Rotation) *heads {
	tokens, own := a.Sequences*a.Tokens, n*a.Dim
	width := len(x) / tokens
	switch {
	case x == nil, c.Grouped && (3*own != width || c.Order != ByHead), !c.Grouped && c.At+own > width,
		2*len(r.Freqs) > a.Dim:
		return nil
	}
	return &heads{a, x, width, n, c, r.angles(a.Tokens), make([][]float64, tokens*n)}
}

// of returns head h of token t of sequence b.
func (f *heads) of(b, h, t int) []float64 {
	at := (b*f.n+h)*f.a.Tokens + t
	if f.known[at] == nil {
		f.known[at] = f.angles.turn(f.read(b, h, t), t)
	}
	return f.known[at]
}

func (f *heads) read(b, h, t int) []float64 {
	c, d := f.columns, f.a.Dim
	first, own := b*f.a.Tokens, f.n*d
	switch {
	case c.Grouped:
		return f.x[(first+t)*f.width+(h*3+c.Part)*d:][:d]
	case c.Order == ByColumn:
		out := make([]float64, d)
		for i := range out {
			out[i] = f.x[(first+t)*f.width+c.At+i*f.n+h]
		}
		return out
	case c.Order == Unmoved:
		flat := (h*f.a.Tokens + t) * d
		return f.x[(first+flat/own)*f.width+c.At+flat%own:][:d]
	}
	return f.x[(first+t)*f.width+c.At+h*d:][:d]
}

// Of returns rows of the context. q, k and v are projections [Sequences·Tokens, any width].
func (a *Attention) Of(q, k, v []float64, rows []int) []float64 {
	w := a.Weigh(q, k, v)
	if w == nil {
		return nil
	}
	width := a.Width()
	out := make([]float64, len(rows)*width)
	for i, r := range rows {
		b, t := r/a.Tokens, r%a.Tokens
		dst := out[i*width : (i+1)*width]
		for h := range a.Heads {
			switch a.Write {
			case Unmoved:
				flat := t*width + h*a.Dim
				copy(dst[h*a.Dim:], w.context(b, flat/(a.Tokens*a.Dim), flat/a.Dim%a.Tokens))
			case ByColumn:
				for j, x := range w.context(b, h, t) {
					dst[j*a.Heads+h] = x
				}
			default:
				copy(dst[(h+a.Roll)%a.Heads*a.Dim:], w.context(b, h, t))
			}
		}
	}
	return out
}

// Weighed is an attention on its projections.
type Weighed struct {
	a        *Attention
	q, k, v  *heads
	contexts map[[3]int][]float64
	over     map[[2]int][][]float64 // the weights of all queries, for a softmax over them
}

// Weigh reads the projections; nil if they cannot be read so.
func (a *Attention) Weigh(q, k, v []float64) *Weighed {
	if a.KV == 0 || a.Heads%a.KV != 0 {
		return nil
	}
	w := &Weighed{a: a, contexts: map[[3]int][]float64{}, over: map[[2]int][][]float64{}}
	w.q, w.k = a.heads(q, a.Q, a.Heads, a.Rope.Q), a.heads(k, a.K, a.KV, a.Rope.K)
	w.v = a.heads(v, a.V, a.KV, a.Rope.V)
	if w.q == nil || w.k == nil || w.v == nil {
		return nil
	}
	return w
}

func (w *Weighed) kvHead(h int) int {
	switch a := w.a; {
	case a.OneKV:
		return 0
	case a.Tiled:
		return h % a.KV
	default:
		return (h/(a.Heads/a.KV) + a.RollKV) % a.KV
	}
}

// Value returns what head h takes from a key.
func (w *Weighed) Value(b, h, key int) []float64 { return w.v.of(b, w.kvHead(h), key) }

// scores are those of one query, −Inf where it must not look. A query that may look nowhere looks
// everywhere: the lowest number, which masks add, swallows all scores.
func (w *Weighed) scores(b, h, t int) []float64 {
	a, m, q, kv := w.a, w.a.Mask, w.q.of(b, h, t), w.kvHead(h)
	out := make([]float64, a.Tokens)
	any := false
	for s := range out {
		if m.Allow != nil && !m.After && !m.Allow(b, t, s) {
			out[s] = math.Inf(-1)
			continue
		}
		any = true
		x := a.Scale * floats.Dot(q, w.k.of(b, kv, s))
		if a.Cap > 0 {
			x = SoftCap(x, a.Cap)
		}
		if m.Add != nil {
			x += m.Add(b, t, s)
		}
		out[s] = x
	}
	if !any {
		clear(out)
	}
	return out
}

// Weights returns the weight of each key for a query.
func (w *Weighed) Weights(b, h, t int) []float64 {
	a := w.a
	switch a.Axis {
	case OverQueries:
		key := [2]int{b, h}
		if w.over[key] == nil {
			w.over[key] = softmaxOver(a.Tokens, func(i int) []float64 { return w.scores(b, h, i) })
		}
		return w.over[key][t]
	case OverHeads:
		return softmaxOver(a.Heads, func(i int) []float64 { return w.scores(b, i, t) })[h]
	}
	out := w.scores(b, h, t)
	if a.Sinks != nil {
		out = append(out, a.Sinks[h])
	}
	Softmax(out)
	out = out[:a.Tokens]
	if m := a.Mask; m.After && m.Allow != nil {
		for s := range out {
			if !m.Allow(b, t, s) {
				out[s] = 0
			}
		}
	}
	return out
}

// softmaxOver returns n rows with the softmax over each column. A column of −Inf is spread evenly.
func softmaxOver(n int, row func(i int) []float64) [][]float64 {
	all := make([][]float64, n)
	for i := range all {
		all[i] = row(i)
	}
	column := make([]float64, n)
	for c := range all[0] {
		for i := range all {
			column[i] = all[i][c]
		}
		Softmax(column)
		for i := range all {
			if all[i][c] = column[i]; math.IsNaN(column[i]) {
				all[i][c] = 1 / float64(n)
			}
		}
	}
	return all
}

// context is Σ weight·value over the keys.
func (w *Weighed) context(b, h, t int) []float64 {
	key := [3]int{b, h, t}
	out, ok := w.contexts[key]
	if !ok {
		out = make([]float64, w.a.Dim)
		for s, p := range w.Weights(b, h, t) {
			if p != 0 {
				floats.AddScaled(out, p, w.Value(b, h, s))
			}
		}
		w.contexts[key] = out
	}
	return out
}
