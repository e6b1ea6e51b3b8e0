package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

type generateFlags struct{ compareFlags }

func newGenerate() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate --golden A --actual B",
		Short: "judge the tokens that a model generates, forced along the reference's text",
		Long: "generate judges the logits of a candidate that was forced along the reference's greedy text, token by\n" +
			"token: IDENTICAL, a TIE within the noise of the encoding, or DIVERGED at token k, with the first layer of the\n" +
			"forward pass where it begins. A dump has `generation` and `token_ids` in its run.json and the logits of all\n" +
			"rows, in one pass, in a step for each token, or with `passes`; the JSON of MAX's logit tools and responses\n" +
			"of an OpenAI-compatible server with log-probabilities do as well. Exit code 3: no logits, rows missing,\n" +
			"another text, or a golden so flat that noise decides more than 20 % of its tokens.",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.positional("generate", args); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.Golden, "golden", "", "the reference's `dump`, or JSON of its logits")
	fl.StringVar(&f.Actual, "actual", "", "the candidate's `dump`, JSON or response")
	fl.StringVar(&f.Names, "names", "", "YAML `file` with names and ignore as in fixture.yaml: which layers belong together")
	fl.IntVar(&f.Tokens, "tokens", 0, "judge the first `n` tokens only")
	fl.TextVar(&f.diagnose, "diagnose", f.diagnose, "time for the search of causes when a token is wrong: `off`, fast or full")
	f.model(c)
	f.format(c)
	fl.StringVar(&f.json, "json", "", "write report.json to this `file` (- for standard output)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "list every port")
	return c
}

func (f *generateFlags) run(ctx context.Context, stdout io.Writer) error {
	if f.Tokens < 0 {
		return usage("--tokens %d: want how many tokens are judged", f.Tokens)
	}
	if err := f.keeps(f.json); err != nil {
		return err
	}
	made, err := f.made(report.Generate)
	if err != nil {
		return err
	}
	r, err := f.judged(ctx)
	var e *exitError
	if errors.As(err, &e) && e.code == exitUsage {
		return err
	}
	if r == nil {
		r = continuation.Unjudged(f.Golden, err)
	}
	r.Made = made
	return f.write(r, stdout, err)
}

// judged judges all texts of the golden.
func (f *generateFlags) judged(ctx context.Context) (*report.Report, error) {
	opt, err := f.generation()
	if err != nil {
		return nil, err
	}
	evidence, closeEvidence, err := f.evidence()
	if err != nil {
		return nil, err
	}
	defer closeEvidence()
	opt.Judge.Diagnosis = judge.Diagnosis{Mode: f.diagnose, Evidence: evidence}
	var opened []*dump.Run
	defer func() { dump.CloseAll(opened) }()
	golden, actual, err := f.sides(&opened)
	if err != nil {
		return nil, err
	}
	var all *report.Report
	for i, g := range golden {
		one := new(report.Report)
		if o, err := continuation.Compare(ctx, g, actual[i], opt); err == nil {
			one = o.Report(f.Golden)
			opt.NoLayers = opt.NoLayers || o.Fails()
		} else if wrong := (*continuation.Error)(nil); errors.As(err, &wrong) {
			one = continuation.Unjudged(f.Golden, err)
		} else {
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
		all.Notes = append(all.Notes, "golden and actual are the same: this shows only that the dump can be read")
	}
	return all, nil
}

// generation are the options that the flags ask for.
func (f *generateFlags) generation() (opt continuation.Options, err error) {
	if opt.Judge, err = f.options(); err != nil {
		return opt, err
	}
	opt.Tokens = f.Tokens
	if f.Encoding != "" {
		if opt.Encoding, err = tensor.ParseDType(f.Encoding); err != nil || !opt.Encoding.IsFloat() {
			return opt, usage("--encoding %s: want a float, such as bfloat16", f.Encoding)
		}
	}
	return opt, nil
}

// sides opens the texts of both sides, the candidate's in the order of the golden's.
func (f *generateFlags) sides(opened *[]*dump.Run) (golden, actual []*continuation.Side, err error) {
	runs := map[string][]*dump.Run{}
	for _, path := range []string{f.Golden, f.Actual} {
		if continuation.IsForeign(path) {
			continue
		}
		if runs[path], err = f.runs(path, dump.Options{Unjudged: true}, *opened); err != nil {
			return nil, nil, err
		}
		*opened = append(*opened, runs[path]...)
	}
	if runs[f.Golden] == nil {
		golden, err = continuation.ReadForeign(f.Golden, nil)
	}
	for _, r := range runs[f.Golden] {
		s, err := continuation.OpenGolden(r, caseOf(runs[f.Actual], r.Info.Case))
		if err != nil {
			return nil, nil, err
		}
		golden = append(golden, s)
	}
	if err != nil {
		return nil, nil, err
	}
	if runs[f.Actual] == nil {
		actual, err = continuation.ReadForeign(f.Actual, golden)
		return golden, actual, err
	}
	for i, g := range golden {
		r := caseOf(runs[f.Actual], g.Case)
		if r == nil || len(runs[f.Actual]) == 1 && len(golden) > 1 && r.Info.Case != g.Case {
			if len(runs[f.Actual]) != len(golden) || runs[f.Golden] != nil {
				return nil, nil, fmt.Errorf("%s has no case %q, it has %s", f.Actual, g.Case, dump.CaseNames(runs[f.Actual]))
			}
			r = runs[f.Actual][i]
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
