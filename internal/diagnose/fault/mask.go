package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// masks lists attention with other masks.
type masks struct {
	List
	o *rebuild.Attention
	*op.Mask
	unless string // the mask that the candidate was given, if it is not known
}

func masksOf(o *rebuild.Attention) *masks { return &masks{o: o, Mask: o.Mask, unless: o.Unseen()} }

func (m *masks) mask(text string, mask *op.Mask) {
	m.add(with(m.o, func(a *rebuild.Attention) { a.Mask = mask }), 0, "%s", text).Unless = m.unless
}

// rule appends a mask that allows something else.
func (m *masks) rule(text string, allow func(b, t, s int) bool) {
	m.mask(text, &op.Mask{Allow: allow, Add: m.Add})
}

// order appends a rule of tokens t and s, with the padding of the reference.
func (m *masks) order(text string, allow func(t, s int) bool) {
	m.rule(text, func(b, t, s int) bool { return (m.Padded == nil || !m.Padded(b, s)) && allow(t, s) })
}

// padding appends a rule of padding, with the order of the reference.
func (m *masks) padding(text string, allow func(b, t, s int) bool) {
	m.rule(text, func(b, t, s int) bool {
		return (!m.Causal || s <= t) && m.near(t, s) && allow(b, t, s)
	})
}

// near reports whether s lies in the window of t.
func (m *masks) near(t, s int) bool { return m.Window == 0 || t-s < m.Window }

func (m *masks) allows(b, t, s int) bool { return m.Allow == nil || m.Allow(b, t, s) }

// CausalMask is another order of what a token sees.
func CausalMask(o *rebuild.Attention) List {
	m := masksOf(o)
	if !m.Causal {
		m.order("a causal mask, which the reference has not got", func(t, s int) bool { return s <= t })
		return m.List
	}
	const one, two = "the causal mask is off by one: ", "the causal mask is off by two: "
	m.order("the causal mask is missing: every token sees every other",
		func(t, s int) bool { return s > t || m.near(t, s) })
	m.order(one+"no token sees itself", func(t, s int) bool { return s < t && m.near(t, s) })
	m.order(one+"no token but the first sees itself", func(t, s int) bool {
		return (s < t || t == 0 && s == 0) && m.near(t, s)
	})
	m.order(one+"each token sees the next", func(t, s int) bool { return s <= t+1 && m.near(t, s) })
	m.order(two+"each token sees the next two", func(t, s int) bool { return s <= t+2 && m.near(t, s) })
	m.order(two+"no token sees itself and the one before", func(t, s int) bool { return s <= t-2 && m.near(t, s) })
	const round = "the causal mask is turned round: "
	m.order(round+"tokens see what follows", func(t, s int) bool { return s >= t })
	m.order(round+"tokens see only what follows", func(t, s int) bool { return s > t })
	if m.Padded == nil {
		m.weak()
	}
	return m.List
}

// Mask is another window, padding or bias.
func Mask(o *rebuild.Attention) List {
	m, b, n := masksOf(o), o.Sequences, o.Tokens
	if m.Causal {
		m.windows(n)
	}
	if m.Padded != nil {
		m.padding("the padding is not masked", func(_, _, _ int) bool { return true })
		m.padding("the padding mask is inverted: only padding is seen", func(b, _, s int) bool { return m.Padded(b, s) })
		m.padding("the padding mask is that of the queries, not of the keys",
			func(b, t, _ int) bool { return !m.Padded(b, t) })
		m.padding("all sequences have the padding mask of the first", func(_, _, s int) bool { return !m.Padded(0, s) })
		m.padding("all sequences have the padding mask of the last", func(_, _, s int) bool { return !m.Padded(b-1, s) })
		m.padding("the padding mask belongs to the sequence before",
			func(i, _, s int) bool { return !m.Padded((i+b-1)%b, s) })
		m.padding("the padding mask is a token too short",
			func(b, _, s int) bool { return !m.Padded(b, s) || s > 0 && !m.Padded(b, s-1) })
		m.padding("the padding mask is a token too long",
			func(b, _, s int) bool { return !m.Padded(b, s) && (s+1 == n || !m.Padded(b, s+1)) })
		if m.Causal {
			m.rule("there is no mask at all, neither for padding nor causal", nil)
		}
	}
	if m.Allow != nil {
		m.rule("the mask is inverted: what may be seen is hidden",
			func(b, t, s int) bool { return !m.Allow(b, t, s) })
		if !m.Causal || m.Padded != nil {
			m.weak()
		}
	}
	if m.Add != nil {
		m.mask("the bias of the scores is missing", &op.Mask{Allow: m.Allow})
		m.mask("the bias of the scores has the other sign", &op.Mask{Allow: m.Allow,
			Add: func(b, t, k int) float64 { return -m.Add(b, t, k) }})
	}
	return m.List
}

// windows appends windows of other sizes than the reference's.
func (m *masks) windows(n int) {
	text := "a sliding window of %d tokens"
	if m.Window > 0 {
		m.order("the sliding window is missing", func(t, s int) bool { return s <= t })
		text = fmt.Sprintf("the sliding window is %%d tokens and not %d", m.Window)
	}
	sizes := op.Sequence(min(n, everyWindow))
	for w := 2 * everyWindow; w < n; w *= 2 {
		sizes = append(sizes, w)
	}
	for _, w := range sizes {
		if w > 0 && w != m.Window {
			m.order(fmt.Sprintf(text, w), func(t, s int) bool { return s <= t && t-s < w })
		}
	}
}

// weak appends masks that do not hide what they should.
func (m *masks) weak() {
	adding := func(text string, seen, hidden float64) {
		m.mask(text, &op.Mask{Add: func(b, t, s int) float64 {
			x := hidden
			if m.Allow(b, t, s) {
				x = seen
			}
			if m.Add != nil {
				x += m.Add(b, t, s)
			}
			return x
		}})
	}
	for _, low := range []float64{-1, -10, -100} {
		adding(fmt.Sprintf("the mask adds %g and not the lowest number", low), 0, low)
	}
	adding("the mask is added as ones and zeros", 1, 0)
	after := *m.Mask
	after.After = true
	m.mask("the mask is applied after the softmax", &after)
}

// Anchor is a mask that hides the first token, on which attention rests when nothing else matters.
func Anchor(o *rebuild.Attention) List {
	m := masksOf(o)
	m.rule("nobody sees the first token", func(b, t, s int) bool { return (s > 0 || t == 0) && m.allows(b, t, s) })
	m.rule("nobody sees the first token, nor does it itself", func(b, t, s int) bool { return s > 0 && m.allows(b, t, s) })
	return m.List
}
