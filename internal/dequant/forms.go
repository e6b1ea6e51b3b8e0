package dequant

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

// companions are parts that are nothing alone, and the codes that they belong to.
var companions = []struct {
	part string
	of   []string
	sure bool // no other tensor is called so
}{
	{"qzeros", []string{"qweight"}, true},
	{"g_idx", []string{"qweight"}, false},
	{"biases", []string{"weight"}, false},
	{"scales", []string{"qweight", "weight"}, false},
	{"weight_scale", []string{"weight", "weight_packed"}, true},
	{"weight_scale_inv", []string{"weight"}, true},
	{"weight_scale_2", []string{"weight", "weight_packed"}, true},
	{"weight_zero_point", []string{"weight", "weight_packed"}, true},
	{"weight_shape", []string{"weight_packed"}, true},
	{"weight_global_scale", []string{"weight_packed"}, true},
	{"weight_g_idx", []string{"weight_packed"}, true},
	{"_scales", []string{"_blocks"}, false},
}

// weight makes the weight of a module; nil if it has none that is quantised.
func (j *joiner) weight(m *module) (*made, error) {
	for _, c := range companions {
		if m.parts[c.part] == nil || slices.ContainsFunc(c.of, func(p string) bool { return m.parts[p] != nil }) {
			continue
		}
		of := c.of[0]
		for _, p := range c.of {
			if j.anywhere(p) {
				of = p
				break
			}
		}
		if c.sure || j.config != nil || j.anywhere("qweight") || m.parts["scales"] != nil && m.parts["biases"] != nil {
			return nil, &missingPart{of, fmt.Sprintf("%s is there", m.full(c.part))}
		}
	}
	w := m.parts["weight"]
	switch {
	case m.parts["qweight"] != nil && j.isAWQ(m):
		return j.awq(m)
	case m.parts["qweight"] != nil:
		return j.gptq(m)
	case m.parts["weight_packed"] != nil:
		return j.compressed(m)
	case m.parts["_blocks"] != nil && m.parts["_blocks"].DType() == tensor.U8:
		return j.blocks(m)
	case w == nil:
		return nil, nil
	case w.DType() == tensor.U32:
		return j.mlx(m)
	case w.DType() == tensor.U8 && (m.parts["weight_scale"] != nil || j.config.says(m.name, "modelopt", "compressed-tensors")):
		return j.nibbles(m)
	case w.DType() == tensor.I8 || w.DType().IsFloat() && w.DType().Size() == 1:
		return j.scaled(m)
	}
	return nil, j.strange(m)
}

// strange returns an error for scales beside a weight that is not quantised.
func (j *joiner) strange(m *module) error {
	for _, part := range []string{"weight_scale", "weight_scale_inv", "weight_scale_2", "scales"} {
		if m.parts[part] != nil && (part != "scales" || j.config != nil || m.parts["biases"] != nil) {
			return &partError{"weight", fmt.Errorf("it is %s, and %s is beside it: want codes, U32, U8, I8 or 8-bit floats",
				m.parts["weight"].DType(), m.full(part))}
		}
	}
	return nil
}

// need requires parts.
func (m *module) need(beside string, parts ...string) error {
	for _, p := range parts {
		if m.parts[p] == nil {
			return &missingPart{p, fmt.Sprintf("%s is there", m.full(beside))}
		}
	}
	return nil
}

// with returns a made weight of the parts that there are.
func (m *module) with(w *tensor.Tensor, err error, parts ...string) (*made, error) {
	if err != nil {
		return nil, err
	}
	used := slices.DeleteFunc(parts, func(p string) bool { return m.parts[p] == nil })
	return &made{m.full("weight"), w, used}, nil
}

// isAWQ tells AutoAWQ's layout from GPTQ's: the outputs are packed, not the inputs.
func (j *joiner) isAWQ(m *module) bool {
	if j.config != nil && (j.config.Method == "awq" || j.config.Method == "gptq") {
		return j.config.Method == "awq"
	}
	q, s := m.parts["qweight"], m.parts["scales"]
	return s != nil && m.parts["g_idx"] == nil && q.RowLen()*8 == s.RowLen() && q.RowLen() != s.RowLen()
}

// groupsFit requires as many groups as config says.
func (j *joiner) groupsFit(part string, in, groups, bits int) error {
	c := j.config
	switch {
	case c == nil:
		return nil
	case c.bits > 0 && c.bits != bits:
		return &partError{part, fmt.Errorf("its codes have %d bits, %s says %d", bits, c.File, c.bits)}
	case c.group < 0 && groups != 1, c.group > 0 && (in+c.group-1)/c.group != groups:
		return &partError{part, fmt.Errorf("%d groups for %d inputs, groups of %d; %s says groups of %d", groups, in,
			(in+groups-1)/max(groups, 1), c.File, c.group)}
	}
	return nil
}

func (j *joiner) gptq(m *module) (*made, error) {
	if err := m.need("qweight", "scales", "qzeros"); err != nil {
		return nil, err
	}
	if m.parts["g_idx"] == nil && (j.anywhere("g_idx") || j.config != nil && j.config.ordered) {
		return nil, m.need("qweight", "g_idx")
	}
	q, z, s := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"]
	bits := 4
	if out := s.RowLen(); out > 0 {
		bits = z.RowLen() * 32 / out
	}
	if j.config != nil && j.config.bits > 0 {
		bits = j.config.bits
	}
	less := j.config == nil || !j.config.plain
	w, err := quant.GPTQ(q, z, s, m.parts["g_idx"], bits, less)
	if err == nil {
		err = j.groupsFit("scales", w.RowLen(), s.Shape()[0], bits)
	}
	return m.with(w, err, "qweight", "qzeros", "scales", "g_idx")
}

func (j *joiner) awq(m *module) (*made, error) {
	if err := m.need("qweight", "scales", "qzeros"); err != nil {
		return nil, err
	}
	switch c := j.config; {
	case c == nil || c.version == "" || c.version == "gemm":
	case c.version == "gemv":
		size := c.group
		if size < 0 {
			size = 8 * m.parts["qweight"].RowLen()
		}
		if c.bits > 0 && c.bits != 4 {
			return nil, &partError{"qweight", fmt.Errorf("%s says %d bits, AWQ has 4", c.File, c.bits)}
		}
		w, err := quant.AWQRows(m.parts["qweight"], m.parts["qzeros"], m.parts["scales"], size)
		return m.with(w, err, "qweight", "qzeros", "scales")
	default:
		return nil, &partError{"qweight", fmt.Errorf("version %q of AWQ in %s: only gemm and gemv are read: %w", c.version, c.File,
			tensor.ErrUnsupported)}
	}
	w, err := quant.AWQ(m.parts["qweight"], m.parts["qzeros"], m.parts["scales"])
	if err == nil {
		err = j.groupsFit("scales", w.RowLen(), m.parts["scales"].Shape()[0], 4)
	}
	return m.with(w, err, "qweight", "qzeros", "scales")
}

func (j *joiner) mlx(m *module) (*made, error) {
	w, s, b := m.parts["weight"], m.parts["scales"], m.parts["biases"]
	if s == nil && b == nil && !j.config.says(m.name, "mlx") && !j.anywhere("biases") {
		return nil, nil // whole numbers
	}
	if err := m.need("weight", "scales"); err != nil {
		return nil, err
	}
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
			return nil, &partError{"weight", fmt.Errorf("%d words and %d scales a row fit (bits, group) %v: config.json "+
				"beside the file would say which, in quantization", w.RowLen(), s.RowLen(), found)}
		}
		how.bits, how.group = found[0][0], found[0][1]
	}
	x, err := quant.Affine(w, s, b, how.bits, how.group)
	if err != nil && j.config != nil {
		err = fmt.Errorf("%w (%s says %d bits in groups of %d)", err, j.config.File, how.bits, how.group)
	}
	return m.with(x, err, "weight", "scales", "biases")
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
func (j *joiner) mlxFloat(m *module, how scheme) (*made, error) {
	w, s := m.parts["weight"], m.parts["scales"]
	mode := how.mode
	if mode == "" || mode == "affine" {
		switch w.RowLen() { // words
		case 4 * s.RowLen():
			mode = "mxfp4"
		case 2 * s.RowLen():
			mode = "nvfp4"
		case 8 * s.RowLen():
			mode = "mxfp8"
		}
	}
	kind := tensor.F8E8M0FNU
	if mode == "nvfp4" {
		kind = tensor.F8E4M3FN
	}
	s, err := s.As(kind)
	if err != nil {
		return nil, err
	}
	var x *tensor.Tensor
	switch mode {
	case "mxfp4":
		x, err = quant.FP4(w, s, nil, false, 32)
	case "nvfp4":
		x, err = j.mlxNVFP4(m, s)
	case "mxfp8":
		x, err = quant.FP8Words(w, s, 32)
	default:
		err = &partError{"scales", fmt.Errorf("%s for %s in mode %q: want mxfp4, mxfp8 or nvfp4", s, w, mode)}
	}
	return m.with(x, err, "weight", "scales", "global_scale")
}

func (j *joiner) mlxNVFP4(m *module, s *tensor.Tensor) (*tensor.Tensor, error) {
	g := m.parts["global_scale"]
	if g == nil {
		return quant.FP4(m.parts["weight"], s, nil, false, 16)
	}
	if g.Len() != 1 || !g.DType().IsFloat() {
		return nil, &partError{"global_scale", fmt.Errorf("it is %s, want one number", g)}
	}
	// The largest number of 4 bits times the largest scale.
	g, err := tensor.Of([]float32{float32(g.At(0)) / (6 * 448)}, 1)
	if err != nil {
		return nil, err
	}
	return quant.FP4(m.parts["weight"], s, g, false, 16)
}

// scaled makes a weight of numbers of 8 bits.
func (j *joiner) scaled(m *module) (*made, error) {
	scale, part := m.parts["weight_scale"], "weight_scale"
	if scale == nil {
		scale, part = m.parts["weight_scale_inv"], "weight_scale_inv"
	}
	if scale == nil {
		wanted := "weight_scale"
		if j.anywhere("weight_scale_inv") || j.config != nil && j.config.Method == "fp8" {
			wanted = "weight_scale_inv"
		}
		if j.anywhere(wanted) || j.config.says(m.name, "fp8", "fbgemm_fp8", "compressed-tensors", "modelopt") {
			return nil, m.need("weight", wanted)
		}
		return nil, nil
	}
	if scale.DType() == tensor.U8 {
		as, err := scale.As(tensor.F8E8M0FNU)
		if err != nil {
			return nil, err
		}
		scale = as
	}
	var block []int
	if c := j.config; c != nil {
		block = c.block
		if len(block) == 2 && scale.Len() == 1 && m.parts["weight"].Len() > block[0]*block[1] {
			return nil, &partError{part, fmt.Errorf("one scale for %s, %s says blocks of %v", m.parts["weight"], c.File, block)}
		}
	}
	zero := m.parts["weight_zero_point"]
	if zero == nil && j.config != nil && j.config.asymmetric {
		return nil, m.need("weight", "weight_zero_point")
	}
	w, err := quant.Scaled(m.parts["weight"], scale, zero, block)
	if err != nil {
		err = &partError{part, err}
	}
	return m.with(w, err, "weight", part, "weight_zero_point")
}

// compressed makes a weight of compressed-tensors' packed codes.
func (j *joiner) compressed(m *module) (*made, error) {
	p := m.parts["weight_packed"]
	if p.DType() == tensor.U8 {
		return j.nibbles(m)
	}
	if err := m.need("weight_packed", "weight_scale", "weight_shape"); err != nil {
		return nil, err
	}
	zero := m.parts["weight_zero_point"]
	if zero == nil && (j.config != nil && j.config.asymmetric || j.config == nil && j.anywhere("weight_zero_point")) {
		return nil, m.need("weight_packed", "weight_zero_point")
	}
	shape, s := m.parts["weight_shape"], m.parts["weight_scale"]
	if n := len(p.Shape()); n == 3 && shape.Len() == 3 && !shape.DType().IsFloat() && len(s.Shape()) == 3 && zero == nil {
		return j.compressedExperts(m)
	}
	if shape.Len() != 2 || shape.DType().IsFloat() || len(p.Shape()) != 2 {
		return nil, &partError{"weight_shape", fmt.Errorf("it is %s for %s, want two whole numbers for a matrix", shape, p)}
	}
	size := make([]int64, 2)
	shape.Int64s(size, 0)
	if size[0] != int64(p.Shape()[0]) || size[1] < 0 || size[1] > int64(p.RowLen())*32 {
		return nil, &partError{"weight_shape", fmt.Errorf("it says %v, weight_packed has shape %s", size,
			tensor.FormatShape(p.Shape()))}
	}
	bits, in := 4, int(size[1])
	if in > 0 {
		bits = p.RowLen() * 32 / in
	}
	if c := j.config; c != nil && len(c.schemes) == 1 && c.schemes[0].bits > 0 {
		bits = c.schemes[0].bits
	}
	group, err := groupOf(m.parts["weight_g_idx"])
	if err != nil {
		return nil, &partError{"weight_g_idx", err}
	}
	w, err := quant.Words(p, s, zero, group, bits, in)
	if err == nil && j.config != nil && len(j.config.schemes) > 0 {
		err = j.schemeFits(bits, in, s.RowLen())
	}
	return m.with(w, err, "weight_packed", "weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx")
}

// compressedExperts makes the weight of experts in one tensor, [experts out in], without zero points,
// as one matrix of all their outputs.
func (j *joiner) compressedExperts(m *module) (*made, error) {
	p, s, shape := m.parts["weight_packed"], m.parts["weight_scale"], m.parts["weight_shape"]
	size := make([]int64, 3)
	shape.Int64s(size, 0)
	n, out := p.Shape()[0], p.Shape()[1]
	if size[0] != int64(n) || size[1] != int64(out) || size[2] < 0 || size[2] > int64(p.RowLen())*32 {
		return nil, &partError{"weight_shape", fmt.Errorf("it says %v, weight_packed has shape %s", size, tensor.FormatShape(p.Shape()))}
	}
	if m.parts["weight_g_idx"] != nil {
		return nil, &partError{"weight_g_idx", fmt.Errorf("of experts in one tensor it is not read: %w", tensor.ErrUnsupported)}
	}
	flat, err := p.Reshape(n*out, p.RowLen())
	if err == nil {
		s, err = s.Reshape(n*out, s.RowLen())
	}
	if err != nil {
		return nil, &partError{"weight_scale", err}
	}
	bits, in := 4, int(size[2])
	if in > 0 {
		bits = p.RowLen() * 32 / in
	}
	if c := j.config; c != nil && len(c.schemes) == 1 && c.schemes[0].bits > 0 {
		bits = c.schemes[0].bits
	}
	w, err := quant.Words(flat, s, nil, nil, bits, in)
	if err == nil && j.config != nil && len(j.config.schemes) > 0 {
		err = j.schemeFits(bits, in, s.RowLen())
	}
	if err == nil {
		w, err = w.Reshape(n, out, in)
	}
	return m.with(w, err, "weight_packed", "weight_scale", "weight_shape")
}

// schemeFits requires a scheme of config with such bits and groups.
func (j *joiner) schemeFits(bits, in, groups int) error {
	for _, s := range j.config.schemes {
		if s.bits == bits && (s.group <= 0 && groups == 1 || s.group > 0 && (in+s.group-1)/s.group == groups) {
			return nil
		}
	}
	s := j.config.schemes[0]
	return &partError{"weight_scale", fmt.Errorf("codes of %d bits and %d groups for %d inputs; %s says %d bits in groups of %d",
		bits, groups, in, j.config.File, s.bits, s.group)}
}

// groupOf returns the groups of the inputs; nil if they are not set, as −1.
func groupOf(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t == nil || t.Len() == 0 {
		return nil, nil
	}
	if t.DType().IsFloat() {
		return nil, fmt.Errorf("it is %s, want whole numbers", t.DType())
	}
	if t.At(0) == -1 {
		return nil, nil
	}
	return t, nil
}

// nibbles makes a weight of floats of 4 bits, two a byte.
func (j *joiner) nibbles(m *module) (*made, error) {
	codes := "weight_packed"
	if m.parts[codes] == nil {
		codes = "weight"
	}
	if err := m.need(codes, "weight_scale"); err != nil {
		return nil, err
	}
	w, s := m.parts[codes], m.parts["weight_scale"]
	if s.DType() == tensor.U8 || s.DType() == tensor.F8E8M0FNU {
		s, err := s.As(tensor.F8E8M0FNU)
		if err != nil {
			return nil, err
		}
		x, err := quant.FP4(w, s, nil, false, 32)
		return m.with(x, err, codes, "weight_scale")
	}
	global, divide := "weight_global_scale", true
	if codes == "weight" || m.parts[global] == nil && m.parts["weight_scale_2"] != nil {
		global, divide = "weight_scale_2", false
	}
	if err := m.need(codes, global); err != nil {
		return nil, err
	}
	x, err := quant.FP4(w, s, m.parts[global], divide, 16)
	return m.with(x, err, codes, "weight_scale", global)
}

// blocks makes a weight of gpt-oss, which has its outputs last.
func (j *joiner) blocks(m *module) (*made, error) {
	b := m.parts["_blocks"]
	if err := m.need("_blocks", "_scales"); err != nil {
		return nil, err
	}
	shape := b.Shape()
	if len(shape) < 3 || shape[len(shape)-1] != 16 {
		return nil, &partError{"_blocks", fmt.Errorf("shape %s, want […  groups 16]", tensor.FormatShape(shape))}
	}
	n := len(shape)
	flat, err := b.Reshape(append(slices.Clone(shape[:n-2]), 16*shape[n-2])...)
	if err != nil {
		return nil, err
	}
	s := m.parts["_scales"]
	if s.DType() == tensor.U8 {
		if s, err = s.As(tensor.F8E8M0FNU); err != nil {
			return nil, err
		}
	}
	w, err := quant.FP4(flat, s, nil, false, 32)
	if err != nil {
		return nil, &partError{"_scales", err}
	}
	if w, err = w.Transpose(); err != nil {
		return nil, err
	}
	return &made{m.name, w, []string{"_blocks", "_scales"}}, nil
}
