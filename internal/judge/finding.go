package judge

import "slices"

// finding is a sentence of the comparison as a whole, and when it is told.
type finding struct {
	effect effect
	text   string
}

type effect int

const (
	uncovered effect = iota // it was not shown to be right: a pass is incomplete by it
	whenRight               // a note where nothing is wrong
	whenWrong               // a note where something is
)

// find adds a finding, the same one only once.
func (c *Comparison) find(e effect, text string) {
	if f := (finding{e, text}); !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

// findingsOf lists the findings of an effect.
func (c *Comparison) findingsOf(e effect) (texts []string) {
	for _, f := range c.findings {
		if f.effect == e {
			texts = append(texts, f.text)
		}
	}
	return texts
}
