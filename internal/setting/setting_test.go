package setting_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/setting"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		to     flag.Value
		words  []string
		want   string
		reason string
	}{
		{setting.Flag(new(setting.Run)), []string{"replay", "cpu", "gpu"}, "want replay, cpu or gpu", "run"},
		{setting.Flag(new(setting.Mode)), []string{"standard", "both"}, "want standard or both", "mode"},
		{setting.Flag(new(setting.Inherited)), []string{"skip", "fail"}, "want skip or fail", "inherited"},
		{setting.Flag(new(setting.Update)), []string{"none", "new", "all"}, "want none, new or all", "update"},
		{setting.Flag(new(setting.Diagnose)), []string{"off", "fast", "full"}, "want off, fast or full", "diagnose"},
	} {
		for _, word := range append(c.words, "") {
			require.NoError(t, c.to.Set(word), c.reason)
			assert.Equal(t, word, c.to.String(), c.reason)
		}
		require.NoError(t, c.to.Set(c.words[1]))
		for _, wrong := range []string{"other", " " + c.words[0], c.words[0] + ","} {
			assert.EqualError(t, c.to.Set(wrong), c.want, c.reason)
			assert.Equal(t, c.words[1], c.to.String(), "%s: an error changes nothing", c.reason)
		}
	}
	var text string
	require.NoError(t, setting.Flag(&text).Set("any folder"), "a text without words")
	assert.Equal(t, "any folder", text)
}

func TestBudgetGrows(t *testing.T) {
	assert.Zero(t, setting.DiagnoseOff.Budget())
	assert.Less(t, setting.DiagnoseOff.Budget(), setting.DiagnoseFast.Budget())
	assert.Less(t, setting.DiagnoseFast.Budget(), setting.DiagnoseFull.Budget())
	assert.Equal(t, setting.DiagnoseFull.Budget(), setting.Diagnose("").Budget(), "the default")
}

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
		assert.Equal(t, []string{name}, ran(setting.Pattern(name)))
	}
	assert.Len(t, ran("TestNamesForRunPattern/encoder.layer.1"), 6,
		"the check must be able to fail: an unanchored pattern hits more")
}

func TestQuote(t *testing.T) {
	for _, c := range []struct{ arg, want, reason string }{
		{`^a$`, `'^a$'`, "nothing is expanded"},
		{`it's`, `'it'\''s'`, "a quote ends the quotes and is written outside"},
		{``, `''`, "an empty argument is one"},
		{`./a`, `./a`, "quoted only where needed"},
	} {
		assert.Equal(t, "echo "+c.want, setting.Command("echo", c.arg), c.reason)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		for _, name := range layerNames {
			if strings.ContainsRune(name, 0) {
				continue // cannot be an argument
			}
			out, err := exec.Command(sh, "-c", setting.Command("printf", "%s", name)).Output()
			require.NoError(t, err)
			assert.Equal(t, name, string(out))
		}
	}
	assert.Equal(t, "parity show parity", setting.Command("parity", "show", "parity"))
	t.Setenv("PARITY_COMMAND", "uvx goparity")
	assert.Equal(t, "uvx goparity show parity", setting.Command("parity", "show", "parity"), "as it was typed")
}

func TestName(t *testing.T) {
	for _, name := range layerNames {
		t.Run(name, func(t *testing.T) {
			given, _, _ := strings.Cut(t.Name(), "#0") // go test numbers what is there already
			assert.True(t, given == "TestName/"+setting.Name(name) || name == "#00", given)
		})
	}
}

func TestNarrowed(t *testing.T) {
	was := setting.TestFlag("test.run")
	defer flag.Set("test.run", was)
	for run, want := range map[string]bool{"": false, "TestPort": false, "TestPort/layer": true} {
		require.NoError(t, flag.Set("test.run", run))
		assert.Equal(t, run, setting.TestFlag("test.run"))
		assert.Equal(t, want, setting.Narrowed(), run)
	}
	assert.Empty(t, setting.TestFlag("no.such.flag"))
}

func TestPlace(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write := func(name string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	for _, f := range []string{"work/go.work", "work/a/go.mod", "work/a/x/y", "work/b/go.mod", "mod/go.mod", "mod/x/y"} {
		write(f)
	}
	for _, tt := range []struct{ dir, gowork, root, folder, argument, reason string }{
		{"mod", "", "mod", ".", ".", "the root of a module"},
		{"mod/x", "", "mod", "x", "./x", "a folder of it"},
		{"work/a/x", "", "work", "a/x", "./x", "of a workspace: another module may have an x, too"},
		{"work/a/x", "off", "work/a", "x", "./x", "a workspace that is switched off"},
	} {
		t.Chdir(filepath.Join(root, tt.dir))
		t.Setenv("GOWORK", tt.gowork)
		at, folder := setting.Place()
		assert.Equal(t, filepath.Join(root, tt.root), at, tt.reason)
		assert.Equal(t, tt.folder, folder, tt.reason)
		assert.Equal(t, tt.argument, setting.Package(), tt.reason)
	}
	t.Chdir(root)
	at, folder := setting.Place()
	assert.Equal(t, []string{".", "."}, []string{at, folder}, "without a go.mod")
	assert.Equal(t, "github.com/goparity/goparity/internal/setting", setting.ImportPath())
}
