package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

// Update renews the goldens of all fixtures from the reference's dump, before any test runs.
func (s *Session) Update(stdout io.Writer) error {
	if s.cfg.Update == UpdateNone {
		return nil
	}
	for _, f := range s.fixtures {
		if err := f.update(s.cfg.Update, stdout); err != nil {
			return fmt.Errorf("update %s: %w", f.name, err)
		}
	}
	return nil
}

// update imports each variant that the dump folder has: DUMP/<variant>/… or, for a single one, DUMP itself (see dump.OpenCases).
func (f *Fixture) update(mode string, stdout io.Writer) error {
	yaml, err := fixture.Load(afero.NewOsFs(), f.dir)
	if err != nil {
		return err
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
func (f *Fixture) updateLive(yaml *fixture.Fixture, mode string, stdout io.Writer) error {
	if yaml.Model.Path == "" && yaml.Model.Oracle == "" {
		return fmt.Errorf("%s names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump", yaml.File)
	}
	f.yaml = yaml
	var forced [][][]int
	for n, variant := range yaml.References {
		job := f.job(engine.Torch, engine.CPU)
		job.Encoding = variant
		if n == 0 && yaml.Model.Task == fixture.TextGeneration {
			job.SanityTokens = sanityTokens
		}
		for i := range forced {
			job.Cases[i].Forced = forced[i]
		}
		r, err := f.run(job)
		if err != nil {
			return fmt.Errorf("%w; a dump of the reference will do as well: PARITY_GOLDEN_DUMP", err)
		}
		for i := range r.Runs {
			if text := r.About[i].ReferenceText; text != "" {
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
		if err := errors.Join(r.Close(), f.importVariant(yaml, variant, r.Dir, mode, stdout)); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fixture) importVariant(yaml *fixture.Fixture, variant, dir, mode string, stdout io.Writer) error {
	runs, err := dump.OpenCases(dir, dump.Options{})
	if err != nil {
		return err
	}
	defer dump.CloseAll(runs)
	opt := golden.ImportOptions{Variant: variant, Runs: map[string]*dump.Run{}, Inputs: map[string]map[string]string{},
		Keep: yaml.Capture.Wants, Provenance: golden.Provenance{Command: "go test " + Package() + " -update"}}
	folder := filepath.Join(f.dir, "golden")
	have, err := f.have(folder, variant)
	if err != nil {
		return err
	}
	if len(runs) == 1 && len(yaml.Cases) == 1 && runs[0].Info.Case == "" {
		runs[0].Info.Case = yaml.Cases[0].Name
	}
	for _, r := range runs {
		y, err := yaml.Case(r.Info.Case)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Path, err)
		}
		if e := r.Info.Encoding; e != "" && e != variant {
			return fmt.Errorf("%s: the run is %s, and cannot make the goldens %s", r.Path, e, variant)
		}
		if n := len(r.Steps()); n != y.Steps {
			return fmt.Errorf("%s: case %s has %d steps, %s asks for %d", r.Path, y.Name, n, yaml.File, y.Steps)
		}
		if mode == UpdateNew && slices.Contains(have, y.Name) {
			continue
		}
		opt.Runs[y.Name] = r
		opt.Inputs[y.Name] = yaml.Inputs(y.Name)
	}
	if len(opt.Runs) == 0 {
		fmt.Fprintf(stdout, "parity: update %s: %s: nothing is new\n", f.name, variant)
		return nil
	}
	delta, err := golden.Import(context.Background(), afero.NewOsFs(), folder, opt)
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
	s, err := golden.Open(afero.NewOsFs(), folder)
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
