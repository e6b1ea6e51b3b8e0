package judge

import (
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/weights"
)

// loaded is what came of the weights that engines loaded, once somebody asks.
type loaded struct {
	once sync.Once
	list []weights.Result
	why  []string // why there is nothing, or something was not judged
}

// Loaded compares the weights that the candidate's engine loaded, see [weights.Loaded]. It is nil if they
// are not known; why says so.
func (c *Comparison) Loaded() (list []weights.Result, why []string) {
	c.loaded.once.Do(func() {
		var goldens, candidates []*dump.Run
		for _, k := range c.Cases {
			goldens, candidates = append(goldens, k.Golden), append(candidates, k.Actual)
		}
		err := mapfile.Guard(func() (err error) {
			c.loaded.list, err = weights.Loaded(c.ctx, goldens, candidates, c.search.Evidence)
			return err
		})
		if err != nil {
			c.loaded.why = append(c.loaded.why, err.Error())
		}
		for i := range c.loaded.list {
			if w := &c.loaded.list[i]; w.Scaled() && c.undone(label.Parent(w.Reference)) {
				w.Fold()
			}
		}
	})
	return c.loaded.list, c.loaded.why
}

// undone reports whether all that a module makes is written otherwise, and what is made of it undoes that.
func (c *Comparison) undone(module string) (all bool) {
	for _, p := range c.Ports {
		if p.Judged() && p.Joined() && (p.Layer == module || strings.HasSuffix(p.Layer, "."+module)) {
			if all = p.rewritten(); !all {
				return false
			}
		}
	}
	return all
}
