package localise

import (
	"cmp"
	"slices"
	"sort"

	"github.com/goparity/goparity/internal/label"
)

// tree knows which layers were recorded and what ran inside what. A layer that is called several
// times is one container for each call.
type tree struct {
	calls map[string][]call // by name, in the order of the calls
	end   map[string]int    // execution index of the last record of a layer
	start map[string]int    // of the first record of a layer or of anything inside it
}

// call is one call of a layer.
type call struct {
	layer string
	done  int // execution index at which it and all calls before it had ended
}

func newTree(entries []Entry, indices []int) tree {
	t := tree{calls: map[string][]call{}, end: map[string]int{}, start: map[string]int{}}
	for _, i := range indices {
		t.end[entries[i].Layer] = entries[i].Seq // the last one stays
	}
	for layer, end := range t.end {
		name := label.Name(layer)
		t.calls[name] = append(t.calls[name], call{layer, end})
	}
	for _, calls := range t.calls {
		slices.SortFunc(calls, func(a, b call) int {
			_, x := label.CutCall(a.layer)
			_, y := label.CutCall(b.layer)
			return cmp.Compare(x, y)
		})
		for i := range calls[1:] {
			calls[i+1].done = max(calls[i+1].done, calls[i].done)
		}
	}
	for _, i := range indices {
		e := &entries[i]
		for l := e.Layer; l != ""; l = t.parent(l) {
			if _, ok := t.start[l]; !ok {
				t.start[l] = e.Seq
			}
		}
	}
	return t
}

// parent returns the layer around a layer, whether it was recorded or not: of its calls the one in
// which the layer ran.
func (t *tree) parent(layer string) string {
	up := label.Parent(layer)
	return t.callOf(layer, label.Name(up), up)
}

// callOf returns the call of a container in which a layer ran: the one of the same number if both
// were called equally often, else the first one that ended after the layer. other is returned for a
// container that was not recorded.
func (t *tree) callOf(layer, container, other string) string {
	calls := t.calls[container]
	switch len(calls) {
	case 0:
		return other
	case 1:
		return calls[0].layer
	}
	name, number := label.CutCall(layer)
	if len(t.calls[name]) == len(calls) && number <= len(calls) {
		return calls[number-1].layer
	}
	end := t.end[layer]
	i := sort.Search(len(calls)-1, func(i int) bool { return calls[i].done >= end })
	return calls[i].layer
}

// Start returns the execution index at which the first thing inside a recorded layer was recorded:
// containers are recorded after what is inside them, but get their inputs before.
func (t *tree) Start(layer string) int { return t.start[layer] }

// Container returns the innermost recorded layer around a layer; where none was recorded its parent
// by name, and for a root the layer itself.
func (t *tree) Container(layer string) string {
	for up := label.Parent(label.Name(layer)); up != ""; up = label.Parent(up) {
		if c := t.callOf(layer, up, ""); c != "" {
			return c
		}
	}
	return cmp.Or(label.Parent(layer), layer)
}

// Around lists what lies around a layer, the innermost first: of a recorded container the call in
// which the layer ran, of another one its name without a call.
func (t *tree) Around(layer string) (out []string) {
	for up := label.Parent(label.Name(layer)); up != ""; up = label.Parent(up) {
		out = append(out, t.callOf(layer, up, up))
	}
	return out
}

// Inside reports whether a layer ran inside another one. Of a container that was called several
// times only the call counts in which it ran.
func (t *tree) Inside(layer, outer string) bool {
	return label.Inside(layer, outer) && t.callOf(layer, label.Name(outer), outer) == outer
}
