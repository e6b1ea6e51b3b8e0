package golden

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
)

// Delta is what differs between two stores.
type Delta struct {
	Moved          []Moved // the largest RelL2 first
	Added, Removed []Key   // in the order of their store
	Same           int     // tensors that are equal bit for bit
	// Programs says which programs differ: "program of case short: changed".
	Programs []string
}

// Moved is a golden tensor whose values differ: old g, new a.
type Moved struct {
	Key
	RelL2   float64 // ‖a − g‖/‖g‖ over pairs of two finite values; +Inf without figures
	MaxAbs  float64 // largest |a − g| of those pairs
	Changed int     // elements that are not equal, of N; NaN equals NaN
	N       int
	Note    string // why there are no figures, or how the type changed
}

func (m Moved) String() string {
	if m.Note != "" {
		return fmt.Sprintf("%s: %s", m.Key, m.Note)
	}
	return fmt.Sprintf("%s: rel. L2 %.3g, max |a − g| %.3g, %d of %d elements", m.Key, m.RelL2, m.MaxAbs,
		m.Changed, m.N)
}

// Diff compares all goldens of two stores. One that cannot be read, or whose shape has changed,
// counts as moved, with a note.
func Diff(old, now *Store) *Delta { return diff(old, now, func(*Pass) bool { return true }) }

func diff(old, now *Store, want func(*Pass) bool) *Delta {
	d := &Delta{}
	before := map[Key]Entry{}
	for k, e := range old.all(want) {
		before[k] = e
	}
	after := map[Key]bool{}
	for k, e := range now.all(want) {
		after[k] = true
		was, ok := before[k]
		switch {
		case !ok:
			d.Added = append(d.Added, k)
		case was.SHA256 == e.SHA256 && was.DType == e.DType && slices.Equal(was.Shape, e.Shape):
			d.Same++
		default:
			d.Moved = append(d.Moved, moved(k, was, e))
		}
	}
	for k := range old.all(want) {
		if !after[k] {
			d.Removed = append(d.Removed, k)
		}
	}
	d.Programs = programsDiffer(old, now, want)
	slices.SortStableFunc(d.Moved, func(a, b Moved) int {
		return cmp.Or(cmp.Compare(b.RelL2, a.RelL2), cmp.Compare(b.MaxAbs, a.MaxAbs), cmp.Compare(b.Changed, a.Changed))
	})
	return d
}

// all visits the goldens of the wanted passes in order.
func (s *Store) all(want func(*Pass) bool) func(yield func(Key, Entry) bool) {
	return func(yield func(Key, Entry) bool) {
		for i := range s.manifest.Passes {
			p := &s.manifest.Passes[i]
			if !want(p) {
				continue
			}
			for _, r := range p.Tensors {
				if !yield(p.key(r), Entry{r, p, s}) {
					return
				}
			}
		}
	}
}

func moved(k Key, was, now Entry) Moved {
	m := Moved{Key: k, RelL2: math.Inf(1)}
	g, err := was.Tensor()
	if err != nil {
		m.Note = fmt.Sprintf("the old golden cannot be read: %v", err)
		return m
	}
	a, err := now.Tensor()
	if err != nil {
		m.Note = fmt.Sprintf("the new golden cannot be read: %v", err)
		return m
	}
	if !slices.Equal(g.Shape(), a.Shape()) {
		m.Note = fmt.Sprintf("was %s, is %s", g, a)
		return m
	}
	r, err := compare.Tensors(g, a, compare.Tolerance{EqualNaN: true})
	if err != nil {
		m.Note = err.Error()
		return m
	}
	m.RelL2, m.MaxAbs, m.Changed, m.N = r.RelL2, r.MaxAbs.Value, r.Mismatches, r.N
	if g.DType() != a.DType() {
		m.Note = fmt.Sprintf("was %s, is %s; rel. L2 %.3g", g, a, m.RelL2)
	}
	return m
}

// programsDiffer lists the programs of the wanted passes that two stores do not have alike.
func programsDiffer(old, now *Store, want func(*Pass) bool) (out []string) {
	wanted := func(p Program) bool { return want(&Pass{Variant: p.Variant, Case: p.Case, Step: "0"}) }
	before := map[string]Program{}
	for _, p := range old.manifest.Programs {
		if wanted(p) {
			before[p.Case] = p
		}
	}
	say := func(p Program, what string) { out = append(out, fmt.Sprintf("program of case %s: %s", p.Case, what)) }
	for _, p := range now.manifest.Programs {
		was, had := before[p.Case]
		delete(before, p.Case)
		switch {
		case !wanted(p):
		case !had:
			say(p, "new")
		case !slices.Equal(was.Files, p.Files):
			say(p, "changed")
		}
	}
	for _, p := range old.manifest.Programs {
		if _, gone := before[p.Case]; gone {
			say(p, "gone")
		}
	}
	return out
}
