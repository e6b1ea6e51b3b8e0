package dump

import (
	"regexp"
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

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
