package golden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// ImportOptions says what goldens are made of.
type ImportOptions struct {
	Runs    map[string]*Run // by case: a standard run of the reference
	Variant string          // dtype that the reference ran in; "float32" if empty
	// Keep says which ports are captured; nil is all.
	Keep func(layer, port string) bool
	// Inputs is by case what of the fixture the goldens depend on (the Inputs of package fixture); kept for [Store.Stale].
	Inputs map[string]map[string]string
	// Provenance holds for all passes. Engine, versions, device and token ids are taken from the run where they are not given.
	Provenance Provenance
	Now        func() time.Time // for the date; nil is time.Now
}

// Import writes goldens of the given cases and one variant into the store in dir, and leaves those of others as they are. It is
// atomic: whatever happens, the store holds the old goldens or the new ones. It gives how far each golden moved.
//
// Runs that were injected, that hold shortened logs, that ran in another dtype than the variant, or that come from the candidate (engine max) without a reason in
// Provenance.Blessed are refused, and so is a pass of which nothing is captured.
func Import(ctx context.Context, fsys afero.Fs, dir string, opt ImportOptions) (*Delta, error) {
	opt.Variant = cmp.Or(opt.Variant, tensor.F32.String())
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if len(opt.Runs) == 0 {
		return nil, errors.New("golden: import: no runs")
	}
	for name, run := range opt.Runs {
		if err := importable(name, run, opt); err != nil {
			return nil, fmt.Errorf("golden: import case %q from %s: %w", name, run.From, err)
		}
	}
	replaced := func(p *Pass) bool { return p.Variant == opt.Variant && opt.Runs[p.Case] != nil }

	old, err := Open(fsys, dir)
	if errors.Is(err, ErrNotFound) {
		old, err = &Store{fs: fsys, name: dir, dir: dir, manifest: &Manifest{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (other goldens in %s would be lost: restore the manifest or delete the folder)", err, dir)
	}
	defer old.Close()

	var delta *Delta
	err = replace(fsys, dir, func(tmp string) error {
		m := &Manifest{Schema: Schema}
		gone := map[string]bool{ManifestFile: true}
		for _, p := range old.manifest.Passes {
			if replaced(&p) {
				gone[p.File] = true
			} else {
				m.Passes = append(m.Passes, p)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(opt.Runs)) {
			passes, err := writeCase(ctx, fsys, tmp, name, opt)
			if err != nil {
				return err
			}
			for _, p := range passes {
				gone[p.File] = true
			}
			m.Passes = append(m.Passes, passes...)
		}
		slices.SortStableFunc(m.Passes, func(a, b Pass) int {
			return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Case, b.Case), label.Natural(a.Step, b.Step))
		})
		// old.dir is where the goldens are now: replace has put a store of an update that died back in its place.
		if err := copyTree(ctx, fsys, filepath.Clean(dir), tmp, func(rel string) bool { return !gone[rel] }); err != nil {
			return fmt.Errorf("golden: %w", err)
		}
		if err := writeManifest(fsys, tmp, m); err != nil {
			return err
		}
		old.dir = filepath.Clean(dir)
		now := &Store{fs: fsys, name: dir, dir: tmp, manifest: m, open: map[string]*tensor.File{}}
		delta = diff(old, now, replaced)
		// Neither folder may be mapped while it is renamed: Windows refuses that.
		return errors.Join(now.Close(), old.Close(), ctx.Err())
	})
	return delta, err
}

// importable refuses runs that cannot be golden.
func importable(name string, run *Run, opt ImportOptions) error {
	if !partPattern.MatchString(name) || !partPattern.MatchString(opt.Variant) {
		return fmt.Errorf("case %q and variant %q become file names: use letters, digits, - and _", name, opt.Variant)
	}
	if run.Injected {
		return errors.New("it is an injected run: goldens are what the reference computes by itself")
	}
	if run.Engine == "max" && opt.Provenance.Blessed == "" {
		return errors.New("it is a run of the candidate (max): goldens come from the reference, or are blessed with a reason")
	}
	if run.Encoding != "" && run.Encoding != opt.Variant {
		return fmt.Errorf("it ran in %s, and cannot make the goldens %s", run.Encoding, opt.Variant)
	}
	for _, step := range run.Steps() {
		if !partPattern.MatchString(step) {
			return fmt.Errorf("step %q becomes part of a file name: use letters, digits, - and _", step)
		}
	}
	for _, p := range run.Ports {
		if p.Partial {
			return fmt.Errorf("%s shows only some of its values: dump it in full", p.Label())
		}
	}
	return nil
}

// writeCase writes one file a step.
func writeCase(ctx context.Context, fsys afero.Fs, dir, name string, opt ImportOptions) ([]Pass, error) {
	run := opt.Runs[name]
	prov := opt.Provenance
	prov.Engine = cmp.Or(prov.Engine, run.Engine)
	prov.Device = cmp.Or(prov.Device, run.Device)
	if prov.Versions == nil {
		prov.Versions = run.Versions
	}
	if prov.TokenIDs == nil {
		prov.TokenIDs = run.TokenIDs
	}
	prov.PadMask = run.PadMask
	prov.Text = cmp.Or(prov.Text, run.Text)
	prov.Date = opt.Now().UTC().Format(time.RFC3339)
	prov.Inputs = opt.Inputs[name]
	var passes []Pass
	for _, step := range run.Steps() {
		p := Pass{Variant: opt.Variant, Case: name, Step: step, File: passFile(opt.Variant, name, step), Provenance: prov}
		if err := writePass(ctx, fsys, dir, &p, run, opt.Keep); err != nil {
			return nil, err
		}
		passes = append(passes, p)
	}
	return passes, nil
}

func writePass(ctx context.Context, fsys afero.Fs, dir string, p *Pass, run *Run, keep func(layer, port string) bool) error {
	var named []tensor.Named
	for index, e := range run.Ports {
		if e.Step != p.Step || keep != nil && !keep(e.Layer, e.Port) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("golden: import: %w", err)
		}
		named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
		p.Tensors = append(p.Tensors, Record{Layer: e.Layer, Port: e.Port, Index: index,
			DType: e.Tensor.DType(), Shape: append([]int{}, e.Tensor.Shape()...), Stats: statsOf(e.Tensor)})
	}
	if len(named) == 0 {
		return fmt.Errorf("golden: import %s: nothing of the step is captured: check capture in the fixture", p.File)
	}
	s, err := create(fsys, filepath.Join(dir, filepath.FromSlash(p.File)))
	if err != nil {
		return err
	}
	ranges, err := safetensors.WriteUnique(s, named, map[string]string{"variant": p.Variant, "case": p.Case, "step": p.Step})
	if err := s.finish(err); err != nil {
		return fmt.Errorf("golden: import %s: %w", p.File, err)
	}
	for i, r := range ranges {
		t := &p.Tensors[i]
		t.Offset, t.Length, t.SHA256 = r.Offset, r.Length, r.SHA256
		if r.Name != t.Label() {
			t.Name = r.Name
		}
	}
	p.Size, p.SHA256 = s.size, s.sha256()
	return nil
}
