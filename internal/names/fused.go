package names

import (
	"slices"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// fusion is a layer of one side that several of the other side make up.
type fusion struct {
	golden, actual []string // patterns; one of the two has one
	shift          shift
	by             evidence
	pairs, equal   int
	at             []int        // the places of the pairs in the golden's order
	literal        []match.Rule // where blocks are counted from another number
}

// join finds fused layers by value: a layer whose columns are the outputs of several layers of the
// other side.
func (p *proposing) join() {
	for _, s := range []struct{ whole, parts *side }{{p.actual, p.golden}, {p.golden, p.actual}} {
		at := newIndex(s.parts.values)
		holders := map[*value][]*layer{}
		var widths []int
		for _, l := range s.parts.layers {
			if l.value == nil || !l.free() || len(l.out.Shape) < 2 {
				continue
			}
			holders[l.value] = append(holders[l.value], l)
			if w := l.width(); !slices.Contains(widths, w) {
				widths = append(widths, w)
			}
		}
		tried := map[string]int{}
		for _, l := range s.whole.layers {
			if !l.free() || l.accounted() || l.value == nil || tried[l.key()] >= maxTries {
				continue
			}
			tried[l.key()]++
			if parts := p.parts(l, at, holders, widths); len(parts) > 1 {
				p.fuse(l, parts, s.whole == p.golden, byValue)
			}
		}
	}
}

// width is the size of the last axis of a layer's output.
func (l *layer) width() int { return l.out.Shape[len(l.out.Shape)-1] }

// parts finds the layers whose outputs, one after the other along the last axis, are a layer's
// output; nil if there are none.
func (p *proposing) parts(whole *layer, at index, holders map[*value][]*layer, widths []int) (found []*layer) {
	if len(whole.out.Shape) < 2 {
		return nil
	}
	for from := 0; from < whole.width(); {
		part := p.part(whole, from, at, holders, widths)
		if part == nil || len(found) == maxParts {
			return nil
		}
		found = append(found, part)
		from += part.width()
	}
	return found
}

// part finds the layer whose output is in the columns that begin at from.
func (p *proposing) part(whole *layer, from int, at index, holders map[*value][]*layer, widths []int) *layer {
	for _, w := range widths {
		if from+w > whole.width() || w == whole.width() {
			continue
		}
		v := p.columns(whole.out.Tensor, from, from+w)
		if v == nil {
			continue
		}
		o := at.nearest(v, p.tolerance)
		i := slices.IndexFunc(holders[o], func(l *layer) bool { return l.leaf && !l.idle && l.width() == w })
		if o != nil && i >= 0 {
			return holders[o][i]
		}
	}
	return nil
}

// columns samples some columns.
func (p *proposing) columns(t *tensor.Tensor, from, to int) *value {
	part, err := t.Slice(len(t.Shape())-1, from, to)
	if err != nil {
		return nil
	}
	return sampleOf(part, p.opt.PadMask)
}

// fuse generalises a fused layer and its parts over the blocks.
func (p *proposing) fuse(whole *layer, parts []*layer, wholeIsGolden bool, by evidence) {
	f := fusion{by: by}
	for i, part := range parts {
		g, a := part, whole
		if wholeIsGolden {
			g, a = whole, part
		}
		t, shifted := patternsOf(g, a)
		if p.shift() != 0 {
			t = shifted
		}
		switch {
		case i == 0:
			f.golden, f.actual, f.shift = []string{t.golden}, []string{t.actual}, t.shift
		case t.shift != f.shift, wholeIsGolden && t.golden != f.golden[0], !wholeIsGolden && t.actual != f.actual[0]:
			return // the blocks are counted in several ways
		case wholeIsGolden:
			f.actual = append(f.actual, t.actual)
		default:
			f.golden = append(f.golden, t.golden)
		}
	}
	p.applyFusion(f)
}

// applyFusion marks all layers that a fusion stands for.
func (p *proposing) applyFusion(f fusion) {
	for _, g := range p.golden.matching(f.golden[0]) {
		numbers, ok := captured(f.golden[0], g.name)
		if !ok {
			continue
		}
		var golden, actual []*layer
		for _, name := range f.golden {
			golden = append(golden, p.golden.named[fill(name, numbers, shift{})])
		}
		for _, name := range f.actual {
			actual = append(actual, p.actual.named[fill(name, numbers, f.shift)])
		}
		all := slices.Concat(golden, actual)
		if slices.ContainsFunc(all, func(l *layer) bool { return l == nil || !l.free() }) {
			continue
		}
		rule := match.Rule{}
		for _, l := range golden {
			rule.Golden = append(rule.Golden, l.name)
		}
		for _, l := range actual {
			rule.Candidate = append(rule.Candidate, l.name)
		}
		f.literal, f.at = append(f.literal, rule), append(f.at, g.end)
		f.pairs++
		for _, l := range all {
			l.fused = true
		}
		if p.equalParts(golden, actual) {
			f.equal++
		}
	}
	if f.pairs > 0 {
		p.fused = append(p.fused, f)
	}
}

// equalParts reports whether the columns of a fused layer are its parts.
func (p *proposing) equalParts(golden, actual []*layer) bool {
	whole, parts := actual[0], golden
	if len(golden) == 1 {
		whole, parts = golden[0], actual
	}
	from := 0
	for _, part := range parts {
		if from+part.width() > whole.width() || part.value == nil {
			return false
		}
		v := p.columns(whole.out.Tensor, from, from+part.width())
		if v == nil || v.distance(part.value) > p.tolerance {
			return false
		}
		from += part.width()
	}
	return from == whole.width()
}

// joinInOrder finds fused layers behind an error, by their place and their widths: the only layer of
// a stretch that is as wide as two or three of the other side that follow one another.
func (p *proposing) joinInOrder(s stretch) {
	for _, side := range []struct {
		whole, parts []*layer
		golden       bool
	}{{s.actual, s.golden, false}, {s.golden, s.actual, true}} {
		if whole, parts := p.onlyFusion(side.whole, side.parts); whole != nil {
			p.fuse(whole, parts, side.golden, byOrder)
		}
	}
}

// onlyFusion returns the first layer that several others make up; nil if there are several ways.
func (p *proposing) onlyFusion(wholes, parts []*layer) (whole *layer, found []*layer) {
	for _, w := range wholes {
		if len(w.out.Shape) < 2 || slices.ContainsFunc(parts, func(l *layer) bool { return p.fits(l, w) || p.fits(w, l) }) {
			continue
		}
		ways := 0
		for i := range parts {
			group := together(parts[i:])
			for n := 2; n <= min(3, len(group)); n++ {
				if p.makeUp(w, group[:n]) {
					if ways++; ways == 1 {
						found = group[:n]
					}
				}
			}
			if ways > 0 {
				break // the first blocks are aligned first
			}
		}
		if ways == 1 {
			return w, found
		}
		found = nil
	}
	return nil, nil
}

// together returns the first layer and those behind it that were given the same, or all of them where
// inputs were not recorded.
func together(layers []*layer) []*layer {
	first := layers[0]
	if len(first.in) == 0 {
		return layers
	}
	return slices.DeleteFunc(slices.Clone(layers), func(l *layer) bool {
		return !slices.ContainsFunc(l.in, func(v *value) bool { return slices.Contains(first.in, v) })
	})
}

// makeUp reports whether layers that stand side by side are as wide as another one together. Their
// names must not say otherwise.
func (p *proposing) makeUp(whole *layer, parts []*layer) bool {
	sum, rows := 0, whole.out.Tensor.Len()/max(1, whole.width())
	for i, l := range parts {
		if len(l.out.Shape) < 2 || !l.leaf || l.out.Tensor.Len()/max(1, l.width()) != rows || l.out.DType.Kind() != whole.out.DType.Kind() {
			return false
		}
		if order := qkvOrder(l.words.role); i > 0 && order > 0 && order < qkvOrder(parts[i-1].words.role) {
			return false
		}
		sum += l.width()
	}
	return sum == whole.width()
}

// qkvOrder is the place of a projection among those that it is fused with; 0 if it is none.
func qkvOrder(role string) int {
	return slices.Index([]string{"", "q", "k", "v", "gate", "up"}, role)
}
