package report

import (
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/text"
)

// PromptsOf says what the candidate made of the prompts of a case, and why where that is not what the
// reference made.
func PromptsOf(caseName string, golden, actual *dump.Info) (rows []Prompt, causes []Cause) {
	for _, f := range text.Judge(golden, actual) {
		row := Prompt{Case: caseName, Path: f.Path, Status: NotJudged, Text: f.String(), First: f.At, Golden: f.Golden.TokenIDs, Actual: f.Actual.TokenIDs}
		switch f.Status {
		case text.Equal:
			row.Status = StatusPass
		case text.Differs:
			row.Status = StatusFail
			if f.Cause.ID != "" {
				causes = append(causes, Cause{ID: f.Cause.ID, Proven: f.Cause.Proven, Fit: nan, FitGolden: nan, Text: f.Cause.Text})
			}
		}
		rows = append(rows, row)
	}
	return rows, causes
}

// Reads adds the prompts to a report; bare are runs of nothing else. One that differs is the verdict, and no
// layer is accused: a run on the reference's tokens shows nothing of it, and one on the candidate's own
// shows nothing else.
func (r *Report) Reads(rows []Prompt, causes []Cause, bare bool) {
	r.Texts = rows
	for _, row := range rows {
		if row.Status != StatusFail || r.Verdict == Error && r.Error != NothingCompared {
			continue
		}
		r.Error = ""
		if d := r.FirstDivergence; d != nil && d.Layer != "" {
			r.Notes = append(r.Notes, "the tensors differ, too, first at "+d.Where()+": that is judged once the text is right")
		}
		r.Verdict, r.Kind, r.Frontier, r.Causes = Fail, KindText, []string{}, append([]Cause{}, causes...)
		r.FirstDivergence = &Divergence{Case: row.Case, Text: row.Text, Proven: true}
		return
	}
	if r.Error == NothingCompared && bare {
		r.Verdict, r.Error = Pass, ""
	}
}
