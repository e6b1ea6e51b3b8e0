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
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

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
}

// Uniform reports whether the head looks at all keys alike.
func (h Head) Uniform() bool { return h.Queries >= leastQueries && h.Part >= uniform }

// Note is what is to be said of the head beside its figures.
func (h Head) Note() string {
	var notes []string
	if h.Uniform() {
		notes = append(notes, "uniform")
	}
	if h.Left > 0 {
		notes = append(notes, fmt.Sprintf("%d queries left out: NaN, negative or all zero", h.Left))
	}
	return strings.Join(notes, ", ")
}

// Of returns the figures of each head of weights [batch, heads, queries, keys] or [heads, queries,
// keys], the sequences of a batch as one; nil for a tensor of another shape, or a file that broke.
func Of(w *tensor.Tensor) (heads []Head) {
	l, ok := layoutOf(w)
	if !ok || mapfile.Guard(func() error { heads = l.figures(w); return nil }) != nil {
		return nil
	}
	return heads
}

// layout is the shape of weights.
type layout struct{ batch, heads, queries, keys int }

func layoutOf(w *tensor.Tensor) (l layout, ok bool) {
	s := w.Shape()
	if len(s) == 3 {
		s = append([]int{1}, s...)
	}
	if len(s) != 4 || !w.DType().IsFloat() || w.Len() == 0 {
		return l, false
	}
	return layout{s[0], s[1], s[2], s[3]}, true
}

// figures sums up what each head does with all queries.
func (l layout) figures(w *tensor.Tensor) []Head {
	out, rows, gets := make([]Head, l.heads), make([][]float64, l.heads), make([][]float64, l.heads)
	weights, seen := make([]float64, l.heads), make([]int, l.heads) // Σ w, Σ n
	for h := range out {
		rows[h], gets[h] = make([]float64, l.keys), make([]float64, l.keys)
	}
	for i := range l.batch * l.queries {
		for h, row := range rows {
			w.Float64s(row, ((i/l.queries*l.heads+h)*l.queries+i%l.queries)*l.keys)
		}
		n := seenBy(rows)
		for h, row := range rows {
			o := &out[h]
			sum, valid := total(row)
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
			for s, x := range row {
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
		o, n := &out[h], float64(out[h].Queries) // without a query all is 0/0
		if n > 0 {
			o.Key = floats.MaxIdx(gets[h])
		}
		o.Mean, o.Entropy, o.Part = weights[h]/float64(seen[h]), o.Entropy/n, o.Part/n
		o.Most, o.First = gets[h][o.Key]/n, gets[h][0]/n
	}
	return out
}

// seenBy is the number of keys at which any head of a query looks.
func seenBy(heads [][]float64) (n int) {
	for s := range heads[0] {
		if slices.ContainsFunc(heads, func(w []float64) bool { return w[s] != 0 }) {
			n++
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
