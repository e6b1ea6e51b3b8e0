package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// schema is the version of the file that is read.
const schema = 1

// Read reads a program.json and checks it; its constants are those of the .safetensors of that name
// beside it, which is opened when one is asked for. Errors name the file and the key.
func Read(file string) (*Program, error) {
	data, err := mapfile.Read(file, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	var beside *tensor.File
	p, err := Parse(file, data, func() (f *tensor.File, err error) {
		beside, err = safetensors.Open(strings.TrimSuffix(file, filepath.Ext(file)) + ".safetensors")
		return beside, err
	})
	if err != nil {
		return nil, err
	}
	p.close = func() error {
		if beside == nil {
			return nil
		}
		return beside.Close()
	}
	return p, nil
}

// Parse reads the content of a program.json; name is that of the file, for errors. constants opens the
// file with its constants when the first is asked for; nil for none.
func Parse(name string, data []byte, constants func() (*tensor.File, error)) (*Program, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, located(err))
	}
	if f.Schema != schema {
		return nil, fmt.Errorf("%s: schema %d of a program, only %d is read: record it with this version of goparity", name, f.Schema, schema)
	}
	p := &f.Program
	p.File = name
	p.constants = sync.OnceValues(func() (*tensor.File, error) {
		if constants == nil {
			return nil, errors.New("no constants are kept")
		}
		return constants()
	})
	if err := p.fill(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, v := range f.Values {
		if v.From.Op != nil && *v.From.Op != p.maker[i] {
			return nil, fmt.Errorf("%s: values[%d].from: operator %d does not make it", name, i, *v.From.Op)
		}
	}
	return p, nil
}

// located says where in a file JSON is wrong.
func located(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d: %w", e.Offset, err)
	}
	return err
}

// fill takes over what is written otherwise than kept.
func (p *Program) fill(f *file) error {
	p.Values = make([]Value, len(f.Values))
	for i, v := range f.Values {
		if v.ID != i {
			return fmt.Errorf("values[%d].id: %d, want %d: they ascend without gaps", i, v.ID, i)
		}
		d, _ := tensor.ParseDType(v.DType) // Invalid for a type without arithmetic
		p.Values[i] = Value{Shape: v.Shape, DType: d, Type: v.DType, Weight: v.From.Weight, Buffer: v.From.Buffer, Constant: v.From.Constant, Data: v.From.Data}
		if v.From.Input != "" {
			p.Values[i].Input = v.From.Step + ":" + v.From.Input
		}
	}
	p.Ops = make([]Op, len(f.Ops))
	for i, o := range f.Ops {
		p.Ops[i] = o.Op
		p.Ops[i].Name, p.Ops[i].Stack = nameOf(o.Full), -1
		if o.Stack != nil {
			p.Ops[i].Stack = *o.Stack
		}
	}
	for i, g := range f.Guards {
		equal, err := numbers(g.Equal)
		if err != nil {
			return fmt.Errorf("guards[%d].equal: %w", i, err)
		}
		p.Guards = append(p.Guards, Guard{Value: g.Value, Equal: equal, First: g.Ops[0], End: g.Ops[1]})
	}
	for i, s := range f.Passes {
		p.Passes = append(p.Passes, Pass{s.Step, s.Ops[0], s.Ops[1]})
		seen := map[string]bool{}
		for _, t := range s.Ports {
			if seen[t.label] {
				return fmt.Errorf("passes[%d].ports: %q twice", i, t.label)
			}
			seen[t.label] = true
			layer, name := p.split(t.label)
			p.Ports = append(p.Ports, Port{Step: s.Step, Layer: layer, Name: name, Value: t.value, At: t.at, Until: t.until, Input: label.IsInput(name)})
		}
	}
	return nil
}

// numbers are those of a list, bools as 0 and 1; nil stays.
func numbers(list []any) (out []float64, err error) {
	if list != nil {
		out = make([]float64, len(list))
	}
	for i, x := range list {
		if x, err = argument(x); err != nil {
			return nil, err
		}
		switch x := x.(type) {
		case float64:
			out[i] = x
		case bool:
			if x {
				out[i] = 1
			}
		default:
			return nil, fmt.Errorf("%v is no number", x)
		}
	}
	return out, nil
}

// split cuts a label into layer and port. Behind the name of a module stands a port even if it is
// called otherwise than hooks call theirs: key_cache.
func (p *Program) split(text string) (layer, port string) {
	layer, port = label.Split(text)
	if i := strings.LastIndexByte(text, '-'); i > 0 && port == label.Tap {
		if _, ok := p.Modules[label.Name(text[:i])]; ok {
			return text[:i], text[i+1:]
		}
	}
	return layer, port
}

// nameOf is the name of an operator without namespace and overload: "mul" of "aten.mul.Tensor".
func nameOf(full string) string {
	if _, rest, ok := strings.Cut(full, "."); ok {
		full = rest
	}
	name, _, _ := strings.Cut(full, ".")
	return name
}

// Constant returns a tensor of program.safetensors: what a [Value] names as its Constant, or "input:"
// and its Input. The error is for a file that cannot be read, and for a name that it does not have.
func (p *Program) Constant(name string) (*tensor.Tensor, error) {
	if p.constants == nil {
		return nil, fmt.Errorf("%s: no constants are kept", p.File)
	}
	f, err := p.constants()
	if err != nil {
		return nil, fmt.Errorf("%s: constant %q: %w", p.File, name, err)
	}
	t, ok := f.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("%s: constant %q: %s has none", p.File, name, f.Path)
	}
	return t, nil
}

// Close closes the file of the constants, if [Read] has opened one.
func (p *Program) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}
