package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/store"
)

// MakesGoldens returns an error for a run that goldens cannot be made of.
func MakesGoldens(run *dump.Run) error {
	switch {
	case run.Info.Unfinished != "":
		return fmt.Errorf("%s: the run did not come to its end (%s): what it has makes no goldens: run the reference again", run.Path, run.Info.Unfinished)
	case run.Info.Mode == dump.Injected:
		return fmt.Errorf("%s: it is an injected run: goldens are what the reference computes by itself", run.Path)
	}
	return nil
}

// made are runs that become goldens of a variant, in place of those of the same cases.
type made struct {
	variant string
	runs    map[string]*dump.Run // of one pass, by case
	along   []*dump.Run          // texts, and paths with goldens of their own
	paths   []store.Along
	cases   map[string]engine.Case // by which paths were run
}

// replaces reports whether the goldens of a run are made anew.
func (m *made) replaces(k *store.Kept) bool {
	base, ofPath := dump.CutPathCase(k.Info.Case)
	return k.Variant == m.variant && (m.runs[k.Info.Case] != nil || ofPath && (base == "" || m.runs[base] != nil))
}

// change says what becomes of a store.
func (u *update) change(old *store.Store, all []*made) (*store.Change, error) {
	c := &store.Change{}
	for _, k := range old.Runs() {
		if !slices.ContainsFunc(all, func(m *made) bool { return m.replaces(k) }) {
			c.Keep = append(c.Keep, k)
		}
	}
	for _, p := range old.Paths() {
		if !slices.ContainsFunc(all, func(m *made) bool { return p.Variant == m.variant && (p.Case == "" || m.runs[p.Case] != nil) }) {
			c.Paths = append(c.Paths, p)
		}
	}
	for _, m := range all {
		c.Paths = append(c.Paths, m.paths...)
		runs := maps.Clone(m.runs)
		for _, r := range m.along {
			runs[r.Info.Case] = r
		}
		for _, name := range slices.Sorted(maps.Keys(runs)) {
			r, err := u.recording(m.variant, name, runs[name])
			if err != nil {
				return nil, fmt.Errorf("case %q from %s: %w", name, runs[name].Path, err)
			}
			c.Add = append(c.Add, r)
		}
	}
	c.Accept = func(now *store.Store) error {
		for _, m := range all {
			if err := u.accept(m.variant, store.Diff(old, now, m.replaces)); err != nil {
				return err
			}
		}
		return nil
	}
	return c, nil
}

// recording is what is kept of a run as goldens. It refuses a run that comes from the candidate without a
// reason, that ran in another type than the variant, or of which nothing is captured.
func (u *update) recording(variant, name string, run *dump.Run) (r store.Recording, err error) {
	ref, _ := u.yaml.Variant(variant)
	base, ofPath := dump.CutPathCase(name)
	switch along := run.Info.AlongPath() || run.Info.Generation != nil; {
	case MakesGoldens(run) != nil:
		return r, MakesGoldens(run)
	case run.Info.Engine == engine.MAX && u.cfg.Bless == "":
		return r, errors.New("it is a run of the candidate (max): goldens come from the reference, or are blessed with a reason")
	case run.Info.Encoding != (dump.Encoding{}) && run.Info.Encoding.String() != ref.Encoding().String():
		return r, fmt.Errorf("it ran in %s, and cannot become the goldens %s", run.Info.Encoding, variant)
	case along != ofPath:
		return r, fmt.Errorf("it was run along %q: goldens of a case are of one pass", run.Info.Path)
	}
	i := run.Info
	info := dump.Info{Engine: i.Engine, Versions: i.Versions, Device: i.Device, Encoding: fixture.EncodingOf(variant), Mode: dump.Standard, Case: name,
		ReferenceText: i.ReferenceText, TokenIDs: i.TokenIDs, PadMask: i.PadMask, Attention: i.Attention, Nonce: i.Nonce, Text: i.Text,
		Activations: i.Activations, Generation: i.Generation, Date: time.Now().UTC().Format(time.RFC3339), Inputs: u.yaml.GoldenInputs(variant, base)}
	if i.AlongPath() {
		info.Path, info.Passes, info.PadMasks = i.Path, i.Passes, i.PadMasks
	}
	kept, err := u.captured(run)
	return store.Recording{Kept: store.Kept{Variant: variant, Use: u.yaml.Use(variant), Formula: u.formula(variant), Command: u.command(),
		Blessed: u.cfg.Bless, Info: info}, Run: kept, Program: run.Program}, err
}

// captured are the tensors of a run that become golden.
func (u *update) captured(run *dump.Run) (*dump.Run, error) {
	var entries []dump.Entry
	for _, e := range run.Entries {
		switch {
		case !u.keeps(e.Layer, e.Port):
		case e.Printed != nil:
			return nil, fmt.Errorf("%s shows only some of its values: dump it in full", e.Label())
		default:
			entries = append(entries, e)
		}
	}
	kept := dump.New(run.Path, run.Info, run.OrderBy, entries)
	kept.Watch(run.Changed)
	for _, step := range run.Steps() {
		if !slices.Contains(kept.Steps(), step) {
			return nil, fmt.Errorf("step %s: nothing of it is captured: check capture in the fixture", step)
		}
	}
	return kept, nil
}

// AddPrograms keeps programs beside the goldens of a variant, in place of those that its cases have:
// programs has the file of each case's program.json, whose constants lie beside it. The goldens stay
// as they are. A case without goldens of the variant is [store.ErrNotFound].
func AddPrograms(ctx context.Context, dir, variant string, programs map[string]string, waiting func(holder string)) error {
	return store.Update(ctx, dir, waiting, func(old *store.Store) (*store.Change, error) {
		for name := range programs {
			if _, err := old.Golden(variant, name); err != nil {
				return nil, err
			}
		}
		c := &store.Change{Paths: old.Paths()}
		for _, k := range old.Runs() {
			if k.Variant != variant || programs[k.Info.Case] == "" {
				c.Keep = append(c.Keep, k)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			c.Add = append(c.Add, store.Recording{Kept: *old.Find(variant, name), Program: programs[name]})
		}
		return c, nil
	})
}
