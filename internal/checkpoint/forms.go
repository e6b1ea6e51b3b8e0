package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

// companions are parts beside the codes that they belong to, in the order in which one without any is told.
var companions = []struct{ part, of string }{
	{"qzeros", "qweight"}, {"g_idx", "qweight"}, {"biases", "weight"}, {"scales", "qweight weight"},
	{"global_scale", "weight"}, {"weight_scale", "weight weight_packed"}, {"weight_scale_inv", "weight"},
	{"weight_scale_2", "weight weight_packed"}, {"weight_zero_point", "weight weight_packed"},
	{"weight_shape", "weight_packed"}, {"weight_global_scale", "weight_packed"}, {"weight_g_idx", "weight_packed"},
	{"_scales", "_blocks"},
}

// form is a layout of quantised weights.
type form struct {
	codes string         // the part that has them
	types []tensor.DType // of the codes; nil for any
	is    func(m *module) bool
	needs []string // parts that must be there, too
	make  func(m *module) *tensor.Tensor
}

var (
	octets = []tensor.DType{tensor.U8}
	eights = []tensor.DType{tensor.I8, tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU}
)

// forms are looked at in this order. The last one has no codes.
var forms = []form{
	{"qweight", nil, (*module).isAWQ, []string{"scales", "qzeros"}, (*module).awq},
	{"qweight", nil, nil, []string{"scales", "qzeros"}, (*module).gptq},
	{"weight_packed", octets, nil, []string{"weight_scale"}, (*module).nibbles},
	{"weight_packed", nil, nil, []string{"weight_scale", "weight_shape"}, (*module).compressed},
	{"_blocks", octets, nil, []string{"_scales"}, (*module).blocks},
	{"weight", []tensor.DType{tensor.U32}, (*module).isMLX, []string{"scales"}, (*module).mlx},
	{"weight", octets, (*module).isModelOpt, []string{"weight_scale"}, (*module).nibbles},
	{"weight", eights, nil, nil, (*module).scaled},
	{"weight", nil, nil, nil, (*module).strange},
}

// elsewhere is why a module is left as it is: what it lacks is in another file.
type elsewhere string

// weight makes the weight of a module, of which codes is the first part; nil if it has none that is
// quantised. The error is a *tensor.FormatError.
func (m *module) weight() (codes string, w *tensor.Tensor, note elsewhere, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *tensor.FormatError:
			err = r
		case elsewhere:
			note = r
		default:
			panic(r)
		}
	}()
	m.lonely()
	for _, f := range forms {
		t := m.parts[f.codes]
		if t == nil || f.types != nil && !slices.Contains(f.types, t.DType()) || f.is != nil && !f.is(m) {
			continue
		}
		m.need(f.codes, f.needs...)
		return f.codes, f.make(m), "", nil
	}
	return "", nil, "", nil
}

// lonely fails for a part whose codes are missing.
func (m *module) lonely() {
	for _, c := range companions {
		of := strings.Fields(c.of)
		if m.parts[c.part] == nil || slices.ContainsFunc(of, func(p string) bool { return m.parts[p] != nil }) {
			continue
		}
		missing := of[0]
		for _, is := range []func(p string) bool{
			func(p string) bool { return m.anywhere[p] },
			func(p string) bool { return m.others(m.full(p)) },
		} {
			if i := slices.IndexFunc(of, is); i >= 0 {
				missing = of[i]
			}
		}
		isSure := c.part == "qzeros" || strings.HasPrefix(c.part, "weight_") // no other tensor is called so
		isMLX := m.parts["scales"] != nil && m.parts["biases"] != nil
		if isSure || isMLX || m.config.file != "" || m.anywhere["qweight"] {
			m.need(c.part, missing)
		}
	}
}

// strange fails for scales beside a weight that is not quantised.
func (m *module) strange() *tensor.Tensor {
	for _, part := range []string{"weight_scale", "weight_scale_inv", "weight_scale_2", "scales"} {
		if m.parts[part] != nil && (part != "scales" || m.config.file != "" || m.parts["biases"] != nil) {
			m.fail("weight", "it is %s, and %s is beside it: want codes, U32, U8, I8 or 8-bit floats", m.parts["weight"].DType(), m.full(part))
		}
	}
	return nil
}

// isAWQ tells AutoAWQ's layout from GPTQ's: the outputs are packed, not the inputs.
func (m *module) isAWQ() bool {
	if method := m.config.method; method == "awq" || method == "gptq" {
		return method == "awq"
	}
	q, s := m.parts["qweight"], m.parts["scales"]
	return s != nil && m.parts["g_idx"] == nil && q.RowLen()*8 == s.RowLen() && q.RowLen() != s.RowLen()
}

// fits requires that config says such bits and groups of a weight with in inputs.
func (m *module) fits(part string, bits, in, groups int) {
	c := m.config
	fit := func(s scheme) bool {
		return (s.bits == 0 || s.bits == bits) && (s.group == 0 || s.group < 0 && groups == 1 || s.group > 0 && (in+s.group-1)/s.group == groups)
	}
	if len(c.schemes) > 0 && !slices.ContainsFunc(c.schemes, fit) {
		m.fail(part, "codes of %d bits and %d groups for %d inputs; %s says %d bits in groups of %d", bits, groups, in,
			c.file, c.schemes[0].bits, c.schemes[0].group)
	}
}

func (m *module) gptq() *tensor.Tensor {
	if m.anywhere["g_idx"] || m.config.ordered {
		m.need("qweight", "g_idx")
	}
	z, s := m.parts["qzeros"], m.parts["scales"]
	bits := m.config.usual().bits
	if out := s.RowLen(); bits == 0 && out > 0 {
		bits = z.RowLen() * 32 / out
	}
	bits = cmp.Or(bits, 4)
	w := m.must(quant.GPTQ(m.parts["qweight"], z, s, m.parts["g_idx"], bits, !m.config.plain))
	m.fits("scales", bits, w.RowLen(), s.Shape()[0])
	return w
}

func (m *module) awq() *tensor.Tensor {
	q, z, s := m.parts["qweight"], m.parts["qzeros"], m.parts["scales"]
	usual := m.config.usual()
	switch version := m.config.version; version {
	case "", "gemm":
		w := m.must(quant.AWQ(q, z, s))
		m.fits("scales", 4, w.RowLen(), s.Shape()[0])
		return w
	case "gemv":
		if usual.bits > 0 && usual.bits != 4 {
			m.fail("qweight", "%s says %d bits, AWQ has 4", m.config.file, usual.bits)
		}
		if usual.group < 0 {
			usual.group = 8 * q.RowLen()
		}
		return m.must(quant.AWQRows(q, z, s, usual.group))
	default:
		m.fail("qweight", "version %q of AWQ in %s: only gemm and gemv are read: %w", version, m.config.file, tensor.ErrUnsupported)
		return nil
	}
}

// isMLX tells codes of MLX from whole numbers.
func (m *module) isMLX() bool {
	return m.parts["scales"] != nil || m.parts["biases"] != nil || m.config.says(m.name, "mlx") || m.anywhere["biases"]
}

// isModelOpt tells codes of 4 bits from whole numbers.
func (m *module) isModelOpt() bool {
	return m.parts["weight_scale"] != nil || m.parts["weight_scale_2"] != nil || m.config.says(m.name, "modelopt", "compressed-tensors")
}

func (m *module) mlx() *tensor.Tensor {
	w, s := m.parts["weight"], m.parts["scales"]
	how := m.config.of(m.name)
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
	return m.must(quant.Affine(w, s, m.parts["biases"], how.bits, how.group))
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
func (m *module) mlxFloat(mode string) *tensor.Tensor {
	w, s, g := m.parts["weight"], m.parts["scales"], m.parts["global_scale"]
	if mode == "" || mode == "affine" {
		mode = map[int]string{4 * s.RowLen(): "mxfp4", 2 * s.RowLen(): "nvfp4", 8 * s.RowLen(): "mxfp8"}[w.RowLen()] // words
	}
	switch mode {
	case "mxfp4":
		return m.must(quant.FP4(w, bytesAs(s, tensor.F8E8M0FNU), nil, false, 32))
	case "mxfp8":
		return m.must(quant.FP8Words(w, bytesAs(s, tensor.F8E8M0FNU), 32))
	case "nvfp4":
		if g != nil { // it is the largest number of 4 bits times the largest scale
			if g.Len() != 1 || !g.DType().IsFloat() {
				m.fail("global_scale", "it is %s, want one number", g)
			}
			g = m.must(tensor.Of([]float32{float32(g.At(0)) / (6 * 448)}, 1))
		}
		return m.must(quant.FP4(w, bytesAs(s, tensor.F8E4M3FN), g, false, 16))
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

// scaled makes a weight of numbers of 8 bits.
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
	return m.must(quant.Scaled(w, bytesAs(scale, tensor.F8E8M0FNU), m.parts["weight_zero_point"], c.block))
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
	if shape.Len() != axes || shape.DType().IsFloat() || axes != 2 && !experts {
		m.fail("weight_shape", "it is %s for %s, want two whole numbers for a matrix", shape, p)
	}
	size := make([]int, axes)
	for i := range size {
		size[i] = int(shape.At(i))
	}
	in := size[axes-1]
	if !slices.Equal(size[:axes-1], p.Shape()[:axes-1]) || in < 0 || in > p.RowLen()*32 {
		m.fail("weight_shape", "it says %v, weight_packed has shape %s", size, tensor.FormatShape(p.Shape()))
	}
	if experts {
		if group != nil {
			m.fail("weight_g_idx", "of experts in one tensor it is not read: %w", tensor.ErrUnsupported)
		}
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
	w := m.must(quant.Words(p, s, zero, group, bits, in))
	m.fits("weight_scale", bits, in, s.RowLen())
	return m.must(w.Reshape(size...))
}

// groups are those of the inputs; nil if they are not set, as −1.
func (m *module) groups() *tensor.Tensor {
	t := m.parts["weight_g_idx"]
	if t == nil || t.Len() == 0 {
		return nil
	}
	if t.DType().IsFloat() {
		m.fail("weight_g_idx", "it is %s, want whole numbers", t.DType())
	}
	if t.At(0) == -1 {
		return nil
	}
	return t
}

// nibbles makes a weight of floats of 4 bits, two a byte.
func (m *module) nibbles() *tensor.Tensor {
	codes := "weight_packed"
	if m.parts[codes] == nil {
		codes = "weight"
	}
	w, s := m.parts[codes], bytesAs(m.parts["weight_scale"], tensor.F8E8M0FNU)
	if s.DType() == tensor.F8E8M0FNU {
		return m.must(quant.FP4(w, s, nil, false, 32))
	}
	global, divide := "weight_global_scale", true
	if codes == "weight" || m.parts[global] == nil && m.parts["weight_scale_2"] != nil {
		global, divide = "weight_scale_2", false
	}
	m.need(codes, global)
	return m.must(quant.FP4(w, s, m.parts[global], divide, 16))
}

// blocks makes a weight of gpt-oss, which has its outputs last.
func (m *module) blocks() *tensor.Tensor {
	b, s := m.parts["_blocks"], bytesAs(m.parts["_scales"], tensor.F8E8M0FNU)
	shape := b.Shape()
	n := len(shape)
	if n < 3 || shape[n-1] != 16 {
		m.fail("_blocks", "shape %s, want […  groups 16]", tensor.FormatShape(shape))
	}
	m.part = "_scales"
	flat := m.must(b.Reshape(append(slices.Clone(shape[:n-2]), 16*shape[n-2])...))
	return m.must(m.must(quant.FP4(flat, s, nil, false, 32)).Transpose())
}

// fail ends the making of a weight: with what is wrong with a part; "" is the module.
func (m *module) fail(part, msg string, args ...any) {
	err := fmt.Errorf(msg, args...)
	fe := &tensor.FormatError{Format: "quantised weights", Offset: -1, Member: m.full(part), Msg: err.Error()}
	fe.Err = tensor.ErrCorrupt
	for _, t := range m.parts {
		fe.File = max(fe.File, t.Place().File) // any of them
	}
	if errors.Is(err, tensor.ErrUnsupported) {
		fe.Err = tensor.ErrUnsupported
	}
	panic(fe)
}

// must returns a tensor that was made, or fails.
func (m *module) must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		m.fail(m.part, "%w", err)
	}
	return t
}

// need requires parts.
func (m *module) need(beside string, parts ...string) {
	for _, p := range parts {
		switch {
		case m.parts[p] != nil:
		case m.others(m.full(p)):
			panic(elsewhere(fmt.Sprintf("%s is in another file: %s is not dequantised", m.full(p), m.name)))
		default:
			m.fail(p, "is missing: %s is there", m.full(beside))
		}
	}
}
