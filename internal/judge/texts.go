package judge

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/text"
)

// Texts says what the candidate made of the prompts of each case, and why where that is not what the
// reference made.
func (c *Comparison) Texts() (rows []report.Prompt, causes []report.Cause) {
	seen := map[string]bool{}
	for _, k := range c.Cases {
		for _, f := range text.Judge(&k.Golden.Info, &k.Actual.Info) {
			row := report.Prompt{Case: k.Name, Path: f.Path, Status: report.NotJudged, Text: f.String(), First: f.At, Golden: f.Golden.TokenIDs, Actual: f.Actual.TokenIDs}
			switch f.Status {
			case text.Equal:
				row.Status = report.StatusPass
			case text.Differs:
				row.Status = report.StatusFail
				if id := f.Cause.ID; id != "" && !seen[id] {
					seen[id] = true
					causes = append(causes, report.Cause{ID: id, Proven: f.Cause.Proven, Fit: report.Float(math.NaN()), FitGolden: report.Float(math.NaN()), Text: f.Cause.Text})
				}
			}
			rows = append(rows, row)
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

// texts adds them to a report. A text that differs is the verdict, and no layer is accused: a run on
// the reference's tokens shows nothing of it, and one on the candidate's own shows nothing else.
func (c *Comparison) texts(r *report.Report) {
	rows, causes := c.Texts()
	r.Texts = rows
	for _, row := range rows {
		if row.Status != report.StatusFail || r.Verdict == report.Error && r.Error != report.NothingCompared {
			continue
		}
		r.Error = ""
		if d := r.FirstDivergence; d != nil && d.Layer != "" {
			r.Notes = append(r.Notes, "the tensors differ, too, first at "+d.Where()+": that is judged once the text is right")
		}
		r.Verdict, r.Kind, r.Frontier, r.Causes = report.Fail, report.KindText, []string{}, append([]report.Cause{}, causes...)
		r.FirstDivergence = &report.Divergence{Case: row.Case, Text: row.Text, Proven: true}
		return
	}
	bare := !slices.ContainsFunc(c.Cases, func(k Case) bool { return len(k.Golden.Entries) > 0 || len(k.Actual.Entries) > 0 })
	if r.Error == report.NothingCompared && bare {
		r.Verdict, r.Error = report.Pass, "" // runs of texts alone
	}
}

// tokens is the status of the stage behind the text: whether the runs were given the same tokens.
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
