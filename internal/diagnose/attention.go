package diagnose

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Head has the metrics of one head of attention. For its weights w, a query and its n keys (those that any head of the
// query looks at: what a mask hides has weight 0 in all of them), with p = w / Σ w:
//
//	mean     Σ w / Σ n over all queries: 1/n where the weights of a query sum to 1
//	entropy  −Σ p·ln p, in nats, of a query; the mean of all queries
//	part     entropy / ln n, from 0 (one key has all) to 1 (all keys have the same); the mean
//	most     the mean of p over all queries, of the key that gets most
//
// Queries with fewer than two keys tell nothing and are left out, as are those with a weight that is negative or not
// finite, and those whose weights sum to nothing.
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

// Note is what is to be said of the head beside its metrics.
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

// HeadsOf returns the metrics of each head of weights [batch, heads, queries, keys] or [heads, queries,
// keys], the sequences of a batch as one; nil for a tensor of another shape, or a file that broke.
func HeadsOf(w *tensor.Tensor) (heads []Head) {
	shape := weightsShape(w)
	if shape == nil || mapfile.Guard(func() error { heads = metrics(w, shape); return nil }) != nil {
		return nil
	}
	return heads
}

// weightsShape is [batch, heads, queries, keys]; nil for what are no weights.
func weightsShape(w *tensor.Tensor) []int {
	s := w.Shape()
	if len(s) == 3 {
		s = append([]int{1}, s...)
	}
	if len(s) != 4 || !w.DType().IsFloat() || w.Len() == 0 {
		return nil
	}
	return s
}

// metrics sums up what each head does with all queries.
func metrics(w *tensor.Tensor, shape []int) []Head {
	heads, queries, keys := shape[1], shape[2], shape[3]
	out, rows, gets := make([]Head, heads), make([][]float64, heads), make([][]float64, heads)
	seen := make([]int, heads) // Σ n
	for h := range out {
		rows[h], gets[h] = make([]float64, keys), make([]float64, keys)
	}
	for i := range shape[0] * queries {
		for h, row := range rows {
			w.Float64s(row, ((i/queries*heads+h)*queries+i%queries)*keys)
		}
		looksAt := func(key int) bool { return slices.ContainsFunc(rows, func(w []float64) bool { return w[key] != 0 }) }
		n := len(slices.DeleteFunc(vec.Sequence(keys), func(key int) bool { return !looksAt(key) }))
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
			o.Queries, o.Mean, seen[h] = o.Queries+1, o.Mean+sum, seen[h]+n
			entropy := 0.0
			for key, x := range row {
				if p := x / sum; p > 0 {
					entropy -= p * math.Log(p)
					gets[h][key] += p
				}
			}
			o.Entropy, o.Part = o.Entropy+entropy, o.Part+entropy/math.Log(float64(n))
		}
	}
	for h := range out {
		o, n := &out[h], float64(out[h].Queries) // without a query all is 0/0
		if n > 0 {
			o.Key = floats.MaxIdx(gets[h])
		}
		o.Mean, o.Entropy, o.Part = o.Mean/float64(seen[h]), o.Entropy/n, o.Part/n
		o.Most, o.First = gets[h][o.Key]/n, gets[h][0]/n
	}
	return out
}

// total is the sum of the weights of a query; false where they are none.
func total(w []float64) (sum float64, ok bool) {
	sum = floats.Sum(w)
	return sum, sum > 0 && vec.All(w, func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) })
}

// mayHold reports whether a port may hold attention weights by its name.
func mayHold(layer, port string) bool {
	return label.InAttention(layer) || strings.Contains(strings.ToLower(port), "attention") && !strings.Contains(port, "mask")
}

// IsAttention reports whether a tensor holds the weights of attention: numbers from 0 to 1, and those of
// most queries sum to 1, of the others to less.
func IsAttention(w *tensor.Tensor) (is bool) {
	shape := weightsShape(w)
	if shape == nil || shape[3] < 2 {
		return false
	}
	row := make([]float64, shape[3])
	whole, rows := 0, w.Len()/len(row)
	err := mapfile.Guard(func() error {
		for r := range rows {
			w.Float64s(row, r*len(row))
			sum, ok := total(row)
			if !ok && floats.Norm(row, 1) != 0 || sum > 1+sumError {
				return nil
			}
			if math.Abs(sum-1) <= sumError {
				whole++
			}
		}
		is = float64(whole) >= wholeRows*float64(rows)
		return nil
	})
	return is && err == nil
}

// FirstHeads has the heads of each attention of which a run has recorded the weights in its first step.
func FirstHeads(run *dump.Run) map[string][]Head {
	out := map[string][]Head{}
	for _, e := range run.Entries {
		if e.Step == run.Entries[0].Step && e.Tensor != nil && len(e.Tensor.Shape()) == 4 && out[e.Layer] == nil &&
			mayHold(e.Layer, e.Port) && IsAttention(e.Tensor) {
			out[e.Layer] = HeadsOf(e.Tensor)
		}
	}
	return out
}

// Attention are those of one attention in one forward pass.
type Attention struct {
	Case, Step, Layer, Port string // Layer is the attention's; Port is that of recorded weights, "" for calculated ones
	Heads                   []Head
	at                      int // the port that holds them, or comes after them
}

// Label is that of recorded weights, or the layer and that they are calculated.
func (w Attention) Label() string {
	if w.Port == "" {
		return w.Layer + " (calculated)"
	}
	return label.Join(w.Layer, w.Port)
}

// in returns the same attention among others; nil if it is not there.
func (w Attention) in(others []Attention) *Attention {
	for i, o := range others {
		if o.Case == w.Case && o.Step == w.Step && (label.Within(o.Layer, w.Layer) || label.Within(w.Layer, o.Layer)) {
			return &others[i]
		}
	}
	return nil
}

// Program is what the reference ran in a case, with what opens what is no record of it: weights and constants.
type Program struct {
	*program.Program
	Load replay.Load
}

// Attentions lists the attentions of the golden, in its order, and what the candidate has for each, by the labels of the
// golden: the tensor that belongs to recorded weights, whatever it holds, or else what can be calculated of it; nil for
// nothing. Where weights were not recorded, the program of the case makes them of q, k and v until ctx ends: those with
// which the recorded context comes out of the recorded v; where it does not, the attention is not listed. programs has
// those of the cases that have one.
func Attentions(ctx context.Context, run *Run, programs map[string]Program) (golden []Attention, candidate []*Attention) {
	actual := func(p *Port) *tensor.Tensor {
		if !p.IsRecorded() {
			return nil
		}
		return p.Actual
	}
	golden = all(ctx, run, programs, func(p *Port) *tensor.Tensor { return p.Golden })
	own := all(ctx, run, programs, actual)
	for _, g := range golden {
		w := g.in(own)
		if t := actual(run.Ports[g.at]); t != nil && g.Port != "" {
			same := g
			w, same.Heads = &same, HeadsOf(t)
		}
		candidate = append(candidate, w)
	}
	return golden, candidate
}

// all lists the attentions of a run by what it has for each port; nil for nothing.
func all(ctx context.Context, run *Run, programs map[string]Program, has func(p *Port) *tensor.Tensor) (out []Attention) {
	for i, p := range run.Ports {
		if t := has(p); t != nil && !p.IsInput() && (len(t.Shape()) == 4 || mayHold(p.Layer, p.Port) || len(run.Ports) == 1) && IsAttention(t) {
			out = append(out, Attention{p.Case, p.Step, p.Layer, p.Port, HeadsOf(t), i})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		for _, w := range calculated(ctx, run, name, programs[name], has) {
			if w.in(out) == nil {
				out = append(out, w)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Attention) int { return a.at - b.at })
	return out
}

// calculated finds, for each attention of a program, the first port after it, and the weights with which that comes out
// of what was recorded before it.
func calculated(ctx context.Context, run *Run, name string, p Program, has func(p *Port) *tensor.Tensor) (out []Attention) {
	ports, tensors := make([]int, len(p.Ports)), make([]*tensor.Tensor, len(p.Ports))
	for i, at := range p.Ports {
		for k, q := range run.Ports {
			if q.Case == name && q.Step == at.Step && q.Layer == at.Layer && q.Port == at.Name && slices.Equal(q.Golden.Shape(), p.Values[at.Value].Shape) {
				ports[i], tensors[i] = k, has(q)
			}
		}
	}
	load := func(v *program.Value) (*replay.Array, error) {
		if v.Record > 0 {
			return replay.FromTensor(tensors[v.Record-1])
		}
		return p.Load(v)
	}
	seen := map[int]bool{}
	for i, t := range tensors {
		if t == nil || t.Len() > mostContext || ctx.Err() != nil {
			continue
		}
		piece := p.Piece(i, func(k int) bool { return tensors[k] != nil })
		if !slices.ContainsFunc(piece.Ops, edit.Attends) || slices.ContainsFunc(piece.Origin, func(op int) bool { return seen[op] }) {
			continue
		}
		base, err := replay.NewBase(ctx, piece, load, replay.Mode{})
		if err != nil {
			continue
		}
		for _, op := range piece.Origin {
			seen[op] = true
		}
		port := run.Ports[ports[i]]
		if !(vec.Relative(vec.ReadAll(t), base.Value(piece.Out).Floats()) <= max(port.Floor.RelL2, comesOut)) {
			continue
		}
		for _, w := range edit.AttentionWeights(base) {
			if t, err := w.Array.Tensor(); err == nil {
				out = append(out, Attention{Case: name, Step: port.Step, Layer: w.Layer, Heads: HeadsOf(t), at: ports[i]})
			}
		}
	}
	return out
}
