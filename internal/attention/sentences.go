package attention

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Compare says in sentences how the heads of a candidate look otherwise than the reference's: an anchor
// that is lost, and by how much more or less the attention is spread. Nothing is said of heads whose
// parts of ln n differ by less than 0.05.
func Compare(layer string, golden, candidate []Head) (out []string) {
	if len(golden) != len(candidate) {
		return nil
	}
	if text := lost(golden, candidate); text != "" {
		out = append(out, "attention of "+layer+": "+text)
	}
	moved := func(h int) float64 {
		d := math.Abs(candidate[h].Part - golden[h].Part)
		if math.IsNaN(d) && golden[h].Queries > 0 {
			return math.Inf(1)
		}
		return d
	}
	var heads []int
	for h := range golden {
		if moved(h) >= differs {
			heads = append(heads, h)
		}
	}
	if len(heads) == 0 {
		return out
	}
	slices.SortStableFunc(heads, func(a, b int) int { return cmp.Compare(moved(b), moved(a)) })
	var parts []string
	for _, h := range heads[:min(len(heads), shownHeads)] {
		parts = append(parts, fmt.Sprintf("head %d %s, candidate %s", h, golden[h].spread(), candidate[h].spread()))
	}
	text := fmt.Sprintf("attention of %s, mean entropy of the queries: golden %s", layer, strings.Join(parts, "; golden "))
	if rest := len(heads) - len(parts); rest > 0 {
		text += fmt.Sprintf("; %d more differ", rest)
	}
	if rest := len(golden) - len(heads); rest > 0 {
		text += fmt.Sprintf("; %d of %d heads are alike", rest, len(golden))
	}
	return append(out, text)
}

// spread is "1.20 nats, 0.63 of ln n".
func (h Head) spread() string {
	if h.Queries == 0 {
		return "without a query that has weights"
	}
	text := fmt.Sprintf("%.2f nats, %.2f of ln n", h.Entropy, h.Part)
	if h.Uniform() {
		text += " (uniform)"
	}
	return text
}

// lost says which heads have an anchor at key 0 in the reference alone.
func lost(golden, candidate []Head) string {
	var heads []string
	most := -1
	for h, g := range golden {
		if g.Anchored() && candidate[h].First <= g.First/2 {
			heads = append(heads, fmt.Sprint(h))
			if most < 0 || g.First-candidate[h].First > golden[most].First-candidate[most].First {
				most = h
			}
		}
	}
	if most < 0 {
		return ""
	}
	rest := ""
	if n := len(heads) - shownHeads; n > 0 {
		heads, rest = heads[:shownHeads], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("the anchor at key 0 is lost: it gets %.2f of head %d in the golden, %.2f in the candidate (heads %s%s)",
		golden[most].First, most, candidate[most].First, strings.Join(heads, ", "), rest)
}
