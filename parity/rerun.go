package parity

import (
	"fmt"
	"testing"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// rerun is the command that runs just this subtest. To go test, layers a/b and a/c are inside the
// layer a: they are skipped.
func rerun(t *testing.T, c *judge.Comparison, layer string) string {
	pattern := setting.Pattern(t.Name())
	which := []string{"-run", pattern}
	if !c.Layers.Several() && c.Layers.Continued(layer) {
		which = append(which, "-skip", pattern+"/.")
	}
	return fmt.Sprintf("  rerun: %s\n", session.Current().GoTest(which...))
}
