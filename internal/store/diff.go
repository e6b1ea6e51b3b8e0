package store

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
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
	Same           int      // tensors that are equal bit for bit
	Moved          []string // how far each that is not equal moved, the furthest first
	Added, Removed []string // in the order of their store
	Programs       []string // "program of case short: changed"
}

// Diff compares the goldens of two stores that are wanted, all of them for nil. One that cannot be read, or
// whose shape has changed, counts as moved.
func Diff(old, now *Store, want func(*Kept) bool) *Delta {
	d := &Delta{}
	before := maps.Collect(old.all(want))
	after := map[string]bool{}
	var moves []moved
	for k, o := range now.all(want) {
		after[k] = true
		was, ok := before[k]
		if !ok {
			d.Added = append(d.Added, k)
		} else if m := move(k, old, was, now, o); m != nil {
			moves = append(moves, *m)
		} else {
			d.Same++
		}
	}
	for k := range old.all(want) {
		if !after[k] {
			d.Removed = append(d.Removed, k)
		}
	}
	slices.SortStableFunc(moves, func(a, b moved) int {
		return cmp.Or(cmp.Compare(b.relL2, a.relL2), cmp.Compare(b.maxAbs, a.maxAbs), cmp.Compare(b.changed, a.changed))
	})
	for _, m := range moves {
		d.Moved = append(d.Moved, m.text)
	}
	d.Programs = programsDiffer(old, now, want)
	return d
}

// Summary counts what differs.
func (d *Delta) Summary() string {
	text := fmt.Sprintf("%d unchanged, %d moved, %d new, %d gone", d.Same, len(d.Moved), len(d.Added), len(d.Removed))
	if n := len(d.Programs); n > 0 {
		text += fmt.Sprintf(", %d programs changed", n)
	}
	return text
}

// Lines says what differs, a line each, at most so many of a kind; 0 for all.
func (d *Delta) Lines(most int) (lines []string) {
	for _, list := range []struct {
		what string
		of   []string
	}{{"gone: ", d.Removed}, {"new: ", d.Added}, {"", d.Moved}, {"", d.Programs}} {
		for i, line := range list.of {
			if i == most && most > 0 {
				lines = append(lines, fmt.Sprintf("… and %d more", len(list.of)-i))
				break
			}
			lines = append(lines, list.what+line)
		}
	}
	return lines
}

// all visits the tensors of the wanted runs in order, each by its name.
func (s *Store) all(want func(*Kept) bool) iter.Seq2[string, dump.OrderEntry] {
	return func(yield func(string, dump.OrderEntry) bool) {
		for _, k := range s.index.Runs {
			if want != nil && !want(k) {
				continue
			}
			for _, o := range k.Info.Order {
				if !yield(fmt.Sprintf("%s/%s.%s %s", k.Variant, k.Info.Case, o.Step, label.Join(o.Layer, o.Port)), o) {
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

// moved is a golden tensor whose values differ.
type moved struct {
	text          string
	relL2, maxAbs float64 // infinite without metrics
	changed       int     // elements that are not equal; NaN equals NaN
}

// move compares two tensors, old g and new a; nil if they are equal bit for bit.
func move(name string, old *Store, was dump.OrderEntry, now *Store, is dump.OrderEntry) *moved {
	unread := func(format string, args ...any) *moved {
		return &moved{name + ": " + fmt.Sprintf(format, args...), math.Inf(1), 0, 0}
	}
	g, err := old.tensor(was)
	if err != nil {
		return unread("the old golden cannot be read: %v", err)
	}
	a, err := now.tensor(is)
	if err != nil {
		return unread("the new golden cannot be read: %v", err)
	}
	if !slices.Equal(g.Shape(), a.Shape()) {
		return unread("was %s, is %s", g, a)
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
	case err != nil:
		return unread("%v", err)
	case same:
		return nil
	}
	text := fmt.Sprintf("%s: rel. L2 %.3g, max |a − g| %.3g, %d of %d elements", name, r.RelL2, r.MaxAbs.Value, r.Mismatches, r.N)
	if g.DType() != a.DType() {
		text = fmt.Sprintf("%s: was %s, is %s; rel. L2 %.3g", name, g, a, r.RelL2)
	}
	return &moved{text, r.RelL2, r.MaxAbs.Value, r.Mismatches}
}

// programsDiffer lists the programs of the wanted runs that two stores do not have alike: their files are
// named by what they are.
func programsDiffer(old, now *Store, want func(*Kept) bool) (out []string) {
	programs := func(s *Store) map[string]string {
		of := map[string]string{}
		for _, k := range s.index.Runs {
			if (want == nil || want(k)) && len(k.Program) > 0 {
				of[k.Info.Case] = fmt.Sprint(k.Program)
			}
		}
		return of
	}
	before, after := programs(old), programs(now)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		what := "changed"
		switch was, is := before[name], after[name]; {
		case was == is:
			continue
		case was == "":
			what = "new"
		case is == "":
			what = "gone"
		}
		out = append(out, fmt.Sprintf("program of case %s: %s", name, what))
	}
	return out
}
