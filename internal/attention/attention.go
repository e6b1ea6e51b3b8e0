// Package attention says what the weights of attention look like, head by head: how far they are
// spread, at which key a head looks most, how much of it the first key gets, and which heads look at
// all keys alike.
//
// For the weights w of one head, a query t and its n keys (those that any head of the query looks
// at: what a mask hides has weight 0 in all of them), with p = w / Σ w:
//
//	mean     Σ w / Σ n over all queries: 1/n where the weights of a query sum to 1
//	entropy  −Σ p·ln p, in nats, of a query; the mean of all queries
//	part     entropy / ln n, from 0 (one key has all) to 1 (all keys have the same); the mean
//	key s    the mean of p over all queries
//
// Queries with fewer than two keys tell nothing and are left out, as are those with a weight that is
// negative or not finite, and those whose weights sum to nothing.
package attention

import (
	"fmt"
	"math"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Head has the figures of one head.
type Head struct {
	Queries       int     // that count
	Left          int     // that are left out although they have two keys
	Mean          float64 // NaN, as all that follows, where no query counts
	Entropy, Part float64
	Key           int     // that gets most
	Most          float64 // what it gets
	First         float64 // what the first key gets
	Causal        bool    // no query looks at a key after its own, in as many queries as there are keys
}

// Uniform reports whether the head looks at all keys alike.
func (h Head) Uniform() bool { return h.Queries >= leastQueries && h.Part >= uniform }

// Anchored reports whether the first key gets so much that the others are read beside it: an
// attention sink. That of a few keys which are all alike is none.
func (h Head) Anchored() bool {
	return h.Queries >= leastQueries && h.Key == 0 && h.First >= anchor && !h.Uniform()
}

// Note is what is to be said of the head beside its figures.
func (h Head) Note() string {
	var notes []string
	if h.Uniform() {
		notes = append(notes, "uniform")
	}
	if h.Anchored() {
		notes = append(notes, "anchored at key 0")
	}
	if h.Left > 0 {
		notes = append(notes, fmt.Sprintf("%d queries left out: NaN, negative or all zero", h.Left))
	}
	return strings.Join(notes, ", ")
}

// Of returns the figures of each head of weights [batch, heads, queries, keys] or [heads, queries,
// keys], the sequences of a batch as one; nil for a tensor of another shape, or a file that broke. pad
// marks the queries that are padding, counted over the batch; nil if there are none.
func Of(w *tensor.Tensor, pad []bool) []Head {
	l, ok := layoutOf(w)
	if !ok {
		return nil
	}
	l.pad = pad
	var out []Head
	err := mapfile.Guard(func() error {
		out = l.figures(func(b, h, t int, into []float64) { w.Float64s(into, ((b*l.heads+h)*l.queries+t)*l.keys) })
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

// layout is the shape of weights.
type layout struct {
	batch, heads, queries, keys int
	pad                         []bool
}

func layoutOf(w *tensor.Tensor) (l layout, ok bool) {
	s := w.Shape()
	switch {
	case !w.DType().IsFloat() || w.Len() == 0:
		return l, false
	case len(s) == 3:
		return layout{1, s[0], s[1], s[2], nil}, true
	case len(s) == 4:
		return layout{s[0], s[1], s[2], s[3], nil}, true
	}
	return l, false
}

// figures reads the weights of all queries by row, and sums up what each head does.
func (l layout) figures(row func(b, h, t int, into []float64)) []Head {
	out, rows, gets := make([]Head, l.heads), make([][]float64, l.heads), make([][]float64, l.heads)
	weights, seen := make([]float64, l.heads), make([]int, l.heads) // Σ w, Σ n
	for h := range out {
		rows[h], gets[h] = make([]float64, l.keys), make([]float64, l.keys)
		out[h].Causal = l.queries == l.keys && l.keys > 1
	}
	for i := range l.batch * l.queries {
		if i < len(l.pad) && l.pad[i] {
			continue
		}
		b, t := i/l.queries, i%l.queries
		for h := range rows {
			row(b, h, t, rows[h])
		}
		n := seenBy(rows)
		for h, w := range rows {
			o := &out[h]
			o.Causal = o.Causal && zeros(w[min(t+1, len(w)):])
			sum, valid := total(w)
			switch {
			case n < 2:
				continue
			case !valid:
				o.Left++
				continue
			}
			o.Queries++
			weights[h], seen[h] = weights[h]+sum, seen[h]+n
			entropy := 0.0
			for s, x := range w {
				if p := x / sum; p > 0 {
					entropy -= p * math.Log(p)
					gets[h][s] += p
				}
			}
			o.Entropy += entropy
			o.Part += entropy / math.Log(float64(n))
		}
	}
	for h := range out {
		out[h].mean(weights[h], seen[h], gets[h])
	}
	return out
}

// mean divides what was summed up.
func (h *Head) mean(weights float64, seen int, keys []float64) {
	n := float64(h.Queries)
	if n == 0 {
		h.Mean, h.Entropy, h.Part, h.Most, h.First = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
		return
	}
	for s, k := range keys {
		if k > keys[h.Key] {
			h.Key = s
		}
	}
	h.Mean = weights / float64(seen)
	h.Entropy, h.Part, h.Most, h.First = h.Entropy/n, h.Part/n, keys[h.Key]/n, keys[0]/n
}

// seenBy is the number of keys at which any head of a query looks.
func seenBy(heads [][]float64) (n int) {
	for s := range heads[0] {
		for _, w := range heads {
			if w[s] != 0 {
				n++
				break
			}
		}
	}
	return n
}

// total is the sum of the weights of a query; false where they are none.
func total(w []float64) (sum float64, ok bool) {
	for _, x := range w {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, false
		}
		sum += x
	}
	return sum, sum > 0
}
