package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// file is program.json as it is written.
type file struct {
	Schema int
	Engine string
	Case   string
	Frames []Frame
	Stacks [][]int

	Modules map[string]Module
	Aliases map[string]string

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
		Op    string
		Args  Args
		Out   []ID
		Layer string
		Call  int
		Stack *int

		Random bool
	}
	Passes []struct {
		Step  string
		Ops   [2]int
		Ports ports
	}
	Guards []struct {
		Value ID
		Equal json.RawMessage
		Ops   [2]int
	}
}

// UnmarshalJSON reads "%12", or null for none.
func (id *ID) UnmarshalJSON(data []byte) error {
	v, err := argument(data)
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
	return tuple("frames", data, &f.File, &f.Line, &f.Col, &f.End, &f.Text)
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
func pairs(data []byte, f func(name string, value json.RawMessage) error) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("want an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
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

// UnmarshalJSON keeps the order of the names. "%12" is a value, 12 an int, 0.5 and {"float": "1.0"}
// floats.
func (a *Args) UnmarshalJSON(data []byte) error {
	return pairs(data, func(name string, raw json.RawMessage) error {
		v, err := argument(raw)
		if err != nil {
			return fmt.Errorf("ops.args: %q: %w", name, err)
		}
		*a = append(*a, Arg{name, v})
		return nil
	})
}

// argument reads one argument. A list that is none of one kind of numbers, bools or values stays text.
func argument(raw json.RawMessage) (any, error) {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || raw[0] == 'n':
		return nil, nil
	case raw[0] == 't' || raw[0] == 'f':
		return raw[0] == 't', nil
	case raw[0] == '[':
		return list(raw)
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || !strings.HasPrefix(s, "%") {
			return s, err
		}
		id, err := strconv.Atoi(s[1:])
		if err != nil || id < 0 {
			return nil, fmt.Errorf("%q is no value", s)
		}
		return ID(id), nil
	case raw[0] == '{':
		var f struct{ Float string }
		if err := json.Unmarshal(raw, &f); err != nil {
			return nil, err
		}
		return strconv.ParseFloat(f.Float, 64)
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return n, nil
	}
	return strconv.ParseFloat(string(raw), 64)
}

func list(raw json.RawMessage) (any, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	var ids, values []ID
	var ints []int
	var floats []float64
	var bools []bool
	for _, part := range parts {
		v, err := argument(part)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case ID:
			ids, values = append(ids, v), append(values, v)
		case nil:
			ids = append(ids, None)
		case int:
			ints, floats = append(ints, v), append(floats, float64(v))
		case float64:
			floats = append(floats, v)
		case bool:
			bools = append(bools, v)
		}
	}
	switch n := len(parts); {
	case n == 0:
		return []int{}, nil
	case len(ids) == n && values != nil:
		return ids, nil
	case len(ints) == n:
		return ints, nil
	case len(floats) == n:
		return floats, nil
	case len(bools) == n:
		return bools, nil
	}
	return string(raw), nil
}
