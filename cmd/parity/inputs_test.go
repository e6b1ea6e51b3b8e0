package main

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each input that a report keeps is a flag of parity compare: what is printed as the next command
// says the same.
func TestInputsAreFlags(t *testing.T) {
	limit := 1e-5
	var want inputFlags
	v := reflect.ValueOf(&want.Inputs).Elem()
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
		default:
			t.Fatal("a new type of input: ", f.Type())
		}
	}
	c := newCompare()
	require.NoError(t, c.ParseFlags(want.Args()))
	for _, name := range []string{"golden", "actual", "injected", "injection", "golden64", "noise", "unquantised", "unrounded", "one-pass", "config", "pad-mask", "names",
		"encoding", "raw", "fp8"} {
		assert.Contains(t, c.Flags().Lookup(name).Value.String(), "of ", name)
	}
	for _, name := range []string{"weights", "scope"} {
		list, err := c.Flags().GetStringArray(name)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b,c"}, list, name)
	}
	changed := 0
	for _, name := range []string{"atol", "rtol", "equal-nan", "allow-reshape"} {
		if c.Flags().Changed(name) {
			changed++
		}
	}
	assert.Equal(t, 4, changed)
	assert.Equal(t, 21, v.NumField(), "a new input: Args and this test name it")
}
