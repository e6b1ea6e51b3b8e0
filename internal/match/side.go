package match

import (
	"fmt"
	"slices"
	"sort"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// pass is one call of the layers in one forward pass. Ports are paired within a pass.
type pass struct {
	step string
	call int
}

// node is a layer of one side: all ports of one label in all passes.
type node struct {
	label   string // without call count
	segs    []string
	loose   []string
	passes  map[pass][]int // port indices in execution order
	members []*node        // of a group that stands for one fused layer, as q, k and v
	last    int            // position of its last port in the side's order
}

// side is one of the two runs.
type side struct {
	name   string // "golden" or "candidate", for messages
	ports  []Port
	order  []int // port indices by Seq
	rank   []int // the reverse: position of a port in order
	nodes  []*node
	named  map[string]*node // by label without call count
	nodeOf []*node          // by port index; nil if ignored
	passOf []pass
	steps  []string
	byName bool
}

func newSide(name string, ports []Port, skip map[int]bool, byName bool) (*side, error) {
	s := &side{name: name, ports: ports, byName: byName, named: map[string]*node{}, nodeOf: make([]*node, len(ports)), rank: make([]int,
		len(ports)), passOf: make([]pass, len(ports))}
	s.order = make([]int, len(ports))
	for i := range ports {
		s.order[i] = i
	}
	sort.SliceStable(s.order, func(i, j int) bool { return ports[s.order[i]].Seq < ports[s.order[j]].Seq })
	seen := map[[3]string]bool{}
	for at, i := range s.order {
		p := ports[i]
		s.rank[i] = at
		if _, err := tensor.NumBytes(p.DType, p.Shape); err != nil {
			return nil, fmt.Errorf("match: %s %s: %w", name, p.Label(), err)
		}
		k := [3]string{p.Step, p.Layer, p.Port}
		if seen[k] {
			return nil, fmt.Errorf("match: %s has %s twice in step %s: keep one", name, p.Label(), p.Step)
		}
		seen[k] = true
		base, call := label.CutCall(p.Layer)
		s.passOf[i] = pass{p.Step, call}
		if !slices.Contains(s.steps, p.Step) {
			s.steps = append(s.steps, p.Step)
		}
		if skip[i] {
			continue
		}
		n := s.named[base]
		if n == nil {
			n = newNode(base)
			s.named[base] = n
			s.nodes = append(s.nodes, n)
		}
		n.passes[s.passOf[i]] = append(n.passes[s.passOf[i]], i)
		n.last = at
		s.nodeOf[i] = n
	}
	return s, nil
}

func newNode(label string) *node {
	segs := normal(label)
	return &node{label: label, segs: segs, loose: loose(segs), passes: map[pass][]int{}}
}

// all is the members of a group, or the node itself.
func (n *node) all() []*node {
	if n.members != nil {
		return n.members
	}
	return []*node{n}
}

// foldCalls lays the calls of a run that was recorded as one step onto the steps of the other: a print hook that is never told of
// steps names the second decode step "norm(2)".
func foldCalls(one, many *side) bool {
	if len(one.steps) != 1 || len(many.steps) < 2 {
		return false
	}
	calls, repeated := 1, 0
	for _, n := range one.nodes {
		most := 1
		for p := range n.passes {
			most = max(most, p.call)
		}
		if calls = max(calls, most); most > 1 {
			repeated++
		}
	}
	if 2*repeated <= len(one.nodes) {
		return false // a shared layer is called more than once in one step; all layers are not
	}
	if calls > len(many.steps) || slices.ContainsFunc(many.passOf, func(p pass) bool { return p.call > 1 }) {
		return false
	}
	to := func(p pass) pass { return pass{many.steps[p.call-1], 1} }
	for i, n := range one.nodeOf {
		if n != nil {
			one.passOf[i] = to(one.passOf[i])
		}
	}
	for _, n := range one.nodes {
		folded := map[pass][]int{}
		for p, ports := range n.passes {
			folded[to(p)] = ports
		}
		n.passes = folded
	}
	one.steps = many.steps[:calls]
	return true
}

// sortedPasses lists the passes of a node by their first port.
func (s *side) sortedPasses(n *node) []pass {
	list := make([]pass, 0, len(n.passes))
	for p := range n.passes {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b pass) int { return s.rank[n.passes[a][0]] - s.rank[n.passes[b][0]] })
	return list
}

func (s *side) labels() []string {
	out := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = n.label
	}
	return out
}
