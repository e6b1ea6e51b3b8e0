package dump

import (
	"regexp"
	"slices"
	"strings"
)

// TapPort is the port of a tensor that was saved by hand.
const TapPort = "tap"

var portPattern = regexp.MustCompile(`^(.+)-(input_[^-]+|output(?:[_.][^-]+)?|computed_[^-]+|tap)$`)

// SplitLabel cuts "<layer>-<port>" at the last dash that a port follows. A label without a port is a layer with a tap.
func SplitLabel(label string) (layer, port string) {
	if m := portPattern.FindStringSubmatch(label); m != nil {
		return m[1], m[2]
	}
	return label, TapPort
}

// JoinLabel is the reverse of SplitLabel.
func JoinLabel(layer, port string) string {
	if port == TapPort {
		return layer
	}
	return layer + "-" + port
}

// NaturalLess orders names as people do: runs of digits by their value, so layers.2 comes before layers.10.
func NaturalLess(a, b string) bool {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(na) != len(nb) {
				return len(na) < len(nb)
			}
			if na != nb {
				return na < nb
			}
			if da != db {
				return da < db
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

// NaturalCompare is NaturalLess for package slices: −1, 0 or 1.
func NaturalCompare(a, b string) int {
	switch {
	case NaturalLess(a, b):
		return -1
	case NaturalLess(b, a):
		return 1
	}
	return 0
}

// sortLabels orders labels of which the time is not known: by name, but a container after what is inside of it, and a model's head and
// final norm after its blocks.
func sortLabels(labels []string) { slices.SortStableFunc(labels, compareLabels) }

func compareLabels(a, b string) int {
	layerA, portA := SplitLabel(a)
	layerB, portB := SplitLabel(b)
	as, bs := strings.Split(layerA, "."), strings.Split(layerB, ".")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if as[i] == bs[i] {
			continue
		}
		if ra, rb := late(as[:i+1]), late(bs[:i+1]); ra != rb {
			return ra - rb
		}
		return NaturalCompare(as[i], bs[i])
	}
	if len(as) != len(bs) {
		return len(bs) - len(as) // the longer one is inside the other
	}
	return NaturalCompare(portA, portB)
}

// Ordered reports whether the names of two layers tell which of them ran first: numbered blocks do, a container runs after what is inside of it,
// a final norm and a head run after the numbered blocks. Names that people thought of tell nothing.
func Ordered(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if as[i] == bs[i] {
			continue
		}
		if late(as[:i+1]) != late(bs[:i+1]) {
			return slices.ContainsFunc(append(as, bs...), isNumber)
		}
		return isNumber(as[i]) && isNumber(bs[i])
	}
	return true
}

func isNumber(s string) bool { return s != "" && digits(s) == len(s) }

// late ranks a segment outside of the numbered blocks: a final norm comes after them, a head after that.
func late(path []string) int {
	if slices.ContainsFunc(path, isNumber) {
		return 0
	}
	last := strings.ToLower(path[len(path)-1])
	switch {
	case strings.Contains(last, "head"), last == "classifier", last == "score", last == "pooler":
		return 2
	case last == "norm", last == "ln_f", strings.HasPrefix(last, "final"), strings.HasPrefix(last, "norm_"):
		return 1
	}
	return 0
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
