package diagnose

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// attention is out = softmax(scale·q·kᵀ + mask)·v over heads, recomputed of the recorded projections.
type attention struct {
	out     *value
	q, k, v projection
	b, t    int // sequences and tokens of each
	base    setting
	layer   string
	rules   *maskRules // of the reference
}

// projection is where q, k or v stand: the columns from at in a value, heads·d wide.
type projection struct {
	v       *value
	part    int  // of a fused projection: 0, 1, 2
	at      int  // its first column
	grouped bool // fused as [heads, 3, d], and not as [3, heads, d]
}

// The ways in which the columns of a token are read as heads, and heads are written as columns.
const (
	byHead    = iota // [tokens, heads, d]
	byColumn         // [tokens, d, heads]
	byRawHead        // [heads, tokens, d] without moving anything: the missing transpose
)

// The axes of the softmax.
const (
	overKeys = iota
	overQueries
	overHeads
)

// setting is one way to do attention. Those of the reference and of a fault differ in one thing.
type setting struct {
	heads, kv, d int
	scale        float64
	cap          float64   // scores are cap·tanh(score/cap); 0 for none
	sinks        []float64 // one more score for each head, of which nothing is taken; nil for none
	tiled        bool      // head h uses kv head h mod kv, and not h/(heads/kv)
	rollKV       int       // head h uses the kv head so many further
	oneKV        bool      // all heads use kv head 0
	roll         int       // of the heads of the output
	rope         rope
	allow        func(b, t, s int) bool    // nil: everything
	add          func(b, t, s int) float64 // nil: nothing
	after        bool                      // what is not allowed is set to zero after the softmax
	axis         int
	readQ, readK int
	readV, write int
}

func (o *attention) inputs() []*value {
	in := []*value{o.q.v}
	for _, v := range []*value{o.k.v, o.v.v} {
		if !slices.Contains(in, v) {
			in = append(in, v)
		}
	}
	return in
}

func (o *attention) eval(e *evaluation, rows []int) []float64 { return o.with(e, rows, &o.base) }

// tokens gives a value as [tokens, width]: heads may be an axis of their own, before or behind the tokens.
func (o *attention) tokens(e *evaluation, v *value) []float64 {
	x := e.all(v)
	n := o.b * o.t
	if x == nil || v.rows == n {
		return x
	}
	if v.rows%n != 0 || len(v.shape) != 4 {
		return nil
	}
	h, d := v.rows/n, v.width
	if v.shape[2] != o.t || v.shape[1] != h {
		return x // [B, T, H, d]
	}
	out := make([]float64, len(x))
	for b := range o.b {
		for i := range h {
			for t := range o.t {
				copy(out[((b*o.t+t)*h+i)*d:][:d], x[((b*h+i)*o.t+t)*d:][:d])
			}
		}
	}
	return out
}

// heads gives head h of token t of sequence b.
type heads func(b, h, t int) []float64

// split reads a projection as n heads of d.
func (o *attention) split(x []float64, p projection, n, d, way int) heads {
	width := len(x) / (o.b * o.t)
	if x == nil || !p.grouped && p.at+n*d > width || p.grouped && (3*n*d != width || way != byHead) {
		return nil
	}
	switch way {
	case byColumn:
		return func(b, h, t int) []float64 {
			out := make([]float64, d)
			for i := range out {
				out[i] = x[(b*o.t+t)*width+p.at+i*n+h]
			}
			return out
		}
	case byRawHead:
		own := n * d
		return func(b, h, t int) []float64 {
			flat := (h*o.t + t) * d
			return x[(b*o.t+flat/own)*width+p.at+flat%own:][:d]
		}
	}
	if p.grouped {
		return func(b, h, t int) []float64 { return x[(b*o.t+t)*width+(h*3+p.part)*d:][:d] }
	}
	return func(b, h, t int) []float64 { return x[(b*o.t+t)*width+p.at+h*d:][:d] }
}

// with does attention in one setting.
func (o *attention) with(e *evaluation, rows []int, s *setting) []float64 {
	width := o.out.width
	if s.heads*s.d != width || s.kv == 0 || s.heads%s.kv != 0 {
		return nil
	}
	need := float64(len(rows)*o.t*width*2 + o.b*o.t*width)
	if s.axis == overQueries {
		need = float64(2 * o.b * o.t * o.t * width)
	}
	if need > workLimit/4 || !e.g.spend(need) {
		return nil
	}
	c := o.attend(e, s)
	if c == nil {
		return nil
	}
	out := make([]float64, len(rows)*width)
	for i, r := range rows {
		b, t := r/o.t, r%o.t
		dst := out[i*width : (i+1)*width]
		switch s.write {
		case byRawHead:
			for at := 0; at < width; at += s.d {
				flat := t*width + at
				copy(dst[at:at+s.d], c.of(b, flat/(o.t*s.d), flat/s.d%o.t))
			}
		case byColumn:
			for h := range s.heads {
				for j, x := range c.of(b, h, t) {
					dst[j*s.heads+h] = x
				}
			}
		default:
			for h := range s.heads {
				copy(dst[(h+s.roll)%s.heads*s.d:], c.of(b, h, t))
			}
		}
	}
	return out
}

// attend reads q, k and v in one setting; nil if they cannot be read so.
func (o *attention) attend(e *evaluation, s *setting) *attending {
	q := o.split(o.tokens(e, o.q.v), o.q, s.heads, s.d, s.readQ)
	k := o.split(o.tokens(e, o.k.v), o.k, s.kv, s.d, s.readK)
	v := o.split(o.tokens(e, o.v.v), o.v, s.kv, s.d, s.readV)
	if q == nil || k == nil || v == nil {
		return nil
	}
	q, k, v = s.rope.q.turn(q, o.t, s.d), s.rope.k.turn(k, o.t, s.d).kept(o, s.kv), s.rope.v.turn(v, o.t, s.d).kept(o, s.kv)
	if q == nil || k == nil || v == nil {
		return nil
	}
	return &attending{o: o, s: s, q: q, k: k, v: v, done: map[[3]int][]float64{}}
}

// kept calculates all heads once.
func (f heads) kept(o *attention, n int) heads {
	if f == nil {
		return nil
	}
	all := make([][]float64, o.b*n*o.t)
	for b := range o.b {
		for h := range n {
			for t := range o.t {
				all[(b*n+h)*o.t+t] = f(b, h, t)
			}
		}
	}
	return func(b, h, t int) []float64 { return all[(b*n+h)*o.t+t] }
}

// attending gives what a query sees.
type attending struct {
	o       *attention
	s       *setting
	q, k, v heads
	done    map[[3]int][]float64
	weights map[[2]int][][]float64 // of all queries, for a softmax over them
}

func (c *attending) kvHead(h int) int {
	switch {
	case c.s.oneKV:
		return 0
	case c.s.tiled:
		return h % c.s.kv
	}
	return (h/(c.s.heads/c.s.kv) + c.s.rollKV) % c.s.kv
}

// scores are those of one query, −Inf where it must not look. A query that may look nowhere looks everywhere: the lowest number swallows all scores.
func (c *attending) scores(b, h, t int) []float64 {
	s, q, kh := c.s, c.q(b, h, t), c.kvHead(h)
	out := make([]float64, c.o.t)
	any := false
	for i := range out {
		if s.allow != nil && !s.after && !s.allow(b, t, i) {
			out[i] = math.Inf(-1)
			continue
		}
		any = true
		x := s.scale * floats.Dot(q, c.k(b, kh, i))
		if s.cap > 0 {
			x = s.cap * math.Tanh(x/s.cap)
		}
		if s.add != nil {
			x += s.add(b, t, i)
		}
		out[i] = x
	}
	if !any {
		clear(out)
	}
	return out
}

func softmax(x []float64) {
	top, sum := slices.Max(x), 0.0
	for i := range x {
		x[i] = math.Exp(x[i] - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func (c *attending) weightsOf(b, h, t int) []float64 {
	o, s := c.o, c.s
	switch s.axis {
	case overQueries:
		if c.weights == nil {
			c.weights = map[[2]int][][]float64{}
		}
		all := c.weights[[2]int{b, h}]
		if all == nil {
			all = make([][]float64, o.t)
			for i := range all {
				all[i] = c.scores(b, h, i)
			}
			column := make([]float64, o.t)
			for key := range o.t {
				for i := range all {
					column[i] = all[i][key]
				}
				softmax(column)
				for i := range all {
					all[i][key] = column[i]
					if math.IsNaN(column[i]) { // nobody looks at this key
						all[i][key] = 1 / float64(o.t)
					}
				}
			}
			c.weights[[2]int{b, h}] = all
		}
		return all[t]
	case overHeads:
		own := c.scores(b, h, t)
		column := make([][]float64, s.heads)
		for i := range column {
			column[i] = c.scores(b, i, t)
		}
		x := make([]float64, s.heads)
		for key := range own {
			for i := range x {
				x[i] = column[i][key]
			}
			softmax(x)
			if own[key] = x[h]; math.IsNaN(x[h]) {
				own[key] = 1 / float64(s.heads)
			}
		}
		return own
	}
	w := c.scores(b, h, t)
	if s.sinks != nil {
		w = append(w, s.sinks[h])
		softmax(w)
		w = w[:o.t]
	} else {
		softmax(w)
	}
	if s.after && s.allow != nil {
		for i := range w {
			if !s.allow(b, t, i) {
				w[i] = 0
			}
		}
	}
	return w
}

func (c *attending) of(b, h, t int) []float64 {
	key := [3]int{b, h, t}
	if out, ok := c.done[key]; ok {
		return out
	}
	w, kh := c.weightsOf(b, h, t), c.kvHead(h)
	out := make([]float64, c.s.d)
	for i, p := range w {
		if p != 0 {
			for j, x := range c.v(b, kh, i) {
				out[j] += p * x
			}
		}
	}
	c.done[key] = out
	return out
}

// headCounts lists how many heads a width may have: what the config says, else what leaves a usual size.
func (g *graph) headCounts(width int) []int {
	if n, ok := g.s.Config.Int("num_attention_heads", "n_head", "num_heads", "n_heads"); ok && n > 0 && width%n == 0 {
		return []int{n}
	}
	var out []int
	for _, d := range []int{64, 128, 32, 16, 80, 96, 256, 8, 40, 48, 72, 112, 160, 192, 4} {
		if width%d == 0 {
			out = append(out, width/d)
		}
	}
	return out
}

// findAttention looks for the projections near v and for the setting that makes v of them.
func findAttention(g *graph, v *value) []op {
	if len(v.shape) < 2 || len(v.shape) > 3 {
		return nil
	}
	o := &attention{out: v, t: v.shape[len(v.shape)-2]}
	o.b = v.rows / o.t
	scope := g.projections(v, o)
	if scope == "" || o.t < 2 {
		return nil
	}
	o.layer = scope
	if len(v.ports) > 0 && v.ports[0].Layer != scope && strings.HasPrefix(scope, v.ports[0].Layer+".") {
		o.layer = v.ports[0].Layer
	}
	rows := spread(v.rows, 6)
	golden := read(v.golden, v.width, rows)
	best, found := v.noise(), false
	layouts := []bool{false}
	if o.q.v == o.k.v && o.q.v.width == 3*v.width {
		layouts = append(layouts, true)
	}
	_, sinks := g.s.weight(o.layer, "sinks")
	search := func(settings []setting, masks []*maskRules) bool {
		for _, grouped := range layouts {
			try := *o
			try.q.grouped, try.k.grouped, try.v.grouped = grouped, grouped, grouped
			for _, base := range settings {
				for _, m := range masks {
					s := base
					s.allow, s.add = m.allow, m.add
					if sinks != nil && sinks.Len() == s.heads {
						s.sinks = read(sinks, s.heads, []int{0})
					}
					if miss := relative(try.with(g.golden(), rows, &s), golden); miss <= best {
						best, found = miss/2, true
						*o = try
						o.base, o.rules = s, m
					}
					if g.work <= 0 || g.s.Late() {
						return false
					}
					if found && best < v.noise()/20 {
						return true
					}
				}
			}
		}
		return found
	}
	const usual = 24
	settings := g.settings(v, o)
	if !search(settings, g.masks(v, o)) && !search(settings[:min(len(settings), usual)], windows(o)) {
		return nil
	}
	return []op{o}
}

// projections finds q, k and v inside the attention that v is the context of, and gives the label of it.
func (g *graph) projections(v *value, o *attention) string {
	n := o.b * o.t
	fits := func(x *value) bool { return x.rows%n == 0 && x.golden.DType().IsFloat() }
	for _, p := range v.ports[:1] {
		for scope := p.Layer; scope != ""; scope = parentOf(scope) {
			var q, k, val, qn, kn, fused *value
			for _, x := range g.values {
				layer, port := x.made()
				if port == nil || x.at >= v.at || x == v || !fits(x) || !strings.HasPrefix(layer, scope+".") {
					continue
				}
				switch name := lastPart(layer); {
				case queryNames.has(name):
					q = x
				case keyNames.has(name):
					k = x
				case valueNames.has(name):
					val = x
				case queryNormNames.has(name):
					qn = x
				case keyNormNames.has(name):
					kn = x
				case fusedNames.has(name):
					fused = x
				}
			}
			switch {
			case q != nil && k != nil && val != nil && q.width*q.rows/n == v.width:
				if qn != nil {
					q = qn
				}
				if kn != nil {
					k = kn
				}
				o.q, o.k, o.v = projection{v: q}, projection{v: k}, projection{v: val}
				return scope
			case fused != nil && fused.rows == n && fused.width > v.width:
				kv := (fused.width - v.width) / 2
				o.q, o.k, o.v = projection{v: fused}, projection{v: fused, part: 1, at: v.width}, projection{v: fused, part: 2, at: v.width + kv}
				return scope
			}
			if blockOf(scope) == "" || scope == blockOf(scope) {
				break
			}
		}
	}
	return ""
}

// settings lists what the reference may do, apart from masks; the usual first.
func (g *graph) settings(v *value, o *attention) []setting {
	var out []setting
	n := o.b * o.t
	kvWidth := o.k.v.rows * o.k.v.width / n
	if o.q.v == o.k.v {
		kvWidth = o.v.at - o.k.at
	}
	for _, h := range g.headCounts(v.width) {
		d := v.width / h
		if kvWidth%d != 0 || kvWidth/d == 0 || h%(kvWidth/d) != 0 {
			continue
		}
		scales := []float64{1 / math.Sqrt(float64(d))}
		if x, ok := g.s.Config.Float("query_pre_attn_scalar"); ok {
			scales = append([]float64{1 / math.Sqrt(x)}, scales...)
		}
		if x, ok := g.s.Config.Float("attention_multiplier"); ok {
			scales = append([]float64{x}, scales...)
		}
		scales = append(scales, 1)
		caps := []float64{0}
		if x, ok := g.s.Config.Float("attn_logit_softcapping"); ok && x > 0 {
			caps = []float64{x, 0}
		}
		for _, r := range g.ropes(v, o, d) {
			for _, scale := range scales {
				for _, c := range caps {
					out = append(out, setting{heads: h, kv: kvWidth / d, d: d, scale: scale, cap: c, rope: r})
				}
			}
		}
	}
	return out
}
