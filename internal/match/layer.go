package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// layerPairing pairs the ports of one joined layer in one pass.
type layerPairing struct {
	*pairing
	ok    allow
	rule  *Rule
	named bool // the rule names the ports
	root  bool
	input map[string]int // the candidate's input port → its golden port
}

// fit finds the layout of two ports, a rule's before all others.
func (l *layerPairing) fit(g, a int) (layout, bool) {
	gp, ap := l.golden.ports[g], l.actual.ports[a]
	ruled := l.rule != nil && l.rule.lays()
	if ruled && (l.named || roleOf(gp.Port) == label.RoleOutput) {
		return l.rule.layout(gp, ap, l.lay)
	}
	ok := l.ok
	ok.mask = isMask(gp) && isMask(ap)
	lay, fits := l.fitPorts(gp, ap, ok)
	if !fits && ruled {
		return l.rule.layout(gp, ap, l.lay)
	}
	return lay, fits
}

// outputs pairs the first outputs whatever they are called, the others by their name only: a mean-pooled output is not a tanh pooler's.
func (l *layerPairing) outputs(golden, actual []int) {
	mainG, mainA := l.golden.mainOutput(golden), l.actual.mainOutput(actual)
	names := func(s *side, ports []int) []string {
		var out []string
		for _, i := range ports {
			out = append(out, s.ports[i].Port)
		}
		slices.Sort(out)
		return out
	}
	alike := slices.Equal(names(l.golden, golden), names(l.actual, actual))
	for _, g := range golden {
		for _, a := range actual {
			if g == mainG && a == mainA || l.golden.ports[g].Port != l.actual.ports[a].Port {
				continue
			}
			if lay, fits := l.fit(g, a); fits {
				l.add(g, a, lay, "")
			} else if alike {
				l.problem(g, a)
			} else if g != mainG && a != mainA {
				l.why[0][g] = "the output of this name has another shape in the candidate, so it is another thing"
				l.why[1][a] = "the output of this name has another shape in the golden, so it is another thing"
			}
		}
	}
	if mainG < 0 || mainA < 0 || l.usedGolden[mainG] || l.usedActual[mainA] {
		return
	}
	if lay, fits := l.fit(mainG, mainA); fits {
		l.add(mainG, mainA, lay, "")
		return
	}
	// A tuple in another order: the first positional output whose shape fits.
	for _, g := range golden {
		if lay, fits := l.fit(g, mainA); fits && !l.usedGolden[g] && g != mainG && label.Position(l.golden.ports[g].Port) >= 0 {
			l.guess(g, mainA, lay, fmt.Sprintf("candidate %s by its shape", l.actual.ports[mainA].Port))
			return
		}
	}
	for _, a := range actual {
		if lay, fits := l.fit(mainG, a); fits && !l.usedActual[a] && a != mainA && label.Position(l.actual.ports[a].Port) >= 0 {
			l.guess(mainG, a, lay, fmt.Sprintf("candidate %s by its shape", l.actual.ports[a].Port))
			return
		}
	}
	gs, as := l.golden.ports[mainG].Shape, l.actual.ports[mainA].Shape
	if l.root && !l.generating && len(gs) == 3 && slices.Equal(as, drop(gs, 1)) {
		l.why[0][mainG] = "the candidate's output is pooled: record it unpooled"
		l.why[1][mainA] = "a pooled output: the golden has hidden states here, and how the two pool is not known to be the same"
		return
	}
	// The one output of both has another type: whether its values are right can still be told.
	if gp, ap := l.golden.ports[mainG], l.actual.ports[mainA]; !sameKind(gp.DType, ap.DType) {
		if lay, fits := l.lay.fit(gs, as, false, allow{}); fits {
			l.guess(mainG, mainA, lay, l.whyNot(mainG, mainA))
			return
		}
	}
	l.problem(mainG, mainA)
}

// guess records a pair that could have been another, and says so in the notes.
func (l *layerPairing) guess(g, a int, lay layout, note string) {
	l.noteGuess(g, l.add(g, a, lay, note).Note)
}

func (l *layerPairing) noteGuess(g int, note string) {
	p := l.golden.ports[g]
	l.notes.add(fmt.Sprintf("%s-%s: %s", label.Stars(p.Layer), p.Port, note))
}

// inputs pairs named inputs by their name, then those of one dtype and shape in order, then masks.
func (l *layerPairing) inputs(golden, actual []int) {
	l.input = map[string]int{}
	take := func(g, a int, lay layout, note string) *Pair {
		l.input[l.actual.ports[a].Port] = g
		return l.add(g, a, lay, note)
	}
	l.pairInputs(golden, actual, take)
	if len(golden) == 1 && len(actual) == 1 && len(l.input) == 0 && sameKind(l.golden.ports[golden[0]].DType,
		l.actual.ports[actual[0]].DType) {
		l.problem(golden[0], actual[0]) // each has one input, so it is the same one
	}
}

// computed pairs computed_<n> with what input_<n> was paired with, or in the same way where the candidate recorded no inputs.
func (l *layerPairing) computed(golden, actual []int) {
	take := func(g, a int, lay layout, note string) *Pair {
		used := l.usedGolden[g]
		p := l.add(g, a, lay, note)
		p.Computed = true
		l.usedGolden[g] = used // only the input itself covers the golden port
		return p
	}
	var rest []int
	for _, a := range actual {
		g, known := l.input[label.InputOf(l.actual.ports[a].Port)]
		if !known {
			rest = append(rest, a)
		} else if lay, fits := l.fit(g, a); fits {
			take(g, a, lay, "")
		} else {
			l.why[1][a] = l.whyNot(g, a)
		}
	}
	var open []int
	for _, g := range golden {
		if !l.usedGolden[g] {
			open = append(open, g)
		}
	}
	l.pairInputs(open, rest, take)
}

func (l *layerPairing) pairInputs(golden, actual []int, take func(g, a int, lay layout, note string) *Pair) {
	golden, actual = slices.Clone(golden), slices.Clone(actual)
	slices.SortFunc(golden, l.golden.inputOrder)
	slices.SortFunc(actual, l.actual.inputOrder)
	done := map[int]bool{}
	doneA := map[int]bool{}
	pair := func(g, a int, lay layout, note string) *Pair {
		done[g], doneA[a] = true, true
		return take(g, a, lay, note)
	}
	name := func(a int) string { return label.InputOf(l.actual.ports[a].Port) }

	for _, g := range golden { // named, or the only one
		for _, a := range actual {
			port := l.golden.ports[g].Port
			if !doneA[a] && port == name(a) && (label.Position(port) < 0 || len(golden) == 1 && len(actual) == 1) {
				if lay, fits := l.fit(g, a); fits {
					p := pair(g, a, lay, "")
					p.Mask = isMask(l.golden.ports[g])
					break
				}
			}
		}
	}
	for _, first := range golden {
		if done[first] || !l.byShape(first) {
			continue
		}
		// All inputs of this dtype and shape on both sides.
		var gs, as []int
		like := l.golden.ports[first]
		for _, g := range golden {
			if p := l.golden.ports[g]; !done[g] && l.byShape(g) && classOf(p.DType) == classOf(like.DType) && slices.Equal(p.Shape, like.Shape) {
				gs = append(gs, g)
			}
		}
		for _, a := range actual {
			p := l.actual.ports[a]
			sameInts := classOf(p.DType) == classOf(like.DType) || p.Port == like.Port
			if _, fits := l.fit(first, a); fits && !doneA[a] && sameInts && !isMask(p) {
				as = append(as, a)
			}
		}
		l.pairGroup(gs, as, actual, pair, name)
	}
	l.pairMasks(golden, actual, done, doneA, pair)
}

// byShape reports whether a golden input may be paired by dtype and shape.
func (l *layerPairing) byShape(g int) bool {
	p := l.golden.ports[g]
	if isMask(p) || ownInputs.MatchString(p.Port) {
		return false
	}
	return p.DType.IsFloat() || label.Position(p.Port) >= 0 || slices.Contains(mainInputs, p.Port)
}

// pairGroup pairs inputs of one dtype and shape. Equally many go in order. Else equal positions are taken, unless the candidate has an
// input of another
// kind in front, which shifts its positions; then the lowest of both.
func (l *layerPairing) pairGroup(gs, as, all []int, pair func(g, a int, lay layout, note string) *Pair, name func(int) string) {
	if len(gs) == 0 || len(as) == 0 {
		return
	}
	join := func(g, a int, choice string) {
		lay, _ := l.fit(g, a)
		if name(a) == l.golden.ports[g].Port {
			pair(g, a, lay, "")
			return
		}
		p := pair(g, a, lay, fmt.Sprintf("candidate %s by dtype and shape%s", name(a), choice))
		if choice != "" {
			l.noteGuess(g, p.Note)
		}
	}
	if len(gs) == len(as) {
		note := ""
		if len(gs) > 1 {
			note = fmt.Sprintf(", in order: %d have them", len(gs))
		}
		for i := range gs {
			join(gs[i], as[i], note)
		}
		return
	}
	shifted := label.Position(name(as[0])) > 0 && slices.ContainsFunc(all, func(a int) bool {
		p := label.Position(name(a))
		return p >= 0 && p < label.Position(name(as[0]))
	})
	matched := false
	if !shifted {
		for _, g := range gs {
			for _, a := range as {
				if name(a) == l.golden.ports[g].Port {
					join(g, a, "")
					matched = true
				}
			}
		}
	}
	if !matched {
		join(gs[0], as[0], fmt.Sprintf(", the lowest of %d against %d", len(as), len(gs)))
	}
	for _, g := range gs {
		if !l.usedGolden[g] {
			l.why[0][g] = "the candidate recorded fewer inputs of this dtype and shape"
		}
	}
}

// pairMasks pairs what is left of masks: an attention mask has another dtype in each engine, and axes of size 1 come and go.
func (l *layerPairing) pairMasks(golden, actual []int, done, doneA map[int]bool, pair func(g, a int, lay layout, note string) *Pair) {
	for _, g := range golden {
		gp := l.golden.ports[g]
		if done[g] || !isMask(gp) {
			continue
		}
		var found []int
		for _, a := range actual {
			ap := l.actual.ports[a]
			plausible := ap.DType.IsFloat() || ap.DType == gp.DType || classOf(ap.DType) == classOf(tensor.Bool) || isMask(ap)
			sq := squeeze(gp.Shape)
			if !doneA[a] && plausible && len(sq) > 0 && slices.Equal(sq, squeeze(ap.Shape)) {
				found = append(found, a)
			}
		}
		if len(found) != 1 {
			continue
		}
		ap := l.actual.ports[found[0]]
		lay := layout{shape: gp.Shape}
		if !slices.Equal(gp.Shape, ap.Shape) {
			lay.actual = View{reshape(gp.Shape)}
		}
		note := fmt.Sprintf("candidate %s as the mask: %s against %s", ap.Port, ap.DType, gp.DType)
		pair(g, found[0], lay, note).Mask = true
	}
}

// namedPorts pairs the one port on each side that a rule names.
func (l *layerPairing) namedPorts(golden, actual []int) {
	if len(golden) == 0 || len(actual) == 0 {
		return
	}
	if lay, fits := l.fit(golden[0], actual[0]); fits {
		l.add(golden[0], actual[0], lay, "by a rule")
	} else {
		l.problem(golden[0], actual[0])
	}
}
