package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// translation is a pair of prefixes: what follows one on the golden side follows the other on the
// candidate's.
type translation struct{ golden, actual string }

// vote is a pair of layers that a translation would join.
type vote struct{ golden, actual *node }

// learnWrappers finds words that stand before the layers of one side only and are not known as
// wrappers: model.mymodel.encoder.layer.0 against model.encoder.layer.0. The translation that most
// layers follow is taken, if their shapes agree, and the search begins again.
func (m *matcher) learnWrappers(golden, actual []*node) {
	for _, t := range m.learned {
		m.translate(t, golden, actual)
	}
	for range maxLearned {
		votes := m.votes(golden, actual)
		best := mostVoted(votes)
		if len(best) == 0 {
			return
		}
		if rivals := sharing(votes, best[0], best[1:]); len(rivals) > 0 {
			m.ambiguousPrefixes(votes, append(best[:1:1], rivals...))
			continue
		}
		m.learned = append(m.learned, best[0])
		m.translate(best[0], golden, actual)
	}
}

// mostVoted returns the translations that have the most votes, and enough of them, by name.
func mostVoted(votes map[translation][]vote) (best []translation) {
	most := minVotes
	for t, v := range votes {
		if len(v) > most {
			best, most = nil, len(v)
		}
		if len(v) == most {
			best = append(best, t)
		}
	}
	slices.SortFunc(best, func(a, b translation) int {
		return strings.Compare(a.golden+" "+a.actual, b.golden+" "+b.actual)
	})
	return best
}

// cut is a label cut in two.
type cut struct {
	prefix, tail string
	bare         bool // the prefix is empty or has wrapper words only
}

// cuts returns the ways to cut a label before any number, such that more than wrapper words follow.
func cuts(n *node) (out []cut) {
	segs, at, bare := n.loose.segs, 0, true
	for i := 0; i <= maxPrefix && !onlyWrappers(segs[i:]); i++ {
		out = append(out, cut{n.loose.name[:max(at-1, 0)], n.loose.name[at:], bare})
		if label.IsNumber(segs[i]) {
			break
		}
		at += len(segs[i]) + 1
		bare = bare && wrappers[segs[i]]
	}
	return out
}

// votes collects for each possible translation the layers that would be joined by it. One of its
// prefixes is bare and the other is not: nothing is exchanged for something else. Translations
// under which shapes contradict are left out.
func (m *matcher) votes(golden, actual []*node) map[translation][]vote {
	type start struct {
		prefix string
		node   *node
	}
	have := map[cut][]start{} // by what follows the prefix, and whether that is bare
	for _, a := range open(actual) {
		for _, c := range cuts(a) {
			end := cut{"", c.tail, c.bare}
			have[end] = append(have[end], start{c.prefix, a})
		}
	}
	votes := map[translation][]vote{}
	bad := map[translation]bool{}
	for _, g := range open(golden) {
		for _, c := range cuts(g) {
			for _, a := range have[cut{"", c.tail, !c.bare}] {
				t := translation{c.prefix, a.prefix}
				if votes[t] = append(votes[t], vote{g, a.node}); !bad[t] && !m.fits(g, a.node) {
					bad[t] = true
				}
			}
		}
	}
	for t := range bad {
		delete(votes, t)
	}
	return votes
}

// translate joins the open layers that a translation joins.
func (m *matcher) translate(t translation, golden, actual []*node) {
	m.round(golden, actual, 0, func(n *node) []string {
		prefix := t.actual
		if n.side == m.golden {
			prefix = t.golden
		}
		behind := keep(cuts(n), func(c cut) bool { return c.prefix == prefix })
		return collect(behind, func(c cut) string { return c.tail })
	})
}

// sharing returns the translations that would join a node which t joins to something else.
func sharing(votes map[translation][]vote, t translation, others []translation) []translation {
	partner := map[*node]*node{}
	for _, v := range votes[t] {
		partner[v.golden], partner[v.actual] = v.actual, v.golden
	}
	other := func(n, than *node) bool { return partner[n] != nil && partner[n] != than }
	return keep(others, func(o translation) bool {
		return slices.ContainsFunc(votes[o], func(v vote) bool {
			return other(v.golden, v.actual) || other(v.actual, v.golden)
		})
	})
}

func (m *matcher) ambiguousPrefixes(votes map[translation][]vote, ts []translation) {
	var nodes []*node
	text := collect(ts, func(t translation) string {
		for _, v := range votes[t] {
			nodes = append(nodes, v.golden, v.actual)
		}
		v := votes[t]
		return fmt.Sprintf("golden %q = candidate %q and %d more", v[0].golden.label, v[0].actual.label, len(v)-1)
	})
	m.ambiguous(nodes, "%s fit equally well", strings.Join(text, "; "))
}
