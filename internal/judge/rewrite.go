package judge

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/trace"
)

// excuseRewrites finds outputs that differ because the candidate writes the same function in another
// way: 1/√d folded into q, a norm's weight folded into the next product, channels or experts in
// another order. Four things must hold, and then it is a note and not a failure:
//
//   - Something that both sides recorded behind them agrees: the end of a stretch of the model, in
//     which they lie.
//   - Everything that differs in that stretch is a known map of the golden (structure.Rewritten),
//     the same one in all forward passes. What is wrong by itself, and recorded wrongly, is none.
//   - More than one tensor shows it, as a model does that is written in another way: a single one that
//     was changed is a fault of the recording. A factor that attention or an embedding has needs no
//     second one.
//   - That holds in every forward pass in which they differ: a factor of q does no harm to the only
//     token of the first one.
func (c *Comparison) excuseRewrites() {
	type member struct {
		port    *Port
		stretch *stretch
	}
	members := map[output][]member{}
	for _, flow := range c.flow().Passes {
		s := &stretches{c: c, flow: flow}
		for at := range flow.Events {
			p := c.Ports[flow.Events[at].Index]
			if !p.differs() {
				continue
			}
			key := output{p.Layer, p.Port}
			members[key] = append(members[key], member{p, s.around(at)})
		}
	}
	found, wrong := map[output]structure.Map{}, map[output]bool{}
	for key, all := range members {
		var ports []*Port
		for _, m := range all {
			ports = append(ports, m.port)
			wrong[key] = wrong[key] || m.stretch == nil
		}
		if !wrong[key] {
			found[key] = rewritten(ports)
		}
	}
	// A stretch is as good as what differs in it, and an output as the stretches in which it lies.
	for again := true; again; {
		again = false
		for key, all := range members {
			if wrong[key] {
				continue
			}
			bad := slices.ContainsFunc(all, func(m member) bool {
				return slices.ContainsFunc(m.stretch.differ, func(o output) bool { return wrong[o] })
			})
			bad = bad || found[key].Kind == structure.MapNone || !c.witnessed(key, all[0].port, found, wrong, func(o output) *Port { return members[o][0].port })
			wrong[key], again = bad, again || bad
		}
	}
	for key, m := range found {
		for _, in := range members[key] {
			if !wrong[key] {
				in.port.Agrees, in.port.Rewrite = true, m.Text
			}
		}
	}
}

// output is one port in all forward passes.
type output struct{ layer, port string }

// differs reports whether both sides have the port and it does not agree.
func (p *Port) differs() bool { return p.misfit() || p.comparable() && !p.Agrees }

// apart reports whether a port differs by more than roundings of 16 bits may add up to.
func (p *Port) apart() bool {
	return p.differs() && !(rounds(p.DType) && p.comparable() && p.Base.Result.Agrees(compare.Drift(p.DType)))
}

// rewritten returns the map that makes of a port's goldens what the candidate has.
func rewritten(ports []*Port) structure.Map {
	var pairs []structure.Pair
	floor := ports[0].Floor
	for _, p := range ports {
		if p.misfit() || p.printed != nil {
			return structure.Map{}
		}
		pairs = append(pairs, structure.Pair{Golden: p.Golden, Actual: p.Actual})
		floor = floor.Max(p.Floor)
	}
	return structure.Rewritten(pairs, floor)
}

// witnessed reports whether the map of an output is one that a model may have: the output is not
// that of a whole block, which all that follows is made of, and another tensor has such a map, too. A
// norm without its weight is seen in what it gives the next layer.
func (c *Comparison) witnessed(key output, p *Port, found map[output]structure.Map, wrong map[output]bool,
	port func(output) *Port) bool {
	m := found[key]
	last := label.Last(key.layer)
	if label.IsRoot(key.layer) || strings.Trim(last, "0123456789") == "" && !strings.Contains(label.Parent(key.layer), "expert") {
		return false
	}
	if m.Kind == structure.MapInterleaved || m.Kind == structure.MapFactor && c.usual(m.Factor, p) {
		return true
	}
	for other, o := range found {
		if other == key || wrong[other] || o.Kind != m.Kind && (o.Kind != structure.MapNames || m.Kind != structure.MapOrder) {
			continue
		}
		copied := equalBytes(p.Golden, port(other).Golden) // what the next layer was given
		near := func(x float64) bool { return math.Abs(x-1) <= 2*p.floor().RelL2 }
		switch {
		case copied:
			if m.Kind == structure.MapColumns && (module.IsNorm(key.layer) || module.IsNorm(other.layer)) {
				return true
			}
		case m.Kind != structure.MapFactor, near(m.Factor / o.Factor), near(m.Factor * o.Factor):
			return true
		}
	}
	return false
}

// usual reports whether a factor, or its inverse, is one that models have: the square or fourth root
// of the width of a head or of the whole, log₂e with or without it, or a number of the config.
func (c *Comparison) usual(by float64, p *Port) bool {
	if by < 0 {
		return false
	}
	var known []float64
	for d := 8; d <= p.Golden.RowLen(); d++ {
		if p.Golden.RowLen()%d == 0 {
			root := math.Sqrt(float64(d))
			known = append(known, root, math.Sqrt(root), root*math.Ln2, math.Log2E)
		}
	}
	if c.search.Evidence != nil {
		if _, config, err := c.search.Evidence(); err == nil {
			known = append(known, config.Multipliers()...)
		}
	}
	return slices.ContainsFunc(known, func(x float64) bool {
		near := func(x float64) bool { return math.Abs(x-1) <= 2*p.floor().RelL2 }
		return near(by/x) || near(by*x)
	})
}

// stretches cuts one forward pass into stretches that end with something that agrees.
type stretches struct {
	c    *Comparison
	flow *trace.Pass
	of   map[string]*stretch // by layer, as trace.Pass.Listed has it; "" is the whole pass
}

// stretch is what both sides recorded of a layer and inside of it, but for what it was given.
type stretch struct {
	events  []int    // outputs, in the order in which they existed
	last    int      // the last event that differs, −1 if none does
	differ  []output // apart from the golden
	settled *bool
}

// around returns the smallest stretch in which an event that differs is followed by something that
// is made of it and agrees; nil if there is none.
func (s *stretches) around(at int) *stretch {
	if s.of == nil {
		s.index()
	}
	layer := s.flow.Events[at].Layer
	levels := s.flow.Around(layer)
	if !s.flow.Events[at].Input {
		levels = append([]string{s.flow.Listed(layer)}, levels...)
	}
	for _, l := range append(levels, "") {
		if st := s.of[l]; st != nil && st.last >= at && s.settles(l, st) {
			return st
		}
	}
	return nil
}

func (s *stretches) index() {
	s.of = map[string]*stretch{}
	for at := range s.flow.Events {
		e := &s.flow.Events[at]
		p := s.c.Ports[e.Index]
		if !p.Joined() && !p.misfit() {
			continue
		}
		levels := append(s.flow.Around(e.Layer), "")
		if !e.Input {
			levels = append(levels, s.flow.Listed(e.Layer))
		}
		for _, l := range levels {
			st := s.of[l]
			if st == nil {
				st = &stretch{last: -1}
				s.of[l] = st
			}
			if !e.Input {
				st.events = append(st.events, at)
			}
			if p.differs() {
				st.last = at
			}
			if p.apart() {
				st.differ = append(st.differ, output{p.Layer, p.Port})
			}
		}
	}
}

// settles reports whether a stretch ends with something that agrees and was made of the last thing
// that differs in it: the layer's own output, that of the layer that was given it, or of one that was
// given something else than that one's maker.
func (s *stretches) settles(layer string, st *stretch) bool {
	if st.settled == nil {
		last := &s.flow.Events[st.last]
		i, _ := slices.BinarySearch(st.events, st.last+1)
		ok := slices.ContainsFunc(st.events[i:], func(at int) bool {
			e := &s.flow.Events[at]
			if e.Layer == last.Layer && !last.Input {
				return false // another output of the same call
			}
			return (e.Layer == layer || e.Layer == last.Layer || !s.beside(last.Layer, e.Layer)) && !s.carries(last, e)
		})
		st.settled = &ok
	}
	return *st.settled
}

// beside reports whether two layers were given the same: the one's output is not made of the
// other's.
func (s *stretches) beside(layer, other string) bool {
	if module.QKV(layer) != 0 && module.QKV(other) != 0 {
		return true
	}
	given := map[int]bool{}
	for _, i := range s.flow.Ports(layer) {
		if e := &s.flow.Events[i]; e.Input && e.Same > 0 {
			given[e.Same] = true
		}
	}
	return slices.ContainsFunc(s.flow.Ports(other), func(i int) bool {
		e := &s.flow.Events[i]
		return e.Input && given[e.Same]
	})
}

// carries reports whether an output that agrees has the error of one before it as a part, as a sum
// has: then it only hides it.
func (s *stretches) carries(of, output *trace.Event) bool {
	x, y := s.c.Ports[of.Index], s.c.Ports[output.Index]
	if of.Input || x.misfit() || x.Golden.Len() != y.Golden.Len() || !x.Golden.DType().IsFloat() || !y.Golden.DType().IsFloat() {
		return false
	}
	dx, dy := x.errors(), y.errors()
	var both, own float64
	for i, d := range dx {
		both += d * dy[i]
		own += d * d
	}
	return both > carried*own
}

// errors are the candidate's numbers minus the golden's, of the first rows.
func (p *Port) errors() []float64 {
	n := min(p.Golden.Len(), carriedElements)
	g, a := make([]float64, n), make([]float64, n)
	p.Golden.Float64s(g, 0)
	p.Actual.Float64s(a, 0)
	for i := range g {
		a[i] -= g[i]
	}
	return a
}
