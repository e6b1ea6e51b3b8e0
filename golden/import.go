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

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// ImportOptions says what goldens are made from.
type ImportOptions struct {
	Runs    map[string]*Run // by case: a standard run of the reference
	Variant string          // dtype in which the reference ran; "float32" if empty
	// Keep reports whether a port becomes a golden; nil keeps all.
	Keep func(layer, port string) bool
	// Inputs has, by case, what its goldens depend on: see [Provenance].Inputs.
	Inputs map[string]map[string]string
	// Provenance applies to all passes. Engine, versions, device, token ids and text are taken from
	// the run if they are not given here; pad mask, date and inputs are never taken from here.
	Provenance Provenance
	Now        func() time.Time // for the date; nil is time.Now
}

// Import writes goldens of some cases and one variant to the store in dir, which it makes if there
// is none; it does not change other goldens and files. It is atomic: whatever happens, the store
// has the old goldens or the new ones. It returns how far each golden moved.
//
// Import refuses a run that was injected, that comes from an abbreviated log, that ran in another
// type than the variant, or that comes from the candidate (engine max) without a reason in
// Provenance.Blessed. It also refuses a pass of which Keep keeps nothing, and a store whose
// manifest is damaged ([ErrCorrupt]).
func Import(ctx context.Context, dir string, opt ImportOptions) (*Delta, error) {
	return importRuns(ctx, system{}, dir, opt)
}

func importRuns(ctx context.Context, d disk, dir string, opt ImportOptions) (*Delta, error) {
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

	old, err := open(d, dir)
	if errors.Is(err, ErrNotFound) {
		old, err = &Store{disk: d, name: dir, dir: dir, manifest: &manifest{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (other goldens in %s would be lost: restore the manifest or delete the folder)",
			err, dir)
	}
	defer old.Close()

	var delta *Delta
	err = replace(d, dir, func(tmp string) error {
		m := &manifest{Schema: schema}
		gone := map[string]bool{manifestFile: true}
		for _, p := range old.manifest.Passes {
			if replaced(&p) {
				gone[p.File] = true
			} else {
				m.Passes = append(m.Passes, p)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(opt.Runs)) {
			passes, err := writeCase(ctx, d, tmp, name, opt)
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
		// The files are in dir, not in old.dir: if an earlier update died, replace has moved the
		// store back.
		if err := copyTree(ctx, d, filepath.Clean(dir), tmp, func(rel string) bool { return !gone[rel] }); err != nil {
			return fmt.Errorf("golden: %w", err)
		}
		if err := writeManifest(d, tmp, m); err != nil {
			return err
		}
		old.dir = filepath.Clean(dir)
		now := &Store{disk: d, name: dir, dir: tmp, manifest: m, open: map[string]*tensor.File{}}
		delta = diff(old, now, replaced)
		// Neither folder may be mapped while it is renamed: Windows refuses that.
		return errors.Join(now.Close(), old.Close(), ctx.Err())
	})
	return delta, err
}

// importable refuses runs that goldens cannot be made from.
func importable(name string, run *Run, opt ImportOptions) error {
	if !partPattern.MatchString(name) || !partPattern.MatchString(opt.Variant) {
		return fmt.Errorf("case %q and variant %q become file names: use letters, digits, - and _", name, opt.Variant)
	}
	if run.Injected {
		return errors.New("it is an injected run: goldens are what the reference computes by itself")
	}
	if run.Engine == "max" && opt.Provenance.Blessed == "" {
		return errors.New("it is a run of the candidate (max): goldens come from the reference, " +
			"or are blessed with a reason")
	}
	if run.Encoding != "" && run.Encoding != opt.Variant {
		return fmt.Errorf("it ran in %s, and cannot become the goldens %s", run.Encoding, opt.Variant)
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

// writeCase writes a file for each step.
func writeCase(ctx context.Context, d disk, dir, name string, opt ImportOptions) ([]Pass, error) {
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
	indices := map[string][]int{} // of the ports of each step
	for i, port := range run.Ports {
		indices[port.Step] = append(indices[port.Step], i)
	}
	for _, step := range run.Steps() {
		p := Pass{Variant: opt.Variant, Case: name, Step: step, File: passFile(opt.Variant, name, step),
			Provenance: prov}
		if err := writePass(ctx, d, dir, &p, run, indices[step], opt.Keep); err != nil {
			return nil, err
		}
		passes = append(passes, p)
	}
	if run.changed != nil {
		if err := run.changed(); err != nil {
			return nil, fmt.Errorf("golden: import case %q from %s: %w", name, run.From, err)
		}
	}
	return passes, nil
}

func writePass(ctx context.Context, d disk, dir string, p *Pass, run *Run, indices []int,
	keep func(layer, port string) bool) error {
	var named []tensor.Named
	for _, index := range indices {
		e := run.Ports[index]
		if keep != nil && !keep(e.Layer, e.Port) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("golden: import: %w", err)
		}
		stats, err := statsOf(e.Tensor)
		if err != nil {
			return fmt.Errorf("golden: import %s: %w", p.File, err)
		}
		named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
		p.Tensors = append(p.Tensors, Record{Layer: e.Layer, Port: e.Port, Index: index,
			DType: e.Tensor.DType(), Shape: append([]int{}, e.Tensor.Shape()...), Stats: stats})
	}
	if len(named) == 0 {
		return fmt.Errorf("golden: import %s: nothing of the step is captured: check capture in the fixture", p.File)
	}
	s, err := create(d, filepath.Join(dir, filepath.FromSlash(p.File)))
	if err != nil {
		return err
	}
	ranges, err := safetensors.WriteUnique(s, named,
		map[string]string{"variant": p.Variant, "case": p.Case, "step": p.Step})
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
