package subtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/subtest"
)

// layerNames are names of layers that go test rewrites, splits, or would read as a pattern.
var layerNames = []string{
	"encoder.layer.1",
	"encoder.layer.10",
	"encoderxlayer.1",
	"layer",
	"a b",
	"a_b", // go test calls it a_b#01
	"a\tb",
	"norm(2)",
	"norm",
	"x[0]",
	"x0",
	"a+b*c?",
	"^$",
	"a|b",
	"/encoder/MatMul",
	"/encoder/MatMul_1",
	"encoder/layer_0/mlp",
	"a//b",
	"slash/",
	"grüße",
	"\u200bzero width",
	"it's",
	`back\slash`,
	"a\x00b",
	"bell\aend",
	"#00",
}

// TestNamesForRunPattern is what TestRunPatternSelectsOneTest runs in a process of its own:
// subtests that pass and have these names.
func TestNamesForRunPattern(t *testing.T) {
	if os.Getenv("PARITY_TEST_NAMES") == "" {
		t.Skip("a helper of TestRunPatternSelectsOneTest")
	}
	for _, name := range layerNames {
		t.Run(name, func(t *testing.T) {
			for _, step := range []string{"short.0", "short.1"} {
				t.Run(step, func(t *testing.T) { t.Log("ran " + t.Name()) })
			}
		})
	}
}

// TestRunPatternSelectsOneTest asks package testing itself.
func TestRunPatternSelectsOneTest(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	ran := func(pattern string) (names []string) {
		cmd := exec.Command(exe, "-test.v", "-test.run="+pattern)
		cmd.Env = append(os.Environ(), "PARITY_TEST_NAMES=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		for line := range strings.Lines(string(out)) {
			if _, name, ok := strings.Cut(strings.TrimRight(line, "\n"), ": ran "); ok {
				names = append(names, name)
			}
		}
		return names
	}
	all := ran("^TestNamesForRunPattern$")
	require.Len(t, all, 2*len(layerNames))
	for _, name := range all {
		assert.Equal(t, []string{name}, ran(subtest.Pattern(name)))
	}
	assert.Len(t, ran("TestNamesForRunPattern/encoder.layer.1"), 6,
		"the check must be able to fail: an unanchored pattern hits more")
}
