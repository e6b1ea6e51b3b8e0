package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
		at := slices.IndexFunc(of, func(p string) bool { return m.others(m.full(p)) })
		if at < 0 {
			at = slices.IndexFunc(of, func(p string) bool { return m.anywhere[p] })
		}
		isSure := c.part == "qzeros" || strings.HasPrefix(c.part, "weight_") // no other tensor is called so
		isMLX := m.parts["scales"] != nil && m.parts["biases"] != nil
		if isSure || isMLX || m.config.file != "" || m.anywhere["qweight"] {
			m.need(c.part, of[max(at, 0)])
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

// isMLX tells codes of MLX from whole numbers.
func (m *module) isMLX() bool {
	return m.parts["scales"] != nil || m.parts["biases"] != nil || m.config.says(m.name, "mlx") || m.anywhere["biases"]
}

// isModelOpt tells codes of 4 bits from whole numbers.
func (m *module) isModelOpt() bool {
	return m.parts["weight_scale"] != nil || m.parts["weight_scale_2"] != nil || m.config.says(m.name, "modelopt", "compressed-tensors")
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

// want is wrong unless ok, and wantOf fails.
func (m *module) want(ok bool, msg string, args ...any) { m.wantOf(ok, m.part, msg, args...) }

func (m *module) wantOf(ok bool, part, msg string, args ...any) {
	if !ok {
		m.fail(part, msg, args...)
	}
}

// wrong is fail with what is wrong with the part that is looked at.
func (m *module) wrong(msg string, args ...any) { m.fail(m.part, msg, args...) }

// must returns a tensor that was made, or fails.
func (m *module) must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		m.wrong("%w", err)
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

// check requires the type of a part, its shape, −1 for any size and nothing for any shape, and that it lies in order.
func (m *module) check(name string, t *tensor.Tensor, types []tensor.DType, shape ...int) {
	switch {
	case t == nil:
		m.wrong("%s is missing", name)
	case !slices.Contains(types, t.DType()):
		m.wrong("%s is %s, want one of %v", name, t.DType(), types)
	case shape != nil && !slices.EqualFunc(shape, t.Shape(), func(want, is int) bool { return want < 0 || want == is }):
		m.wrong("%s has shape %s, want %v, −1 for any size", name, tensor.FormatShape(t.Shape()), shape)
	}
	if _, ok := t.Bytes(); !ok {
		m.wrong("%s does not lie in order", name)
	}
}
