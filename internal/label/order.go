package label

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Natural compares names as people order them, runs of digits by their value: layers.2 comes before
// layers.10. It returns −1, 0 or 1.
func Natural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb), cmp.Compare(da, db)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// Sort orders items by their labels where the time of none is known: naturally by name, but a
// container after what is inside it, and a model's final norm and head after its numbered blocks.
// Each label is cut once, not at every comparison.
func Sort[T any](items []T, labelOf func(T) string) {
	type keyed struct {
		item     T
		segments []segment
		port     string
	}
	all := make([]keyed, len(items))
	for i, x := range items {
		layer, port := Split(labelOf(x))
		all[i] = keyed{x, segmentsOf(layer), port}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if c := compare(a.segments, b.segments); c != 0 {
			return c
		}
		return Natural(a.port, b.port)
	})
	for i := range all {
		items[i] = all[i].item
	}
}

// segment is one element of a layer's name; rank puts it after the numbered blocks.
type segment struct {
	text string
	rank int
}

func segmentsOf(layer string) []segment {
	names := strings.Split(layer, ".")
	out := make([]segment, len(names))
	numbered := false
	for i, s := range names {
		numbered = numbered || IsNumber(s)
		out[i].text = s
		if !numbered {
			out[i].rank = lateness(s)
		}
	}
	return out
}

func compare(a, b []segment) int {
	for i := range min(len(a), len(b)) {
		if a[i].text != b[i].text {
			return cmp.Or(a[i].rank-b[i].rank, Natural(a[i].text, b[i].text))
		}
	}
	return len(b) - len(a) // the longer one is inside the other
}

// Ordered reports whether the names of two layers tell which of them ran first: numbered blocks do,
// a container runs after what is inside it, a final norm and a head after the numbered blocks.
// Names that people made up tell nothing.
func Ordered(a, b string) bool {
	number := func(s segment) bool { return IsNumber(s.text) }
	x, y := segmentsOf(a), segmentsOf(b)
	for i := range min(len(x), len(y)) {
		switch {
		case x[i].text == y[i].text:
		case x[i].rank != y[i].rank:
			return slices.ContainsFunc(x, number) || slices.ContainsFunc(y, number)
		default:
			return number(x[i]) && number(y[i])
		}
	}
	return true
}

// Unordered returns the layers before which none of those returned before it is known to have run:
// see Ordered.
func Unordered(layers []string) (out []string) {
	for _, l := range layers {
		if !slices.ContainsFunc(out, func(o string) bool { return Ordered(o, l) }) {
			out = append(out, l)
		}
	}
	return out
}

// lateness ranks a segment outside of the numbered blocks: 1 for a final norm, which comes after
// them, 2 for a head, which comes after that, 0 for all others.
func lateness(segment string) int {
	last := strings.ToLower(Name(segment))
	switch {
	case strings.Contains(last, "head"), last == "classifier", last == "score", last == "pooler":
		return 2
	case last == "norm", last == "ln_f", strings.HasPrefix(last, "final"), strings.HasPrefix(last, "norm_"):
		return 1
	}
	return 0
}

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

// few is how many names a sentence lists.
const few = 6

// Few lists names for a sentence: the first six, and how many more there are.
func Few(names []string) string {
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
