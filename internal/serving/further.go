package serving

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/report"
)

// Ways of requests that are sent where all that the cases ask for is answered right.
const (
	arriving = "arriving" // while another is answered as a stream
	queued   = "queued"   // with more others than there should be on their way
)

// further asks in more ways, as long as what is asked is right. What a server refuses is left out.
func (r *run) further(ctx context.Context, out *report.Serving) {
	for _, asked := range []func(context.Context) []*request{r.streams, r.breaks, r.arrive, r.queue, r.stops, r.altered, r.redraft} {
		list := asked(ctx)
		r.inTurn(ctx, slices.DeleteFunc(slices.Clone(list), func(q *request) bool { return q.sent }))
		for _, q := range list {
			if ctx.Err() != nil || !q.sent {
				return
			}
			proven := q.cause != causeConcurrency || !q.wrong() || r.rightAlone(ctx, q)
			if tellMore(out, q.served(), finding{q.cause, q.j.what, proven}, q.j.at); out.Verdict == report.Error {
				return
			}
		}
		if out.Verdict != report.Pass {
			return
		}
	}
}

// tellMore adds what came of a request that is sent where all else is right, and its cause if it is wrong.
func tellMore(out *report.Serving, q report.ServedRequest, f finding, at int) {
	out.Requests = append(out.Requests, q)
	switch {
	case q.Status == report.StatusError:
		out.Verdict, out.Error = report.Error, "no answer that can be judged: case "+q.Case+" as "+q.As+", "+q.Way+": "+q.Text
	case q.Status == report.StatusFail && out.First == nil:
		nan := report.Float(math.NaN())
		out.Verdict = report.Fail
		out.First = &report.ServingPlace{Case: q.Case, As: q.As, Way: q.Way, Token: at, Text: q.Text}
		out.Causes = []report.Cause{{ID: f.id, Proven: f.proven, Text: f.text, Fit: nan, FitGolden: nan, NextFit: nan}}
	}
}

// rightAlone reports whether a request that is wrong among others is right alone, each time.
func (r *run) rightAlone(ctx context.Context, q *request) bool {
	for range repeats {
		again := *q
		if r.send(ctx, &again); again.err != nil || again.left != "" || again.wrong() {
			return false
		}
	}
	return true
}

// few keeps the first requests of a way, and says how many are left out.
func (r *run) few(list []*request, most int) []*request {
	if len(list) > most {
		r.note("not asked: %d of %d requests, %s", len(list)-most, len(list), list[0].way)
		list = list[:most]
	}
	return list
}

// among lists requests that are judged for what others do to them.
func (r *run) among(way string, n, most int) []*request {
	list := r.few(r.crowd(way, n), most)
	for _, q := range list {
		q.extra, q.cause, q.by = true, causeConcurrency, func(a *Answer) judgement { return r.endedAs(q, a) }
	}
	return list
}

// untied judges a request by another answer of the server: where the reference's text has a tie, the server may choose
// otherwise the next time, and another text is no fault.
func untied(q *request) func(a *Answer) judgement {
	by := q.by
	return func(a *Answer) judgement {
		j := by(a)
		if j.fault > nothing && slices.ContainsFunc(q.ref.Rows, func(row Row) bool { return row.Gap() <= row.noise }) {
			j.fault, j.what = nothing, "another text comes, and the reference's has a tie"
		}
		return j
	}
}

// endedAs judges an answer that may end where the same request has ended alone, and where nothing else says whether
// the reference's next token ends a text.
func (r *run) endedAs(q *request, a *Answer) judgement {
	j := r.model.judge(q.ref, a)
	switch {
	case j.fault != short || !j.unsure:
	case q.twin == nil:
		j.fault = nothing
	case q.twin.j.ended == j.at:
		j.fault, j.what, j.ended = none, "", j.at
	}
	return j
}

// arrive sends requests while another is answered as a stream, one with each of its pieces.
func (r *run) arrive(ctx context.Context) (list []*request) {
	first := slices.MaxFunc(r.alone(), func(a, b *request) int { return cmp.Compare(len(a.answer.Text), len(b.answer.Text)) })
	waiting := r.among(arriving, r.parallel, mostBeside)
	for len(waiting) > 0 {
		n := 0
		var all sync.WaitGroup
		stream := r.streamOf(ctx, first, arriving, func() {
			if n < len(waiting) {
				q := waiting[n]
				all.Go(func() { r.send(ctx, q) })
				n++
			}
		})
		stream.cause = causeConcurrency
		r.send(ctx, stream)
		all.Wait()
		list = append(append(list, stream), waiting[:n]...)
		if waiting = waiting[n:]; n == 0 || stream.err != nil || stream.left != "" {
			break
		}
	}
	return list
}

// queue sends more requests at once than there should be: those that a server has no slot for have to wait.
func (r *run) queue(ctx context.Context) []*request {
	n := overfull * r.parallel
	list := r.among(queued, n, n)
	r.atOnce(ctx, list, n)
	return list
}
