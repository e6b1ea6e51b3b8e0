package checkpoint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// The types of scales and of words with codes.
var (
	scaleTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.BF16}
	words      = []tensor.DType{tensor.U32, tensor.I32}
)

// gptq makes a weight of GPTQ, [out in]: (q − z)·s (arXiv 2210.17323). qweight is [in·bits/32 out], each
// column a little-endian stream of codes; qzeros [groups out·bits/32], each row one; scales [groups
// out]. g_idx says to which group each input belongs, groups of consecutive inputs without it. Zero points
// are stored less one, modulo 2^bits, unless checkpoint_format is gptq_v2.
func (m *module) gptq() *tensor.Tensor {
	if m.anywhere["g_idx"] || m.config.ordered {
		m.need("qweight", "g_idx")
	}
	q, z, s, group := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"], m.parts["g_idx"]
	bits := m.config.usual().bits
	if out := s.RowLen(); bits == 0 && out > 0 {
		bits = z.RowLen() * 32 / out
	}
	if bits = cmp.Or(bits, 4); !slices.Contains([]int{2, 3, 4, 8}, bits) {
		m.wrong("%d bits: want 2, 3, 4 or 8", bits)
	}
	m.check("qweight", q, words, -1, -1)
	m.check("scales", s, scaleTypes, -1, q.Shape()[1])
	in, out, n := q.Shape()[0]*32/bits, q.Shape()[1], s.Shape()[0]
	width := (out*bits + 31) / 32
	m.check("qzeros", z, words, n, width)
	switch {
	case q.Shape()[0]*32%bits != 0 || out*bits%32 != 0:
		m.wrong("qweight has shape %s: no whole number of codes of %d bits", tensor.FormatShape(q.Shape()), bits)
	case n == 0 || in%n != 0 && group == nil:
		m.wrong("%d inputs in %d groups", in, n)
	}
	g := integer("gptq", q, m.must(s.Transpose()), bits, max((in+n-1)/n, 1), out, in)
	g.group = m.indices("g_idx", group, in, n)
	g.codes = oneByOne(inWords(q, bits, 0, 1, out))
	zero, plus := inWords(z, bits, 0, width, 1), uint32(1)
	if m.config.plain {
		plus = 0
	}
	g.zeros = perGroup(n, func(r, k int) uint32 { return (zero(k, r) + plus) & (1<<bits - 1) })
	m.fits("scales", bits, in, n)
	return m.view(g)
}

// indices are those of n groups, one for each input; nil of nil.
func (m *module) indices(name string, t *tensor.Tensor, in, n int) []int64 {
	if t == nil {
		return nil
	}
	m.check(name, t, []tensor.DType{tensor.I32, tensor.I64}, in)
	out := make([]int64, t.Len())
	t.Int64s(out, 0)
	for i, g := range out {
		m.want(g >= 0 && g < int64(n), "%s[%d] is group %d of %d", name, i, g, n)
	}
	return out
}

// awq makes a weight of 4 bits of AutoAWQ, by the version of its layout.
func (m *module) awq() *tensor.Tensor {
	switch version := m.config.version; version {
	case "", "gemm":
		return m.awqColumns()
	case "gemv":
		return m.awqRows()
	default:
		m.fail("qweight", "version %q of AWQ in %s: only gemm and gemv are read: %w", version, m.config.file, tensor.ErrUnsupported)
		return nil
	}
}

// awqPlace is the nibble of each of eight columns in a word of AutoAWQ.
var awqPlace = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// awqColumns makes a weight of version gemm, [out in]: (q − z)·s (arXiv 2306.00978). qweight is [in
// out/8], qzeros [groups out/8], scales [groups out]; a word has the columns 0, 2, 4, 6, 1, 3, 5, 7,
// the lowest nibble first.
func (m *module) awqColumns() *tensor.Tensor {
	q, z, s := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"]
	m.check("qweight", q, words, -1, -1)
	m.check("scales", s, scaleTypes, -1, 8*q.Shape()[1])
	in, out, n := q.Shape()[0], 8*q.Shape()[1], s.Shape()[0]
	m.check("qzeros", z, words, n, out/8)
	m.want(n != 0 && in%n == 0, "%d inputs in %d groups", in, n)
	nibble := func(t *tensor.Tensor) func(column, row int) uint32 {
		b := bytesOf(t)
		return func(column, row int) uint32 {
			return u32(b[(row*out/8+column/8)*4:]) >> (4 * awqPlace[column%8]) & 15
		}
	}
	g := integer("awq", q, m.must(s.Transpose()), 4, in/n, out, in)
	g.codes, g.zeros = oneByOne(nibble(q)), perGroup(n, nibble(z))
	m.fits("scales", 4, in, n)
	return m.view(g)
}

// awqRows makes a weight of version gemv, [out in]: (q − z)·s. qweight is [out in/8], qzeros [out
// words], scales [out 8·words], each row a little-endian stream; words are padded, what is after the
// last group means nothing.
func (m *module) awqRows() *tensor.Tensor {
	q, z, s, usual := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"], m.config.usual()
	if usual.bits > 0 && usual.bits != 4 {
		m.fail("qweight", "%s says %d bits, AWQ has 4", m.config.file, usual.bits)
	}
	m.check("qweight", q, words, -1, -1)
	m.check("qzeros", z, words, q.Shape()[0], -1)
	out, in, n, size := q.Shape()[0], 8*q.Shape()[1], z.Shape()[1], usual.group
	m.check("scales", s, scaleTypes, out, 8*n)
	if size < 0 {
		size = in
	}
	m.want(size > 0 && in%size == 0 && in/size <= 8*n,
		"%d inputs in groups of %d, scales for %d groups", in, size, 8*n)
	g := integer("awq", q, s, 4, size, out, in)
	g.codes, g.zeros = stream(q, 4), perGroup(8*n, inWords(z, 4, 0, n, 1))
	return m.view(g)
}

// affineBits are the sizes of codes that MLX has.
var affineBits = []int{1, 2, 3, 4, 5, 6, 8}

// mlx makes a weight of MLX, [… in]: of its mode affine round(round(q·s) + b) in the type of the scales
// (mlx.core.quantize). weight is [… in·bits/32], each row a little-endian stream of codes; scales and
// biases are [… in/group].
func (m *module) mlx() *tensor.Tensor {
	w, s, b, how := m.parts["weight"], m.parts["scales"], m.parts["biases"], m.config.of(m.name)
	if s.DType() == tensor.U8 {
		return m.mlxFloat(how.mode)
	}
	m.need("weight", "biases")
	if how.bits == 0 || how.group == 0 {
		found := guesses(w, s, how)
		if len(found) != 1 {
			m.fail("weight", "%d words and %d scales a row fit (bits, group) %v: config.json "+
				"beside the file would say which, in quantization", w.RowLen(), s.RowLen(), found)
		}
		how.bits, how.group = found[0][0], found[0][1]
	}
	m.want(slices.Contains(affineBits, how.bits) && how.group > 0,
		"%d bits in groups of %d: want %v bits", how.bits, how.group, affineBits)
	m.check("weight", w, words)
	m.check("scales", s, scaleTypes)
	m.check("biases", b, []tensor.DType{s.DType()}, s.Shape()...)
	m.fit(w, s, how.bits, how.group)
	g := integer("mlx", w, s, how.bits, how.group, last(w.Shape(), s.RowLen()*how.group)...)
	g.dtype, g.codes, g.biases = s.DType(), stream(w, how.bits), perRow(b)
	return m.view(g)
}

// guesses lists bits and groups with which codes and scales fit.
func guesses(w, s *tensor.Tensor, how scheme) (out [][2]int) {
	for _, bits := range affineBits[1:] {
		for _, group := range []int{32, 64, 128} {
			if w.RowLen()*32 == s.RowLen()*group*bits && (how.bits == 0 || how.bits == bits) &&
				(how.group == 0 || how.group == group) {
				out = append(out, [2]int{bits, group})
			}
		}
	}
	return out
}

// fit requires that rows of words have as many codes as the groups.
func (m *module) fit(weight, scales *tensor.Tensor, bits, group int) {
	in := scales.RowLen() * group
	switch {
	case len(weight.Shape()) == 0 || !slices.Equal(last(weight.Shape(), scales.RowLen()), scales.Shape()):
		m.wrong("scales have shape %s, the weight %s: want the same rows",
			tensor.FormatShape(scales.Shape()), tensor.FormatShape(weight.Shape()))
	case weight.RowLen()*32 != in*bits:
		m.wrong("rows of %d words are %g codes of %d bits, but %d groups of %d are %d: the group size or the "+
			"number of bits is another", weight.RowLen(), float64(weight.RowLen()*32)/float64(bits), bits,
			scales.RowLen(), group, in)
	}
}

// mlxFloat makes a weight of MLX's modes mxfp4, nvfp4, and mxfp8: floats of 8 bits (E4M3) in words of
// four, times the scale of their group.
func (m *module) mlxFloat(mode string) *tensor.Tensor {
	w, s, g := m.parts["weight"], m.parts["scales"], m.parts["global_scale"]
	if mode == "" || mode == "affine" {
		mode = map[int]string{4 * s.RowLen(): "mxfp4", 2 * s.RowLen(): "nvfp4", 8 * s.RowLen(): "mxfp8"}[w.RowLen()] // words
	}
	switch mode {
	case "mxfp4":
		return m.fp4(w, bytesAs(s, tensor.F8E8M0FNU), nil, false, 32)
	case "mxfp8":
		m.check("weight", w, words)
		m.check("scales", s, octets)
		m.fit(w, s, 8, 32)
		return m.view(floating("mxfp8", w, bytesAs(s, tensor.F8E8M0FNU), smallfloat.F8().E4M3FN[:], 8, 32))
	case "nvfp4":
		if g != nil { // it is the largest number of 4 bits times the largest scale
			m.wantOf(g.Len() == 1 && g.DType().IsFloat(), "global_scale", "it is %s, want one number", g)
			g = m.must(tensor.Of([]float32{float32(g.At(0)) / (6 * 448)}, 1))
		}
		return m.fp4(w, bytesAs(s, tensor.F8E4M3FN), g, false, 16)
	}
	m.fail("scales", "%s for %s in mode %q: want mxfp4, mxfp8 or nvfp4", s, w, mode)
	return nil
}

// bytesAs reads bytes as small floats; what is none stays as it is.
func bytesAs(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if t.DType() != tensor.U8 {
		return t
	}
	x, err := t.As(d)
	if err != nil {
		panic(err) // both have one byte
	}
	return x
}

// nibbles makes a weight of floats of 4 bits, two a byte.
func (m *module) nibbles() *tensor.Tensor {
	codes := "weight_packed"
	if m.parts[codes] == nil {
		codes = "weight"
	}
	w, s := m.parts[codes], bytesAs(m.parts["weight_scale"], tensor.F8E8M0FNU)
	if s.DType() == tensor.F8E8M0FNU {
		return m.fp4(w, s, nil, false, 32)
	}
	global, divide := "weight_global_scale", true
	if codes == "weight" || m.parts[global] == nil && m.parts["weight_scale_2"] != nil {
		global, divide = "weight_scale_2", false
	}
	m.need(codes, global)
	return m.fp4(w, s, m.parts[global], divide, 16)
}

// blocks makes a weight of gpt-oss, which has its outputs last.
func (m *module) blocks() *tensor.Tensor {
	b, s := m.parts["_blocks"], bytesAs(m.parts["_scales"], tensor.F8E8M0FNU)
	shape := b.Shape()
	n := len(shape)
	m.wantOf(n >= 3 && shape[n-1] == 16, "_blocks", "shape %s, want […  groups 16]", tensor.FormatShape(shape))
	m.part = "_scales"
	flat := m.must(b.Reshape(append(slices.Clone(shape[:n-2]), 16*shape[n-2])...))
	return m.must(m.fp4(flat, s, nil, false, 32).Transpose())
}

// fp4 makes a weight of floats of 4 bits (E2M1) times the scale of their group, [… in]. weight has their
// bytes, the low nibble first; scales are [… in/group], floats or E8M0. global is a number for all
// of them: each scale is multiplied by it, or divided if divide is true; nil for none. The result
// is float32: the scale is rounded, then the product (OCP MX 1.0; NVFP4).
func (m *module) fp4(weight, scales, global *tensor.Tensor, divide bool, group int) *tensor.Tensor {
	m.check("weight", weight, []tensor.DType{tensor.U8, tensor.I8, tensor.U32, tensor.I32})
	m.check("scales", scales, []tensor.DType{tensor.F8E8M0FNU, tensor.F8E4M3FN, tensor.F32, tensor.F16, tensor.BF16})
	m.want(len(weight.Shape()) > 0 && len(scales.Shape()) > 0,
		"weight %s and scales %s in groups of %d", weight, scales, group)
	if global != nil {
		m.check("the global scale", global, scaleTypes)
		m.want(global.Len() == 1,
			"the global scale has shape %s, want one number", tensor.FormatShape(global.Shape()))
	}
	n, width := scales.RowLen(), weight.RowLen()*weight.DType().Size()
	in := n * group
	m.want(2*width == in && weight.Len()/max(weight.RowLen(), 1) == scales.Len()/max(n, 1),
		"weight %s has rows of %d codes, scales %s in groups of %d are for %d", weight, 2*width, scales, group, in)
	name := "nvfp4"
	if scales.DType() == tensor.F8E8M0FNU {
		name = "mxfp4"
	}
	g := floating(name, weight, scales, smallfloat.E2M1[:], 4, group)
	if global != nil {
		factor, own := float32(global.At(0)), g.scales
		g.scales = func(r int) []float32 {
			s := own(r)
			for i := range s {
				if divide {
					s[i] /= factor
				} else {
					s[i] *= factor
				}
			}
			return s
		}
	}
	return m.view(g)
}

// compressed makes a weight of compressed-tensors' packed codes, [out in], or of experts in one tensor, [experts
// out in], as one matrix of all their outputs.
func (m *module) compressed() *tensor.Tensor {
	p, s, shape := m.parts["weight_packed"], m.parts["weight_scale"], m.parts["weight_shape"]
	if m.config.asymmetric || m.config.file == "" && m.anywhere["weight_zero_point"] {
		m.need("weight_packed", "weight_zero_point")
	}
	zero, group, axes := m.parts["weight_zero_point"], m.groups(), len(p.Shape())
	experts := axes == 3 && len(s.Shape()) == 3 && zero == nil
	m.wantOf(shape.Len() == axes && !shape.DType().IsFloat() && (axes == 2 || experts), "weight_shape",
		"it is %s for %s, want two whole numbers for a matrix", shape, p)
	size := make([]int, axes)
	for i := range size {
		size[i] = int(shape.At(i))
	}
	in := size[axes-1]
	m.wantOf(slices.Equal(size[:axes-1], p.Shape()[:axes-1]) && in >= 0 && in <= p.RowLen()*32, "weight_shape",
		"it says %v, weight_packed has shape %s", size, tensor.FormatShape(p.Shape()))
	if experts {
		m.wantOf(group == nil, "weight_g_idx", "of experts in one tensor it is not read: %w", tensor.ErrUnsupported)
		m.part = "weight_scale"
		p, s = m.must(p.Reshape(size[0]*size[1], p.RowLen())), m.must(s.Reshape(size[0]*size[1], s.RowLen()))
		m.part = ""
	}
	bits := 4
	if in > 0 {
		bits = p.RowLen() * 32 / in
	}
	if c := m.config; len(c.schemes) == 1 && c.schemes[0].bits > 0 {
		bits = c.schemes[0].bits
	}
	w := m.integers(p, s, zero, group, bits, in)
	m.fits("weight_scale", bits, in, s.RowLen())
	return m.must(w.Reshape(size...))
}

// groups are those of the inputs; nil if they are not set, as −1.
func (m *module) groups() *tensor.Tensor {
	t := m.parts["weight_g_idx"]
	if t == nil || t.Len() == 0 {
		return nil
	}
	m.wantOf(!t.DType().IsFloat(), "weight_g_idx", "it is %s, want whole numbers", t.DType())
	if t.At(0) == -1 {
		return nil
	}
	return t
}

// integers makes a weight of codes in words, [out in]: (q − z)·s, where q and z are stored plus
// 2^(bits−1). weight is [out ⌈in·bits/32⌉], each row a little-endian stream of codes; older versions wrote
// [out ⌈in/n⌉], n = ⌊32/bits⌋ codes a word, which is another layout for 3, 5, 6 and 7 bits. scale is
// [out groups]; zero nil, or packed likewise along the outputs, [words groups]. group says to which
// group each input belongs, groups of consecutive inputs if it is nil.
func (m *module) integers(weight, scale, zero, group *tensor.Tensor, bits, in int) *tensor.Tensor {
	m.want(bits >= 1 && bits <= 8, "%d inputs of %d bits: want 1 to 8 bits", in, bits)
	m.check("weight_packed", weight, words, -1, -1)
	m.check("weight_scale", scale, scaleTypes, weight.Shape()[0], -1)
	out, n := weight.Shape()[0], scale.Shape()[1]
	m.want(n != 0 && (in%n == 0 || group != nil), "%d inputs in %d groups", in, n)
	g := integer("int", weight, scale, bits, max(in/n, 1), out, in)
	g.codes = oneByOne(inWords(weight, bits, m.perWord("weight_packed", weight, weight.RowLen(), in, bits), weight.RowLen(), 1))
	g.zeros = perGroup(n, func(int, int) uint32 { return 1 << (bits - 1) })
	if zero != nil {
		m.check("weight_zero_point", zero, words, -1, n)
		stored := inWords(zero, bits, m.perWord("weight_zero_point", zero, zero.Shape()[0], out, bits), 1, n)
		g.zeros = perGroup(n, func(r, k int) uint32 { return stored(k, r) })
	}
	g.group = m.indices("weight_g_idx", group, in, n)
	return m.view(g)
}

// perWord returns how many codes a word has if none lies in two, else 0.
func (m *module) perWord(name string, t *tensor.Tensor, words, n, bits int) int {
	switch each := 32 / bits; words {
	case (n*bits + 31) / 32:
		return 0
	case (n + each - 1) / each:
		return each
	}
	m.wrong("%s has shape %s: %d codes of %d bits are %d words", name, tensor.FormatShape(t.Shape()), n, bits, (n*bits+31)/32)
	return 0
}

// scaled makes a weight of numbers of 8 bits times their scales, (q − z)·s; nil where none are there, nor
// wanted.
func (m *module) scaled() *tensor.Tensor {
	part, w, c := "weight_scale", m.parts["weight"], m.config
	if m.parts[part] == nil && (m.parts["weight_scale_inv"] != nil || m.anywhere["weight_scale_inv"] || c.method == "fp8") {
		part = "weight_scale_inv"
	}
	scale := m.parts[part]
	if scale == nil {
		if m.anywhere[part] || c.says(m.name, "fp8", "fbgemm_fp8", "compressed-tensors", "modelopt") {
			m.need("weight", part)
		}
		return nil
	}
	if len(c.block) == 2 && scale.Len() == 1 && w.Len() > c.block[0]*c.block[1] {
		m.fail(part, "one scale for %s, %s says blocks of %v", w, c.file, c.block)
	}
	if c.asymmetric {
		m.need("weight", "weight_zero_point")
	}
	m.part = part
	return m.scaledBy(w, bytesAs(scale, tensor.F8E8M0FNU), m.parts["weight_zero_point"])
}

// scaledBy makes it of one scale for the whole tensor, one for each index of some axes (size 1: all
// indices of an axis share it), or one for each block of some neighbours along axes, of the sizes that
// the config says of the last axes, if it does. A scale of one axis is that of the first axis. zero is
// nil, or has the shape of scale. The result is float32, each number rounded once.
func (m *module) scaledBy(weight, scale, zero *tensor.Tensor) *tensor.Tensor {
	m.check("weight", weight, []tensor.DType{tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.I8, tensor.U8})
	m.check("the scale", scale, append(slices.Clone(scaleTypes), tensor.F8E8M0FNU, tensor.F8E4M3FN))
	if zero != nil {
		types := []tensor.DType{tensor.I8, tensor.U8, tensor.F32, tensor.F16, tensor.BF16, tensor.F8E4M3FN}
		m.check("the zero point", zero, types, scale.Shape()...)
	}
	shape := weight.Shape()
	m.want(len(shape) > 0, "weight is a single number")
	each := m.blocksOf(shape, scale)
	axis, strides, n := len(shape)-1, make([]int, len(shape)), 1
	for a := axis; a >= 0; a-- {
		strides[a] = n
		n *= (shape[a] + each[a] - 1) / max(each[a], 1)
	}
	perRow := func(t *tensor.Tensor) func(r int) []float32 {
		return func(r int) []float32 {
			first := 0
			for a := axis - 1; a >= 0; a-- {
				first += r % shape[a] / each[a] * strides[a]
				r /= shape[a]
			}
			return floats(t, first, (shape[axis]+each[axis]-1)/each[axis])
		}
	}
	all := m.must(tensor.New(weight.DType(), []int{256}, everyCode[:]))
	name := fmt.Sprintf("%s×%s%s", weight.DType().Short(), scale.DType().Short(), tensor.FormatShape(scale.Shape()))
	g := newGrouped(name, weight, scale, floats(all, 0, 256), each[axis], shape)
	g.codes, g.scales = stream(weight, 8), perRow(scale)
	if zero != nil {
		g.zeros = perRow(zero)
	}
	return m.view(g)
}

// blocksOf returns how many neighbours along each axis of a shape share a scale.
func (m *module) blocksOf(shape []int, by *tensor.Tensor) []int {
	scale, block, rank := by.Shape(), m.config.block, len(shape)
	each := make([]int, rank)
	for a := range each {
		each[a] = max(shape[a], 1)
	}
	if by.Len() == 1 {
		return each
	}
	wrong := func() {
		m.wrong("the scale has shape %s, which divides no %s", tensor.FormatShape(scale), tensor.FormatShape(shape))
	}
	if len(scale) == 1 && rank > 1 { // one of each output
		scale = append(slices.Clone(scale), slices.Repeat([]int{1}, rank-1)...)
	}
	if len(scale) != rank {
		wrong()
	}
	for a, k := range scale {
		known := 0
		if at := a - (rank - len(block)); at >= 0 {
			known = block[at]
		}
		switch {
		case k == shape[a]:
			each[a] = 1
		case k == 1:
		case k == 0:
			wrong()
		case known > 0:
			each[a] = known
		case (shape[a]+127)/128 == k:
			each[a] = 128
		case shape[a]%k == 0:
			each[a] = shape[a] / k
		default:
			wrong()
		}
		if want := (shape[a] + each[a] - 1) / each[a]; want != k {
			m.wrong("the scale has shape %s: blocks of %d along axis %d of %s are %d", tensor.FormatShape(scale),
				each[a], a, tensor.FormatShape(shape), want)
		}
	}
	return each
}
