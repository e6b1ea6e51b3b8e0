package store

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Delta is what differs between two stores.
type Delta struct {
	Moved          []Moved // the largest RelL2 first
	Added, Removed []Key   // in the order of their store
	Same           int     // tensors that are equal bit for bit
	// Programs says which programs differ: "program of case short: changed".
	Programs []string
}

// Key names a golden tensor.
type Key struct{ Variant, Case, Step, Layer, Port string }

func (k Key) String() string {
	return fmt.Sprintf("%s/%s.%s %s", k.Variant, k.Case, k.Step, label.Join(k.Layer, k.Port))
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

// Diff compares the goldens of two stores that are wanted, all of them for nil. One that cannot be read, or
// whose shape has changed, counts as moved, with a note.
func Diff(old, now *Store, want func(*Kept) bool) *Delta {
	d := &Delta{}
	before := map[Key]dump.OrderEntry{}
	for k, o := range old.all(want) {
		before[k] = o
	}
	after := map[Key]bool{}
	for k, o := range now.all(want) {
		after[k] = true
		was, ok := before[k]
		if !ok {
			d.Added = append(d.Added, k)
		} else if m := moved(k, old, was, now, o); m != nil {
			d.Moved = append(d.Moved, *m)
		} else {
			d.Same++
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

// Lines says what differs, a line each.
func (d *Delta) Lines() (lines []string) {
	for _, m := range d.Moved {
		lines = append(lines, m.String())
	}
	for _, k := range d.Added {
		lines = append(lines, k.String()+": new")
	}
	for _, k := range d.Removed {
		lines = append(lines, k.String()+": gone")
	}
	return append(lines, d.Programs...)
}

// all visits the tensors of the wanted runs in order.
func (s *Store) all(want func(*Kept) bool) func(yield func(Key, dump.OrderEntry) bool) {
	return func(yield func(Key, dump.OrderEntry) bool) {
		for _, k := range s.index.Runs {
			if want != nil && !want(k) {
				continue
			}
			for _, o := range k.Info.Order {
				if !yield(Key{k.Variant, k.Info.Case, o.Step, o.Layer, o.Port}, o) {
					return
				}
			}
		}
	}
}

func (s *Store) tensor(o dump.OrderEntry) (*tensor.Tensor, error) {
	f, err := s.file(o.File)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(o.Name, label.Join(o.Layer, o.Port))
	if t, ok := f.Lookup(name); ok {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s has no tensor %q", ErrCorrupt, o.File, name)
}

// moved compares two tensors; nil if they are equal bit for bit.
func moved(k Key, old *Store, was dump.OrderEntry, now *Store, is dump.OrderEntry) *Moved {
	m := &Moved{Key: k, RelL2: math.Inf(1)}
	g, err := old.tensor(was)
	if err != nil {
		m.Note = fmt.Sprintf("the old golden cannot be read: %v", err)
		return m
	}
	a, err := now.tensor(is)
	if err != nil {
		m.Note = fmt.Sprintf("the new golden cannot be read: %v", err)
		return m
	}
	if !slices.Equal(g.Shape(), a.Shape()) {
		m.Note = fmt.Sprintf("was %s, is %s", g, a)
		return m
	}
	var r compare.Result
	same := false
	err = mapfile.Guard(func() (err error) {
		x, _ := g.Bytes()
		y, _ := a.Bytes()
		if same = g.DType() == a.DType() && bytes.Equal(x, y); !same {
			r, err = compare.Tensors(g, a, compare.Tolerance{EqualNaN: true})
		}
		return err
	})
	switch {
	case same:
		return nil
	case err != nil:
		m.Note = err.Error()
		return m
	}
	m.RelL2, m.MaxAbs, m.Changed, m.N = r.RelL2, r.MaxAbs.Value, r.Mismatches, r.N
	if g.DType() != a.DType() {
		m.Note = fmt.Sprintf("was %s, is %s; rel. L2 %.3g", g, a, m.RelL2)
	}
	return m
}

// programsDiffer lists the programs of the wanted runs that two stores do not have alike: their files are
// named by what they are.
func programsDiffer(old, now *Store, want func(*Kept) bool) (out []string) {
	programs := func(s *Store) map[string][]string {
		of := map[string][]string{}
		for _, k := range s.index.Runs {
			if (want == nil || want(k)) && len(k.Program) > 0 {
				of[k.Info.Case] = k.Program
			}
		}
		return of
	}
	before, after := programs(old), programs(now)
	say := func(name, what string) { out = append(out, fmt.Sprintf("program of case %s: %s", name, what)) }
	for name, files := range after {
		if was, had := before[name]; !had {
			say(name, "new")
		} else if !slices.Equal(was, files) {
			say(name, "changed")
		}
	}
	for name := range before {
		if _, has := after[name]; !has {
			say(name, "gone")
		}
	}
	slices.Sort(out)
	return out
}
