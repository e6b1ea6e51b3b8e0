package transformers

import "strings"

// Edited returns the version of transformers in a run's versions if the run used an overlay, or
// else "".
func Edited(versions map[string]string) string {
	if v := versions["transformers"]; strings.HasSuffix(v, Mark) {
		return v
	}
	return ""
}
