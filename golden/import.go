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

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// ImportOptions says what goldens are made from.
type ImportOptions struct {
	Runs    map[string]*Run // by case: a standard run of the reference
	Variant string          // dtype in which the reference ran, or another name; "float32" if empty
	DType   string          // in which it ran, where Variant is another name; Variant if empty
	// Keep reports whether a port becomes a golden; nil keeps all.
	Keep func(layer, port string) bool
	// Inputs has, by case, what its goldens depend on: see [Provenance].Inputs.
	Inputs map[string]map[string]string
	// Provenance applies to all passes. Engine, versions, device, token ids and text are taken from
	// the run if they are not given here; pad mask, date and inputs are never taken from here.
	Provenance Provenance
	Paths      []Path           // how the reference does along execution paths
	Now        func() time.Time // for the date; nil is time.Now
	// Accept is told what changes before it does: an error of it leaves the store as it is. nil
	// accepts all.
	Accept func(*Delta) error
}

// Import writes goldens of some cases and one variant to the store in dir, which it makes if there
// is none; it does not change other goldens and files. It is atomic: whatever happens, and whoever
// reads or imports at the same time, the store has the old goldens or the new ones. It returns how
// far each golden moved.
//
// Import refuses a run that was injected, that comes from an abbreviated log, that ran in another
// type than the variant, or that comes from the candidate (engine max) without a reason in
// Provenance.Blessed. It also refuses a pass of which Keep keeps nothing, and a store whose
// manifest is damaged ([ErrCorrupt]).
func Import(ctx context.Context, dir string, opt ImportOptions) (*Delta, error) {
	deltas, err := ImportAll(ctx, dir, []ImportOptions{opt}, nil)
	if len(deltas) == 0 {
		return nil, err
	}
	return deltas[0], err
}

// ImportAll is Import of several variants at one stroke. waiting, which may be nil, is told which
// process imports at the moment, if ImportAll has to wait for one, and "" where the file system has no locks.
func ImportAll(ctx context.Context, dir string, opts []ImportOptions, waiting func(holder string)) ([]*Delta, error) {
	dir = whole.Target(dir)
	unlock, err := whole.Lock(ctx, dir, waiting)
	if err != nil {
		return nil, fmt.Errorf("golden: import: %w", err)
	}
	defer unlock()
	return importRuns(ctx, system{}, dir, opts)
}

func importRuns(ctx context.Context, d disk, dir string, opts []ImportOptions) ([]*Delta, error) {
	opts = slices.Clone(opts)
	for i := range opts {
		if err := opts[i].check(); err != nil {
			return nil, err
		}
	}
	if err := whole.Recover(d, dir); err != nil {
		return nil, fmt.Errorf("golden: import: %w", err)
	}
	old, err := open(d, dir)
	if errors.Is(err, ErrNotFound) {
		old, err = newStore(d, dir, dir, &manifest{}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (other goldens in %s would be lost: restore the manifest or delete the folder)",
			err, dir)
	}
	defer old.Close()

	var deltas []*Delta
	err = whole.Folder(d, dir, func(tmp string) error {
		m, err := writeAll(ctx, d, old, tmp, opts)
		if err != nil {
			return err
		}
		now := newStore(d, dir, tmp, m)
		for _, opt := range opts {
			delta := diff(old, now, opt.replaces)
			if opt.Accept != nil {
				if err := opt.Accept(delta); err != nil {
					return errors.Join(err, now.Close(), old.Close())
				}
			}
			deltas = append(deltas, delta)
		}
		// Neither folder may be open while it is renamed: Windows refuses that.
		return errors.Join(now.Close(), old.Close(), ctx.Err())
	})
	if err != nil {
		err = fmt.Errorf("golden: import: %w", err)
	}
	return deltas, err
}

// check fills in what was not given, and refuses what goldens cannot be made from.
func (opt *ImportOptions) check() error {
	opt.Variant = cmp.Or(opt.Variant, tensor.F32.String())
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if len(opt.Runs) == 0 {
		return errors.New("golden: import: no runs")
	}
	for name, run := range opt.Runs {
		if err := importable(name, run, *opt); err != nil {
			return fmt.Errorf("golden: import case %q from %s: %w", name, run.From, err)
		}
	}
	return nil
}

// replaces reports whether the goldens of a pass are made anew.
func (opt *ImportOptions) replaces(p *Pass) bool {
	base, ofPath := dump.CutPathCase(p.Case)
	return p.Variant == opt.Variant && (opt.Runs[p.Case] != nil || ofPath && (base == "" || opt.Runs[base] != nil))
}

// writeAll writes a store with new goldens and the other ones of old to the folder tmp.
func writeAll(ctx context.Context, d disk, old *Store, tmp string, opts []ImportOptions) (*manifest, error) {
	m := &manifest{Paths: pathsAfter(old.manifest.Paths, opts), Programs: programsAfter(old.manifest.Programs, opts)}
	gone := map[string]bool{manifestFile: true}
	kept := filesOf(m.Programs)
	for _, file := range filesOf(old.manifest.Programs) {
		gone[file] = !slices.Contains(kept, file)
	}
	for _, p := range old.manifest.Passes {
		if slices.ContainsFunc(opts, func(opt ImportOptions) bool { return opt.replaces(&p) }) {
			gone[p.File] = true
		} else {
			m.Passes = append(m.Passes, p)
		}
	}
	for _, opt := range opts {
		for _, name := range slices.Sorted(maps.Keys(opt.Runs)) {
			passes, err := writeCase(ctx, d, tmp, name, opt)
			if err != nil {
				return nil, err
			}
			for _, p := range passes {
				gone[p.File] = true
			}
			m.Passes = append(m.Passes, passes...)
			if from := opt.Runs[name].Program; from != "" {
				p, err := writeProgram(ctx, d, tmp, opt.Variant, name, from)
				if err != nil {
					return nil, err
				}
				for _, f := range programFiles(name) {
					gone[f] = true
				}
				m.Programs = append(m.Programs, p)
			}
		}
	}
	sortPrograms(m.Programs)
	slices.SortStableFunc(m.Passes, func(a, b Pass) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Case, b.Case), label.Natural(a.Step, b.Step))
	})
	err := copyTree(ctx, d, old.dir, tmp, func(rel string) bool { return !gone[rel] })
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return m, writeManifest(d, tmp, m)
}

// importable refuses runs that goldens cannot be made from.
func importable(name string, run *Run, opt ImportOptions) error {
	if !isCase(name) || !partPattern.MatchString(opt.Variant) {
		return fmt.Errorf("case %q and variant %q become file names: use letters, digits, - and _", name, opt.Variant)
	}
	if run.Injected {
		return errors.New("it is an injected run: goldens are what the reference computes by itself")
	}
	if run.Engine == "max" && opt.Provenance.Blessed == "" {
		return errors.New("it is a run of the candidate (max): goldens come from the reference, " +
			"or are blessed with a reason")
	}
	if run.Encoding != "" && run.Encoding != cmp.Or(opt.DType, opt.Variant) {
		return fmt.Errorf("it ran in %s, and cannot become the goldens %s", run.Encoding, opt.Variant)
	}
	if _, ofPath := dump.CutPathCase(name); (run.Path != "") != ofPath {
		return fmt.Errorf("it was run along %q: goldens of a case are of one pass", run.Path)
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
	prov.Attention = cmp.Or(prov.Attention, run.Attention)
	prov.Nonce = run.Nonce
	if prov.Versions == nil {
		prov.Versions = run.Versions
	}
	if prov.TokenIDs == nil {
		prov.TokenIDs = run.TokenIDs
	}
	prov.PadMask, prov.PadMasks, prov.Path, prov.Passes = run.PadMask, run.PadMasks, run.Path, run.Passes
	prov.Activations = run.Activations
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
		if len(passes) == 0 { // the text is before all steps
			p.Provenance.Texts = run.Texts
		}
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
	p.Size, p.SHA256Of = s.size, ofParts
	p.SHA256, err = p.digest(func(n int64) ([]byte, error) {
		if int64(len(s.head)) != n {
			return nil, fmt.Errorf("golden: import %s: its header has %d bytes, not %d", p.File, len(s.head), n)
		}
		return s.head, nil
	})
	return err
}
