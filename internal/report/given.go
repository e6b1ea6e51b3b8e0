package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/text"
	"github.com/goparity/goparity/internal/weights"
)

// Prompt is what the candidate made of one prompt or conversation along one of its API paths.
type Prompt struct {
	Case   string `json:"case"`
	Path   string `json:"path"`   // the API path: "completion", "chat"
	Status Status `json:"status"` // pass, fail or not judged
	Text   string `json:"text"`   // one sentence
	First  int    `json:"first"`  // the first token that differs; -1 where none does
	Golden []int  `json:"golden"` // token ids; null where they are not known
	Actual []int  `json:"actual"`
}

// PromptsOf says what the candidate made of the prompts of a case, and why not what the reference made.
func PromptsOf(caseName string, golden, actual *dump.Info) (rows []Prompt, causes []Cause) {
	for _, f := range text.Judge(golden, actual) {
		rows = append(rows, Prompt{Case: caseName, Path: f.Actual.Path, Status: statusOf(f.Status == text.Equal || f.Status == text.Differs,
			f.Status == text.Differs), Text: f.Text, First: f.At, Golden: f.Golden.TokenIDs, Actual: f.Actual.TokenIDs})
		if f.Status == text.Differs && f.Cause.ID != "" {
			causes = append(causes, Cause{ID: f.Cause.ID, Proven: f.Cause.Proven, Fit: nan, FitGolden: nan, Text: f.Cause.Text})
		}
	}
	return rows, causes
}

// SetPrompts adds the prompts to a report; bare are runs of nothing else. Of one that differs no layer is accused: a run
// on the reference's tokens shows nothing of it, and one on the candidate's own shows nothing else.
func (r *Report) SetPrompts(rows []Prompt, causes []Cause, bare bool) {
	r.Texts = rows
	if i := slices.IndexFunc(rows, func(p Prompt) bool { return p.Status == StatusFail }); i >= 0 {
		if d := r.FirstDivergence; d != nil && d.Layer != "" {
			r.Notes = append(r.Notes, "the tensors differ, too, first at "+d.Where()+": that is judged once the text is right")
		}
		r.Join(&Report{Verdict: Fail, Kind: KindText, Frontier: []string{}, Causes: append([]Cause{}, causes...),
			FirstDivergence: &Divergence{Case: rows[i].Case, Text: rows[i].Text, Proven: true}})
	} else if bare {
		r.Join(&Report{Verdict: Pass})
	}
}

func judgedTexts(r *Report) (list []Judged) {
	for _, t := range r.Texts {
		list = append(list, Judged{Name: t.Case + " " + t.Path, Status: t.Status, Text: t.Text})
	}
	return list
}

func textHeadline(r *Report) string {
	what := count(len(r.Texts), "text") + " as the reference makes it"
	if r.Verdict == Fail {
		what = "the engine makes another text or other tokens of a prompt"
		if len(r.Causes) > 0 {
			what += ": " + Clean(r.Causes[0].ID)
		}
	}
	return what + "; " + r.compared()
}

// texts says which texts the engine makes otherwise.
func (d *composer) texts() {
	s := Section{Heading: "Texts"}
	for _, t := range d.r.Texts {
		if t.Status != StatusPass {
			s.Lines = append(s.Lines, Line{Lead: "text of " + Clean(t.Case), Text: t.Text})
		}
	}
	d.add(s, maxLines)
}

// text: what the engine makes of a prompt is wrong, and not the model.
func (n next) text() (commands, string) {
	return n.mend("mend the tokenizer or the template", ", not the model", "; then this judges it again")
}

func judgedTokens(r *Report) []Judged {
	return []Judged{{Name: "all", Status: statusOf(r.Tokens == StatusPass || r.Tokens == StatusFail, r.Tokens == StatusFail)}}
}

func tokensHeadline(r *Report) string {
	if r.Verdict != Fail {
		return "" // that they are the same says nothing by itself
	}
	return "the two runs were not given the same input; " + r.compared()
}

var nan = Float(math.NaN())

// SetWeights adds the comparison of weights to a report. What the tensors show follows from a wrong one, and stays.
func (r *Report) SetWeights(list []weights.Result) {
	r.Weights = list
	wrong := r.wrongWeights()
	if len(wrong) == 0 {
		return
	}
	causes := []Cause{}
	for _, w := range wrong {
		if w.Cause != "" && len(causes) < maxFew {
			layer := strings.TrimSuffix(strings.TrimSuffix(w.Reference, ".weight"), ".bias")
			causes = append(causes, Cause{ID: w.Cause, Layer: layer, Proven: true, Fit: nan, FitGolden: nan,
				Text: "the loaded weight " + w.String()})
		}
	}
	r.Join(&Report{Verdict: Fail, Kind: KindWeights, FirstDivergence: r.FirstDivergence, Frontier: r.Frontier,
		Causes: append(causes, r.Causes...)})
}

// wrongWeights are those that are not the reference's.
func (r *Report) wrongWeights() []weights.Result {
	return slices.DeleteFunc(slices.Clone(r.Weights), func(w weights.Result) bool { return w.Good() })
}

// weighed is what came of the weights: "2 of 30 weights are not the reference's, first a: all zeros".
func (r *Report) weighed() string {
	n, wrong := len(r.Weights), r.wrongWeights()
	judged := len(slices.DeleteFunc(judgedWeights(r), func(j Judged) bool { return j.Status == NotJudged }))
	switch {
	case judged == 0:
		return "none of " + count(n, "weight") + " could be judged"
	case len(wrong) == 0:
		return fmt.Sprintf("%d of %s are the reference's", judged, count(judged, "weight"))
	}
	return fmt.Sprintf("%d of %s %s not the reference's, first %s", len(wrong), count(n, "weight"), are(n), Clean(wrong[0].String()))
}

func judgedWeights(r *Report) (list []Judged) {
	for _, w := range r.Weights {
		list = append(list, Judged{Name: cmp.Or(w.Reference, w.Candidate), Text: w.Detail, Status: statusOf(w.Judged(), !w.Good())})
	}
	return list
}

func weightsHeadline(r *Report) string { return joined("; ", r.weighed(), r.first(), r.compared()) }

// weights lists the weights that are wrong.
func (d *composer) weights() {
	if len(d.r.Weights) == 0 {
		return
	}
	s := Section{Heading: "Weights", Lines: lines("", d.r.weighed())}
	for _, w := range d.r.wrongWeights() {
		s.Lines = append(s.Lines, Line{Text: w.String(), Level: 1})
	}
	d.add(s, maxLines+1)
}
