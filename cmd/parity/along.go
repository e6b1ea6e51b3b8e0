package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/report"
)

// comparePaths judges runs along execution paths, each path by itself.
func (f *inputFlags) comparePaths(ctx context.Context, stderr io.Writer, name string) (*report.Report, error) {
	opt, _, end, err := f.begin(stderr)
	if err != nil {
		return nil, err
	}
	defer end()
	runs, closeAll, err := f.openPaths()
	if err != nil {
		return nil, err
	}
	defer closeAll()
	for _, g := range runs.Golden {
		if err := f.sameModel(opt.Diagnosis.Evidence, g); err != nil {
			return nil, err
		}
	}
	if f.Golden == "" {
		of, done, err := f.alone(stderr, runs.Programs, &opt)
		if err != nil {
			return nil, err
		}
		defer done()
		undo, err := reference.Keep(&of)
		if err != nil {
			return nil, err
		}
		defer undo()
		runs.Alone = &of
	}
	var r *report.Report
	for _, along := range byPath(runs.Actual) {
		runs.Actual = along
		p, err := paths.Compare(ctx, runs, opt)
		if err != nil {
			return nil, err
		}
		if one := p.Report(name); r == nil {
			r = one
		} else {
			r.AddPath(along[0].Info.Path, one)
		}
	}
	return r, nil
}

// byPath groups runs by their paths.
func byPath(runs []*dump.Run) (groups [][]*dump.Run) {
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g []*dump.Run) bool { return g[0].Info.Path == r.Info.Path })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// openPaths opens the dumps of the command line, at least one of which is along an execution path.
func (f *inputFlags) openPaths() (runs paths.Runs, closeAll func(), err error) {
	switch {
	case f.Injected != "":
		return runs, nil, usage("compare: --also injected=DUMP is a run of one pass, and --actual ran along an execution path")
	case f.Unquantised != "":
		return runs, nil, usage("compare: --also unquantised=DUMP is of one pass, and --actual ran along an execution path")
	case f.PadMask != "":
		return runs, nil, usage("compare: --pad-mask: say it in run.json of the run that has padding, pad_mask and pad_masks")
	}
	d, err := f.openDumps(dump.Options{Unjudged: true})
	if err != nil {
		return runs, nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	runs = paths.Runs{Golden: d[goldenRole], Actual: d[actualRole], OnePass: d["one-pass"], Golden64: d["golden64"],
		Encoded: d["noise"]}
	for _, r := range runs.Actual {
		if !slices.ContainsFunc(runs.Golden, func(g *dump.Run) bool { return !r.OtherPadding(g) }) {
			r.AlongPadding(runs.Golden...)
		}
	}
	all := slices.Concat(slices.Collect(maps.Values(d))...)
	if !slices.ContainsFunc(all, func(r *dump.Run) bool { return r.Info.AlongPath() }) {
		return runs, nil, usage("compare: --also one-pass=DUMP goes with a run along an execution path: " +
			"run.json of --actual has no passes")
	}
	of := runs.Actual
	if f.Golden != "" {
		of = runs.Golden
		if err = f.noteSameFile(runs.Actual[0]); err != nil {
			return runs, nil, err
		}
	}
	if runs.Programs, err = f.programsOf(of); err != nil {
		return runs, nil, err
	}
	return runs, func() { closePrograms(runs.Programs); d.close() }, nil
}
