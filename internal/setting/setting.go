// Package setting holds the values of flags, environment variables and the command's options: a
// type for each setting, whose text is one of a few words. The empty text stands for the setting's
// default.
package setting

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
)

// Value is a setting for package flag.
type Value interface {
	encoding.TextMarshaler
	encoding.TextUnmarshaler
}

// parse reads one of the words. The error lists them.
func parse[S ~string](to *S, text []byte, words ...S) error {
	s := S(text)
	if s != "" && !slices.Contains(words, s) {
		last := len(words) - 1
		var first []string
		for _, w := range words[:last] {
			first = append(first, string(w))
		}
		return fmt.Errorf("want %s or %s", strings.Join(first, ", "), words[last])
	}
	*to = s
	return nil
}
