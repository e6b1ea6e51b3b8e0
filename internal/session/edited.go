package session

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/transformers"
)

// edited gives the version of transformers that a run used, if it was the module's own copy; else "".
func edited(r *dump.Run) string {
	if v := r.Info.Versions["transformers"]; strings.HasSuffix(v, transformers.Mark) {
		return v
	}
	return ""
}

func (c *Comparison) noteEdited(who string, r *dump.Run) {
	if v := edited(r); v != "" {
		c.note(fmt.Sprintf("the %s used transformers %s: see parity transformers status", who, v))
	}
}
