package replay

import (
	"maps"
	"slices"
)

// Vector switches the kernels in assembly off, where there are any, and returns what undoes it.
var Vector = func(on bool) func() { return func() {} }

// Operators lists those that can be run.
func Operators() []string { return slices.Sorted(maps.Keys(operators)) }
