package match

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
)

// contents are what a side's layers hold, for Propose.
type contents struct {
	*side
	layers []*node  // of the first pass, in the order in which their first calls ended
	values []*value // of outputs and inputs, each once
	nested bool     // some layers lie inside of others
}

// content is what is known of a layer by its first call.
type content struct {
	end    int    // its place in the order
	out    *port  // the output that it is about; nil if it has none
	value  *value // of it
	norm   float64
	in     []*value
	leaf   bool // no layer lies inside of it
	idle   bool // it does nothing in inference: it returns what it was given
	words  words
	blocks []run // numbers of blocks in the label

	pair  *node // of the other side, as far as is known
	fused bool  // it is a part of a layer of the other side, or made of several
}

// free reports whether a layer has no partner.
func (n *node) free() bool { return n.pair == nil && !n.fused }

// read samples what the layers hold.
func (s *side) read(padding layout.Padding) *contents {
	c := &contents{side: s}
	known := map[float64][]*value{} // by norm
	for _, n := range s.inOrder() {
		call := n.at(pass{s.steps[0], 1})
		if call == nil {
			continue
		}
		n.end, n.leaf = len(c.layers), true
		c.layers = append(c.layers, n)
		if n.out = call.main(); n.out != nil {
			if n.value = c.once(known, sampleOf(n.out.tensor, padding)); n.value != nil {
				n.value.from = append(n.value.from, n)
			}
		}
		for _, p := range call.ports[label.RoleInput] {
			if v := c.once(known, sampleOf(p.tensor, padding)); v != nil {
				n.in = append(n.in, v)
			}
		}
	}
	c.nest()
	counts := numbersOf(labels(c.layers))
	for _, n := range c.layers {
		n.blocks = counts.of(n.label)
		n.words = wordsOf(n.label, n.blocks)
		n.idle = n.leaf && n.value != nil && slices.Contains(n.in, n.value)
	}
	return c
}

// once returns the value of the run that is equal to v, or v if it is new.
func (c *contents) once(known map[float64][]*value, v *value) *value {
	if v == nil {
		return nil
	}
	if i := slices.IndexFunc(known[v.norm], v.same); i >= 0 {
		return known[v.norm][i]
	}
	known[v.norm] = append(known[v.norm], v)
	c.values = append(c.values, v)
	return v
}

// nest finds the layers inside of which others lie, at a dot or, in flat names, at an underscore.
func (c *contents) nest() {
	for _, n := range c.layers {
		outer := n.label
		for at := strings.LastIndexAny(outer, "._/"); at > 0; at = strings.LastIndexAny(outer, "._/") {
			outer = outer[:at]
			if o := c.named[outer]; o != nil {
				o.leaf, c.nested = false, true
			}
		}
	}
}

// inBlock reports whether a layer lies in a numbered block.
func (n *node) inBlock() bool { return len(n.blocks) > 0 }

// key is the label of a layer without the numbers of blocks.
func (n *node) key() string { return withStars(n.label, n.blocks) }

// blockNumbers lists the numbers of the blocks, each once.
func (c *contents) blockNumbers() []int {
	inBlocks := keep(c.layers, (*node).inBlock)
	numbers := collect(inBlocks, func(n *node) int { return n.blocks[0].number })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
