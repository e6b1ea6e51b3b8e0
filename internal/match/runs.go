package match

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/nearest"
)

// Runs finds out which port of the actual run is which of the golden one, step by step. Errors are: a rule or an ignore pattern that
// matches nothing
// or is wrong, names that fit several others equally well, a port that is there twice. All of them are reported at once.
func Runs(golden, actual []Port, opt Options) (*Result, error) {
	lay, err := newLayouts(opt.PadMask)
	if err != nil {
		return nil, err
	}
	ignored, err := applyIgnores(golden, actual, opt.Ignore)
	if err != nil {
		return nil, err
	}
	skipGolden, skipActual := map[int]bool{}, map[int]bool{}
	for _, i := range ignored {
		if i.Golden {
			skipGolden[i.Index] = true
		} else {
			skipActual[i.Index] = true
		}
	}
	m := &matcher{opt: opt, lay: lay, ofGolden: map[*node]*joined{}, ofActual: map[*node]*joined{}, settled: map[*node]bool{}}
	if m.golden, err = newSide("golden", golden, skipGolden, opt.GoldenByName); err != nil {
		return nil, err
	}
	if m.actual, err = newSide("candidate", actual, skipActual, opt.ActualByName); err != nil {
		return nil, err
	}
	if foldCalls(m.golden, m.actual) || foldCalls(m.actual, m.golden) {
		m.notes.add("one side recorded all steps as calls of one: call n is compared with step n")
	}
	m.generating = opt.Generating || m.generates()
	if err := m.applyRules(); err != nil {
		return nil, err
	}
	m.joinLayers()
	if err := errors.Join(m.errs...); err != nil {
		return nil, err
	}
	r := m.pairPorts().result()
	r.Ignored = ignored
	return r, nil
}

// Heads of models that generate text.
var heads = map[string]bool{"lmhead": true, "embedout": true}

// generates guesses from the names whether the golden run is one of a model that generates text.
func (m *matcher) generates() bool {
	for _, s := range []*side{m.golden, m.actual} {
		if len(s.steps) > 1 {
			return true
		}
		for _, n := range s.nodes {
			if heads[n.segs[len(n.segs)-1]] {
				return true
			}
		}
	}
	return slices.ContainsFunc(m.golden.ports, func(p Port) bool {
		return p.Port == "output_logits" && len(p.Shape) == 3
	})
}

func applyIgnores(golden, actual []Port, ignores []Ignore) ([]Ignored, error) {
	var out []Ignored
	var errs []error
	seen := map[[2]int]bool{}
	for _, ig := range ignores {
		if strings.TrimSpace(ig.Reason) == "" {
			errs = append(errs, fmt.Errorf("match: ignore %q has no reason: say why it is not compared", ig.Pattern))
			continue
		}
		p, err := glob.Compile(ig.Pattern)
		if err != nil {
			errs = append(errs, fmt.Errorf("match: ignore %q: %w", ig.Pattern, err))
			continue
		}
		hit := false
		var labels []string
		for side, ports := range [][]Port{golden, actual} {
			for i, port := range ports {
				labels = append(labels, port.Layer)
				if !p.Match(port.Layer) && !p.Match(port.Label()) {
					continue
				}
				hit = true
				if k := [2]int{side, i}; !seen[k] {
					seen[k] = true
					out = append(out, Ignored{Golden: side == 0, Index: i, Reason: ig.Reason})
				}
			}
		}
		if !hit {
			msg := fmt.Sprintf("match: ignore %q matches no layer or port of either run", ig.Pattern)
			if near, ok := nearest.Nearest(ig.Pattern, labels); ok {
				msg += fmt.Sprintf(", did you mean %q?", near)
			}
			errs = append(errs, errors.New(msg))
		}
	}
	return out, errors.Join(errs...)
}

// result sorts the pairs and says what is left over and why.
func (p *pairing) result() *Result {
	r := &Result{Pairs: p.pairs, Layers: map[string][]string{}}
	slices.SortStableFunc(r.Pairs, func(a, b Pair) int {
		if d := p.golden.rank[a.Golden[0]] - p.golden.rank[b.Golden[0]]; d != 0 {
			return d
		}
		return p.actual.rank[a.Actual[0]] - p.actual.rank[b.Actual[0]]
	})
	for _, pair := range r.Pairs {
		for _, g := range pair.Golden {
			for _, a := range pair.Actual {
				label, other := p.golden.ports[g].Layer, p.actual.ports[a].Layer
				if !slices.Contains(r.Layers[label], other) {
					r.Layers[label] = append(r.Layers[label], other)
				}
			}
		}
	}
	p.noteCut()
	r.UnmatchedGolden = p.unmatched(p.golden, p.actual, p.usedGolden)
	r.UnmatchedActual = p.unmatched(p.actual, p.golden, p.usedActual)
	r.Gaps = p.gaps()
	r.Notes = p.notes.list()
	return r
}

// noteJoins says once for all blocks what was not done by equal names.
func (p *pairing) noteJoins() {
	for _, j := range p.joins {
		g, a := j.golden[0], j.actual[0]
		switch {
		case j.rule != nil:
			p.notes.add("by a rule: " + j.rule.String())
		case len(j.golden) > 1 || len(j.actual) > 1:
			p.notes.add(fmt.Sprintf("%s = candidate %s", starred(j.golden), starred(j.actual)))
		case j.root && key(g.segs) != key(a.segs):
			p.notes.add(fmt.Sprintf("%s = candidate %s: both are the whole model", g.label, a.label))
		}
	}
	for _, t := range p.learned {
		p.notes.add(fmt.Sprintf("golden prefix %q = candidate prefix %q, learned from the layers behind it", t.golden, t.actual))
	}
}

// noteCut lists the layers of which only the last row was compared.
func (p *pairing) noteCut() {
	if len(p.cut) > 0 {
		p.notes.add("last row only: " + strings.Join(slices.Sorted(maps.Keys(p.cut)), ", "))
	}
}

func starred(nodes []*node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, label.Stars(n.label))
	}
	return strings.Join(out, ", ")
}

// maxHints bounds the search for near names, which takes time if two runs have nothing in common.
const maxHints = 64

func (p *pairing) unmatched(s, other *side, used map[int]bool) []Unmatched {
	var out []Unmatched
	var free []string // labels that are not joined: a joined one is no slip of another
	for _, n := range other.nodes {
		if p.joinOf(n) == nil {
			free = append(free, n.label)
		}
	}
	near, tried := map[string]string{}, map[string]bool{} // one label of all blocks is looked up
	for _, i := range s.order {
		if used[i] || s.nodeOf[i] == nil {
			continue
		}
		u := Unmatched{Index: i, Reason: p.reason(s, i)}
		if n := s.nodeOf[i]; p.joinOf(n) == nil && u.Reason == "" {
			if k := label.Stars(n.label); len(tried) < maxHints && !tried[k] {
				tried[k] = true
				near[n.label], _ = nearest.Nearest(n.label, free)
			}
			u.Nearest = near[n.label]
		}
		out = append(out, u)
	}
	return out
}

// joinOf gives the join of a node of either side, nil if it has none.
func (m *matcher) joinOf(n *node) *joined {
	if j := m.ofGolden[n]; j != nil {
		return j
	}
	return m.ofActual[n]
}
