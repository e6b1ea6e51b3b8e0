package subtest_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/subtest"
)

// Labels as engines write them.
var labels = []string{"model.layers.1", "model.norm(2)", "/encoder/MatMul", "a b\tc", "größe", "bell\aend",
	"x[3].y+z*", "a$b^c"}

// A real subtest gets the name that Name predicts.
func TestName(t *testing.T) {
	for _, l := range labels {
		t.Run(l, func(t *testing.T) {
			assert.Equal(t, "TestName/"+subtest.Name(l), t.Name())
		})
	}
}

// Of all names, Pattern selects one, matched as go test does: split at slashes, each part an
// unanchored regular expression.
func TestPattern(t *testing.T) {
	selects := func(pattern, name string) bool {
		ps, ns := strings.Split(pattern, "/"), strings.Split(name, "/")
		if len(ps) != len(ns) {
			return false
		}
		for i := range ps {
			if !regexp.MustCompile(ps[i]).MatchString(ns[i]) {
				return false
			}
		}
		return true
	}
	for _, l := range append(labels, "model.layers.10", "model.norm") {
		for _, other := range append(labels, "model.layers.10", "model.norm") {
			p := subtest.Pattern("TestX/" + l)
			assert.Equal(t, l == other, selects(p, "TestX/"+subtest.Name(other)), "%s against %s", p, other)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct{ arg, want, reason string }{
		{`^a$`, `'^a$'`, "nothing is expanded"},
		{`it's`, `'it'\''s'`, "a quote ends the quotes and is written outside"},
		{``, `''`, "an empty argument is one"},
	} {
		assert.Equal(t, c.want, subtest.Quote(c.arg), c.reason)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		for _, name := range labels {
			if strings.ContainsRune(name, 0) {
				continue // cannot be an argument
			}
			out, err := exec.Command(sh, "-c", "printf %s "+subtest.Quote(name)).Output()
			require.NoError(t, err)
			assert.Equal(t, name, string(out))
		}
	}
}

func TestCommand(t *testing.T) {
	assert.Equal(t, "go test ./a -run '^T$/^b c$'", subtest.Command("go", "test", "./a", "-run", "^T$/^b c$"), "quoted only where needed")
	assert.Equal(t, "echo ''", subtest.Command("echo", ""), "an empty word is a word")
	assert.Equal(t, "parity show parity", subtest.Command("parity", "show", "parity"))
	t.Setenv(subtest.CommandKey, "uvx goparity")
	assert.Equal(t, "uvx goparity show parity", subtest.Command("parity", "show", "parity"), "as it was typed")
}
