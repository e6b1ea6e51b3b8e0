package brief

import (
	"fmt"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/report"
)

// cut returns the brief with sentences and lists of at most n bytes of JSON.
func (b *Brief) cut(n int) *Brief {
	out := b.each(
		func(name string) string { return middle(name, max(2*n, leastName)) },
		func(sentence string) string { return cut(sentence, n) },
		func(list []string) []string { return first(list, n) })
	if b.Next != nil && n == leastText {
		out.Next, out.WhyNext = nil, tooLong
	}
	return out
}

// first keeps the first entries that cost at most n, and says how many more there are.
func first(list []string, n int) []string {
	out := []string{}
	for _, s := range list {
		if n -= report.QuotedLen(s); n < 0 {
			return append(out, fmt.Sprintf("… and %d", len(list)-len(out)))
		}
		out = append(out, s)
	}
	return out
}

// cut keeps the beginning of a text that costs at most n, and says how much follows.
func cut(s string, n int) string {
	if report.QuotedLen(s) <= n {
		return s
	}
	kept := prefix(s, n-12)
	return fmt.Sprintf("%s… +%d", kept, utf8.RuneCountInString(s)-utf8.RuneCountInString(kept))
}

// middle keeps both ends of a name that costs at most n.
func middle(s string, n int) string {
	if report.QuotedLen(s) <= n {
		return s
	}
	front := prefix(s, (n-3)/2)
	back := s[len(front):]
	for report.QuotedLen(back) > (n-3)/2 {
		_, size := utf8.DecodeRuneInString(back)
		back = back[size:]
	}
	return front + "…" + back
}

// prefix is the longest beginning that costs at most n.
func prefix(s string, n int) string {
	spent := 0
	for i, r := range s {
		if spent += report.QuotedLen(string(r)); spent > n {
			return s[:i]
		}
	}
	return s
}
