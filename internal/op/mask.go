package op

import "github.com/goparity/goparity/tensor"

// Mask is what queries see of keys: query t and key s are tokens of sequence b.
type Mask struct {
	Allow func(b, t, s int) bool    // whether t sees s; nil for all
	Add   func(b, t, s int) float64 // is added to the score; nil for nothing
	After bool                      // the weights of hidden keys become 0 after the softmax

	// What Allow consists of, as TakeApart finds it.
	Causal bool                // no query looks ahead
	Window int                 // the last tokens that a query sees, itself included; 0 for no limit
	Padded func(b, s int) bool // keys that no query sees; nil for none
}

// Causal is the mask of a decoder.
func Causal() *Mask { return &Mask{Allow: func(_, t, s int) bool { return s <= t }} }

// Windowed is a causal mask that sees w tokens.
func Windowed(w int) *Mask {
	return &Mask{Allow: func(_, t, s int) bool { return s <= t && t-s < w }}
}

// Causally returns the mask with a causal one.
func (m *Mask) Causally() *Mask {
	return &Mask{Add: m.Add, Allow: func(b, t, s int) bool {
		return s <= t && (m.Allow == nil || m.Allow(b, t, s))
	}}
}

// ReadMask reads a tensor as the mask of b sequences of n tokens, and of m keys each: numbers to add,
// of which very low ones hide; or 0 for hidden and 1 for seen. nil if it cannot be one.
func ReadMask(t *tensor.Tensor, b, n, m, heads int) *Mask {
	shape, l := t.Shape(), t.Len()
	axes := len(shape)
	if axes == 0 || shape[axes-1] != m || l > maskMax {
		return nil
	}
	square := axes >= 2 && shape[axes-2] == n
	var perSequence, perQuery int // strides
	switch {
	case l == b*m && (axes == 2 || axes == 4 && shape[1] == 1 && shape[2] == 1):
		perSequence = m
	case l == n*m && square:
		perQuery = m
	case l == b*n*m && axes >= 3 && square:
		perSequence, perQuery = n*m, m
	case heads > 1 && l == b*heads*n*m && axes == 4 && shape[1] == heads:
		perSequence, perQuery = heads*n*m, m // of the first head
	default:
		return nil
	}
	x := ReadAll(t)
	at := func(b, t, s int) float64 { return x[b*perSequence+t*perQuery+s] }
	zeros := Count(x, func(v float64) bool { return v == 0 })
	ones := Count(x, func(v float64) bool { return v == 1 })
	others, hidden := l-zeros-ones, Count(x, func(v float64) bool { return v <= HiddenScore })
	switch {
	case hidden > 0 && ones == 0:
		return &Mask{Allow: func(b, t, s int) bool { return at(b, t, s) > HiddenScore }}
	case others == 0 && ones > 0 && zeros > 0:
		return &Mask{Allow: func(b, t, s int) bool { return at(b, t, s) == 1 }}
	case t.DType().IsFloat() && others > 0 && hidden == 0 && l >= n*m:
		return &Mask{Add: at} // ALiBi, relative positions
	}
	return nil
}

// TakeApart finds the causal part, the window and the padding of b sequences of n tokens, and of as
// many keys each, or of cross attention to others.
func (m *Mask) TakeApart(b, n, keys int) {
	if m.Allow == nil || max(n, keys) > maskTokens {
		m.Causal = m.Allow != nil && n == keys && !m.Allow(0, 0, n-1)
		return
	}
	m.Causal = n == keys
	padded, some := make([]bool, b*keys), false
	for i := range b {
		for s := range keys {
			seen := false
			for t := range n {
				if m.Allow(i, t, s) {
					seen = true
					m.Causal = m.Causal && s <= t
				}
			}
			padded[i*keys+s] = !seen
			some = some || !seen
		}
	}
	if some {
		m.Padded = func(b, s int) bool { return padded[b*keys+s] }
	}
	if !m.Causal {
		return
	}
	for i := range b {
		for t := range n {
			for s := range t + 1 {
				hidden := !padded[i*n+s] && !m.Allow(i, t, s)
				if hidden && (m.Window == 0 || t-s < m.Window) {
					m.Window = t - s
				}
			}
		}
	}
}
