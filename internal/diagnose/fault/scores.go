package fault

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
)

// RelativeBias is a bias of the scores by distance that is left out or made otherwise.
func RelativeBias(o *rebuild.Attention) (out List) {
	r := o.Relative
	if r == nil {
		return nil
	}
	out.add(with(o, func(a *rebuild.Attention) { a.Relative = nil }), 0, "the bias of the scores by distance is missing")
	add := func(rank int, text string, change func(r *op.RelativeBias)) {
		c := *r
		change(&c)
		out.add(with(o, func(a *rebuild.Attention) { a.Relative = &c }), rank, "%s", text)
	}
	add(0, "the distances have the other sign: what is before a token is taken for what comes after it", func(r *op.RelativeBias) { r.Turned = !r.Turned })
	if r.Table == nil {
		add(0, "the slopes of the heads stand in turned order", func(r *op.RelativeBias) {
			r.Slopes = slices.Clone(r.Slopes)
			slices.Reverse(r.Slopes)
		})
		add(0, "all heads have the slope of the first", func(r *op.RelativeBias) {
			r.Slopes = slices.Repeat(r.Slopes[:1], len(r.Slopes))
		})
		for _, f := range []float64{2, 0.5, float64(o.Dim), o.Scale} {
			add(1, fmt.Sprintf("the slopes are multiplied by %.4g", f), func(r *op.RelativeBias) { r.Slopes = op.Scaled(r.Slopes, f) })
		}
		return out
	}
	n := len(r.Table)
	direction := "the buckets are those of a decoder: keys behind the query have none of their own"
	if !r.Both {
		direction = "the buckets are those of an encoder: keys behind the query have half of them"
	}
	add(0, direction, func(r *op.RelativeBias) { r.Both = !r.Both })
	for _, far := range []int{128, 8, 16, 32, 64, 256, 512, 1024} { // the default first
		if far != r.Far && far > n/4 {
			add(0, fmt.Sprintf("relative_attention_max_distance is %d and not %d", far, r.Far), func(r *op.RelativeBias) { r.Far = far })
		}
	}
	for _, far := range []int{20, n, 2 * n} {
		if far != r.Far && far > n/2 && far&(far-1) != 0 {
			add(1, fmt.Sprintf("relative_attention_max_distance is %d and not %d", far, r.Far), func(r *op.RelativeBias) { r.Far = far })
		}
	}
	for _, buckets := range []int{n / 2, n / 4} {
		if buckets >= 4 {
			add(0, fmt.Sprintf("relative_attention_num_buckets is %d and not %d", buckets, n), func(r *op.RelativeBias) { r.Table = r.Table[:buckets] })
		}
	}
	for _, by := range []int{1, n - 1} {
		add(1, fmt.Sprintf("each bucket has the row of the one %d further on, of %d", by, n), func(r *op.RelativeBias) {
			r.Table = append(slices.Clone(r.Table[by:]), r.Table[:by]...)
		})
	}
	heads := func(rank int, text string, of func(h, n int) int) {
		add(rank, text, func(r *op.RelativeBias) {
			r.Table = slices.Clone(r.Table)
			for i, row := range r.Table {
				moved := slices.Clone(row)
				for h := range row {
					moved[h] = row[of(h, len(row))]
				}
				r.Table[i] = moved
			}
		})
	}
	heads(0, "all heads have the bias of the first", func(int, int) int { return 0 })
	heads(0, "the heads of the bias stand in turned order", func(h, n int) int { return n - 1 - h })
	heads(0, "each head has the bias of the next", func(h, n int) int { return (h + 1) % n })
	for _, f := range []float64{-1, 2, o.Scale, 1 / o.Scale} {
		if f == 1 {
			continue
		}
		add(1, fmt.Sprintf("the bias of the scores by distance is multiplied by %.4g", f), func(r *op.RelativeBias) {
			r.Table = slices.Clone(r.Table)
			for i, row := range r.Table {
				r.Table[i] = op.Scaled(row, f)
			}
		})
	}
	return out
}

// Buckets is the numbers of the buckets of distances themselves, where the reference has a layer that
// takes them: other ones follow from other settings.
func Buckets(s *diagnose.Scene) (out []diagnose.Prediction) {
	t := s.Target
	if t == nil || t.IsFloat() || !t.IsRecorded() || label.Last(t.Layer) != "relative_attention_bias" || t.Golden.RowLen() < 2 {
		return nil
	}
	golden, actual, n := s.Array(t.Golden).Data, s.Array(t.Actual).Data, t.Golden.RowLen()
	if len(golden) != n*n {
		return nil
	}
	buckets, ok := s.Config.Int("relative_attention_num_buckets")
	if !ok {
		buckets = 32
	}
	made := func(r op.RelativeBias, buckets int) []float64 {
		r.Table = make([][]float64, buckets)
		x := make([]float64, n*n)
		for i := range x {
			d := i%n - i/n
			if r.Turned {
				d = -d
			}
			x[i] = float64(r.Bucket(d))
		}
		return x
	}
	if s.Config == nil {
		buckets = 1
		for buckets <= int(slices.Max(golden)) {
			buckets *= 2
		}
	}
	for _, own := range distances(s) {
		far, both := own.Far, own.Both
		if !slices.Equal(made(own, buckets), golden) {
			continue
		}
		try := func(text string, r op.RelativeBias, buckets int) {
			if x := made(r, buckets); len(out) == 0 && slices.Equal(x, actual) {
				out = append(out, diagnose.Prediction{ID: "attention/bias", Text: text, Rank: -3, Value: s.Array(t.Golden).With(x)})
			}
		}
		turned, other := own, own
		turned.Turned, other.Both = true, !both
		try("the distances have the other sign: what is before a token is taken for what comes after it", turned, buckets)
		try("the buckets are those of the other kind of stack: keys behind the query have half of them, or none", other, buckets)
		for f := 8; f <= 1024; f *= 2 {
			r := own
			if r.Far = f; f > buckets/4 {
				try(fmt.Sprintf("relative_attention_max_distance is %d and not %d", f, far), r, buckets)
			}
		}
		for _, b := range []int{buckets / 2, 2 * buckets} {
			try(fmt.Sprintf("relative_attention_num_buckets is %d and not %d", b, buckets), own, b)
		}
	}
	return out
}

// distances are the ways in which the reference may take distances apart.
func distances(s *diagnose.Scene) (out []op.RelativeBias) {
	for _, far := range rebuild.Distances(s.Config) {
		for _, both := range []bool{false, true} {
			out = append(out, op.RelativeBias{Far: far, Both: both})
		}
	}
	return out
}

// Latent is MLA whose parts are read otherwise.
func Latent(o *rebuild.Attention) (out List) {
	if o.Latent == nil {
		return nil
	}
	add := func(id, text string, change func(l *rebuild.Latent)) {
		l := *o.Latent
		change(&l)
		out.add(with(o, func(a *rebuild.Attention) { a.Latent = &l }), 0, "%s", text).ID = id
	}
	add("rope/applied", "the part of q that is rotated is the first of each head, and not the last", func(l *rebuild.Latent) { l.RopeFirst = true })
	add("rope/applied", "the part of the keys that is rotated is read in front of the latent, and not behind it", func(l *rebuild.Latent) { l.RopeLeft = true })
	add("attention/heads", "keys and values of each head are exchanged in kv_b", func(l *rebuild.Latent) {
		l.ValueFirst = l.Nope == l.Value
	})
	add("attention/heads", "kv_b is read as all keys and all values, and not by head", func(l *rebuild.Latent) { l.Parted = true })
	return out
}

// Sequences is attention over the keys and values of another sequence of the batch.
func Sequences(o *rebuild.Attention) (out List) {
	n := o.Sequences
	if n < 2 {
		return nil
	}
	add := func(rank int, text string, of func(b int) int) {
		at := func(b, s int) (int, int) { return of(b), s }
		out.add(with(o, func(a *rebuild.Attention) { a.KeyAt, a.ValueAt = at, at }), rank, "%s keys and values", text)
		out.add(with(o, func(a *rebuild.Attention) { a.KeyAt = at }), rank+1, "%s keys", text)
		out.add(with(o, func(a *rebuild.Attention) { a.ValueAt = at }), rank+1, "%s values", text)
	}
	for a := range min(n, fewSequences) {
		for b := range a {
			add(0, fmt.Sprintf("sequences %d and %d of the batch read each other's", b, a), func(s int) int {
				switch s {
				case a:
					return b
				case b:
					return a
				}
				return s
			})
			add(1, fmt.Sprintf("sequence %d of the batch reads sequence %d's", a, b), func(s int) int {
				if s == a {
					return b
				}
				return s
			})
			add(1, fmt.Sprintf("sequence %d of the batch reads sequence %d's", b, a), func(s int) int {
				if s == b {
					return a
				}
				return s
			})
		}
	}
	if n > 2 {
		add(0, "each sequence of the batch reads the next one's", func(b int) int { return (b + 1) % n })
		add(0, "each sequence of the batch reads the one before's", func(b int) int { return (b + n - 1) % n })
		for k := range min(n, fewSequences) {
			add(0, fmt.Sprintf("all sequences of the batch read sequence %d's", k), func(int) int { return k })
		}
		if n > 3 {
			add(0, "the sequences of the batch are read in turned order, each another one's", func(b int) int { return n - 1 - b })
		}
	}
	return out
}

// Rounded is attention of which a part is kept in a type of fewer bits.
func Rounded(o *rebuild.Attention) (out List) {
	t := o.Scene().Target
	for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
		add := func(text string, r op.Rounded) {
			r.To = n.Round
			out.add(with(o, func(a *rebuild.Attention) { a.Rounded = &r }), 1, "%s %s", text, n.Name)
		}
		add("the weights of attention are rounded to", op.Rounded{Weights: true})
		add("the scores are rounded to", op.Rounded{Scores: true})
		add("scores and weights are rounded to", op.Rounded{Scores: true, Weights: true})
		add("q, k and v are rounded to", op.Rounded{QK: true, V: true})
		add("q and k are rounded to", op.Rounded{QK: true})
		add("v is rounded to", op.Rounded{V: true})
		add("weights and v are rounded to", op.Rounded{Weights: true, V: true})
		add("all of attention is rounded to", op.Rounded{QK: true, V: true, Scores: true, Weights: true, Result: true})
		add("all of attention but scores and weights is rounded to", op.Rounded{QK: true, V: true, Result: true})
		if isRotated(o) {
			out.add(both(o, func(r *op.Rotation) { r.To = n.Round }), 1, "cosines and sines are rounded to %s", n.Name)
			out.add(both(o, func(r *op.Rotation) { r.Freqs = op.Map(r.Freqs, n.Round) }), 1, "the frequencies of the rotation are rounded to %s", n.Name)
			out.add(both(o, func(r *op.Rotation) { r.Freqs, r.To = op.Map(r.Freqs, n.Round), n.Round }), 1,
				"frequencies, cosines and sines of the rotation are rounded to %s", n.Name)
		}
	}
	return out
}
