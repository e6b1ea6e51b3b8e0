package session

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/subtest"
	"github.com/goparity/goparity/internal/transformers"
	"github.com/goparity/goparity/tensor"
)

// Update renews the goldens of all fixtures from the reference's dump, before any test runs.
func (s *Session) Update(stdout io.Writer) error {
	if s.cfg.Update == setting.UpdateNone {
		return nil
	}
	if err := unedited(s.cfg.GoldenDump); err != nil {
		return err
	}
	for _, f := range s.fixtures {
		if err := (&update{Fixture: f, mode: s.cfg.Update, out: stdout}).renew(); err != nil {
			return errors.Join(fmt.Errorf("update %s: %w", f.name, err), engine.WriteStatus(f.out, f.name, err))
		}
	}
	return nil
}

// update renews the goldens of one fixture.
type update struct {
	*Fixture
	mode setting.Update
	out  io.Writer

	dequantised string   // folder with the dequantised weights, once it is written
	quantised   []string // names of the weights that are quantised
}

// renew imports each variant that the dump folder has: DUMP/<variant>/… or, for a single one, DUMP
// itself (see dump.OpenCases).
func (u *update) renew() error {
	if u.goldenDump == "" {
		if changed, err := fixture.RenewAuto(u.dir); err != nil {
			return err
		} else if changed {
			fmt.Fprintf(u.out, "parity: update %s: %s is written: cases: auto as the model's config.json wants them\n", u.name, fixture.AutoFile)
		}
	}
	if err := u.readYAML(); err != nil {
		return err
	}
	if u.yaml.Alone {
		return u.recordPrograms()
	}
	if u.cfg.Bless != "" {
		return u.bless()
	}
	if u.goldenDump == "" {
		return u.fromReference()
	}
	dirs := map[string]string{}
	for _, v := range u.yaml.Variants() {
		if dir := filepath.Join(u.goldenDump, v); isDir(dir) {
			dirs[v] = dir
		}
	}
	if len(dirs) == 0 {
		dirs[u.yaml.Variants()[0]] = u.goldenDump
	}
	for _, v := range u.yaml.Variants() {
		if dirs[v] == "" {
			fmt.Fprintf(u.out, "parity: update %s: the dump has no %s: its goldens stay as they are\n", u.name, v)
		}
	}
	for _, dir := range dirs {
		if store.KeepsRuns(dir) {
			return fmt.Errorf("%s is a recorded run of the candidate: goldens come from the reference; if it is meant all the same, "+
				"-parity.bless=REASON makes it golden, and every report says so", filepath.ToSlash(dir))
		}
	}
	return u.importAll(dirs, nil, nil)
}

// fromReference runs the reference, each variant of it, and imports what it computed. The decode
// steps of all variants take the tokens of the first.
func (u *update) fromReference() error {
	if u.yaml.Model.Path == "" && u.yaml.Model.Oracle == "" {
		return fmt.Errorf("%s names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump", u.yaml.File)
	}
	dirs := map[string]string{} // all run before the first is kept: a failure changes nothing
	along := map[string]*measured{}
	texts := map[string]map[string]*dump.Run{} // by variant, what is kept of the generation of each case
	spoken := map[string][]int{}               // by case, the tokens of the first variant
	var forced [][][]int
	for n, variant := range u.yaml.Variants() {
		job, err := u.reference(variant)
		if err != nil {
			return err
		}
		if n == 0 {
			job.SanityTokens, job.SkipSanity = sanityTokens, u.yaml.Model.SkipSanity
		}
		for i := range forced {
			job.Cases[i].Forced = forced[i]
		}
		if u.hasProgram(variant) {
			fixture.RecordProgram(&job, u.yaml.Programs)
		}
		run := u.run
		if n == 0 {
			run = u.observed
		}
		r, err := run(job)
		if err != nil {
			return fmt.Errorf("%w; a dump of the reference will do as well: PARITY_GOLDEN_DUMP", err)
		}
		for i, about := range r.About {
			if about.NoProgram != "" {
				fmt.Fprintf(u.out, "parity: update %s: case %s: no program was recorded: %s\n", u.name, u.yaml.Cases[i].Name, sanitize.Line(about.NoProgram))
			}
		}
		if n == 0 {
			if forced, err = u.chosen(r); err != nil {
				return err
			}
		}
		if u.yaml.Use(variant) == fixture.UseJudge && u.yaml.Generation > 0 {
			if texts[variant], err = u.generate(variant, r, spoken); err != nil {
				return errors.Join(err, r.Close())
			}
		}
		if u.yaml.Use(variant) == fixture.UseJudge && len(u.yaml.Paths) > 0 {
			if along[variant], err = u.measure(variant, r); err != nil {
				return errors.Join(err, r.Close())
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
		dirs[variant] = r.Dir
	}
	if err := u.costsAlong(along); err != nil {
		return err
	}
	return u.importAll(dirs, along, texts)
}

// hasProgram reports whether the program that the reference ran is kept beside the goldens of a
// variant: of the one that judges.
func (u *update) hasProgram(variant string) bool {
	return variant == u.yaml.Reference("") && u.cfg.Bless == "" && u.yaml.Programs != fixture.ProgramOff
}

// chosen shows how the reference goes on, and returns the tokens of its decode steps, by case.
func (u *update) chosen(r *engine.Result) (forced [][][]int, err error) {
	for i, run := range r.Runs {
		if text := run.Info.ReferenceText; text != "" {
			fmt.Fprintf(u.out, "parity: %s: case %s: the reference goes on: %q\n", u.name, u.yaml.Cases[i].Name, text)
		}
		var tokens [][]int
		if u.yaml.Cases[i].Steps > 1 {
			if tokens, err = r.Generated(i); err != nil {
				return nil, err
			}
		}
		forced = append(forced, tokens)
	}
	return forced, nil
}

// importAll makes goldens of the dumps, by variant, at one stroke: no one sees a new variant next to
// an old one.
func (u *update) importAll(dirs map[string]string, along map[string]*measured, texts map[string]map[string]*dump.Run) error {
	var all []*imported
	for _, variant := range u.yaml.Variants() {
		if dirs[variant] == "" {
			continue
		}
		runs, err := store.OpenCases(dirs[variant], dump.Options{Cases: u.yaml.CaseNames(), Unjudged: !store.KeepsRuns(dirs[variant])})
		if err != nil {
			return err
		}
		u.opened = append(u.opened, runs...)
		im, err := u.choose(variant, runs)
		if err != nil {
			return err
		}
		if len(im.runs) == 0 {
			fmt.Fprintf(u.out, "parity: update %s: %s: nothing is new\n", u.name, variant)
			continue
		}
		if m := along[variant]; m != nil {
			if err := u.addOwn(im, m); err != nil {
				return err
			}
		}
		maps.Copy(im.runs, texts[variant])
		all = append(all, im)
	}
	if len(all) == 0 {
		return nil
	}
	return store.Update(u.cfg.context(), u.goldenDir(), u.waits(u.goldenDir()), func(old *store.Store) (*store.Change, error) { return u.change(old, all) })
}

// addOwn adds what was measured along paths, and the goldens that some of them keep.
func (u *update) addOwn(im *imported, m *measured) error {
	im.paths = m.paths
	runs, err := store.OpenCases(m.dir, dump.Options{Unjudged: true})
	if err != nil {
		return err
	}
	u.opened = append(u.opened, runs...)
	for _, p := range m.paths {
		i := slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == p.Golden() })
		if p.Own && u.yaml.WantsPath(p.Golden()) && i >= 0 {
			im.runs[p.Golden()] = runs[i]
		}
	}
	return nil
}

// command is how goldens are made again.
func (u *update) command() string { return "go test " + subtest.Package() + " -update" }

// choose says which goldens of a variant are made of runs.
func (u *update) choose(variant string, runs []*dump.Run) (*imported, error) {
	ref, _ := u.yaml.Variant(variant)
	im := &imported{variant: variant, runs: map[string]*dump.Run{}}
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
		if v := transformers.Edited(r.Info.Versions); v != "" {
			return nil, fmt.Errorf("%s: the run used transformers %s, and makes no goldens: run parity transformers restore, and then the reference again", r.Path, v)
		}
		if err := checkActivations(r, ref); err != nil {
			return nil, err
		}
		switch n := len(r.Steps()); {
		case im.runs[y.Name] != nil:
			return nil, fmt.Errorf("%s has the case %q twice", r.Path, y.Name)
		case n != y.Steps:
			return nil, fmt.Errorf("%s: case %s has %d steps, %s asks for %d", r.Path, y.Name, n, u.yaml.File, y.Steps)
		case u.mode == setting.UpdateNew && slices.Contains(have, y.Name):
			continue
		}
		u.checkProgram(variant, y.Name, r)
		im.runs[y.Name] = r
	}
	return im, nil
}

// checkProgram leaves out the program of a run that is not kept, or cannot be used.
func (u *update) checkProgram(variant, caseName string, r *dump.Run) {
	if r.Program == "" || !u.hasProgram(variant) {
		r.Program = ""
		return
	}
	p, err := reference.Open(r.Program, r.Entries)
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		fmt.Fprintf(u.out, "parity: update %s: case %s: its program is left out: %s\n", u.name, caseName, sanitize.Line(err.Error()))
		r.Program = ""
	}
}

// keeps reports whether a port becomes golden: what is captured, and what is kept of a generation.
func (u *update) keeps(layer, port string) bool {
	return u.yaml.Capture.Wants(layer, port) || u.yaml.Generation > 0 && layer == continuation.KeptLayer
}

// formula is by what the goldens of a variant judge where no tolerance does.
func (u *update) formula(variant string) string {
	if d, err := tensor.ParseDType(variant); err == nil && d.Size() == 2 && u.yaml.Use(variant) == fixture.UseCost {
		return compare.Cost.Rule
	}
	return ""
}

// bless makes golden what would be judged: a dump that was named, else a live run if that was asked
// for, else the recorded run. The index keeps the reason.
func (u *update) bless() error {
	dir := u.goldenDump
	switch {
	case dir != "":
	case u.isLive():
		job, err := u.candidate(nil)
		if err != nil {
			return err
		}
		r, err := u.run(job)
		if err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		dir = r.Dir
	case u.replay != "":
		dir = u.replay
	case u.yaml.Replay != "":
		dir = u.runDir(u.yaml.Replay)
	default:
		return fmt.Errorf("%s names no recorded run to bless: run the candidate with -parity.run=cpu, or name its dump with -parity.dump=DIR", u.yaml.File)
	}
	fmt.Fprintf(u.out, "parity: update %s: the candidate's run becomes golden, blessed: %s\n", u.name, u.cfg.Bless)
	return u.importAll(map[string]string{u.yaml.Variants()[0]: dir}, nil, nil)
}

// printDelta says what changes: which goldens are new and gone, and how far others moved, the
// furthest first.
func printDelta(w io.Writer, what string, d *store.Delta) {
	fmt.Fprintf(w, "parity: update %s: %d unchanged, %d moved, %d new, %d gone\n", what, d.Same, len(d.Moved), len(d.Added), len(d.Removed))
	var moved, added, removed []string
	for _, m := range d.Moved {
		moved = append(moved, m.String())
	}
	for _, k := range d.Removed {
		removed = append(removed, "gone: "+k.String())
	}
	if d.Same+len(moved)+len(removed) > 0 { // of a first update all are new
		for _, k := range d.Added {
			added = append(added, "new: "+k.String())
		}
	}
	for _, lines := range [][]string{removed, added, moved} {
		for i, line := range lines {
			if i == mostChanges {
				fmt.Fprintf(w, "  … and %d more\n", len(lines)-i)
				break
			}
			fmt.Fprintf(w, "  %s\n", sanitize.Line(line))
		}
	}
}

// accept shows what changes, and refuses that goldens go which no one said may go: a dump with other
// names, or of fewer layers, would leave a test that compares less.
func (u *update) accept(variant string, d *store.Delta) error {
	printDelta(u.out, u.name+": "+variant, d)
	if len(d.Removed) > 0 && !u.cfg.Prune {
		return fmt.Errorf("%s: %d goldens would go, see above, the first is %s: nothing is written; -parity.prune, or parity golden update --prune, lets them go",
			variant, len(d.Removed), sanitize.Line(d.Removed[0].String()))
	}
	return nil
}

// unedited refuses an update that would run an edited copy of transformers: what that computes is
// no reference.
func unedited(dump string) error {
	if dump != "" {
		return nil // whoever ran it: its run.json says with what
	}
	overlay, err := transformers.Find(".")
	if err != nil || overlay == nil {
		return err
	}
	return fmt.Errorf("goldens are not updated while transformers is edited: %s", overlay)
}
