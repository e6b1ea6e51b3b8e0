package rebuild

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// Attention is the op of that name, of recorded projections: the context, or with OfWeights what the
// softmax gives, [sequences, heads, tokens, keys].
type Attention struct {
	Made
	op.Attention
	OfWeights   bool
	Projections [3]*Value // that hold q, k and v; one may hold several
	Masked      *Value    // that holds the mask; nil where none was recorded
	Layer       string
	Latent      *Latent   // how q, k and v stand in the projections of MLA; nil for other attentions
	Sections    *Sections // of M-RoPE; nil for other rotations

	miss float64 // how far it was off when it was tried
}

// mask is one that the reference may have, and what holds it.
type mask struct {
	*op.Mask
	from *Value // nil for a rule
}

func (o *Attention) Inputs() []*Value { return o.Projections[:] }

func (o *Attention) Eval(e *Evaluation, rows []int) []float64 {
	need := o.Work(len(rows))
	if !o.OfWeights && o.Width() != o.Out.Width || need > workLimit/attentionShare || !e.g.Spend(need) {
		return nil
	}
	if o.OfWeights {
		return o.weights(e, rows)
	}
	q, k, v := o.read(e)
	return o.Of(q, k, v, rows)
}

// weights are rows of those, as numbers of all sequences, heads and tokens.
func (o *Attention) weights(e *Evaluation, rows []int) (out []float64) {
	w, n := o.Weigh(e), o.Tokens
	if w == nil || o.Heads*o.Sequences*n != o.Out.Rows {
		return nil
	}
	for _, r := range rows {
		out = append(out, w.Weights(r/(n*o.Heads), r/n%o.Heads, r%n)...)
	}
	return out
}

// Weigh is the attention on the candidate's projections; nil if they are not known.
func (o *Attention) Weigh(e *Evaluation) *op.Weighed { return o.Attention.Weigh(o.read(e)) }

func (o *Attention) read(e *Evaluation) (q, k, v []float64) {
	if o.Latent != nil {
		return o.Latent.read(e, o)
	}
	n := o.keys()
	return o.tokens(e, o.Projections[0], o.Tokens), o.tokens(e, o.Projections[1], n), o.tokens(e, o.Projections[2], n)
}

// keys is the number of keys of a sequence.
func (o *Attention) keys() int { return cmp.Or(o.Keys, o.Tokens) }

// tokens returns a value as [sequences·tokens, width]: heads may be an axis of their own, before or
// behind the tokens.
func (o *Attention) tokens(e *Evaluation, v *Value, tokens int) []float64 {
	x := e.all(v)
	n := o.Sequences * tokens
	if x == nil || v.Rows == n {
		return x
	}
	shape := v.golden.Shape()
	if v.Rows%n != 0 || len(shape) != 4 {
		return nil
	}
	h, d := v.Rows/n, v.Width
	if shape[2] != tokens || shape[1] != h {
		return x // [B, T, H, d]
	}
	out := make([]float64, 0, len(x))
	for i := range n {
		for j := range h {
			b, t := i/tokens, i%tokens
			out = append(out, x[((b*h+j)*tokens+t)*d:][:d]...)
		}
	}
	return out
}

// HeadCounts lists how many heads a width may have: what the config says, else what leaves a usual
// size.
func (g *Graph) HeadCounts(width int) []int {
	if n := g.Scene.Config.Heads(); n > 0 && width%n == 0 {
		return []int{n}
	}
	var out []int
	add := func(d int) {
		if n := width / d; width%d == 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for _, d := range []int{64, 128, 32, 16, 80, 96, 256, 8, 40, 48, 72, 112, 160, 192} {
		add(d)
	}
	for d := 4; d <= min(width, widestHead); d++ {
		add(d)
	}
	return out
}

// findAttention looks for the projections near v, and for the way of attention that makes v of
// them.
func findAttention(g *Graph, v *Value) []Op {
	shape := v.golden.Shape()
	o := &Attention{Made: Made{v}, OfWeights: areWeights(v)}
	if len(shape) < 2 || len(shape) > 3 && !o.OfWeights {
		return nil
	}
	o.Tokens = Length(shape)
	o.Sequences = v.Rows / o.Tokens
	if o.OfWeights {
		o.Sequences = shape[0]
	}
	scope := g.projections(v, o)
	if scope == "" || o.Tokens < 2 {
		return nil
	}
	o.Layer = scope
	if label.Inside(scope, v.Taker()) {
		o.Layer = v.Taker()
	}
	ways := g.ways(v, o)
	found, near := g.search(o, ways, g.masks(v, o))
	if found == nil {
		var windows []mask // for a reference that did not record its mask
		for w := 2; w < min(o.Tokens, windowsTried); w++ {
			windows = append(windows, mask{op.Windowed(w), nil})
		}
		var more []*Attention
		found, more = g.search(o, nearestWays(near), windows)
		near = append(near, more...)
	}
	if g.Scene.Config == nil && (found == nil || found.miss > v.Noise()/freely) {
		if fitted := g.fitAttention(near); fitted != nil && (found == nil || fitted.miss*freely < found.miss) {
			found = fitted
		}
	}
	if found == nil && len(g.Scene.Weights) == 0 && !o.OfWeights {
		found = g.learnSinks(near)
	}
	if found == nil {
		return nil
	}
	return []Op{found}
}

// nearestWays are the ways of attention that came nearest, whatever their masks.
func nearestWays(tried []*Attention) (out []op.Attention) {
	tried = slices.Clone(tried)
	slices.SortStableFunc(tried, func(a, b *Attention) int { return cmp.Compare(a.miss, b.miss) })
	for _, t := range tried[:min(len(tried), settingsTried)] {
		out = append(out, t.Attention)
	}
	return out
}

// learnSinks finds the learned sinks that bring one of the ways of attention to the golden context, where
// the weights are not given: they take the same share from all that a query takes in a head,
//
//	s = ln(Z·(1/f − 1)), f being the factor of the context, Z the sum of the exponentials of the scores
func (g *Graph) learnSinks(tried []*Attention) *Attention {
	tried = slices.Clone(tried)
	slices.SortStableFunc(tried, func(a, b *Attention) int { return cmp.Compare(a.miss, b.miss) })
	for _, near := range tried[:min(len(tried), attentionsFitted)] {
		if g.isOver() || near.Latent != nil {
			return nil
		}
		try := *near
		o, v := &try, near.Out
		rows := op.Spread(v.Rows, attentionRows)
		golden, made := v.Golden(rows), o.Eval(g.goldenly(), rows)
		o.Sinks = make([]float64, o.Heads)
		plain := near.Weigh(g.goldenly())
		if made == nil || plain == nil {
			continue
		}
		for h := range o.Heads {
			var all []float64
			for i, r := range rows {
				at := i*v.Width + h*o.Dim
				x, y := made[at:at+o.Dim], golden[at:at+o.Dim]
				if f := op.Project(x, y); f > 0 && f < 1 {
					all = append(all, plain.Norm(r/o.Tokens, h, r%o.Tokens)+math.Log(1/f-1))
				}
			}
			if len(all) == 0 {
				all = []float64{math.Inf(-1)}
			}
			slices.Sort(all)
			o.Sinks[h] = all[len(all)/2]
		}
		if o.miss = op.Relative(o.Eval(g.goldenly(), rows), golden); o.miss <= v.Noise() {
			return o
		}
	}
	return nil
}

// areWeights reports whether a value may be the weights of an attention: a share of each key for each
// sequence, head and token.
func areWeights(v *Value) bool {
	shape := v.golden.Shape()
	if len(shape) != 4 || v.Width < 2 {
		return false
	}
	rows := op.Spread(v.Rows, attentionRows)
	x := v.Golden(rows)
	for i := range rows {
		row := x[i*v.Width : (i+1)*v.Width]
		if !op.All(row, func(x float64) bool { return x >= 0 }) || math.Abs(floats.Sum(row)-1) > v.Noise()+shareOfOne {
			return false
		}
	}
	return true
}

// Unseen names the mask of the padding if the candidate recorded neither it nor another one that
// says the same; "" if it did, or there is no padding.
func (o *Attention) Unseen() string {
	g, padded := o.Graph(), o.Mask.Padded
	switch {
	case padded == nil || slices.ContainsFunc(g.values, func(x *Value) bool {
		return x != g.Target && x.IsRecorded() && x.agrees && (x == o.Masked || o.pads(x, padded))
	}):
		return ""
	case o.Masked != nil:
		return o.Masked.String()
	}
	return "the mask that it was given"
}

// pads reports whether a value is a mask of the same padding.
func (o *Attention) pads(x *Value, padded func(b, s int) bool) bool {
	m := op.ReadMask(x.golden, o.Sequences, o.Tokens, o.keys(), o.Scene().Config.Heads())
	if m == nil {
		return false
	}
	if m.TakeApart(o.Sequences, o.Tokens, o.keys()); m.Padded == nil {
		return false
	}
	for i := range o.Sequences * o.keys() {
		if b, s := i/o.keys(), i%o.keys(); m.Padded(b, s) != padded(b, s) {
			return false
		}
	}
	return true
}

// search tries each way with each mask. It returns nil if none is right, and those that were tried
// with how far they were off.
func (g *Graph) search(o *Attention, ways []op.Attention, masks []mask) (found *Attention, tried []*Attention) {
	v := o.Out
	rows := op.Spread(v.Rows, attentionRows)
	golden, best := v.Golden(rows), v.Noise()
	layouts := []bool{false}
	if q := o.Projections[0]; q == o.Projections[1] && q.Width == 3*o.K.At {
		layouts = append(layouts, true)
	}
	for _, m := range masks {
		m.TakeApart(o.Sequences, o.Tokens, o.keys())
	}
	for _, grouped := range layouts {
		for _, way := range ways {
			way.Q.Grouped, way.K.Grouped, way.V.Grouped = grouped, grouped, grouped
			o.Sections = g.sectionsOf(way.Rope)
			for _, m := range masks {
				try := *o
				try.Attention, try.Mask, try.Masked = way, m.Mask, m.from
				try.miss = op.Relative(try.Eval(g.goldenly(), rows), golden)
				tried = append(tried, &try)
				if try.miss <= best {
					best, found = try.miss/better, &try
				}
				if g.isOver() {
					return nil, nil
				}
				if found != nil && best < v.Noise()*sure {
					return found, tried
				}
			}
		}
	}
	return found, tried
}

// fitAttention fits the scale of the scores, and what bends them, of the ways of attention that come
// nearest without, for a reference whose config is not known; nil if nothing fits.
func (g *Graph) fitAttention(tried []*Attention) *Attention {
	slices.SortStableFunc(tried, func(a, b *Attention) int { return cmp.Compare(a.miss, b.miss) })
	for _, near := range tried[:min(len(tried), attentionsFitted)] {
		try := *near // the one that was found is among them
		o, v := &try, near.Out
		rows := op.Spread(v.Rows, attentionRows)
		golden := v.Golden(rows)
		miss := func() float64 {
			if g.isOver() {
				return math.Inf(1)
			}
			return op.Relative(o.Eval(g.goldenly(), rows), golden)
		}
		best := math.Inf(1)
		for round := range fitRounds {
			o.Scale = math.Exp(op.Minimum(math.Log(leastScale), math.Log(mostScale), func(x float64) float64 {
				o.Scale = math.Exp(x)
				return miss()
			}))
			if best = miss(); best > fitsRoughly && round == 0 || best <= v.Noise()*sure || g.isOver() {
				break
			}
			o.Cap = math.Exp(op.Minimum(math.Log(leastCap), math.Log(mostCap), func(x float64) float64 {
				o.Cap = math.Exp(x)
				return miss()
			}))
			best = miss()
		}
		if o.miss = best; best <= v.Noise() {
			return o
		}
		if g.isOver() {
			return nil
		}
	}
	return nil
}

// projections finds q, k and v inside the attention that v is the context of, and returns its
// label.
func (g *Graph) projections(v *Value, o *Attention) string {
	n := o.Sequences * o.Tokens
	roles := []module.Names{module.Query, module.Key, module.Value, module.QueryNorm, module.KeyNorm, module.FusedQKV, module.Latent,
		module.LatentKey}
	for scope := v.Taker(); scope != ""; scope = label.Parent(scope) {
		found := make([]*Value, len(roles))
		for _, x := range g.values {
			if x.at < v.at && x != v && x.Rows%o.Sequences == 0 && x.IsFloat() && label.Inside(x.Layer(), scope) {
				i := slices.IndexFunc(roles, func(n module.Names) bool { return n.Has(x.Layer()) })
				if i >= 0 && (x.Rows%n == 0 || i == 1 || i == 2 || i == 4) { // keys and values may be of another length
					found[i] = x
				}
			}
		}
		q, k, val, fused := found[0], found[1], found[2], found[5]
		width := v.Width // of the context
		switch {
		case o.OfWeights && q != nil:
			width = q.Width * q.Rows / n
		case o.OfWeights && fused != nil:
			width = fused.Width / 3
		}
		switch {
		case q != nil && found[6] != nil && found[7] != nil:
			if o.Latent = g.latent(v, q, found[6], found[7]); o.Latent == nil {
				break
			}
			o.Projections = [3]*Value{q, found[7], found[6]}
			return scope
		case q != nil && k != nil && val != nil && q.Rows == n && q.Width == width && k.Rows == val.Rows && k.Rows != n &&
			len(k.golden.Shape()) == 3: // cross attention
			o.Projections, o.Keys = [3]*Value{q, k, val}, k.Rows/o.Sequences
			return scope
		case k != nil && k.Rows%n != 0 || val != nil && val.Rows%n != 0:
		case q != nil && k != nil && val != nil && q.Width*q.Rows/n == width:
			o.Projections = [3]*Value{cmp.Or(found[3], q), cmp.Or(found[4], k), val}
			return scope
		case fused != nil && fused.Rows == n && fused.Width == 3*width && found[3] != nil && found[4] != nil &&
			found[3].Rows*found[3].Width == n*width && found[4].Rows*found[4].Width == n*width: // q and k are normed
			o.Projections = [3]*Value{found[3], found[4], fused}
			o.V = op.Columns{At: 2 * width}
			return scope
		case fused != nil && fused.Rows == n && fused.Width > width:
			o.Projections = [3]*Value{fused, fused, fused}
			o.K = op.Columns{Part: 1, At: width}
			o.V = op.Columns{Part: 2, At: width + (fused.Width-width)/2}
			return scope
		}
		if b := label.Block(scope); b == "" || b == scope {
			break
		}
	}
	return ""
}

// ways lists what the reference may do, apart from masks; the usual first.
func (g *Graph) ways(v *Value, o *Attention) []op.Attention {
	c := g.Scene.Config
	k := o.Projections[1]
	kvWidth := k.Rows * k.Width / (o.Sequences * o.keys())
	if k == o.Projections[0] {
		kvWidth = o.V.At - o.K.At
	}
	caps := []float64{0}
	if x, ok := c.Float("attn_logit_softcapping"); ok && x > 0 {
		caps = []float64{x, 0}
	}
	_, sinks := g.Scene.Weights.Of(o.Layer, "sinks")
	var out []op.Attention
	add := func(h, kv, d int, r op.Rope, scale float64, relative *op.RelativeBias) {
		for _, bend := range caps {
			way := o.Attention
			way.Heads, way.KV, way.Dim, way.Scale, way.Cap, way.Rope, way.Relative = h, kv, d, scale, bend, r, relative
			if sinks != nil && sinks.Len() == h {
				way.Sinks = op.ReadAll(sinks)
			}
			out = append(out, way)
		}
	}
	if l := o.Latent; l != nil {
		d := l.Nope + l.Rope
		o.ValueDim = l.Value
		for _, r := range g.ropes(v, o, l.Rope) {
			for _, scale := range scales(c, o.Layer, d) {
				add(l.Heads, l.Heads, d, r, scale, nil)
			}
		}
		return out
	}
	width, counts := v.Width, g.HeadCounts(v.Width)
	if o.OfWeights {
		width, counts = o.Projections[0].Width*o.Projections[0].Rows/(o.Sequences*o.Tokens), []int{v.golden.Shape()[1]}
		if k == o.Projections[0] {
			width = o.K.At
		}
	}
	for _, h := range counts {
		d := width / h
		if width%h != 0 {
			continue
		}
		relatives := append(g.relatives(o, h), nil)
		if kvWidth%d != 0 || kvWidth/d == 0 || h%(kvWidth/d) != 0 {
			continue
		}
		for _, r := range g.ropes(v, o, d) {
			for _, scale := range scales(c, o.Layer, d) {
				for _, relative := range relatives {
					add(h, kvWidth/d, d, r, scale, relative)
				}
			}
		}
	}
	return out
}

// scales are what scores of heads of d may be multiplied by, the usual first.
func scales(c checkpoint.Config, layer string, d int) (out []float64) {
	if x, ok := c.Float("attention_multiplier"); ok {
		out = append(out, x)
	}
	if x, ok := c.Float("query_pre_attn_scalar"); ok {
		out = append(out, 1/math.Sqrt(x))
	}
	root := 1 / math.Sqrt(float64(d))
	if n, ok := blockNumber(layer); ok && c["scale_attn_by_inverse_layer_idx"] == true { // GPT-2
		out = append(out, root/float64(n+1))
	}
	if s := scaling(c, layer); s.Kind == "yarn" && s.AllDim > 0 { // DeepSeek
		m := op.Mscale(s.Factor, s.AllDim)
		out = append(out, root*m*m)
	}
	return append(out, root, 1)
}

// masks lists what the reference may do: nothing, causal, and every earlier tensor that may be a
// mask, with and without causal.
func (g *Graph) masks(v *Value, o *Attention) []mask {
	out := []mask{{op.Causal(), nil}, {&op.Mask{}, nil}}
	if w, ok := g.Scene.Config.Int("sliding_window"); ok && w < o.Tokens {
		out = append(out, mask{op.Windowed(w), nil})
	}
	n := 0
	for _, x := range slices.Backward(g.values) { // the nearest first
		if n == masksTried {
			break
		}
		if x.at < v.at && x != g.Target && x != v {
			if m := op.ReadMask(x.golden, o.Sequences, o.Tokens, o.keys(), g.Scene.Config.Heads()); m != nil {
				out = append(out, mask{m, x}, mask{m.Causally(), x})
				n++
			}
		}
	}
	if pad := g.Scene.Target.PadRows; o.Keys == 0 && g.Scene.Fed == nil && len(pad) == o.Sequences*o.Tokens {
		m := &op.Mask{Allow: func(b, _, s int) bool { return !pad[b*o.Tokens+s] }}
		out = append(out, mask{m, nil}, mask{m.Causally(), nil})
	}
	return out
}
