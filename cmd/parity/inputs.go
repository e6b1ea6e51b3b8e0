package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// inputFlags are two dumps and what they are compared by.
type inputFlags struct {
	report.Inputs
	diagnose setting.Diagnose
	compute  tensor.DType // what --assume encoding names, as assume reads it
}

// addPair adds the flags of two dumps.
func (f *inputFlags) addPair(c *cobra.Command) {
	c.Flags().StringVar(&f.Golden, "golden", "", "the reference's `dump`: a folder or a file")
	c.Flags().StringVar(&f.Actual, "actual", "", "the candidate's `dump`")
}

// addAssume adds the flag of what a dump does not say itself.
func (f *inputFlags) addAssume(c *cobra.Command) {
	addKeys(c, "assume", "what the files do not say, as `KEY=VALUE`; may be repeated:\n"+
		"raw       dtype and shape of headerless files, f32:4x8 (default: those of the golden)\n"+
		"fp8       dtype of 8-bit floats in .npy files: f8_e4m3, f8_e5m2, …\n"+
		"encoding  dtype in which the candidate was asked to compute\n"+
		"pad_mask  a JSON file with 0 or 1 per [batch][token]: padding rows are left out",
		keys{"raw": once(&f.Raw), "fp8": once(&f.FP8), "encoding": once(&f.Encoding), "pad_mask": once(&f.PadMask)})
}

// addNames adds the flag that says which layers belong together.
func (f *inputFlags) addNames(c *cobra.Command) {
	c.Flags().StringVar(&f.Names, "names", "",
		"YAML `file` with names, ignore and scope as in fixture.yaml: which layers belong together and which count")
}

// addFurther adds the flag of further dumps.
func (f *inputFlags) addFurther(c *cobra.Command) {
	roles := keys{}
	for role, to := range f.Also() {
		roles[role] = once(to)
	}
	addKeys(c, "also", "a further dump, as `ROLE=DUMP`; may be repeated:\n"+
		"injected     the candidate's run on golden inputs\n"+
		"golden64     the reference's in float64\n"+
		"noise        the reference's in the candidate's encoding: what that costs it is the measure, in place of the defaults\n"+
		"one-pass     the candidate's own run of one pass, where --actual ran along an execution path\n"+
		"unquantised  where --golden ran on dequantised weights: the reference's on the weights as they were, to\n"+
		"             say what quantisation costs beside what the candidate adds\n"+
		"unrounded    where --golden rounds the inputs of products, too: the reference's without that", roles)
	c.Flags().StringVar(&f.Injection, "injection", "", "form of the injected run: nested or isolated (default: as recorded)")
	c.Flags().Lookup("injection").Hidden = true // of dumps without run.json
}

// addModel adds the flags of the reference's model.
func (f *inputFlags) addModel(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.Weights, "weights", nil,
		"the reference's weights: a safetensors `file`, its index.json, a .gguf file, or a folder; may be repeated")
	c.Flags().StringVar(&f.Config, "config", "", "the model's config.json `file`")
}

// positional lets "compare A B" stand for --golden and --actual.
func (f *inputFlags) positional(command string, args []string) error {
	for _, a := range args {
		switch {
		case f.Golden == "" && (f.Program == "" || len(args) > 1):
			f.Golden = a
		case f.Actual == "":
			f.Actual = a
		default:
			return usage("%s: %q is one dump too many", command, a)
		}
	}
	switch {
	case f.Golden == "" && f.Program == "":
		return usage("%s: the reference's dump is missing: parity %s GOLDEN CANDIDATE", command, command)
	case f.Actual == "":
		return usage("%s: the candidate's dump is missing: parity %s GOLDEN CANDIDATE", command, command)
	}
	return nil
}

// refuseOverwrite refuses to write to one of the inputs.
func (f *inputFlags) refuseOverwrite(outs ...string) error {
	for _, in := range f.Paths() {
		if i := slices.IndexFunc(outs, func(out string) bool { return sameFile(*in, out) }); i >= 0 {
			return usage("%s is one of the files to compare", outs[i])
		}
	}
	return nil
}

// options are what the flags ask of package judge.
func (f *inputFlags) options() (opt judge.Options, err error) {
	for role, path := range f.Also() {
		if f.Golden == "" && *path != "" {
			return opt, usage("--also %s=DUMP goes with a golden, which is missing", role)
		}
	}
	switch {
	case f.Injection != "" && f.Injection != dump.Nested && f.Injection != dump.Isolated:
		return opt, usage("--injection %s: want nested or isolated", f.Injection)
	case f.Unrounded != "" && f.Unquantised == "":
		return opt, usage("--also unrounded=DUMP goes with unquantised=DUMP, which is missing")
	case f.Injection != "" && f.Injected == "":
		return opt, usage("--injection is the form of --also injected=DUMP, which is missing")
	}
	opt.Match.AllowReshape, opt.Strict, opt.Vacuous = f.Reshape, f.Strict, f.Vacuous
	if opt.Criteria, err = f.criteria(); err != nil {
		return opt, err
	}
	if f.Names != "" {
		m, err := readNames(f.Names)
		if err != nil {
			return opt, err
		}
		opt.Match.Rules, opt.Match.Ignore, opt.Scope = m.Names, m.MatchIgnores(), m.Patterns()
	}
	for _, s := range f.Scope {
		p, err := glob.Compile(s)
		if err != nil {
			return opt, usage("--scope: %v", err)
		}
		opt.Scope = append(opt.Scope, p)
	}
	return opt, nil
}

// readNames reads the file of --names.
func readNames(file string) (*fixture.Matching, error) {
	m, err := fixture.LoadMatching(file)
	if wrong := (*fixture.Error)(nil); errors.As(err, &wrong) {
		return nil, usage("--names: %v", err)
	} else if err != nil {
		return nil, fmt.Errorf("--names: %w", err)
	}
	return m, nil
}

// criteria judge in place of the defaults; nil if none were asked for.
func (f *inputFlags) criteria() (judge.CriteriaFunc, error) {
	asked, err := parseWithin(f.Within)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return func(_, _ string, d tensor.DType) (compare.Criteria, string) {
		if asked.Measures() {
			return maps.Clone(asked), "--within"
		}
		c := compare.Default(d)
		maps.Copy(c, asked)
		return c, "defaults, --within"
	}, nil
}

// made says in a report how it was made.
func (f *inputFlags) made() (*report.Made, error) {
	dir, err := os.Getwd()
	return &report.Made{Command: "compare", Dir: dir, Inputs: f.Inputs}, err
}
