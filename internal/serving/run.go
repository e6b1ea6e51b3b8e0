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
	"time"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
)

// Options say which server is asked, and how.
type Options struct {
	URL      string // http://HOST:PORT, with or without /v1
	Name     string // of the model that is asked; "" for the one that is called as Like, or the first
	Like     string // path or name of the fixture's model
	Model    Model
	Timeout  time.Duration // of each answer; 0: DefaultTimeout
	Parallel int           // how many requests are on their way at once; 0: DefaultParallel
	Draws    int           // how many tokens are drawn for each setting of sampling; 0: none
	Metrics  string        // address of a page of metrics that is not the server's own; "" for none
	Command  []string      // what was started, for the report
}

// request is one request of the plan.
type request struct {
	ref    *Reference
	ask    Ask
	way    string
	from   int                       // tokens of the reference's text that the prompt ends with
	twin   *request                  // the same request, alone
	stream func()                    // its answer comes in pieces, and this is called for each; nil: it comes whole
	extra  bool                      // no case asks for it: that it gets no answer only leaves it unjudged
	cause  string                    // of what is wrong with it, where all that the cases ask for is right
	by     func(a *Answer) judgement // in place of the model's judgement
	left   string                    // why an extra one is not judged
	sent   bool
	answer Answer
	err    error
	j      judgement
}

func (r *request) wrong() bool { return r.err == nil && r.j.fault > nothing }

// where is how a request is called in texts: "case hello as ids, alone".
func (r *request) where() string {
	text := fmt.Sprintf("case %s as %s, %s", r.ref.Case, r.ask.As, r.way)
	if r.from > 0 {
		text += fmt.Sprintf(" from token %d", r.from)
	}
	return text
}

// run is one judgement of a server.
type run struct {
	*client
	model    *Model
	refs     []*Reference
	parallel int
	requests []*request
	obeyed   map[string]bool // penalties that were asked for: whether the server knows them

	pages        []string // of metrics, until one is known to answer
	begun        drafted  // before the first request
	draftedAlone drafting // by the requests of the cases, alone
	draftedDrawn drafting // where tokens were drawn
}

// Run asks a server for all references and judges its answers. What is wrong with the server is in
// the result; the error is about what was asked for, or wraps the cause of ctx.
func Run(ctx context.Context, refs []*Reference, opt Options) (*report.Serving, error) {
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.Parallel = cmp.Or(opt.Parallel, DefaultParallel)
	if opt.Timeout < 0 || opt.Parallel < 0 || opt.Draws < 0 {
		return nil, fmt.Errorf("serving: a timeout of %s, %d at once and %d draws: want more than none", opt.Timeout, opt.Parallel, opt.Draws)
	}
	if len(refs) == 0 {
		return nil, errors.New("serving: there is no case that a server can be asked")
	}
	c, err := newClient(opt.URL, opt.Timeout)
	if err != nil {
		return nil, err
	}
	out := &report.Serving{Verdict: report.Pass,
		Server: report.Server{URL: c.base, Command: opt.Command, Parallel: opt.Parallel, Timeout: opt.Timeout.String()}}
	r := &run{client: c, model: &opt.Model, refs: refs, parallel: opt.Parallel, obeyed: map[string]bool{}}
	if err := r.findModel(ctx, opt.Name, opt.Like); err != nil {
		out.Verdict, out.Error = report.Error, "the server cannot be asked: "+foreign.Line(err.Error())
		return out, ctx.Err()
	}
	out.Server.Model = r.client.model
	r.pages = append(r.pages, c.base+"/metrics")
	if opt.Metrics != "" {
		r.pages = append(r.pages, opt.Metrics)
	}
	r.begun = r.drafts(ctx)
	r.all(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("serving: %w", context.Cause(ctx))
	}
	d := &doctor{run: r, ctx: ctx, until: time.Now().Add(probeTime), again: map[*request][]probe{}}
	if !r.failed() {
		d.ends()
	}
	r.tell(out)
	if out.Verdict == report.Pass {
		r.further(ctx, out)
		if out.Verdict == report.Pass && opt.Draws > 0 {
			r.sampled(ctx, opt.Draws, out)
		}
	} else if out.Verdict == report.Fail {
		out.Causes = d.causes()
		out.Harness = d.harness()
	}
	r.tellDrafts(r.drafts(ctx))
	out.Probes, out.Notes = d.said, r.notes
	return out, ctx.Err()
}

// all sends the requests of the plan: each alone, then from the middle of its text, then all at
// once. A request without an answer makes the rest worthless, which is not sent then.
func (r *run) all(ctx context.Context) {
	for _, ref := range r.refs {
		r.requests = append(r.requests, &request{ref: ref, ask: ref.Ask, way: Alone})
	}
	alone := r.requests
	if r.inTurn(ctx, alone); r.failed() {
		return
	}
	r.draftedAlone = r.drafts(ctx).since(r.begun)
	for _, ref := range r.refs {
		if half := len(ref.Tokens) / 2; half > 0 && r.continues(ref) {
			rest := ref.from(half)
			q := &request{ref: rest, ask: rest.Ask, way: Prefix, from: half, extra: true}
			r.requests = append(r.requests, q)
			if r.inTurn(ctx, []*request{q}); r.failed() {
				return
			}
		}
	}
	crowd := r.crowd(AtOnce, r.parallel)
	r.requests = append(r.requests, crowd...)
	r.atOnce(ctx, crowd, r.parallel)
}

// alone lists the requests of the cases, as they were asked first.
func (r *run) alone() []*request { return r.requests[:min(len(r.refs), len(r.requests))] }

// length is how many tokens of the reference's text there are before its end, as far as that is known.
func (q *request) length() int {
	if q.sent && q.j.ended >= 0 {
		return q.j.ended
	}
	return len(q.ref.Tokens)
}

// crowd lists what is asked at once: each request, and where these are fewer than n, more from the
// middle of the texts, or the same again.
func (r *run) crowd(way string, n int) (crowd []*request) {
	alone := r.alone()
	for _, a := range alone {
		crowd = append(crowd, &request{ref: a.ref, ask: a.ask, way: way, twin: a})
	}
	for k := 1; len(crowd) < n; k++ {
		added := false
		for _, a := range alone {
			if len(crowd) < n && k < a.length() && r.continues(a.ref) {
				rest := a.ref.from(k)
				crowd, added = append(crowd, &request{ref: rest, ask: rest.Ask, way: way, from: k, extra: true}), true
			}
		}
		if !added {
			a := alone[len(crowd)%len(alone)]
			crowd = append(crowd, &request{ref: a.ref, ask: a.ask, way: way, twin: a})
		}
	}
	return crowd
}

// continues reports whether the server can be asked from the middle of a text: token ids were answered, or not yet
// asked, and what follows can be judged without the beginning of the text.
func (r *run) continues(ref *Reference) bool {
	tried, answered, judged := false, false, r.model.Vocab != nil
	for _, q := range r.requests {
		ok, a := q.sent && q.err == nil && q.left == "", &q.answer
		tried = tried || q.sent && q.ask.As == AsIDs
		answered = answered || ok && q.ask.As == AsIDs
		judged = judged || ok && (a.Tokens != nil || a.LogProbs != nil && ref.Rows != nil)
	}
	return ref.Prompt != nil && judged && (answered || !tried)
}

func (r *run) failed() bool {
	for _, q := range r.requests {
		if q.err != nil {
			return true
		}
	}
	return false
}

func (r *run) inTurn(ctx context.Context, requests []*request) {
	for _, q := range requests {
		if r.send(ctx, q); over(ctx, q) {
			return
		}
	}
}

// over reports whether nothing more need be asked after a request: the server may be gone.
func over(ctx context.Context, q *request) bool {
	e, ok := errors.AsType[*AnswerError](q.err)
	return ok && e.gone || ctx.Err() != nil
}

// atOnce sends requests, n at once.
func (r *run) atOnce(ctx context.Context, requests []*request, n int) {
	todo := make(chan *request, len(requests))
	for _, q := range requests {
		todo <- q
	}
	close(todo)
	var all sync.WaitGroup
	ready := make(chan struct{})
	var stop atomic.Bool
	for range min(n, len(requests)) {
		all.Go(func() {
			<-ready
			for q := range todo {
				if !stop.Load() {
					r.send(ctx, q)
					stop.CompareAndSwap(false, over(ctx, q))
				}
			}
		})
	}
	close(ready)
	all.Wait()
}

// send sends a request and judges the answer.
func (r *run) send(ctx context.Context, q *request) {
	q.sent = true
	if n := len(q.ref.Prompt) + len(q.ref.Tokens); r.longest > 0 && n > r.longest {
		q.err = &AnswerError{What: fmt.Sprintf("prompt and answer have %d tokens, the server takes %d (max_model_len)", n, r.longest)}
		return
	}
	whole := true
	if q.stream == nil {
		q.answer, q.err = r.client.ask(ctx, q.ask)
	} else {
		q.answer, whole, q.err = r.client.stream(ctx, q.ask, q.stream)
	}
	switch {
	case q.err != nil:
		late := q.way == queued && errors.Is(q.err, context.DeadlineExceeded) // others were before it
		if e, ok := errors.AsType[*AnswerError](q.err); ok && q.extra && (!e.gone || late) {
			r.leave(q, e.What)
		}
		return
	case !whole:
		q.j = newJudgement()
		q.j.fail(texts, 0, "the stream breaks off behind %s, without finish_reason or [DONE]", quoted(q.answer.Text))
		return
	case q.by != nil:
		q.j = q.by(&q.answer)
	default:
		q.j = r.model.judge(q.ref, &q.answer)
	}
	if q.extra && q.j.fault == nothing {
		r.leave(q, q.j.what)
		return
	}
	if n := q.answer.PromptCount; n >= 0 && q.ref.Prompt != nil && n != len(q.ref.Prompt) && q.j.fault == none {
		r.note("%s: right, although the server counts %s of the prompt, and the reference %d", q.where(), plural(n, "token"), len(q.ref.Prompt))
	}
}

// leave leaves a request that no case asks for unjudged.
func (r *run) leave(q *request, why string) {
	q.left, q.err = foreign.Line(why), nil
	r.note("not judged: %s: %s", q.where(), q.left)
}

// served is what came of a request.
func (q *request) served() report.ServedRequest {
	s := report.ServedRequest{Case: q.ref.Case, As: q.ask.As, Way: q.way, From: q.from, Status: report.StatusPass,
		Judged: append([]string{}, q.j.judged...), Tokens: q.ask.Tokens, Right: q.j.right, LogProb: report.Float(math.NaN()), Text: foreign.Line(q.j.what)}
	if slices.Contains(q.j.judged, "logprobs") {
		s.LogProb = report.Float(q.j.worst)
	}
	judged := q.err == nil && q.left == ""
	if judged && q.j.tie >= 0 {
		s.Tie = &q.j.tie
	}
	if judged && q.j.ended >= 0 {
		s.Ended = &q.j.ended
	}
	switch {
	case q.left != "":
		s.Status, s.Text = report.StatusIgnored, q.left
	case q.err != nil:
		s.Status, s.Text = report.StatusError, foreign.Line(q.err.Error())
	case q.j.fault == nothing:
		s.Status = report.StatusError
	case q.j.fault != none:
		s.Status = report.StatusFail
	}
	return s
}

// tell writes what came of the requests.
func (r *run) tell(out *report.Serving) {
	said := map[string]bool{}
	for _, q := range r.requests {
		if !q.sent {
			continue
		}
		s := q.served()
		for _, what := range s.Judged {
			said[what] = true
		}
		switch {
		case s.Status == report.StatusError && out.Verdict != report.Error:
			out.Verdict, out.Error = report.Error, "no answer that can be judged: "+foreign.Line(q.where())+": "+s.Text
		case s.Status == report.StatusFail && out.First == nil:
			out.First = &report.ServingPlace{Case: s.Case, As: s.As, Way: s.Way, Token: q.j.at, Text: s.Text}
		}
		out.Requests = append(out.Requests, s)
	}
	switch {
	case out.Verdict == report.Error:
		out.First = nil // nothing is guessed from the rest
		if rest := r.unsent(); rest > 0 {
			out.Error += fmt.Sprintf("; %d more were not sent", rest)
		}
		return
	case out.First != nil:
		out.Verdict = report.Fail
	}
	for _, of := range []struct{ key, what string }{
		{"tokens", "token ids of its answers: these are judged by text and log-probabilities"},
		{"prompt", "token ids of the prompts that it made: whether these are right shows in its answers alone"},
		{"logprobs", "log-probabilities"}} {
		if !said[of.key] {
			r.note("not judged: the server says no %s", of.what)
		}
	}
}

func (r *run) unsent() (n int) {
	for _, q := range r.requests {
		if !q.sent {
			n++
		}
	}
	return n
}
