package parity

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
)

// path judges one execution path in its subtest.
func (p *Stage) path(t *testing.T, path *session.Path) {
	t.Helper()
	along, err := path.Judge()
	if err != nil {
		p.a.scope.ran++
		t.Error(sanitize.Text(err.Error()))
		return
	}
	ok := true
	if c := along.Along; c != nil {
		holds := along.OnePassHolds()
		for _, l := range c.Layers.Judged() {
			ok = t.Run(sanitize.Name(l), func(t *testing.T) {
				t.Helper()
				p.a.layer(t, c, l, caseOf, func(t *testing.T, r judge.LayerRun) string {
					t.Helper()
					return p.pass(t, c, r, holds)
				})
			}) && ok
		}
		if open := c.Demand(); len(open) > 0 {
			ok = p.says(t, "parity:coverage", strings.Join(open, "\n")+"\n"+report.OpenHelp, nil) && ok
		}
	}
	// What no layer shows by itself: other tokens, or a second run that is not the first.
	if !ok {
		return
	}
	if r := path.Report(); r.Verdict != report.Pass {
		var first *report.Row
		if r.FirstDivergence != nil {
			first = r.FirstDivergence.Row
		}
		p.says(t, "parity:path", report.Headline(r), first)
	}
}

// says is a failing subtest, about a row where that is known.
func (p *Stage) says(t *testing.T, name, text string, row *report.Row) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		t.Helper()
		p.a.scope.ran++
		attributesOf(t, row)
		t.Error(sanitize.Text(text))
	})
}

// caseOf names a subtest for each case.
func caseOf(r judge.LayerRun) string {
	name, _ := dump.CutPathCase(r.Case)
	return cmp.Or(name, "all")
}

// pass judges a forward pass of a layer; one that fails inherits that from the one pass if that is wrong, too.
func (p *Stage) pass(t *testing.T, c *judge.Comparison, r judge.LayerRun, onePassHolds bool) (unjudged string) {
	t.Helper()
	if onePassHolds || !slices.ContainsFunc(r.Judged, (*judge.Port).Fails) {
		return p.a.judge(t, c, r, nil)
	}
	p.a.scope.ran++
	for _, port := range r.Judged {
		port.Decide(nil, "", false)
	}
	p.a.inherit(t, "one pass, which is wrong too: see the layers there")
	return ""
}
