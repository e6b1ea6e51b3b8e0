package parity

import (
	"fmt"
	"testing"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/subtest"
)

// rerun is the command that runs just this subtest. To go test, layers a/b and a/c are inside the
// layer a: they are skipped.
func rerun(t *testing.T, c *judge.Comparison, layer string) string {
	pattern, skip := subtest.Pattern(t.Name()), ""
	if !c.Layers.Several() && c.Layers.Continued(layer) {
		skip = " -skip " + subtest.Quote(pattern+"/.")
	}
	return fmt.Sprintf("  rerun: go test %s -run %s%s -count=1\n", subtest.Package(), subtest.Quote(pattern), skip)
}
