package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
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
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			err = fmt.Errorf("not JSON at byte %d: %w", e.Offset, err)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Schema != schema {
		return nil, fmt.Errorf("%s: schema %d of a program, only %d is read: record it with this version of goparity", name, f.Schema, schema)
	}
	p := &f.Program
	p.File = name
	if constants != nil {
		p.constants = sync.OnceValues(constants)
	}
	err := p.fill(&f)
	if err == nil {
		err = p.Check()
	}
	for i, v := range f.Values {
		if err == nil && v.From.Op != nil && *v.From.Op != p.maker[i] {
			err = fmt.Errorf("values[%d].from: operator %d does not make it", i, *v.From.Op)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
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

// split cuts a label into layer and port. After the name of a module stands a port even if it is
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
		return nil, fmt.Errorf("%s: constant %q: no constants are kept", p.File, name)
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

// file is program.json as it is written: what it has otherwise than Program.
type file struct {
	Program
	Schema int
	Values []struct {
		ID    int
		Shape []int
		DType string
		From  struct {
			Op                                    *int
			Weight, Buffer, Input, Step, Constant string
			Data                                  []byte
		}
	}
	Ops []struct {
		Op
		Stack *int
	}
	Passes []struct {
		Step  string
		Ops   [2]int
		Ports ports
	}
	Guards []struct {
		Value ID
		Equal []any
		Ops   [2]int
	}
}

// UnmarshalJSON reads "%12", or null for none.
func (id *ID) UnmarshalJSON(data []byte) error {
	var v any
	err := json.Unmarshal(data, &v)
	if err == nil {
		v, err = argument(v)
	}
	switch v := v.(type) {
	case ID:
		*id = v
	case nil:
		*id = None
	default:
		return fmt.Errorf("%s is no value", data)
	}
	return err
}

// ports are in the order of the file: that of recording.
type ports []port

type port struct {
	label     string
	value     ID
	at, until int
}

// UnmarshalJSON reads {label: [value, at, until]}.
func (p *ports) UnmarshalJSON(data []byte) error {
	return pairs(data, func(name string, raw json.RawMessage) error {
		t := port{label: name}
		err := tuple(fmt.Sprintf("passes.ports: %q", name), raw, &t.value, &t.at, &t.until)
		*p = append(*p, t)
		return err
	})
}

// UnmarshalJSON reads [file, line, column, end, text].
func (f *Frame) UnmarshalJSON(data []byte) error {
	var column, end int
	return tuple("frames", data, &f.File, &f.Line, &column, &end, &f.Text)
}

// UnmarshalJSON reads [class, file, line].
func (m *Module) UnmarshalJSON(data []byte) error {
	return tuple("modules", data, &m.Class, &m.File, &m.Line)
}

// tuple reads a list of a fixed length. null leaves an element as it is. what is named in errors.
func tuple(what string, data []byte, to ...any) error {
	var raw []json.RawMessage
	err := json.Unmarshal(data, &raw)
	if err == nil && len(raw) != len(to) {
		err = fmt.Errorf("%d elements, want %d", len(raw), len(to))
	}
	for i := 0; i < len(to) && err == nil; i++ {
		err = json.Unmarshal(raw[i], to[i])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// pairs calls f for each member of an object, in the order of the file.
func pairs[T any](data []byte, f func(name string, value T) error) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("want an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		var value T
		if err == nil {
			err = d.Decode(&value)
		}
		if err == nil {
			err = f(name.(string), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// UnmarshalJSON keeps the order of the names.
func (a *Args) UnmarshalJSON(data []byte) error {
	return pairs(data, func(name string, v any) error {
		v, err := argument(v)
		if err != nil {
			return fmt.Errorf("ops.args: %q: %w", name, err)
		}
		*a = append(*a, Arg{name, v})
		return nil
	})
}

// argument makes an argument of JSON: "%12" is a value, 12 an int, 0.5 and {"float": "1.0"} are floats. A list is one
// of values, of which some may be null, of numbers or of bools; any other is text.
func argument(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		f, _ := v["float"].(string)
		return strconv.ParseFloat(f, 64)
	case string:
		if !strings.HasPrefix(v, "%") {
			return v, nil
		}
		id, err := strconv.Atoi(v[1:])
		if err != nil || id < 0 {
			return nil, fmt.Errorf("%q is no value", v)
		}
		return ID(id), nil
	case []any:
		return list(v)
	}
	return v, nil
}

func list(parts []any) (any, error) {
	values, floats := false, false
	for i, part := range parts {
		v, err := argument(part)
		if err != nil {
			return nil, err
		}
		_, isValue := v.(ID)
		_, isFloat := v.(float64)
		parts[i], values, floats = v, values || isValue, floats || isFloat
	}
	for i, v := range parts {
		switch n, isInt := v.(int); {
		case floats && isInt:
			parts[i] = float64(n)
		case values && v == nil:
			parts[i] = None
		}
	}
	for _, all := range []func([]any) any{all[int], all[float64], all[ID], all[bool]} {
		if v := all(parts); v != nil {
			return v, nil
		}
	}
	return fmt.Sprint(parts), nil
}

// all returns a list of one type, or nil.
func all[T any](list []any) any {
	out := make([]T, len(list))
	for i, v := range list {
		var ok bool
		if out[i], ok = v.(T); !ok {
			return nil
		}
	}
	return out
}

// Check refuses a graph that cannot be run: values that are used before they are made, made twice or
// by none, ports, guards, frames and passes out of range, and sizes beyond the limits. It sorts the ports,
// and makes what Maker, Records and Piece look up; [Read] has called it.
func (p *Program) Check() error {
	if len(p.Values) > maxValues || len(p.Ops) > maxOps || len(p.Ports) > maxPorts {
		return fmt.Errorf("%d values, %d operators and %d ports: more than %d, %d and %d are not read",
			len(p.Values), len(p.Ops), len(p.Ports), maxValues, maxOps, maxPorts)
	}
	maker := make([]int, len(p.Values)) // −1 for what comes from outside
	for i := range p.Values {
		if maker[i] = nowhere; p.Values[i].IsOutside() {
			maker[i] = -1
		}
		if err := p.Values[i].check(); err != nil {
			return fmt.Errorf("values[%d]: %w", i, err)
		}
	}
	for i := range p.Ops {
		if err := p.checkOp(i, maker); err != nil {
			return fmt.Errorf("ops[%d] (%s): %w", i, p.Ops[i].Full, err)
		}
	}
	for i, at := range maker {
		if at == nowhere {
			return fmt.Errorf("values[%d] is made by no operator, and comes from nowhere", i)
		}
	}
	if err := p.checkRanges(maker); err != nil {
		return err
	}
	p.index()
	return nil
}

// nowhere is the maker of a value that nothing has made yet.
const nowhere = -2

// sources counts what a value says of where from outside it comes.
func (v *Value) sources() (n int) {
	for _, is := range []bool{v.Weight != "", v.Input != "", v.Constant != "", v.Data != nil, v.Record > 0} {
		if is {
			n++
		}
	}
	return n
}

func (v *Value) check() error {
	n, err := tensor.NumElems(v.Shape)
	switch {
	case err != nil:
		return err
	case int64(n) > maxElements:
		return fmt.Errorf("shape %s has more than %d elements", tensor.FormatShape(v.Shape), maxElements)
	case v.Data != nil && v.DType != tensor.Invalid && len(v.Data) != n*v.DType.Size():
		return fmt.Errorf("from.data has %d bytes, want %d of %s%s", len(v.Data), n*v.DType.Size(), v.DType, tensor.FormatShape(v.Shape))
	case v.sources() > 1:
		return fmt.Errorf("from has %d sources, want one", v.sources())
	}
	return nil
}

// checkOp takes the results of an operator as made.
func (p *Program) checkOp(i int, maker []int) error {
	o, n := &p.Ops[i], ID(len(maker))
	if o.Stack < -1 || o.Stack >= len(p.Stacks) {
		return fmt.Errorf("stack %d of %d", o.Stack, len(p.Stacks))
	}
	for _, id := range o.Operands() {
		if id < 0 || id >= n {
			return fmt.Errorf("takes %%%d of %d values", id, n)
		}
		if maker[id] == nowhere {
			return fmt.Errorf("takes %%%d, which is not made before", id)
		}
	}
	for _, id := range o.Out {
		switch {
		case id == None:
		case id < 0 || id >= n:
			return fmt.Errorf("makes %%%d of %d values", id, n)
		case maker[id] != nowhere:
			return fmt.Errorf("makes %%%d, which is made before", id)
		default:
			maker[id] = i
		}
	}
	return nil
}

// checkRanges compares what names operators, values and frames with them: a value is recorded, or guards,
// when it is there.
func (p *Program) checkRanges(maker []int) error {
	span := func(first, end int) error {
		if first < 0 || end < first || end > len(p.Ops) {
			return fmt.Errorf("operators [%d, %d] of %d", first, end, len(p.Ops))
		}
		return nil
	}
	value := func(id ID, first, end int) error {
		switch {
		case id < 0 || int(id) >= len(maker):
			return fmt.Errorf("%%%d of %d values", id, len(maker))
		case maker[id] >= first:
			return fmt.Errorf("at operator %d, before operator %d makes %%%d", first, maker[id], id)
		}
		return span(first, end)
	}
	for i, s := range p.Passes {
		if err := span(s.First, s.End); err != nil {
			return fmt.Errorf("passes[%d]: %w", i, err)
		}
	}
	for _, t := range p.Ports {
		if err := value(t.Value, t.At, t.Until); err != nil {
			return fmt.Errorf("port %s-%s of step %s: %w", t.Layer, t.Name, t.Step, err)
		}
	}
	for i, g := range p.Guards {
		if err := value(g.Value, g.First, g.End); err != nil {
			return fmt.Errorf("guards[%d]: %w", i, err)
		}
	}
	for i, s := range p.Stacks {
		for _, f := range s {
			if f < 0 || f >= len(p.Frames) {
				return fmt.Errorf("stacks[%d]: frame %d of %d", i, f, len(p.Frames))
			}
		}
	}
	return nil
}
