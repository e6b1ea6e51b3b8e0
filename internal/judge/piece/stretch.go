package piece

import (
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/program"
)

// stretches finds the other ways to write the same among what is wrong, and leaves the faults.
func (j *judge) stretches() (*Result, error) {
	r := &Result{Local: j.local, Precision: j.precise, judge: j}
	defer clear(j.memo)
	var faults []int
	done := map[int]bool{}
	for _, t := range j.order {
		if !j.local[t].Wrong || done[t] {
			continue
		}
		if l := j.look(t, j.excluding); !l.Wrong && !l.Unjudged { // it was wrong by a source that is written otherwise only
			j.local[t] = l
			continue
		}
		s := j.stretch(t)
		if err := j.ctx.Err(); err != nil {
			return nil, err
		}
		if s == nil {
			faults = append(faults, t)
			continue
		}
		maps.Copy(j.excluding, s.out)
		ports := slices.Sorted(maps.Keys(s.ports))
		for _, p := range ports {
			done[p] = true
		}
		r.Stretches = append(r.Stretches, ports)
	}
	for _, t := range faults { // what is wrong by a source that is written otherwise only is no fault
		if l := j.look(t, j.excluding); l.Wrong && !j.unread(t) {
			j.local[t] = l
			r.Faults = append(r.Faults, t)
		}
	}
	return r, nil
}

// unread reports whether a wrong input is taken by nothing that was recorded: what a module was given
// and does not use.
func (j *judge) unread(t int) bool {
	p := &j.Program.Ports[t]
	return p.Input && !j.Records[t].Misfit && len(j.users[p.Value]) == 0
}

// stretch is a set of values that are left out as sources.
type stretch struct {
	*judge
	ports map[int]bool
	out   excluded
	right map[int]bool // first records after it, right without it
	looks int
}

// stretch grows a stretch from a wrong port: what hangs on it is judged without it as a source, what is
// wrong then joins it, with every wrong port that it still hangs on. It is nil if that comes to an
// output that nothing takes, or to one that is explained better as it stands.
func (j *judge) stretch(t int) *stretch {
	s := &stretch{judge: j, ports: map[int]bool{}, out: maps.Clone(j.excluding)}
	if j.aside(t) || j.bridged(t) {
		s.ports[t] = true
		return s
	}
	// What is larger throughout is so by little: what is made of it seems to be right.
	if j.Records[t].Misfit || j.local[t].Larger != 0 || !s.add(t) {
		return nil
	}
	s.right = map[int]bool{}
	for {
		q, ok := s.next()
		if !ok {
			break
		}
		if s.looks++; s.looks > mostLooks || len(s.ports) > mostLeftOut || j.ctx.Err() != nil {
			return nil
		}
		l := j.look(q, s.out)
		if !l.Wrong && !l.Unjudged && !s.better(q, l) && !s.lacks(q) {
			s.right[q] = true
			continue
		}
		if l.Unjudged && !s.Records[q].Golden.Known {
			return nil
		}
		more := s.wrongSources(l)
		if len(more) == 0 {
			more = []int{q}
		}
		for _, p := range more {
			if !s.add(p) {
				return nil
			}
		}
		clear(s.right)
	}
	if !s.witnessed() {
		return nil
	}
	return s
}

// aside reports whether a wrong output is the only record of its value that is: what was given on is what
// its piece makes, as where a scale is applied after the module and not in it. Those other records are
// sources, and a layer has to have been given one: a cache that is put out twice is no such thing.
func (j *judge) aside(t int) bool {
	p, right := &j.Program.Ports[t], false
	if p.Input || !j.throughout(t) {
		return false
	}
	without := maps.Clone(j.excluding)
	without[p.Value] = true
	for _, i := range j.Program.Records(p.Value) {
		if i == t || j.local[i] == nil || j.Program.Ports[i].Step != p.Step {
			continue
		}
		if l := j.look(i, without); l.Wrong || l.Unjudged {
			return false
		}
		right = right || i > t && j.Program.Ports[i].Input
	}
	return right
}

// bridged reports whether a record in another shape or type is judged without it, by what is made of its
// value: a piece that an operator takes it in tells, see [stretch.witnessed]. The candidate lays it out
// otherwise, or has something else under that name; where its value is wrong, that piece is.
func (j *judge) bridged(t int) bool {
	at := j.Program.Ports[t]
	return j.Records[t].Misfit && slices.ContainsFunc(j.order, func(q int) bool {
		to := j.Program.Ports[q]
		if j.Records[q].Misfit || !j.Program.Values[to.Value].DType.IsFloat() ||
			!slices.ContainsFunc(j.piece(q).Origin, func(op int) bool { return slices.Contains(j.uses[at.Value], op) }) {
			return false
		}
		l := j.look(q, j.excluding)
		return l.Opaque == "" || to.Step == at.Step && !l.Unjudged
	})
}

// throughout reports whether a port is wrong in all rows that the candidate's forward passes have of it: what is written
// otherwise is so in every pass.
func (j *judge) throughout(t int) bool {
	rows := j.Records[t].Rows
	if rows == nil {
		return true
	}
	own := 0
	for _, is := range rows.Own {
		if is {
			own++
		}
	}
	return len(j.local[t].Rows) == own
}

// witnessed reports whether a port after the stretch is right without it. What cannot be replayed tells
// nothing of an earlier forward pass: it may take what was left there, and need not. Nor does a choice:
// logits of another scale choose the same token. Nor do zeros: whatever is multiplied with them is that.
func (s *stretch) witnessed() bool {
	steps := map[string]bool{}
	for p := range s.ports {
		steps[s.Program.Ports[p].Step] = true
	}
	for q := range s.right {
		if !s.Program.Values[s.Program.Ports[q].Value].DType.IsFloat() || s.isZero(q) {
			continue
		}
		if s.look(q, s.out).Opaque == "" || steps[s.Program.Ports[q].Step] {
			return true
		}
	}
	return false
}

// isZero reports whether the candidate has nothing but zeros for a port.
func (j *judge) isZero(port int) bool {
	t := j.Records[port].Tensor
	return t != nil && !slices.ContainsFunc(t.Floats(), func(x float64) bool { return x != 0 })
}

// add leaves out the value of a port under all its labels. It is false where nothing takes the value:
// a model's output, or a cache whose reader was not recorded, has nothing after it that could be
// right.
func (s *stretch) add(port int) bool {
	v := s.Program.Ports[port].Value
	if !s.taken(v) && !s.spent(port) || s.given(v) {
		return false
	}
	s.out[v] = true
	for _, i := range s.Program.Records(v) {
		if s.local[i] != nil {
			s.ports[i] = true
		}
	}
	return true
}

// taken reports whether another value is made of one: under its own other labels nothing is.
func (s *stretch) taken(v program.ID) bool {
	return slices.ContainsFunc(s.users[v], func(u int) bool { return s.Program.Ports[u].Value != v })
}

// spent reports whether all that takes a value had run before it was recorded, as of attention's weights:
// then other records show what was made of it.
func (s *stretch) spent(port int) bool {
	at := s.Program.Ports[port]
	uses := s.uses[at.Value]
	return len(uses) > 0 && uses[len(uses)-1] < at.At
}

// given reports whether a value is integers that the model was given, as positions are: they are exact,
// and no other way to write them.
func (s *stretch) given(v program.ID) bool {
	value := &s.Program.Values[v]
	return value.Input != "" && !value.DType.IsFloat()
}

// next returns the earliest port after the stretch that was not looked at.
func (s *stretch) next() (int, bool) {
	first := -1
	for v := range s.out {
		if s.excluding[v] {
			continue
		}
		for _, u := range s.users[v] {
			if !s.ports[u] && !s.right[u] && (first < 0 || u < first) {
				first = u
			}
		}
	}
	return first, first >= 0
}

// better reports whether a port that is right without the stretch is explained clearly better with it.
func (s *stretch) better(q int, l *Local) bool {
	with := s.local[q]
	f := betterFloor
	if compare.Has16Bits(s.Encoding) {
		f = betterFloor16
	}
	return !with.Wrong && with.Opaque == "" && l.Error > betterBy*with.Error+0.3*l.Noise+f
}

// lacks reports whether a port is no witness: the candidate has none of the rows of it that are wrong in
// the stretch.
func (s *stretch) lacks(q int) bool {
	known := false
	for p := range s.ports {
		wrong, has := s.wrongIn(p, q)
		if slices.ContainsFunc(wrong, has) {
			return false
		}
		known = known || len(wrong) > 0
	}
	return known
}

// wrongIn lists the rows of a port that are wrong, and tells which of them the candidate has of another one. There are
// none where nothing says which row of the one is which of the other.
func (s *stretch) wrongIn(p, q int) (rows []int, has func(at int) bool) {
	of, in := &s.Records[p], &s.Records[q]
	switch {
	case of.Rows != nil && in.Rows != nil:
		return s.local[p].Rows, func(at int) bool {
			line, row := at/of.Rows.Length, at%of.Rows.Length
			return row < in.Rows.Length && line < in.Rows.Batch && in.Rows.Own[line*in.Rows.Length+row]
		}
	case in.Lines != nil && of.Tensor != nil && len(in.Lines) == lined(of.Tensor).rows():
		return s.local[p].lines, func(at int) bool { return in.Lines[at] }
	}
	return nil, nil
}

// wrongSources lists what a port is made of that is wrong by itself, or made of that, and not left out.
func (s *stretch) wrongSources(l *Local) (ports []int) {
	seen := map[program.ID]bool{}
	var visit func(sources []int)
	visit = func(sources []int) {
		for _, p := range sources {
			v := s.Program.Ports[p].Value
			switch {
			case seen[v]:
			case s.out[v]: // it is made anew
				seen[v] = true
				visit(s.made(v))
			case s.wrong(v) || slices.ContainsFunc(s.made(v), s.leads): // or a view of it
				seen[v] = true
				ports = append(ports, p)
			}
		}
	}
	visit(l.Sources)
	slices.Sort(ports)
	return ports
}

// leads reports whether a port is wrong by itself and not left out.
func (s *stretch) leads(port int) bool {
	v := s.Program.Ports[port].Value
	return !s.out[v] && s.wrong(v)
}

// made lists what the first record of a value is made of.
func (s *stretch) made(v program.ID) []int {
	for _, i := range s.Program.Records(v) {
		if l := s.local[i]; l != nil && !slices.ContainsFunc(l.Sources, func(p int) bool { return s.Program.Ports[p].Value == v }) {
			return l.Sources
		}
	}
	return nil
}

// wrong reports whether a value is wrong under any of its labels.
func (s *stretch) wrong(v program.ID) bool {
	return slices.ContainsFunc(s.Program.Records(v), func(i int) bool { return s.local[i] != nil && s.local[i].Wrong })
}
