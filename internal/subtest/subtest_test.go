package subtest_test

import (
	"flag"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/subtest"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct{ arg, want, reason string }{
		{`^a$`, `'^a$'`, "nothing is expanded"},
		{`it's`, `'it'\''s'`, "a quote ends the quotes and is written outside"},
		{``, `''`, "an empty argument is one"},
	} {
		assert.Equal(t, c.want, subtest.Quote(c.arg), c.reason)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		for _, name := range layerNames {
			if strings.ContainsRune(name, 0) {
				continue // cannot be an argument
			}
			out, err := exec.Command(sh, "-c", "printf %s "+subtest.Quote(name)).Output()
			require.NoError(t, err)
			assert.Equal(t, name, string(out))
		}
	}
}

func TestName(t *testing.T) {
	for _, name := range layerNames {
		t.Run(name, func(t *testing.T) {
			given, _, _ := strings.Cut(t.Name(), "#0") // go test numbers what is there already
			assert.True(t, given == "TestName/"+subtest.Name(name) || name == "#00", given)
		})
	}
}

func TestNarrowed(t *testing.T) {
	was := subtest.Flag("test.run")
	defer flag.Set("test.run", was)
	for run, want := range map[string]bool{"": false, "TestPort": false, "TestPort/layer": true} {
		require.NoError(t, flag.Set("test.run", run))
		assert.Equal(t, run, subtest.Flag("test.run"))
		assert.Equal(t, want, subtest.Narrowed(), run)
	}
	assert.Empty(t, subtest.Flag("no.such.flag"))
}

func TestCommand(t *testing.T) {
	assert.Equal(t, "go test ./a -run '^T$/^b c$'", subtest.Command("go", "test", "./a", "-run", "^T$/^b c$"), "quoted only where needed")
	assert.Equal(t, "echo ''", subtest.Command("echo", ""), "an empty word is a word")
	assert.Equal(t, "parity show parity", subtest.Command("parity", "show", "parity"))
	t.Setenv(subtest.CommandKey, "uvx goparity")
	assert.Equal(t, "uvx goparity show parity", subtest.Command("parity", "show", "parity"), "as it was typed")
}
