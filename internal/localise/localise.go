package localise

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Record is one port of the reference with its result.
type Record struct {
	Case, Step, Layer, Port string
	Seq                     int  // execution index in the reference
	Joined                  bool // the candidate has it
	Agrees                  bool // within the noise floor, or means the same (masks)
	Integer                 bool // ids and positions
}

// The kinds of a verdict. A standard run gives all but the last, which an injected run tells from KindLocal.
const (
	KindInput       = "input"
	KindBetween     = "between"
	KindLocal       = "local"
	KindInteraction = "interaction"
)

// Verdict says where the candidate leaves the reference.
type Verdict struct {
	Kind                    string
	Case, Step, Layer, Port string
	After, Before           string   // the interval of KindBetween: empty After is the container's beginning, empty Before its end
	Frontier                []string // layers whose recorded inputs agree and whose output does not, innermost ones
	Proven                  bool     // every input that the reference recorded for the layer was compared
	Gaps                    []string // what was not recorded on the candidate's side, and would have told more
	Text                    string   // one sentence

	at int // index of the event, to order the verdicts of several cases
}

// First finds the first divergence over all cases, the earliest step first. It is nil if every joined port agrees.
func First(records []Record, cases, steps []string) *Verdict {
	groups := map[[2]string][]Record{}
	for _, r := range records {
		k := [2]string{r.Step, r.Case}
		groups[k] = append(groups[k], r)
	}
	for _, s := range steps {
		var found []*Verdict
		for _, c := range cases {
			if v := first(groups[[2]string{s, c}]); v != nil {
				found = append(found, v)
			}
		}
		if len(found) > 0 {
			// A fault may hide in one case and show in another: the earliest place of all cases counts.
			return slices.MinFunc(found, func(a, b *Verdict) int { return a.at - b.at })
		}
	}
	return nil
}

func first(records []Record) *Verdict {
	t := newTree(records)
	es := events(records, t)
	i := slices.IndexFunc(es, func(e event) bool { return e.differs() })
	if i < 0 {
		return nil
	}
	e := es[i]
	v := &Verdict{Case: e.Case, Step: e.Step, Layer: e.Layer, Port: e.Port, at: i}
	switch {
	case e.role == Input && modelInput(es, i):
		v.Kind, v.Proven = KindInput, true
		v.Layer, v.Port = consumer(es, i, t)
		v.Text = fmt.Sprintf("the two runs were not asked the same: %s of %s differs", e.Port, e.Layer)
	case e.role == Input:
		v.between(t.container(e.Layer), e.Layer, es, i)
	case hasJoinedChild(es, e.Layer):
		v.between(e.Layer, "", es, i)
	default:
		v.local(es)
	}
	v.Frontier = frontier(es, v)
	return v
}

// event is a record at the time when its value existed.
type event struct {
	Record
	role  Role
	at    int // execution index; an input exists before anything inside its layer
	depth int
}

func (e event) differs() bool { return e.Joined && !e.Agrees }

func events(records []Record, t *tree) []event {
	es := make([]event, 0, len(records))
	for _, r := range records {
		e := event{Record: r, role: RoleOf(r.Port), at: r.Seq, depth: strings.Count(r.Layer, ".")}
		if e.role == Input {
			e.at = t.start(r.Layer)
		}
		es = append(es, e)
	}
	sort.SliceStable(es, func(i, j int) bool {
		a, b := es[i], es[j]
		switch {
		case a.at != b.at:
			return a.at < b.at
		case a.role != b.role:
			return a.role < b.role
		case a.role == Input && a.depth != b.depth:
			return a.depth < b.depth // the outer layer had it first
		}
		return a.Seq < b.Seq
	})
	return es
}

// modelInput reports whether a differing input came from outside: an input of the root, or ids and positions of a layer in a dump that
// does not show the root's.
func modelInput(es []event, i int) bool {
	isRoot := func(e event) bool { return !strings.Contains(e.Layer, ".") }
	if isRoot(es[i]) {
		return true
	}
	return es[i].Integer && !slices.ContainsFunc(es, func(e event) bool { return isRoot(e) && e.role == Input && e.Joined })
}

// consumer gives the first layer without children that takes a differing tensor: the one that a model's wrong input reaches first.
func consumer(es []event, i int, t *tree) (layer, port string) {
	for _, e := range es[i:] {
		if e.role == Input && e.differs() && !t.hasChild(e.Layer) {
			return e.Layer, e.Port
		}
	}
	return es[i].Layer, es[i].Port
}

func hasJoinedChild(es []event, layer string) bool {
	return slices.ContainsFunc(es, func(e event) bool { return e.Joined && e.role == Output && inside(e.Layer, layer) })
}

// between: nothing that was compared made this value, so the code between two matched layers did.
func (v *Verdict) between(container, before string, es []event, i int) {
	v.Kind, v.Layer, v.Before, v.Proven = KindBetween, container, before, true
	after := -1
	for j, e := range es[:i] {
		if e.Joined && e.role == Output && inside(e.Layer, container) {
			v.After, after = e.Layer, j
		}
	}
	for j, e := range es[:i] {
		if j > after && !e.Joined && e.role == Output && inside(e.Layer, container) {
			v.Gaps = append(v.Gaps, e.Layer)
		}
	}
	v.Gaps = slices.Compact(v.Gaps)
	from, to := "its beginning", "its end"
	if v.After != "" {
		from = v.After
	}
	if before != "" {
		to = before
	}
	v.Text = fmt.Sprintf("the code of %s between %s and %s computes something else; the layers before it agree", container, from, to)
	if len(v.Gaps) > 0 {
		gaps := strings.Join(v.Gaps[:min(3, len(v.Gaps))], ", ")
		if more := len(v.Gaps) - 3; more > 0 {
			gaps += fmt.Sprintf(" and %d more", more)
		}
		v.Text += fmt.Sprintf(" (the reference calls %s there, which the candidate did not record)", gaps)
	}
}

// local: a layer without matched children gets the right inputs and gives a wrong output.
func (v *Verdict) local(es []event) {
	v.Kind = KindLocal
	compared := 0
	for _, e := range es {
		if e.Layer != v.Layer || e.role != Input {
			continue
		}
		if e.Joined {
			compared++
		} else {
			v.Gaps = append(v.Gaps, e.Port)
		}
	}
	v.Proven = compared > 0 && len(v.Gaps) == 0
	switch {
	case v.Proven:
		v.Text = fmt.Sprintf("%s gets the right inputs and computes something else", v.Layer)
	case compared > 0:
		v.Text = fmt.Sprintf("%s gives the first wrong output; suspected, since its inputs %s were not compared", v.Layer, strings.Join(v.Gaps, ", "))
	default:
		v.Text = fmt.Sprintf("%s gives the first wrong output; suspected, since no input of it was compared", v.Layer)
	}
}

// frontier lists the layers that get what they should and give what they should not, without those around another of them. A layer of which no
// input was compared counts only if nothing inside of it got a wrong one, or if it is the place of a local verdict.
func frontier(es []event, v *Verdict) []string {
	type state struct{ in, inBad, outBad bool }
	states := map[string]*state{}
	var order []string
	for _, e := range es {
		s := states[e.Layer]
		if s == nil {
			s = &state{}
			states[e.Layer] = s
			order = append(order, e.Layer)
		}
		if e.Joined && e.role == Input {
			s.in = true
		}
		if e.differs() {
			s.inBad = s.inBad || e.role == Input
			s.outBad = s.outBad || e.role == Output
		}
	}
	for l, s := range states {
		if s.in || !s.outBad {
			continue
		}
		for o, inner := range states {
			if inside(o, l) && inner.in {
				s.in, s.inBad = true, s.inBad || inner.inBad
			}
		}
	}
	var out []string
	for _, l := range order {
		if s := states[l]; s.outBad && !s.inBad && (s.in || v.Kind == KindLocal && l == v.Layer) {
			out = append(out, l)
		}
	}
	return slices.DeleteFunc(slices.Clone(out), func(l string) bool {
		return slices.ContainsFunc(out, func(o string) bool { return inside(o, l) })
	})
}
