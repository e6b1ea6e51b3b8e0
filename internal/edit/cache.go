package edit

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// cache is an attention that may look at what is wrong: what a mask shows, and what a cache of keys and values holds.
type cache struct {
	*site
	attention
	f       *Fed
	n, from int       // tokens, and how many of them lie in the cache
	past    int       // keys in front of those of the first query
	hides   []float64 // the numbers of its mask, nil for none, and their shape
	shown   []int
	bools   bool // the mask is of bools, or may be,
	negated bool // which hide where they are true
}

// fault is what attention looks at, in place of what it should.
type fault struct {
	id   string
	rank int
	text string
	k, v change                       // what is done to keys and values; nil for nothing
	more int                          // how many keys and values stand after them
	seen func(line, t, slot int) bool // nil for what the mask allows
	less float64                      // what a mask that is added takes off what is not seen; 0 for all of it
}

// caches appends the faults of an attention.
func (s *site) caches(a attention) {
	if a.keys > mostKeys || a.queries < 1 {
		return
	}
	c := &cache{site: s, attention: a, f: s.fed, past: max(a.keys-a.queries, 0)}
	if c.f == nil {
		c.f = onePass(a.keys)
		c.f.Lines, c.f.From = c.lines(), c.past
	}
	c.n, c.from = len(c.f.At), c.f.From
	c.readMask()
	if c.from > 0 {
		c.chunks()
		c.hidden()
		c.elsewhere()
	}
	c.windows()
	if s.fed == nil {
		c.masks()
		c.sequences()
	}
	for k, o := range c.f.Others {
		if o.ID == "mask/padding" {
			c.padding(1+k, o)
		} else {
			c.foreign(1+k, o)
		}
	}
}

// lines is how many sequences the attention has, each of which may have a mask of its own.
func (c *cache) lines() int {
	shape := c.shape(c.at(c.k))
	if c.softmax >= 0 {
		if shape = c.shape(c.Ops[c.softmax].Out[0]); len(shape) != 4 {
			return 1
		}
	}
	return max(shape[0], 1)
}

// readMask reads what hides keys.
func (c *cache) readMask() {
	id := c.at(c.mask)
	if c.bools = c.softmax < 0; id == program.None {
		return
	}
	c.bools = !isFloat(c.Values[id])
	if x := c.base.Value(id); x != nil {
		c.hides, c.shown = x.Floats(), c.shape(id)
	}
	if c.softmax >= 0 && c.bools { // a token always sees itself
		at := c.f.At[0]
		c.negated = c.hides[c.place(0, at, at+c.past)] == 0
	}
}

// place is where the mask says whether a row sees a key.
func (c *cache) place(line, row, col int) int {
	n, at := len(c.shown), col
	if c.shown[n-2] > 1 {
		at += row * c.shown[n-1]
	}
	if n > 2 && c.shown[0] > 1 {
		at += line * size(c.shown) / c.f.Lines
	}
	return at
}

// allowed reports whether the reference lets a row see a key, and what it adds where it does; allows, whether it lets a token.
func (c *cache) allowed(line, row, col int) (is bool, added float64) {
	if c.hides == nil {
		causal, _ := c.Ops[c.k.op].Args.Get("is_causal").(bool)
		return !causal || col <= row+c.past, 0
	}
	x := c.hides[c.place(line, row, col)]
	if c.bools {
		return (x != 0) != c.negated, 0
	}
	return !vec.Denied(x), x
}

func (c *cache) allows(line, t, key int) bool {
	is, _ := c.allowed(line, c.f.At[t]-c.past, c.f.At[key])
	return is
}

// inSteps are names of faults in runs that are not laid out, where these are others.
var inSteps = map[string]string{"state/chunk": "attention/mask", "state/slot": "state/stale", "state/window": "attention/mask"}

// fault appends attention with a fault, which is written where its values are taken.
func (c *cache) fault(g fault) {
	if c.fed == nil {
		g.id = cmp.Or(inSteps[g.id], g.id)
		g.rank++
	}
	wider := func(shape []int) []int { // where its last axis counts keys
		shape = slices.Clone(shape)
		if n := len(shape); n > 0 && shape[n-1] == c.keys {
			shape[n-1] += g.more
		}
		return shape
	}
	hiding := c.mask.op
	if hiding < 0 {
		hiding = c.softmax
	}
	c.addAt("state", g.rank, g.text, []int{c.v.op}, func(w *writer, _ program.Op) {
		now := map[program.ID]program.ID{}
		for _, i := range c.ops {
			o := c.Ops[i]
			o.Args = renamed(o.Args, now)
			if i == c.k.op && g.k != nil {
				o.Args = with(o.Args, c.k.arg, g.k(w, c.at(c.k)))
			}
			if i == c.v.op && g.v != nil {
				o.Args = with(o.Args, c.v.arg, g.v(w, c.at(c.v)))
			}
			if i == hiding && g.seen != nil {
				o = c.masked(w, o, g)
			}
			if i == c.v.op {
				w.run(o, o.Name, o.Args)
				return
			}
			if shape, ok := o.Args.Get("size").([]int); ok {
				o.Args = with(o.Args, "size", wider(shape))
			}
			o.Out = o.Out[:1]
			w.again(o, now, func(_ int, id program.ID) []int { return wider(c.shape(id)) })
		}
	}).ID = g.id
}

// masked is an operator of the attention that is given another mask, with columns for more keys.
func (c *cache) masked(w *writer, o program.Op, g fault) program.Op {
	v := program.Value{Shape: []int{c.f.Lines, 1, c.queries, c.keys}, DType: tensor.F32}
	if c.softmax >= 0 {
		v.Shape = w.shape(c.Ops[c.softmax].Out[0])
		if len(v.Shape) == 4 && (c.f.Lines == 1 || v.Shape[0] == c.f.Lines) {
			v.Shape[0], v.Shape[1] = c.f.Lines, 1
		}
	}
	v.Shape[len(v.Shape)-1] += g.more
	if c.bools {
		v.DType = tensor.Bool
	}
	id := w.numbers(v.DType, v.Shape, func() []float64 { return c.shows(g, v) })
	switch {
	case c.softmax < 0:
		o.Args = with(o.Args, "attn_mask", id, "is_causal", false)
	case c.mask.op >= 0:
		o.Args = with(o.Args, c.mask.arg, id)
	default:
		o.Args = with(o.Args, "self", w.two("add", self(o), id))
	}
	return o
}

// shows are the numbers of a mask of a type and shape that shows what a fault does.
func (c *cache) shows(g fault, v program.Value) []float64 {
	f, token := c.f, map[int]int{}
	for t, row := range f.At {
		token[row] = t
	}
	denied := -math.MaxFloat32
	if g.less > 0 {
		denied = -g.less
	}
	n := len(v.Shape)
	cols, rows, lines := v.Shape[n-1], v.Shape[n-2], size(v.Shape[:n-2])
	return mapped(upTo(size(v.Shape)), func(i int) float64 {
		line, row, col := i/(cols*rows)*f.Lines/lines, i/cols%rows, i%cols
		t, own := token[row+c.past]
		key, is := token[col]
		allowed, value := false, 0.0
		if col < f.Rows {
			allowed, value = c.allowed(line, row, col)
		} else {
			key, is = c.n+col-f.Rows, true
		}
		if !allowed {
			value = 0
		}
		if own && is && (line == f.Line || c.fed == nil) {
			allowed = g.seen(line, t, key)
		}
		switch {
		case c.bools && allowed != c.negated:
			return 1
		case c.bools:
			return 0
		case allowed:
			return value
		}
		return denied
	})
}

// sees shows what a condition says.
func (c *cache) sees(id string, rank int, text string, seen func(line, t, key int) bool) {
	c.fault(fault{id: id, rank: rank, text: text, seen: func(line, t, at int) bool { return at < c.n && seen(line, t, at) }})
}

// without hides some of what the reference lets a token see.
func (c *cache) without(id string, rank int, text string, gone func(t, key int) bool) {
	c.sees(id, rank, text, func(line, t, key int) bool { return c.allows(line, t, key) && !gone(t, key) })
}

// held says what of a cache lies elsewhere.
type held struct {
	what         string
	keys, values bool
}

var halves = []held{{"keys and values", true, true}, {"keys", true, false}, {"values", false, true}}

// holds puts other rows into the slots of those for which a condition holds.
func (c *cache) holds(id string, rank int, text string, what held, is func(at int) bool, to func(at int) slot) {
	c.moves(fault{id: id, rank: rank, text: text}, what, c.f.slots(is, to))
}

// beside shows m keys and values of another one in front of those of the sequence, or after them.
func (c *cache) beside(id string, rank int, text string, k, m int, seen func(line, t, at int) bool) {
	slots := c.f.slots(func(int) bool { return false }, nil)
	for at := range m {
		slots = append(slots, slot{k, at})
	}
	c.moves(fault{id: id, rank: rank, text: text, more: m, seen: seen}, halves[0], slots)
}

func (c *cache) moves(g fault, what held, slots []slot) {
	if what.keys {
		g.k = func(w *writer, id program.ID) program.ID { return w.moved(c.f, id, id, c.kAxis, slots) }
	}
	if what.values {
		g.v = func(w *writer, id program.ID) program.ID { return w.moved(c.f, id, id, c.vAxis, slots) }
	}
	c.fault(g)
}

// chunks are forward passes that do not see what came before, or see what comes after.
func (c *cache) chunks() {
	const id = "state/chunk"
	before := func(_, key int) bool { return key < c.from }
	c.without(id, 0, "a forward pass does not see what earlier ones fed", before)
	if c.f.To-c.from < 2 {
		return
	}
	c.sees(id, 0, "the tokens of a forward pass see those that come after them in it", func(line, t, key int) bool { return c.allows(line, t, key) || c.f.feeds(key) })
	c.sees(id, 1, "the tokens of a forward pass see what comes after them in it, and nothing before it", func(_, _, key int) bool { return c.f.feeds(key) })
	c.sees(id, 1, "the mask of a forward pass counts from 0: its tokens see the first ones of the cache, as many as stand before them in it",
		func(_, t, key int) bool { return key <= t-c.from })
	c.without(id, 1, "the tokens of a forward pass see what earlier ones fed, and not each other", func(t, key int) bool { return !before(t, key) })
}

// hidden are tokens of the cache that are not seen.
func (c *cache) hidden() {
	const id = "state/slot"
	c.without(id, 0, "the last token that earlier forward passes fed is not seen: the cache is taken to be one shorter", func(_, key int) bool { return key == c.from-1 })
	c.without(id, 1, "the first token of the cache is not seen", func(_, key int) bool { return key == 0 })
	c.without(id, 0, "no token sees itself: it is written after what is read", func(t, key int) bool { return key == t })
	if c.from > 2 {
		c.without(id, 2, "the last two tokens that earlier forward passes fed are not seen", func(_, key int) bool { return key == c.from-1 || key == c.from-2 })
	}
}

// elsewhere are keys and values that lie in other slots.
func (c *cache) elsewhere() {
	const id = "state/slot"
	cached := func(at int) bool { return at < c.from }
	own := func(at int) bool { return at >= c.from }
	last := func(at int) bool { return at == c.from-1 }
	first := func(at int) bool { return at == 0 }
	of := func(by func(at int) int) func(at int) slot { return func(at int) slot { return slot{at: by(at)} } }
	begin := of(func(int) int { return c.from })
	zero := func(int) slot { return empty }
	for _, x := range []struct {
		text string
		of   func(at int) int
	}{
		{"lie a slot late: the first is there twice, the last is lost", func(at int) int { return max(at-1, 0) }},
		{"lie a slot early: the first is lost, the last is there twice", func(at int) int { return min(at+1, c.from-1) }},
		{"lie a slot late: the last is the first", func(at int) int { return (at - 1 + c.from) % c.from }},
	} {
		for _, h := range halves {
			c.holds(id, 0, text("the %s of earlier forward passes %s", h.what, x.text), h, cached, of(x.of))
		}
	}
	for _, x := range []struct {
		rank int
		text string
		is   func(at int) bool
		to   func(at int) slot
	}{
		{1, "the keys and values of earlier forward passes lie a slot late, with zeros in the first", cached, func(at int) slot {
			if at == 0 {
				return empty
			}
			return slot{at: at - 1}
		}},
		{1, "the slot of the last token that earlier forward passes fed holds zeros", last, zero},
		{1, "the first slot of the cache holds zeros", first, zero},
		{1, "the slots of the forward pass's own tokens hold zeros: they are not written before they are read", own, zero},
		{1, "the first token of the forward pass is written over the last one before it", last, begin},
		{1, "the first token of the forward pass is written over the first one of the cache", first, begin},
		{1, "the last token that earlier forward passes fed is written over the first one of the cache", first, of(func(int) int { return c.from - 1 })},
		{2, "the keys and values of earlier forward passes lie in turned order", cached, of(func(at int) int { return c.from - 1 - at })},
	} {
		c.holds(id, x.rank, x.text, halves[0], x.is, x.to)
	}
}

// windows are other sliding windows, seen only where one is crossed.
func (c *cache) windows() {
	const id = "state/window"
	w := c.window()
	if w == 0 {
		return
	}
	add := func(rank, size int, text string) {
		c.sees(id, rank, text, func(_, t, key int) bool { return key <= t && t-key < size })
	}
	add(0, c.n, "the sliding window is not there: the cache keeps what lies in front of it")
	for k, size := range []int{w + 1, w - 1, w + 2, w - 2, 2 * w, w / 2} {
		if size > 0 {
			add(k/4, size, text("the sliding window is %d tokens and not %d", size, w))
		}
	}
	if c.from > 0 {
		c.holds(id, 2, "the ring of the sliding window is written one slot further on", halves[0],
			func(at int) bool { return at >= w }, func(at int) slot { return slot{at: at - 1} })
	}
}

// window is how many tokens each sees, its own the last; 0 where it sees all before it, or others.
func (c *cache) window() (size int) {
	for key := range c.n {
		if c.allows(c.f.Line, c.n-1, key) {
			size++
		}
	}
	for t := c.from; t < c.n; t++ {
		for key := range c.n {
			if size == c.n || c.allows(c.f.Line, t, key) != (key <= t && t-key < size) {
				return 0
			}
		}
	}
	return size
}

// sequences are keys and values of another sequence of the batch.
func (c *cache) sequences() {
	n := c.f.Lines
	add := func(whose string, of func(line int) int) {
		lines := func(w *writer, id program.ID) program.ID { return w.lines(id, n, of) }
		c.fault(fault{id: "state/sequence", rank: 1, text: "each sequence has the keys and values of " + whose, k: lines, v: lines})
		c.fault(fault{id: "state/sequence", rank: 1, text: "each sequence has the values of " + whose, v: lines})
	}
	if n < 2 {
		return
	}
	add("the first sequence", func(int) int { return 0 })
	add("the next sequence", func(line int) int { return (line + 1) % n })
	add("the sequence before", func(line int) int { return (line + n - 1) % n })
	for b := range min(n, mostLines) {
		for a := range b {
			if n > 2 {
				add(text("itself, but sequences %d and %d have each other's", a, b), func(line int) int {
					if line == a || line == b {
						return a + b - line
					}
					return line
				})
			}
		}
	}
}

// masks are what tokens of one pass see.
func (c *cache) masks() {
	const mask, causal = "attention/mask", "attention/causal"
	c.sees(causal, 0, "tokens see those before them and themselves alone", func(_, t, key int) bool { return key <= t })
	c.sees(causal, 1, "tokens see those before them, and not themselves", func(_, t, key int) bool { return key < t })
	c.sees(causal, 1, "tokens see those before them, themselves and the next one", func(_, t, key int) bool { return key <= t+1 })
	c.sees(causal, 0, "all tokens see all", func(_, _, _ int) bool { return true })
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100} {
		c.fault(fault{id: mask, rank: 2, text: text("what the mask hides gets −%g more, which hides too little", x), less: x, seen: c.allows})
	}
	c.sees(mask, 1, "the mask is inverted", func(line, t, key int) bool { return !c.allows(line, t, key) })
	c.without("attention/anchor-missing", 1, "the first token is seen by itself alone", func(t, key int) bool { return key == 0 && t > 0 })
	if c.window() > 0 || c.from < c.n-1 && c.allows(c.f.Line, c.from, c.n-1) {
		return
	}
	for size := 1; size < min(c.n, mostWindow); size++ {
		c.without(mask, 3, text("tokens see the last %d alone", size), func(t, key int) bool { return t-key >= size })
	}
}

// foreign are keys and values of another sequence, or of the run before.
func (c *cache) foreign(k int, o Other) {
	stale := o.ID == "state/stale"
	whose := "of " + o.Text
	if stale {
		whose = "that " + o.Text + " left there"
	}
	take := func(rank int, text string, what held, from, to int) {
		c.holds(o.ID, rank, text+" "+whose, what, func(at int) bool { return at >= from && at < min(to, o.Len, o.Cached) },
			func(at int) slot { return slot{k, at} })
	}
	for i, h := range halves {
		if c.from > 0 {
			take(min(i, 1), text("the %s of earlier tokens are those", h.what), h, 0, c.from)
		}
	}
	for _, m := range []int{1, 2, 4} {
		if m < c.from {
			take(1, text("the first %d slots have the keys and values", m), halves[0], 0, m)
			take(1, text("the last %d slots in front of the forward pass have the keys and values", m), halves[0], c.from-m, c.from)
		}
	}
	what := "the keys and values of " + o.Text
	c.beside(o.ID, 1, what+" are seen, too", k, o.Len, func(line, t, at int) bool { return at >= c.n || c.allows(line, t, at) })
	if stale {
		c.beside(o.ID, 1, what+" that lie after the sequence's own are seen, too", k, o.Len, func(line, t, at int) bool {
			return at >= c.n && at-c.n > t || at < c.n && c.allows(line, t, at)
		})
	}
}

// padding are keys and values of padding that are seen.
func (c *cache) padding(k int, o Other) {
	m, w := o.Len, c.window()
	causal := !c.allows(c.f.Line, c.from, c.n-1)
	add := func(rank int, text string, seen func(line, t, at int) bool) { c.beside(o.ID, rank, text, k, m, seen) }
	add(0, "the padding is seen", func(line, t, at int) bool {
		if at >= c.n && o.Left { // padding stands in front of the tokens, as far as a window reaches
			return w == 0 || t+m-(at-c.n) < w
		}
		return at >= c.n && !causal || at < c.n && c.allows(line, t, at)
	})
	add(1, "the mask hides as many tokens on the other side, and shows the padding", func(line, t, at int) bool {
		if o.Left {
			return at >= c.n || c.allows(line, t, at) && at < c.n-m
		}
		return at < c.n && c.allows(line, t, at) && at >= m
	})
	add(1, "one token of padding is seen", func(line, t, at int) bool {
		return at == c.n+m-1 && o.Left || at == c.n && !o.Left || at < c.n && c.allows(line, t, at)
	})
}
