package label

import (
	"regexp"
	"strings"
)

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

var digitRun = regexp.MustCompile(`[0-9]+`)

// Kind writes # for each run of digits, also within words and calls: layers that are built alike
// have one kind.
func Kind(layer string) string { return digitRun.ReplaceAllLiteralString(layer, "#") }

// Alike returns the layer with # for one run of digits, for each of them: layers that differ in one
// number have one of these in common.
func Alike(layer string) (out []string) {
	for _, run := range digitRun.FindAllStringIndex(layer, -1) {
		out = append(out, layer[:run[0]]+"#"+layer[run[1]:])
	}
	return out
}
