package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// translation is a pair of prefixes: what follows one on the golden side follows the other on the candidate's.
type translation struct{ golden, actual string }

// minVotes is how many layers must agree on a translation before it is believed.
const minVotes = 3

// maxPrefix bounds the segments of a prefix.
const maxPrefix = 8

// learnWrappers finds words that stand before the layers of one side only and are not known as wrappers: model.mymodel.encoder.layer.0
// against
// model.encoder.layer.0. The translation that most layers follow is taken, if their shapes agree, and the search begins anew.
func (m *matcher) learnWrappers(golden, actual []*node) {
	for _, t := range m.learned {
		m.translate(t, golden, actual)
	}
	for {
		votes := m.votes(golden, actual)
		var best []translation
		most := minVotes
		for t, nodes := range votes {
			switch {
			case len(nodes) < most:
			case len(nodes) > most || best == nil:
				best, most = []translation{t}, len(nodes)
			default:
				best = append(best, t)
			}
		}
		if len(best) == 0 {
			return
		}
		slices.SortFunc(best, func(a, b translation) int { return strings.Compare(a.golden+" "+a.actual, b.golden+" "+b.actual) })
		t := best[0]
		if rivals := sharing(votes, t, best[1:]); len(rivals) > 0 {
			m.ambiguousPrefixes(votes, append([]translation{t}, rivals...))
			continue
		}
		m.learned = append(m.learned, t)
		m.translate(t, golden, actual)
	}
}

type vote struct{ golden, actual *node }

// votes collects for each possible translation the layers that would be joined by it. Translations under which shapes contradict are left
// out.
func (m *matcher) votes(golden, actual []*node) map[translation][]vote {
	golden, actual = m.open(golden, actual)
	type cut struct {
		prefix string
		node   *node
	}
	have := map[string][]cut{}
	for _, n := range actual {
		for prefix, tail := range cuts(n) {
			have[tail] = append(have[tail], cut{prefix, n})
		}
	}
	votes := map[translation][]vote{}
	bad := map[translation]bool{}
	for _, g := range golden {
		for prefix, tail := range cuts(g) {
			for _, c := range have[tail] {
				t := translation{prefix, c.prefix}
				switch {
				case bad[t] || !t.inserts():
				case !m.fits(g, c.node):
					bad[t] = true
				default:
					votes[t] = append(votes[t], vote{g, c.node})
				}
			}
		}
	}
	for t := range bad {
		delete(votes, t)
	}
	return votes
}

// cuts gives the prefixes of a label before any number, with what follows.
func cuts(n *node) map[string]string {
	out := map[string]string{}
	for i := 0; i < min(len(n.loose), maxPrefix+1); i++ {
		if i > 0 && label.IsNumber(n.loose[i-1]) || onlyWrappers(n.loose[i:]) {
			break
		}
		out[key(n.loose[:i])] = key(n.loose[i:])
	}
	return out
}

// inserts reports whether one prefix has words that are no wrappers, and the other none: nothing is exchanged for something else.
func (t translation) inserts() bool {
	g, a := withoutWrappers(split(t.golden)), withoutWrappers(split(t.actual))
	return (len(g) == 0) != (len(a) == 0)
}

func split(prefix string) []string {
	if prefix == "" {
		return nil
	}
	return strings.Split(prefix, ".")
}

func (m *matcher) translate(t translation, golden, actual []*node) {
	golden, actual = m.open(golden, actual)
	have := map[string]*node{}
	for _, n := range actual {
		if tail, ok := cuts(n)[t.actual]; ok {
			have[tail] = n
		}
	}
	for _, g := range golden {
		if tail, ok := cuts(g)[t.golden]; ok && have[tail] != nil && m.ofActual[have[tail]] == nil {
			m.addNodes(g, have[tail])
		}
	}
}

// sharing gives the translations that would join a node which t joins to something else.
func sharing(votes map[translation][]vote, t translation, others []translation) []translation {
	taken := map[*node]*node{}
	for _, v := range votes[t] {
		taken[v.golden], taken[v.actual] = v.actual, v.golden
	}
	var out []translation
	for _, o := range others {
		if slices.ContainsFunc(votes[o], func(v vote) bool {
			return taken[v.golden] != nil && taken[v.golden] != v.actual || taken[v.actual] != nil && taken[v.actual] != v.golden
		}) {
			out = append(out, o)
		}
	}
	return out
}

func (m *matcher) ambiguousPrefixes(votes map[translation][]vote, ts []translation) {
	var text []string
	for _, t := range ts {
		v := votes[t]
		text = append(text, fmt.Sprintf("golden %q = candidate %q and %d more", v[0].golden.label, v[0].actual.label, len(v)-1))
		for _, v := range v {
			m.settled[v.golden], m.settled[v.actual] = true, true
		}
	}
	m.errs = append(m.errs, fmt.Errorf("match: ambiguous names: %s fit equally well: say under names which is which", strings.Join(text,
		"; ")))
}
