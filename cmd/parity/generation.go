package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// asksTokens reports whether tokens are asked for: where another tool wrote them, or by --tokens.
func (f *inputFlags) asksTokens() (bool, error) {
	asked := f.Tokens != nil || continuation.IsForeign(f.Golden) || continuation.IsForeign(f.Actual)
	switch rest := ofTensors(f.Inputs); {
	case asked && len(rest) > 0:
		return false, usage("compare: the tokens of a generation are judged, and %s is about tensors", rest[0])
	case f.Tokens != nil && *f.Tokens < 0:
		return false, usage("--tokens %d: want how many tokens are judged, 0 for all", *f.Tokens)
	}
	return asked, nil
}

// isGeneration reports whether the golden is of a generation, and nothing is asked of tensors.
func (in *inputs) isGeneration() bool {
	return len(ofTensors(in.Inputs)) == 0 &&
		slices.ContainsFunc(in.runs[goldenRole], func(r *dump.Run) bool { return r.Info.Generation != nil })
}

// ofTensors are the arguments that say nothing of a generation.
func ofTensors(in report.Inputs) []string {
	in.Golden, in.Actual, in.Names, in.Config, in.Encoding, in.Raw, in.FP8 = "", "", "", "", "", "", ""
	in.Weights, in.Tokens = nil, nil
	return in.Args()
}

// compareTokens judges the generated tokens of all texts of the golden.
func (in *inputs) compareTokens(ctx context.Context, name string) (all *report.Report, err error) {
	opt := continuation.Options{Judge: in.opt, Encoding: in.compute}
	if in.Tokens != nil {
		opt.Tokens = *in.Tokens
	}
	golden, actual, err := in.sides()
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

// sides reads the texts of both sides, the candidate's in the order of the golden's. A side without runs is what another
// tool wrote.
func (in *inputs) sides() (golden, actual []*continuation.Side, err error) {
	goldens, actuals := in.runs[goldenRole], in.runs[actualRole]
	if goldens == nil {
		golden, err = continuation.ReadForeign(in.Golden, nil)
	}
	for _, r := range goldens {
		s, err := continuation.OpenGolden(r, caseOf(actuals, r.Info.Case, len(goldens)))
		if err != nil {
			return nil, nil, err
		}
		golden = append(golden, s)
	}
	if err != nil {
		return nil, nil, err
	}
	if actuals == nil {
		actual, err = continuation.ReadForeign(in.Actual, golden)
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
		s, err := continuation.Open(r, g)
		if err != nil {
			return nil, nil, err
		}
		g.Case = cmp.Or(g.Case, s.Case, filepath.Base(filepath.Clean(in.Golden)))
		actual = append(actual, s)
	}
	return golden, actual, nil
}
