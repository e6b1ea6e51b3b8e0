package transformers

import "strings"

// Edited is the version of transformers among those of a run, if the run used a module's own copy;
// else "".
func Edited(versions map[string]string) string {
	if v := versions["transformers"]; strings.HasSuffix(v, Mark) {
		return v
	}
	return ""
}
