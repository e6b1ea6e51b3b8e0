package edit

import "fmt"

// caches lists what attention may look at that is wrong: what a mask shows, and what a cache of keys and values holds.
func (s *site) caches(a attention) {
	if a.keys > mostKeys || a.queries < 1 {
		return
	}
	f := s.fed
	if f == nil {
		f = onePass(a.keys)
		f.Lines = s.linesOf(a)
		f.From = a.behind()
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
			continue
		}
		c.foreign(1+k, o)
	}
	for _, g := range c.out {
		if s.fed == nil {
			g.id, g.rank = inSteps[g.id], g.rank+1
		}
		s.cached(f, a, g)
	}
}

// inSteps are the names of faults in runs that are not laid out.
var inSteps = map[string]string{"state/chunk": "attention/mask", "state/slot": "state/stale", "state/window": "attention/mask",
	"state/sequence": "state/sequence", "attention/mask": "attention/mask", "attention/causal": "attention/causal", "attention/anchor-missing": "attention/anchor-missing"}

// cache lists faults of one.
type cache struct {
	f       *Fed
	n, from int
	allows  func(line, t, key int) bool // what the reference lets a token see
	out     []fault
}

func (c *cache) sees(id string, rank int, text string, seen func(line, t, key int) bool) {
	c.out = append(c.out, fault{id: id, rank: rank, text: text, seen: func(line, t, at int) bool { return at < c.n && seen(line, t, at) }})
}

// holds puts other rows into the slots in front of the forward pass: keys, values, or both.
func (c *cache) holds(id string, rank int, text string, keys, values bool, of func(at int) slot) {
	slots := make([]slot, c.n)
	for at := range slots {
		slots[at] = of(at)
	}
	g := fault{id: id, rank: rank, text: text}
	if keys {
		g.k = slots
	}
	if values {
		g.v = slots
	}
	c.out = append(c.out, g)
}

// chunks are forward passes that do not see what came before, or see what comes after.
func (c *cache) chunks() {
	const id = "state/chunk"
	c.sees(id, 0, "a forward pass does not see what earlier ones fed", func(line, t, key int) bool { return c.allows(line, t, key) && key >= c.from })
	if c.f.To-c.from < 2 {
		return
	}
	own := func(key int) bool { return key >= c.from && key < c.f.To }
	c.sees(id, 0, "the tokens of a forward pass see those that come after them in it", func(line, t, key int) bool { return c.allows(line, t, key) || own(key) })
	c.sees(id, 1, "the tokens of a forward pass see what comes after them in it, and nothing before it", func(line, _, key int) bool { return own(key) })
	c.sees(id, 1, "the mask of a forward pass counts from 0: its tokens see the first ones of the cache, as many as stand before them in it",
		func(line, t, key int) bool { return key <= t-c.from })
	c.sees(id, 1, "the tokens of a forward pass see what earlier ones fed, and not each other", func(line, t, key int) bool { return c.allows(line, t, key) && key < c.from })
}

// hidden are tokens of the cache that are not seen.
func (c *cache) hidden() {
	drop := func(rank int, text string, gone func(line, t, key int) bool) {
		c.sees("state/slot", rank, text, func(line, t, key int) bool { return c.allows(line, t, key) && !gone(line, t, key) })
	}
	drop(0, "the last token that earlier forward passes fed is not seen: the cache is taken to be one shorter", func(line, _, key int) bool { return key == c.from-1 })
	drop(1, "the first token of the cache is not seen", func(line, _, key int) bool { return key == 0 })
	drop(0, "no token sees itself: it is written behind what is read", func(line, t, key int) bool { return key == t })
	if c.from > 2 {
		drop(2, "the last two tokens that earlier forward passes fed are not seen", func(line, _, key int) bool { return key == c.from-1 || key == c.from-2 })
	}
}

// elsewhere are keys and values that lie in other slots.
func (c *cache) elsewhere() {
	const id = "state/slot"
	put := func(rank int, text string, of func(at int) slot) { c.holds(id, rank, text, true, true, of) }
	from := func(is func(at int) bool, to func(at int) slot) func(at int) slot {
		return func(at int) slot {
			if is(at) {
				return to(at)
			}
			return slot{at: at}
		}
	}
	before := func(at int) bool { return at < c.from }
	last := func(at int) bool { return at == c.from-1 }
	first := func(at int) bool { return at == 0 }
	begin := func(int) slot { return slot{at: c.from} }
	zero := func(int) slot { return empty }
	late := from(before, func(at int) slot { return slot{at: max(at-1, 0)} })
	early := from(func(at int) bool { return at < c.from-1 }, func(at int) slot { return slot{at: at + 1} })
	roll := from(before, func(at int) slot { return slot{at: (at - 1 + c.from) % c.from} })
	for k, of := range []func(at int) slot{late, early, roll} {
		text := []string{"lie a slot late: the first is there twice, the last is lost", "lie a slot early: the first is lost, the last is there twice",
			"lie a slot late: the last is the first"}[k]
		put(0, "the keys and values of earlier forward passes "+text, of)
		c.holds(id, 0, "the keys of earlier forward passes "+text, true, false, of)
		c.holds(id, 0, "the values of earlier forward passes "+text, false, true, of)
	}
	put(1, "the keys and values of earlier forward passes lie a slot late, with zeros in the first", func(at int) slot {
		if at == 0 {
			return empty
		}
		return late(at)
	})
	put(1, "the slot of the last token that earlier forward passes fed holds zeros", from(last, zero))
	put(1, "the first slot of the cache holds zeros", from(first, zero))
	put(1, "the slots of the forward pass's own tokens hold zeros: they are not written before they are read", from(func(at int) bool { return at >= c.from }, zero))
	put(1, "the first token of the forward pass is written over the last one before it", from(last, begin))
	put(1, "the first token of the forward pass is written over the first one of the cache", from(first, begin))
	put(1, "the last token that earlier forward passes fed is written over the first one of the cache", from(first, func(int) slot { return slot{at: c.from - 1} }))
	put(2, "the keys and values of earlier forward passes lie in turned order", from(before, func(at int) slot { return slot{at: c.from - 1 - at} }))
}

// windows are other sliding windows, seen only where one is crossed.
func (c *cache) windows() {
	id := "state/window"
	w := c.window()
	if w == 0 {
		return
	}
	add := func(rank, size int, text string) {
		c.sees(id, rank, text, func(line, t, key int) bool { return key <= t && t-key < size })
	}
	add(0, c.n, "the sliding window is not there: the cache keeps what lies in front of it")
	for k, size := range []int{w + 1, w - 1, w + 2, w - 2, 2 * w, w / 2} {
		if size > 0 {
			add(k/4, size, fmt.Sprintf("the sliding window is %d tokens and not %d", size, w))
		}
	}
	if c.from == 0 {
		return
	}
	c.holds(id, 2, "the ring of the sliding window is written one slot further on", true, true, func(at int) slot {
		if at >= w {
			return slot{at: at - 1}
		}
		return slot{at: at}
	})
}

// window is how many tokens each sees, its own the last; 0 where it sees all before it, or others.
func (c *cache) window() int {
	w, line := 0, c.f.Line
	for t := c.from; t < c.n; t++ {
		seen := 0
		for key := range c.n {
			switch is := c.allows(line, t, key); {
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
	for t := c.from; t < c.n; t++ {
		for key := range t + 1 {
			if w > 0 && c.allows(line, t, key) != (t-key < w) {
				return 0
			}
		}
	}
	return w
}

// sequences are keys and values of another sequence of the batch.
func (c *cache) sequences() {
	if c.f.Lines < 2 {
		return
	}
	add := func(whose string, of func(line int) int) {
		c.out = append(c.out, fault{id: "state/sequence", rank: 1, text: "each sequence has the keys and values of " + whose, of: of},
			fault{id: "state/sequence", rank: 1, text: "each sequence has the values of " + whose, of: of, values: true})
	}
	n := c.f.Lines
	add("the first sequence", func(int) int { return 0 })
	add("the next sequence", func(line int) int { return (line + 1) % n })
	add("the sequence before", func(line int) int { return (line + n - 1) % n })
	for b := range min(n, mostLines) {
		for a := range b {
			if n > 2 {
				add(fmt.Sprintf("itself, but sequences %d and %d have each other's", a, b), func(line int) int {
					switch line {
					case a:
						return b
					case b:
						return a
					}
					return line
				})
			}
		}
	}
}

// masks are what tokens of one pass see.
func (c *cache) masks() {
	const id = "attention/mask"
	c.sees("attention/causal", 0, "tokens see those before them and themselves alone", func(line, t, key int) bool { return key <= t })
	c.sees("attention/causal", 1, "tokens see those before them, and not themselves", func(line, t, key int) bool { return key < t })
	c.sees("attention/causal", 1, "tokens see those before them, themselves and the next one", func(line, t, key int) bool { return key <= t+1 })
	c.sees("attention/causal", 0, "all tokens see all", func(_, _, _ int) bool { return true })
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100} {
		c.out = append(c.out, fault{id: id, rank: 2, text: fmt.Sprintf("what the mask hides gets −%g more, which hides too little", x), hides: x, seen: c.allows})
	}
	c.sees(id, 1, "the mask is inverted", func(line, t, key int) bool { return !c.allows(line, t, key) })
	c.sees("attention/anchor-missing", 1, "the first token is seen by itself alone", func(line, t, key int) bool { return c.allows(line, t, key) && (key > 0 || t == 0) })
	if c.window() > 0 || c.from < c.n-1 && c.allows(c.f.Line, c.from, c.n-1) {
		return
	}
	for size := 1; size < min(c.n, mostWindow); size++ {
		c.sees(id, 3, fmt.Sprintf("tokens see the last %d alone", size), func(line, t, key int) bool { return c.allows(line, t, key) && t-key < size })
	}
}

// foreign are keys and values of another sequence, or of the run before.
func (c *cache) foreign(k int, o Other) {
	whose := "of " + o.Text
	if o.ID == "state/stale" {
		whose = "that " + o.Text + " left there"
	}
	take := func(rank int, text string, is func(at int) bool, keys, values bool) {
		c.holds(o.ID, rank, text+" "+whose, keys, values, func(at int) slot {
			if at < min(o.Len, o.Cached) && is(at) {
				return slot{k, at}
			}
			return slot{at: at}
		})
	}
	if c.from > 0 {
		before := func(at int) bool { return at < c.from }
		take(0, "the keys and values of earlier tokens are those", before, true, true)
		take(1, "the keys of earlier tokens are those", before, true, false)
		take(1, "the values of earlier tokens are those", before, false, true)
		for _, m := range []int{1, 2, 4} {
			if m < c.from {
				take(1, fmt.Sprintf("the first %d slots have the keys and values", m), func(at int) bool { return at < m }, true, true)
				take(1, fmt.Sprintf("the last %d slots in front of the forward pass have the keys and values", m),
					func(at int) bool { return at < c.from && at >= c.from-m }, true, true)
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
	slots := own(c.n)
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
