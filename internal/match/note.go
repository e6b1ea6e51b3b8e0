package match

import (
	"fmt"
	"slices"
)

// notes collects what was done, with all blocks in one line.
type notes struct {
	lines []string
	count map[string]int
}

func (n *notes) add(line string) {
	if n.count == nil {
		n.count = map[string]int{}
	}
	if n.count[line]++; n.count[line] == 1 {
		n.lines = append(n.lines, line)
	}
}

func (n *notes) list() []string {
	out := slices.Clone(n.lines)
	for i, l := range out {
		if c := n.count[l]; c > 1 {
			out[i] = fmt.Sprintf("%s (%d times)", l, c)
		}
	}
	return out
}
