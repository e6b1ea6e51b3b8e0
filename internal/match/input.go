package match

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// mainInputs are named inputs that a layer is about: they go before others of the same dtype and
// shape. Other named integers are never paired by dtype and shape, as token types and positions look
// alike.
var mainInputs = []string{"input_input_ids", "input_hidden_states", "input_inputs_embeds", "input_sample", "input_x",
	"input_input", "input_pixel_values"}

func (p *port) isMask() bool { return strings.Contains(p.name, "mask") }

// inputName is the name of the input that a port holds or was computed for.
func (p *port) inputName() string { return label.InputOf(p.name) }

// byShape reports whether a golden input may be paired by dtype and shape.
func (p *port) byShape() bool {
	if p.isMask() || ownInput(p.name) {
		return false
	}
	return p.dtype.IsFloat() || label.Position(p.name) >= 0 || slices.Contains(mainInputs, p.name)
}

// sortedInputs sorts inputs by their position, the named ones behind, but those that a layer is about
// first.
func sortedInputs(ports []*port) []*port {
	weight := func(p *port) int {
		if n := label.Position(p.name); n >= 0 {
			return n
		}
		if k := slices.Index(mainInputs, p.name); k >= 0 {
			return k - len(mainInputs)
		}
		return math.MaxInt
	}
	return slices.SortedFunc(slices.Values(ports), func(a, b *port) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), a.rank-b.rank)
	})
}

// inputs pairs named inputs by their name, then those of one dtype and shape in order, then masks.
func (c *callPairing) inputs(golden, actual []*port) {
	c.pairInputs(golden, actual, func(g, a *port, lay layout, note string) *paired {
		c.input[a.name] = g
		return c.add(g, a, lay, note)
	})
	if len(golden) == 1 && len(actual) == 1 && len(c.input) == 0 && sameKind(golden[0].dtype, actual[0].dtype) {
		c.problem(golden[0], actual[0]) // each has one input, so it is the same one
	}
}

// computed pairs computed_<n> with what input_<n> was paired with, or in the same way where the
// candidate recorded no inputs.
func (c *callPairing) computed(golden, actual []*port) {
	take := func(g, a *port, lay layout, note string) *paired {
		used := g.used
		pair := c.add(g, a, lay, note)
		pair.Computed = true
		g.used = used // only the input itself covers the golden port
		return pair
	}
	var rest []*port
	for _, a := range actual {
		g := c.input[a.inputName()]
		if g == nil {
			rest = append(rest, a)
		} else if lay, fits := c.fit(g, a); fits {
			take(g, a, lay, "")
		} else {
			a.why = c.whyNot(g, a)
		}
	}
	open := slices.DeleteFunc(slices.Clone(golden), func(g *port) bool { return g.used })
	c.pairInputs(open, rest, take)
}

// inputPairing pairs the inputs of two calls, or what was computed for them.
type inputPairing struct {
	*callPairing
	golden, actual []*port
	done           map[*port]bool
	take           func(g, a *port, lay layout, note string) *paired
}

func (c *callPairing) pairInputs(golden, actual []*port, take func(g, a *port, lay layout, note string) *paired) {
	p := &inputPairing{callPairing: c, golden: sortedInputs(golden), actual: sortedInputs(actual),
		done: map[*port]bool{}, take: take}
	p.named()
	for _, first := range p.golden {
		if !p.done[first] && first.byShape() {
			p.likes(first)
		}
	}
	p.masks()
}

func (p *inputPairing) pair(g, a *port, lay layout, note string) *paired {
	p.done[g], p.done[a] = true, true
	return p.take(g, a, lay, note)
}

// named pairs inputs that have one name on both sides, or a number if there is no other input.
func (p *inputPairing) named() {
	single := len(p.golden) == 1 && len(p.actual) == 1
	for _, g := range p.golden {
		for _, a := range p.actual {
			if p.done[a] || g.name != a.inputName() || label.Position(g.name) >= 0 && !single {
				continue
			}
			if lay, fits := p.fit(g, a); fits {
				p.pair(g, a, lay, "").Mask = g.isMask()
				break
			}
		}
	}
}

// likes pairs all inputs that have the dtype and shape of the first one.
func (p *inputPairing) likes(first *port) {
	var golden, actual []*port
	for _, g := range p.golden {
		if !p.done[g] && g.byShape() && sameClass(g.dtype, first.dtype) && slices.Equal(g.shape, first.shape) {
			golden = append(golden, g)
		}
	}
	for _, a := range p.actual {
		if p.done[a] || a.isMask() || !sameClass(a.dtype, first.dtype) && a.name != first.name {
			continue
		}
		if _, fits := p.fit(first, a); fits {
			actual = append(actual, a)
		}
	}
	switch {
	case len(actual) == 0:
	case len(actual) == len(golden):
		note := ""
		if len(golden) > 1 {
			note = fmt.Sprintf(", in order: %d have them", len(golden))
		}
		for i := range golden {
			p.choose(golden[i], actual[i], note)
		}
	default:
		p.unequal(golden, actual)
	}
}

// unequal pairs inputs of one dtype and shape of which one side has more: equal positions, unless
// the candidate has an input of another kind in front, which shifts its positions; then the lowest
// of both.
func (p *inputPairing) unequal(golden, actual []*port) {
	lowest := label.Position(actual[0].inputName())
	shifted := slices.ContainsFunc(p.actual, func(a *port) bool {
		n := label.Position(a.inputName())
		return n >= 0 && n < lowest
	})
	matched := false
	for _, g := range golden {
		for _, a := range actual {
			if !shifted && a.inputName() == g.name {
				p.choose(g, a, "")
				matched = true
			}
		}
	}
	if !matched {
		p.choose(golden[0], actual[0], fmt.Sprintf(", the lowest of %d against %d", len(actual), len(golden)))
	}
	for _, g := range golden {
		if !g.used {
			g.why = "the candidate recorded fewer inputs of this dtype and shape"
		}
	}
}

// choose pairs two inputs of one dtype and shape. choice says how it was made, if there were others.
func (p *inputPairing) choose(g, a *port, choice string) {
	lay, _ := p.fit(g, a)
	if a.inputName() == g.name {
		p.pair(g, a, lay, "")
		return
	}
	pair := p.pair(g, a, lay, fmt.Sprintf("candidate %s by dtype and shape%s", a.inputName(), choice))
	if choice != "" {
		p.noteGuess(g, pair.Note)
	}
}

// masks pairs what is left of masks: an attention mask has another dtype in each engine, and axes of
// size 1 come and go.
func (p *inputPairing) masks() {
	for _, g := range p.golden {
		if p.done[g] || !g.isMask() {
			continue
		}
		var found []*port
		for _, a := range p.actual {
			plausible := a.dtype.IsFloat() || a.dtype == g.dtype || a.dtype == tensor.Bool || a.isMask()
			if sq := squeeze(g.shape); !p.done[a] && plausible && len(sq) > 0 && slices.Equal(sq, squeeze(a.shape)) {
				found = append(found, a)
			}
		}
		if len(found) != 1 {
			continue
		}
		a := found[0]
		lay := layout{shape: g.shape}
		if !slices.Equal(g.shape, a.shape) {
			lay.actual = reshape(g.shape)
		}
		note := fmt.Sprintf("candidate %s as the mask: %s against %s", a.name, a.dtype, g.dtype)
		p.pair(g, a, lay, note).Mask = true
	}
}

// sameClass reports whether inputs of two dtypes may be the same: floats are computed in any
// precision, all other numbers mean themselves.
func sameClass(a, b tensor.DType) bool { return a == b || a.IsFloat() && b.IsFloat() }
