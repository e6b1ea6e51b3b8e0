package localise

import (
	"math"
	"strings"
)

// Role says on which side of a layer a port lies.
type Role uint8

// The roles of a port.
const (
	Input Role = iota
	Output
)

// RoleOf tells inputs from outputs by the port's name; taps and computed values are outputs of the code before them.
func RoleOf(port string) Role {
	if strings.HasPrefix(port, "input_") {
		return Input
	}
	return Output
}

// cutCall splits "model.norm(2)" into "model.norm" and "(2)".
func cutCall(layer string) (name, call string) {
	if !strings.HasSuffix(layer, ")") {
		return layer, ""
	}
	i := strings.LastIndexByte(layer, '(')
	if i < 0 || strings.Trim(layer[i+1:], "0123456789") != ")" || i+2 == len(layer) {
		return layer, ""
	}
	return layer[:i], layer[i:]
}

// tree knows which layers the reference recorded and what lies inside of what.
type tree struct {
	first map[string]int  // execution index of the first record of a layer or of anything inside it
	known map[string]bool // layers with a record of their own
}

func newTree(records []Record) *tree {
	t := &tree{first: map[string]int{}, known: map[string]bool{}}
	for _, p := range records {
		t.known[p.Layer] = true
		name, call := cutCall(p.Layer)
		for {
			for _, l := range []string{name + call, name} {
				if old, ok := t.first[l]; !ok || p.Seq < old {
					t.first[l] = p.Seq
				}
				if call == "" {
					break
				}
			}
			i := strings.LastIndexByte(name, '.')
			if i < 0 {
				break
			}
			name = name[:i]
		}
	}
	return t
}

// start is when the first thing inside a layer was recorded: containers are recorded after their children, but get their inputs before.
func (t *tree) start(layer string) int {
	if s, ok := t.first[layer]; ok {
		return s
	}
	return math.MaxInt
}

// container gives the innermost recorded layer around a layer, or the dotted parent if none was recorded.
func (t *tree) container(layer string) string {
	name, call := cutCall(layer)
	for p := name; ; {
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			break
		}
		p = p[:i]
		if t.known[p+call] {
			return p + call
		}
		if t.known[p] {
			return p
		}
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i]
	}
	return layer
}

// inside reports whether layer lies within outer.
func inside(layer, outer string) bool {
	l, _ := cutCall(layer)
	o, _ := cutCall(outer)
	return len(l) > len(o) && l[len(o)] == '.' && l[:len(o)] == o
}
