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

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
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
	draws  int                       // how many requests it stands for; 0: one
	sent   bool
	answer Answer
	err    error
	j      judgement
}

func (q *request) wrong() bool { return q.err == nil && q.j.fault > nothing }

// judged reports whether an answer came that was judged.
func (q *request) judged() bool { return q.sent && q.err == nil && q.left == "" }

// where is how a request is called in texts: "case hello as ids, alone".
func (q *request) where() string {
	text := fmt.Sprintf("case %s as %s, %s", q.ref.Case, q.ask.As, q.way)
	if q.from > 0 {
		text += fmt.Sprintf(" from token %d", q.from)
	}
	return text
}

// length is how many tokens of the reference's text there are before its end, as far as that is known.
func (q *request) length() int {
	if q.sent && q.j.ended >= 0 {
		return q.j.ended
	}
	return len(q.ref.Tokens)
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
	r := &run{client: c, model: &opt.Model, refs: refs, parallel: opt.Parallel, obeyed: map[string]bool{}, pages: []string{c.base + "/metrics"}}
	if err := r.findModel(ctx, opt.Name, opt.Like); err != nil {
		out.Verdict, out.Error = report.Error, "the server cannot be asked: "+sanitize.Line(err.Error())
		return out, ctx.Err()
	}
	out.Server.Model = r.client.model
	if opt.Metrics != "" {
		r.pages = append(r.pages, opt.Metrics)
	}
	r.begun = r.drafts(ctx)
	r.all(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("serving: %w", context.Cause(ctx))
	}
	d := &prober{run: r, ctx: ctx, until: time.Now().Add(probeTime), again: map[*request][]probe{}}
	if !r.failed() {
		d.ends()
	}
	switch r.tell(out); out.Verdict {
	case report.Pass:
		if r.further(ctx, out); out.Verdict == report.Pass && opt.Draws > 0 {
			r.sampled(ctx, opt.Draws, out)
		}
	case report.Fail:
		out.Causes, out.Harness = d.causes(), d.harness()
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
	if r.sendAll(ctx, r.requests, 1); r.failed() {
		return
	}
	r.draftedAlone = r.drafts(ctx).since(r.begun)
	for _, ref := range r.refs {
		if half := len(ref.Tokens) / 2; half > 0 && r.continues(ref) {
			q := continued(ref, half, Prefix)
			r.requests = append(r.requests, q)
			if r.send(ctx, q); r.failed() {
				return
			}
		}
	}
	crowd := r.crowd(AtOnce, r.parallel)
	r.requests = append(r.requests, crowd...)
	r.sendAll(ctx, crowd, r.parallel)
}

// alone lists the requests of the cases, as they were asked first.
func (r *run) alone() []*request { return r.requests[:min(len(r.refs), len(r.requests))] }

// continued is a request from the middle of a reference's text.
func continued(ref *Reference, k int, way string) *request {
	rest := ref.from(k, len(ref.Tokens))
	return &request{ref: rest, ask: rest.Ask, way: way, from: k, extra: true}
}

// crowd lists what is asked at once: each request, and where these are fewer than n, more from the
// middle of the texts, or the same again.
func (r *run) crowd(way string, n int) (crowd []*request) {
	alone := r.alone()
	again := func(a *request) { crowd = append(crowd, &request{ref: a.ref, ask: a.ask, way: way, twin: a}) }
	for _, a := range alone {
		again(a)
	}
	for k := 1; len(crowd) < n; k++ {
		before := len(crowd)
		for _, a := range alone {
			if len(crowd) < n && k < a.length() && r.continues(a.ref) {
				crowd = append(crowd, continued(a.ref, k, way))
			}
		}
		if len(crowd) == before {
			again(alone[len(crowd)%len(alone)])
		}
	}
	return crowd
}

// continues reports whether the server can be asked from the middle of a text: token ids were answered, or not yet
// asked, and what follows can be judged without the beginning of the text.
func (r *run) continues(ref *Reference) bool {
	tried, answered, judged := false, false, r.model.Vocab != nil
	for _, q := range r.requests {
		tried = tried || q.sent && q.ask.As == AsIDs
		answered = answered || q.judged() && q.ask.As == AsIDs
		judged = judged || q.judged() && (q.answer.Tokens != nil || q.answer.LogProbs != nil && ref.Rows != nil)
	}
	return ref.Prompt != nil && judged && (answered || !tried)
}

func (r *run) failed() bool {
	return slices.ContainsFunc(r.requests, func(q *request) bool { return q.err != nil })
}

// sendAll sends requests, n at once, until one shows that the server may be gone.
func (r *run) sendAll(ctx context.Context, requests []*request, n int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, len(requests)) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(requests)); i = next.Add(1) {
				q := requests[i-1]
				r.send(ctx, q)
				if e, ok := errors.AsType[*AnswerError](q.err); ok && e.gone || ctx.Err() != nil {
					next.Store(int64(len(requests)))
				}
			}
		})
	}
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
		r.unanswered(q)
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
	if q.j.misnamed && q.stream == nil {
		r.client.askForOne(q.ask.path())
		if q.answer, q.err = r.client.ask(ctx, q.ask); q.err != nil {
			r.unanswered(q)
			return
		}
		q.j = r.model.judge(q.ref, &q.answer)
	}
	if q.j.misnamed {
		r.note("the log-probabilities of %s are of other tokens than its texts have: they were left out", q.ask.path())
	}
	if q.extra && q.j.fault == nothing {
		r.leave(q, q.j.what)
	} else if n := q.answer.PromptCount; n >= 0 && q.ref.Prompt != nil && n != len(q.ref.Prompt) && q.j.fault == none {
		r.note("%s: right, although the server counts %s of the prompt, and the reference %d", q.where(), plural(n, "token"), len(q.ref.Prompt))
	}
}

// unanswered leaves a request that no case asks for unjudged, unless the server may be gone.
func (r *run) unanswered(q *request) {
	late := q.way == queued && errors.Is(q.err, context.DeadlineExceeded) // others were before it
	if e, ok := errors.AsType[*AnswerError](q.err); ok && q.extra && (!e.gone || late) {
		r.leave(q, e.What)
	}
}

// leave leaves a request that no case asks for unjudged.
func (r *run) leave(q *request, why string) {
	q.left, q.err = sanitize.Line(why), nil
	r.note("not judged: %s: %s", q.where(), q.left)
}

// served is what came of a request.
func (q *request) served() report.ServedRequest {
	s := report.ServedRequest{Case: q.ref.Case, As: q.ask.As, Way: q.way, From: q.from, Status: report.StatusPass, LogProb: report.Float(math.NaN()),
		Judged: append([]string{}, q.j.judged...), Tokens: cmp.Or(q.draws, q.ask.Tokens), Right: q.j.right, Text: sanitize.Line(q.j.what)}
	if slices.Contains(q.j.judged, "logprobs") {
		s.LogProb = report.Float(q.j.worst)
	}
	if q.judged() && q.j.tie >= 0 {
		s.Tie = &q.j.tie
	}
	if q.judged() && q.j.ended >= 0 {
		s.Ended = &q.j.ended
	}
	switch {
	case q.left != "":
		s.Status, s.Text = report.StatusIgnored, q.left
	case q.err != nil:
		s.Status, s.Text = report.StatusError, sanitize.Line(q.err.Error())
	case q.j.fault == nothing:
		s.Status = report.StatusError
	case q.j.fault != none:
		s.Status = report.StatusFail
	}
	return s
}

// add adds what came of a request to the result. Where one got no answer nothing is guessed from the
// others.
func add(out *report.Serving, q *request) report.ServedRequest {
	s := q.served()
	out.Requests = append(out.Requests, s)
	switch {
	case s.Status == report.StatusError && out.Verdict != report.Error:
		out.Verdict, out.First, out.Error = report.Error, nil, "no answer that can be judged: "+sanitize.Line(q.where())+": "+s.Text
	case s.Status == report.StatusFail && out.Verdict == report.Pass:
		out.Verdict = report.Fail
		out.First = &report.ServingPlace{Case: s.Case, As: s.As, Way: s.Way, Token: q.j.at, Text: s.Text}
	}
	return s
}

// tell writes what came of the requests.
func (r *run) tell(out *report.Serving) {
	said, unsent := map[string]bool{}, 0
	for _, q := range r.requests {
		if !q.sent {
			unsent++
			continue
		}
		for _, what := range add(out, q).Judged {
			said[what] = true
		}
	}
	if out.Verdict == report.Error {
		if unsent > 0 {
			out.Error += fmt.Sprintf("; %d more were not sent", unsent)
		}
		return
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
