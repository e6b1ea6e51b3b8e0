package report

import (
	"fmt"
	"strings"
)

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
