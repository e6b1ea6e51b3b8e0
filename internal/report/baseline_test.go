package report_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/internal/weights"
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
		{of(), of(input), "", "an input is evidence"},
	} {
		changed(t, c.old, c.new, c.want, c.reason)
	}
}

// changed wants a change of a class, or none.
func changed(t *testing.T, old, now *report.Report, want report.Class, reason string) {
	t.Helper()
	var classes []report.Class
	for _, c := range report.Changes(old, now) {
		classes = append(classes, c.Class)
	}
	if want == "" {
		assert.Empty(t, classes, reason)
	} else {
		assert.Equal(t, []report.Class{want}, classes, reason)
	}
}

func TestBaselineText(t *testing.T) {
	var b bytes.Buffer
	worse, err := report.Baseline(&b, passing(), failing(), report.TextOptions{})
	require.NoError(t, err)
	assert.True(t, worse)
	toy.Kept(t, "baseline.txt", b.String())
	worse, err = report.Baseline(&b, passing(), passing(), report.TextOptions{})
	require.NoError(t, err)
	assert.False(t, worse, "the same")
}

// Every stage has its changes: a server that became wrong beside an old failure is worse.
func TestStageChanges(t *testing.T) {
	served := func(status report.Status) *report.Report {
		return &report.Report{Serving: &report.Serving{Requests: []report.ServedRequest{{Case: "first", As: "ids", Way: "alone", Status: status}}}}
	}
	text := func(status report.Status) *report.Report {
		return &report.Report{Texts: []report.Prompt{{Case: "talk", Path: "chat", Status: status}}}
	}
	made := func(verdict string, tokens int) *report.Report {
		return &report.Report{Generations: []report.Generation{{Case: "a", Verdict: verdict, Tokens: tokens}}}
	}
	loaded := func(status string) *report.Report {
		return &report.Report{Weights: []weights.Result{{Reference: "w", Status: status}}}
	}
	along := func(holds bool) *report.Report {
		return &report.Report{Paths: []report.Path{{Case: "a", Path: "decode:8", Matches: &report.Agreement{Holds: holds, Outputs: 3}}}}
	}
	none := &report.Report{}
	for _, c := range []struct {
		old, now *report.Report
		want     report.Class
		reason   string
	}{
		{served(report.StatusPass), served(report.StatusFail), report.Worse, "a server"},
		{served(report.StatusFail), served(report.StatusPass), report.Better, "and the other way round"},
		{served(report.StatusPass), served(report.StatusError), report.Gone, "no answer"},
		{served(report.StatusPass), none, report.Gone, "no server was asked"},
		{none, served(report.StatusFail), report.Worse, "a new failure"},
		{none, served(report.StatusPass), report.New, "new"},
		{served(report.StatusFail), served(report.StatusFail), "", "wrong as before"},
		{text(report.StatusPass), text(report.StatusFail), report.Worse, "a tokenizer"},
		{text(report.StatusPass), text(report.NotJudged), report.Gone, "a text that is told no more"},
		{made("identical", 32), made("diverged", 32), report.Worse, "a generation"},
		{made("identical", 32), made("identical", 8), report.Gone, "fewer tokens"},
		{made("tie", 32), made("identical", 32), "", "a tie passes, too"},
		{made("identical", 32), made("too flat", 32), report.Gone, "nothing was decided"},
		{loaded("equal"), loaded("differs"), report.Worse, "a weight"},
		{along(true), along(false), report.Worse, "a path"},
		{&report.Report{Tokens: report.StatusPass}, &report.Report{Tokens: report.StatusFail}, report.Worse, "tokens"},
	} {
		changed(t, c.old, c.now, c.want, c.reason)
	}
	for _, c := range []struct {
		old, now *report.Report
		want     string
	}{
		{made("identical", 32), made("identical", 8), "generation a: pass of 32 → pass of 8"},
		{none, text(report.StatusPass), "text talk chat: not judged → pass"},
		{text(report.StatusPass), &report.Report{Texts: []report.Prompt{{Case: "talk", Path: "chat", Status: report.StatusFail, Text: "no BOS"}}},
			"text talk chat: pass → fail: no BOS"},
		{&report.Report{Layers: []report.Layer{row("a", 0, report.StatusPass, metrics(1e-7, 0))}},
			&report.Report{Layers: []report.Layer{row("a", 0, report.StatusMissing, nil)}}, "tensors a output hello.0: pass, worst row 1e-7 → missing"},
	} {
		assert.Equal(t, c.want, report.Changes(c.old, c.now)[0].String())
	}
	old, now := failing(), failing()
	old.Serving, now.Serving = served(report.StatusPass).Serving, served(report.StatusFail).Serving
	for _, r := range []*report.Report{old, now} {
		r.Serving.Verdict, r.Serving.Causes = report.Fail, []report.Cause{}
	}
	old.Serving.Verdict = report.Pass
	var b bytes.Buffer
	worse, err := report.Baseline(&b, old, now, report.TextOptions{})
	require.NoError(t, err)
	assert.True(t, worse)
	assert.Contains(t, b.String(), "1 worse")
	assert.Contains(t, b.String(), "serving first as ids, alone: pass → fail")
}
