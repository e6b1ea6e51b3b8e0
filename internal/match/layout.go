package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// placement is how two tensors lie onto each other.
type placement struct {
	Golden, Actual View
	Shape          []int  // of both sides after the views
	RowMask        []bool // the rows that count (all axes of Shape but the last, row-major); nil = all
	Note           string // what was done
	LastRow        bool   // one side has the last row of each sequence only
}

// allowance says which layouts are tried beside those that are always right, and what the elements are.
type allowance struct {
	LastRow bool // one side may hold the last row of each sequence only
	Reshape bool // any shape of equally many elements
	Ones    bool // axes of size 1 do not count
	IDs     bool // the elements are ids or positions, one per token
	// Lengths are the numbers of rows of each sequence, where they lie one after the other.
	Lengths []int
}

// padMask knows the padding of a batch. The zero value has none.
type padMask struct {
	mask [][]bool // true for real tokens; nil if there is no padding
	kept int      // real tokens
}

// newPadMask checks a mask of [batch][token]. A mask without padding is none.
func newPadMask(mask [][]bool) (padMask, error) {
	kept, total := 0, 0
	for i, sequence := range mask {
		if len(sequence) != len(mask[0]) {
			return padMask{}, fmt.Errorf("padding mask: sequence %d has %d tokens, the first has %d: "+
				"pad them to one length", i, len(sequence), len(mask[0]))
		}
		n := count(sequence)
		if n == 0 {
			return padMask{}, fmt.Errorf("padding mask: sequence %d has no real token", i)
		}
		kept, total = kept+n, total+len(sequence)
	}
	if kept == total {
		return padMask{}, nil
	}
	return padMask{mask, kept}, nil
}

// Known reports whether there is padding, and a mask that says where.
func (p padMask) Known() bool { return p.mask != nil }

// Fit finds the layout of two shapes.
func (p padMask) Fit(golden, actual []int, ok allowance) (placement, bool) {
	g, a := golden, actual
	switch {
	case slices.Equal(g, a):
		return p.padded(placement{Shape: g}, ok), true
	case len(g) == len(a)+1 && g[0] == 1 && slices.Equal(g[1:], a):
		return p.padded(placement{Shape: g, Actual: Reshaped(g), Note: "batch axis added to the candidate"}, ok), true
	case len(a) == len(g)+1 && a[0] == 1 && slices.Equal(a[1:], g):
		return p.padded(placement{Shape: g, Actual: Reshaped(g), Note: "batch axis of the candidate dropped"}, ok), true
	}
	if f, fits := p.larger(g, a, ok, "the candidate", "computes"); fits {
		return f, true
	}
	if f, fits := p.larger(a, g, ok, "the golden", "has"); fits {
		f.Golden, f.Actual = f.Actual, f.Golden
		return f, true
	}
	if ok.Ones && sameButOnes(g, a) || ok.Reshape && sameCount(g, a) {
		note := fmt.Sprintf("reshaped from %s to %s", tensor.FormatShape(a), tensor.FormatShape(g))
		return placement{Shape: g, Actual: Reshaped(g), Note: note}, true
	}
	return placement{}, false
}

// larger finds the layout of a shape and one with fewer axes or rows, which other and has speak of.
// The larger one is taken to be the golden's.
func (p padMask) larger(full, less []int, ok allowance, other, has string) (placement, bool) {
	if ragged(full, less) && (ok.IDs || len(less) > 1) { // flat numbers are ids, or need to be allowed
		note := fmt.Sprintf("%s's rows are the tokens of %d sequences", other, full[0])
		return p.padded(placement{Shape: full, Actual: Reshaped(full), Note: note}, ok), true
	}
	rows := full
	if p.matches(full) {
		rows = slices.Concat([]int{full[0] * full[1]}, full[2:])
	}
	if p.flat(rows) && len(less) == len(rows) && less[0] == p.kept && slices.Equal(rows[1:], less[1:]) {
		note := fmt.Sprintf("%s has no padding rows: %d of %d compared", other, p.kept, rows[0])
		return placement{Golden: selectTokens(full, slices.Concat(p.mask...)), Shape: less, Note: note}, true
	}
	if !ok.LastRow || ok.IDs {
		return placement{}, false
	}
	f, fits := lastOf(ok.Lengths, full, less)
	switch {
	case fits:
	case !isLastRow(full, less):
		return placement{}, false
	default:
		f.LastRow = true
		if f.Golden, f.Shape = p.lastRow(full); !slices.Equal(f.Shape, less) {
			f.Actual = Reshaped(f.Shape)
		}
	}
	f.Note = fmt.Sprintf("last row only: %s %s no other", other, has)
	return f, true
}

// lastOf finds the layout of the rows of several sequences, one after the other, and the last row of
// each of them: [T …] or [1 T …] against [B …] or [B 1 …].
func lastOf(lengths, full, last []int) (placement, bool) {
	rows := 0
	for _, n := range lengths {
		rows += n
	}
	if len(full) > 1 && full[0] == 1 && full[1] == rows {
		full = full[1:]
	}
	shape := slices.Clone(last)
	if len(last) > 2 && last[1] == 1 {
		shape = slices.Delete(shape, 1, 2)
	}
	if rows == len(lengths) || len(full) < 2 || full[0] != rows || len(shape) < 2 || shape[0] != len(lengths) ||
		!slices.Equal(full[1:], shape[1:]) {
		return placement{}, false
	}
	keep, at := make([]bool, rows), 0
	for _, n := range lengths {
		at += n
		keep[at-1] = true
	}
	return placement{Golden: append(Reshaped(full), Op{Kind: Rows, Keep: keep}), Actual: Reshaped(shape), Shape: shape, LastRow: true}, true
}

// ragged reports whether rows are the tokens of all the batch's sequences, one after the other:
// [B T …] against [B·T …].
func ragged(batched, rows []int) bool {
	return len(batched) == len(rows)+1 && len(rows) > 0 && batched[0] > 0 && batched[1] > 0 &&
		rows[0]%batched[0] == 0 && rows[0]/batched[0] == batched[1] && slices.Equal(batched[2:], rows[1:])
}

// isLastRow reports whether a shape is that of the last row of each sequence: of [B T …], or of
// [T n], which is one sequence.
func isLastRow(full, last []int) bool {
	if len(full) == 2 {
		return full[0] > 1 && slices.Equal(last, []int{1, full[1]})
	}
	return len(full) >= 3 && full[1] > 1 &&
		(slices.Equal(last, slices.Delete(slices.Clone(full), 1, 2)) || slices.Equal(last, with(full, 1, 1)))
}

// lastRow views [B T …] or [T n] as the last row of each sequence, in a shape.
func (p padMask) lastRow(full []int) (View, []int) {
	switch {
	case len(full) == 2:
		return View{{Kind: Slice, Axis: 0, From: full[0] - 1, To: full[0]}}, with(full, 0, 1)
	case p.matches(full):
		return selectTokens(full, p.lastTokens()), slices.Delete(slices.Clone(full), 1, 2)
	}
	return View{{Kind: Slice, Axis: 1, From: full[1] - 1, To: full[1]}}, with(full, 1, 1)
}

// selectTokens views [B T …], or [B·T …], as the rows of the tokens that are kept.
func selectTokens(shape []int, keep []bool) View {
	rows := shape
	if shape[0] != len(keep) {
		rows = slices.Concat([]int{len(keep)}, shape[2:])
	}
	return append(Reshaped(rows), Op{Kind: Rows, Keep: keep})
}

// padded adds the mask of the rows that count.
func (p padMask) padded(f placement, ok allowance) placement {
	s := f.Shape
	if n, err := tensor.NumElems(s); p.mask == nil || err != nil || n == 0 || len(s) < 2 {
		return f
	}
	seq := len(p.mask[0])
	switch {
	case p.flat(s):
		f.RowMask = p.rows(1, product(s[1:len(s)-1]))
	case s[0] != len(p.mask):
		return f
	case len(s) == 2 && ok.IDs && s[1] == seq: // a row per token
		f.Shape = []int{s[0], s[1], 1}
		f.Golden, f.Actual = Reshaped(f.Shape), Reshaped(f.Shape)
		f.RowMask = p.rows(1, 1)
	case len(s) == 4 && s[2] == seq && (s[1] != seq || s[3] == seq): // [batch head token …], as attention weights are
		f.RowMask = p.rows(s[1], 1)
	case len(s) >= 3 && s[1] == seq:
		f.RowMask = p.rows(1, product(s[2:len(s)-1]))
	default:
		return f
	}
	if f.Note != "" {
		f.Note += "; "
	}
	f.Note += fmt.Sprintf("%d padding rows left out", len(p.mask)*seq-p.kept)
	return f
}

// rows repeats the mask for each head before the token axis and each index between the token axis
// and the last.
func (p padMask) rows(before, after int) []bool {
	var out []bool
	for _, sequence := range p.mask {
		var line []bool
		for _, keep := range sequence {
			line = append(line, slices.Repeat([]bool{keep}, after)...)
		}
		out = append(out, slices.Repeat(line, before)...)
	}
	return out
}

// matches reports whether a shape is [B T …] of the mask.
func (p padMask) matches(shape []int) bool {
	return p.mask != nil && len(shape) >= 2 && shape[0] == len(p.mask) && shape[1] == len(p.mask[0])
}

// flat reports whether a shape is [B·T …]: the tokens of all sequences, one after the other.
func (p padMask) flat(shape []int) bool {
	return p.mask != nil && len(shape) > 0 && shape[0] == len(p.mask)*len(p.mask[0])
}

// lastTokens keeps the last real token of each sequence.
func (p padMask) lastTokens() []bool {
	var out []bool
	for _, sequence := range p.mask {
		last := 0
		for i, keep := range sequence {
			if keep {
				last = i
			}
		}
		row := make([]bool, len(sequence))
		row[last] = true
		out = append(out, row...)
	}
	return out
}

// sameButOnes reports whether two shapes differ in axes of size 1 only, and have other axes.
func sameButOnes(a, b []int) bool {
	one := func(d int) bool { return d == 1 }
	a, b = slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one)
	return len(a) > 0 && slices.Equal(a, b)
}
