package match

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// content is what is known of a layer by its first call.
type content struct {
	end    int    // its place in the order
	out    *port  // the output that it is about; nil if it has none
	value  *value // of it
	norm   float64
	in     []*value
	leaf   bool // no layer lies inside of it
	words  words
	blocks []run // numbers of blocks in the label

	pair  *node // of the other side, as far as is known
	fused bool  // it is a part of a layer of the other side, or made of several
}

// free reports whether a layer has no partner.
func (n *node) free() bool { return n.pair == nil && !n.fused }

// read samples what the layers hold.
func (s *side) read(padding layout.Padding) {
	known := map[float64][]*value{} // by norm
	for _, n := range s.inOrder() {
		call := n.at(pass{s.steps[0], 1})
		if call == nil {
			continue
		}
		n.end, n.leaf = len(s.layers), true
		s.layers = append(s.layers, n)
		if n.out = call.main(); n.out != nil {
			if n.value = s.once(known, sampleOf(n.out.tensor, padding)); n.value != nil {
				n.value.from = append(n.value.from, n)
			}
		}
		for _, p := range call.ports[label.RoleInput] {
			if v := s.once(known, sampleOf(p.tensor, padding)); v != nil {
				n.in = append(n.in, v)
			}
		}
	}
	s.nest()
	counts := numbersOf(labels(s.layers))
	for _, n := range s.layers {
		n.blocks = counts.of(n.label)
		n.words = wordsOf(n.label, n.blocks)
	}
}

// once returns the value of the run that is equal to v, or v if it is new.
func (s *side) once(known map[float64][]*value, v *value) *value {
	if v == nil {
		return nil
	}
	if i := slices.IndexFunc(known[v.norm], v.same); i >= 0 {
		return known[v.norm][i]
	}
	known[v.norm] = append(known[v.norm], v)
	s.values = append(s.values, v)
	return v
}

// nest finds the layers inside of which others lie.
func (s *side) nest() {
	for _, n := range s.layers {
		for outer := label.Parent(n.label); outer != ""; outer = label.Parent(outer) {
			if o := s.named[outer]; o != nil {
				o.leaf, s.nested = false, true
			}
		}
	}
}

// inBlock reports whether a layer lies in a numbered block.
func (n *node) inBlock() bool { return len(n.blocks) > 0 }

// key is the label of a layer without the numbers of blocks.
func (n *node) key() string { return withStars(n.label, n.blocks) }

// blockNumbers lists the numbers of the blocks, each once.
func (s *side) blockNumbers() []int {
	inBlocks := keep(s.layers, (*node).inBlock)
	numbers := collect(inBlocks, func(n *node) int { return n.blocks[0].number })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// sameBlock reports whether two layers are in blocks that belong together.
func (p *search) sameBlock(g, a *node) bool {
	return !g.inBlock() || !a.inBlock() || g.blocks[0].number+p.shift == a.blocks[0].number
}
