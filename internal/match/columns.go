package match

import "slices"

// byColumns finds fused layers by value: a layer whose columns are the outputs of several layers of
// the other side.
func (p *search) byColumns() {
	for _, whole := range []*side{p.actual, p.golden} {
		parts := keep(whole.other.layers, func(n *node) bool {
			return n.value != nil && n.free() && n.leaf && len(n.out.shape) > 1
		})
		tried := map[string]int{}
		for _, n := range whole.layers {
			if !p.open(n) || n.value == nil || len(n.out.shape) < 2 || tried[n.key()] >= maxTries {
				continue
			}
			tried[n.key()]++
			if found := p.parts(n, parts); len(found) > 1 {
				p.stack(n, found, byValue)
			}
		}
	}
}

// width is the size of the last axis of a layer's output.
func (n *node) width() int { return n.out.shape[len(n.out.shape)-1] }

// parts finds the layers whose outputs, one after the other along the last axis, are a layer's
// output; nil if there are none.
func (p *search) parts(whole *node, parts []*node) (found []*node) {
	for from := 0; from < whole.width(); from += found[len(found)-1].width() {
		columns := map[int]*value{} // from there on, by their number
		i := slices.IndexFunc(parts, func(n *node) bool {
			v, known := columns[n.width()]
			if !known {
				v = p.columns(whole, from, n.width())
				columns[n.width()] = v
			}
			return n.width() < whole.width() && v != nil && v.distance(n.value) <= p.tolerance
		})
		if i < 0 || len(found) == maxParts {
			return nil
		}
		found = append(found, parts[i])
	}
	return found
}

// columns samples some columns of a layer's output; nil if it has not so many.
func (p *search) columns(n *node, from, width int) *value {
	part, err := n.out.tensor.Slice(len(n.out.shape)-1, from, from+width)
	if err != nil {
		return nil
	}
	return sampleOf(part, p.padding)
}

// stack generalises a fused layer and its parts over the blocks.
func (p *search) stack(whole *node, parts []*node, by evidence) {
	f := finding{by: by}
	for i, part := range parts {
		g, a := part, whole
		if whole.side == p.golden {
			g, a = whole, part
		}
		t := patternOf(g, a)
		if i > 0 && t.shift != f.shift {
			return // the blocks are counted in several ways
		}
		f.shift = t.shift
		f.golden, f.actual = append(f.golden, t.golden), append(f.actual, t.actual)
	}
	f.golden, f.actual = slices.Compact(f.golden), slices.Compact(f.actual)
	if min(len(f.golden), len(f.actual)) == 1 {
		p.apply(f)
	}
}

// equal reports whether two layers hold one value, or the columns of one those of the others.
func (p *search) equal(j *joined) bool {
	whole, parts := j.actual[0], j.golden
	if len(parts) == 1 {
		whole, parts = j.golden[0], j.actual
	}
	if !j.fused() {
		return whole.value != nil && parts[0].value != nil && whole.value.other == parts[0].value
	}
	from := 0
	for _, part := range parts {
		v := p.columns(whole, from, part.width())
		if v == nil || part.value == nil || v.distance(part.value) > p.tolerance {
			return false
		}
		from += part.width()
	}
	return from == whole.width()
}

// byWidths finds fused layers after an error, by their place and their widths: a layer of a stretch
// that no single one fits, and the only two or three of the other side that were given the same and
// are as wide together.
func (p *search) byWidths(wholes, parts []*node) {
	for _, w := range wholes {
		single := func(n *node) bool { return p.shapesFit(n, w) || p.shapesFit(w, n) }
		if len(w.out.shape) < 2 || slices.ContainsFunc(parts, single) {
			continue
		}
		var found [][]*node
		for i := 0; i < len(parts) && len(found) == 0; i++ { // the first blocks tell
			group := keep(parts[i:], func(n *node) bool { return givenOne(parts[i], n) })
			for n := 2; n <= min(3, len(group)); n++ {
				if makeUp(w, group[:n]) {
					found = append(found, group[:n])
				}
			}
		}
		if len(found) == 1 {
			p.stack(w, found[0], byPlace)
			return
		}
	}
}

// makeUp reports whether layers that stand side by side are as wide as another one together. Their
// names must not say otherwise.
func makeUp(whole *node, parts []*node) bool {
	sum, last := 0, 0
	for _, n := range parts {
		at := 0
		for i, part := range []string{"q", "k", "v", "gate", "up"} {
			if slices.Contains(n.words, part) {
				at = i + 1
			}
		}
		if len(n.out.shape) < 2 || !n.leaf || n.out.tensor.Len()*whole.width() != whole.out.tensor.Len()*n.width() ||
			n.out.dtype.Kind() != whole.out.dtype.Kind() || at > 0 && at < last {
			return false
		}
		sum, last = sum+n.width(), at
	}
	return sum == whole.width()
}

// givenOne reports whether two layers share an input, as far as inputs were recorded.
func givenOne(n, o *node) bool {
	return len(n.in) == 0 || slices.ContainsFunc(o.in, func(v *value) bool { return slices.Contains(n.in, v) })
}
