package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// judge judges two dumps: their tokens or tensors. It returns the cases whose tensors were compared in one pass.
func (f *inputFlags) judge(ctx context.Context, stderr io.Writer, name string) (*report.Report, []judge.Case, error) {
	tokens, tensors, err := f.asks()
	if err != nil {
		return nil, nil, err
	}
	in, err := f.open(stderr)
	defer in.close()
	if err != nil {
		return nil, nil, err
	}
	generated := func(r *dump.Run) bool { return r.Info.Generation != nil }
	switch {
	case tokens || !tensors && slices.ContainsFunc(in.runs[goldenRole], generated):
		r, err := in.compareTokens(ctx, name)
		return r, nil, err
	case in.alongPath():
		r, err := in.comparePaths(ctx, name)
		return r, nil, err
	}
	c, err := in.compare(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.Report(name, true), c.Cases, nil
}

func (in *inputs) compare(ctx context.Context) (*judge.Comparison, error) {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(mostMemory)
		debug.SetGCPercent(seldom)
	}
	cases, err := in.pair()
	if err != nil {
		return nil, err
	}
	if in.Golden == "" {
		of, err := in.alone()
		if err != nil {
			return nil, err
		}
		if cases, err = session.Alone(ctx, cases, of); err != nil {
			return nil, err
		}
	}
	var joined []string
	if err := mapfile.Guard(func() error { joined = in.join(cases); return nil }); err != nil {
		return nil, err
	}
	c, err := judge.Compare(ctx, cases, in.opt)
	if err != nil {
		return nil, err
	}
	c.Notes = append(joined, c.Notes...)
	for _, n := range checkpoint.Unread(in.Weights...) {
		c.Note(n)
	}
	return c, nil
}

// mostMemory is up to how many bytes memory is collected seldom, when it has grown by so many percent. Pieces that are
// replayed make many small tensors: collecting them took a quarter of the time, November 2026.
const mostMemory, seldom = 3 << 29, 500

// alone says how goldens are made of programs and the candidate's own tensors: those that are in the scope.
func (in *inputs) alone() (of judge.AloneOptions, err error) {
	var ports []program.Port
	for _, p := range in.programs {
		ports = append(ports, p.Ports...)
	}
	for _, p := range in.opt.Scope {
		asks := judge.Scope{p}.Asks
		if !slices.ContainsFunc(ports, func(at program.Port) bool { return asks(at.Layer) }) {
			return of, usage("--scope %q matches no layer of the program", p)
		}
	}
	of = judge.AloneOptions{Options: in.opt, Wants: in.opt.Scope.Asks}
	of.Progress = in.progress("replaying", 0)
	undo, err := of.Spill()
	if err == nil {
		in.onClose(undo)
	}
	return of, err
}

// join joins by values what the names leave on both sides, where no --names says how, and returns a remark on it.
func (in *inputs) join(cases []judge.Case) []string {
	if in.Golden == "" || in.Names != "" {
		return nil
	}
	found := &match.Proposal{}
	for i := 0; i < len(cases) && len(found.Rules) == 0; i++ {
		found.Rules = byValue(cases[i], in.opt.Match)
	}
	with, err := joinAll(cases, in.opt.Match, found)
	if len(found.Rules) == 0 || err != nil {
		return nil
	}
	layers := 0
	for _, r := range found.Rules {
		layers += r.Pairs
	}
	in.opt.Match = with
	command := setting.Command("parity", "names", in.Golden, in.Actual, "-o", "names.yaml")
	return []string{fmt.Sprintf("names: %d layers were joined by their values; %s writes the rules to a file, "+
		"and parity compare --names FILE judges by it", layers, command)}
}

// joinAll adds rules, which must join all cases: they are of the same two models.
func joinAll(cases []judge.Case, opt match.Options, found *match.Proposal) (match.Options, error) {
	opt.Rules = slices.Concat(opt.Rules, found.MatchRules())
	for _, k := range cases {
		if _, err := k.Match(k.Actual, opt); err != nil {
			return opt, err
		}
	}
	return opt, nil
}

// byValue returns rules for what the names leave on both sides: those that equal values show, not order and shape alone.
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

// alongPath reports whether a run is along an execution path; so is one of one pass that is padded otherwise.
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

// asks says whether tokens or something of tensors is asked for. Without either the golden decides.
func (f *inputFlags) asks() (tokens, tensors bool, err error) {
	tokens = f.Tokens != nil || paths.IsForeign(f.Golden) || paths.IsForeign(f.Actual)
	rest := f.Inputs
	rest.Golden, rest.Actual, rest.Names, rest.Config, rest.Encoding, rest.Raw, rest.FP8 = "", "", "", "", "", "", ""
	rest.Weights, rest.Tokens = nil, nil
	switch ofTensors := rest.Args(); {
	case tokens && len(ofTensors) > 0:
		err = usage("compare: the tokens of a generation are judged, and %s is about tensors", ofTensors[0])
	case f.Tokens != nil && *f.Tokens < 0:
		err = usage("--tokens %d: want how many tokens are judged, 0 for all", *f.Tokens)
	default:
		tensors = len(ofTensors) > 0
	}
	return tokens, tensors, err
}

func (in *inputs) compareTokens(ctx context.Context, name string) (all *report.Report, err error) {
	opt := paths.ContinuationOptions{Judge: in.opt, Encoding: in.compute}
	if in.Tokens != nil {
		opt.Tokens = *in.Tokens
	}
	golden, actual, err := in.sides()
	if err != nil {
		return nil, err
	}
	for i, g := range golden {
		o, err := paths.CompareContinuation(ctx, g, actual[i], opt)
		wrong := (*paths.SideError)(nil)
		var one *report.Report
		switch {
		case err == nil:
			one = o.Report(name)
			if o.Fails() {
				opt.Judge.Diagnosis.Mode = setting.DiagnoseOff // one cause is enough
			}
		case errors.As(err, &wrong):
			one = failed(name, err)
		default:
			return nil, err
		}
		if all == nil {
			all = one
		} else {
			all.AddGeneration(one)
		}
	}
	if all.Verdict == report.Error {
		return all, errors.New(all.Error)
	}
	if sameFile(in.Golden, in.Actual) {
		all.Notes = append(all.Notes, sameDump)
	}
	return all, nil
}

// sides reads the texts of both sides, in the order of the golden's. A side without runs is what another tool wrote.
func (in *inputs) sides() (golden, actual []*paths.Side, err error) {
	goldens, actuals := in.runs[goldenRole], in.runs[actualRole]
	if goldens == nil {
		golden, err = paths.ReadForeign(in.Golden, nil)
	}
	for _, r := range goldens {
		s, err := paths.OpenGolden(r, caseOf(actuals, r.Info.Case, len(goldens)))
		if err != nil {
			return nil, nil, err
		}
		golden = append(golden, s)
	}
	if err != nil {
		return nil, nil, err
	}
	if actuals == nil {
		actual, err = paths.ReadForeign(in.Actual, golden)
		return golden, actual, err
	}
	for i, g := range golden {
		r := caseOf(actuals, g.Case, len(golden))
		if r == nil && goldens == nil && len(actuals) == len(golden) { // the other tool knows no names
			r = actuals[i]
		}
		if r == nil {
			return nil, nil, fmt.Errorf("%s has no case %q, it has %s", in.Actual, g.Case, dump.CaseNames(actuals))
		}
		s, err := paths.OpenSide(r, g)
		if err != nil {
			return nil, nil, err
		}
		g.Case = cmp.Or(g.Case, s.Case, filepath.Base(filepath.Clean(in.Golden)))
		actual = append(actual, s)
	}
	return golden, actual, nil
}
