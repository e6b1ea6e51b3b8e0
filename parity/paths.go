package parity

import (
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
	if c := along.Along(); c != nil {
		inherited := ""
		if !along.OnePassHolds() {
			inherited = "one pass, which is wrong too: see the layers there"
		}
		for _, l := range c.Layers.Judged() {
			ok = t.Run(sanitize.Name(l), func(t *testing.T) {
				t.Helper()
				p.layer(t, c, l, inherited)
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

// layer judges one layer along a path, each case in a subtest of its own.
func (p *Stage) layer(t *testing.T, c *judge.Comparison, layer, inherited string) {
	t.Helper()
	runs := c.Layers.Runs(layer)
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(r judge.LayerRun) bool { return r.Case != runs[0].Case })
		if n < 0 {
			n = len(runs)
		}
		passes := runs[:n]
		runs = runs[n:]
		name, _ := dump.CutPathCase(passes[0].Case)
		if name == "" {
			name = "all"
		}
		t.Run(sanitize.Name(name), func(t *testing.T) {
			t.Helper()
			if i := slices.IndexFunc(passes, fails); inherited != "" && i >= 0 {
				p.a.scope.ran++
				for _, port := range passes[i].Judged {
					port.Decide(nil, "") // later passes follow from this one
				}
				p.a.inherit(t, inherited)
				return
			}
			left, why := 0, ""
			for _, r := range passes {
				if w := p.a.judge(t, c, r, nil); w != "" {
					left, why = left+1, w
				}
				if t.Failed() || t.Skipped() {
					return // later passes follow from this one
				}
			}
			if left == len(passes) {
				t.Skip(sanitize.Line(why))
			}
		})
	}
}

// fails reports whether an output is outside its tolerance.
func fails(r judge.LayerRun) bool { return slices.ContainsFunc(r.Judged, (*judge.Port).Fails) }
