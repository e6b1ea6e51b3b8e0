package main

import (
	"fmt"
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

// document is docs/test-your-model.md, by its sections.
type document map[string]struct{ commands, files []string }

var (
	fence  = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")
	inline = regexp.MustCompile("`(parity [a-z]+ [^`]+)`")
)

func readDocument(t *testing.T) document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "test-your-model.md"))
	require.NoError(t, err)
	p := document{}
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		s := p[title]
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			switch {
			case m[1] == "sh":
				s.commands = append(s.commands, strings.Split(strings.TrimSpace(m[3]), "\n")...)
			case m[2] != "":
				s.files = append(s.files, fmt.Sprintf("-- %s --\n%s", m[2], m[3]))
			}
		}
		p[title] = s
	}
	return p
}

// Every command of the document has flags that are there, and belongs to a section that is run or to notRun.
func TestDocumentFlags(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "test-your-model.md"))
	require.NoError(t, err)
	var all []string
	for _, s := range readDocument(t) {
		all = append(all, s.commands...)
	}
	require.Greater(t, len(all), 12)
	for _, m := range inline.FindAllStringSubmatch(string(data), -1) {
		all = append(all, m[1])
	}
	for _, line := range all {
		words, err := shellWords(line)
		require.NoError(t, err)
		if words[0] != "parity" {
			continue
		}
		c, rest, err := newRoot().Find(words[1:])
		require.NoError(t, err, line)
		assert.NotEqual(t, "parity", c.Name(), line)
		if err := c.ParseFlags(rest); assert.NoError(t, err, line) {
			assert.NoError(t, c.ValidateArgs(c.Flags().Args()), line)
		}
	}
}

// The document installs what goparity is tried with.
func TestDocumentVersions(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "test-your-model.md"))
	require.NoError(t, err)
	install := regexp.MustCompile(`(?m)^\.venv/bin/pip install .*$`).FindString(string(data))
	for _, e := range engines {
		assert.Contains(t, strings.Fields(strings.ReplaceAll(install, `"`, "")), requirement(e.engine, e.pkg))
	}
}

// shellWords splits as a shell does, as far as the document needs it.
func shellWords(line string) (words []string, err error) {
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
	for title, s := range readDocument(t) {
		gpu := strings.Contains(title, "GPU")
		var b strings.Builder
		fmt.Fprintf(&b, "env PARITY_PYTHON=%s\nmodule\n", python)
		run := 0
		for _, c := range s.commands {
			skip := slices.ContainsFunc(keys(notRun), func(start string) bool { return strings.HasPrefix(c, start) })
			if !skip && !gpu {
				fmt.Fprintf(&b, "exec sh -c '%s'\n", strings.ReplaceAll(c, "'", "''"))
				run++
			}
		}
		for _, f := range s.files {
			b.WriteString(f)
		}
		name := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(title, ",", "")), " ", "-")
		t.Run(name, func(t *testing.T) {
			if gpu {
				t.Skip("needs a GPU and a model of the hub: TestDocumentFlags checks the flags")
			}
			if run == 0 {
				t.Skip("has no commands of its own")
			}
			file := filepath.Join(t.TempDir(), name+".txt")
			require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
			p := params(t)
			p.Files = []string{file}
			testscript.Run(t, p)
		})
	}
}

func keys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
