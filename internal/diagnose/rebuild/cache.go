package rebuild

import (
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/op"
)

// Slot is one place of a KV cache: which key and value lie there. The zero Slot is one of zeros.
type Slot struct {
	K, V     *Rows   // nil for zeros
	KAt, VAt int     // their rows
	Position float64 // by which the key is rotated
	Token    int     // of the sequence, whose bias is added to the score; −1 for none
}

// Rows are keys or values, [tokens, width].
type Rows struct {
	data  []float64
	width int
}

func (r *Rows) row(i int) []float64 { return r.data[i*r.width : (i+1)*r.width] }

// Cache is what attention looks at, in place of the keys and values of the reference.
type Cache struct {
	Slots    []Slot
	Seen     func(token, slot int) bool // whether a token looks at a slot
	Position func(token int) float64    // by which a query is rotated; nil for its place
}

// Own returns the keys and values of the sequence, as the candidate has them; nil if they are not
// known.
func (o *Attention) Own(e *Evaluation) (k, v *Rows) {
	n := o.Sequences * o.keys()
	return rowsOf(o.tokens(e, o.Projections[1], o.keys()), n), rowsOf(o.tokens(e, o.Projections[2], o.keys()), n)
}

// Of returns the keys and values of another sequence, or of padding, as the candidate has them; nil
// if they are not known.
func (o *Attention) Foreign(other diagnose.Other) (k, v *Rows) {
	read := func(value *Value) *Rows {
		for _, p := range value.ports {
			t := other.Tensor(p.Layer, p.Port)
			if t == nil || t.Len() > op.DecodeMax {
				continue
			}
			shape := t.Shape()
			if len(shape) < 2 || shape[len(shape)-1] != value.Width {
				continue
			}
			each := value.Rows / (o.Sequences * o.Tokens) // rows of a token: its heads
			if n := t.Len() / value.Width; each > 0 && n%each == 0 && (len(shape) != 4 || each == 1 || shape[2] == each) {
				return rowsOf(op.ReadAll(t), n/each)
			}
		}
		return nil
	}
	return read(o.Projections[1]), read(o.Projections[2])
}

func rowsOf(data []float64, n int) *Rows {
	if data == nil || n == 0 {
		return nil
	}
	return &Rows{data, len(data) / n}
}

// Len is the number of tokens.
func (r *Rows) Len() int { return len(r.data) / max(r.width, 1) }

// Over calculates the attention over a cache. of makes it of the candidate's own keys and values; it
// returns nil where it cannot.
func (o *Attention) Over(of func(k, v *Rows) *Cache) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		if o.Latent != nil || o.Keys != 0 || o.Relative != nil || o.OfWeights {
			return nil
		}
		q := rowsOf(o.tokens(e, o.Projections[0], o.Tokens), o.Tokens)
		k, v := o.Own(e)
		if o.Sequences != 1 || q == nil || k == nil || v == nil {
			return nil
		}
		cache := of(k, v)
		if cache == nil {
			return nil
		}
		// The slots first, and the queries as tokens behind them, whose keys no one sees.
		n := len(cache.Slots)
		a := o.Attention
		a.Tokens = n + o.Tokens
		if !e.g.Spend(a.Work(len(rows))) {
			return nil
		}
		qs, ks, vs := make([]float64, a.Tokens*q.width), make([]float64, a.Tokens*k.width), make([]float64, a.Tokens*v.width)
		copy(qs[n*q.width:], q.data)
		at, queries := make([]float64, a.Tokens), make([]float64, a.Tokens)
		for i, s := range cache.Slots {
			at[i] = s.Position
			if s.K != nil {
				copy(ks[i*k.width:(i+1)*k.width], s.K.row(s.KAt))
			}
			if s.V != nil {
				copy(vs[i*v.width:(i+1)*v.width], s.V.row(s.VAt))
			}
		}
		for t := range o.Tokens {
			queries[n+t] = float64(t)
			if cache.Position != nil {
				queries[n+t] = cache.Position(t)
			}
		}
		a.Rope.Q.At, a.Rope.K.At, a.Rope.V.At = queries, at, at
		mask := &op.Mask{Allow: func(_, t, s int) bool { return s < n && t >= n && cache.Seen(t-n, s) }}
		if add := o.Mask.Add; add != nil {
			mask.Add = func(b, t, s int) float64 {
				if s >= n || t < n || cache.Slots[s].Token < 0 {
					return 0
				}
				return add(b, t-n, cache.Slots[s].Token)
			}
		}
		a.Mask = mask
		own := make([]int, len(rows))
		for i, r := range rows {
			own[i] = n + r
		}
		return a.Of(qs, ks, vs, own)
	}
}
