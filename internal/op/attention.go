package op

import (
	"cmp"
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
	Roll    int // heads: each is read so many further on
}

// Grouping says which head of K, or of V, a head uses: h/(Heads/KV) if it is zero.
type Grouping struct {
	Tiled bool // h mod KV
	One   bool // always 0
	Shift int  // that of the head so many further on
	Roll  int  // so many heads of K or V further on
}

func (g Grouping) of(h, heads, kv int) int {
	h = (h + g.Shift) % heads
	switch {
	case g.One:
		return 0
	case g.Tiled:
		return h % kv
	}
	return (h/(heads/kv) + g.Roll) % kv
}

// Attention is the context of Sequences of Tokens each, in each head
//
//	softmax(Scale·Q·Kᵀ + mask) · V        (arXiv 1706.03762)
//
// with Q and K rotated, and with a group of heads for each head of K and V (arXiv 2305.13245). The
// context is [Sequences·Tokens, Heads·ValueDim].
type Attention struct {
	Sequences, Tokens int
	Keys              int // of a sequence, where they are not its tokens (cross attention); 0: Tokens
	Heads, KV, Dim    int // KV heads of K and V; Dim elements each
	ValueDim          int // elements of a head of V, where they are others (MLA); 0: Dim
	Q, K, V           Columns
	Write             Order
	Scale             float64
	Cap               float64   // scores are bent by SoftCap; 0 for none
	Sinks             []float64 // one more score for each head, of which nothing is taken; nil for none
	Rope              Rope
	Mask              *Mask
	Relative          *RelativeBias // is added to the scores; nil for none
	Axis              Axis

	OfK, OfV Grouping
	// Roll moves the heads of the context.
	Roll int
	// Rounded is what is kept in a type of fewer bits; nil for nothing.
	Rounded *Rounded
	// KeyAt and ValueAt are the sequence and the token whose key, or value, lies where that of token s of
	// sequence b should; a token below 0 is zeros. nil: its own.
	KeyAt, ValueAt func(b, s int) (sequence, token int)
}

// Rounded says what of an attention is kept in a type of fewer bits.
type Rounded struct {
	To                             func(float64) float64
	QK, V, Scores, Weights, Result bool // q and k, rotated; v; the scores; the weights; the context
}

// Width is the number of columns of the context.
func (a *Attention) Width() int { return a.Heads * a.valueDim() }

func (a *Attention) valueDim() int { return cmp.Or(a.ValueDim, a.Dim) }

// keys is the number of keys of a sequence.
func (a *Attention) keys() int { return cmp.Or(a.Keys, a.Tokens) }

// Work is the number of multiplications for n rows.
func (a *Attention) Work(n int) float64 {
	if a.Axis == OverQueries {
		n = a.Sequences * a.Tokens
	}
	return float64(2*n*a.keys()*a.Width() + a.Sequences*a.keys()*a.Width())
}

// heads are the heads of a projection, each read and rotated when it is first asked for.
type heads struct {
	tokens  int // of a sequence
	x       []float64
	width   int
	n, d    int // heads, and elements of one
	columns Columns
	to      func(float64) float64 // what is read is rounded; nil for as it is
	angles  *angles
	known   [][]float64 // by sequence, head and token
}

// heads reads a projection [Sequences·tokens, width] as n heads of d; nil if it cannot be read so.
func (a *Attention) heads(x []float64, tokens int, c Columns, n, d int, r Rotation) *heads {
	own := n * d
	width := len(x) / (a.Sequences * tokens)
	switch {
	case x == nil, c.Grouped && (3*own != width || c.Order != ByHead), !c.Grouped && c.At+own > width,
		2*len(r.Freqs) > d:
		return nil
	}
	f := &heads{tokens: tokens, x: x, width: width, n: n, d: d, columns: c, angles: r.angles(tokens), known: make([][]float64, a.Sequences*tokens*n)}
	return f
}

// of returns head h of token t of sequence b.
func (f *heads) of(b, h, t int) []float64 {
	at := (b*f.n+h)*f.tokens + t
	if f.known[at] == nil {
		token := t
		if len(f.angles.At) > f.tokens {
			token += b * f.tokens
		}
		f.known[at] = f.angles.turn(f.read(b, h, t), token)
		if f.to != nil {
			f.known[at] = Map(f.known[at], f.to)
		}
	}
	return f.known[at]
}

func (f *heads) read(b, h, t int) []float64 {
	c, d := f.columns, f.d
	h = (h + c.Roll) % f.n
	first, own := b*f.tokens, f.n*d
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
		flat := (h*f.tokens + t) * d
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
	width, d := a.Width(), a.valueDim()
	out := make([]float64, len(rows)*width)
	for i, r := range rows {
		b, t := r/a.Tokens, r%a.Tokens
		dst := out[i*width : (i+1)*width]
		for h := range a.Heads {
			switch a.Write {
			case Unmoved:
				flat := t*width + h*d
				copy(dst[h*d:], w.context(b, flat/(a.Tokens*d), flat/d%a.Tokens))
			case ByColumn:
				for j, x := range w.context(b, h, t) {
					dst[j*a.Heads+h] = x
				}
			default:
				copy(dst[(h+a.Roll)%a.Heads*d:], w.context(b, h, t))
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
	if a.KV == 0 || a.Heads%a.KV != 0 || a.Sinks != nil && len(a.Sinks) != a.Heads {
		return nil
	}
	w := &Weighed{a: a, contexts: map[[3]int][]float64{}, over: map[[2]int][][]float64{}}
	w.q = a.heads(q, a.Tokens, a.Q, a.Heads, a.Dim, a.Rope.Q)
	w.k = a.heads(k, a.keys(), a.K, a.KV, a.Dim, a.Rope.K)
	w.v = a.heads(v, a.keys(), a.V, a.KV, a.valueDim(), a.Rope.V)
	if w.q == nil || w.k == nil || w.v == nil {
		return nil
	}
	if r := a.Rounded; r != nil && r.QK {
		w.q.to, w.k.to = r.To, r.To
	}
	if r := a.Rounded; r != nil && r.V {
		w.v.to = r.To
	}
	return w
}

// Value returns what head h takes from a key.
func (w *Weighed) Value(b, h, key int) []float64 {
	return w.v.at(w.a.ValueAt, b, w.a.OfV.of(h, w.a.Heads, w.a.KV), key)
}

// at is of, with what lies there.
func (f *heads) at(moved func(b, s int) (int, int), b, h, s int) []float64 {
	if moved != nil {
		if b, s = moved(b, s); s < 0 {
			return make([]float64, f.d)
		}
	}
	return f.of(b, h, s)
}

// scores are those of one query, −Inf where it must not look. A query that may look nowhere looks
// everywhere: the lowest number, which masks add, swallows all scores.
func (w *Weighed) scores(b, h, t int) []float64 {
	a, m, q, kv := w.a, w.a.Mask, w.q.of(b, h, t), w.a.OfK.of(h, w.a.Heads, w.a.KV)
	out := make([]float64, a.keys())
	any := false
	for s := range out {
		if m.Allow != nil && !m.After && !m.Allow(b, t, s) {
			out[s] = math.Inf(-1)
			continue
		}
		any = true
		x := a.Scale * floats.Dot(q, w.k.at(a.KeyAt, b, kv, s))
		if a.Cap > 0 {
			x = SoftCap(x, a.Cap)
		}
		if m.Add != nil {
			x += m.Add(b, t, s)
		}
		if a.Relative != nil {
			x += a.Relative.Of(h, t, s)
		}
		if r := a.Rounded; r != nil && r.Scores {
			x = r.To(x)
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
	out = out[:a.keys()]
	if r := a.Rounded; r != nil && r.Weights {
		out = Map(out, r.To)
	}
	if m := a.Mask; m.After && m.Allow != nil {
		for s := range out {
			if !m.Allow(b, t, s) {
				out[s] = 0
			}
		}
	}
	return out
}

// Norm is the logarithm of the sum of the exponentials of a query's scores.
func (w *Weighed) Norm(b, h, t int) float64 { return floats.LogSumExp(w.scores(b, h, t)) }

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
		out = make([]float64, w.a.valueDim())
		for s, p := range w.Weights(b, h, t) {
			if p != 0 {
				floats.AddScaled(out, p, w.Value(b, h, s))
			}
		}
		if r := w.a.Rounded; r != nil && r.Result {
			out = Map(out, r.To)
		}
		w.contexts[key] = out
	}
	return out
}
