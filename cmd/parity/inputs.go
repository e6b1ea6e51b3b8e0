package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// inputFlags are two dumps and what they are compared by: compare, names, show and try ask for some of
// them, and report finds them in a report.
type inputFlags struct {
	report.Inputs
	diagnose setting.Diagnose
}

// addPair adds the flags of two dumps.
func (f *inputFlags) addPair(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.Golden, "golden", "", "the reference's `dump`: a folder or a file")
	fl.StringVar(&f.Actual, "actual", "", "the candidate's `dump`")
	fl.StringVar(&f.PadMask, "pad-mask", "", "JSON `file` with 0 or 1 per [batch][token]: padding rows are left out")
}

// addNames adds the flags that say which layers belong together, and which count.
func (f *inputFlags) addNames(c *cobra.Command, scope string) {
	c.Flags().StringVar(&f.Names, "names", "",
		"YAML `file` with names, ignore and scope as in fixture.yaml: which layers belong together and which count")
	c.Flags().StringArrayVar(&f.Scope, "scope", nil, scope)
}

// addFormat adds the flags that say what a dump does not say itself.
func (f *inputFlags) addFormat(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.Encoding, "encoding", "", "`dtype` in which the candidate was asked to compute, where its run does not say it")
	fl.StringVar(&f.Raw, "raw", "", "dtype and shape of headerless files, as `f32:4x8` (default: those of the golden)")
	fl.StringVar(&f.FP8, "fp8", "", "`dtype` of 8-bit floats in .npy files, which do not say it: f8_e4m3, f8_e5m2, …")
}

// addFurther adds the flag of further dumps.
func (f *inputFlags) addFurther(c *cobra.Command) {
	fl := c.Flags()
	roles := f.Also()
	known := strings.Join(slices.Sorted(maps.Keys(roles)), ", ")
	fl.Func("also", "a further dump, as `ROLE=DUMP`; may be repeated:\n"+
		"injected     the candidate's run on golden inputs\n"+
		"golden64     the reference's in float64\n"+
		"noise        the reference's in the candidate's encoding (parity run --engine torch --encoding bfloat16\n"+
		"             --follow GOLDEN): what that costs the reference is the measure, in place of the defaults\n"+
		"one-pass     the candidate's own run of one pass, where --actual ran along an execution path\n"+
		"unquantised  where --golden ran on dequantised weights: the reference's on the weights as they were, to\n"+
		"             say what quantisation costs beside what the candidate adds\n"+
		"unrounded    where --golden rounds the inputs of products, too: the reference's without that",
		func(given string) error {
			role, path, ok := strings.Cut(given, "=")
			if to := roles[role]; !ok || to == nil || path == "" {
				return fmt.Errorf("want ROLE=DUMP, of the roles %s", known)
			} else if *to != "" {
				return fmt.Errorf("%s is given twice", role)
			} else {
				*to = path
			}
			return nil
		})
	for role, to := range roles {
		fl.StringVar(to, role, "", "--also "+role+"=`DUMP`")
		hide(fl, role)
	}
	fl.StringVar(&f.Injection, "injection", "", "form of the injected run: nested or isolated (default: as recorded)")
}

// addModel adds the flags of the reference's model.
func (f *inputFlags) addModel(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.Weights, "weights", nil,
		"the reference's weights: a safetensors `file`, its index.json, a .gguf file, or a folder; may be repeated")
	fl.StringVar(&f.Config, "config", "", "the model's config.json")
}

// positional lets "compare A B" stand for --golden and --actual.
func (f *inputFlags) positional(command string, args []string) error {
	for _, a := range args {
		switch {
		case f.Golden == "" && f.Program != "" && f.Actual == "" && len(args) == 1:
			f.Actual = a
		case f.Golden == "":
			f.Golden = a
		case f.Actual == "":
			f.Actual = a
		default:
			return usage("%s: %q is one dump too many", command, a)
		}
	}
	switch {
	case f.Golden == "" && f.Program == "":
		return usage("%s: --golden is missing: the reference's dump", command)
	case f.Actual == "":
		return usage("%s: --actual is missing: the candidate's dump", command)
	}
	return nil
}

// made says in a report how it was made.
func (f *inputFlags) made() (*report.Made, error) {
	dir, err := os.Getwd()
	return &report.Made{Command: "compare", Dir: dir, Inputs: f.Inputs}, err
}

// refuseOverwrite refuses to write to one of the inputs.
func (f *inputFlags) refuseOverwrite(out string) error {
	if out == "" || out == "-" {
		return nil
	}
	for _, in := range f.Paths() {
		if same, err := sameFile(*in, out); err == nil && same {
			return usage("%s is one of the files to compare", out)
		}
	}
	return nil
}

// begin reads what all comparisons ask of package judge. end closes the weights, and ends the progress that is shown.
func (f *inputFlags) begin(stderr io.Writer) (opt judge.Options, bar *progress, end func(), err error) {
	if opt, err = f.options(); err != nil {
		return opt, nil, nil, err
	}
	evidence, closeEvidence, err := f.evidence()
	if err != nil {
		return opt, nil, nil, err
	}
	bar = newProgress(stderr)
	opt.Progress = bar.set
	opt.Diagnosis = judge.Diagnosis{Mode: f.diagnose, Evidence: evidence}
	return opt, bar, func() { bar.done(); closeEvidence() }, nil
}

// options are what the flags ask of package judge.
func (f *inputFlags) options() (opt judge.Options, err error) {
	further := f.Also()
	for _, role := range slices.Sorted(maps.Keys(further)) {
		if f.Golden == "" && *further[role] != "" {
			return opt, usage("--also %s=DUMP goes with --golden, which is missing", role)
		}
	}
	switch {
	case f.Injection != "" && f.Injection != dump.Nested && f.Injection != dump.Isolated:
		return opt, usage("--injection %s: want nested or isolated", f.Injection)
	case f.Unrounded != "" && f.Unquantised == "":
		return opt, usage("--also unrounded=DUMP goes with unquantised=DUMP, which is missing")
	case f.Golden != "" && f.Layers != "":
		return opt, usage("--layers is for a run without --golden")
	case f.Injection != "" && f.Injected == "":
		return opt, usage("--injection is the form of --also injected=DUMP, which is missing")
	}
	opt.Match.AllowReshape, opt.Strict, opt.Vacuous = f.Reshape, f.Strict, f.Vacuous
	if opt.Criteria, err = f.criteria(); err != nil {
		return opt, err
	}
	if opt.Match.PadMask, err = readPadMask(f.PadMask); err != nil {
		return opt, err
	}
	if f.Names != "" {
		m, err := fixture.LoadMatching(f.Names)
		if wrong := (*fixture.Error)(nil); errors.As(err, &wrong) {
			return opt, usage("--names: %v", err)
		} else if err != nil {
			return opt, fmt.Errorf("--names: %w", err)
		}
		opt.Match.Rules, opt.Match.Ignore, opt.Scope = m.MatchRules(), m.MatchIgnores(), m.Patterns()
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

// criteria judge in place of the defaults; nil if none were asked for.
func (f *inputFlags) criteria() (judge.CriteriaFunc, error) {
	asked, err := parseWithin(f.Within)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return func(_, _ string, d tensor.DType) (compare.Criteria, string) {
		c, source := maps.Clone(asked), "--within"
		if !asked.Measures() {
			c, source = compare.Default(d), "defaults, --within"
			maps.Copy(c, asked)
		}
		return c, source
	}, nil
}

// evidence opens what the search for causes may use besides the dumps. A file that cannot be read
// is an error at once, not only when a run fails.
func (f *inputFlags) evidence() (give search.Evidence, closeAll func(), err error) {
	var config checkpoint.Config
	if f.Config != "" {
		if config, err = checkpoint.ReadConfig(f.Config); err != nil {
			return nil, nil, fmt.Errorf("--config: %w", err)
		}
	}
	weights, err := checkpoint.Open(f.Weights...)
	if err != nil {
		return nil, nil, fmt.Errorf("--weights: %w", err)
	}
	give = func() (checkpoint.Weights, checkpoint.Config, error) { return weights.Tensors, config, nil }
	return give, func() { weights.Close() }, nil
}

// readPadMask reads [[1,1,0],…]: true where there is a real token.
func readPadMask(path string) ([][]bool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, fmt.Errorf("--pad-mask: %w", err)
	}
	var rows [][]int
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, usage("--pad-mask %s: want [[1,1,0],…], 0 or 1 per batch and token: %v", path, err)
	}
	mask := make([][]bool, len(rows))
	for i, r := range rows {
		if len(r) != len(rows[0]) {
			return nil, usage("--pad-mask %s: row %d has %d tokens, row 0 has %d", path, i, len(r), len(rows[0]))
		}
		for j, v := range r {
			if v != 0 && v != 1 {
				return nil, usage("--pad-mask %s: [%d][%d] is %d, want 0 or 1", path, i, j, v)
			}
			mask[i] = append(mask[i], v == 1)
		}
	}
	return mask, nil
}
