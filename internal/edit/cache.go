package edit

import "fmt"

// cache lists what attention may look at that is wrong: what a mask shows, and what a cache of keys and values holds.
type cache struct {
	f       *Fed
	n, from int
	allows  func(line, t, key int) bool // what the reference lets a token see
	out     []fault
}

// caches appends the faults of an attention.
func (s *site) caches(a attention) {
	if a.keys > mostKeys || a.queries < 1 {
		return
	}
	f := s.fed
	if f == nil {
		f = onePass(a.keys)
		f.Lines, f.From = s.linesOf(a), a.behind()
	}
	was := s.maskOf(f, a)
	c := &cache{f: f, n: len(f.At), from: f.From, allows: func(line, t, key int) bool {
		is, _ := was(line, f.At[t]-a.behind(), f.At[key])
		return is
	}}
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
	for k, o := range f.Others {
		if o.ID == "mask/padding" {
			c.padding(1+k, o)
		} else {
			c.foreign(1+k, o)
		}
	}
	for _, g := range c.out {
		if name, ok := inSteps[g.id]; ok && s.fed == nil {
			g.id = name
		}
		if s.fed == nil {
			g.rank++
		}
		s.cached(f, a, g)
	}
}

// inSteps are names of faults in runs that are not laid out, where these are others.
var inSteps = map[string]string{"state/chunk": "attention/mask", "state/slot": "state/stale", "state/window": "attention/mask"}

func (c *cache) sees(id string, rank int, text string, seen func(line, t, key int) bool) {
	c.out = append(c.out, fault{id: id, rank: rank, text: text, seen: func(line, t, at int) bool { return at < c.n && seen(line, t, at) }})
}

// without hides some of what the reference lets a token see.
func (c *cache) without(id string, rank int, text string, gone func(t, key int) bool) {
	c.sees(id, rank, text, func(line, t, key int) bool { return c.allows(line, t, key) && !gone(t, key) })
}

// holds puts other rows into the slots in front of the forward pass, where a condition holds: keys, values, or both.
func (c *cache) holds(id string, rank int, text string, keys, values bool, is func(at int) bool, to func(at int) slot) {
	slots := c.f.slots(func(at int) slot {
		if is(at) {
			return to(at)
		}
		return slot{at: at}
	})
	g := fault{id: id, rank: rank, text: text}
	if keys {
		g.k = slots
	}
	if values {
		g.v = slots
	}
	c.out = append(c.out, g)
}

func (c *cache) before(at int) bool { return at < c.from }

// chunks are forward passes that do not see what came before, or see what comes after.
func (c *cache) chunks() {
	const id = "state/chunk"
	c.without(id, 0, "a forward pass does not see what earlier ones fed", func(_, key int) bool { return key < c.from })
	if c.f.To-c.from < 2 {
		return
	}
	own := func(key int) bool { return key >= c.from && key < c.f.To }
	c.sees(id, 0, "the tokens of a forward pass see those that come after them in it", func(line, t, key int) bool { return c.allows(line, t, key) || own(key) })
	c.sees(id, 1, "the tokens of a forward pass see what comes after them in it, and nothing before it", func(_, _, key int) bool { return own(key) })
	c.sees(id, 1, "the mask of a forward pass counts from 0: its tokens see the first ones of the cache, as many as stand before them in it",
		func(_, t, key int) bool { return key <= t-c.from })
	c.without(id, 1, "the tokens of a forward pass see what earlier ones fed, and not each other", func(_, key int) bool { return key >= c.from })
}

// hidden are tokens of the cache that are not seen.
func (c *cache) hidden() {
	const id = "state/slot"
	c.without(id, 0, "the last token that earlier forward passes fed is not seen: the cache is taken to be one shorter", func(_, key int) bool { return key == c.from-1 })
	c.without(id, 1, "the first token of the cache is not seen", func(_, key int) bool { return key == 0 })
	c.without(id, 0, "no token sees itself: it is written behind what is read", func(t, key int) bool { return key == t })
	if c.from > 2 {
		c.without(id, 2, "the last two tokens that earlier forward passes fed are not seen", func(_, key int) bool { return key == c.from-1 || key == c.from-2 })
	}
}

// elsewhere are keys and values that lie in other slots.
func (c *cache) elsewhere() {
	put := func(rank int, text string, is func(at int) bool, to func(at int) slot) {
		c.holds("state/slot", rank, text, true, true, is, to)
	}
	of := func(by func(at int) int) func(at int) slot { return func(at int) slot { return slot{at: by(at)} } }
	last := func(at int) bool { return at == c.from-1 }
	first := func(at int) bool { return at == 0 }
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
		put(0, "the keys and values of earlier forward passes "+x.text, c.before, of(x.of))
		c.holds("state/slot", 0, "the keys of earlier forward passes "+x.text, true, false, c.before, of(x.of))
		c.holds("state/slot", 0, "the values of earlier forward passes "+x.text, false, true, c.before, of(x.of))
	}
	put(1, "the keys and values of earlier forward passes lie a slot late, with zeros in the first", c.before, func(at int) slot {
		if at == 0 {
			return empty
		}
		return slot{at: at - 1}
	})
	put(1, "the slot of the last token that earlier forward passes fed holds zeros", last, zero)
	put(1, "the first slot of the cache holds zeros", first, zero)
	put(1, "the slots of the forward pass's own tokens hold zeros: they are not written before they are read", func(at int) bool { return at >= c.from }, zero)
	put(1, "the first token of the forward pass is written over the last one before it", last, begin)
	put(1, "the first token of the forward pass is written over the first one of the cache", first, begin)
	put(1, "the last token that earlier forward passes fed is written over the first one of the cache", first, of(func(int) int { return c.from - 1 }))
	put(2, "the keys and values of earlier forward passes lie in turned order", c.before, of(func(at int) int { return c.from - 1 - at }))
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
			add(k/4, size, fmt.Sprintf("the sliding window is %d tokens and not %d", size, w))
		}
	}
	if c.from > 0 {
		c.holds(id, 2, "the ring of the sliding window is written one slot further on", true, true,
			func(at int) bool { return at >= w }, func(at int) slot { return slot{at: at - 1} })
	}
}

// window is how many tokens each sees, its own the last; 0 where it sees all before it, or others.
func (c *cache) window() int {
	w := 0
	for t := c.from; t < c.n; t++ {
		seen := 0
		for key := range c.n {
			switch is := c.allows(c.f.Line, t, key); {
			case is && key > t:
				return 0
			case is:
				seen++
			}
		}
		if seen < t+1 {
			w = max(w, seen)
		}
	}
	for t := c.from; t < c.n && w > 0; t++ {
		for key := range t + 1 {
			if c.allows(c.f.Line, t, key) != (t-key < w) {
				return 0
			}
		}
	}
	return w
}

// sequences are keys and values of another sequence of the batch.
func (c *cache) sequences() {
	add := func(whose string, of func(line int) int) {
		const id = "state/sequence"
		c.out = append(c.out, fault{id: id, rank: 1, text: "each sequence has the keys and values of " + whose, kOf: of, vOf: of},
			fault{id: id, rank: 1, text: "each sequence has the values of " + whose, vOf: of})
	}
	n := c.f.Lines
	if n < 2 {
		return
	}
	add("the first sequence", func(int) int { return 0 })
	add("the next sequence", func(line int) int { return (line + 1) % n })
	add("the sequence before", func(line int) int { return (line + n - 1) % n })
	for b := range min(n, mostLines) {
		for a := range b {
			if n > 2 {
				add(fmt.Sprintf("itself, but sequences %d and %d have each other's", a, b), func(line int) int {
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
		c.out = append(c.out, fault{id: mask, rank: 2, text: fmt.Sprintf("what the mask hides gets −%g more, which hides too little", x), hides: x, seen: c.allows})
	}
	c.sees(mask, 1, "the mask is inverted", func(line, t, key int) bool { return !c.allows(line, t, key) })
	c.without("attention/anchor-missing", 1, "the first token is seen by itself alone", func(t, key int) bool { return key == 0 && t > 0 })
	if c.window() > 0 || c.from < c.n-1 && c.allows(c.f.Line, c.from, c.n-1) {
		return
	}
	for size := 1; size < min(c.n, mostWindow); size++ {
		c.without(mask, 3, fmt.Sprintf("tokens see the last %d alone", size), func(t, key int) bool { return t-key >= size })
	}
}

// foreign are keys and values of another sequence, or of the run before.
func (c *cache) foreign(k int, o Other) {
	whose := "of " + o.Text
	if o.ID == "state/stale" {
		whose = "that " + o.Text + " left there"
	}
	take := func(rank int, text string, from, to int, keys, values bool) {
		c.holds(o.ID, rank, text+" "+whose, keys, values, func(at int) bool { return at >= from && at < min(to, o.Len, o.Cached) },
			func(at int) slot { return slot{k, at} })
	}
	if c.from > 0 {
		take(0, "the keys and values of earlier tokens are those", 0, c.from, true, true)
		take(1, "the keys of earlier tokens are those", 0, c.from, true, false)
		take(1, "the values of earlier tokens are those", 0, c.from, false, true)
		for _, m := range []int{1, 2, 4} {
			if m < c.from {
				take(1, fmt.Sprintf("the first %d slots have the keys and values", m), 0, m, true, true)
				take(1, fmt.Sprintf("the last %d slots in front of the forward pass have the keys and values", m), c.from-m, c.from, true, true)
			}
		}
	}
	what := "the keys and values of " + o.Text
	c.beside(o.ID, 1, what+" are seen, too", k, o.Len, func(line, t, at int) bool { return at >= c.n || c.allows(line, t, at) })
	if o.ID == "state/stale" {
		c.beside(o.ID, 1, what+" that lie behind the sequence's own are seen, too", k, o.Len, func(line, t, at int) bool {
			return at >= c.n && at-c.n > t || at < c.n && c.allows(line, t, at)
		})
	}
}

// beside are keys and values that are seen in front of those of the sequence, or after them.
func (c *cache) beside(id string, rank int, text string, k, m int, seen func(line, t, at int) bool) {
	slots := c.f.slots(func(at int) slot { return slot{at: at} })
	for at := range m {
		slots = append(slots, slot{k, at})
	}
	c.out = append(c.out, fault{id: id, rank: rank, text: text, k: slots, v: slots, seen: seen})
}

// padding are keys and values of padding that are seen.
func (c *cache) padding(k int, o Other) {
	m, w := o.Len, c.window()
	causal := !c.allows(c.f.Line, c.from, c.n-1)
	c.beside(o.ID, 0, "the padding is seen", k, m, func(line, t, at int) bool {
		if at >= c.n && o.Left { // padding stands in front of the tokens, as far as a window reaches
			return w == 0 || t+m-(at-c.n) < w
		}
		return at >= c.n && !causal || at < c.n && c.allows(line, t, at)
	})
	c.beside(o.ID, 1, "the mask hides as many tokens on the other side, and shows the padding", k, m, func(line, t, at int) bool {
		if o.Left {
			return at >= c.n || c.allows(line, t, at) && at < c.n-m
		}
		return at < c.n && c.allows(line, t, at) && at >= m
	})
	c.beside(o.ID, 1, "one token of padding is seen", k, m, func(line, t, at int) bool {
		return at == c.n+m-1 && o.Left || at == c.n && !o.Left || at < c.n && c.allows(line, t, at)
	})
}
