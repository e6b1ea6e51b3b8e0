package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/nearest"
)

// addWithin adds the flag of limits, "--within rel_l2=1e-4,row_rel_l2=1e-3", and those of earlier versions, which had
// one for each of the keys old.
func addWithin(c *cobra.Command, to *[]string, usage string, old ...string) {
	fl := c.Flags()
	fl.StringSliceVar(to, "within", nil, usage)
	for _, key := range old {
		name := strings.ReplaceAll(key, "_", "-")
		fl.Func(name, "--within "+key, func(limit string) error { return fl.Set("within", key+"="+limit) })
		if key == compare.EqualNaN.Key {
			fl.Lookup(name).NoOptDefVal = "1"
		}
		hide(fl, name)
	}
}

// hide leaves flags out of the help: those that another one stands for now, and go on working.
func hide(fl *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fl.Lookup(name).Hidden = true
	}
}

// parseWithin reads limits by the keys of fixture.yaml. One that can only be turned on needs no value.
func parseWithin(limits []string) (compare.Criteria, error) {
	table := compare.Table()
	asked := compare.Criteria{}
	for _, text := range limits {
		key, value, valued := strings.Cut(text, "=")
		i := slices.IndexFunc(table, func(k *compare.Criterion) bool { return k.Key == key })
		if i < 0 {
			return nil, usage("--within %s: %s", text, noLimit(key, table))
		}
		k, limit := table[i], 1.0
		if valued || !k.Switch() {
			var err error
			if limit, err = strconv.ParseFloat(value, 64); err != nil {
				return nil, usage("--within %s: want %s=NUMBER", text, key)
			}
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

// noLimit says which limits there are.
func noLimit(key string, table []*compare.Criterion) string {
	var keys []string
	for _, k := range table {
		keys = append(keys, k.Key)
	}
	if near, ok := nearest.Nearest(key, keys); ok {
		return fmt.Sprintf("there is no such limit, did you mean %q?", near)
	}
	return "there is no such limit: want " + strings.Join(keys, ", ")
}
