package checkpoint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

// companions are parts beside the codes that they belong to.
var companions = []struct {
	part string
	of   []string
	sure bool // no other tensor is called so
}{
	{"qzeros", []string{"qweight"}, true},
	{"g_idx", []string{"qweight"}, false},
	{"biases", []string{"weight"}, false},
	{"scales", []string{"qweight", "weight"}, false},
	{"global_scale", []string{"weight"}, false},
	{"weight_scale", []string{"weight", "weight_packed"}, true},
	{"weight_scale_inv", []string{"weight"}, true},
	{"weight_scale_2", []string{"weight", "weight_packed"}, true},
	{"weight_zero_point", []string{"weight", "weight_packed"}, true},
	{"weight_shape", []string{"weight_packed"}, true},
	{"weight_global_scale", []string{"weight_packed"}, true},
	{"weight_g_idx", []string{"weight_packed"}, true},
	{"_scales", []string{"_blocks"}, false},
}

// form is a layout of quantised weights.
type form struct {
	codes string         // the part that has them
	types []tensor.DType // of the codes; nil for any
	is    func(j *joiner, m *module) bool
	needs []string // parts that must be there, too
	make  func(j *joiner, m *module) (*tensor.Tensor, error)
}

var (
	octets = []tensor.DType{tensor.U8}
	eights = []tensor.DType{tensor.I8, tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU}
)

// forms are looked at in this order. The last one has no codes.
var forms = []form{
	{"qweight", nil, (*joiner).isAWQ, []string{"scales", "qzeros"}, (*joiner).awq},
	{"qweight", nil, nil, []string{"scales", "qzeros"}, (*joiner).gptq},
	{"weight_packed", octets, nil, []string{"weight_scale"}, (*joiner).nibbles},
	{"weight_packed", nil, nil, []string{"weight_scale", "weight_shape"}, (*joiner).compressed},
	{"_blocks", octets, nil, []string{"_scales"}, (*joiner).blocks},
	{"weight", []tensor.DType{tensor.U32}, (*joiner).isMLX, []string{"scales"}, (*joiner).mlx},
	{"weight", octets, (*joiner).isModelOpt, []string{"weight_scale"}, (*joiner).nibbles},
	{"weight", eights, nil, nil, (*joiner).scaled},
	{"weight", nil, nil, nil, (*joiner).strange},
}

// weight makes the weight of a module, of which codes is the first part; nil if it has none that is
// quantised.
func (j *joiner) weight(m *module) (codes string, w *tensor.Tensor, err error) {
	if err := j.lonely(m); err != nil {
		return "", nil, err
	}
	for _, f := range forms {
		t := m.parts[f.codes]
		if t == nil || f.types != nil && !slices.Contains(f.types, t.DType()) || f.is != nil && !f.is(j, m) {
			continue
		}
		if err := m.need(f.codes, f.needs...); err != nil {
			return "", nil, err
		}
		w, err := f.make(j, m)
		return f.codes, w, err
	}
	return "", nil, nil
}

// lonely returns an error for a part whose codes are missing.
func (j *joiner) lonely(m *module) error {
	for _, c := range companions {
		if m.parts[c.part] == nil || slices.ContainsFunc(c.of, func(p string) bool { return m.parts[p] != nil }) {
			continue
		}
		of := c.of[0]
		if i := slices.IndexFunc(c.of, j.anywhere); i >= 0 {
			of = c.of[i]
		}
		if c.sure || j.config != nil || j.anywhere("qweight") || m.parts["scales"] != nil && m.parts["biases"] != nil {
			return m.need(c.part, of)
		}
	}
	return nil
}

// strange returns an error for scales beside a weight that is not quantised.
func (j *joiner) strange(m *module) (*tensor.Tensor, error) {
	t := m.parts["weight"]
	for _, part := range []string{"weight_scale", "weight_scale_inv", "weight_scale_2", "scales"} {
		if m.parts[part] != nil && (part != "scales" || j.config != nil || m.parts["biases"] != nil) {
			return nil, wrong("weight", "it is %s, and %s is beside it: want codes, U32, U8, I8 or 8-bit floats", t.DType(), m.full(part))
		}
	}
	return nil, nil
}

// need requires parts.
func (m *module) need(beside string, parts ...string) error {
	for _, p := range parts {
		if m.parts[p] == nil {
			return &partError{part: p, missing: true, err: fmt.Errorf("is missing: %s is there", m.full(beside))}
		}
	}
	return nil
}

// isAWQ tells AutoAWQ's layout from GPTQ's: the outputs are packed, not the inputs.
func (j *joiner) isAWQ(m *module) bool {
	if j.config != nil && (j.config.method == "awq" || j.config.method == "gptq") {
		return j.config.method == "awq"
	}
	q, s := m.parts["qweight"], m.parts["scales"]
	return s != nil && m.parts["g_idx"] == nil && q.RowLen()*8 == s.RowLen() && q.RowLen() != s.RowLen()
}

// fits requires that config says such bits and groups of a weight with in inputs.
func (j *joiner) fits(part string, bits, in, groups int) error {
	c := j.config
	if c == nil || len(c.schemes) == 0 {
		return nil
	}
	for _, s := range c.schemes {
		if (s.bits == 0 || s.bits == bits) && (s.group == 0 || s.group < 0 && groups == 1 || s.group > 0 && (in+s.group-1)/s.group == groups) {
			return nil
		}
	}
	return wrong(part, "codes of %d bits and %d groups for %d inputs; %s says %d bits in groups of %d", bits, groups, in,
		c.file, c.schemes[0].bits, c.schemes[0].group)
}

func (j *joiner) gptq(m *module) (*tensor.Tensor, error) {
	if m.parts["g_idx"] == nil && (j.anywhere("g_idx") || j.config != nil && j.config.ordered) {
		return nil, m.need("qweight", "g_idx")
	}
	q, z, s := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"]
	bits := j.config.usual().bits
	if out := s.RowLen(); bits == 0 && out > 0 {
		bits = z.RowLen() * 32 / out
	}
	bits = cmp.Or(bits, 4)
	less := j.config == nil || !j.config.plain
	w, err := quant.GPTQ(q, z, s, m.parts["g_idx"], bits, less)
	if err == nil {
		err = j.fits("scales", bits, w.RowLen(), s.Shape()[0])
	}
	return w, err
}

func (j *joiner) awq(m *module) (*tensor.Tensor, error) {
	q, z, s := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"]
	switch c := j.config; {
	case c == nil || c.version == "" || c.version == "gemm":
	case c.version == "gemv":
		size := c.usual().group
		if size < 0 {
			size = 8 * q.RowLen()
		}
		if bits := c.usual().bits; bits > 0 && bits != 4 {
			return nil, wrong("qweight", "%s says %d bits, AWQ has 4", c.file, bits)
		}
		return quant.AWQRows(q, z, s, size)
	default:
		return nil, wrong("qweight", "version %q of AWQ in %s: only gemm and gemv are read: %w", c.version, c.file, tensor.ErrUnsupported)
	}
	w, err := quant.AWQ(q, z, s)
	if err == nil {
		err = j.fits("scales", 4, w.RowLen(), s.Shape()[0])
	}
	return w, err
}

// isMLX tells codes of MLX from whole numbers.
func (j *joiner) isMLX(m *module) bool {
	return m.parts["scales"] != nil || m.parts["biases"] != nil || j.config.says(m.name, "mlx") || j.anywhere("biases")
}

// isModelOpt tells codes of 4 bits from whole numbers.
func (j *joiner) isModelOpt(m *module) bool {
	return m.parts["weight_scale"] != nil || j.config.says(m.name, "modelopt", "compressed-tensors")
}

func (j *joiner) mlx(m *module) (*tensor.Tensor, error) {
	w, s, b := m.parts["weight"], m.parts["scales"], m.parts["biases"]
	how := j.config.of(m.name)
	if s.DType() == tensor.U8 {
		return j.mlxFloat(m, how)
	}
	if err := m.need("weight", "biases"); err != nil {
		return nil, err
	}
	if how.bits == 0 || how.group == 0 {
		found := guesses(w, s, how)
		if len(found) != 1 {
			return nil, wrong("weight", "%d words and %d scales a row fit (bits, group) %v: config.json "+
				"beside the file would say which, in quantization", w.RowLen(), s.RowLen(), found)
		}
		how.bits, how.group = found[0][0], found[0][1]
	}
	x, err := quant.Affine(w, s, b, how.bits, how.group)
	if err != nil && j.config != nil {
		err = fmt.Errorf("%w (%s says %d bits in groups of %d)", err, j.config.file, how.bits, how.group)
	}
	return x, err
}

// guesses lists bits and groups with which codes and scales fit.
func guesses(w, s *tensor.Tensor, how scheme) (out [][2]int) {
	for _, bits := range quant.AffineBits[1:] {
		for _, group := range []int{32, 64, 128} {
			if w.RowLen()*32 == s.RowLen()*group*bits && (how.bits == 0 || how.bits == bits) &&
				(how.group == 0 || how.group == group) {
				out = append(out, [2]int{bits, group})
			}
		}
	}
	return out
}

// mlxFloat makes a weight of MLX's modes mxfp4, mxfp8 and nvfp4.
func (j *joiner) mlxFloat(m *module, how scheme) (*tensor.Tensor, error) {
	w, s := m.parts["weight"], m.parts["scales"]
	mode := how.mode
	if mode == "" || mode == "affine" {
		mode = map[int]string{4 * s.RowLen(): "mxfp4", 2 * s.RowLen(): "nvfp4", 8 * s.RowLen(): "mxfp8"}[w.RowLen()] // words
	}
	switch mode {
	case "mxfp4":
		return quant.FP4(w, bytesAs(s, tensor.F8E8M0FNU), nil, false, 32)
	case "nvfp4":
		return j.mlxNVFP4(m, bytesAs(s, tensor.F8E4M3FN))
	case "mxfp8":
		return quant.FP8Words(w, bytesAs(s, tensor.F8E8M0FNU), 32)
	}
	return nil, wrong("scales", "%s for %s in mode %q: want mxfp4, mxfp8 or nvfp4", s, w, mode)
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

func (j *joiner) mlxNVFP4(m *module, s *tensor.Tensor) (*tensor.Tensor, error) {
	g := m.parts["global_scale"]
	if g != nil {
		if g.Len() != 1 || !g.DType().IsFloat() {
			return nil, wrong("global_scale", "it is %s, want one number", g)
		}
		var err error
		// The largest number of 4 bits times the largest scale.
		if g, err = tensor.Of([]float32{float32(g.At(0)) / (6 * 448)}, 1); err != nil {
			return nil, err
		}
	}
	return quant.FP4(m.parts["weight"], s, g, false, 16)
}

// scaled makes a weight of numbers of 8 bits.
func (j *joiner) scaled(m *module) (*tensor.Tensor, error) {
	part := "weight_scale"
	if m.parts[part] == nil && (m.parts["weight_scale_inv"] != nil || j.anywhere("weight_scale_inv") || j.config != nil && j.config.method == "fp8") {
		part = "weight_scale_inv"
	}
	scale := m.parts[part]
	if scale == nil {
		if j.anywhere(part) || j.config.says(m.name, "fp8", "fbgemm_fp8", "compressed-tensors", "modelopt") {
			return nil, m.need("weight", part)
		}
		return nil, nil
	}
	var block []int
	if c := j.config; c != nil {
		block = c.block
		if len(block) == 2 && scale.Len() == 1 && m.parts["weight"].Len() > block[0]*block[1] {
			return nil, wrong(part, "one scale for %s, %s says blocks of %v", m.parts["weight"], c.file, block)
		}
	}
	zero := m.parts["weight_zero_point"]
	if zero == nil && j.config != nil && j.config.asymmetric {
		return nil, m.need("weight", "weight_zero_point")
	}
	w, err := quant.Scaled(m.parts["weight"], bytesAs(scale, tensor.F8E8M0FNU), zero, block)
	if err != nil {
		err = &partError{part: part, err: err}
	}
	return w, err
}

// compressed makes a weight of compressed-tensors' packed codes, [out in], or of experts in one tensor, [experts
// out in], as one matrix of all their outputs.
func (j *joiner) compressed(m *module) (*tensor.Tensor, error) {
	p, s, shape, zero := m.parts["weight_packed"], m.parts["weight_scale"], m.parts["weight_shape"], m.parts["weight_zero_point"]
	if zero == nil && (j.config != nil && j.config.asymmetric || j.config == nil && j.anywhere("weight_zero_point")) {
		return nil, m.need("weight_packed", "weight_zero_point")
	}
	axes := len(p.Shape())
	experts := axes == 3 && len(s.Shape()) == 3 && zero == nil
	if shape.Len() != axes || shape.DType().IsFloat() || axes != 2 && !experts {
		return nil, wrong("weight_shape", "it is %s for %s, want two whole numbers for a matrix", shape, p)
	}
	size := make([]int, axes)
	for i := range size {
		size[i] = int(shape.At(i))
	}
	in := size[axes-1]
	if !slices.Equal(size[:axes-1], p.Shape()[:axes-1]) || in < 0 || in > p.RowLen()*32 {
		return nil, wrong("weight_shape", "it says %v, weight_packed has shape %s", size, tensor.FormatShape(p.Shape()))
	}
	group, err := groupOf(m.parts["weight_g_idx"])
	switch {
	case err != nil:
		return nil, err
	case experts && group != nil:
		return nil, wrong("weight_g_idx", "of experts in one tensor it is not read: %w", tensor.ErrUnsupported)
	case experts:
		rows := size[0] * size[1]
		if p, err = p.Reshape(rows, p.RowLen()); err == nil {
			s, err = s.Reshape(rows, s.RowLen())
		}
		if err != nil {
			return nil, &partError{part: "weight_scale", err: err}
		}
	}
	bits := 4
	if in > 0 {
		bits = p.RowLen() * 32 / in
	}
	if c := j.config; c != nil && len(c.schemes) == 1 && c.schemes[0].bits > 0 {
		bits = c.schemes[0].bits
	}
	w, err := quant.Words(p, s, zero, group, bits, in)
	if err == nil {
		err = j.fits("weight_scale", bits, in, s.RowLen())
	}
	if err != nil {
		return nil, err
	}
	return w.Reshape(size...)
}

// groupOf returns the groups of the inputs; nil if they are not set, as −1.
func groupOf(t *tensor.Tensor) (*tensor.Tensor, error) {
	switch {
	case t == nil || t.Len() == 0:
		return nil, nil
	case t.DType().IsFloat():
		return nil, wrong("weight_g_idx", "it is %s, want whole numbers", t.DType())
	case t.At(0) == -1:
		return nil, nil
	}
	return t, nil
}

// nibbles makes a weight of floats of 4 bits, two a byte.
func (j *joiner) nibbles(m *module) (*tensor.Tensor, error) {
	codes := "weight_packed"
	if m.parts[codes] == nil {
		codes = "weight"
	}
	w, s := m.parts[codes], bytesAs(m.parts["weight_scale"], tensor.F8E8M0FNU)
	if s.DType() == tensor.F8E8M0FNU {
		return quant.FP4(w, s, nil, false, 32)
	}
	global, divide := "weight_global_scale", true
	if codes == "weight" || m.parts[global] == nil && m.parts["weight_scale_2"] != nil {
		global, divide = "weight_scale_2", false
	}
	if err := m.need(codes, global); err != nil {
		return nil, err
	}
	return quant.FP4(w, s, m.parts[global], divide, 16)
}

// blocks makes a weight of gpt-oss, which has its outputs last.
func (j *joiner) blocks(m *module) (*tensor.Tensor, error) {
	b, s := m.parts["_blocks"], bytesAs(m.parts["_scales"], tensor.F8E8M0FNU)
	shape := b.Shape()
	n := len(shape)
	if n < 3 || shape[n-1] != 16 {
		return nil, wrong("_blocks", "shape %s, want […  groups 16]", tensor.FormatShape(shape))
	}
	flat, err := b.Reshape(append(slices.Clone(shape[:n-2]), 16*shape[n-2])...)
	if err != nil {
		return nil, err
	}
	w, err := quant.FP4(flat, s, nil, false, 32)
	if err != nil {
		return nil, &partError{part: "_scales", err: err}
	}
	return w.Transpose()
}
