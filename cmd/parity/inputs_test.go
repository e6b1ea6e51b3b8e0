package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

// What compare keeps in a report comes back as its own flags, so that what is printed as the next command says the
// same, and every flag that chooses what is judged is kept.
func TestInputsAreFlags(t *testing.T) {
	var f compareFlags
	c := &cobra.Command{Use: "compare"}
	f.add(c)
	in := filled(t)
	require.NoError(t, c.ParseFlags(in.Args()))
	require.Equal(t, in, f.Inputs)
	shown := []string{"also", "assume", "diagnose", "edit", "json", "mode", "observer", "output", "run", "verbose"}
	kept := in.Args()
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !slices.Contains(shown, flag.Name) {
			assert.Contains(t, kept, "--"+flag.Name, "it chooses what is judged: the report keeps it")
		}
	})
	var files []string
	for _, p := range in.Paths() {
		files = append(files, *p)
	}
	assert.Subset(t, files, []string{"of Golden", "of Noise", "of Weights", "of Names"})
	assert.NotContains(t, files, "of Scope")
}

// filled are inputs of which each is given.
func filled(t *testing.T) (in report.Inputs) {
	n := 7
	v := reflect.ValueOf(&in).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("of " + name)
		case []string:
			f.Set(reflect.ValueOf([]string{"of " + name, "more of " + name}))
		case *int:
			f.Set(reflect.ValueOf(&n))
		case bool:
			f.SetBool(true)
		default:
			t.Fatal("a new type of input: ", f.Type())
		}
	}
	return in
}

// Limits are those of fixture.yaml, by its keys.
func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		limits []string
		err    string
		reason string
	}{
		{[]string{"rel_l2=1e-4", "row_rel_l2=1e-3"}, "", "two limits"},
		{[]string{"equal_nan"}, "", "what can only be turned on needs no value"},
		{[]string{"equal_nan=1"}, "", "and may have one"},
		{[]string{"rel_l3=1"}, "want atol, rtol, rel_l2", "a slip"},
		{[]string{"speed=1"}, "want atol, rtol, rel_l2", "no limit at all"},
		{[]string{"rel_l2"}, "want rel_l2=NUMBER", "a limit without a number"},
		{[]string{"rel_l2=x"}, "want rel_l2=NUMBER", "no number"},
		{[]string{"rel_l2=2"}, "that accepts zeros in place of the golden", "a limit that cannot fail"},
		{[]string{"rel_l2=0.1", "rel_l2=0.2"}, "has a limit already", "which of them?"},
	} {
		_, err := parseWithin(tt.limits)
		if tt.err == "" {
			assert.NoError(t, err, tt.reason)
			continue
		}
		assert.ErrorContains(t, err, tt.err, tt.reason)
		assert.Equal(t, exitUsage, codeOf(err), tt.reason)
	}
}
