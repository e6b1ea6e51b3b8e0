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

// What a command keeps in a report comes back as its own flags, so that what is printed as the next
// command says the same, and every flag that chooses what is judged is kept.
func TestInputsAreFlags(t *testing.T) {
	shown := []string{"diagnose", "json", "verbose"} // what is shown, and how long causes are looked for
	for _, c := range []*cobra.Command{newCompare(), newGenerate()} {
		t.Run(c.Name(), func(t *testing.T) {
			var names []string
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !slices.Contains(shown, f.Name) {
					names = append(names, f.Name)
				}
			})
			in := filled(t)
			require.NoError(t, c.ParseFlags(in.Args(names...)))
			for _, name := range names {
				f := c.Flags().Lookup(name)
				assert.True(t, f.Changed, "--%s chooses what is judged: the report keeps it", name)
				if f.Value.Type() == "string" {
					assert.Contains(t, f.Value.String(), "of ", name)
				}
			}
		})
	}
}

// filled are inputs of which each is given.
func filled(t *testing.T) (in report.Inputs) {
	limit := 1e-5
	v := reflect.ValueOf(&in).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("of " + v.Type().Field(i).Name)
		case []string:
			f.Set(reflect.ValueOf([]string{"a", "b,c"}))
		case *float64:
			f.Set(reflect.ValueOf(&limit))
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(7)
		default:
			t.Fatal("a new type of input: ", f.Type())
		}
	}
	return in
}
