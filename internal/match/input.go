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

// input is the name of the input that a port holds or was computed for.
func (p *port) input() string { return label.InputOf(p.name) }

// byShape reports whether a golden input may be paired by dtype and shape.
func (p *port) byShape() bool {
	return !p.isMask() && !ownInput.MatchString(p.name) &&
		(p.dtype.IsFloat() || label.Position(p.name) >= 0 || slices.Contains(mainInputs, p.name))
}

// sortedInputs sorts inputs by their position, the named ones after, but those that a layer is about
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
	c.pairInputs(golden, actual)
	if len(golden) != 1 || len(actual) != 1 || len(c.input) > 0 {
		return
	}
	g, a := golden[0], actual[0] // each has one input, so it is the same one
	if sameKind(g, a) {
		c.problem(g, a)
	} else if g.isNumber() && a.isNumber() && !g.isMask() { // ids that were recorded as floats
		if f, fits := c.padding.Fit(g.shape, a.shape, allowance{IDs: true}); fits {
			c.addInput(g, a, f, fmt.Sprintf("%s against %s, by value", a.dtype, g.dtype))
		}
	}
}

// isNumber reports whether a port holds numbers: no bools, and integers that an engine may have
// recorded as ids.
func (p *port) isNumber() bool {
	return p.dtype.IsFloat() || p.dtype.Kind() == tensor.KindInt && p.dtype.Signed()
}

// computed pairs computed_<n> with what input_<n> was paired with, or in the same way where the
// candidate recorded no inputs.
func (c *callPairing) computed(golden, actual []*port) {
	var rest []*port
	for _, a := range actual {
		g := c.input[a.input()]
		if g == nil {
			rest = append(rest, a)
		} else if f, fits := c.fit(g, a); fits {
			c.addInput(g, a, f, "")
		} else {
			a.why = c.whyNot(g, a)
		}
	}
	c.pairInputs(keep(golden, unused), rest)
}

// addInput records a pair of inputs, or of an input and what was computed for it.
func (c *callPairing) addInput(g, a *port, f placement, note string) *Pair {
	used := g.used
	c.openGolden, c.openActual = without(c.openGolden, g), without(c.openActual, a)
	pair := c.add(g, []*port{a}, f, note)
	if a.role == label.RoleComputed {
		pair.Computed = true
		g.used = used // only the input itself covers the golden port
	} else {
		c.input[a.name] = g
	}
	return pair
}

// pairInputs pairs the inputs of two calls, or what was computed for them.
func (c *callPairing) pairInputs(golden, actual []*port) {
	c.openGolden, c.openActual = sortedInputs(golden), sortedInputs(actual)
	c.named()
	for _, first := range c.openGolden {
		if slices.Contains(c.openGolden, first) && first.byShape() {
			c.alike(first)
		}
	}
	c.masks()
}

// named pairs inputs that have one name on both sides.
func (c *callPairing) named() {
	for _, g := range c.openGolden {
		a := find(c.openActual, func(a *port) bool { return a.input() == g.name })
		if a == nil || label.Position(g.name) >= 0 {
			continue
		}
		if f, fits := c.fit(g, a); fits {
			c.addInput(g, a, f, "").Mask = g.isMask()
		}
	}
}

// alike pairs all inputs that have the dtype and shape of the first one. Where the candidate has
// none of an integer's dtype, integers of other widths are meant: engines have ids of 32 bits, too.
// Where one side has more, equal names are paired, or else the lowest of both.
func (c *callPairing) alike(first *port) {
	golden := keep(c.openGolden, func(g *port) bool {
		return g.byShape() && sameClass(g, first) && slices.Equal(g.shape, first.shape)
	})
	like := func(same func(a, b *port) bool) []*port {
		return keep(c.openActual, func(a *port) bool {
			_, fits := c.fit(first, a)
			return fits && !a.isMask() && (same(a, first) || a.name == first.name)
		})
	}
	actual := like(sameClass)
	if len(actual) == 0 {
		actual = like(sameKind)
	}
	pairs, choice := [][2]*port{}, "" // choice says how a pair was found among others
	switch {
	case len(actual) == 0:
		return
	case len(actual) == len(golden):
		for i, g := range golden {
			pairs = append(pairs, [2]*port{g, actual[i]})
		}
		if len(golden) > 1 {
			choice = fmt.Sprintf(", in order: %d have them", len(golden))
		}
	case !c.shifted(actual[0]):
		for _, g := range golden {
			if a := find(actual, func(a *port) bool { return a.input() == g.name }); a != nil {
				pairs = append(pairs, [2]*port{g, a})
			}
		}
	}
	if len(pairs) == 0 {
		pairs = append(pairs, [2]*port{golden[0], actual[0]})
		choice = fmt.Sprintf(", the lowest of %d against %d", len(actual), len(golden))
	}
	for _, pair := range pairs {
		g, a, note := pair[0], pair[1], ""
		if a.input() != g.name {
			note = fmt.Sprintf("candidate %s by dtype and shape%s", a.input(), choice)
		}
		f, _ := c.fit(g, a)
		c.addInput(g, a, f, note)
	}
	for _, g := range golden {
		if !g.used && len(actual) != len(golden) {
			g.why = "the candidate recorded fewer inputs of this dtype and shape"
		}
	}
}

// shifted reports whether the candidate has an input of another kind before the lowest one of some,
// which shifts the positions of these.
func (c *callPairing) shifted(lowest *port) bool {
	return slices.ContainsFunc(c.openActual, func(a *port) bool {
		n := label.Position(a.input())
		return n >= 0 && n < label.Position(lowest.input())
	})
}

// sameClass reports whether two inputs may be the same by their dtypes: floats are computed in any
// precision, all other numbers mean themselves.
func sameClass(a, b *port) bool { return a.dtype == b.dtype || a.dtype.IsFloat() && b.dtype.IsFloat() }

// masks pairs what is left of masks: an attention mask has another dtype in each engine, and axes of
// size 1 come and go.
func (c *callPairing) masks() {
	for _, g := range c.openGolden {
		if !g.isMask() {
			continue
		}
		found := keep(c.openActual, func(a *port) bool {
			plausible := a.isMask() || a.dtype.IsFloat() || a.dtype == tensor.Bool || a.dtype == g.dtype
			return plausible && sameButOnes(g.shape, a.shape)
		})
		if len(found) != 1 {
			continue
		}
		a, f := found[0], placement{Shape: g.shape}
		if !slices.Equal(g.shape, a.shape) {
			f.Actual = Reshaped(g.shape)
		}
		c.addInput(g, a, f, fmt.Sprintf("candidate %s as the mask: %s against %s", a.name, a.dtype, g.dtype)).Mask = true
	}
}
