package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// side is one of the two runs.
type side struct {
	name     string  // "golden" or "candidate", for messages
	all      []port  // as Runs was given them
	ports    []*port // in the order of execution
	nodes    []*node
	named    map[string]*node      // by label without call
	children map[string][]*node    // by label of the parent
	ends     [2]map[string][]*node // by the ends of labels, as they are and in normal form; see called
	steps    []string
	calls    int  // the most calls of a layer
	byName   bool // the order is that of the names
	other    *side

	// What Propose reads.
	layers []*node  // of the first pass, in the order in which their first calls ended
	values []*value // of outputs and inputs, each once
	nested bool     // some layers lie inside of others
}

// node is a layer of one side: all ports of one label in all passes.
type node struct {
	side    *side
	label   string   // without call
	form    []string // the segments in normal form
	root    bool     // the label has wrapper words only
	calls   []*call  // in the order of execution
	made    map[pass]*call
	members []*node // itself, or those of a group that stands for one fused layer, as q, k and v
	last    int     // position of its last port in the side's order
	join    *joined // nil if it has no partner yet
	settled bool    // ambiguous, and reported
	why     string  // why it was not joined with what its outputs fit; "" if it was not tried

	// What Propose knows of it, by its first call.
	end    int    // its place in the order
	out    *port  // the output that it is about; nil if it has none
	value  *value // of it
	norm   float64
	in     []*value
	leaf   bool // no layer lies inside of it
	words  words
	blocks []run // numbers of blocks in the label
	pair   *node // of the other side, as far as is known
	fused  bool  // it is a part of a layer of the other side, or made of several
}

// pass is one call of a layer in one forward pass. Ports are paired within a pass.
type pass struct {
	step string
	call int
}

// at returns what was recorded of a layer in a pass, nil if it was not called.
func (n *node) at(pass pass) *call { return n.made[pass] }

// call is what was recorded of a layer in one pass.
type call struct {
	node  *node
	layer string // the label with its call
	pass  pass
	ports [roles][]*port // in the order of execution
	last  int            // position of its last port
}

// roles is the number of roles of ports.
const roles = label.RoleComputed + 1

// port is one recorded tensor.
type port struct {
	index  int   // into the ports that Runs was given
	rank   int   // its position in the side's order
	call   *call // nil if it is ignored
	name   string
	role   label.Role
	dtype  tensor.DType
	shape  []int
	tensor *tensor.Tensor
	used   bool   // it is in a pair
	why    string // why it is in none, found while pairing
}

// roleOf is the role of a port. What was saved by hand is joined as an output is.
func roleOf(port string) label.Role {
	if r := label.RoleOf(port); r != label.RoleTap {
		return r
	}
	return label.RoleOutput
}

func newSide(name string, ports []Port, skip map[Ignored]bool, byName bool) (*side, error) {
	s := &side{name: name, byName: byName, named: map[string]*node{}, children: map[string][]*node{}}
	s.all = make([]port, len(ports))
	for i, p := range ports {
		s.all[i] = port{index: i, name: p.Port, role: roleOf(p.Port), dtype: p.DType, shape: p.Shape, tensor: p.Tensor}
		s.ports = append(s.ports, &s.all[i])
	}
	slices.SortStableFunc(s.ports, func(a, b *port) int { return cmp.Compare(ports[a.index].Seq, ports[b.index].Seq) })
	seen := map[[3]string]bool{}
	for rank, p := range s.ports {
		recorded := &ports[p.index]
		if _, err := tensor.NumBytes(p.dtype, p.shape); err != nil {
			return nil, fmt.Errorf("match: %s %s: %w", name, recorded.Label(), err)
		}
		k := [3]string{recorded.Step, recorded.Layer, recorded.Port}
		if seen[k] {
			return nil, fmt.Errorf("match: %s has %s twice in step %s: keep one", name, recorded.Label(), recorded.Step)
		}
		seen[k] = true
		p.rank = rank
		s.add(p, recorded, skip[Ignored{Golden: name == "golden", Index: p.index}])
	}
	return s, nil
}

// add puts a port, the last one so far, where it belongs.
func (s *side) add(p *port, recorded *Port, ignored bool) {
	name, number := label.CutCall(recorded.Layer)
	s.calls = max(s.calls, number)
	if !slices.Contains(s.steps, recorded.Step) {
		s.steps = append(s.steps, recorded.Step)
	}
	if ignored {
		return
	}
	n := s.named[name]
	if n == nil {
		n = newNode(s, name)
		s.named[name] = n
		s.nodes = append(s.nodes, n)
		s.children[label.Parent(name)] = append(s.children[label.Parent(name)], n)
	}
	at := pass{recorded.Step, number}
	p.call = n.made[at]
	if p.call == nil {
		p.call = &call{node: n, layer: recorded.Layer, pass: at}
		n.made[at] = p.call
		n.calls = append(n.calls, p.call)
	}
	p.call.ports[p.role] = append(p.call.ports[p.role], p)
	p.call.last, n.last = p.rank, p.rank
}

func newNode(s *side, label string) *node {
	n := &node{side: s, label: label, form: normal(label), made: map[pass]*call{}}
	n.root = onlyWrappers(n.form)
	n.members = []*node{n}
	return n
}

// lastSegment is the last segment of a label in normal form.
func (n *node) lastSegment() string { return n.form[len(n.form)-1] }

// numbered reports whether a node lies in a numbered block or is one.
func (n *node) numbered() bool { return slices.ContainsFunc(n.form, label.IsNumber) }

// open returns the nodes that have no partner yet and may get one.
func open(nodes []*node) []*node { return keep(nodes, (*node).open) }

func (n *node) open() bool { return n.join == nil && !n.settled }

// foldCalls lays the calls of a run that was recorded as one step onto the steps of the other: a
// print hook that is never told of steps names the second decode step "norm(2)".
func foldCalls(one, many *side) bool {
	if len(one.steps) != 1 || len(many.steps) < 2 || many.calls > 1 || one.calls > len(many.steps) {
		return false
	}
	repeated := keep(one.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.calls, func(c *call) bool { return c.pass.call > 1 })
	})
	if 2*len(repeated) <= len(one.nodes) { // a shared layer is called more than once in one step; most are not
		return false
	}
	for _, n := range one.nodes {
		clear(n.made)
		for _, c := range n.calls {
			c.pass = pass{many.steps[c.pass.call-1], 1}
			n.made[c.pass] = c
		}
	}
	one.steps = many.steps[:one.calls]
	return true
}

// inOrder returns the nodes in the order in which their first passes ended.
func (s *side) inOrder() []*node {
	end := func(n *node) int { return slices.Min(collect(n.calls, func(c *call) int { return c.last })) }
	return slices.SortedFunc(slices.Values(s.nodes), func(a, b *node) int { return end(a) - end(b) })
}

// collect returns what a function makes of each item.
func collect[T, U any](items []T, of func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = of(item)
	}
	return out
}

// each is collect for what is nothing unless all items have it: nil if a function makes nil of one.
func each[T, U any](items []T, of func(T) *U) []*U {
	out := collect(items, of)
	if slices.Contains(out, nil) {
		return nil
	}
	return out
}

// keep returns the items for which a function holds.
func keep[T any](items []T, holds func(T) bool) []T {
	var out []T
	for _, item := range items {
		if holds(item) {
			out = append(out, item)
		}
	}
	return out
}

// find returns the first item for which a function holds, the zero value if there is none.
func find[T any](items []T, holds func(T) bool) (item T) {
	if i := slices.IndexFunc(items, holds); i >= 0 {
		item = items[i]
	}
	return item
}

// without returns the items but one.
func without[T comparable](items []T, one T) []T {
	return keep(items, func(o T) bool { return o != one })
}
