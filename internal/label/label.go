package label

import (
	"fmt"
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

// few is how many names a sentence lists.
const few = 6

// Few lists names for a sentence: the first six, and how many more there are.
func Few(names []string) string {
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
