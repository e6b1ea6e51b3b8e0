package checkpoint

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

// used are the parts that a weight is made of beside its codes.
var used = map[string][]string{
	"qweight": {"qzeros", "scales", "g_idx"},
	"weight": {"scales", "biases", "global_scale", "weight_scale", "weight_scale_inv", "weight_scale_2",
		"weight_zero_point"},
	"weight_packed": {"weight_scale", "weight_scale_2", "weight_shape", "weight_zero_point", "weight_global_scale",
		"weight_g_idx"},
	"_blocks": {"_scales"},
}

// weight makes the weight of a module, of which codes is the first part; nil if it has none that is
// quantised.
func (j *joiner) weight(m *module) (codes string, w *tensor.Tensor, err error) {
	if err := j.lonely(m); err != nil {
		return "", nil, err
	}
	is := func(part string, kinds ...tensor.DType) bool {
		t := m.parts[part]
		return t != nil && (len(kinds) == 0 || slices.Contains(kinds, t.DType()))
	}
	make := j.strange
	switch codes = "weight"; {
	case is("qweight") && j.isAWQ(m):
		codes, make = "qweight", j.awq
	case is("qweight"):
		codes, make = "qweight", j.gptq
	case is("weight_packed", tensor.U8):
		codes, make = "weight_packed", j.nibbles
	case is("weight_packed"):
		codes, make = "weight_packed", j.compressed
	case is("_blocks", tensor.U8):
		codes, make = "_blocks", j.blocks
	case !is("weight"):
		return "", nil, nil
	case is("weight", tensor.U32):
		make = j.mlx
	case is("weight", tensor.U8) && (is("weight_scale") || j.config.says(m.name, "modelopt", "compressed-tensors")):
		make = j.nibbles
	case is("weight", tensor.I8) || m.parts["weight"].DType().IsFloat() && m.parts["weight"].DType().Size() == 1:
		make = j.scaled
	}
	w, err = make(m)
	return codes, w, err
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
	for _, part := range []string{"weight_scale", "weight_scale_inv", "weight_scale_2", "scales"} {
		if m.parts[part] != nil && (part != "scales" || j.config != nil || m.parts["biases"] != nil) {
			return nil, &partError{"weight", fmt.Errorf("it is %s, and %s is beside it: want codes, U32, U8, I8 or 8-bit floats",
				m.parts["weight"].DType(), m.full(part))}
		}
	}
	return nil, nil
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

// isAWQ tells AutoAWQ's layout from GPTQ's: the outputs are packed, not the inputs.
func (j *joiner) isAWQ(m *module) bool {
	if j.config != nil && (j.config.method == "awq" || j.config.method == "gptq") {
		return j.config.method == "awq"
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
		return &partError{part, fmt.Errorf("its codes have %d bits, %s says %d", bits, c.file, c.bits)}
	case c.group < 0 && groups != 1, c.group > 0 && (in+c.group-1)/c.group != groups:
		return &partError{part, fmt.Errorf("%d groups for %d inputs, groups of %d; %s says groups of %d", groups, in,
			(in+groups-1)/max(groups, 1), c.file, c.group)}
	}
	return nil
}

func (j *joiner) gptq(m *module) (*tensor.Tensor, error) {
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
	return w, err
}

func (j *joiner) awq(m *module) (*tensor.Tensor, error) {
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
			return nil, &partError{"qweight", fmt.Errorf("%s says %d bits, AWQ has 4", c.file, c.bits)}
		}
		return quant.AWQRows(m.parts["qweight"], m.parts["qzeros"], m.parts["scales"], size)
	default:
		return nil, &partError{"qweight", fmt.Errorf("version %q of AWQ in %s: only gemm and gemv are read: %w", c.version, c.file,
			tensor.ErrUnsupported)}
	}
	w, err := quant.AWQ(m.parts["qweight"], m.parts["qzeros"], m.parts["scales"])
	if err == nil {
		err = j.groupsFit("scales", w.RowLen(), m.parts["scales"].Shape()[0], 4)
	}
	return w, err
}

func (j *joiner) mlx(m *module) (*tensor.Tensor, error) {
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
	switch mode {
	case "mxfp4":
		return quant.FP4(w, s, nil, false, 32)
	case "nvfp4":
		return j.mlxNVFP4(m, s)
	case "mxfp8":
		return quant.FP8Words(w, s, 32)
	}
	return nil, &partError{"scales", fmt.Errorf("%s for %s in mode %q: want mxfp4, mxfp8 or nvfp4", s, w, mode)}
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
func (j *joiner) scaled(m *module) (*tensor.Tensor, error) {
	scale, part := m.parts["weight_scale"], "weight_scale"
	if scale == nil {
		scale, part = m.parts["weight_scale_inv"], "weight_scale_inv"
	}
	if scale == nil {
		wanted := "weight_scale"
		if j.anywhere("weight_scale_inv") || j.config != nil && j.config.method == "fp8" {
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
			return nil, &partError{part, fmt.Errorf("one scale for %s, %s says blocks of %v", m.parts["weight"], c.file, block)}
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
	return w, err
}

// compressed makes a weight of compressed-tensors' packed codes, [out in], or of experts in one tensor, [experts
// out in], as one matrix of all their outputs.
func (j *joiner) compressed(m *module) (*tensor.Tensor, error) {
	if err := m.need("weight_packed", "weight_scale", "weight_shape"); err != nil {
		return nil, err
	}
	p, s, shape, zero := m.parts["weight_packed"], m.parts["weight_scale"], m.parts["weight_shape"], m.parts["weight_zero_point"]
	if zero == nil && (j.config != nil && j.config.asymmetric || j.config == nil && j.anywhere("weight_zero_point")) {
		return nil, m.need("weight_packed", "weight_zero_point")
	}
	axes := len(p.Shape())
	experts := axes == 3 && len(s.Shape()) == 3 && zero == nil
	if shape.Len() != axes || shape.DType().IsFloat() || axes != 2 && !experts {
		return nil, &partError{"weight_shape", fmt.Errorf("it is %s for %s, want two whole numbers for a matrix", shape, p)}
	}
	stored := make([]int64, axes)
	shape.Int64s(stored, 0)
	size := make([]int, axes)
	for i, n := range stored {
		size[i] = int(n)
	}
	in := size[axes-1]
	if !slices.Equal(size[:axes-1], p.Shape()[:axes-1]) || in < 0 || in > p.RowLen()*32 {
		return nil, &partError{"weight_shape", fmt.Errorf("it says %v, weight_packed has shape %s", stored,
			tensor.FormatShape(p.Shape()))}
	}
	group, err := groupOf(m.parts["weight_g_idx"])
	switch {
	case err != nil:
		return nil, &partError{"weight_g_idx", err}
	case experts && group != nil:
		return nil, &partError{"weight_g_idx", fmt.Errorf("of experts in one tensor it is not read: %w", tensor.ErrUnsupported)}
	case experts:
		rows := size[0] * size[1]
		if p, err = p.Reshape(rows, p.RowLen()); err == nil {
			s, err = s.Reshape(rows, s.RowLen())
		}
		if err != nil {
			return nil, &partError{"weight_scale", err}
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
	if err == nil && j.config != nil && len(j.config.schemes) > 0 {
		err = j.schemeFits(bits, in, s.RowLen())
	}
	if err != nil {
		return nil, err
	}
	return w.Reshape(size...)
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
		bits, groups, in, j.config.file, s.bits, s.group)}
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
func (j *joiner) nibbles(m *module) (*tensor.Tensor, error) {
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
	return w.Transpose()
}
