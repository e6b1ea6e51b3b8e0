package serving

import (
	"cmp"
	"context"
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
		r.sendAll(ctx, slices.DeleteFunc(slices.Clone(list), func(q *request) bool { return q.sent }), 1)
		for _, q := range list {
			if ctx.Err() != nil || !q.sent {
				return
			}
			if add(out, q); q.wrong() && out.Causes == nil {
				f := finding{q.cause, q.j.what, q.cause != causeConcurrency || r.rightAlone(ctx, q)}
				out.Causes = []report.Cause{f.cause()}
			}
			if out.Verdict == report.Error {
				out.Causes = nil
				return
			}
		}
		if out.Verdict != report.Pass {
			return
		}
	}
}

// rightAlone reports whether a request that is wrong among others is right alone, each time.
func (r *run) rightAlone(ctx context.Context, q *request) bool {
	for range repeats {
		again := *q
		if r.send(ctx, &again); !again.judged() || again.wrong() {
			return false
		}
	}
	return true
}

// among lists requests that are judged for what others do to them, and says how many are left out.
func (r *run) among(way string, n, most int) []*request {
	list := r.crowd(way, n)
	if len(list) > most {
		r.note("not asked: %d of %d requests, %s", len(list)-most, len(list), way)
		list = list[:most]
	}
	for _, q := range list {
		r.jostled(q)
	}
	return list
}

// jostled makes a request one that is judged for what others do to it.
func (r *run) jostled(q *request) {
	q.extra, q.cause, q.by = true, causeConcurrency, func(a *Answer) judgement { return r.endedAs(q, a) }
}

// untied judges a request by another answer of the server: where the reference's text has a tie, the server may choose
// otherwise the next time, and another text is no fault.
func untied(q *request) *request {
	by := q.by
	q.by = func(a *Answer) judgement {
		j := by(a)
		if j.fault > nothing && slices.ContainsFunc(q.ref.Rows, func(row Row) bool { return row.Gap() <= row.noise }) {
			j.fault, j.what = nothing, "another text comes, and the reference's has a tie"
		}
		return j
	}
	return q
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
		stream := r.streamOf(ctx, first, arriving, causeConcurrency, func() {
			if n < len(waiting) {
				q := waiting[n]
				all.Go(func() { r.send(ctx, q) })
				n++
			}
		})
		r.send(ctx, stream)
		all.Wait()
		list = append(append(list, stream), waiting[:n]...)
		if waiting = waiting[n:]; n == 0 || !stream.judged() {
			break
		}
	}
	return list
}

// queue sends more requests at once than there should be: those that a server has no slot for have to wait.
func (r *run) queue(ctx context.Context) []*request {
	n := overfull * r.parallel
	list := r.among(queued, n, n)
	r.sendAll(ctx, list, n)
	return list
}
