package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// pairPorts pairs the ports of the joined layers in each pass that both sides made.
func (m *matcher) pairPorts() {
	m.noteJoins()
	m.markTrailing()
	for _, j := range m.joins {
		for _, first := range j.golden[0].calls {
			golden, actual, c := callsIn(j.golden, first.pass), callsIn(j.actual, first.pass), m.pairing(j)
			switch {
			case golden == nil || actual == nil:
			case len(golden) > 1:
				c.splitActual(golden, actual[0])
			case len(actual) > 1:
				c.joinActual(golden[0], actual)
			case j.ofPorts():
				c.rulePorts(golden[0], actual[0])
			default:
				c.layer(golden[0], actual[0])
			}
		}
	}
}

// markTrailing marks the layers that may hold the last row only: those of a generating model after
// which no joined layer has all rows. The whole model is one of them.
func (m *matcher) markTrailing() {
	if !m.generating {
		return
	}
	unordered := m.actual.byName && m.golden.byName // no order at all, so names must tell
	layers := keep(m.joins, func(j *joined) bool {
		return !j.root && !j.fused() && !j.ofPorts() // fused: inside of attention or mlp, a block comes after them
	})
	end := func(j *joined) int { return j.actual[0].last }
	if m.actual.byName {
		end = func(j *joined) int { return j.golden[0].last }
	}
	slices.SortFunc(layers, func(a, b *joined) int { return end(b) - end(a) })
	inBlock := func(j *joined) bool { return j.golden[0].numbered() }
	if unordered {
		layers = keep(layers, func(j *joined) bool { return !inBlock(j) && !takesIDs(j.golden[0]) })
	} else if all := slices.IndexFunc(layers, m.hasAllRows); all >= 0 {
		layers = layers[:all]
	} else if slices.ContainsFunc(layers, inBlock) {
		return // one row from the first block on is another input, not the end of a model
	}
	for _, j := range slices.Concat(layers, keep(m.joins, func(j *joined) bool { return j.root })) {
		j.lastRow = true
	}
}

// hasAllRows reports whether in some pass the first outputs of a layer fit with more than one row.
func (m *matcher) hasAllRows(j *joined) bool {
	return slices.ContainsFunc(j.golden[0].calls, func(c *call) bool {
		g, a := c.main(), j.actual[0].at(c.pass).main()
		if g == nil || a == nil || len(g.shape) == 0 || len(g.shape) >= 3 && g.shape[1] == 1 {
			return false // one token of each sequence is the last one
		}
		if lengths := m.opt.Lengths[c.pass.step]; lengths != nil && slices.Max(lengths) == 1 {
			return false
		}
		n, _ := tensor.NumElems(g.shape)
		_, ok := m.fitPorts(g, a, allowance{})
		return ok && n != g.shape[len(g.shape)-1]
	})
}

func takesIDs(n *node) bool {
	isInt := func(p *port) bool { return p.dtype.Kind() == tensor.KindInt }
	return slices.ContainsFunc(n.calls, func(c *call) bool {
		return slices.ContainsFunc(c.ports[label.RoleInput], isInt)
	})
}

// callPairing pairs the ports of a joined layer in one pass.
type callPairing struct {
	*matcher
	join                   *joined
	input                  map[string]*port // the candidate's input port → its golden port
	openGolden, openActual []*port          // inputs that have no partner yet
}

func (m *matcher) pairing(j *joined) *callPairing {
	return &callPairing{matcher: m, join: j, input: map[string]*port{}}
}

// layer pairs the ports of a layer.
func (c *callPairing) layer(g, a *call) {
	c.outputs(g.unused(label.RoleOutput), a.unused(label.RoleOutput))
	inputs := g.unused(label.RoleInput)
	c.inputs(inputs, a.unused(label.RoleInput))
	c.computed(inputs, a.unused(label.RoleComputed))
}

func unused(p *port) bool { return !p.used }

// unused returns the ports of a role, without those that a rule has paired already.
func (c *call) unused(r label.Role) []*port { return keep(c.ports[r], unused) }

// rulePorts pairs the one port on each side that a rule names.
func (c *callPairing) rulePorts(golden, actual *call) {
	of := func(c *call, name string) *port { return named(c.unused(roleOf(name)), name) }
	g, a := of(golden, c.join.ports[0]), of(actual, c.join.ports[1])
	if g != nil && a != nil && !c.try(g, a, "by a rule") {
		c.problem(g, a)
	}
}

// try pairs two ports if they fit.
func (c *callPairing) try(g, a *port, note string) bool {
	f, fits := c.fit(g, a)
	if fits {
		c.add(g, []*port{a}, f, note)
	}
	return fits
}

// fit finds the layout of two ports, a rule's before all others.
func (c *callPairing) fit(g, a *port) (placement, bool) {
	rule := c.join.rule
	ruled := rule != nil && rule.lays()
	if !ruled || g.role != label.RoleOutput && !c.join.ofPorts() {
		f, fits := c.fitPorts(g, a, allowance{LastRow: c.join.lastRow, Reshape: c.opt.AllowReshape,
			Ones: g.isMask() && a.isMask()})
		if fits || !ruled {
			return f, fits
		}
	}
	return rule.layout(g, a, c.padding)
}

// fitPorts finds the layout of two ports whose dtypes are of one kind.
func (m *matcher) fitPorts(g, a *port, ok allowance) (placement, bool) {
	if !sameKind(g, a) {
		return placement{}, false
	}
	ok.IDs = g.dtype.Kind() == tensor.KindInt && !g.isMask()
	if g.call != nil {
		ok.Lengths = m.opt.Lengths[g.call.pass.step]
	}
	return m.padding.Fit(g.shape, a.shape, ok)
}

// sameKind reports whether two ports can hold the same thing: any two floats, integers of any
// width, bools. Unsigned inputs are the same as signed ones only in the same shape: engines that
// know no batch axis have offsets of rows of the size of ids.
func sameKind(a, b *port) bool {
	return a.dtype.Kind() == b.dtype.Kind() &&
		(a.dtype.Kind() != tensor.KindInt || a.dtype.Signed() == b.dtype.Signed() || a.role == label.RoleOutput ||
			len(a.shape) > 1 && slices.Equal(a.shape, b.shape))
}

// add records a pair of a golden port and one of the candidate, or several that a view joins.
func (m *matcher) add(g *port, actual []*port, f placement, note string) *Pair {
	pair := Pair{Golden: []int{g.index}, GoldenView: f.Golden, ActualView: f.Actual, Shape: f.Shape, RowMask: f.RowMask,
		Note: join(note, f.Note)}
	g.used = true
	for _, a := range actual {
		a.used = true
		pair.Actual = append(pair.Actual, a.index)
	}
	if f.LastRow {
		m.lastRows[g.call.layer] = true
	}
	m.Pairs = append(m.Pairs, pair)
	return &m.Pairs[len(m.Pairs)-1]
}

// problem records a pair that belongs together and cannot be compared.
func (m *matcher) problem(g, a *port) {
	m.add(g, []*port{a}, placement{}, "").Problem = m.whyNot(g, a)
}

func (m *matcher) whyNot(g, a *port) string {
	if !sameKind(g, a) {
		return fmt.Sprintf("dtype %s against the golden's %s", a.dtype, g.dtype)
	}
	text := fmt.Sprintf("shape %s does not fit the golden's %s", tensor.FormatShape(a.shape), tensor.FormatShape(g.shape))
	if sameCount(g.shape, a.shape) || len(g.shape) == len(a.shape)+1 {
		text += ": if only the layout differs, say so under names (reshape, transpose, rows: last); " +
			"if the candidate has no padding rows, give the padding mask"
	}
	return text
}

// join joins two notes.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

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
	golden, actual = c.crossedOutputs(golden, actual)
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
		if f, fits := c.padding.Fit(gs, as, allowance{}); fits {
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

// otherCaches takes out the caches that hold the same tokens in another form: DeepSeek's of all
// heads, and the latent one that mlx-lm keeps.
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

// crossedOutputs pairs the elements of a tuple that are integers in one run and floats in the other with those for which it is
// the other way round, where these fit: shares and indices, or indices and shares. It returns the other outputs.
func (c *callPairing) crossedOutputs(golden, actual []*port) (restG, restA []*port) {
	crossed := func(p *port, others []*port) bool {
		o := named(others, p.name)
		return o != nil && label.Position(p.name) >= 0 && !sameKind(p, o)
	}
	for _, g := range golden {
		for _, a := range actual {
			if g.name != a.name && !g.used && !a.used && crossed(g, actual) && crossed(a, golden) &&
				c.try(g, a, fmt.Sprintf("candidate %s by its dtype", a.name)) {
				break
			}
		}
	}
	return keep(golden, unused), keep(actual, unused)
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
