package label

import "strings"

// Stars writes * for each segment that is a number, to speak of all blocks at once:
// "model.layers.*.mlp".
func Stars(layer string) string {
	segments := strings.Split(layer, ".")
	for i, s := range segments {
		if IsNumber(s) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, ".")
}

// Kind writes # for each run of digits, also within words and calls: layers that are built alike
// have one kind.
func Kind(layer string) string {
	var b strings.Builder
	at := 0
	for _, run := range numbers(layer) {
		b.WriteString(layer[at:run.from] + "#")
		at = run.to
	}
	return b.String() + layer[at:]
}

// Alike returns the layer with # for one run of digits, for each of them: layers that differ in one
// number have one of these in common.
func Alike(layer string) (out []string) {
	for _, run := range numbers(layer) {
		out = append(out, layer[:run.from]+"#"+layer[run.to:])
	}
	return out
}

type span struct{ from, to int }

// numbers finds the runs of digits.
func numbers(s string) (out []span) {
	for i := 0; i < len(s); i++ {
		if n := digits(s[i:]); n > 0 {
			out = append(out, span{i, i + n})
			i += n
		}
	}
	return out
}
