package reference

import (
	"fmt"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// Case asks an engine for what a run was given: its tokens in as many steps, without padding. Of a run
// along an execution path, or of a text, it is one pass over all tokens.
func Case(run *dump.Run) (engine.Case, error) {
	c := engine.Case{Name: run.Info.Case, TokenIDs: run.Info.Unpadded(), Steps: 1}
	if run.Info.AlongPath() || run.Info.Generation != nil {
		return c, nil
	}
	if len(c.TokenIDs) == 0 {
		c.TokenIDs = run.Prompts()
	}
	if c.Steps = len(run.Steps()); c.Steps == 1 {
		return c, nil
	}
	if c.Forced = run.Decoded(); len(c.Forced) == 0 {
		return c, fmt.Errorf("%s: case %s has %d steps, and does not show which tokens the decode steps were given: "+
			"record the inputs of the embedding", run.Path, c.Name, c.Steps)
	}
	return c, nil
}
