package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
)

// request is one request: a reference that is asked, and what came of it.
type request struct {
	ref    *Reference
	way    string
	from   int                       // tokens of the reference's text that the prompt ends with
	twin   *request                  // the same request, alone
	stream func()                    // its answer comes in pieces, and this is called for each; nil: it comes whole
	extra  bool                      // no case asks for it: that it gets no answer only leaves it unjudged
	cause  string                    // of what is wrong with it, where all that the cases ask for is right
	by     func(a *Answer) judgement // in place of the model's judgement
	draws  int                       // how many requests it stands for; 0: one
	sent   bool
	answer Answer
	err    error
	j      judgement
	again  []*request // the same, alone, several times more, where it is wrong; empty where that failed
}

// came reports whether an answer came, and judged whether it was judged.
func (q *request) came() bool   { return q.sent && q.err == nil }
func (q *request) judged() bool { return q.came() && q.j.fault != nothing }
func (q *request) wrong() bool  { return q.err == nil && q.j.fault > nothing }

// right reports whether the reference's answer came, or all of it but what may end a text.
func (q *request) right() bool {
	return q.came() && (q.j.fault == none || q.j.fault == short && q.j.unsure && len(q.ref.Tokens)-q.j.at == 1)
}

// where is how a request is called in texts: "case hello as ids, alone".
func (q *request) where() string {
	text := fmt.Sprintf("case %s as %s, %s", q.ref.Case, q.ref.Ask.As, q.way)
	if q.from > 0 {
		text += fmt.Sprintf(" from token %d", q.from)
	}
	return text
}

// length is how many tokens of the reference's text there are before its end, as far as that is known.
func (q *request) length() int {
	if q.sent && q.j.Ended != nil {
		return *q.j.Ended
	}
	return len(q.ref.Tokens)
}

// served is what came of a request.
func (q *request) served() report.ServedRequest {
	s := q.j.ServedRequest
	s.Case, s.As, s.Way, s.From = q.ref.Case, q.ref.Ask.As, q.way, q.from
	s.Status, s.Tokens, s.Text = report.StatusPass, cmp.Or(q.draws, q.ref.Ask.Tokens), sanitize.Line(s.Text)
	if s.Judged = append([]string{}, s.Judged...); !slices.Contains(s.Judged, "logprobs") {
		s.LogProb = report.Float(math.NaN())
	}
	switch {
	case q.err != nil:
		s.Status, s.Text = report.StatusError, sanitize.Line(q.err.Error())
	case q.j.fault == nothing && q.extra:
		s.Status = report.StatusIgnored
	case q.j.fault == nothing:
		s.Status = report.StatusError
	case q.j.fault != none:
		s.Status = report.StatusFail
	}
	return s
}

// alone lists the requests of the cases, as they were asked first.
func (r *run) alone() []*request { return r.requests[:min(len(r.refs), len(r.requests))] }

func (r *run) failed() bool {
	return slices.ContainsFunc(r.requests, func(q *request) bool { return q.err != nil })
}

// sendAll sends those of several requests that were not sent yet, n at once, until one shows that the server may be
// gone.
func (r *run) sendAll(ctx context.Context, requests []*request, n int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, len(requests)) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(requests)); i = next.Add(1) {
				q := requests[i-1]
				if !q.sent {
					r.send(ctx, q)
				}
				if e, ok := errors.AsType[*answerError](q.err); ok && e.gone || ctx.Err() != nil {
					next.Store(int64(len(requests)))
				}
			}
		})
	}
	all.Wait()
}

// send sends a request and judges the answer. Log-probabilities of other tokens than the text's are asked for once
// more, one alternative alone: see [Model.misnamed].
func (r *run) send(ctx context.Context, q *request) {
	q.sent = true
	want, path := len(q.ref.Prompt), q.ref.Ask.path()
	if n := want + len(q.ref.Tokens); r.longest > 0 && n > r.longest {
		what := fmt.Sprintf("prompt and answer have %d tokens, the server takes %d (max_model_len)", n, r.longest)
		q.err = &answerError{What: what}
		return
	}
	if r.answered(ctx, q); q.judged() && q.j.misnamed && q.stream == nil {
		if r.askForOne(path) {
			r.answered(ctx, q)
		}
		if q.j.misnamed {
			r.note("the log-probabilities of %s are of other tokens than its texts have: they were left out", path)
		}
	}
	if q.extra && q.err == nil && q.j.fault == nothing {
		r.leave(q, q.j.Text)
	} else if n := q.answer.PromptCount; n >= 0 && n != want && q.ref.Prompt != nil && q.err == nil && q.j.fault == none {
		r.note("%s: right, although the server counts %s of the prompt, and the reference %d", q.where(),
			plural(n, "token"), want)
	}
}

func (r *run) answered(ctx context.Context, q *request) {
	if q.stream == nil {
		q.answer, q.err = r.client.ask(ctx, q.ref.Ask)
	} else {
		q.answer, q.err = r.client.stream(ctx, q.ref.Ask, q.stream)
	}
	switch {
	case q.err != nil:
		r.unanswered(q)
	case q.answer.Cut:
		q.j = judgement{}
		q.j.fail(texts, 0, "the stream breaks off after %s, without finish_reason or [DONE]", quoted(q.answer.Text))
	case q.by != nil:
		q.j = q.by(&q.answer)
	default:
		q.j = r.Model.judge(q.ref, &q.answer)
	}
}

// unanswered leaves a request that no case asks for unjudged, unless the server may be gone.
func (r *run) unanswered(q *request) {
	late := q.way == queued && errors.Is(q.err, context.DeadlineExceeded) // others were before it
	if e, ok := errors.AsType[*answerError](q.err); ok && q.extra && (!e.gone || late) {
		r.leave(q, e.What)
	}
}

// leave leaves a request that no case asks for unjudged.
func (r *run) leave(q *request, why string) {
	q.err, q.j = nil, judgement{}
	q.j.fail(nothing, 0, "%s", sanitize.Line(why))
	r.note("not judged: %s: %s", q.where(), q.j.Text)
}
