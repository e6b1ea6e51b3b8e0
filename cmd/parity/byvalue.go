package main

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/subtest"
)

// byValue joins what the names leave on both sides, where no one said by --names what belongs
// together: by the rules of parity names for which equal values speak. It returns a remark on them,
// "" where there are none. Rules for which only order and shape speak are proposed and not taken.
func (f *inputFlags) byValue(cases []judge.Case, opt *match.Options) string {
	if f.Golden == "" || f.Names != "" {
		return ""
	}
	for _, k := range cases {
		if !bothLeft(k, *opt) {
			continue
		}
		p, err := k.Propose(*opt)
		if err != nil || p.Foreign != "" {
			return "" // what is wrong is said where the runs are compared
		}
		rules := proven(p.Rules)
		layers, with := 0, *opt
		with.Rules = slices.Clone(opt.Rules)
		for _, r := range rules {
			layers += r.Pairs
			with.Rules = append(with.Rules, r.Rule)
		}
		for _, other := range cases { // of the same two models
			if _, err := other.Match(other.Actual, with); err != nil {
				return ""
			}
		}
		if len(rules) == 0 {
			return ""
		}
		*opt = with
		return fmt.Sprintf("names: %d layers were joined by their values; %s writes the rules to a file, and parity compare --names FILE judges by it",
			layers, subtest.Command("parity", "names", f.Golden, f.Actual, "-o", "names.yaml"))
	}
	return ""
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
