package report_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

func TestChanges(t *testing.T) {
	of := func(rows ...report.Layer) *report.Report {
		return &report.Report{Schema: 1, Verdict: report.Pass, Layers: rows}
	}
	missing := row("a", 0, report.StatusMissing, nil)
	ignored := row("a", 0, report.StatusIgnored, metrics(1e-6, 0))
	input := row("a", 0, report.StatusFail, metrics(1, 0))
	input.Kind = label.RoleInput.String()
	for _, c := range []struct {
		old, new *report.Report
		want     report.Class
		reason   string
	}{
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(row("a", 0, report.StatusPass, metrics(1.9e-6, 0))),
			"", "not even twice"},
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(row("a", 0, report.StatusPass, metrics(2.1e-6, 0))),
			report.Worse, "more than twice"},
		{of(row("a", 0, report.StatusPass, metrics(2.1e-6, 0))), of(row("a", 0, report.StatusPass, metrics(1e-6, 0))),
			report.Better, "less than half"},
		{of(row("a", 0, report.StatusPass, metrics(1e-8, 0))), of(row("a", 0, report.StatusPass, metrics(4e-7, 0))),
			"", "less than 8 units of rounding mean nothing"},
		{of(row("a", 0, report.StatusPass, metrics(1e-4, 0))),
			of(row("a", 0, report.StatusFail, metrics(1.01e-4, 0))), report.Worse, "over the limit"},
		{of(row("a", 0, report.StatusInherited, metrics(1, 0))), of(row("a", 0, report.StatusPass, metrics(1e-6, 0))),
			report.Better, "passes now"},
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(), report.Gone, "not there any more"},
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(ignored), report.Gone, "not judged any more"},
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(missing), report.Worse, "missing"},
		{of(), of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), report.New, "new"},
		{of(row("a", 0, report.StatusPass, metrics(1e-6, 0))), of(input), "",
			"another port would be another row; an input is evidence"},
	} {
		changes := report.Changes(c.old, c.new)
		if c.want == "" {
			assert.Empty(t, changes, c.reason)
			continue
		}
		require.Len(t, changes, 1, c.reason)
		assert.Equal(t, c.want, changes[0].Class, c.reason)
		assert.Equal(t, c.want == report.Worse || c.want == report.Gone, changes[0].Class.Bad(), c.reason)
	}
}

func TestBaselineText(t *testing.T) {
	var b bytes.Buffer
	worse, err := report.Baseline(&b, passing(), failing(), report.TextOptions{})
	require.NoError(t, err)
	assert.True(t, worse)
	sameAsFile(t, "baseline.txt", b.Bytes())
	worse, err = report.Baseline(&b, passing(), passing(), report.TextOptions{})
	require.NoError(t, err)
	assert.False(t, worse, "the same")
}
