package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
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
	for _, f := range diagnose.Texts(golden, actual) {
		rows = append(rows, Prompt{Case: caseName, Path: f.Actual.Path, Status: statusOf(f.Status == diagnose.Equal || f.Status == diagnose.Differs,
			f.Status == diagnose.Differs), Text: f.Text, First: f.At, Golden: f.Golden.TokenIDs, Actual: f.Actual.TokenIDs})
		if f.Status == diagnose.Differs && f.Cause.ID != "" {
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

// Generation is what came of the candidate, forced along the reference's greedy text token by token.
type Generation struct {
	Case    string `json:"case"`
	Verdict string `json:"verdict"`      // "identical", "tie", "diverged", "logits" or "too flat"
	At      *int   `json:"at,omitempty"` // the first token, from 0, that diverged, whose logits fail, or that is a tie
	Text    string `json:"text"`         // the verdict in a sentence
	// Incremental: the tokens were run one by one, with the cache; else all in one pass.
	Incremental bool   `json:"incremental"`
	Prompt      int    `json:"prompt"`         // tokens of the prompt; row prompt − 1 + k decides token k; −1 if not known
	Tokens      int    `json:"tokens"`         // how many were judged
	Agree       int    `json:"agree"`          // tokens that are the reference's
	Ties        int    `json:"ties"`           // tokens that are others, and may be
	Flat        Float  `json:"flat"`           // the part of the tokens that the golden decides by less than the noise
	Logits      string `json:"logits"`         // the output that has them in the candidate
	DType       string `json:"encoding"`       // in which the runs were asked to compute: the noise is that of it
	KL          Float  `json:"kl"`             // of the worst token, in nats
	RelL2       Float  `json:"rel_l2"`         // of the logits of all tokens, less their mean
	Row         Float  `json:"row_rel_l2"`     // of the worst token
	Limit       Float  `json:"limit"`          // of rel_l2
	RowMost     Float  `json:"row_limit"`      // of row_rel_l2
	Growth      Float  `json:"growth"`         // median error of the last third of the tokens over that of the first; NaN if they are few
	Grows       bool   `json:"grows"`          // it grew steadily, and out of the noise
	Golden      Float  `json:"perplexity"`     // of the reference's tokens, by the reference
	Actual      Float  `json:"own_perplexity"` // of the same tokens, by the candidate

	Reference string  `json:"reference_text,omitempty"` // how the reference goes on by itself; shown, not judged
	Own       string  `json:"own_text,omitempty"`       // and the candidate
	Positions []Token `json:"positions"`
}

// Token is one position of a generation.
type Token struct {
	Reference int    `json:"reference"`
	Candidate int    `json:"candidate"`
	Choice    string `json:"choice"`         // "same", "tie" or "diverged"
	Said      *int   `json:"said,omitempty"` // what the engine says that it chose, against its own logits
	// Gap is by how much the reference's token is ahead of the other, the candidate's or else the
	// reference's second, and OwnGap how much it is in the candidate, both in units of Noise.
	Gap     Float `json:"gap"`
	OwnGap  Float `json:"own_gap"`
	Noise   Float `json:"noise"` // by how much the difference of the two logits may err, in nats
	KL      Float `json:"kl"`
	Rank    int   `json:"rank"`   // of the reference's token in the candidate, from 0
	Error   Float `json:"rel_l2"` // of the logits less their mean
	LogProb Float `json:"log_prob"`
	OwnProb Float `json:"own_log_prob"`
	Wrong   []int `json:"wrong,omitempty"` // tokens whose logits alone are off, as no rounding makes them
}

// String is "6, candidate 7, ahead by 100 × the noise, in the candidate -3; KL 1".
func (t *Token) String() string {
	return fmt.Sprintf("%d, candidate %d, ahead by %s × the noise, in the candidate %s; KL %s", t.Reference, t.Candidate, num(t.Gap), num(t.OwnGap), num(t.KL))
}

func (g *Generation) lines() (out []Line) {
	add := func(format string, args ...any) { out = append(out, Line{Text: fmt.Sprintf(format, args...)}) }
	ties := ""
	if g.Ties > 0 {
		ties = ", " + count(g.Ties, "tie")
	}
	add("%d of %d tokens are the reference's%s; the golden decides %.0f %% of them by less than the noise of %s", g.Agree, g.Tokens, ties,
		100*float64(g.Flat), g.DType)
	add("perplexity %s, the reference has %s; KL of the worst token %s", num(g.Actual), num(g.Golden), num(g.KL))
	add("logits (%s) less their mean: rel. L2 %s, worst row %s, limit %s", g.Logits, num(g.RelL2), num(g.Row), num(g.RowMost))
	if !math.IsNaN(float64(g.Growth)) {
		add("the last third of the tokens is off by %s times the first", num(g.Growth))
	}
	for _, t := range [][2]string{{"reference", g.Reference}, {"candidate", g.Own}} {
		if t[1] != "" {
			add("the %s goes on by itself, not judged: %q", t[0], t[1])
		}
	}
	return out
}

// ranks are those of the verdicts: too flat is no verdict, what follows is wrong.
var ranks = map[string]int{"identical": 0, "tie": 1, "too flat": 2, "logits": 3, "diverged": 4}

func judgedGenerations(r *Report) (list []Judged) {
	for _, g := range r.Generations {
		rank := ranks[g.Verdict]
		list = append(list, Judged{Name: g.Case, Count: g.Tokens, Text: g.Text, Status: statusOf(rank != 2, rank > 2)})
	}
	return list
}

func generationHeadline(r *Report) string {
	if len(r.Generations) == 0 {
		return tensorsHeadline(r)
	}
	tokens := 0
	for _, g := range r.Generations {
		tokens += g.Tokens
	}
	worst := slices.MaxFunc(r.Generations, func(a, b Generation) int { return ranks[a.Verdict] - ranks[b.Verdict] })
	text, first := worst.Text, ""
	switch {
	case len(r.Generations) == 1:
	case ranks[worst.Verdict] == 0:
		text = fmt.Sprintf("IDENTICAL: all %d tokens of %d texts", tokens, len(r.Generations))
	default:
		text = "case " + worst.Case + ": " + text
	}
	if r.Verdict == Fail {
		first = r.first()
	}
	return Clean(joined("; ", text, first))
}

func (d *composer) generations() {
	for i := range d.r.Generations {
		g := &d.r.Generations[i]
		s := Section{ID: sectionGenerations, Heading: "Generation " + Clean(g.Case)}
		if Clean(g.Text) != d.Title {
			s.Lines = lines("", g.Text)
		}
		d.add(s, unlimited, g.lines()...)
	}
}

// Serving is what a server answered to the cases of a fixture.
type Serving struct {
	Server   Server          `json:"server"`
	Verdict  Verdict         `json:"verdict"`           // pass, fail, or error
	Error    string          `json:"error,omitempty"`   // why nothing is judged
	First    *ServingPlace   `json:"first_divergence"`  // the first wrong answer; null if there is none
	Causes   []Cause         `json:"causes"`            // no layers in them; null if nothing is wrong
	Requests []ServedRequest `json:"requests"`          // in the order in which they were sent
	Probes   []string        `json:"probes,omitempty"`  // what was asked to find the cause, a sentence each
	Harness  string          `json:"harness,omitempty"` // what shows that the model itself is right; empty if nothing does
	Notes    []string        `json:"notes,omitempty"`   // what the server does not know or say
}

// Server is what was asked.
type Server struct {
	URL      string   `json:"url"`
	Model    string   `json:"model"` // as the server calls it
	Command  []string `json:"command,omitempty"`
	Parallel int      `json:"parallel"`
	Timeout  string   `json:"timeout"`
}

// ServingPlace is the first wrong answer.
type ServingPlace struct {
	Case  string `json:"case"`
	As    string `json:"as"`
	Way   string `json:"way"`
	Token int    `json:"token"` // from 0, the first that is wrong
	Text  string `json:"text"`
}

// ServedRequest is one request and what came of it.
type ServedRequest struct {
	Case    string   `json:"case"`
	As      string   `json:"as"`             // "ids", "text" or "chat"
	Way     string   `json:"way"`            // "alone", "prefix" or "at once"
	From    int      `json:"from"`           // of prefix: how many tokens of the reference's text the prompt ends with
	Status  Status   `json:"status"`         // pass, fail, or error: no answer that can be judged
	Judged  []string `json:"judged"`         // of prompt, tokens, text and logprobs, what the server said and the golden knows
	Tokens  int      `json:"tokens"`         // that were asked for
	Right   int      `json:"right"`          // that are right, before the first that is not
	Tie     *int     `json:"tie"`            // the first token that is another and may be; what follows is not judged; null if none is
	Ended   *int     `json:"ended"`          // where the text ended before that many tokens; null if it did not
	LogProb Float    `json:"logprob_error"`  // largest error of a log-probability, in nats; NaN where there is none
	Text    string   `json:"text,omitempty"` // what is wrong
}

// SetServing adds what came of serving to a report. No layer is accused.
func (r *Report) SetServing(s *Serving) {
	if r.Serving = s; s == nil {
		return
	}
	part := &Report{Verdict: s.Verdict, Error: s.Error}
	if s.Verdict == Fail {
		part.Kind, part.Causes = KindServing, s.Causes
	}
	r.Join(part)
}

// best is the first cause of a layer, nil if there is none: those of a server are shown with its answers.
func (r *Report) best() *Cause {
	if r.Kind == KindServing || len(r.Causes) == 0 {
		return nil
	}
	return &r.Causes[0]
}

// Headline is the verdict of serving in one line.
func (s *Serving) Headline() string {
	wrong, ties, until, cause := 0, 0, "", ""
	for _, r := range s.Requests {
		if r.Status == StatusFail {
			wrong++
		}
		if r.Tie != nil {
			ties++
			until = fmt.Sprintf(", %d until a tie", ties)
		}
	}
	if len(s.Causes) > 0 {
		cause = fmt.Sprintf(": %s (%s)", Clean(s.Causes[0].ID), s.Causes[0].word())
	}
	switch answers := count(len(s.Requests), "answer"); {
	case s.Verdict == Error:
		return Clean(s.Error)
	case s.First == nil:
		return fmt.Sprintf("%s of the server %s the reference's%s", answers, are(len(s.Requests)), until)
	default:
		return fmt.Sprintf("the server answers wrong: %s%s; %d of %s are wrong", s.First.Where(), cause, wrong, answers)
	}
}

// Where is "case hello as chat, alone, token 3".
func (p *ServingPlace) Where() string {
	return fmt.Sprintf("case %s as %s, %s, token %d", Clean(p.Case), Clean(p.As), Clean(p.Way), p.Token)
}

// String is the request in one line: "hello, ids, alone: pass, 3 of 3 tokens right (tokens, text)".
func (r *ServedRequest) String() string {
	line := fmt.Sprintf("%s as %s, %s", Clean(r.Case), Clean(r.As), Clean(r.Way))
	if r.From > 0 {
		line += fmt.Sprintf(" from token %d", r.From)
	}
	if r.Status != StatusPass {
		return line + ": " + strings.ToUpper(string(r.Status)) + ", " + Clean(r.Text)
	}
	line += fmt.Sprintf(": %d of %s right", r.Right, count(r.Tokens, "token"))
	switch {
	case r.Tie != nil:
		line += fmt.Sprintf(", a tie at %d, what follows is not judged", *r.Tie)
	case r.Ended != nil:
		line += ", then the text ends"
	}
	return line + " (" + strings.Join(r.Judged, ", ") + ")"
}

// Title is "Serving: MODEL at URL, 4 at once".
func (s *Serving) Title() string {
	return fmt.Sprintf("Serving: %s at %s, %d at once", Clean(s.Server.Model), Clean(s.Server.URL), s.Server.Parallel)
}

func judgedAnswers(r *Report) (list []Judged) {
	if s := r.Serving; s != nil && s.Verdict != Error {
		for _, q := range s.Requests {
			list = append(list, Judged{Name: fmt.Sprintf("%s as %s, %s", q.Case, q.As, q.Way), Text: q.Text, Count: len(q.Judged),
				Status: statusOf(q.Status == StatusPass || q.Status == StatusFail, q.Status == StatusFail)})
		}
	}
	return list
}

func servingHeadline(r *Report) string {
	if r.Serving == nil {
		return tensorsHeadline(r)
	}
	return r.Serving.Headline()
}

// serving says what came of a server: the answers that are wrong, or else all, the causes, and what was not judged.
func (d *composer) serving() {
	s := d.r.Serving
	if s == nil {
		return
	}
	out := Section{Heading: s.Title()}
	for i := range s.Requests {
		if r := &s.Requests[i]; r.Status != StatusPass || d.Verbose || s.Verdict == Pass {
			out.Lines = append(out.Lines, Line{Text: r.String()})
		}
	}
	var after []Line
	if s.Verdict == Fail && len(s.Causes) == 0 {
		after = lines("", "no cause is shown by what was asked")
	}
	for _, c := range s.Causes {
		after = append(after, c.lines(c.Sentence()+" See "+c.Doc()+".")...)
	}
	after = append(after, lines("", s.Harness)...)
	if d.Verbose {
		after = append(after, lines("asked", s.Probes...)...)
	}
	d.add(out, maxRows, append(after, lines("note", s.Notes...)...)...)
}

// served: a server answers wrong, and no layer does.
func (n next) served() (commands, string) {
	what, not := "mend the server", ", not the model's layers"
	if len(n.r.Causes) == 0 {
		what, not = "look at the server", ", not at the model's layers"
	}
	return n.mend(what, not, "; then this asks it again")
}
