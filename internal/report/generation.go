package report

import (
	"fmt"
	"math"
	"slices"
)

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

// lines are the figures, in words.
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

// generationHeadline is of the worst text.
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
