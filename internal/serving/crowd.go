package serving

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Ways of requests that are sent where all that the cases ask for is answered right.
const (
	arriving = "arriving" // while another is answered as a stream
	queued   = "queued"   // with more others than there should be on their way
)

// continued is a request from the middle of a reference's text.
func continued(ref *Reference, k int, way string) *request {
	return &request{ref: ref.from(k, len(ref.Tokens)), way: way, from: k, extra: true}
}

// sameAgain is a request that was sent alone, in another way.
func sameAgain(a *request, way string) *request { return &request{ref: a.ref, way: way, twin: a} }

// continues reports whether the server can be asked from the middle of a text: token ids were answered, or not yet
// asked, and what follows can be judged without the beginning of the text.
func (r *run) continues(ref *Reference) bool {
	tried, answered, judged := false, false, r.Model.Vocab != nil
	for _, q := range r.requests {
		tried = tried || q.sent && q.ref.Ask.As == AsIDs
		answered = answered || q.judged() && q.ref.Ask.As == AsIDs
		judged = judged || q.judged() && (q.answer.Tokens != nil || q.answer.LogProbs != nil && ref.Rows != nil)
	}
	return ref.Prompt != nil && judged && (answered || !tried)
}

// crowd lists what is asked at once: each request, and where these are fewer than n, more from the
// middle of the texts, or the same again.
func (r *run) crowd(way string, n int) (crowd []*request) {
	alone := r.alone()
	for _, a := range alone {
		crowd = append(crowd, sameAgain(a, way))
	}
	for k := 1; len(crowd) < n; k++ {
		before := len(crowd)
		for _, a := range alone {
			if k < a.length() && r.continues(a.ref) {
				crowd = append(crowd, continued(a.ref, k, way))
			}
		}
		if len(crowd) == before {
			crowd = append(crowd, sameAgain(alone[before%len(alone)], way))
		}
	}
	return crowd[:max(n, len(alone))]
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

// jostled makes a request one that is judged for what others do to it. Where nothing else says whether the reference's
// next token ends a text, it may end where the same request has ended alone.
func (r *run) jostled(q *request) *request {
	q.extra, q.cause, q.by = true, causeConcurrency, func(a *Answer) judgement {
		j := r.Model.judge(q.ref, a)
		switch {
		case j.fault != short || !j.unsure:
		case q.twin == nil:
			j.fault = nothing
		case q.twin.j.Ended != nil && *q.twin.j.Ended == j.at:
			j.fault, j.Text, j.Ended = none, "", q.twin.j.Ended
		}
		return j
	}
	return q
}

// untied judges a request by another answer of the server: where the reference's text has a tie, the server may choose
// otherwise the next time, and another text is no fault.
func untied(q *request) *request {
	by := q.by
	q.by = func(a *Answer) judgement {
		j := by(a)
		if j.fault > nothing && slices.ContainsFunc(q.ref.Rows, func(row Row) bool { return row.Gap() <= row.noise }) {
			j.fault, j.Text = nothing, "another text comes, and the reference's has a tie"
		}
		return j
	}
	return q
}

// arrive sends requests while another is answered as a stream, one with each of its pieces.
func (r *run) arrive(ctx context.Context) (list []*request) {
	first := slices.MaxFunc(r.alone(), func(a, b *request) int { return cmp.Compare(len(a.answer.Text), len(b.answer.Text)) })
	waiting := r.among(arriving, r.Parallel, mostBeside)
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
	n := overfull * r.Parallel
	list := r.among(queued, n, n)
	r.sendAll(ctx, list, n)
	return list
}
