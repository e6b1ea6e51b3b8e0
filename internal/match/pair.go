package match

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// pairing collects the pairs of one run.
type pairing struct {
	*matcher
	pairs      []Pair
	usedGolden map[int]bool
	usedActual map[int]bool
	why        [2]map[int]string // reasons found while pairing, by golden and actual port
	whyLayer   map[*node]string
	cut        map[string]bool  // golden labels of which one side has the last row only
	lastRows   map[*joined]bool // layers that may hold the last row only
}

func (m *matcher) pairPorts() *pairing {
	p := &pairing{matcher: m, usedGolden: map[int]bool{}, usedActual: map[int]bool{}, why: [2]map[int]string{{}, {}},
		whyLayer: map[*node]string{}, cut: map[string]bool{}}
	p.lastRows = m.trailing()
	p.noteJoins()
	for _, j := range m.joins {
		switch {
		case len(j.golden) > 1 || len(j.actual) > 1:
			p.pairFused(j)
		default:
			p.pairLayer(j)
		}
	}
	return p
}

// trailing finds the layers that may hold the last row only: those of a generating model behind which no joined layer has all rows.
// The whole model is one of them.
func (m *matcher) trailing() map[*joined]bool {
	out := map[*joined]bool{}
	if !m.generating {
		return out
	}
	type place struct {
		j  *joined
		at int
	}
	var places []place
	for _, j := range m.joins {
		if j.root {
			out[j] = true
			continue
		}
		if len(j.golden) > 1 || len(j.actual) > 1 || j.ports != [2]string{} {
			continue // projections inside of attention or mlp: a block comes behind them
		}
		switch {
		case !m.actual.byName:
			places = append(places, place{j, j.actual[0].last})
		case !m.golden.byName:
			places = append(places, place{j, j.golden[0].last})
		default: // no order at all: what stands outside of the numbered blocks and takes no ids
			if !slices.ContainsFunc(j.golden[0].segs, label.IsNumber) && !m.takesIDs(j.golden[0]) {
				out[j] = true
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return b.at - a.at })
	blocks := false
	for _, p := range places {
		if m.hasAllRows(p.j) {
			return out
		}
		out[p.j] = true
		blocks = blocks || slices.ContainsFunc(p.j.golden[0].segs, label.IsNumber)
	}
	if blocks { // one row from the first block on is another input, not the end of a model
		return map[*joined]bool{}
	}
	return out
}

// hasAllRows reports whether in some pass the first outputs of a layer fit with more than one row.
func (m *matcher) hasAllRows(j *joined) bool {
	for pass, ports := range j.golden[0].passes {
		g, a := m.golden.mainOutput(ports), m.actual.mainOutput(j.actual[0].passes[pass])
		if g < 0 || a < 0 {
			continue
		}
		shape := m.golden.ports[g].Shape
		if len(shape) >= 3 && shape[1] == 1 {
			continue // one token of each sequence, which is the last one
		}
		n, _ := tensor.NumElems(shape)
		if _, ok := m.fitPorts(m.golden.ports[g], m.actual.ports[a], allow{}); ok && len(shape) > 0 && n != shape[len(shape)-1] {
			return true
		}
	}
	return false
}

func (m *matcher) takesIDs(n *node) bool {
	for _, ports := range n.passes {
		for _, i := range m.golden.withRole(ports, label.RoleInput) {
			if m.golden.ports[i].DType.Kind() == tensor.KindInt {
				return true
			}
		}
	}
	return false
}

// pairLayer pairs the ports of a layer in each pass that both sides made.
func (p *pairing) pairLayer(j *joined) {
	g, a := j.golden[0], j.actual[0]
	ok := allow{lastRow: p.lastRows[j], reshape: p.opt.AllowReshape}
	for _, pass := range p.golden.sortedPasses(g) {
		if a.passes[pass] == nil {
			continue
		}
		gp, ap := p.unused(g.passes[pass], a.passes[pass])
		l := layerPairing{pairing: p, ok: ok, rule: j.rule, root: j.root, named: j.ports != [2]string{}}
		if l.named {
			l.namedPorts(p.golden.only(gp, j.ports[0]), p.actual.only(ap, j.ports[1]))
			continue
		}
		l.outputs(p.golden.withRole(gp, label.RoleOutput), p.actual.withRole(ap, label.RoleOutput))
		l.inputs(p.golden.withRole(gp, label.RoleInput), p.actual.withRole(ap, label.RoleInput))
		l.computed(p.golden.withRole(gp, label.RoleInput), p.actual.withRole(ap, label.RoleComputed))
	}
}

// unused leaves out ports that a rule has paired already.
func (p *pairing) unused(golden, actual []int) (g, a []int) {
	g = slices.DeleteFunc(slices.Clone(golden), func(i int) bool { return p.usedGolden[i] })
	return g, slices.DeleteFunc(slices.Clone(actual), func(i int) bool { return p.usedActual[i] })
}

// only keeps the port of a name.
func (s *side) only(ports []int, name string) []int {
	return slices.DeleteFunc(slices.Clone(ports), func(i int) bool { return s.ports[i].Port != name })
}

// add records a pair of two ports.
func (p *pairing) add(g, a int, l layout, note string) *Pair {
	p.usedGolden[g], p.usedActual[a] = true, true
	if l.lastRow {
		p.cut[p.golden.ports[g].Layer] = true
	}
	p.pairs = append(p.pairs, Pair{Golden: []int{g}, Actual: []int{a}, GoldenView: l.golden, ActualView: l.actual,
		Shape: l.shape, RowMask: l.rowMask, Note: join(note, l.note)})
	return &p.pairs[len(p.pairs)-1]
}

// problem records a pair that belongs together and cannot be compared.
func (p *pairing) problem(g, a int) {
	p.add(g, a, layout{}, "").Problem = p.whyNot(g, a)
}

func (p *pairing) whyNot(g, a int) string {
	gp, ap := p.golden.ports[g], p.actual.ports[a]
	if !sameKind(gp.DType, ap.DType) {
		return fmt.Sprintf("dtype %s against the golden's %s", ap.DType, gp.DType)
	}
	text := fmt.Sprintf("shape %s does not fit the golden's %s", tensor.FormatShape(ap.Shape), tensor.FormatShape(gp.Shape))
	switch {
	case sameCount(gp.Shape, ap.Shape):
		text += ": equally many elements; if only the layout differs, say so with reshape or transpose under names, or allow reshaping"
	case len(gp.Shape) == len(ap.Shape)+1 && len(ap.Shape) > 0 && slices.Equal(gp.Shape[2:], ap.Shape[1:]) && gp.Shape[0] > 1 &&
		ap.Shape[0] < gp.Shape[0]*gp.Shape[1] && !p.lay.padding():
		text += ": if the candidate has no padding rows, give the padding mask"
	}
	if _, _, last := p.lay.lastRows(gp.Shape, ap.Shape); last && gp.DType.IsFloat() {
		text += ": the last row only, which is taken for right at the end of a generating model alone; elsewhere say so with rows: last under names"
	}
	return text
}
