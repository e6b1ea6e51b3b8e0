package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/match"
)

func TestHints(t *testing.T) {
	rules := func(n int) (all []match.Proposed) {
		for range n {
			all = append(all, match.Proposed{Rule: match.Rule{Golden: []string{"m.*.up"}, Candidate: []string{"x.*.up"}}})
		}
		return all
	}
	golden := []match.Left{{Layer: "m.0.drop", Alone: true}, {Layer: "m.0.act", Same: "m.0.up", Alone: true}, {Layer: "m.0.norm"}}
	gap := func(times int, layers ...string) []match.Gap { return []match.Gap{{Golden: layers, Times: times}} }
	for _, c := range []struct {
		proposal *match.Proposal
		left     []string
		gaps     []match.Gap
		golden   bool
		layer    string // "" for no hint
		lines    string
		reason   string
	}{
		{&match.Proposal{Rules: rules(1)}, []string{"m.norm", "m.1.up(2)"}, nil, true, "m.1.up(2)", "names:\n  - golden:", "a rule joins it"},
		{&match.Proposal{Rules: rules(1)}, []string{"m.norm"}, nil, false, "", "", "no rule joins it"},
		{&match.Proposal{Rules: rules(9)}, []string{"m.1.up"}, nil, true, "m.1.up", "more: parity names -o FILE writes all of them", "the first rules only"},
		{&match.Proposal{Foreign: "another model", Rules: rules(1)}, []string{"m.1.up"}, nil, false, "", "", "two models: nothing joins them"},
		{&match.Proposal{Golden: golden}, nil, gap(1, "m.0.drop"), true, "m.0.drop",
			"ignore:\n  - layers: \"m.0.drop\"\n    reason: \"the candidate has no such layer\"", "it has no counterpart"},
		{&match.Proposal{Golden: golden}, nil, gap(2, "m.0.drop"), true, "m.0.drop", "layers: \"m.*.drop\"", "in no block"},
		{&match.Proposal{Golden: golden}, nil, gap(1, "m.0.norm"), false, "", "", "another layer may be its counterpart"},
		{&match.Proposal{Golden: golden}, nil, gap(1, "m.0.norm", "m.0.act"), true, "m.0.act",
			"ignore:\n  - layers: \"m.0.act\"\n    reason: \"it holds what m.0.up holds, which is compared\"", "its value is compared elsewhere"},
		{&match.Proposal{Golden: golden}, nil, gap(2, "m.0.act"), true, "m.0.act",
			"  - layers: \"m.*.act\"\n    reason: \"it holds what m.*.up holds", "in all blocks"},
		{&match.Proposal{Actual: golden}, nil, []match.Gap{{Actual: []string{"m.0.drop"}, Times: 1}}, false, "m.0.drop",
			"reason: \"the reference has no such layer\"", "of the candidate"},
		{&match.Proposal{Actual: golden}, nil, gap(1, "m.0.drop"), false, "", "", "the other side's is another"},
		{nil, nil, []match.Gap{{Actual: []string{"m.x"}, Times: 1}}, false, "m.x", "layers: \"m.x\"", "only one side has any"},
	} {
		hints := match.Hints(c.proposal, c.left, c.gaps)
		if c.layer == "" {
			assert.Empty(t, hints, c.reason)
		} else if assert.Len(t, hints, 1, c.reason) {
			assert.Equal(t, [2]any{c.golden, c.layer}, [2]any{hints[0].Golden, hints[0].Layer}, c.reason)
			assert.Contains(t, hints[0].Lines, c.lines, c.reason)
		}
	}
	long := match.Hints(&match.Proposal{Rules: rules(9)}, []string{"m.1.up"}, nil)[0].Lines
	short := match.Hints(&match.Proposal{Rules: rules(1)}, []string{"m.1.up"}, nil)[0].Lines
	assert.NotContains(t, short, "more")
	assert.Contains(t, long, short)
}
