package judge

import "github.com/goparity/goparity/internal/checkpoint"

// settings lists what the two engines read otherwise of the model's config, where both runs say what
// they read.
func (c *Comparison) settings() []checkpoint.Difference {
	if len(c.Cases) == 0 {
		return nil
	}
	k := c.Cases[0]
	return checkpoint.Diff(checkpoint.Flat(k.Golden.Info.Config), checkpoint.Flat(k.Actual.Info.Config))
}

// noteSettings says what they are, where something fails.
func (c *Comparison) noteSettings() (notes []string) {
	for _, d := range c.settings() {
		notes = append(notes, "config: "+d.String())
	}
	return notes
}
