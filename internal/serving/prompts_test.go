package serving_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// What the reference makes of a prompt by a mistake proves that mistake of a server, whether it tells its ids or not.
func TestMistakesOfAPromptAreProven(t *testing.T) {
	ref := servingtest.Cases(tokensOfCases)[2]
	stripped := slices.Concat(ref.Prompt[:1], ref.Prompt[2:])
	split := slices.Concat(ref.Prompt[:1], []int{40, 41, 42}, ref.Prompt[2:])
	ref.Mistakes = []dump.Mistake{{Cause: "text/whitespace", Text: "white space before the text is stripped", TokenIDs: stripped},
		{Cause: "text/special", Text: "special tokens are read as plain text", TokenIDs: split},
		{Cause: "text/bos-missing", Text: "no token begins the text", TokenIDs: ref.Prompt[1:]}}
	for _, c := range []struct {
		made  []int
		cause string
	}{{stripped, "text/whitespace"}, {split, "text/special"}, {ref.Prompt[1:], "serving/bos-missing"}} {
		for _, silent := range []bool{false, true} {
			s := &stub{NoIDs: silent, Asked: func(q *request) {
				if q.As != serving.AsIDs {
					q.Tokens = c.made
				}
			}}
			out := judge(t, s, []*serving.Reference{ref}, serving.Options{Model: known(t)})
			assert.Equal(t, report.Fail, out.Verdict)
			if assert.NotEmpty(t, out.Causes, c.cause) {
				assert.Equal(t, c.cause, out.Causes[0].ID, "silent %v: %s\n%s", silent, out.Causes[0].Text, strings.Join(out.Probes, "\n"))
				assert.True(t, out.Causes[0].Proven)
			}
		}
	}
}
