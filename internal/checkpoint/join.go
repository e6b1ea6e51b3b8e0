package checkpoint

import (
	"errors"
	"fmt"
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
	var elsewhere func(name string) bool
	if file != "" {
		if elsewhere, err = inOtherFiles(dir, file); err != nil {
			return nil, nil, err
		}
	}
	return join(tensors, config, elsewhere)
}

// IsQuantised reports whether a folder says that the weights in it are quantised.
func IsQuantised(dir string) (bool, error) {
	config, err := readQuantisation(dir)
	return config != nil, err
}

// join is Dequantise. config is nil if nothing is known; elsewhere, nil if all is here, tells the
// tensors that are in other files. The error is a [*tensor.FormatError] with the name of the tensor that is
// missing, of another type or shape, or in groups of another size than config says.
func join(tensors []tensor.Named, config *quantisation, elsewhere func(name string) bool) (out []tensor.Named, notes []string,
	err error) {
	j := &joiner{config: config, modules: map[string]*module{}, parts: map[string]bool{}}
	for i, t := range tensors {
		name, part := cut(t.Name)
		m := j.modules[name]
		if m == nil {
			m = &module{name: name, parts: map[string]*tensor.Tensor{}, at: map[string]int{}}
			j.modules[name] = m
			j.order = append(j.order, m)
		}
		m.parts[part], m.at[part], j.parts[part] = t.Tensor, i, true
	}
	becomes, gone := map[int]tensor.Named{}, map[int]bool{}
	for _, m := range j.order {
		codes, w, err := j.weight(m)
		var part *partError
		if errors.As(err, &part) && part.missing && elsewhere != nil && elsewhere(m.full(part.part)) {
			notes = append(notes, fmt.Sprintf("%s is in another file: %s is not dequantised", m.full(part.part), m.name))
			continue
		}
		if err != nil {
			return nil, nil, m.fail(err)
		}
		if w == nil {
			continue
		}
		for _, c := range companions {
			if at, ok := m.at[c.part]; ok && slices.Contains(c.of, codes) {
				gone[at] = true
			}
		}
		name := m.full("weight")
		if codes == "_blocks" {
			name = m.name
		}
		becomes[m.at[codes]] = tensor.Named{Name: name, Tensor: w}
	}
	for i, t := range tensors {
		if w, ok := becomes[i]; ok {
			out = append(out, w)
		} else if !gone[i] {
			out = append(out, t)
		}
	}
	return out, notes, nil
}

// cut splits the name of a tensor into module and part. gpt-oss has parts after an underscore.
func cut(name string) (module, part string) {
	for _, end := range []string{"_blocks", "_scales"} {
		if base, ok := strings.CutSuffix(name, end); ok && base != "" {
			return base, end
		}
	}
	at := strings.LastIndex(name, ".")
	if at < 0 {
		return "", name
	}
	return name[:at], name[at+1:]
}

// module is what lies under one name.
type module struct {
	name  string
	parts map[string]*tensor.Tensor
	at    map[string]int // where a part is among the tensors
}

func (m *module) full(part string) string {
	if m.name == "" || strings.HasPrefix(part, "_") {
		return m.name + part
	}
	return m.name + "." + part
}

// partError is an error of a part.
type partError struct {
	part    string
	missing bool
	err     error
}

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// wrong says what is wrong with a part.
func wrong(part, msg string, args ...any) error {
	return &partError{part: part, err: fmt.Errorf(msg, args...)}
}

func (m *module) fail(err error) error {
	fe := &tensor.FormatError{Format: "quantised weights", Offset: -1, Member: m.name, Msg: err.Error(), Err: tensor.ErrCorrupt}
	var part *partError
	if errors.As(err, &part) {
		fe.Member = m.full(part.part)
	}
	for _, t := range m.parts {
		fe.File = max(fe.File, t.Place().File) // any of them
	}
	if errors.Is(err, tensor.ErrUnsupported) {
		fe.Err = tensor.ErrUnsupported
	}
	return fe
}

// joiner knows what the whole checkpoint has.
type joiner struct {
	config  *quantisation
	modules map[string]*module
	order   []*module
	parts   map[string]bool // the names of all parts
}

// anywhere reports whether any module has such a part.
func (j *joiner) anywhere(part string) bool { return j.parts[part] }
