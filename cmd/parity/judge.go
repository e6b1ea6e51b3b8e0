package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/goparity/goparity/internal/subtest"
)

// handOver takes a report while the tensors of its cases can be read.
type handOver func(r *report.Report, cases []judge.Case) error

// judge judges two dumps: their tokens, or their tensors, along execution paths where the candidate ran so.
func (f *inputFlags) judge(ctx context.Context, stderr io.Writer, name string, done handOver) error {
	tokens, err := f.asksTokens()
	if err != nil {
		return err
	}
	in, err := f.open(stderr)
	if err != nil {
		return err
	}
	defer in.close()
	var r *report.Report
	switch {
	case tokens || in.isGeneration():
		r, err = in.compareTokens(ctx, name)
	case in.alongPath():
		r, err = in.comparePaths(ctx, name)
	default:
		return in.compare(ctx, func(c *judge.Comparison) error { return done(c.Report(name, true), c.Cases) })
	}
	if r != nil {
		err = errors.Join(err, done(r, nil))
	}
	return err
}

// compare compares runs of one pass, and hands the comparison over while its tensors can be read.
func (in *inputs) compare(ctx context.Context, done func(*judge.Comparison) error) error {
	collectSeldom()
	cases, err := in.pair()
	if err != nil {
		return err
	}
	if in.Golden == "" {
		of, err := in.alone()
		if err != nil {
			return err
		}
		if cases, err = reference.Alone(ctx, cases, of); err != nil {
			return err
		}
	}
	var joined string
	if err := mapfile.Guard(func() error { joined = in.join(cases); return nil }); err != nil {
		return err
	}
	c, err := judge.Compare(ctx, cases, in.opt)
	if err != nil {
		return err
	}
	if joined != "" {
		c.Notes = append([]string{joined}, c.Notes...)
	}
	for _, n := range checkpoint.Unread(in.Weights...) {
		c.Note(n)
	}
	return done(c)
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
func (in *inputs) alone() (of judge.AloneOptions, err error) {
	var ports []program.Port
	for _, p := range in.programs {
		ports = append(ports, p.Ports...)
	}
	for _, p := range in.opt.Scope {
		asks := coverage.Demand{Within: []*glob.Pattern{p}}.Asks
		if !slices.ContainsFunc(ports, func(at program.Port) bool { return asks(at.Layer) }) {
			return of, usage("--scope %q matches no layer of the program", p)
		}
	}
	of = judge.AloneOptions{Options: in.opt, Wants: coverage.Demand{Within: in.opt.Scope}.Asks}
	of.Progress = in.progress("replaying", 0)
	undo, err := reference.Keep(&of)
	if err == nil {
		in.onClose(undo)
	}
	return of, err
}

// join joins what the names leave on both sides, where no one said by --names what belongs together. It returns a
// remark on the rules, "" where there are none.
func (in *inputs) join(cases []judge.Case) string {
	if in.Golden == "" || in.Names != "" {
		return ""
	}
	var rules []match.Proposed
	for i := 0; i < len(cases) && len(rules) == 0; i++ {
		rules = byValue(cases[i], in.opt.Match)
	}
	if len(rules) == 0 {
		return ""
	}
	layers, with := 0, in.opt.Match
	with.Rules = slices.Clone(with.Rules)
	for _, r := range rules {
		layers += r.Pairs
		with.Rules = append(with.Rules, r.Rule)
	}
	for _, other := range cases { // of the same two models
		if _, err := other.Match(other.Actual, with); err != nil {
			return ""
		}
	}
	in.opt.Match = with
	return fmt.Sprintf("names: %d layers were joined by their values; %s writes the rules to a file, and parity compare --names FILE judges by it",
		layers, subtest.Command("parity", "names", in.Golden, in.Actual, "-o", "names.yaml"))
}

// byValue returns the rules of parity names that join what the names leave on both sides: those for which equal values
// speak, not only order and shape. What is wrong is said where the runs are compared.
func byValue(k judge.Case, opt match.Options) []match.Proposed {
	res, err := k.Match(k.Actual, opt)
	if err != nil {
		return nil
	}
	var golden, actual bool
	for _, g := range res.Gaps {
		golden, actual = golden || len(g.Golden) > 0, actual || len(g.Actual) > 0
	}
	if !golden || !actual {
		return nil
	}
	p, err := k.Propose(opt)
	if err != nil || p.Foreign != "" {
		return nil
	}
	return slices.DeleteFunc(p.Rules, func(r match.Proposed) bool { return r.Sure == match.Possible })
}

// alongPath reports whether a run is along an execution path, as a run of one pass is that is padded otherwise than
// the golden.
func (in *inputs) alongPath() bool {
	golden := in.runs[goldenRole]
	for _, r := range in.runs[actualRole] {
		if golden != nil && !slices.ContainsFunc(golden, func(g *dump.Run) bool { return !r.OtherPadding(g) }) {
			r.AlongPadding(golden...)
		}
	}
	return in.OnePass != "" || in.anyAlongPath()
}

func (in *inputs) anyAlongPath() bool {
	return slices.ContainsFunc(in.all(), func(r *dump.Run) bool { return r.Info.AlongPath() })
}

// comparePaths judges runs along execution paths, each path by itself.
func (in *inputs) comparePaths(ctx context.Context, name string) (r *report.Report, err error) {
	runs, err := in.pathRuns()
	if err != nil {
		return nil, err
	}
	byPath := map[string][]*dump.Run{}
	var order []string
	for _, a := range in.runs[actualRole] {
		if byPath[a.Info.Path] == nil {
			order = append(order, a.Info.Path)
		}
		byPath[a.Info.Path] = append(byPath[a.Info.Path], a)
	}
	for _, along := range order {
		runs.Actual = byPath[along]
		p, err := paths.Compare(ctx, runs, in.opt)
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

// pathRuns are the dumps of the command line, at least one of which is along an execution path.
func (in *inputs) pathRuns() (runs paths.Runs, err error) {
	switch {
	case in.Injected != "" || in.Unquantised != "":
		return runs, usage("compare: --also injected=DUMP and --also unquantised=DUMP are of one pass, and the candidate ran along an execution path")
	case in.PadMask != "":
		return runs, usage("compare: the candidate ran along an execution path: its run.json says what is padding, in pad_mask and pad_masks, not --assume")
	case !in.anyAlongPath():
		return runs, usage("compare: --also one-pass=DUMP goes with a run along an execution path, and run.json of the candidate has no passes")
	}
	if err := cmp.Or(in.ready(), in.openPrograms(in.cases())); err != nil {
		return runs, err
	}
	runs = paths.Runs{Golden: paths.Goldens{Standard: in.runs[goldenRole], Float64: in.runs["golden64"],
		Encoded: in.runs["noise"], Programs: in.programs}, OnePass: in.runs["one-pass"]}
	if in.Golden == "" {
		of, err := in.alone()
		runs.Alone = &of
		return runs, err
	}
	return runs, nil
}
