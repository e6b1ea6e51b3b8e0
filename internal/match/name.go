package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// wrappers are words that only wrap a model. They may be dropped from the front of a label, never
// all of it.
var wrappers = strings.Fields(`model basemodel module origmod languagemodel textmodel llm backbone transformer automodel
	network net gptneox bert roberta xlmroberta camembert distilbert mpnet electra albert deberta`)

// normal is a label in the form in which labels are compared: its segments folded and unlisted.
func normal(layer string) []string { return unlisted(folded(layer)) }

func folded(layer string) []string { return collect(strings.Split(layer, "."), label.Fold) }

// unlisted leaves out each "layers" that stands before a number, but one in front: a list may have
// any name, and engines double it.
func unlisted(segs []string) (out []string) {
	for i, s := range slices.Backward(segs) {
		if i == 0 || s != "layers" || len(out) == 0 || !label.IsNumber(out[len(out)-1]) {
			out = append(out, s)
		}
	}
	slices.Reverse(out)
	return out
}

func isWrapper(segment string) bool { return slices.Contains(wrappers, segment) }

func onlyWrappers(segs []string) bool {
	return !slices.ContainsFunc(segs, func(s string) bool { return !isWrapper(s) })
}

// Key is a label in the form in which both engines write it: case, underscores, doubled lists and
// wrapper words do not count. Labels of one layer have the same key; different layers may, too
// (model and model.model).
func Key(layer string) string {
	name := label.Name(layer)
	segs := slices.DeleteFunc(folded(name), isWrapper)
	return strings.Join(unlisted(segs), ".") + strings.TrimPrefix(layer, name)
}

// translation is a pair of prefixes: what follows one on the golden side follows the other on the
// candidate's. One of them at least is bare, so that nothing is exchanged for something else.
type translation struct{ golden, actual prefix }

// prefix is the front of a label in normal form.
type prefix struct {
	text  string
	words int
	bare  bool // it has wrapper words only
}

// joinNamed joins the open layers whose labels are equal, or equal in normal form, after prefixes of
// as few wrapper words as possible; then those after unknown prefixes that most layers agree on and no
// shape contradicts, as model.mymodel.encoder.layer.0 against model.encoder.layer.0.
func (m *matcher) joinNamed(golden, actual []*node) {
	edges, votes := m.votes(golden, actual)
	m.resolve(edges)
	for _, t := range m.learned {
		m.resolve(slices.DeleteFunc(votes[t], closed))
	}
	for range maxLearned {
		edges = nil
		for _, t := range mostVoted(votes) {
			fresh := keep(votes[t], func(e edge) bool { return !slices.Contains(edges, e) })
			if len(fresh) > 0 { // no other prefix joins these
				m.learned, edges = append(m.learned, t), append(edges, fresh...)
				m.note(fmt.Sprintf("golden %s = candidate %s: the prefixes were learned from the layers after them",
					label.Stars(fresh[0].golden.label), label.Stars(fresh[0].actual.label)))
			}
		}
		if len(edges) == 0 {
			return
		}
		m.resolve(edges)
	}
}

func closed(e edge) bool { return !e.golden.open() || !e.actual.open() }

// mostVoted drops the votes of layers that have partners now, and returns the translations that have
// the most votes, and enough of them, by name. Those under which shapes contradict do not count.
func mostVoted(votes map[translation][]edge) (best []translation) {
	most := minVotes
	for _, t := range slices.SortedFunc(maps.Keys(votes), func(a, b translation) int {
		return cmp.Or(cmp.Compare(a.golden.text, b.golden.text), cmp.Compare(a.actual.text, b.actual.text))
	}) {
		votes[t] = slices.DeleteFunc(votes[t], closed)
		n := len(votes[t])
		if n < most || slices.ContainsFunc(votes[t], func(e edge) bool { return e.score == 0 }) {
			continue
		}
		if n > most {
			best, most = nil, n
		}
		best = append(best, t)
	}
	return best
}

// cut is a label cut in two.
type cut struct {
	node *node
	prefix
	tail string
}

// cuts returns the ways to cut a label before any number, such that more than wrapper words follow.
func cuts(n *node) (out []cut) {
	front := prefix{bare: true}
	for i, s := range n.form[:min(len(n.form), maxPrefix+1)] {
		if onlyWrappers(n.form[i:]) {
			break
		}
		out = append(out, cut{n, front, strings.Join(n.form[i:], ".")})
		if label.IsNumber(s) {
			break
		}
		front.text = strings.Join(n.form[:i+1], ".")
		if i > 0 || s != "layers" { // a list may have any name, or none
			front.words++
			front.bare = front.bare && isWrapper(s)
		}
	}
	return out
}

// votes collects the layers that would be joined by dropping wrapper words only, which needs no evidence, the better
// the fewer, and those that each other translation would join: whether the shapes of their outputs fit.
func (m *matcher) votes(golden, actual []*node) (known []edge, votes map[translation][]edge) {
	have := map[string][]cut{} // by what follows the prefix
	for _, a := range open(actual) {
		for _, c := range cuts(a) {
			have[c.tail] = append(have[c.tail], c)
		}
	}
	votes = map[translation][]edge{}
	for _, g := range open(golden) {
		for _, c := range cuts(g) {
			for _, a := range have[c.tail] {
				t := translation{c.prefix, a.prefix}
				common := c.text != "" && label.Last(c.text) == label.Last(a.text) // a shorter cut joins them, too
				if common || !c.bare && !a.bare {
					continue
				}
				e := edge{golden: g, actual: a.node}
				if m.fits(g, a.node) {
					e.score = 1
				}
				if g.label == a.node.label {
					e.score = surely
				}
				if c.bare && a.bare {
					e.score -= 2 * float64(c.words+a.words)
					known = append(known, e)
				} else {
					votes[t] = append(votes[t], e)
				}
			}
		}
	}
	return known, votes
}
