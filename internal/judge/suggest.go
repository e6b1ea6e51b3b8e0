package judge

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
)

// suggest puts lines for fixture.yaml beside the first port of the golden's layers that rules would join.
func (c *Comparison) suggest() {
	i := slices.IndexFunc(c.Cases, func(k Case) bool {
		var golden, actual bool
		for _, g := range c.gaps[k.Name] {
			golden, actual = golden || len(g.Golden) > 0, actual || len(g.Actual) > 0
		}
		return golden && actual
	})
	if i < 0 {
		return
	}
	var proposal *match.Proposal
	err := mapfile.Guard(func() (err error) { proposal, err = c.Cases[i].Propose(c.match); return err })
	if err != nil {
		return
	}
	layer := func(l report.Lone) string { return l.Name[:strings.LastIndexByte(l.Name, ' ')] }
	lones := c.Unmatched.Golden
	var left []string
	for _, l := range lones {
		left = append(left, layer(l))
	}
	of, lines := proposal.Hint(left)
	if i := slices.IndexFunc(lones, func(l report.Lone) bool { return layer(l) == of }); i >= 0 && lones[i].Hint == "" {
		lones[i].Hint = lines
	}
}
