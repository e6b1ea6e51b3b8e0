package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

	transport http.RoundTripper // of tests that ask much; nil: connections
}

// run is one judgement of a server.
type run struct {
	*client
	Options
	refs      []*Reference
	requests  []*request          // by which the cases are judged, then those in further ways
	out       *report.Serving     // what came of all requests
	penalties map[string]*request // that ask for one each, by its key

	pages        []string // of metrics, until one is known to answer
	begun        drafted  // before the first request
	draftedAlone drafting // by the requests of the cases, alone
	draftedDrawn drafting // where tokens were drawn
	lastRate     float64  // of acceptance, of the last moment, by a page that has no more
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
	if opt.transport != nil {
		c.http.Transport = opt.transport
	}
	r := &run{client: c, Options: opt, refs: refs, penalties: map[string]*request{},
		pages: []string{"/metrics"}, out: &report.Serving{Verdict: report.Pass,
			Server: report.Server{URL: c.base, Command: opt.Command, Parallel: opt.Parallel, Timeout: opt.Timeout.String()}}}
	if opt.Metrics != "" {
		r.pages = append(r.pages, opt.Metrics)
	}
	if err := r.findModel(ctx, opt.Name, opt.Like); err != nil {
		r.out.Verdict, r.out.Error = report.Error, "the server cannot be asked: "+sanitize.Line(err.Error())
		return r.out, ctx.Err()
	}
	r.out.Server.Model = c.model
	r.begun = r.drafts(ctx)
	r.cases(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("serving: %w", context.Cause(ctx))
	}
	d := r.prober(ctx)
	if !r.failed() {
		d.ends()
	}
	switch r.tell(); r.out.Verdict {
	case report.Pass:
		r.further(ctx)
	case report.Fail:
		r.out.Causes, r.out.Harness = d.causes(), d.harness()
	}
	r.tellDrafts(r.drafts(ctx))
	r.out.Notes = r.notes
	return r.out, ctx.Err()
}

// cases sends the requests by which the cases are judged: each alone, then from the middle of its text, then all at
// once. A request without an answer makes the rest worthless, which is not sent then.
func (r *run) cases(ctx context.Context) {
	for _, ref := range r.refs {
		r.requests = append(r.requests, &request{ref: ref, way: Alone})
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
	crowd := r.crowd(AtOnce, r.Parallel)
	r.requests = append(r.requests, crowd...)
	r.sendAll(ctx, crowd, r.Parallel)
}

// further asks in more ways where all that the cases ask for is right, as long as what is asked is. What a server refuses
// is left out.
func (r *run) further(ctx context.Context) {
	for _, asked := range []func(context.Context) []*request{r.streams, r.breaks, r.arrive, r.queue, r.stops, r.altered,
		r.redraft, r.sampled} {
		list := asked(ctx)
		if r.sendAll(ctx, list, 1); ctx.Err() != nil {
			return
		}
		list = slices.DeleteFunc(list, func(q *request) bool { return !q.sent })
		r.requests = append(r.requests, list...)
		if r.tell(); r.out.Verdict == report.Pass {
			continue
		}
		if r.out.Verdict == report.Fail { // of an error nothing is guessed from the others
			q := list[slices.IndexFunc(list, (*request).wrong)]
			again := q.cause == causeConcurrency && q.draws == 0
			proven := !again || countRight(r.prober(ctx).repeated(q)) == 2*repeats
			r.out.Causes = []report.Cause{*newCause(q.cause, proven, q.j.Text)}
		}
		return
	}
}

// tell says what came of the requests so far, and what the server does not say. Where one got no answer nothing is
// guessed from the others.
func (r *run) tell() {
	out, said, unsent := r.out, map[string]bool{}, 0
	out.Verdict, out.First, out.Requests = report.Pass, nil, nil
	for _, q := range r.requests {
		if !q.sent {
			unsent++
			continue
		}
		s := q.served()
		switch out.Requests = append(out.Requests, s); {
		case s.Status == report.StatusError && out.Verdict != report.Error:
			out.Verdict, out.First = report.Error, nil
			out.Error = "no answer that can be judged: " + sanitize.Line(q.where()) + ": " + s.Text
		case s.Status == report.StatusFail && out.Verdict == report.Pass:
			out.Verdict = report.Fail
			out.First = &report.ServingPlace{Case: s.Case, As: s.As, Way: s.Way, Token: q.j.at, Text: s.Text}
		}
		for _, what := range s.Judged {
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
