package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// keys are those of a flag that takes KEY=VALUE. One that ends with a dot is followed by another: engine.KEY=VALUE.
type keys map[string]func(value string) error

func (k keys) names() []string { return slices.Sorted(maps.Keys(k)) }

func (k keys) set(given string) error {
	key, value, ok := strings.Cut(given, "=")
	take := k[key]
	if group, rest, dotted := strings.Cut(key, "."); dotted {
		take, value = k[group+"."], rest+"="+value
	} else if take == nil {
		take = k[strings.ReplaceAll(key, "-", "_")]
	}
	if near, is := label.Nearest(key, k.names()); take == nil && is {
		return fmt.Errorf("there is no key %q, did you mean %q?", key, near)
	}
	if !ok || take == nil || value == "" {
		return fmt.Errorf("want KEY=VALUE, of the keys %s", strings.Join(k.names(), ", "))
	}
	return take(value)
}

func addKeys(c *cobra.Command, flag, usage string, k keys) {
	c.Flags().Func(flag, usage, k.set)
	aliases(c, flag, k.names()...)
}

// aliases adds for each key of a flag a hidden one of its own, as earlier versions had: --noise DUMP is --also noise=DUMP.
func aliases(c *cobra.Command, flag string, names ...string) {
	for _, key := range names {
		name := strings.ReplaceAll(key, "_", "-")
		if c.Flags().Lookup(name) == nil && !strings.HasSuffix(name, ".") {
			c.Flags().Func(name, "--"+flag+" "+key, func(value string) error { return c.Flags().Set(flag, key+"="+value) })
			c.Flags().Lookup(name).Hidden = true
		}
	}
}

// once takes a value that is given once.
func once(to *string) func(string) error {
	return func(value string) error {
		if *to != "" {
			return fmt.Errorf("it is given twice, as %s and %s", *to, value)
		}
		*to = value
		return nil
	}
}

// addWithin adds the flag of limits, "--within rel_l2=1e-4,row_rel_l2=1e-3". Earlier versions had one for each of some keys.
func addWithin(c *cobra.Command, to *[]string, usage string, old ...string) {
	c.Flags().StringSliceVar(to, "within", nil, usage)
	aliases(c, "within", old...)
	if nan := c.Flags().Lookup("equal-nan"); nan != nil {
		nan.NoOptDefVal = "1"
	}
}

// parseWithin reads limits by the keys of fixture.yaml. One that can only be turned on needs no value.
func parseWithin(limits []string) (compare.Criteria, error) {
	asked, known := compare.Criteria{}, limitKeys(func(*compare.Criterion) bool { return true })
	for _, text := range limits {
		key, value, valued := strings.Cut(text, "=")
		i := slices.Index(known, key)
		if i < 0 {
			return nil, usage("--within %s: there is no such limit: want %s", text, strings.Join(known, ", "))
		}
		k := compare.Table()[i]
		if !valued && k.Switch() {
			value = "1"
		}
		limit, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, usage("--within %s: want %s=NUMBER", text, key)
		}
		if err := k.Check(limit); err != nil {
			return nil, usage("--within %s: %v", text, err)
		}
		if _, twice := asked[k]; twice {
			return nil, usage("--within %s: %s has a limit already", text, key)
		}
		asked[k] = limit
	}
	return asked, nil
}

// limitKeys are the keys of the criteria of which something holds.
func limitKeys(holds func(*compare.Criterion) bool) (keys []string) {
	for _, k := range compare.Table() {
		if holds(k) {
			keys = append(keys, k.Key)
		}
	}
	return keys
}

func addJSON(c *cobra.Command, to *string, what string) {
	c.Flags().StringVar(to, "json", "", "write "+what+" to this `file` (- for standard output)")
}

// inputFlags are two dumps and what they are compared by.
type inputFlags struct {
	report.Inputs
	diagnose setting.Diagnose
	compute  tensor.DType // what --assume encoding names, as assume reads it
}

func (f *inputFlags) addPair(c *cobra.Command) {
	c.Flags().StringVar(&f.Golden, "golden", "", "the reference's `dump`: a folder or a file")
	c.Flags().StringVar(&f.Actual, "actual", "", "the candidate's `dump`")
}

func (f *inputFlags) addAssume(c *cobra.Command) {
	addKeys(c, "assume", "what the files do not say, as `KEY=VALUE`; may be repeated:\n"+
		"raw       dtype and shape of headerless files, f32:4x8 (default: those of the golden)\n"+
		"fp8       dtype of 8-bit floats in .npy files: f8_e4m3, f8_e5m2, …\n"+
		"encoding  dtype in which the candidate was asked to compute\n"+
		"pad_mask  a JSON file with 0 or 1 per [batch][token]: padding rows are left out",
		keys{"raw": once(&f.Raw), "fp8": once(&f.FP8), "encoding": once(&f.Encoding), "pad_mask": once(&f.PadMask)})
}

func (f *inputFlags) addNames(c *cobra.Command) {
	c.Flags().StringVar(&f.Names, "names", "",
		"YAML `file` with names, ignore and scope as in fixture.yaml: which layers belong together and which count")
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
		p, err := label.CompilePattern(s)
		if err != nil {
			return opt, usage("--scope: %v", err)
		}
		opt.Scope = append(opt.Scope, p)
	}
	return opt, nil
}

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
