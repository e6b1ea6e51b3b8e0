package label

import (
	"regexp"
	"strconv"
	"strings"
)

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
