package parity

import "github.com/goparity/goparity/internal/subtest"

// RunPattern is what the tests look at besides the exported names.
var RunPattern = subtest.Pattern
