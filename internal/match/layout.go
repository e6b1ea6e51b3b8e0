package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// layout is how two ports lie onto each other.
type layout struct {
	golden, actual View
	shape          []int
	rowMask        []bool
	note           string
	lastRow        bool
}

// allow says which layouts are tried beside those that are always right.
type allow struct {
	lastRow bool // one side may hold the last row of each sequence only
	reshape bool // any shape of equally many elements
	mask    bool // axes of size 1 do not count
}

// layouts knows the padding of the run.
type layouts struct {
	pad  [][]bool
	kept int // real tokens
}

// fit finds the layout of two shapes. integer says that the elements are ids or positions, one per token.
func (l layouts) fit(g, a []int, integer bool, ok allow) (layout, bool) {
	switch {
	case slices.Equal(g, a):
		return l.padded(layout{shape: g}, integer), true
	case len(g) == len(a)+1 && g[0] == 1 && slices.Equal(g[1:], a):
		return l.padded(layout{shape: g, actual: View{reshape(g)}, note: "batch axis added to the candidate"}, integer), true
	case len(a) == len(g)+1 && a[0] == 1 && slices.Equal(a[1:], g):
		return l.padded(layout{shape: g, actual: View{reshape(g)}, note: "batch axis of the candidate dropped"}, integer), true
	case ragged(g, a) && (integer || len(a) > 1): // flat numbers are ids, or need to be allowed
		return l.padded(layout{shape: g, actual: View{reshape(g)}, note: fmt.Sprintf("the candidate's rows are the tokens of %d sequences",
			g[0])}, integer), true
	case ragged(a, g) && (integer || len(g) > 1):
		return l.padded(layout{shape: a, golden: View{reshape(a)}, note: fmt.Sprintf("the golden's rows are the tokens of %d sequences", a[0])},
			integer), true
	}
	if v, s, fits := l.unpad(g, a); fits {
		return layout{golden: v, shape: s, note: fmt.Sprintf("the candidate has no padding rows: %d of %d compared", l.kept, g[0]*g[1])}, true
	}
	if v, s, fits := l.unpad(a, g); fits {
		return layout{actual: v, shape: s, note: fmt.Sprintf("the golden has no padding rows: %d of %d compared", l.kept, a[0]*a[1])}, true
	}
	if ok.lastRow && !integer {
		if v, to, fits := l.lastRows(g, a); fits {
			return layout{golden: v, actual: to, shape: v.mustShape(g), note: "last row only: the candidate computes no other", lastRow: true}, true
		}
		if v, to, fits := l.lastRows(a, g); fits {
			return layout{golden: to, actual: v, shape: v.mustShape(a), note: "last row only: the golden has no other", lastRow: true}, true
		}
	}
	if sq := squeeze(g); ok.mask && len(sq) > 0 && slices.Equal(sq, squeeze(a)) || ok.reshape && sameCount(g, a) {
		note := fmt.Sprintf("reshaped from %s to %s", tensor.FormatShape(a), tensor.FormatShape(g))
		return layout{shape: g, actual: View{reshape(g)}, note: note}, true
	}
	return layout{}, false
}

func reshape(shape []int) Op { return Op{Kind: Reshape, Shape: shape} }

// ragged reports whether rows are the tokens of all the batch's sequences, one after the other: [B T …] against [B·T …].
func ragged(batched, rows []int) bool {
	return len(batched) == len(rows)+1 && len(rows) > 0 && batched[0] > 0 && batched[1] > 0 &&
		rows[0]%batched[0] == 0 && rows[0]/batched[0] == batched[1] && slices.Equal(batched[2:], rows[1:])
}

// unpad views [B T …] as the real tokens [Σmask …].
func (l layouts) unpad(batched, rows []int) (View, []int, bool) {
	if !l.padding() || len(batched) != len(rows)+1 || !l.matches(batched) || rows[0] != l.kept || !slices.Equal(batched[2:], rows[1:]) {
		return nil, nil, false
	}
	flat := append([]int{batched[0] * batched[1]}, batched[2:]...)
	return View{reshape(flat), {Kind: Rows, Keep: l.flat()}}, rows, true
}

// lastRows views full, [B T …] or [T …], as the last row of each sequence, and last as the same shape.
func (l layouts) lastRows(full, last []int) (View, View, bool) {
	var v View
	switch {
	case len(full) >= 3 && full[1] > 1 && (slices.Equal(last, drop(full, 1)) || slices.Equal(last, with(full, 1, 1))):
		if l.padding() && l.matches(full) {
			v = View{reshape(append([]int{full[0] * full[1]}, full[2:]...)), {Kind: Rows, Keep: l.lastTokens()}}
			break
		}
		v = View{{Kind: Slice, Axis: 1, From: full[1] - 1, To: full[1]}}
	case len(full) == 2 && full[0] > 1 && slices.Equal(last, []int{1, full[1]}):
		v = View{{Kind: Slice, Axis: 0, From: full[0] - 1, To: full[0]}}
	default:
		return nil, nil, false
	}
	shape := v.mustShape(full)
	if slices.Equal(shape, last) {
		return v, nil, true
	}
	return v, View{reshape(shape)}, true
}

func (v View) mustShape(s []int) []int {
	out, err := v.Shape(s)
	if err != nil {
		panic(err) // views of this package fit the shapes that they were made for
	}
	return out
}

// padded adds the mask of the rows that count.
func (l layouts) padded(lay layout, integer bool) layout {
	s := lay.shape
	if n, err := tensor.NumElems(s); !l.padding() || err != nil || n == 0 || len(s) < 2 || s[0] != len(l.pad) {
		return lay
	}
	seq := len(l.pad[0])
	switch {
	case len(s) == 2 && integer && s[1] == seq: // a row per token
		lay.shape = []int{s[0], s[1], 1}
		lay.golden = View{reshape(lay.shape)}
		lay.actual = View{reshape(lay.shape)}
		lay.rowMask = l.rows(1, 1)
	case len(s) == 4 && s[2] == seq && (s[1] != seq || s[3] == seq): // [batch head token …], as attention weights are
		lay.rowMask = l.rows(s[1], 1)
	case len(s) >= 3 && s[1] == seq:
		after := 1
		for _, d := range s[2 : len(s)-1] {
			after *= d
		}
		lay.rowMask = l.rows(1, after)
	default:
		return lay
	}
	lay.note = join(lay.note, fmt.Sprintf("%d padding rows left out", len(l.pad)*seq-l.kept))
	return lay
}

// rows repeats the mask for each head before the token axis and each index between the token axis and the last.
func (l layouts) rows(before, after int) []bool {
	out := make([]bool, 0, before*after*len(l.pad)*len(l.pad[0]))
	for _, sequence := range l.pad {
		for range before {
			for _, keep := range sequence {
				for range after {
					out = append(out, keep)
				}
			}
		}
	}
	return out
}

func (l layouts) padding() bool { return l.kept > 0 }

func (l layouts) matches(shape []int) bool {
	return len(shape) >= 2 && shape[0] == len(l.pad) && shape[1] == len(l.pad[0])
}

func (l layouts) flat() []bool { return slices.Concat(l.pad...) }

// lastTokens keeps the last real token of each sequence.
func (l layouts) lastTokens() []bool {
	var out []bool
	for _, sequence := range l.pad {
		row := make([]bool, len(sequence))
		for i := len(sequence) - 1; i >= 0; i-- {
			if sequence[i] {
				row[i] = true
				break
			}
		}
		out = append(out, row...)
	}
	return out
}

// newLayouts checks the padding mask. A mask without padding is none.
func newLayouts(pad [][]bool) (layouts, error) {
	kept, total := 0, 0
	for i, sequence := range pad {
		if len(sequence) != len(pad[0]) {
			return layouts{}, fmt.Errorf("match: padding mask: sequence %d has %d tokens, the first has %d: pad them to one length", i,
				len(sequence), len(pad[0]))
		}
		n := count(sequence)
		if n == 0 {
			return layouts{}, fmt.Errorf("match: padding mask: sequence %d has no real token", i)
		}
		kept, total = kept+n, total+len(sequence)
	}
	if kept == total {
		return layouts{}, nil
	}
	return layouts{pad: pad, kept: kept}, nil
}

func squeeze(s []int) []int {
	return slices.DeleteFunc(slices.Clone(s), func(d int) bool { return d == 1 })
}

func drop(s []int, axis int) []int { return slices.Delete(slices.Clone(s), axis, axis+1) }

func with(s []int, axis, size int) []int {
	s = slices.Clone(s)
	s[axis] = size
	return s
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
