package checkpoint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Dequantise replaces the quantised weights among the tensors of a file by what they stand for, as config.json
// and an index in its folder say. An empty file is all files of the folder. What lacks a part that is in
// another file stays as it is, and is noted.
func Dequantise(dir, file string, tensors []tensor.Named) (out []tensor.Named, notes []string, err error) {
	config, err := readQuantisation(dir)
	if err != nil {
		return nil, nil, err
	}
	var others func(name string) bool
	if file != "" {
		if others, err = inOtherFiles(dir, file); err != nil {
			return nil, nil, err
		}
	}
	return join(tensors, config, others)
}

// IsQuantised reports whether a folder says that the weights in it are quantised.
func IsQuantised(dir string) (bool, error) {
	config, err := readQuantisation(dir)
	return config != nil, err
}

// module is what lies under one name.
type module struct {
	name     string
	parts    map[string]*tensor.Tensor
	at       map[string]int // where a part is among the tensors
	config   *quantisation
	anywhere map[string]bool        // the names of the parts of all modules
	others   func(name string) bool // tells the tensors that are in other files
	part     string                 // that is looked at; "" for all
}

// join is Dequantise. config is nil if nothing is known; others, nil if all is here, tells the
// tensors that are in other files. The error is a [*tensor.FormatError] with the name of the tensor that is
// missing, of another type or shape, or in groups of another size than config says.
func join(tensors []tensor.Named, config *quantisation, others func(name string) bool) (
	out []tensor.Named, notes []string, err error) {
	if others == nil {
		others = func(string) bool { return false }
	}
	var modules []*module
	byName, anywhere := map[string]*module{}, map[string]bool{}
	for i, t := range tensors {
		name, part := cut(t.Name)
		m := byName[name]
		if m == nil {
			m = &module{name: name, config: cmp.Or(config, &quantisation{}), anywhere: anywhere, others: others}
			m.parts, m.at = map[string]*tensor.Tensor{}, map[string]int{}
			byName[name], modules = m, append(modules, m)
		}
		m.parts[part], m.at[part], anywhere[part] = t.Tensor, i, true
	}
	out = slices.Clone(tensors)
	for _, m := range modules {
		codes, w, note, err := m.weight()
		switch {
		case err != nil:
			return nil, nil, err
		case note != "":
			notes = append(notes, string(note))
			continue
		case w == nil:
			continue
		}
		for _, c := range companions {
			if at, ok := m.at[c.part]; ok && slices.Contains(strings.Fields(c.of), codes) {
				out[at].Tensor = nil
			}
		}
		name := m.full("weight")
		if codes == "_blocks" {
			name = m.name
		}
		out[m.at[codes]] = tensor.Named{Name: name, Tensor: w}
	}
	return slices.DeleteFunc(out, func(t tensor.Named) bool { return t.Tensor == nil }), notes, nil
}

// cut splits the name of a tensor into module and part. gpt-oss has parts after an underscore.
func cut(name string) (module, part string) {
	for _, end := range []string{"_blocks", "_scales"} {
		if base, ok := strings.CutSuffix(name, end); ok && base != "" {
			return base, end
		}
	}
	at := strings.LastIndex(name, ".")
	return name[:max(at, 0)], name[at+1:]
}

// full is the name of a part, or of the module.
func (m *module) full(part string) string {
	if m.name == "" || part == "" || strings.HasPrefix(part, "_") {
		return m.name + part
	}
	return m.name + "." + part
}
