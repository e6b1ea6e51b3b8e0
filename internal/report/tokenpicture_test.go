package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

// A picture of a long text has the token that the verdict is about, and says which others.
func TestTokenPictures(t *testing.T) {
	at := func(k int) *int { return &k }
	for _, c := range []struct {
		tokens      int
		at          *int
		first, last string
		says        string
		reason      string
	}{
		{3, nil, "token 0:", "token 2:", "IDENTICAL", "all of a short text"},
		{1000, nil, "token 0:", "token 255:", "IDENTICAL (the picture has tokens 0 to 255)", "nothing to look for"},
		{1000, at(500), "token 436:", "token 691:", "IDENTICAL (the picture has tokens 436 to 691)", "with what came before it"},
		{1000, at(990), "token 744:", "token 999:", "IDENTICAL (the picture has tokens 744 to 999)", "the end"},
		{1000, at(3), "token 0:", "token 255:", "IDENTICAL (the picture has tokens 0 to 255)", "the beginning"},
	} {
		g := report.Generation{Case: "a", Text: "IDENTICAL", At: c.at, Positions: make([]report.Token, c.tokens)}
		got := report.NewTokenPictures(&report.Report{Generations: []report.Generation{g}})
		require.Len(t, got, 1)
		tokens := got[0].Tokens
		assert.True(t, strings.HasPrefix(tokens[0].Title, c.first), "%s: %s", c.reason, tokens[0].Title)
		assert.True(t, strings.HasPrefix(tokens[len(tokens)-1].Title, c.last), "%s: %s", c.reason, tokens[len(tokens)-1].Title)
		assert.Equal(t, c.says, got[0].Text, c.reason)
	}
}
