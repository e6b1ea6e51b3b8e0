package session

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/transformers"
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
		if err := f.update(s.cfg.Update, stdout); err != nil {
			return errors.Join(fmt.Errorf("update %s: %w", f.name, err), writeStatus(s.cfg.Out, f.name, err))
		}
	}
	return nil
}

// update imports each variant that the dump folder has: DUMP/<variant>/… or, for a single one, DUMP itself (see dump.OpenCases).
func (f *Fixture) update(mode setting.Update, stdout io.Writer) error {
	yaml, err := fixture.Load(f.dir)
	if err != nil {
		return err
	}
	if f.cfg.Bless != "" {
		return f.bless(yaml, mode, stdout)
	}
	if f.goldenDump == "" {
		return f.updateLive(yaml, mode, stdout)
	}
	dirs := map[string]string{}
	for _, v := range yaml.References {
		if dir := filepath.Join(f.goldenDump, v); isDir(dir) {
			dirs[v] = dir
		}
	}
	if len(dirs) == 0 {
		dirs[yaml.References[0]] = f.goldenDump
	}
	for _, v := range yaml.References {
		if dirs[v] == "" {
			fmt.Fprintf(stdout, "parity: update %s: the dump has no %s: its goldens stay as they are\n", f.name, v)
			continue
		}
		if err := f.importVariant(yaml, v, dirs[v], mode, stdout); err != nil {
			return err
		}
	}
	return nil
}

// updateLive runs the reference, each variant of it, and imports what it computed. The decode steps of all variants take the tokens of the first.
func (f *Fixture) updateLive(yaml *fixture.Fixture, mode setting.Update, stdout io.Writer) error {
	if yaml.Model.Path == "" && yaml.Model.Oracle == "" {
		return fmt.Errorf("%s names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump", yaml.File)
	}
	f.yaml = yaml
	dirs := make([]string, len(yaml.References)) // all are run before the first is kept: a failure leaves all goldens as they were
	var forced [][][]int
	for n, variant := range yaml.References {
		job := f.job(engine.Torch, engine.CPU)
		job.Encoding = variant
		if n == 0 {
			job.SanityTokens, job.SkipSanity = sanityTokens, yaml.Model.SkipSanity
		}
		for i := range forced {
			job.Cases[i].Forced = forced[i]
		}
		run := f.run
		if n == 0 {
			run = f.observed
		}
		r, err := run(job)
		if err != nil {
			return fmt.Errorf("%w; a dump of the reference will do as well: PARITY_GOLDEN_DUMP", err)
		}
		for i := range r.Runs {
			if text := r.Runs[i].Info.ReferenceText; text != "" {
				fmt.Fprintf(stdout, "parity: %s: case %s: the reference goes on: %q\n", f.name, yaml.Cases[i].Name, text)
			}
			if n == 0 && yaml.Cases[i].Steps > 1 {
				tokens, err := r.Generated(i)
				if err != nil {
					return err
				}
				forced = append(forced, tokens)
			} else if n == 0 {
				forced = append(forced, nil)
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
		dirs[n] = r.Dir
	}
	for n, variant := range yaml.References {
		if err := f.importVariant(yaml, variant, dirs[n], mode, stdout); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fixture) importVariant(yaml *fixture.Fixture, variant, dir string, mode setting.Update, stdout io.Writer) error {
	d, err := golden.OpenDump(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	opt := golden.ImportOptions{Variant: variant, Runs: map[string]*golden.Run{}, Inputs: map[string]map[string]string{},
		Keep: yaml.Capture.Wants, Provenance: golden.Provenance{Command: "go test " + Package() + " -update", Blessed: f.cfg.Bless}}
	folder := f.goldenDir()
	have, err := f.have(folder, variant)
	if err != nil {
		return err
	}
	for name, r := range d.Runs {
		if name == "" && len(d.Runs) == 1 && len(yaml.Cases) == 1 {
			name = yaml.Cases[0].Name // a dump that does not say: there is only one case
		}
		y, err := yaml.Case(name)
		if err != nil {
			return fmt.Errorf("%s: %w", r.From, err)
		}
		if v := r.Versions["transformers"]; strings.HasSuffix(v, transformers.Mark) {
			return fmt.Errorf("%s: the run used transformers %s, and makes no goldens: run parity transformers restore, and then the reference again", r.From, v)
		}
		if n := len(r.Steps()); n != y.Steps {
			return fmt.Errorf("%s: case %s has %d steps, %s asks for %d", r.From, y.Name, n, yaml.File, y.Steps)
		}
		if mode == setting.UpdateNew && slices.Contains(have, y.Name) {
			continue
		}
		opt.Runs[y.Name] = r
		opt.Inputs[y.Name] = yaml.Inputs(y.Name)
	}
	if len(opt.Runs) == 0 {
		fmt.Fprintf(stdout, "parity: update %s: %s: nothing is new\n", f.name, variant)
		return nil
	}
	delta, err := golden.Import(f.cfg.context(), folder, opt)
	if err != nil {
		return err
	}
	printDelta(stdout, f.name+": "+variant, delta)
	return nil
}

// printDelta says how far the goldens moved, the furthest first.
func printDelta(w io.Writer, what string, d *golden.Delta) {
	fmt.Fprintf(w, "parity: update %s: %d unchanged, %d moved, %d new, %d gone\n", what, d.Same, len(d.Moved), len(d.Added), len(d.Removed))
	const most = 20
	for i, m := range d.Moved {
		if i == most {
			fmt.Fprintf(w, "  … and %d that moved less\n", len(d.Moved)-most)
			break
		}
		fmt.Fprintf(w, "  %s\n", m)
	}
}

// have lists the cases of a variant that have goldens.
func (f *Fixture) have(folder, variant string) (cases []string, err error) {
	s, err := golden.Open(folder)
	if errors.Is(err, golden.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, p := range s.Passes() {
		if p.Variant == variant && !slices.Contains(cases, p.Case) {
			cases = append(cases, p.Case)
		}
	}
	return cases, nil
}
