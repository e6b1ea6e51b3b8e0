package parity

import "github.com/goparity/goparity/internal/subtest"

// What the tests look at besides the exported names.
var (
	RunPattern = subtest.Pattern
	ShellQuote = shellQuote
)
