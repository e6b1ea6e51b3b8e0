package serving_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

var update = flag.Bool("update", false, "renew the expected files")

// TestSaid writes down all that is asked of a right server, and what is said of it and of wrong ones that answer the
// same each time.
func TestSaid(t *testing.T) {
	var b strings.Builder
	write := func(name string, out *report.Serving) {
		fmt.Fprintf(&b, "\n%s: %s\n", name, out.Verdict)
		for _, r := range out.Requests {
			if out.Verdict == report.Pass || r.Status == report.StatusFail && r.Way == serving.Alone {
				fmt.Fprintln(&b, r.String())
			}
		}
		for _, c := range out.Causes {
			fmt.Fprintf(&b, "%s, proven %t: %s\n", c.ID, c.Proven, c.Text)
		}
		fmt.Fprintf(&b, "%sharness: %s\nprobes: %d\n", strings.Join(append(out.Notes, ""), "\n"), out.Harness, len(out.Probes))
	}
	write("long texts", judge(t, &stub{}, servingtest.Cases(24), serving.Options{Model: known(t)}))
	write("draws", judge(t, &stub{}, servingtest.Cases(tokensOfCases), serving.Options{Model: known(t), Draws: 250}))
	for _, f := range faults()[1:] {
		if f.alone && f.causes != nil && f.causes[0] != "sampling" && f.causes[0] != "sampling?" {
			write(f.name, judge(t, f.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: known(t)}))
		}
	}
	const kept = "testdata/said.txt"
	if *update {
		require.NoError(t, os.WriteFile(kept, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String(), "go test ./internal/serving -run TestSaid -update renews it")
}
