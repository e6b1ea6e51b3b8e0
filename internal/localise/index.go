package localise

import (
	"math"
	"math/bits"
	"sort"
)

// ports is what the inputs of a layer, or its outputs, are together.
type ports struct {
	joined, wrong int     // wrong: those that differ
	numbers       int     // joined ones that are no integers
	error, whole  float64 // the largest of those
	floats        int     // whether joined or not
	float         *event  // the first of those
}

// index answers, without going through all events again, what is asked of each event that differs.
type index struct {
	inputs, outputs map[string]*ports // by layer
	wrong           map[int]int       // by Same: how many of the events that hold these bytes differ
	asked           struct {          // inputs of roots
		any, joined bool
		missing     map[int]bool // by Same, those that the candidate lacks
	}
	earliest struct { // events that are joined and no integers
		output int
		input  int
		other  int // the first input of another layer than input's
	}
	copies map[int][]later   // by Same, once later was called
	scopes map[string]*scope // once scope was called
}

func newIndex(p *pass) index {
	x := index{inputs: map[string]*ports{}, outputs: map[string]*ports{}, wrong: map[int]int{}, copies: map[int][]later{}}
	x.asked.missing = map[int]bool{}
	x.earliest.output, x.earliest.input, x.earliest.other = len(p.events), len(p.events), len(p.events)
	for i := range p.events {
		e := &p.events[i]
		of := x.of(e)
		if of == nil {
			of = &ports{}
			x.side(e)[e.Layer] = of
		}
		of.add(e)
		if e.differs() && e.Same > 0 {
			x.wrong[e.Same]++
		}
		switch {
		case !e.Joined || e.Integer:
		case !e.Input:
			x.earliest.output = min(x.earliest.output, i)
		case x.earliest.input == len(p.events):
			x.earliest.input = i
		case e.Layer != p.events[x.earliest.input].Layer:
			x.earliest.other = min(x.earliest.other, i)
		}
	}
	for _, i := range p.Asked() {
		e := &p.events[i]
		x.asked.any, x.asked.joined = true, x.asked.joined || e.Joined
		if e.Same > 0 && !e.Joined {
			x.asked.missing[e.Same] = true
		}
	}
	return x
}

func (s *ports) add(e *event) {
	if !e.Integer {
		if s.floats++; s.floats == 1 {
			s.float = e
		}
	}
	if !e.Joined {
		return
	}
	s.joined++
	if !e.Agrees {
		s.wrong++
	}
	if !e.Integer {
		s.numbers++
		s.error, s.whole = max(s.error, e.Error), max(s.whole, e.Whole)
	}
}

func (x *index) side(e *event) map[string]*ports {
	if e.Input {
		return x.inputs
	}
	return x.outputs
}

func (x *index) of(e *event) *ports { return x.side(e)[e.Layer] }

// excuse makes an event that differs one that agrees: it is noise.
func (x *index) excuse(e *event) {
	e.Agrees = true
	x.of(e).wrong--
	if e.Same > 0 {
		x.wrong[e.Same]--
	}
}

// inputsOf returns what the inputs of a layer are together; of a layer without inputs, nothing.
func (x *index) inputsOf(layer string) ports { return known(x.inputs[layer]) }

// outputsOf is inputsOf for outputs.
func (x *index) outputsOf(layer string) ports { return known(x.outputs[layer]) }

func known(s *ports) ports {
	if s == nil {
		return ports{}
	}
	return *s
}

// later is what the joined events behind one are that hold the same bytes.
type later struct {
	worst float64 // the largest error; +Inf if one differs
	used  *event  // the first input, or else the first output; nil if there is none
}

// later looks at the copies behind event i. It holds as long as none behind i was excused.
func (p *pass) later(i int) later {
	copies := p.Copies(i)
	if copies == nil {
		return later{}
	}
	same := p.events[i].Same
	if p.copies[same] == nil {
		all := make([]later, len(copies))
		for k := len(copies) - 2; k >= 0; k-- {
			all[k] = all[k+1]
			o := &p.events[copies[k+1]]
			if !o.Joined {
				continue
			}
			if all[k].worst = max(all[k].worst, o.Error); !o.Agrees {
				all[k].worst = math.Inf(1)
			}
			if all[k].used == nil || o.Input || !all[k].used.Input {
				all[k].used = o
			}
		}
		p.copies[same] = all
	}
	return p.copies[same][sort.SearchInts(copies, i)]
}

// scope is what existed inside a container, its own inputs among it: joined events that are no
// integers.
type scope struct {
	events []int       // in order
	most   [][]float64 // most[k][n]: the largest error of 2^k events from the n-th
}

// before returns the largest error of what existed in a layer before event i, and whether there was
// anything.
func (p *pass) before(layer string, i int) (most float64, ok bool) {
	if p.scopes == nil {
		p.scopes = p.allScopes()
	}
	s := p.scopes[p.Listed(layer)]
	if s == nil {
		return 0, false
	}
	from := sort.SearchInts(s.events, p.Since(p.Start(layer)))
	to := sort.SearchInts(s.events, i)
	if from >= to {
		return 0, false
	}
	k := bits.Len(uint(to-from)) - 1
	return max(s.most[k][from], s.most[k][to-1<<k]), true
}

func (p *pass) allScopes() map[string]*scope {
	all := map[string]*scope{}
	for j := range p.events {
		e := &p.events[j]
		if !e.Joined || e.Integer {
			continue
		}
		in := p.Around(e.Layer)
		if e.Input {
			in = append(in, e.Layer)
		}
		for _, l := range in {
			s := all[l]
			if s == nil {
				s = &scope{most: [][]float64{nil}}
				all[l] = s
			}
			s.events, s.most[0] = append(s.events, j), append(s.most[0], e.Error)
		}
	}
	for _, s := range all {
		for half := 1; 2*half <= len(s.events); half *= 2 {
			below := s.most[len(s.most)-1]
			level := make([]float64, len(s.events)-2*half+1)
			for n := range level {
				level[n] = max(below[n], below[n+half])
			}
			s.most = append(s.most, level)
		}
	}
	return all
}
