package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/nearest"
)

// keys are those of a flag that takes KEY=VALUE, with what takes the value. A key that ends with a dot is followed by
// one more: engine.KEY=VALUE.
type keys map[string]func(value string) error

// names lists the keys.
func (k keys) names() (list []string) {
	for name := range k {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// set reads KEY=VALUE.
func (k keys) set(given string) error {
	key, value, ok := strings.Cut(given, "=")
	take := k[key]
	if group, rest, dotted := strings.Cut(key, "."); dotted {
		take, value = k[group+"."], rest+"="+value
	} else if take == nil {
		take = k[strings.ReplaceAll(key, "-", "_")]
	}
	if near, is := nearest.Nearest(key, k.names()); take == nil && is {
		return fmt.Errorf("there is no key %q, did you mean %q?", key, near)
	}
	if !ok || take == nil || value == "" {
		return fmt.Errorf("want KEY=VALUE, of the keys %s", strings.Join(k.names(), ", "))
	}
	return take(value)
}

// addKeys adds a flag that takes KEY=VALUE.
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
	table := compare.Table()
	asked := compare.Criteria{}
	for _, text := range limits {
		key, value, valued := strings.Cut(text, "=")
		i := slices.IndexFunc(table, func(k *compare.Criterion) bool { return k.Key == key })
		if i < 0 {
			return nil, usage("--within %s: there is no such limit: want %s", text, strings.Join(limitKeys(), ", "))
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

func limitKeys() (known []string) {
	for _, k := range compare.Table() {
		known = append(known, k.Key)
	}
	return known
}

// addJSON adds --json, a file to write.
func addJSON(c *cobra.Command, to *string, what string) {
	c.Flags().StringVar(to, "json", "", "write "+what+" to this `file` (- for standard output)")
}
