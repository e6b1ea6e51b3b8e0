package judge

import (
	"slices"

	"github.com/goparity/goparity/internal/report"
)

// Texts says what the candidate made of the prompts of all cases, and why where that is not what the
// reference made, each cause once.
func (c *Comparison) Texts() (rows []report.Prompt, causes []report.Cause) {
	for _, k := range c.Cases {
		more, why := report.PromptsOf(k.Name, &k.Golden.Info, &k.Actual.Info)
		rows = append(rows, more...)
		for _, x := range why {
			if !slices.ContainsFunc(causes, func(o report.Cause) bool { return o.ID == x.ID }) {
				causes = append(causes, x)
			}
		}
	}
	return rows, causes
}

// textAlone reports whether some side has no tensors at all, and a text can be judged.
func (c *Comparison) textAlone() bool {
	if !slices.ContainsFunc(c.Cases, func(k Case) bool { return len(k.Golden.Entries) == 0 || len(k.Actual.Entries) == 0 }) {
		return false
	}
	rows, _ := c.Texts()
	return slices.ContainsFunc(rows, func(t report.Prompt) bool { return t.Status != report.NotJudged })
}

// tokens is the status of the stage after the text: whether the runs were given the same tokens.
func (c *Comparison) tokens() report.Status {
	if c.OtherPrompt() != nil {
		return report.StatusFail
	}
	for _, k := range c.Cases {
		if len(k.Golden.Info.Asked()) == 0 || len(k.Actual.Info.Asked()) == 0 {
			return report.NotJudged
		}
	}
	return report.StatusPass
}
