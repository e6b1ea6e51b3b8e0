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

// newCause is a cause and what shows it. One that is not proven fits, and others may. Nothing was predicted, so nothing
// fits better or worse.
func newCause(id string, proven bool, text string) *report.Cause {
	nan := report.Float(math.NaN())
	return &report.Cause{ID: id, Proven: proven, Text: sanitize.Line(text), Fit: nan, FitGolden: nan, NextFit: nan}
}

func (q *request) proven(id, format string, args ...any) *report.Cause {
	return newCause(id, true, q.where()+": "+fmt.Sprintf(format, args...))
}

func (q *request) guess(id, format string, args ...any) *report.Cause {
	return newCause(id, false, q.where()+": "+fmt.Sprintf(format, args...))
}

// prober looks for the causes of wrong answers, by asking the server further.
type prober struct {
	*run
	ctx   context.Context
	until time.Time
}

func (r *run) prober(ctx context.Context) *prober { return &prober{r, ctx, time.Now().Add(probeTime)} }

// try sends a further request about a wrong one, for which ref has the right answer. None comes if there is no time
// left: that shows nothing, as one that cannot be judged.
func (d *prober) try(q *request, how string, ref *Reference) *request {
	p := *q
	p.ref, p.sent, p.extra = ref, false, false
	if len(d.out.Probes) >= maxProbes || time.Now().After(d.until) || d.ctx.Err() != nil {
		return &p
	}
	p.sent = true
	d.answered(d.ctx, &p)
	word := "wrong"
	if p.err != nil {
		word = "no answer"
	} else if p.right() {
		word = "right"
	}
	d.out.Probes = append(d.out.Probes, fmt.Sprintf("%s, %s: %s", q.where(), how, word))
	return &p
}

// anew sends a request again, with other keys.
func (d *prober) anew(q *request, how string, keys map[string]any) *request {
	return d.try(q, how, q.ref.with(keys))
}

// next asks for n tokens after the first k of the reference's, all as ids.
func (d *prober) next(q *request, k, n int) *request {
	return d.try(q, fmt.Sprintf("prompt and %s as ids, %d more", plural(k, "right token"), n), q.ref.from(k, n))
}

// causes looks for what makes the answers wrong, the first ones in their order. Those that are
// proven come first. One that is wrong among others and alone, too, is looked at alone.
func (d *prober) causes() []report.Cause {
	proven, guesses, looked := []report.Cause{}, []report.Cause(nil), 0
	for _, q := range d.requests {
		alone := func(o *request) bool { return o.way != AtOnce && o.wrong() && o.ref.Case == q.ref.Case }
		known := q.way == AtOnce && slices.ContainsFunc(d.requests, alone)
		if q.twin != nil {
			known = q.twin.wrong()
		}
		if !q.wrong() || looked == maxFindings || known {
			continue
		}
		looked++
		c := d.cause(q)
		same := func(o report.Cause) bool { return o.ID == c.ID }
		switch {
		case c == nil || slices.ContainsFunc(proven, same):
		case c.Proven:
			proven, guesses = append(proven, *c), slices.DeleteFunc(guesses, same)
		case !slices.ContainsFunc(guesses, same):
			guesses = append(guesses, *c)
		}
	}
	return append(proven, guesses...)
}

// cause looks for what makes one answer wrong; nil if nothing is shown.
func (d *prober) cause(q *request) *report.Cause {
	looks := map[fault][]func(*request) *report.Cause{ending: {d.ended}, texts: {d.written}, logProbs: {d.transformed}}[q.j.fault]
	if looks == nil {
		looks = []func(*request) *report.Cause{d.otherIDs, d.repeat, d.others, d.mistakenPrompt, d.transformed, d.swapped, d.ended,
			d.otherDefault, d.evicted, d.otherTokenizer}
	}
	if q.way == AtOnce {
		looks = append([]func(*request) *report.Cause{d.crowded}, looks...)
	}
	for _, look := range looks {
		if c := look(q); c != nil {
			return c
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
		p, is := d.next(q, k, 1), "right: the model is right, the server around it is not"
		if !p.came() {
			return ""
		}
		if !p.right() {
			is = "wrong, too: look at the model, parity run and go test judge its tensors"
		}
		return fmt.Sprintf("%s: %s, alone, are answered %s", sanitize.Line(q.where()), asked, is)
	}
	return ""
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
