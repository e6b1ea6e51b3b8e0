package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/dump"
)

// where shows the first difference, in ids and, where their texts are known, in these.
func (f *Finding) where() string {
	g, a := f.Golden, f.Actual
	if f.At < 0 {
		return between(g.Rendered, a.Rendered)
	}
	where := fmt.Sprintf("token %d is %s, the reference has %s (%s, the reference %d)",
		f.At, at(a, f.At), at(g, f.At), tokens(len(a.TokenIDs)), len(g.TokenIDs))
	if g.Rendered != "" && a.Rendered != "" && g.Rendered != a.Rendered {
		where += "; " + between(g.Rendered, a.Rendered)
	}
	return where
}

// at shows some tokens from one on.
func at(t dump.Text, from int) string {
	if from >= len(t.TokenIDs) {
		return "none"
	}
	to := min(from+shownTokens, len(t.TokenIDs))
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(t.TokenIDs[from:to]), " ", ", "), "[]")
	if to < len(t.TokenIDs) {
		ids += ", …"
	}
	if len(t.Pieces) > 0 {
		return fmt.Sprintf("%q (%s)", strings.Join(t.Pieces[from:to], ""), ids)
	}
	return ids
}

// between shows where two texts begin to differ.
func between(golden, actual string) string {
	n := common([]byte(golden), []byte(actual))
	for n < len(golden) && !utf8.RuneStart(golden[n]) {
		n--
	}
	return fmt.Sprintf("after %q the text goes on with %q, the reference's with %q", last(golden[:n]), first(actual[n:]), first(golden[n:]))
}

func first(s string) string {
	if r := []rune(s); len(r) > shownRunes {
		return string(r[:shownRunes]) + "…"
	}
	return s
}

func last(s string) string {
	if r := []rune(s); len(r) > shownRunes {
		return "…" + string(r[len(r)-shownRunes:])
	}
	return s
}

func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}
