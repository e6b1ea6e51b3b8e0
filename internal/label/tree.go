package label

import "strings"

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
