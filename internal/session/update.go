package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
	switch {
	case u.yaml.Alone:
		return u.recordPrograms()
	case u.cfg.Bless != "":
		return u.bless()
	case u.goldenDump == "":
		return u.fromReference()
	}
	several := slices.ContainsFunc(u.yaml.Variants(), func(v string) bool { return isDir(filepath.Join(u.goldenDump, v)) })
	var all []*made
	for i, v := range u.yaml.Variants() {
		dir := filepath.Join(u.goldenDump, v)
		if i == 0 && !several {
			dir = u.goldenDump
		}
		switch {
		case dir != u.goldenDump && !isDir(dir):
			fmt.Fprintf(u.out, "parity: update %s: the dump has no %s: its goldens stay as they are\n", u.name, v)
			continue
		case store.KeepsRuns(dir):
			return fmt.Errorf("%s is a recorded run of the candidate: goldens come from the reference; if it is meant all the same, "+
				"-parity.bless=REASON makes it golden, and every report says so", filepath.ToSlash(dir))
		}
		m, err := u.fromDump(v, dir)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	return u.replace(all)
}

// fromDump opens the runs of a variant in a folder.
func (u *update) fromDump(variant, dir string) (*made, error) {
	runs, err := store.OpenCases(dir, dump.Options{Cases: u.yaml.CaseNames(), Unjudged: !store.KeepsRuns(dir)})
	if err != nil {
		return nil, err
	}
	u.opened = append(u.opened, runs...)
	return u.choose(variant, runs)
}

// fromReference runs the reference, each variant of it, and imports what it computed: all run before
// the first is kept, so that a failure changes nothing. The decode steps of all variants take the
// tokens of the first.
func (u *update) fromReference() error {
	if u.yaml.Model.Path == "" && u.yaml.Model.Oracle == "" {
		return fmt.Errorf("%s names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump", u.yaml.File)
	}
	var all []*made
	var forced [][][]int
	spoken := map[string][]int{} // by case, the tokens of the first variant
	for n, variant := range u.yaml.Variants() {
		job, err := u.reference(variant)
		if err != nil {
			return err
		}
		run := u.run
		if n == 0 {
			run = u.observed
			job.SanityTokens, job.SkipSanity = sanityTokens, u.yaml.Model.SkipSanity
		}
		for i := range forced {
			job.Cases[i].Forced = forced[i]
		}
		if u.hasProgram(variant) {
			fixture.RecordProgram(&job, u.yaml.Programs)
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
			forced, err = u.chosen(r)
		}
		m, other := u.choose(variant, r.Runs)
		if err = errors.Join(err, other); err == nil && u.yaml.Use(variant) == fixture.UseJudge {
			if err = u.generate(m, r, spoken); err == nil {
				err = u.measure(m, r.Runs)
			}
		}
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	if err := u.costsAlong(all); err != nil {
		return err
	}
	return u.replace(all)
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

// replace makes goldens of what was made, at one stroke: no one sees a new variant next to an old one.
func (u *update) replace(all []*made) error {
	all = slices.DeleteFunc(all, func(m *made) bool {
		if len(m.runs) == 0 {
			fmt.Fprintf(u.out, "parity: update %s: %s: nothing is new\n", u.name, m.variant)
		}
		return len(m.runs) == 0
	})
	if len(all) == 0 {
		return nil
	}
	return store.Update(u.cfg.context(), u.goldenDir(), u.waits(u.goldenDir()), func(old *store.Store) (*store.Change, error) { return u.change(old, all) })
}

// command is how goldens are made again.
func (u *update) command() string { return "go test " + setting.Package() + " -update" }

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
		if v := r.Info.EditedTransformers(); v != "" {
			return nil, fmt.Errorf("%s: the run used transformers %s, and makes no goldens: run parity transformers restore, and then the reference again", r.Path, v)
		}
		if err := checkActivations(r, ref); err != nil {
			return nil, err
		}
		switch n := len(r.Steps()); {
		case m.runs[y.Name] != nil:
			return nil, fmt.Errorf("%s has the case %q twice", r.Path, y.Name)
		case n != y.Steps:
			return nil, fmt.Errorf("%s: case %s has %d steps, %s asks for %d", r.Path, y.Name, n, u.yaml.File, y.Steps)
		case u.mode == setting.UpdateNew && slices.Contains(have, y.Name):
			continue
		}
		u.checkProgram(variant, y.Name, r)
		m.runs[y.Name] = r
	}
	return m, nil
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
	dir := cmp.Or(u.goldenDump, u.replay)
	if dir == "" && u.yaml.Replay != "" {
		dir = u.runDir(u.yaml.Replay)
	}
	var m *made
	switch {
	case u.goldenDump == "" && u.isLive():
		job, err := u.candidate(nil)
		if err != nil {
			return err
		}
		r, err := u.run(job)
		if err != nil {
			return err
		}
		if m, err = u.choose(u.yaml.Variants()[0], r.Runs); err != nil {
			return err
		}
	case dir == "":
		return fmt.Errorf("%s names no recorded run to bless: run the candidate with -parity.run=cpu, or name its dump with -parity.dump=DIR", u.yaml.File)
	default:
		var err error
		if m, err = u.fromDump(u.yaml.Variants()[0], dir); err != nil {
			return err
		}
	}
	fmt.Fprintf(u.out, "parity: update %s: the candidate's run becomes golden, blessed: %s\n", u.name, u.cfg.Bless)
	return u.replace([]*made{m})
}

// accept shows what changes, and refuses that goldens go which no one said may go: a dump with other
// names, or of fewer layers, would leave a test that compares less.
func (u *update) accept(variant string, d *store.Delta) error {
	fmt.Fprintf(u.out, "parity: update %s: %s: %s\n", u.name, variant, d.Summary())
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

// unedited refuses an update that would run an edited copy of transformers: what that computes is
// no reference.
func unedited(dump string) error {
	if dump != "" {
		return nil // whoever ran it: its run.json says with what
	}
	overlay, err := engine.FindOverlay(".")
	if err != nil || overlay == nil {
		return err
	}
	return fmt.Errorf("goldens are not updated while transformers is edited: %s", overlay)
}
