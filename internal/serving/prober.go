package serving

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
)

// Causes. docs/causes.md has a row for each.
const (
	causeBOSTwice    = "serving/bos-twice"
	causeBOSMissing  = "serving/bos-missing"
	causeTemplate    = "serving/template"
	causeStop        = "serving/stop"
	causeSampling    = "serving/sampling"
	causeConcurrency = "serving/concurrency"
	causeLogProbs    = "serving/logprobs"
	causeDetokenise  = "serving/detokenise"
	causeCache       = "serving/cache"
	causeChoice      = "serving/choice"
	causeDraws       = "serving/distribution"
	causeStream      = "serving/stream"
	causeSetting     = "serving/setting"
)

// IDs lists all causes.
func IDs() []string {
	return []string{causeBOSTwice, causeBOSMissing, causeTemplate, causeStop, causeSampling, causeConcurrency, causeLogProbs,
		causeDetokenise, causeCache, causeChoice, causeDraws, causeStream, causeSetting}
}

// finding is a cause and what shows it. One that is not proven fits, and others may.
type finding struct {
	id, text string
	proven   bool
}

func (q *request) proven(id, format string, args ...any) *finding {
	return &finding{id, q.where() + ": " + fmt.Sprintf(format, args...), true}
}

func (q *request) guess(id, format string, args ...any) *finding {
	return &finding{id, q.where() + ": " + fmt.Sprintf(format, args...), false}
}

// cause is the finding as a report has it: nothing was predicted, so nothing fits better or worse.
func (f *finding) cause() report.Cause {
	nan := report.Float(math.NaN())
	return report.Cause{ID: f.id, Proven: f.proven, Text: sanitize.Line(f.text), Fit: nan, FitGolden: nan, NextFit: nan}
}

// prober looks for the causes of wrong answers, by asking the server further.
type prober struct {
	*run
	ctx   context.Context
	until time.Time
	asked int
	said  []string
	again map[*request][]probe
}

// probe is the answer to a further request.
type probe struct {
	answer Answer
	right  bool // it is the reference's
}

// try sends a further request about a wrong one, for which ref has the right answer. ok is false if
// there is no answer that can be judged, or no time left: that shows nothing.
func (d *prober) try(q *request, how string, ref *Reference, a Ask) (p probe, ok bool) {
	if d.asked >= maxProbes || time.Now().After(d.until) || d.ctx.Err() != nil {
		return p, false
	}
	d.asked++
	what, word := q.where()+", "+how, "wrong"
	answer, err := d.client.ask(d.ctx, a)
	if err != nil {
		d.said = append(d.said, what+": no answer")
		return p, false
	}
	j := d.model.judge(ref, &answer)
	p = probe{answer, j.fault == none || j.fault == short && j.unsure && len(ref.Tokens)-j.at == 1}
	if p.right {
		word = "right"
	}
	d.said = append(d.said, what+": "+word)
	return p, true
}

// next asks for n tokens after the first k of the reference's, all as ids.
func (d *prober) next(q *request, k, n int) (p probe, ok bool) {
	rest := q.ref.from(k, n)
	return d.try(q, fmt.Sprintf("prompt and %s as ids, %d more", plural(k, "right token"), n), rest, rest.Ask)
}

// causes looks for what makes the answers wrong, the first ones in their order. Those that are
// proven come first.
func (d *prober) causes() []report.Cause {
	causes, looked := []report.Cause{}, 0
	for _, q := range d.requests {
		if !q.wrong() || looked == maxFindings || d.known(q) {
			continue
		}
		looked++
		f := d.cause(q)
		if f != nil && !slices.ContainsFunc(causes, func(c report.Cause) bool { return c.ID == f.id && (c.Proven || !f.proven) }) {
			causes = append(causes, f.cause())
		}
	}
	slices.SortStableFunc(causes, func(a, b report.Cause) int { return rank(a) - rank(b) })
	return causes
}

func rank(c report.Cause) int {
	if c.Proven {
		return 0
	}
	return 1
}

// known reports whether a request that is wrong among others is wrong alone, too: that is looked at.
func (d *prober) known(q *request) bool {
	if q.twin != nil {
		return q.twin.wrong()
	}
	return q.way == AtOnce &&
		slices.ContainsFunc(d.requests, func(o *request) bool { return o.way != AtOnce && o.wrong() && o.ref.Case == q.ref.Case })
}

// cause looks for what makes one answer wrong; nil if nothing is shown.
func (d *prober) cause(q *request) *finding {
	looks := map[fault][]func(*request) *finding{ending: {d.ended}, texts: {d.written}, logProbs: {d.figures}}[q.j.fault]
	if looks == nil {
		looks = []func(*request) *finding{d.otherIDs, d.repeat, d.others, d.mistakenPrompt, d.figures, d.swapped, d.ended,
			d.otherDefault, d.evicted, d.otherTokenizer}
	}
	if q.way == AtOnce {
		looks = append([]func(*request) *finding{d.crowded}, looks...)
	}
	for _, look := range looks {
		if f := look(q); f != nil {
			return f
		}
	}
	return nil
}

// harness says what shows that the model is right, and the server around it is not: the prompt and
// the right tokens so far, asked as ids, are answered with the token that was wrong.
func (d *prober) harness() string {
	for _, q := range d.requests {
		if !q.wrong() || q.ref.Prompt == nil || q.j.fault != tokens && q.j.fault != prompt {
			continue
		}
		k := min(q.j.at, len(q.ref.Tokens)-1)
		asked := "the reference's ids of the prompt"
		if k > 0 {
			asked += fmt.Sprintf(" and the %s before it", plural(k, "token"))
		}
		p, ok := d.next(q, k, 1)
		switch {
		case !ok:
			return ""
		case p.right:
			return fmt.Sprintf("%s: %s, alone, are answered right: the model is right, the server around it is not", sanitize.Line(q.where()), asked)
		}
		return fmt.Sprintf("%s: %s, alone, are answered wrong, too: look at the model, parity run and go test judge its tensors",
			sanitize.Line(q.where()), asked)
	}
	return ""
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
