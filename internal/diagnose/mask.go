package diagnose

import (
	"strconv"

	"github.com/goparity/goparity/tensor"
)

// maskRules is what a query may look at in the reference, taken apart.
type maskRules struct {
	allow  func(b, t, s int) bool    // nil: everything
	add    func(b, t, s int) float64 // what is added to the scores beside; nil: nothing
	causal bool                      // no query looks ahead
	window int                       // and none further back than this many tokens, itself included; 0 for no limit
	pad    func(b, s int) bool       // keys that nobody sees; nil for none
}

// masks lists what the reference may do: nothing, causal, and every earlier tensor that may be a mask, with and without causal.
func (g *graph) masks(v *value, o *attention) []*maskRules {
	causal := func(_, t, s int) bool { return s <= t }
	out := []*maskRules{{allow: causal}, {}}
	if w, ok := g.s.Config.Int("sliding_window"); ok && w < o.t {
		out = append(out, &maskRules{allow: func(_, t, s int) bool { return s <= t && t-s < w }})
	}
	heads := 0
	if h, ok := g.s.Config.Int("num_attention_heads"); ok {
		heads = h
	}
	add := func(m *maskRules) {
		allow := m.allow
		with := &maskRules{add: m.add, allow: func(b, t, s int) bool { return s <= t && (allow == nil || allow(b, t, s)) }}
		out = append(out, m, with)
	}
	const limit = 6
	n := 0
	for i := len(g.values) - 1; i >= 0 && n < limit; i-- { // the nearest first
		if x := g.values[i]; x.at < v.at && x != g.target && x != v {
			if m := readMask(x.golden, o.b, o.t, heads); m != nil {
				add(m)
				n++
			}
		}
	}
	if pad := g.s.Target.PadRows; len(pad) == o.b*o.t {
		add(&maskRules{allow: func(b, _, s int) bool { return !pad[b*o.t+s] }})
	}
	for _, m := range out {
		m.takeApart(o.b, o.t)
	}
	return out
}

// windows lists causal masks with a window, for a reference that did not record its mask.
func windows(o *attention) []*maskRules {
	const limit = 128
	var out []*maskRules
	for w := 2; w < min(o.t, limit); w++ {
		m := &maskRules{allow: func(_, t, s int) bool { return s <= t && t-s < w }}
		m.takeApart(o.b, o.t)
		out = append(out, m)
	}
	return out
}

// maskMax is the largest mask that is read.
const maskMax = 1 << 22

// readMask reads a tensor as a mask: numbers to add, of which the lowest means no; or 0 for no and 1 for yes. nil if it cannot be one.
func readMask(t *tensor.Tensor, b, n, heads int) *maskRules {
	shape := t.Shape()
	if len(shape) == 0 || shape[len(shape)-1] != n || t.Len() > maskMax {
		return nil
	}
	var at func(bi, q, k int) int
	switch l := t.Len(); {
	case l == b*n && (len(shape) == 2 || len(shape) == 4 && shape[1] == 1 && shape[2] == 1):
		at = func(bi, _, k int) int { return bi*n + k }
	case l == n*n && len(shape) >= 2 && shape[len(shape)-2] == n:
		at = func(_, q, k int) int { return q*n + k }
	case l == b*n*n && len(shape) >= 3 && shape[len(shape)-2] == n:
		at = func(bi, q, k int) int { return (bi*n+q)*n + k }
	case heads > 1 && l == b*heads*n*n && len(shape) == 4 && shape[1] == heads:
		at = func(bi, q, k int) int { return (bi*heads*n+q)*n + k } // the same for all heads, or the control fails
	default:
		return nil
	}
	x := read(t, t.Len(), []int{0})
	low, zeros, ones, others := 0.0, 0, 0, 0
	for _, v := range x {
		switch {
		case v == 0:
			zeros++
		case v == 1:
			ones++
		default:
			others++
		}
		low = min(low, v)
	}
	const no = -1e3
	switch {
	case low <= no && ones == 0:
		return &maskRules{allow: func(b, t, s int) bool { return x[at(b, t, s)] > no }}
	case others == 0 && ones > 0 && zeros > 0:
		return &maskRules{allow: func(b, t, s int) bool { return x[at(b, t, s)] == 1 }}
	case t.DType().IsFloat() && others > 0 && low > no && t.Len() >= n*n:
		return &maskRules{add: func(b, t, s int) float64 { return x[at(b, t, s)] }} // ALiBi, relative positions
	}
	return nil
}

// takeApart finds the causal part, the window and the padding.
func (m *maskRules) takeApart(b, n int) {
	const limit = 1024
	if m.allow == nil || n > limit {
		m.causal = m.allow != nil && !m.allow(0, 0, n-1)
		return
	}
	m.causal = true
	padded := make([]bool, b*n)
	some := false
	for i := range b {
		for s := range n {
			padded[i*n+s] = true
			for t := range n {
				ok := m.allow(i, t, s)
				if t < s && ok {
					m.causal = false
				}
				if ok {
					padded[i*n+s] = false
				}
			}
			some = some || padded[i*n+s]
		}
	}
	if some {
		m.pad = func(b, s int) bool { return padded[b*n+s] }
	}
	if !m.causal {
		return
	}
	for i := range b {
		for t := range n {
			for s := range t + 1 {
				if !padded[i*n+s] && !m.allow(i, t, s) {
					if m.window == 0 || t-s < m.window {
						m.window = t - s
					}
				}
			}
		}
	}
}

// faults lists other rules. Each is right where the reference has not got what it changes.
func (m *maskRules) faults(b, n int) []maskFault {
	pad := m.pad
	seen := func(b, s int) bool { return pad == nil || !pad(b, s) }
	near := func(t, s int) bool { return m.window == 0 || t-s < m.window }
	ahead := func(t, s int) bool { return !m.causal || s <= t }
	var out []maskFault
	rule := func(id, text string, allow func(b, t, s int) bool) {
		out = append(out, maskFault{id: id, text: text, change: func(s *setting) { s.allow = allow }})
	}
	if m.causal {
		rule("attention/causal", "the causal mask is missing: every token sees every other", func(b, t, s int) bool { return seen(b, s) && (s > t || near(t, s)) })
		rule("attention/causal", "the causal mask is off by one: no token sees itself", func(b, t, s int) bool { return seen(b, s) && s < t && near(t, s) })
		rule("attention/causal", "the causal mask is off by one: no token but the first sees itself", func(b, t, s int) bool {
			return seen(b, s) && (s < t || t == 0 && s == 0) && near(t, s)
		})
		rule("attention/causal", "the causal mask is off by one: each token sees the next", func(b, t, s int) bool { return seen(b, s) && s <= t+1 && near(t, s) })
		rule("attention/causal", "the causal mask is off by two: each token sees the next two", func(b, t, s int) bool { return seen(b, s) && s <= t+2 && near(t, s) })
		rule("attention/causal", "the causal mask is off by two: no token sees itself and the one before", func(b, t, s int) bool { return seen(b, s) && s <= t-2 && near(t, s) })
		rule("attention/causal", "the causal mask is turned round: tokens see what follows", func(b, t, s int) bool { return seen(b, s) && s >= t })
		rule("attention/causal", "the causal mask is turned round: tokens see only what follows", func(b, t, s int) bool { return seen(b, s) && s > t })
		if m.window > 0 {
			rule("attention/mask", "the sliding window is missing", func(b, t, s int) bool { return seen(b, s) && s <= t })
		}
		const limit = 64
		for w := 1; w < min(n, limit); w++ {
			if w != m.window {
				rule("attention/mask", windowText(m.window, w), func(b, t, s int) bool { return seen(b, s) && s <= t && t-s < w })
			}
		}
		for w := 2 * limit; w < n; w *= 2 {
			rule("attention/mask", windowText(m.window, w), func(b, t, s int) bool { return seen(b, s) && s <= t && t-s < w })
		}
	} else {
		rule("attention/causal", "a causal mask, which the reference has not got", func(b, t, s int) bool { return seen(b, s) && s <= t })
	}
	rule("attention/anchor-missing", "nobody sees the first token", func(b, t, s int) bool {
		return (s > 0 || t == 0) && (m.allow == nil || m.allow(b, t, s))
	})
	rule("attention/anchor-missing", "nobody sees the first token, nor does it itself", func(b, t, s int) bool {
		return s > 0 && (m.allow == nil || m.allow(b, t, s))
	})
	if pad != nil {
		rule("attention/mask", "the padding is not masked", func(_, t, s int) bool { return ahead(t, s) && near(t, s) })
		rule("attention/mask", "the padding mask is inverted: only padding is seen", func(b, t, s int) bool { return pad(b, s) && ahead(t, s) && near(t, s) })
		rule("attention/mask", "the padding mask is that of the queries, not of the keys", func(b, t, s int) bool { return !pad(b, t) && ahead(t, s) && near(t, s) })
		rule("attention/mask", "all sequences have the padding mask of the first", func(_, t, s int) bool { return !pad(0, s) && ahead(t, s) && near(t, s) })
		rule("attention/mask", "all sequences have the padding mask of the last", func(_, t, s int) bool { return !pad(b-1, s) && ahead(t, s) && near(t, s) })
		rule("attention/mask", "the padding mask belongs to the sequence before", func(i, t, s int) bool { return !pad((i+b-1)%b, s) && ahead(t, s) && near(t, s) })
		rule("attention/mask", "the padding mask is a token too short", func(b, t, s int) bool {
			return (!pad(b, s) || s > 0 && !pad(b, s-1)) && ahead(t, s) && near(t, s)
		})
		rule("attention/mask", "the padding mask is a token too long", func(b, t, s int) bool {
			return !pad(b, s) && (s+1 == n || !pad(b, s+1)) && ahead(t, s) && near(t, s)
		})
		if m.causal {
			rule("attention/mask", "there is no mask at all, neither for padding nor causal", nil)
		}
	}
	if m.allow != nil {
		id := "attention/mask"
		if m.causal && pad == nil {
			id = "attention/causal"
		}
		rule("attention/mask", "the mask is inverted: what may be seen is hidden", func(b, t, s int) bool { return !m.allow(b, t, s) })
		for _, low := range []float64{1, 10, 100} {
			out = append(out, maskFault{id: id, text: "the mask adds " + trim(-low) + " and not the lowest number", change: func(s *setting) {
				s.allow = nil
				s.add = m.adding(func(allowed bool) float64 {
					if allowed {
						return 0
					}
					return -low
				})
			}})
		}
		out = append(out, maskFault{id: id, text: "the mask is added as ones and zeros", change: func(s *setting) {
			s.allow = nil
			s.add = m.adding(func(allowed bool) float64 {
				if allowed {
					return 1
				}
				return 0
			})
		}}, maskFault{id: id, text: "the mask is applied after the softmax", change: func(s *setting) { s.after = true }})
	}
	if m.add != nil {
		out = append(out, maskFault{id: "attention/mask", text: "the bias of the scores is missing", change: func(s *setting) { s.add = nil }},
			maskFault{id: "attention/mask", text: "the bias of the scores has the other sign", change: func(s *setting) {
				s.add = func(b, t, k int) float64 { return -m.add(b, t, k) }
			}})
	}
	return out
}

type maskFault struct {
	id, text string
	change   func(s *setting)
}

func (m *maskRules) adding(f func(allowed bool) float64) func(b, t, s int) float64 {
	return func(b, t, s int) float64 {
		x := f(m.allow(b, t, s))
		if m.add != nil {
			x += m.add(b, t, s)
		}
		return x
	}
}

func windowText(from, to int) string {
	if from == 0 {
		return "a sliding window of " + trim(float64(to)) + " tokens"
	}
	return "the sliding window is " + trim(float64(to)) + " tokens and not " + trim(float64(from))
}

func trim(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
