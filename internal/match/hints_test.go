package match_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/match"
)

func TestHint(t *testing.T) {
	rule := match.Proposed{Rule: match.Rule{Golden: []string{"m.*.up"}, Candidate: []string{"x.*.up"}}}
	const more = "more: parity names -o FILE writes all of them"
	of := func(n int) *match.Proposal { return &match.Proposal{Rules: slices.Repeat([]match.Proposed{rule}, n)} }
	one, nine := of(1), of(9)
	layer, lines := one.Hint([]string{"m.norm", "m.1.up(2)"})
	assert.Equal(t, "m.1.up(2)", layer, "a rule joins it")
	assert.Contains(t, lines, "names:\n  - golden:")
	assert.NotContains(t, lines, more)
	_, six := of(6).Hint([]string{"m.1.up"})
	assert.NotContains(t, six, more)
	_, seven := of(7).Hint([]string{"m.1.up"})
	assert.Contains(t, seven, "# and 1 "+more)
	_, long := nine.Hint([]string{"m.1.up"})
	assert.Contains(t, long, lines)
	assert.Contains(t, long, more, "the first rules only")
	layer, _ = one.Hint([]string{"m.norm"})
	assert.Empty(t, layer, "no rule joins it")
}
