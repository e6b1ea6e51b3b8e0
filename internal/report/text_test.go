package report_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

func text(t *testing.T, r *report.Report, opt report.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Text(&b, r, opt))
	return b.String()
}

func TestTextFiles(t *testing.T) {
	narrowed := failing()
	narrowed.FirstDivergence, narrowed.Kind, narrowed.Order, narrowed.Frontier, narrowed.Causes = nil, "", nil, nil, nil
	for _, c := range []struct {
		name   string
		r      *report.Report
		opt    report.TextOptions
		reason string
	}{
		{"pass.txt", passing(), report.TextOptions{}, "only the worst rows, the unmatched by reason"},
		{"pass-verbose.txt", passing(), report.TextOptions{Verbose: true}, "every row, all names"},
		{"fail.txt", failing(), report.TextOptions{}, "the place, causes, failing rows in order"},
		{"fail-color.txt", failing(), report.TextOptions{Color: true, Width: 140}, "colour does not move a column"},
		{"fail-narrow.txt", failing(), report.TextOptions{Width: 72}, "what does not fit goes below, nothing is lost"},
		{"fail-first-row.txt", narrowed, report.TextOptions{},
			"nothing localised: the first row that fails is the headline"},
		{"error.txt", broken(), report.TextOptions{}, "no rows at all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sameAsFile(t, c.name, []byte(text(t, c.r, c.opt)))
		})
	}
}

func TestTextFitsItsWidth(t *testing.T) {
	for _, r := range []*report.Report{passing(), failing(), broken()} {
		for _, columns := range []int{0, 100, 120} {
			for i, line := range strings.Split(text(t, r, report.TextOptions{Width: columns}), "\n") {
				if strings.HasPrefix(line, "    - ") || strings.Contains(line, "lines for fixture.yaml") {
					continue // lines to paste are never broken
				}
				assert.LessOrEqual(t, utf8.RuneCountInString(line), max(columns, 100), "line %d: %s", i+1, line)
			}
		}
	}
}

func TestTextPrintsNoControlCharacters(t *testing.T) {
	for _, opt := range []report.TextOptions{{}, {Verbose: true}} {
		got := text(t, hostile(), opt)
		assert.NotContains(t, got, "\x1b")
		assert.NotContains(t, got, "\x00")
		assert.NotContains(t, got, "\u202e", "a mark that turns the line around")
		assert.NotContains(t, got, "\n::error")
	}
}

func TestNoWriterTakesAPassThatIsNone(t *testing.T) {
	empty := passing()
	empty.Layers = nil
	contradicting := passing()
	contradicting.Layers[3].Status = report.StatusFail
	zero := passing()
	for i := range zero.Layers {
		if zero.Layers[i].Standard != nil {
			zero.Layers[i].Standard.N = 0
		}
	}
	for name, r := range map[string]*report.Report{"no rows": empty, "a failing row": contradicting,
		"rows of no element": zero} {
		var b bytes.Buffer
		assert.Error(t, report.Text(&b, r, report.TextOptions{}), name)
		assert.Error(t, report.Markdown(&b, r), name)
		assert.Error(t, report.Annotations(&b, r), name)
		assert.Error(t, report.Write(&b, r), name)
		assert.Empty(t, b.String(), name)
	}
}
