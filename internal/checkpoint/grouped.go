package checkpoint

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// grouped is a weight of codes, of which each group in a row shares a scale:
//
//	(values[code] − zero)·scale + bias
//
// Formats differ in where their codes and scales lie.
type grouped struct {
	name    string
	weight  *tensor.Tensor // the codes
	dtype   tensor.DType
	shape   []int
	size    int       // of a group of neighbours in a row
	group   []int64   // of each element of a row; nil for neighbours
	values  []float32 // by code
	epsilon float64   // see tensor.Grid

	codes func(dst []byte, r, from int) // writes those of elements from, from+1, … of row r
	// By group of a row. Zeros and biases are nil for none.
	scales, zeros, biases func(r int) []float32
}

// view returns a weight as a tensor that is computed when it is read. If it is float32, it is exact where the scales have
// 16 bits.
func (m *module) view(g *grouped) *tensor.Tensor {
	order := slices.DeleteFunc(slices.Clone(g.values), func(v float32) bool { return v-v != 0 })
	slices.Sort(order)
	order = slices.Compact(order)
	lowest, highest := g.always(order[0]), g.always(order[len(order)-1])
	return m.must(tensor.FromSpec(tensor.Spec{DType: g.dtype, Shape: g.shape, Place: g.weight.Place(), Packing: &tensor.Packing{Name: g.name,
		Unpack: func(dst []float32, _ []byte, from int) { g.unpack(dst, from, g.codes) },
		Grid: &tensor.Grid{Values: order, Epsilon: g.epsilon, Clip: 1.1, Groups: g.group,
			Ends: func(low, high []float32, _ []byte, from int) {
				g.unpack(low, from, lowest)
				g.unpack(high, from, highest)
			}}}}))
}

// always returns the codes of a weight all of whose elements have one value.
func (g *grouped) always(value float32) func(dst []byte, r, from int) {
	code := byte(slices.Index(g.values, value))
	return func(dst []byte, _, _ int) {
		for i := range dst {
			dst[i] = code
		}
	}
}

// unpack writes the elements from, from+1, … to dst.
func (g *grouped) unpack(dst []float32, from int, codes func(dst []byte, r, from int)) {
	width := g.shape[len(g.shape)-1]
	buf := make([]byte, min(len(dst), width))
	for len(dst) > 0 {
		r, at := from/width, from%width
		n := min(len(dst), width-at)
		codes(buf[:n], r, at)
		g.row(dst[:n], buf[:n], r, at)
		dst, from = dst[n:], from+n
	}
}

// row writes the elements of row r from an element on, by their codes.
func (g *grouped) row(dst []float32, codes []byte, r, from int) {
	row := groups{g: g, scales: g.scales(r)}
	if g.zeros != nil {
		row.zeros = g.zeros(r)
	}
	if g.biases != nil {
		row.biases = g.biases(r)
	}
	var table [256]float32
	for i := 0; i < len(dst); {
		if g.group != nil {
			row.numbers(dst[i:i+1], codes[i:], int(g.group[from+i]))
			i++
			continue
		}
		k, end := (from+i)/g.size, min(len(dst), i+g.size-(from+i)%g.size)
		part, own := dst[i:end], codes[i:end]
		if n := len(g.values); len(part) >= n { // each code occurs more than once
			row.numbers(table[:n], everyCode[:], k)
			for j, q := range own {
				part[j] = table[q]
			}
		} else {
			row.numbers(part, own, k)
		}
		i = end
	}
}

var everyCode = func() (all [256]byte) {
	for i := range all {
		all[i] = byte(i)
	}
	return all
}()

// groups are those of a row.
type groups struct {
	g                     *grouped
	scales, zeros, biases []float32
}

// numbers writes what codes of group k stand for.
func (w *groups) numbers(dst []float32, codes []byte, k int) {
	s, z, values := w.scales[k], float32(0), w.g.values
	if w.zeros != nil {
		z = w.zeros[k]
	}
	codes = codes[:len(dst)]
	for i, q := range codes {
		dst[i] = (values[q] - z) * s
	}
	if w.biases == nil {
		return
	}
	round(dst, w.g.dtype)
	for i := range dst {
		dst[i] += w.biases[k]
	}
	round(dst, w.g.dtype)
}

// round rounds to a type of scales.
func round(dst []float32, d tensor.DType) {
	switch d {
	case tensor.F16:
		for i, v := range dst {
			dst[i] = smallfloat.RoundF16(v)
		}
	case tensor.BF16:
		for i, v := range dst {
			dst[i] = smallfloat.RoundBF16(v)
		}
	}
}

// integer makes a weight of whole codes of some bits, in rows of a shape.
func integer(name string, weight, scales *tensor.Tensor, bits, size int, shape ...int) *grouped {
	values := make([]float32, 1<<bits)
	for i := range values {
		values[i] = float32(i)
	}
	return newGrouped(fmt.Sprintf("%s%d/%d", name, bits, size), weight, scales, values, size, shape)
}

// floating makes a weight of small floats, of which each row is a stream.
func floating(name string, weight, scales *tensor.Tensor, values []float32, bits, size int) *grouped {
	g := newGrouped(name, weight, scales, values, size, last(weight.Shape(), scales.RowLen()*size))
	g.codes = stream(weight, bits)
	return g
}

func newGrouped(name string, weight, scales *tensor.Tensor, values []float32, size int, shape []int) *grouped {
	return &grouped{name: name, weight: weight, dtype: tensor.F32, shape: shape, size: size, values: values,
		scales: perRow(scales), epsilon: scales.DType().Epsilon()}
}

// perRow returns the numbers of rows of a tensor.
func perRow(t *tensor.Tensor) func(r int) []float32 {
	n := t.RowLen()
	return func(r int) []float32 { return floats(t, r*n, n) }
}

// stream returns the codes of rows that are each a little-endian stream.
func stream(t *tensor.Tensor, bits int) func(dst []byte, r, from int) {
	b, width := bytesOf(t), t.RowLen()*t.DType().Size()
	return func(dst []byte, r, from int) {
		row := b[r*width : (r+1)*width]
		switch {
		case bits == 8:
			copy(dst, row[from:])
		case bits == 4 && from%2 == 0 && len(dst)%2 == 0:
			for i, v := range row[from/2:][:len(dst)/2] {
				pair := dst[2*i : 2*i+2 : 2*i+2]
				pair[0], pair[1] = v&15, v>>4
			}
		default:
			for i := range dst {
				dst[i] = byte(code(row, (from+i)*bits, bits))
			}
		}
	}
}

// oneByOne returns codes that are found each by itself.
func oneByOne(code func(r, i int) uint32) func(dst []byte, r, from int) {
	return func(dst []byte, r, from int) {
		for i := range dst {
			dst[i] = byte(code(r, from+i))
		}
	}
}

// inWords returns code i of stream k in words. A stream is little-endian; it begins at word k·line, and goes on at each
// next one: along rows, or columns. If there are each codes in a word, none lies in two.
func inWords(t *tensor.Tensor, bits, each, line, next int) func(k, i int) uint32 {
	b, mask := bytesOf(t), uint32(1)<<bits-1
	return func(k, i int) uint32 {
		word := func(j int) uint32 { return u32(b[4*(k*line+j*next):]) }
		if each > 0 {
			return word(i/each) >> (i % each * bits) & mask
		}
		bit := i * bits
		v := word(bit>>5) >> (bit & 31)
		if over := bit&31 + bits - 32; over > 0 {
			v |= word(bit>>5+1) << (bits - over)
		}
		return v & mask
	}
}

// perGroup returns the zero points of the n groups of a row.
func perGroup(n int, zero func(r, k int) uint32) func(r int) []float32 {
	return func(r int) []float32 {
		out := make([]float32, n)
		for k := range out {
			out[k] = float32(zero(r, k))
		}
		return out
	}
}

// code returns the bits of a little-endian stream that begin at a bit; there are at most 8.
func code(b []byte, bit, bits int) uint32 {
	at := bit >> 3
	v := uint32(b[at])
	if bit&7+bits > 8 {
		v |= uint32(b[at+1]) << 8
	}
	return v >> (bit & 7) & (1<<bits - 1)
}

// floats decodes n elements of a tensor from the first.
func floats(t *tensor.Tensor, first, n int) []float32 {
	out := make([]float32, n)
	t.Float32s(out, first)
	return out
}

// bytesOf returns the bytes of codes, of which it was checked that they lie in order.
func bytesOf(t *tensor.Tensor) []byte {
	b, _ := t.Bytes()
	return b
}

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// last returns a shape with another last axis.
func last(shape []int, n int) []int {
	out := slices.Clone(shape)
	if len(out) > 0 {
		out[len(out)-1] = n
	}
	return out
}
