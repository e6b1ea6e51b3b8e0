package judge

import "github.com/goparity/goparity/internal/checkpoint"

// settings lists what the two engines read otherwise of the model's config, where the candidate's run says
// what it read. The reference's is that of its run, or else the config that is at hand for causes.
func (c *Comparison) settings() []checkpoint.Difference {
	if len(c.Cases) == 0 {
		return nil
	}
	k := c.Cases[0]
	actual := checkpoint.Flat(k.Actual.Info.Config)
	golden := checkpoint.Flat(k.Golden.Info.Config)
	if actual != nil && golden == nil && c.search.Evidence != nil {
		_, golden, _ = c.search.Evidence() // an error of it is told where causes are looked for
	}
	return checkpoint.Diff(golden, actual)
}
