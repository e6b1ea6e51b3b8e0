package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/coverage"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/subtest"
)

// handOver takes a report while the tensors of its cases can be read.
type handOver func(r *report.Report, cases []judge.Case) error

// judge judges two dumps: their tokens, or their tensors, along execution paths where the candidate ran so.
func (f *inputFlags) judge(ctx context.Context, stderr io.Writer, name string, done handOver) error {
	tokens, err := f.generates()
	if err != nil {
		return err
	}
	var r *report.Report
	switch {
	case tokens:
		r, err = f.compareTokens(ctx, name)
	case f.OnePass != "":
		r, err = f.comparePaths(ctx, stderr, name)
	default:
		err = f.compare(ctx, stderr, func(c *judge.Comparison, _ search.Evidence) error {
			return done(c.Report(name, true), c.Cases)
		})
		if errors.Is(err, dump.ErrUnjudged) {
			r, err = f.comparePaths(ctx, stderr, name)
		}
	}
	if r != nil {
		err = errors.Join(err, done(r, nil))
	}
	return err
}

// compare opens the dumps, compares them, and hands the comparison over while its tensors can be read.
func (f *inputFlags) compare(ctx context.Context, stderr io.Writer, done func(*judge.Comparison, search.Evidence) error) error {
	collectSeldom()
	opt, end, err := f.begin(stderr)
	if err != nil {
		return err
	}
	defer end()
	cases, closeAll, err := f.open()
	if err != nil {
		return err
	}
	defer closeAll()
	evidence := opt.Diagnosis.Evidence
	for _, k := range cases {
		if err := f.sameModel(evidence, k.Golden); err != nil {
			return err
		}
	}
	if f.Golden == "" {
		var programs []*program.Program
		for _, k := range cases {
			programs = append(programs, k.Program)
		}
		of, bar, err := alone(opt, programs, stderr)
		if err != nil {
			return err
		}
		made, undo, err := reference.Alone(ctx, cases, of)
		bar.done()
		if err != nil {
			return err
		}
		defer undo()
		cases = made
	}
	var joined string
	err = mapfile.Guard(func() error { joined = f.byValue(cases, &opt.Match); return nil })
	if err != nil {
		return err
	}
	c, err := judge.Compare(ctx, cases, opt)
	if err != nil {
		return err
	}
	if joined != "" {
		c.Notes = append([]string{joined}, c.Notes...)
	}
	for _, n := range checkpoint.Unread(f.Weights...) {
		c.Note(n)
	}
	return done(c, evidence)
}

// mostMemory is up to how many bytes memory is collected seldom, when it has grown by so many percent. Pieces that are
// replayed make many small tensors: collecting them took a quarter of the time, November 2026.
const mostMemory, seldom = 3 << 29, 300

func collectSeldom() {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(mostMemory)
		debug.SetGCPercent(seldom)
	}
}

// alone says how goldens are made of programs and the candidate's own tensors: those that are in the scope.
func alone(opt judge.Options, programs []*program.Program, stderr io.Writer) (of judge.AloneOptions, bar *progress, err error) {
	for _, p := range opt.Scope {
		asks := coverage.Demand{Within: []*glob.Pattern{p}}.Asks
		if !slices.ContainsFunc(programs, func(of *program.Program) bool {
			return slices.ContainsFunc(of.Ports, func(at program.Port) bool { return asks(at.Layer) })
		}) {
			return of, nil, usage("--scope %q matches no layer of the program", p)
		}
	}
	bar = newReplaying(stderr)
	of = judge.AloneOptions{Options: opt, Wants: coverage.Demand{Within: opt.Scope}.Asks}
	of.Progress = bar.set
	return of, bar, nil
}

// byValue joins what the names leave on both sides, where no one said by --names what belongs
// together: by the rules of parity names for which equal values speak. It returns a remark on them,
// "" where there are none. Rules for which only order and shape speak are proposed and not taken.
func (f *inputFlags) byValue(cases []judge.Case, opt *match.Options) string {
	if f.Golden == "" || f.Names != "" {
		return ""
	}
	i := slices.IndexFunc(cases, func(k judge.Case) bool { return bothLeft(k, *opt) })
	if i < 0 {
		return ""
	}
	p, err := cases[i].Propose(*opt)
	if err != nil || p.Foreign != "" {
		return "" // what is wrong is said where the runs are compared
	}
	layers, with := 0, *opt
	with.Rules = slices.Clone(opt.Rules)
	for _, r := range proven(p.Rules) {
		layers += r.Pairs
		with.Rules = append(with.Rules, r.Rule)
	}
	for _, other := range cases { // of the same two models
		if _, err := other.Match(other.Actual, with); err != nil {
			return ""
		}
	}
	if len(with.Rules) == len(opt.Rules) {
		return ""
	}
	*opt = with
	return fmt.Sprintf("names: %d layers were joined by their values; %s writes the rules to a file, and parity compare --names FILE judges by it",
		layers, subtest.Command("parity", "names", f.Golden, f.Actual, "-o", "names.yaml"))
}

// bothLeft reports whether both sides have layers without a partner that nothing explains.
func bothLeft(k judge.Case, opt match.Options) bool {
	res, err := k.Match(k.Actual, opt)
	if err != nil {
		return false
	}
	var golden, actual bool
	for _, g := range res.Gaps {
		golden, actual = golden || len(g.Golden) > 0, actual || len(g.Actual) > 0
	}
	return golden && actual
}

// proven returns the rules for which equal values speak.
func proven(rules []match.Proposed) []match.Proposed {
	return slices.DeleteFunc(slices.Clone(rules), func(r match.Proposed) bool { return r.Sure == match.Possible })
}

// comparePaths judges runs along execution paths, each path by itself.
func (f *inputFlags) comparePaths(ctx context.Context, stderr io.Writer, name string) (r *report.Report, err error) {
	opt, end, err := f.begin(stderr)
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
		of, bar, err := alone(opt, runs.Programs, stderr)
		if err != nil {
			return nil, err
		}
		defer bar.done()
		undo, err := reference.Keep(&of)
		if err != nil {
			return nil, err
		}
		defer undo()
		runs.Alone = &of
	}
	byPath := map[string][]*dump.Run{}
	var order []string
	for _, a := range runs.Actual {
		if byPath[a.Info.Path] == nil {
			order = append(order, a.Info.Path)
		}
		byPath[a.Info.Path] = append(byPath[a.Info.Path], a)
	}
	for _, along := range order {
		runs.Actual = byPath[along]
		p, err := paths.Compare(ctx, runs, opt)
		if err != nil {
			return nil, err
		}
		if one := p.Report(name); r == nil {
			r = one
		} else {
			r.AddPath(along, one)
		}
	}
	return r, nil
}

// openPaths opens the dumps of the command line, at least one of which is along an execution path.
func (f *inputFlags) openPaths() (runs paths.Runs, closeAll func(), err error) {
	switch {
	case f.Injected != "" || f.Unquantised != "":
		return runs, nil, usage("compare: --also injected=DUMP and --also unquantised=DUMP are of one pass, and the candidate ran along an execution path")
	case f.PadMask != "":
		return runs, nil, usage("compare: the candidate ran along an execution path: its run.json says what is padding, in pad_mask and pad_masks, not --assume")
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
		return runs, nil, usage("compare: --also one-pass=DUMP goes with a run along an execution path, and run.json of the candidate has no passes")
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
