package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

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
	if ints, ok := all[int](parts); ok {
		return ints, nil
	}
	if floats, ok := all[float64](parts); ok {
		return floats, nil
	}
	if ids, ok := all[ID](parts); ok {
		return ids, nil
	}
	if bools, ok := all[bool](parts); ok {
		return bools, nil
	}
	return fmt.Sprint(parts), nil
}

// all returns a list of one type; ok is false where another is in it.
func all[T any](list []any) (out []T, ok bool) {
	out = make([]T, len(list))
	for i, v := range list {
		if out[i], ok = v.(T); !ok {
			return nil, false
		}
	}
	return out, true
}
