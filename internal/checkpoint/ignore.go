package checkpoint

import (
	"regexp"
	"strings"
)

// ignoring tells the modules that an entry of a config's ignore list leaves as they are: "re:" and a regular
// expression that has to match from the beginning of the name, as Python's re.match; a pattern with *; or a
// name, or segments of one.
//
// An expression that Go cannot read, such as one with a look-ahead, leaves all modules: nothing can be asked of
// them.
func ignoring(entry string) func(module string) bool {
	pattern, isRegexp := strings.CutPrefix(entry, "re:")
	switch {
	case isRegexp:
		re, err := regexp.Compile(`^(?:` + pattern + `)`)
		if err != nil {
			return func(string) bool { return true }
		}
		return re.MatchString
	case strings.Contains(entry, "*"):
		re := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(entry), `\*`, `.*`) + `$`)
		return re.MatchString
	case entry == "":
		return func(string) bool { return false }
	}
	return func(module string) bool { return strings.Contains("."+module+".", "."+strings.Trim(entry, ".")+".") }
}
