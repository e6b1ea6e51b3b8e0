package report_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

func TestMarkdownFiles(t *testing.T) {
	for name, r := range map[string]*report.Report{"pass.md": passing(), "fail.md": failing(), "error.md": broken()} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, report.Markdown(&b, r, "report.json"))
			toy.Kept(t, name, b.String())
		})
	}
}

func TestMarkdownOfAHostileReport(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Markdown(&b, hostile(200), "report.json"))
	assert.Less(t, b.Len(), 1<<20, "GitHub shows nothing of a larger one")
	got := b.String()
	assert.NotContains(t, got, "\x1b")
	assert.NotContains(t, got, "\n::error", "no line that a runner takes for a command")
	rows := 0
	columns := 8
	for _, line := range strings.Split(got, "\n") {
		if strings.HasPrefix(line, "| ") {
			rows++
			bars := strings.Count(line, "|") - strings.Count(line, `\|`)
			assert.Equal(t, columns+1, bars, "a name must not open a cell: %s", line)
		}
	}
	assert.Equal(t, 21, rows, "the head and twenty rows")
	assert.Contains(t, got, "… and 184 more, all in report.json")
	own := regexp.MustCompile(`<details><summary>|</summary>|</details>`)
	outside := strings.Split(own.ReplaceAllString(got, ""), "`")
	for i := 0; i < len(outside); i += 2 {
		assert.NotRegexp(t, `(^|[^\\])<`, outside[i], "no HTML outside code")
	}
}

func TestAnnotations(t *testing.T) {
	annotations := func(r *report.Report) string {
		var b bytes.Buffer
		require.NoError(t, report.Annotations(&b, r))
		return b.String()
	}
	assert.Empty(t, annotations(passing()), "a pass has none")
	toy.Kept(t, "fail-annotations.txt", annotations(failing()))
	toy.Kept(t, "error-annotations.txt", annotations(broken()))

	lines := strings.Split(strings.TrimSuffix(annotations(hostile(20)), "\n"), "\n")
	assert.Len(t, lines, 10, "GitHub keeps ten a step")
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "::error title="), line)
		title, _, ok := strings.Cut(strings.TrimPrefix(line, "::error title="), "::")
		assert.True(t, ok)
		assert.NotContains(t, title, ":", "a colon ends the title")
		assert.NotContains(t, title, ",", "a comma begins another property")
		assert.Less(t, len(line), 2000)
	}
}
