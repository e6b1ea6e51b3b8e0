package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// replace makes goldens of what was made, at one stroke: no one sees a new variant next to an old one.
func (u *update) replace() error {
	u.all = slices.DeleteFunc(u.all, func(m *made) bool {
		if len(m.runs) == 0 {
			u.tell("%s: nothing is new", m.variant)
		}
		return len(m.runs) == 0
	})
	if len(u.all) == 0 {
		return nil
	}
	return store.Update(u.cfg.context(), u.goldenDir(), u.waits(u.goldenDir()), u.change)
}

// choose says which goldens of a variant are made of runs of one pass.
func (u *update) choose(variant string, runs []*dump.Run) (*made, error) {
	ref, _ := u.yaml.Variant(variant)
	m := &made{variant: variant, runs: map[string]*dump.Run{}}
	have, err := u.have(variant, false)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		name := r.Info.Case
		if len(runs) == 1 {
			name = u.yaml.CaseOfOnly(name)
		}
		y, err := u.yaml.Case(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Path, err)
		}
		switch n, edited, rule := len(r.Steps()), r.Info.EditedTransformers(), r.Info.Activations.Rule(); {
		case edited != "":
			return nil, fmt.Errorf("%s: the run used transformers %s, and makes no goldens: run parity transformers restore, and then the reference again", r.Path, edited)
		case rule != ref.Activations:
			return nil, fmt.Errorf("%s: it rounded the inputs of products by %q, and %s does so by %q (\"\": not at all)", r.Path, rule, ref.Variant, ref.Activations)
		case m.runs[y.Name] != nil:
			return nil, fmt.Errorf("%s has the case %q twice", r.Path, y.Name)
		case n != y.Steps:
			return nil, fmt.Errorf("%s: case %s has %d steps, %s asks for %d", r.Path, y.Name, n, u.yaml.File, y.Steps)
		case u.cfg.Update == setting.UpdateNew && slices.Contains(have, y.Name):
			continue
		}
		u.checkProgram(variant, y.Name, r)
		m.runs[y.Name] = r
	}
	u.all = append(u.all, m)
	return m, nil
}

// checkProgram leaves out the program of a run that is not kept, or cannot be used.
func (u *update) checkProgram(variant, caseName string, r *dump.Run) {
	if r.Program == "" || !u.hasProgram(variant) {
		r.Program = ""
		return
	}
	p, err := OpenProgram(r.Program, r.Entries)
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		u.tell("case %s: its program is left out: %s", caseName, sanitize.Line(err.Error()))
		r.Program = ""
	}
}

// accept shows what changes, and refuses that goldens go which no one said may go: a dump with other
// names, or of fewer layers, would leave a test that compares less.
func (u *update) accept(variant string, d *store.Delta) error {
	u.tell("%s: %s", variant, d.Summary())
	if d.Same+len(d.Moved)+len(d.Removed) > 0 || len(d.Added) == 0 { // of a first update all are new
		for _, line := range d.Lines(mostChanges) {
			fmt.Fprintf(u.out, "  %s\n", sanitize.Line(line))
		}
	}
	if len(d.Removed) > 0 && !u.cfg.Prune {
		return fmt.Errorf("%s: %d goldens would go, see above, the first is %s: nothing is written; -parity.prune, or parity golden update --prune, lets them go",
			variant, len(d.Removed), sanitize.Line(d.Removed[0]))
	}
	return nil
}

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
func (u *update) change(old *store.Store) (*store.Change, error) {
	c := &store.Change{}
	for _, k := range old.Runs() {
		if !slices.ContainsFunc(u.all, func(m *made) bool { return m.replaces(k) }) {
			c.Keep = append(c.Keep, k)
		}
	}
	for _, p := range old.Paths() {
		if !slices.ContainsFunc(u.all, func(m *made) bool { return p.Variant == m.variant && (p.Case == "" || m.runs[p.Case] != nil) }) {
			c.Paths = append(c.Paths, p)
		}
	}
	for _, m := range u.all {
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
		for _, m := range u.all {
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
	use, formula := u.yaml.Use(variant), "" // by what the goldens judge where no tolerance does
	if d, err := tensor.ParseDType(variant); err == nil && d.Size() == 2 && use == fixture.UseCost {
		formula = compare.Cost.Rule
	}
	kept, err := u.captured(run)
	return store.Recording{Kept: store.Kept{Variant: variant, Use: use, Formula: formula, Command: "go test " + setting.Package() + " -update",
		Blessed: u.cfg.Bless, Info: info}, Run: kept, Program: run.Program}, err
}

// captured are the tensors of a run that become golden.
func (u *update) captured(run *dump.Run) (*dump.Run, error) {
	var entries []dump.Entry
	for _, e := range run.Entries {
		switch {
		case !u.yaml.Capture.Wants(e.Layer, e.Port) && (u.yaml.Generation == 0 || e.Layer != paths.KeptLayer):
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

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// record keeps the judged runs as runs/<name>, and the list of what was compared. An older recording of
// that name is replaced at one stroke, all modes and paths of it. The recorded run itself can be recorded under its
// own name, which renews the list; what made it stale stays so.
func (f *Fixture) record(name string) error {
	renew := f.replay == "" && !f.isLive()
	if renew && name != f.yaml.Replay {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	further, err := f.probes.recorded()
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	runs := slices.Concat(f.runs, f.injected, further)
	joined, c := f.c.Joined(), &store.Change{}
	for _, r := range runs {
		k := store.Kept{Info: r.Info}
		if !renew {
			k.Info.Inputs = f.runInputs(r.Info)
		}
		k.Info.Date = cmp.Or(k.Info.Date, time.Now().UTC().Format(time.RFC3339))
		if k.OnePass() {
			k.Joined = joined[r.Info.Case]
		}
		c.Add = append(c.Add, store.Recording{Kept: k, Run: r})
	}
	dir := f.runDir(name)
	err = store.Update(f.cfg.context(), dir, f.waits(dir), func(*store.Store) (*store.Change, error) { return c, nil })
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// runDir returns the folder of a recorded run.
func (f *Fixture) runDir(name string) string { return filepath.Join(f.dir, "runs", name) }

// Prune returns what lies in a fixture's folder and belongs to no case of it: goldens, and cases of
// recorded runs. With apply it removes them.
func Prune(ctx context.Context, dir string, apply bool) (gone []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := &Fixture{dir: dir, name: filepath.Base(abs), cfg: &Config{Context: ctx}}
	defer func() { err = errors.Join(err, f.release()) }()
	if err := f.readYAML(); err != nil {
		return nil, err
	}
	names, _ := os.ReadDir(filepath.Join(dir, "runs"))
	folders := []string{"golden"}
	for _, n := range names {
		if runName.MatchString(n.Name()) {
			folders = append(folders, filepath.Join("runs", n.Name()))
		}
	}
	for _, folder := range folders {
		from := filepath.Join(dir, folder)
		of, err := store.Prune(ctx, from, apply, f.waits(from), f.wanted)
		for _, what := range of {
			gone = append(gone, filepath.ToSlash(folder)+": "+what)
		}
		if err != nil {
			return gone, fmt.Errorf("%s: %w", filepath.ToSlash(folder), err)
		}
	}
	return gone, nil
}

// wanted reports whether the fixture asks for a run that is kept.
func (f *Fixture) wanted(k *store.Kept) bool {
	_, listed := f.yaml.Variant(k.Variant)
	return f.yaml.Wants(k.Info.Case) && (listed || k.Variant == "")
}
