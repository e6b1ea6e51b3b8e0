package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// mainOutputs are the names of the one output that a layer is about, the usual first.
var mainOutputs = []string{"output", "output_0", "output_logits", "output_last_hidden_state", "output_sample",
	label.Tap}

// mainOutput picks the output that a layer is about: by its name, or a named one because there is
// no other. It is nil if there is none.
func mainOutput(outputs []*port) *port {
	for _, name := range mainOutputs {
		if p := named(outputs, name); p != nil {
			return p
		}
	}
	if len(outputs) == 1 && label.Position(outputs[0].name) < 0 {
		return outputs[0]
	}
	return nil
}

// named returns the port of a call that has a name, nil if there is none.
func named(ports []*port, name string) *port {
	return find(ports, func(p *port) bool { return p.name == name })
}

// main is the output that the layer is about, nil for a call that was not made.
func (c *call) main() *port {
	if c == nil {
		return nil
	}
	return mainOutput(c.ports[label.RoleOutput])
}

// outputs pairs the first outputs whatever they are called, the others by their name only: a
// mean-pooled output is not a tanh pooler's.
func (c *callPairing) outputs(golden, actual []*port) {
	golden, actual = otherCaches(golden, actual)
	mainG, mainA := mainOutput(golden), mainOutput(actual)
	c.outputsByName(golden, actual, mainG, mainA)
	if mainG == nil || mainA == nil || mainG.used || mainA.used {
		return
	}
	if c.try(mainG, mainA, "") || c.reorderedOutputs(golden, actual, mainG, mainA) {
		return
	}
	gs, as := mainG.shape, mainA.shape
	if c.join.root && !c.generating && len(gs) == 3 && slices.Equal(as, []int{gs[0], gs[2]}) {
		mainG.why = "the candidate's output is pooled: record it unpooled"
		mainA.why = "a pooled output: the golden has hidden states here, " +
			"and how the two pool is not known to be the same"
		return
	}
	// The one output of both has another type: whether its values are right can still be told.
	if !sameKind(mainG, mainA) {
		if f, fits := c.padding.Fit(gs, as, layout.Allow{}); fits {
			c.add(mainG, []*port{mainA}, f, c.whyNot(mainG, mainA))
			return
		}
	}
	c.problem(mainG, mainA)
}

// outputsByName pairs outputs of equal names; whether the first ones belong together is not its
// question, unless they have one name.
func (c *callPairing) outputsByName(golden, actual []*port, mainG, mainA *port) {
	alike := slices.Equal(sortedNames(golden), sortedNames(actual))
	for _, g := range golden {
		switch a := named(actual, g.name); {
		case a == nil || g == mainG && a == mainA || c.try(g, a, ""):
		case alike:
			c.problem(g, a)
		case g != mainG && a != mainA:
			g.why = "the output of this name has another shape in the candidate, so it is another thing"
			a.why = "the output of this name has another shape in the golden, so it is another thing"
		}
	}
}

// otherCaches takes out the caches that hold the same tokens in another form: DeepSeek's of all heads, and the latent one
// that mlx-lm keeps.
func otherCaches(golden, actual []*port) (restG, restA []*port) {
	for _, g := range golden {
		a := named(actual, g.name)
		if !label.IsCache(g.name) || a == nil || len(g.shape) < 3 || len(a.shape) < 3 ||
			!slices.Equal(g.shape[:2], a.shape[:2]) || slices.Equal(g.shape[2:], a.shape[2:]) {
			continue
		}
		g.why = fmt.Sprintf("the reference's cache keeps %s a token and the candidate's %s, as absorbed attention does: "+
			"what later passes read of it is compared there", tensor.FormatShape(g.shape[2:]), tensor.FormatShape(a.shape[2:]))
		a.why = g.why
	}
	alike := func(p *port) bool { return p.why == "" }
	return keep(golden, alike), keep(actual, alike)
}

func sortedNames(ports []*port) []string {
	return slices.Sorted(slices.Values(collect(ports, func(p *port) string { return p.name })))
}

// reorderedOutputs pairs the first output of one side with the first positional output of the other
// whose shape fits: a tuple in another order.
func (c *callPairing) reorderedOutputs(golden, actual []*port, mainG, mainA *port) bool {
	for _, p := range slices.Concat(golden, actual) {
		g, a := p, mainA
		if p.call.node.side == c.actual {
			g, a = mainG, p
		}
		if !p.used && label.Position(p.name) >= 0 && c.try(g, a, fmt.Sprintf("candidate %s by its shape", a.name)) {
			return true
		}
	}
	return false
}
