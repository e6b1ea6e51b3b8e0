package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/report"
)

// report compares the dumps, along execution paths where the candidate ran so.
func (f *inputFlags) report(ctx context.Context, stderr io.Writer, name string) (r *report.Report, err error) {
	if f.OnePass == "" {
		err = f.compare(ctx, stderr, func(c compared) error {
			r = c.Report(name, true)
			return nil
		})
	}
	if f.OnePass != "" || errors.Is(err, dump.ErrUnjudged) {
		r, err = f.comparePaths(ctx, stderr, name)
	}
	return r, err
}

// comparePaths judges runs along execution paths, each path by itself.
func (f *inputFlags) comparePaths(ctx context.Context, stderr io.Writer, name string) (*report.Report, error) {
	switch {
	case f.Injected != "":
		return nil, usage("compare: --injected is a run of one pass: it cannot stand beside a run along an execution path")
	case f.PadMask != "":
		return nil, usage("compare: --pad-mask: say it in run.json of the run that has padding, pad_mask and pad_masks")
	}
	opt, err := f.options()
	if err != nil {
		return nil, err
	}
	runs, closeAll, err := f.openPaths()
	if err != nil {
		return nil, err
	}
	defer closeAll()
	evidence, closeEvidence, err := f.evidence()
	if err != nil {
		return nil, err
	}
	defer closeEvidence()
	for _, g := range runs.Golden {
		if err := f.sameModel(evidence, g); err != nil {
			return nil, err
		}
	}
	opt.Diagnosis = judge.Diagnosis{Mode: f.diagnose, Evidence: evidence}
	bar := newProgress(stderr)
	defer bar.done()
	opt.Progress = bar.set
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
		if scope := (*judge.ScopeError)(nil); errors.As(err, &scope) {
			return nil, usage("%v", err)
		} else if err != nil {
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
	if f.Unquantised != "" {
		return runs, nil, usage("compare: --unquantised is of one pass, and --actual ran along an execution path")
	}
	var opened []*dump.Run
	closeAll = func() { dump.CloseAll(opened) }
	for _, d := range []struct {
		path string
		to   *[]*dump.Run
	}{{f.Golden, &runs.Golden}, {f.Actual, &runs.Actual}, {f.OnePass, &runs.OnePass}, {f.Golden64, &runs.Golden64}, {f.Noise, &runs.Encoded}} {
		if d.path == "" {
			continue
		}
		if *d.to, err = f.runs(d.path, dump.Options{Unjudged: true}, opened); err != nil {
			closeAll()
			return runs, nil, err
		}
		opened = append(opened, *d.to...)
	}
	for _, r := range runs.Actual {
		if !slices.ContainsFunc(runs.Golden, func(g *dump.Run) bool { return !r.OtherPadding(g) }) {
			r.AlongPadding(runs.Golden...)
		}
	}
	if !slices.ContainsFunc(opened, func(r *dump.Run) bool { return r.Info.AlongPath() }) {
		err = usage("compare: --one-pass stands beside a run along an execution path: run.json of --actual has no passes")
	}
	var cases []judge.Case
	for _, r := range runs.Actual {
		cases = append(cases, judge.Case{Actual: r})
	}
	if err == nil {
		err = f.asked(cases)
	}
	if err == nil && f.Golden != "" {
		err = f.remarks(runs.Actual[0])
	}
	if err != nil {
		closeAll()
		return runs, nil, err
	}
	closePrograms := func() {
		for _, p := range runs.Programs {
			p.Close()
		}
	}
	if f.Golden == "" {
		runs.Programs, err = f.programsOf(runs.Actual)
	} else {
		runs.Programs = make([]*program.Program, len(runs.Golden))
		closePrograms, err = f.programs(runs.Golden, func(i int, p *program.Program) { runs.Programs[i] = p })
	}
	if err != nil {
		closeAll()
		return runs, nil, err
	}
	return runs, func() { closePrograms(); dump.CloseAll(opened) }, nil
}
