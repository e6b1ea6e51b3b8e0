package rebuild

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Latent says how q, k and v of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) stand in
// three projections:
//
//	q            [heads, Nope | Rope]
//	kv_b         [heads, Nope | Value]     keys and values
//	kv_a         [latent | Rope]           the part of the keys that is rotated, one for all heads
//
// Heads are calculated with as [Rope | Nope], so that what is rotated comes first.
type Latent struct {
	Heads, Nope, Rope, Value int

	// What goes wrong.
	RopeFirst  bool // q is read as [Rope | Nope]
	ValueFirst bool // kv_b is read as [Value | Nope]
	Parted     bool // kv_b is read as [heads, Nope] and [heads, Value]
	RopeLeft   bool // the rotated part of the keys is read in front of the latent
}

// latent finds the sizes from those of the projections; nil if they do not fit.
func (g *Graph) latent(v, q, kvB, kvA *Value) *Latent {
	in := g.InputOf(kvB.Layer())
	if in == nil || q.Rows != v.Rows || kvB.Rows != v.Rows || kvA.Rows != v.Rows {
		return nil
	}
	l := &Latent{Rope: kvA.Width - in.Width}
	nope, rest := kvB.Width-v.Width, q.Width-(kvB.Width-v.Width) // of all heads
	if l.Rope < 2 || nope <= 0 || rest <= 0 || rest%l.Rope != 0 {
		return nil
	}
	l.Heads = rest / l.Rope
	if nope%l.Heads != 0 || v.Width%l.Heads != 0 {
		return nil
	}
	l.Nope, l.Value = nope/l.Heads, v.Width/l.Heads
	return l
}

func (l *Latent) read(e *Evaluation, o *Attention) (q, k, v []float64) {
	qs, as, bs := e.all(o.Projections[0]), e.all(o.Projections[1]), e.all(o.Projections[2])
	h, n, r, w := l.Heads, l.Nope, l.Rope, l.Value
	tokens, aWidth := o.Sequences*o.Tokens, o.Projections[1].Width
	if len(qs) != tokens*h*(n+r) || len(bs) != tokens*h*(n+w) || len(as) != tokens*aWidth || aWidth < r {
		return nil, nil, nil
	}
	for t := range tokens {
		rope := as[(t+1)*aWidth-r:][:r]
		if l.RopeLeft {
			rope = as[t*aWidth:][:r]
		}
		for i := range h {
			own := qs[(t*h+i)*(n+r):][:n+r]
			if l.RopeFirst {
				q = append(q, own...)
			} else {
				q = append(append(q, own[n:]...), own[:n]...)
			}
			kv := bs[(t*h+i)*(n+w):][:n+w]
			key, value := kv[:n], kv[n:]
			switch all := bs[t*h*(n+w):][:h*(n+w)]; {
			case l.ValueFirst:
				key, value = kv[w:], kv[:w]
			case l.Parted:
				key, value = all[i*n:][:n], all[h*n+i*w:][:w]
			}
			k = append(append(k, rope...), key...)
			v = append(v, value...)
		}
	}
	return q, k, v
}

// Sections are those of M-RoPE (Qwen2-VL, arXiv 2409.12191): the first pairs of a head are rotated by
// the first of three kinds of positions, and so on.
type Sections struct {
	Sizes     []int       // pairs of each kind
	Positions [][]float64 // of the tokens, by kind
}

// By returns the positions of each pair: section i has the kind order[i] and size sizes[i].
func (s *Sections) By(sizes, order []int) (out [][]float64) {
	for i, n := range sizes {
		for range n {
			out = append(out, s.Positions[order[i]])
		}
	}
	return out
}

// Of are the sizes for so many pairs: those of the config, or where none is given those of Qwen2-VL.
func (s *Sections) Of(pairs int) []int {
	if slices.Max(s.Sizes) == 0 && pairs%8 == 0 {
		return []int{pairs / 4, 3 * pairs / 8, 3 * pairs / 8}
	}
	return s.Sizes
}

// kindsOfPositions are time, height and width.
const kindsOfPositions = 3

// sections gives rotations the positions that a config with sections asks for; nil for other configs.
func (g *Graph) sections(o *Attention, ropes []op.Rope) (out []op.Rope) {
	s := g.Sections()
	if s == nil || o.Sequences != 1 || len(s.Positions[0]) != o.Tokens {
		return nil
	}
	for _, r := range ropes {
		sizes := s.Of(len(r.Q.Freqs))
		if by := s.By(sizes, op.Sequence(len(sizes))); len(r.Q.Freqs) == len(by) && len(by) > 0 {
			r.Q.By, r.K.By = by, by
			out = append(out, r)
		}
	}
	return out
}

func (g *Graph) sectionsOf(r op.Rope) *Sections {
	if r.Q.By == nil {
		return nil
	}
	s := g.Sections()
	s.Sizes = s.Of(len(r.Q.Freqs))
	return s
}

// Sections are those of the config, with the positions that the reference recorded; nil for none.
func (g *Graph) Sections() *Sections {
	list, ok := ropeConfig(g.Scene.Config, "")["mrope_section"].([]any)
	if !ok && g.Scene.Config != nil {
		return nil
	}
	s := &Sections{}
	for _, n := range numbers(list) {
		s.Sizes = append(s.Sizes, int(n))
	}
	if !ok {
		s.Sizes = make([]int, kindsOfPositions)
	}
	for _, x := range g.values {
		shape := x.golden.Shape()
		if !x.IsFloat() && len(shape) == 3 && shape[0] == len(s.Sizes) && shape[1] == 1 {
			ids := op.ReadAll(x.golden)
			for i := range s.Sizes {
				s.Positions = append(s.Positions, ids[i*shape[2]:(i+1)*shape[2]])
			}
			return s
		}
	}
	return nil
}

// relatives are the biases that the scores of an attention of so many heads may have: a table of
// buckets among the weights, or slopes.
func (g *Graph) relatives(o *Attention, heads int) (out []*op.RelativeBias) {
	c := g.Scene.Config
	if kind := c.String("model_type"); kind == "bloom" || kind == "mpt" || c["alibi"] == true || g.givenSlopes(o) {
		out = append(out, &op.RelativeBias{Slopes: op.Slopes(heads)})
	}
	if o.Keys != 0 {
		return out
	}
	table := g.buckets(o.Layer)
	if table == nil {
		return out
	}
	for _, far := range Distances(c) {
		out = append(out, &op.RelativeBias{Table: table, Far: far, Both: true}, &op.RelativeBias{Table: table, Far: far})
	}
	return out
}

// Distances are what relative_attention_max_distance may be: that of the config, or the usual ones.
func Distances(c checkpoint.Config) []int {
	if far, ok := c.Int("relative_attention_max_distance"); ok {
		return []int{far}
	}
	if c != nil {
		return usualDistances[:1]
	}
	return usualDistances
}

// givenSlopes reports whether an attention is given a bias with the names of slopes.
func (g *Graph) givenSlopes(o *Attention) bool {
	return slices.ContainsFunc(g.values, func(x *Value) bool {
		return x.IsFloat() && slices.ContainsFunc(x.ports, func(p *diagnose.Port) bool {
			return p.IsInput() && label.Within(p.Layer, o.Layer) && (strings.Contains(p.Port, "alibi") || strings.Contains(p.Port, "position_bias"))
		})
	})
}

// buckets is the table of relative positions of the stack in which a layer lies; nil for none. It is
// among the weights, or its rows are read where they were recorded.
func (g *Graph) buckets(layer string) (table [][]float64) {
	keys := g.Scene.Weights.Keys(func(key string, t *tensor.Tensor) bool {
		return strings.HasSuffix(key, "relative_attention_bias.weight") && len(t.Shape()) == 2
	})
	shared := func(name string) (n int) {
		a, b := strings.Split(strings.TrimPrefix(layer, "model."), "."), strings.Split(strings.TrimPrefix(name, "model."), ".")
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	best := 0
	for _, key := range keys {
		if n := shared(key); n > best {
			w := g.Scene.Weights[key]
			best, table = n, nil
			all := op.ReadAll(w)
			for i := range w.Shape()[0] {
				table = append(table, all[i*w.RowLen():(i+1)*w.RowLen()])
			}
		}
	}
	if table != nil {
		return table
	}
	for _, p := range g.Scene.Pass() {
		in := g.Scene.Input(p.Layer)
		if label.Last(p.Layer) != "relative_attention_bias" || !p.IsOutput() || in == nil || in.IsFloat() || in.Golden.Len() != p.Rows() {
			continue
		}
		if n := shared(p.Layer); n > best {
			ids, rows := op.ReadAll(in.Golden), op.ReadAll(p.Golden)
			best, table = n, make([][]float64, g.bucketCount(ids))
			for i, id := range ids {
				table[int(id)] = rows[i*p.Width() : (i+1)*p.Width()]
			}
		}
	}
	return table
}

// bucketCount is the config's, or the power of two that holds all ids.
func (g *Graph) bucketCount(ids []float64) int {
	most := int(slices.Max(ids)) + 1
	if n, ok := g.Scene.Config.Int("relative_attention_num_buckets"); ok && n >= most {
		return n
	}
	n := 1
	for n < most {
		n *= 2
	}
	return n
}

// usualDistances are those of models without a config, the default first.
var usualDistances = []int{128, 20, 16, 32, 64, 256}
