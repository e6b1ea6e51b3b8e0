package judge

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
)

// suggest puts lines for fixture.yaml beside the first port of layers that only one side has.
func (c *Comparison) suggest() {
	var gaps []match.Gap
	var proposal *match.Proposal
	for _, k := range c.Cases {
		var golden, actual bool
		for _, g := range c.gaps[k.Name] {
			gaps = append(gaps, g)
			golden, actual = golden || len(g.Golden) > 0, actual || len(g.Actual) > 0
		}
		if golden && actual && proposal == nil {
			err := mapfile.Guard(func() (err error) { proposal, err = k.Propose(c.match); return err })
			if err != nil {
				return
			}
		}
	}
	layer := func(l report.Lone) string { return l.Name[:strings.LastIndexByte(l.Name, ' ')] }
	var left []string
	for _, l := range c.Unmatched.Golden {
		left = append(left, layer(l))
	}
	for _, h := range match.Hints(proposal, left, gaps) {
		lones := c.Unmatched.Actual
		if h.Golden {
			lones = c.Unmatched.Golden
		}
		if i := slices.IndexFunc(lones, func(l report.Lone) bool { return layer(l) == h.Layer }); i >= 0 && lones[i].Hint == "" {
			lones[i].Hint = h.Lines
		}
	}
}
