package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// notRun are the commands of the document that the test only looks at, by their beginnings.
var notRun = map[string]string{
	"go install ":                 "installs from the network",
	"python3 -m venv":             "make live does it",
	".venv/bin/pip install":       "make live does it",
	"go test ./port -tags gpu":    "needs a GPU",
	"parity transformers edit":    "its own script runs it",
	"parity transformers restore": "its own script runs it",
}

// Pages whose commands are run.
const (
	models  = "docs/models.md"
	goTests = "docs/go-test.md"
	agents  = "docs/agents.md"
)

// section is what a section of a page runs, and the files that the page has shown so far.
type section struct {
	title           string
	commands, files []string
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```(\\w+)(?: (\\S+))?\n(.*?)^ *```$")
	inline = regexp.MustCompile("`(parity [a-z]+ [^`]+)`")
)

func readPage(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

func readDocument(t *testing.T, page string) (sections []section) {
	t.Helper()
	var files []string
	for _, part := range strings.Split(readPage(t, page), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		s := section{title: title}
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			switch {
			case m[2] != "":
				files = append(files, fmt.Sprintf("-- %s --\n%s", m[2], m[3]))
			case m[1] == "sh":
				s.commands = append(s.commands, strings.Split(strings.TrimSpace(m[3]), "\n")...)
			}
		}
		s.files = slices.Clone(files)
		sections = append(sections, s)
	}
	return sections
}

// pages are all pages that a user reads.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	all := []string{"README.md", "SKILL.md"}
	for _, page := range found {
		all = append(all, "docs/"+filepath.Base(page))
	}
	require.Greater(t, len(all), 20)
	return all
}

// Every command of the pages is there, and has the flags and as many arguments as it is given.
func TestDocumentFlags(t *testing.T) {
	known := 0
	for _, page := range pages(t) {
		text := readPage(t, page)
		var all []string
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			if m[2] == "" && (m[1] == "sh" || m[1] == "console") {
				all = append(all, strings.Split(strings.TrimSpace(m[3]), "\n")...)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			if !strings.ContainsAny(m[1], "|[…") { // what may be written there
				all = append(all, m[1])
			}
		}
		for _, line := range all {
			words, err := shellWords(strings.TrimPrefix(line, "$ "))
			require.NoError(t, err, page)
			if words[0] == "parity" {
				assert.NoError(t, wrongCommand(words[1:]), "%s: %s", page, line)
				known++
			}
		}
	}
	assert.Greater(t, known, 80, "commands that were looked at")
	assert.ErrorContains(t, wrongCommand([]string{"compare", "--goldem", "x"}), "--goldem")
	assert.Error(t, wrongCommand([]string{"comprae", "a", "b"}))
	assert.Error(t, wrongCommand([]string{"explain", "a", "b"}))
}

// mention is a command within a sentence, up to its end.
var mention = regexp.MustCompile("^([a-z]+)((?: (?:--?)?[A-Za-z0-9_./<>|=…%-]+)*)")

// Every command that the program, a page or a comment of a test's user mentions is there, and has the
// flags that are mentioned with it.
func TestMentionedFlags(t *testing.T) {
	commands := newRoot()
	flag := regexp.MustCompile(` --([a-z0-9-]+)`)
	ours := regexp.MustCompile(`/(cmd/parity/help.txt|(cmd/parity|internal/report)/.*\.go)$`) // what these print has today's words
	looked := 0
	look := func(where, text string) {
		for _, part := range strings.Split(text, "parity ")[1:] {
			m := mention.FindStringSubmatch(part)
			if m == nil {
				continue
			}
			c, _, err := commands.Find(today(strings.Fields(m[0])))
			if err != nil || c.HasSubCommands() {
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				looked++
				known := c.Flags().Lookup(f[1])
				if assert.NotNil(t, known, "%s: %s: parity %s has no flag --%s", where, m[0], m[1], f[1]) && ours.MatchString(where) {
					assert.False(t, known.Hidden, "%s: %s: --%s is of earlier versions", where, m[0], f[1])
				}
			}
			if ours.MatchString(where) {
				assert.Empty(t, earlier[m[1]], "%s: %s: parity %s is of earlier versions", where, m[0], m[1])
			}
		}
	}
	root := filepath.Join("..", "..")
	for _, page := range append(pages(t), "CONTRIBUTING.md") {
		look(page, strings.ReplaceAll(readPage(t, page), "\n", " "))
	}
	for _, dir := range []string{"cmd", "golden", "internal", "parity", "testmain"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !(filepath.Ext(path) == ".go" || d.Name() == "help.txt") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			look(path, string(data))
			return err
		}))
	}
	assert.Greater(t, looked, 100, "flags that were looked up")
}

// wrongCommand says what keeps parity from understanding a command line.
func wrongCommand(args []string) error {
	c, rest, err := newRoot().Find(today(args))
	if err != nil {
		return err
	}
	if !c.HasParent() {
		return fmt.Errorf("%q is no command", args[0])
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

// The document installs what goparity is tried with.
func TestDocumentVersions(t *testing.T) {
	install := regexp.MustCompile(`(?m)^\.venv/bin/pip install .*$`).FindString(readPage(t, models))
	for pkg, name := range map[string]string{"torch": engine.Torch, "transformers": engine.Torch, "max": engine.MAX} {
		assert.Contains(t, strings.Fields(strings.ReplaceAll(install, `"`, "")), requirement(name, pkg))
	}
}

// shellWords splits as a shell does, as far as the pages need it.
func shellWords(line string) (words []string, err error) {
	line, _, _ = strings.Cut(line, " # ")
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2]+m[3])
	}
	if len(words) == 0 {
		err = fmt.Errorf("%q is no command", line)
	}
	return words, err
}

// The commands run one after another in a new module, with fake engines; with PARITY_LIVE=1 with the real ones.
func TestDocument(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the document's commands are for a POSIX shell")
	}
	python := "fakepython"
	if os.Getenv("PARITY_LIVE") == "1" {
		var err error
		python, err = engine.Interpreter(os.Getenv, ".")
		require.NoError(t, err)
	}
	for _, s := range append(readDocument(t, models), readDocument(t, goTests)...) {
		gpu := strings.Contains(s.title, "GPU")
		var b strings.Builder
		fmt.Fprintf(&b, "env PARITY_PYTHON=%s\nmodule\n", python)
		run := 0
		for _, c := range s.commands {
			skip := slices.ContainsFunc(slices.Collect(maps.Keys(notRun)), func(start string) bool { return strings.HasPrefix(c, start) })
			if !skip && !gpu {
				b.WriteString(scripted(c))
				run++
			}
		}
		for _, f := range s.files {
			b.WriteString(f)
		}
		name := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(s.title, ",", "")), " ", "-")
		t.Run(name, func(t *testing.T) {
			if gpu {
				t.Skip("needs a GPU and a model of the hub: TestDocumentFlags checks the flags")
			}
			if run == 0 {
				t.Skip("has no commands of its own")
			}
			runScript(t, name, b.String())
		})
	}
}

// scripted is a command of a page as a line of testscript. It ends with "# exits 1" where it must
// not succeed.
func scripted(command string) string {
	command, code, fails := strings.Cut(command, "# exits ")
	if !fails {
		code = "0"
	}
	return fmt.Sprintf("exits %s sh -c '%s'\n", code, strings.ReplaceAll(strings.TrimSpace(command), "'", "''"))
}

func runScript(t *testing.T, name, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".txt")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o644))
	p := params(t)
	p.Files = []string{file}
	testscript.Run(t, p)
}

// agentsBefore is what docs/agents.md begins with: a port with names of its own that lost
// rope_theta, and stand-ins for who records and mends it.
const agentsBefore = `
env R=$PARITY_ROOT/cmd/parity/testdata/rope
module
cp $R/config.json model/config.json
cp $R/config.json config.json
cpdir $R/ref ref
cpdir $R/lost lost
cp $R/lost/own.json lost/run.json
cpdir $R/port mended
cp $R/port/own.json mended/run.json
cpdir lost cand
chmod 755 record.sh
chmod 755 mend.sh
`

const agentsFiles = `
-- record.sh --
#!/bin/sh
rm -r "$1" && cp -R "$(cat which 2>/dev/null || echo lost)" "$1"
-- mend.sh --
#!/bin/sh
grep -q '"cause":{"id":"rope/theta",.*"proven":true' "$1" && echo mended >which
-- port/fixture.yaml --
model: {path: ../model, task: text-generation, encodings: {cpu: {reference: float32, candidate: float32}}}
cases:
  run: {token_ids: [1, 27, 3, 41, 9, 60, 14, 33, 52, 7, 45, 20, 38, 11, 58, 25]}
replay: cand
-- port/port_test.go --
package port

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture(".")) }

func TestPort(t *testing.T) { parity.All(t).Check() }
`

// wanted is what the commands of docs/agents.md print, by their beginnings.
var wanted = map[string]string{
	"parity explain --json report.json":                   `stdout '"cause":{"id":"rope/theta",'`,
	"parity compare ref cand --names names.yaml --edit '": `stdout 'then: 18 of 18 tensors'`,
	"sh loop.sh":                `stdout '^round 2: pass$'`,
	"parity explain --json out": `stdout '"verdict":"pass"'`,
}

// The commands run one after another, over testdata/rope.
func TestAgentsDocument(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the document's commands are for a POSIX shell")
	}
	b := strings.Builder{}
	b.WriteString(agentsBefore)
	files, looked := agentsFiles, 0
	for _, s := range readDocument(t, agents) {
		for _, c := range s.commands {
			b.WriteString(scripted(c))
			for start, want := range wanted {
				if strings.HasPrefix(c, start) {
					b.WriteString(want + "\n")
					looked++
				}
			}
		}
		files += strings.Join(s.files, "")
	}
	require.GreaterOrEqual(t, looked, 3, "commands of the page whose output is known")
	runScript(t, "agents", b.String()+files)
}

// shownOn are the pages that show what commands print, and what is there before.
var shownOn = map[string]string{
	"docs/compare.md": `
env R=$PARITY_ROOT/cmd/parity/testdata/rope
cpdir $R/ref golden
cpdir $R/lost dump
cpdir $R/lost own
cp $R/lost/own.json own/run.json
`,
	"docs/symptoms.md": `
cpdir $FIXTURES/tinyllama/model tinyllama/model
mk golden/0/model.a-output.npy 2 1 2
mk cand/0/model.a-output.npy 2 1 2
cp golden.json golden/run.json
cp cand.json cand/run.json
-- golden.json --
{"schema":2,"engine":"torch","token_ids":[[1,7]],"text":[{"path":"completion","prompt":"Hello","token_ids":[1,7]}]}
-- cand.json --
{"schema":2,"engine":"max","token_ids":[[1,7]],"text":[{"path":"completion","prompt":"Hello","token_ids":[1,1,7]}]}
`,
}

// The commands of console blocks print the lines that are shown below them.
func TestConsoles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages' commands are for a POSIX shell")
	}
	for page, before := range shownOn {
		script, files, _ := strings.Cut(before, "\n-- ")
		for _, m := range fence.FindAllStringSubmatch(readPage(t, page), -1) {
			if m[1] != "console" {
				continue
			}
			for i, shown := range strings.Split("\n"+m[3], "\n$ ")[1:] {
				command, lines, _ := strings.Cut(shown, "\n")
				name := fmt.Sprintf("shown-%d-%d", len(script), i)
				script += fmt.Sprintf("\nshows %s '%s'\n", name, strings.ReplaceAll(command, "'", "''"))
				files += fmt.Sprintf("\n-- %s --\n%s", name, lines)
			}
		}
		require.Contains(t, script, "shows", "%s shows what commands print", page)
		t.Run(filepath.Base(page), func(t *testing.T) { runScript(t, "console", script+"\n-- "+strings.TrimPrefix(files, "\n-- ")) })
	}
}

// shows runs a command, whatever its exit code, and wants lines among what it prints, in this order: shows FILE COMMAND
func shows(ts *testscript.TestScript, _ bool, args []string) {
	_ = ts.Exec("sh", "-c", args[1])
	said := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		line = strings.TrimRight(line, "\n")
		if line == "…" {
			continue
		}
		_, rest, found := strings.Cut(said, line)
		if !found {
			ts.Fatalf("%s does not print %q, but\n%s", args[1], line, said)
		}
		said = rest
	}
}
