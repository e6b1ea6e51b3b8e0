package names

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// Port is one recorded tensor of a run.
type Port struct {
	match.Port
	Tensor *tensor.Tensor
}

// side is one of the two runs.
type side struct {
	layers  []*layer // in the order in which their first calls ended
	named   map[string]*layer
	values  []*value // of outputs and inputs, each once
	ordered bool     // the order is that of execution
	nested  bool     // some layers lie inside of others
	numbers numbers
}

// layer is what is known of a layer by its first call.
type layer struct {
	name  string // without call
	end   int    // its place in the order
	out   *Port  // the first output; nil if it has none
	value *value // of it
	in    []*value
	leaf  bool // no layer lies inside of it
	idle  bool // see doesNothing
	words words
	runs  []run // numbers of blocks in the name

	pair  *layer // of the other side, as far as is known
	fused bool   // it is a part of a layer of the other side, or made of several
}

// free reports whether a layer has no partner.
func (l *layer) free() bool { return l.pair == nil && !l.fused }

// newSide reads the samples of the first call of each layer.
func newSide(ports []Port, byName bool, real [][]bool) *side {
	s := &side{named: map[string]*layer{}, ordered: !byName}
	sorted := slices.Clone(ports)
	slices.SortStableFunc(sorted, func(a, b Port) int { return cmp.Compare(a.Seq, b.Seq) })
	known := map[float64][]*value{} // by norm
	for i := range sorted {
		p := &sorted[i]
		name, call := label.CutCall(p.Layer)
		if call > 1 || p.Step != sorted[0].Step || label.RoleOf(p.Port.Port) == label.RoleComputed {
			continue
		}
		l := s.named[name]
		if l == nil {
			l = &layer{name: name, leaf: true}
			s.named[name] = l
			s.layers = append(s.layers, l)
		}
		l.end = i
		first := !label.IsInput(p.Port.Port) && l.out == nil
		if first {
			l.out = p
		} else if !label.IsInput(p.Port.Port) {
			continue
		}
		v := sampleOf(p.Tensor, real)
		if v != nil {
			v = s.once(known, v)
		}
		if first {
			l.value = v
			if v != nil {
				v.from = append(v.from, l)
			}
		} else if v != nil {
			l.in = append(l.in, v)
		}
	}
	slices.SortStableFunc(s.layers, func(a, b *layer) int { return cmp.Compare(a.end, b.end) })
	s.numbers = numbersOf(s.layers)
	s.nest()
	for _, l := range s.layers {
		l.runs = s.numbers.of(l.name)
		l.words = wordsOf(l.name, l.runs)
		l.idle = l.doesNothing()
	}
	return s
}

// once returns the value of the run that is equal to v, or v if it is new.
func (s *side) once(known map[float64][]*value, v *value) *value {
	for _, k := range known[v.norm] {
		if k.same(v) {
			return k
		}
	}
	known[v.norm] = append(known[v.norm], v)
	s.values = append(s.values, v)
	return v
}

// nest finds the layers inside of which others lie, at a dot or, in flat names, at an underscore.
func (s *side) nest() {
	for _, l := range s.layers {
		for outer := l.name; outer != ""; {
			cut := strings.LastIndexAny(outer, "._/")
			if cut <= 0 {
				break
			}
			outer = outer[:cut]
			if o := s.named[outer]; o != nil {
				o.leaf, s.nested = false, true
			}
		}
	}
}

// doesNothing reports whether a layer does nothing in inference: it returns what it was given, or its
// name says so.
func (l *layer) doesNothing() bool {
	if l.leaf && l.value != nil && slices.Contains(l.in, l.value) {
		return true
	}
	last := module.Fold(strings.TrimRight(label.Last(l.name), "0123456789"))
	return strings.Contains(last, "drop") || last == "identity" || last == "flatten"
}

// numbered reports whether a layer lies in a numbered block.
func (l *layer) numbered() bool { return len(l.runs) > 0 }

// holders lists the layers without partner by their value.
func (s *side) holders() map[*value][]*layer {
	out := map[*value][]*layer{}
	for _, l := range s.layers {
		if l.value != nil && l.free() {
			out[l.value] = append(out[l.value], l)
		}
	}
	return out
}

// matching lists the layers for whose names a pattern may stand.
func (s *side) matching(pattern string) []*layer {
	if strings.Contains(pattern, "*") {
		return s.layers
	}
	if l := s.named[pattern]; l != nil {
		return []*layer{l}
	}
	return nil
}

// consumers lists the layers by the values that they were given.
func (s *side) consumers() map[*value][]*layer {
	out := map[*value][]*layer{}
	for _, l := range s.layers {
		for _, v := range l.in {
			out[v] = append(out[v], l)
		}
	}
	return out
}
