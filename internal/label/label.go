// Package label owns the names under which engines record tensors: their grammar, order and patterns,
// what a layer is by its name, and which name was meant. All functions are pure.
//
//	label   = layer "-" port | layer          a label without a port is a tap, saved by hand
//	layer   = name [call]
//	name    = segment { "." segment }         model.layers.3.mlp
//	call    = "(" n ")"                       n ≥ 2: the layer's n-th call in one forward pass; the first has none
//	port    = role [ "_" word | "." word ]    input_0, input_hidden_states, output, output_1, output.0, computed_2, tap
//
// So "model.norm(2)-output.0" is element 0 of what model.norm returned when it was called a second
// time. The parent of a layer is the layer around it, of the same call.
package label

import (
	"regexp"
	"strconv"
	"strings"
)

// Split cuts a label into layer and port, at its last dash if a port follows there. A label without
// a port is a layer with a tap.
func Split(label string) (layer, port string) {
	if i := strings.LastIndexByte(label, '-'); i > 0 && isPort.MatchString(label[i+1:]) {
		return label[:i], label[i+1:]
	}
	return label, Tap
}

// Join is the reverse of Split.
func Join(layer, port string) string {
	if port == Tap {
		return layer
	}
	return layer + "-" + port
}

// CutCall cuts the call off a layer: "model.norm(2)" is the second call of "model.norm". A layer
// without a call is the first one; "(1)", "(02)" and the like are part of a name.
func CutCall(layer string) (name string, call int) {
	if !strings.HasSuffix(layer, ")") {
		return layer, 1
	}
	m := called.FindStringSubmatch(layer)
	if m == nil {
		return layer, 1
	}
	call, _ = strconv.Atoi(m[2])
	return m[1], call
}

// called is a layer with a call of as many digits as fit into an int everywhere.
var called = regexp.MustCompile(`(?s)^(.+)\(([2-9]|[1-9][0-9]{1,8})\)$`)

// Name returns a layer without its call.
func Name(layer string) string {
	name, _ := CutCall(layer)
	return name
}

// call returns the layer's call as it is written, "" for the first one.
func call(layer string) string { return layer[len(Name(layer)):] }

// Parent returns the layer around a layer, with its call: "m.attn(2)" for "m.attn.q_proj(2)", ""
// for a root.
func Parent(layer string) string {
	name := Name(layer)
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return ""
	}
	return name[:i] + call(layer)
}

// Last returns the last segment of a layer's name: "q_proj" for "m.attn.q_proj(2)".
func Last(layer string) string {
	name := Name(layer)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// IsRoot reports whether a layer has no parent: it is the model itself, or what a dump calls by a
// single word.
func IsRoot(layer string) bool { return !strings.Contains(layer, ".") }

// Depth returns the number of layers around a layer, 0 for a root.
func Depth(layer string) int { return strings.Count(layer, ".") }

// Inside reports whether the name of a layer lies within that of another one. Calls do not count:
// which call of a container a layer ran in is told by the order of execution (package localise), not
// by names.
func Inside(layer, outer string) bool {
	l, o := Name(layer), Name(outer)
	return len(l) > len(o) && l[len(o)] == '.' && l[:len(o)] == o
}

// Within reports whether a layer is another one or lies inside it.
func Within(layer, outer string) bool { return layer == outer || Inside(layer, outer) }

// Beside reports whether two layers have one parent.
func Beside(a, b string) bool { return Parent(a) == Parent(b) }

// Block returns the numbered block in which a layer lies, its name up to the first segment that is
// a number, with its call: "model.layers.3" for "model.layers.3.mlp.up"; "" if there is none.
func Block(layer string) string {
	name, end := Name(layer), 0
	for segment := range strings.SplitSeq(name, ".") {
		if end += len(segment); IsNumber(segment) {
			return name[:end] + call(layer)
		}
		end++ // the dot
	}
	return ""
}

// IsNumber reports whether a segment is the number of a block: decimal digits and nothing else.
func IsNumber(segment string) bool { return segment != "" && digits(segment) == len(segment) }

// digits counts the digits at the beginning of s.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Tap is the port of a tensor that was saved by hand.
const Tap = "tap"

// Role says what a port is to its layer.
type Role uint8

// The roles of a port.
const (
	RoleInput    Role = iota // what the layer was given
	RoleOutput               // what it returned
	RoleTap                  // what was saved by hand
	RoleComputed             // what had been computed for an input before a golden one replaced it
)

var roles = [...]string{RoleInput: "input", RoleOutput: "output", RoleTap: Tap, RoleComputed: "computed"}

// String is the word for a role, as ports begin with it and report.json has it.
func (r Role) String() string { return roles[r] }

// RoleOf tells the role by the port's name. Every port that has no other role is an output.
func RoleOf(port string) Role {
	switch {
	case strings.HasPrefix(port, "input_"):
		return RoleInput
	case strings.HasPrefix(port, "computed_"):
		return RoleComputed
	case port == Tap:
		return RoleTap
	}
	return RoleOutput
}

// IsInput reports whether a port is what its layer was given. All others hold what some code made:
// they decide, inputs are evidence.
func IsInput(port string) bool { return RoleOf(port) == RoleInput }

// IsCache reports whether a port is what an attention layer's cache holds of the tokens that a forward pass fed.
func IsCache(port string) bool { return port == "key_cache" || port == "value_cache" }

// InputOf returns the input for which a computed port was computed: "input_1" for "computed_1".
// Other ports are returned as they are.
func InputOf(port string) string {
	if rest, ok := strings.CutPrefix(port, "computed_"); ok {
		return "input_" + rest
	}
	return port
}

// Position returns the number of a positional port, 1 for "output_1" and, as an element of it,
// "output_1.0"; −1 for a named one.
func Position(port string) int {
	m := positional.FindStringSubmatch(port)
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil { // more than an int holds
		return -1
	}
	return n
}

var (
	positional = regexp.MustCompile(`^[^_]*_([0-9]+)(\.[0-9]+)*$`)
	isPort     = regexp.MustCompile(`(?s)^(tap|output|output[_.].+|input_.+|computed_.+)$`)
)
