package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
)

// generates reports whether tokens are judged: where another tool wrote them, where --tokens is given, or where the golden
// is of a generation and nothing is asked of tensors.
func (f *inputFlags) generates() (bool, error) {
	rest := ofTensors(f.Inputs)
	foreign := continuation.IsForeign(f.Golden) || continuation.IsForeign(f.Actual)
	switch {
	case (foreign || f.Tokens != nil) && len(rest) > 0:
		return false, usage("compare: the tokens of a generation are judged, and %s is about tensors", rest[0])
	case f.Tokens != nil && *f.Tokens < 0:
		return false, usage("--tokens %d: want how many tokens are judged, 0 for all", *f.Tokens)
	}
	return foreign || f.Tokens != nil || len(rest) == 0 && hasGeneration(f.Golden), nil
}

// ofTensors are the arguments that say nothing of a generation.
func ofTensors(in report.Inputs) []string {
	in.Golden, in.Actual, in.Names, in.Config, in.Encoding, in.Raw, in.FP8 = "", "", "", "", "", "", ""
	in.Weights, in.Tokens = nil, nil
	return in.Args()
}

// hasGeneration reports whether the run.json of a dump, or of one in its folders, has the tokens that were generated.
func hasGeneration(dir string) bool {
	dirs := []string{dir}
	inside, _ := os.ReadDir(dir) // what cannot be read is an error where it is opened
	for _, d := range inside {
		if d.IsDir() {
			dirs = append(dirs, filepath.Join(dir, d.Name()))
		}
	}
	return dir != "" && slices.ContainsFunc(dirs, func(dir string) bool {
		info, err := dump.ReadInfo(dir)
		return err == nil && info.Generation != nil
	})
}

// compareTokens judges the generated tokens of all texts of the golden.
func (f *inputFlags) compareTokens(ctx context.Context, name string) (all *report.Report, err error) {
	opt := continuation.Options{}
	if f.Tokens != nil {
		opt.Tokens = *f.Tokens
	}
	judging, end, err := f.begin(io.Discard)
	if err != nil {
		return nil, err
	}
	defer end()
	opt.Judge = judging
	if opt.Encoding, err = f.encoding(); err != nil {
		return nil, err
	}
	dumps := *f // what other tools wrote are none
	for _, side := range []*string{&dumps.Golden, &dumps.Actual} {
		if continuation.IsForeign(*side) {
			*side = ""
		}
	}
	dumps.Encoding = "" // of all runs, where they are judged
	d, err := dumps.openDumps(dump.Options{Unjudged: true})
	if err != nil {
		return nil, err
	}
	defer d.close()
	golden, actual, err := f.sides(d[goldenRole], d[actualRole])
	if err != nil {
		return nil, err
	}
	for i, g := range golden {
		o, err := continuation.Compare(ctx, g, actual[i], opt)
		wrong := (*continuation.Error)(nil)
		var one *report.Report
		switch {
		case err == nil:
			one = o.Report(name)
			opt.NoLayers = opt.NoLayers || o.Fails()
		case errors.As(err, &wrong):
			one = continuation.Unjudged(name, err)
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
	if same, err := sameFile(f.Golden, f.Actual); err == nil && same {
		all.Notes = append(all.Notes, sameDump)
	}
	return all, nil
}

// sides reads the texts of both sides, the candidate's in the order of the golden's. A side without runs is what another
// tool wrote.
func (f *inputFlags) sides(goldens, actuals []*dump.Run) (golden, actual []*continuation.Side, err error) {
	if goldens == nil {
		golden, err = continuation.ReadForeign(f.Golden, nil)
	}
	for _, r := range goldens {
		s, err := continuation.OpenGolden(r, caseOf(actuals, r.Info.Case))
		if err != nil {
			return nil, nil, err
		}
		golden = append(golden, s)
	}
	if err != nil {
		return nil, nil, err
	}
	if actuals == nil {
		actual, err = continuation.ReadForeign(f.Actual, golden)
		return golden, actual, err
	}
	for i, g := range golden {
		r := caseOf(actuals, g.Case)
		if r == nil || len(actuals) == 1 && len(golden) > 1 && r.Info.Case != g.Case {
			if len(actuals) != len(golden) || goldens != nil {
				return nil, nil, fmt.Errorf("%s has no case %q, it has %s", f.Actual, g.Case, dump.CaseNames(actuals))
			}
			r = actuals[i]
		}
		s, err := continuation.Open(r, g)
		if err != nil {
			return nil, nil, err
		}
		actual = append(actual, s)
	}
	for i, g := range golden {
		g.Case = cmp.Or(g.Case, actual[i].Case, filepath.Base(filepath.Clean(f.Golden)))
	}
	return golden, actual, nil
}

// caseOf is the run of a case; a single run is that of any. It is nil if there is none.
func caseOf(runs []*dump.Run, name string) *dump.Run {
	for _, r := range runs {
		if r.Info.Case == name || len(runs) == 1 {
			return r
		}
	}
	return nil
}
