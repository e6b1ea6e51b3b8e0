package label

import (
	"strings"
	"unicode"
)

// maxCompared is the most characters of a name that are compared: of a longer one, the end.
const maxCompared = 200

// Nearest returns the candidate that was most likely meant by name. ok is false if none is near,
// that is, if more than two characters and more than a third of them would have to change, or all
// of them. Changes are insertions, deletions, substitutions and exchanges of neighbours; case,
// dashes and underscores do not count. A dotted candidate may be named by its end:
// "layer.3.atention" is near "model.layer.3.attention". Of equally near candidates the first wins.
func Nearest(name string, candidates []string) (string, bool) {
	want := fold(name)
	return nearest(want, candidates, max(2, len(want)/3))
}

// Slip is Nearest for a name that may be unknown on purpose: it allows a third of the characters to
// change, but at least one.
func Slip(name string, candidates []string) (string, bool) {
	want := fold(name)
	return nearest(want, candidates, max(1, len(want)/3))
}

func nearest(want []rune, candidates []string, limit int) (string, bool) {
	limit = min(limit, len(want)-1)
	best, found := "", false
	for _, c := range candidates {
		if d := near(want, fold(c), limit); d <= limit {
			best, found = c, true
			if d == 0 {
				break
			}
			limit = d - 1
		}
	}
	return best, found
}

// near returns the distance to the candidate, or to its end with as many segments as want has. A
// result above limit is not exact.
func near(want, candidate []rune, limit int) int {
	d := distance(want, candidate, limit)
	dots := strings.Count(string(want), ".")
	for i := len(candidate) - 1; i >= 0; i-- {
		if candidate[i] != '.' {
			continue
		}
		if dots--; dots < 0 {
			return min(d, distance(want, candidate[i+1:], limit))
		}
	}
	return d
}

func fold(s string) []rune {
	var out []rune
	for _, r := range s {
		if r != '_' && r != '-' {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out[max(0, len(out)-maxCompared):]
}

// distance is the optimal string alignment distance. A result above limit is not exact.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
