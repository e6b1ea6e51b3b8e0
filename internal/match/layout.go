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
	pad  [][]bool // true for real tokens; nil if there is no padding
	kept int      // real tokens
}

// newLayouts checks the padding mask. A mask without padding is none.
func newLayouts(pad [][]bool) (layouts, error) {
	kept, total := 0, 0
	for i, sequence := range pad {
		if len(sequence) != len(pad[0]) {
			return layouts{}, fmt.Errorf("match: padding mask: sequence %d has %d tokens, the first has %d: pad them to one length",
				i, len(sequence), len(pad[0]))
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

// fit finds the layout of two shapes. integer says that the elements are ids or positions, one per
// token.
func (l layouts) fit(g, a []int, integer bool, ok allow) (layout, bool) {
	switch {
	case slices.Equal(g, a):
		return l.padded(layout{shape: g}, integer), true
	case len(g) == len(a)+1 && g[0] == 1 && slices.Equal(g[1:], a):
		return l.padded(layout{shape: g, actual: reshape(g), note: "batch axis added to the candidate"}, integer), true
	case len(a) == len(g)+1 && a[0] == 1 && slices.Equal(a[1:], g):
		return l.padded(layout{shape: g, actual: reshape(g), note: "batch axis of the candidate dropped"}, integer), true
	}
	lay, fits := l.larger(g, a, integer, ok, texts{"the candidate", "the candidate computes no other"})
	if fits {
		return lay, true
	}
	lay, fits = l.larger(a, g, integer, ok, texts{"the golden", "the golden has no other"})
	if fits {
		lay.golden, lay.actual = lay.actual, lay.golden
		return lay, true
	}
	if sq := squeeze(g); ok.mask && len(sq) > 0 && slices.Equal(sq, squeeze(a)) || ok.reshape && sameCount(g, a) {
		note := fmt.Sprintf("reshaped from %s to %s", tensor.FormatShape(a), tensor.FormatShape(g))
		return layout{shape: g, actual: reshape(g), note: note}, true
	}
	return layout{}, false
}

// texts are the words about the side that has fewer axes or rows.
type texts struct{ side, noOther string }

// larger finds the layout of a shape and one that has fewer axes or rows. The larger one is taken to
// be the golden's.
func (l layouts) larger(full, other []int, integer bool, ok allow, t texts) (layout, bool) {
	if ragged(full, other) && (integer || len(other) > 1) { // flat numbers are ids, or need to be allowed
		note := fmt.Sprintf("%s's rows are the tokens of %d sequences", t.side, full[0])
		return l.padded(layout{shape: full, actual: reshape(full), note: note}, integer), true
	}
	if v, fits := l.unpad(full, other); fits {
		note := fmt.Sprintf("%s has no padding rows: %d of %d compared", t.side, l.kept, full[0]*full[1])
		return layout{golden: v, shape: other, note: note}, true
	}
	if !ok.lastRow || integer {
		return layout{}, false
	}
	v, to, fits := l.lastRows(full, other)
	if !fits {
		return layout{}, false
	}
	return layout{golden: v, actual: to, shape: v.mustShape(full), note: "last row only: " + t.noOther, lastRow: true}, true
}

func reshape(shape []int) View { return View{{Kind: Reshape, Shape: shape}} }

// ragged reports whether rows are the tokens of all the batch's sequences, one after the other:
// [B T …] against [B·T …].
func ragged(batched, rows []int) bool {
	return len(batched) == len(rows)+1 && len(rows) > 0 && batched[0] > 0 && batched[1] > 0 &&
		rows[0]%batched[0] == 0 && rows[0]/batched[0] == batched[1] && slices.Equal(batched[2:], rows[1:])
}

// unpad views [B T …] as the real tokens [Σmask …].
func (l layouts) unpad(batched, rows []int) (View, bool) {
	if len(batched) != len(rows)+1 || !l.matches(batched) || rows[0] != l.kept || !slices.Equal(batched[2:], rows[1:]) {
		return nil, false
	}
	return selectTokens(batched, slices.Concat(l.pad...)), true
}

// lastRows views full, [B T …] or [T …], as the last row of each sequence, and last as the same
// shape.
func (l layouts) lastRows(full, last []int) (view, to View, ok bool) {
	switch {
	case len(full) >= 3 && full[1] > 1 && (slices.Equal(last, drop(full, 1)) || slices.Equal(last, with(full, 1, 1))):
		if l.matches(full) {
			view = selectTokens(full, l.lastTokens())
			break
		}
		view = View{{Kind: Slice, Axis: 1, From: full[1] - 1, To: full[1]}}
	case len(full) == 2 && full[0] > 1 && slices.Equal(last, []int{1, full[1]}):
		view = View{{Kind: Slice, Axis: 0, From: full[0] - 1, To: full[0]}}
	default:
		return nil, nil, false
	}
	if shape := view.mustShape(full); !slices.Equal(shape, last) {
		to = reshape(shape)
	}
	return view, to, true
}

// selectTokens views [B T …] as the rows of the tokens that are kept.
func selectTokens(batched []int, keep []bool) View {
	flat := append([]int{batched[0] * batched[1]}, batched[2:]...)
	return append(reshape(flat), Op{Kind: Rows, Keep: keep})
}

// mustShape is the shape of what a view makes of one tensor. Views of this package fit the shapes
// that they were made for.
func (v View) mustShape(s []int) []int {
	out, err := v.Shape(s)
	if err != nil {
		panic(err)
	}
	return out
}

// padded adds the mask of the rows that count.
func (l layouts) padded(lay layout, integer bool) layout {
	s := lay.shape
	if n, err := tensor.NumElems(s); l.pad == nil || err != nil || n == 0 || len(s) < 2 || s[0] != len(l.pad) {
		return lay
	}
	seq := len(l.pad[0])
	switch {
	case len(s) == 2 && integer && s[1] == seq: // a row per token
		lay.shape = []int{s[0], s[1], 1}
		lay.golden, lay.actual = reshape(lay.shape), reshape(lay.shape)
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

// rows repeats the mask for each head before the token axis and each index between the token axis
// and the last.
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

// matches reports whether a shape is [B T …] of the padding mask.
func (l layouts) matches(shape []int) bool {
	return l.pad != nil && len(shape) >= 2 && shape[0] == len(l.pad) && shape[1] == len(l.pad[0])
}

// lastTokens keeps the last real token of each sequence.
func (l layouts) lastTokens() []bool {
	var out []bool
	for _, sequence := range l.pad {
		row := make([]bool, len(sequence))
		for i, keep := range slices.Backward(sequence) {
			if keep {
				row[i] = true
				break
			}
		}
		out = append(out, row...)
	}
	return out
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

// join joins two notes.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
