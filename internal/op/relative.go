package op

import "math"

// RelativeBias is a number that is added to the score of key s for query t in head h, by their distance:
// a table of buckets of distances (T5, arXiv 1910.10683), or −slope·distance (ALiBi, arXiv
// 2108.12409).
type RelativeBias struct {
	Table  [][]float64 // for each bucket the number of each head; a nil row is not known
	Far    int         // the distance from which all are in the last bucket
	Both   bool        // keys before and behind the query have buckets of their own
	Turned bool        // before and behind are exchanged

	Slopes []float64 // of each head, where there is no table
}

// Of returns the number; NaN where it is not known.
func (r *RelativeBias) Of(h, t, s int) float64 {
	d := s - t
	if r.Turned {
		d = -d
	}
	if r.Table == nil && h < len(r.Slopes) {
		return r.Slopes[h] * float64(d)
	}
	if r.Table == nil {
		return math.NaN()
	}
	if row := r.Table[r.Bucket(d)]; h < len(row) {
		return row[h]
	}
	return math.NaN()
}

// Bucket is that of a key so many places behind the query, before it if that is negative.
func (r *RelativeBias) Bucket(d int) int {
	n, first := len(r.Table), 0
	if r.Both {
		n /= 2
		if d > 0 {
			first = n
		}
		d = max(d, -d)
	} else {
		d = max(-d, 0)
	}
	exact := n / 2
	if d < exact || exact == 0 {
		return first + min(d, n-1)
	}
	far := exact + int(math.Log(float64(d)/float64(exact))/math.Log(float64(r.Far)/float64(exact))*float64(n-exact))
	return first + min(max(far, 0), n-1)
}

// Slopes returns those of ALiBi for so many heads: 2^(−8·(h+1)/heads), and for a number that is no
// power of two the others between them.
func Slopes(heads int) []float64 {
	power := 1
	for 2*power <= heads {
		power *= 2
	}
	out := make([]float64, 0, heads)
	for h := range power {
		out = append(out, math.Pow(2, -8*float64(h+1)/float64(power)))
	}
	for h := 0; len(out) < heads; h += 2 {
		out = append(out, math.Pow(2, -4*float64(h+1)/float64(power)))
	}
	return out
}
