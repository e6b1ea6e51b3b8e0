package serving

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Ways of requests: when one is sent, and how. All but the first three are for a server of which these are right.
const (
	Alone       = "alone"          // nothing else is on its way
	Prefix      = "prefix"         // alone, after the request whose text it begins in the middle of
	AtOnce      = "at once"        // with others
	Stream      = "stream"         // the answer comes in pieces
	Sampled     = "sampled"        // tokens are drawn
	arriving    = "arriving"       // while another is answered as a stream
	queued      = "queued"         // with more others than there should be on their way
	again       = "again"          // after all else, alone, to count anew what a draft model proposes
	againAtOnce = "again, at once" // and with others
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

// compared is a request that is judged by another answer of the server: where the reference's text has a tie, the
// server may choose otherwise the next time, and another text is no fault.
func compared(ref *Reference, way, cause string, stream func(), by func(j *judgement, a *Answer)) *request {
	return &request{ref: ref, way: way, cause: cause, stream: stream, extra: true, by: func(a *Answer) (j judgement) {
		by(&j, a)
		if j.fault > nothing && slices.ContainsFunc(ref.Rows, func(row Row) bool { return row.Gap() <= row.noise }) {
			j.fault, j.Text = nothing, "another text comes, and the reference's has a tie"
		}
		return j
	}}
}

// arrive sends requests while another is answered as a stream, one with each of its pieces.
func (r *run) arrive(ctx context.Context) (list []*request) {
	first := slices.MaxFunc(r.alone(), func(a, b *request) int { return len(a.answer.Text) - len(b.answer.Text) })
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

// streams ask each text again, in pieces.
func (r *run) streams(ctx context.Context) (list []*request) {
	for _, q := range r.alone() {
		if q.answer.Text != "" {
			list = append(list, r.streamOf(ctx, q, Stream, causeStream, func() {}))
		}
	}
	return list
}

// streamOf asks a text again in pieces, which must come to what was answered as a whole. A text that is another when it
// is asked as a whole again, too, tells nothing of the stream, nor does one of bytes that are no characters.
func (r *run) streamOf(ctx context.Context, q *request, way, cause string, came func()) *request {
	return compared(q.ref, way, cause, came, func(j *judgement, a *Answer) {
		whole := r.Model.unended(q.answer.Text)
		same := r.Model.unended(a.Text) == whole
		if same {
			j.also("text")
			j.Right = q.j.Right
		}
		switch {
		case q.answer.Called:
			j.fail(nothing, 0, "its text calls a tool")
		case !same && broken(whole):
			j.fail(nothing, 0, "its text holds bytes that are no character, and is another as a stream")
		case !same:
			if again, err := r.client.ask(ctx, q.ref.Ask); err == nil && r.Model.unended(again.Text) != whole {
				j.fail(nothing, 0, "the text is another each time")
			}
			j.fail(texts, 0, "the pieces of the stream come to %s, the answer as a whole is %s", quoted(a.Text),
				quoted(q.answer.Text))
		case a.Finish != "" && q.answer.Finish != "" && a.Stopped() != q.answer.Stopped():
			j.fail(ending, 0, "the stream says that it ended by %s, the answer as a whole by %s", quoted(a.Finish),
				quoted(q.answer.Finish))
		}
	})
}

// breaks ask a text up to the middle of a character of several tokens, as a whole and as a stream: what is there of the
// character may not spoil what comes before it.
func (r *run) breaks(context.Context) (list []*request) {
	for _, q := range r.eachPath() {
		k := r.Model.insideCharacter(q.ref.Tokens[:q.length()])
		if k == 0 || q.j.Tie != nil {
			continue
		}
		begin := q.ref.first(k)
		begin.Text = ""
		by := func(j *judgement, a *Answer) {
			j.also("text")
			j.Right = k
			if right, _ := r.Model.text(begin, begin.Tokens, a.Text); !right {
				is := r.Model.quote(begin, begin.Tokens, a.Text)
				j.fail(texts, k-1, "the text breaks off in a character: %s", is)
			}
		}
		list = append(list, compared(begin, "broken character", causeDetokenise, nil, by),
			compared(begin, "broken character as a stream", causeStream, func() {}, by))
	}
	if len(list) == 0 {
		r.note("not asked: no text of a case has a character of several tokens")
	}
	return list
}

// insideCharacter is a number of tokens whose text ends in the middle of a character; 0 if there is none.
func (m *Model) insideCharacter(ids []int) int {
	for k := 1; k < len(ids); k++ {
		if m.texts(ids[:k]) == nil {
			continue
		}
		text, _ := m.Vocab.Text(ids[:k], true)
		for whole := k + 1; strings.HasSuffix(text, "\uFFFD") && whole <= min(k+utf8.UTFMax-1, len(ids)); whole++ {
			if next, _ := m.Vocab.Text(ids[:whole], true); !broken(next) {
				return k
			}
		}
	}
	return 0
}

// stream asks for an answer in pieces, server-sent events; came is called for each that has a part of the text.
func (c *client) stream(ctx context.Context, a Ask, came func()) (Answer, error) {
	answer, events, unread := Answer{Cut: true, PromptCount: -1, Count: -1}, 0, error(nil)
	body := a.body(c.model, form{})
	body["stream"] = true
	data, err := c.send(ctx, a.path(), body, func(line []byte) {
		event, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if event = bytes.TrimSpace(event); !ok || len(event) == 0 || unread != nil {
			return
		}
		if string(event) == "[DONE]" {
			answer.Cut = false
			return
		}
		var w wireAnswer
		err := cmp.Or(json.Unmarshal(event, &w), w.failed())
		if events++; err != nil {
			unread = unreadable(a.path(), event, err)
		}
		for _, c := range slices.DeleteFunc(w.Choices, func(c wireChoice) bool { return c.Index != 0 }) {
			text, _ := c.Text.(string)
			if text += c.Delta.Content; text != "" {
				answer.Text += text
				came()
			}
			if c.Finish != "" {
				answer.Finish, answer.Cut = c.Finish, false
			}
		}
	})
	if err == nil && events == 0 {
		err = &answerError{What: a.path() + ": stream: true is answered without one: " + snippet(bytes.TrimSpace(data))}
	}
	return answer, cmp.Or(err, unread)
}

// stops ask a text of each path again, with a stop in its middle: one that is a token, and one that begins in one token
// and ends in the next, as a whole and as a stream.
func (r *run) stops(context.Context) (list []*request) {
	for _, q := range r.eachPath() {
		text, _, _ := strings.Cut(r.Model.unended(q.answer.Text), "\uFFFD")
		cuts := r.Model.cuts(q.ref.Tokens, text)
		inside, across := stopInside(text, cuts), stopAcross(text, cuts)
		if inside == "" || across == "" {
			r.note("not asked: case %s with a stop: its text has no place for one", q.ref.Case)
			continue
		}
		ask := func(way, stop string, stream func()) {
			ref := q.ref.with(map[string]any{"stop": []string{stop}})
			list = append(list, compared(ref, way, causeStop, stream, func(j *judgement, a *Answer) {
				r.stoppedAt(j, q, a, text, stop, cuts)
			}))
		}
		ask("stop", inside, nil)
		ask("stop across tokens", across, nil)
		ask("stop as a stream", across, func() {})
	}
	return list
}

// eachPath lists the request with the longest text of each path of the API.
func (r *run) eachPath() (list []*request) {
	for _, q := range r.alone() {
		path := q.ref.Ask.path()
		at := slices.IndexFunc(list, func(o *request) bool { return o.ref.Ask.path() == path })
		if at < 0 {
			list = append(list, q)
		} else if len(q.answer.Text) > len(list[at].answer.Text) {
			list[at] = q
		}
	}
	return list
}

// cuts are the places between the tokens of a text; between its characters where no vocabulary tells these.
func (m *Model) cuts(ids []int, text string) (at []int) {
	if m.Vocab == nil {
		for i := range text {
			at = append(at, i)
		}
	}
	for k := 1; k < len(ids); k++ {
		for _, begin := range m.texts(ids[:k]) {
			if len(begin) < len(text) && strings.HasPrefix(text, begin) {
				at = append(at, len(begin))
			}
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	return slices.DeleteFunc(at, func(i int) bool { return i == 0 })
}

// stopInside is the text of a token that the text has not before; empty if there is none.
func stopInside(text string, cuts []int) string {
	for i := range len(cuts) - 1 {
		stop := strings.TrimSpace(text[cuts[i]:cuts[i+1]])
		if stop != "" && strings.Index(text, stop) >= cuts[i] {
			return stop
		}
	}
	return ""
}

// stopAcross is a text that reaches from one token into the next, and that the text has not before.
func stopAcross(text string, cuts []int) string {
	for _, cut := range cuts {
		from, to := cut, cut
		for range utf8.UTFMax {
			_, before := utf8.DecodeLastRuneInString(text[:from])
			_, after := utf8.DecodeRuneInString(text[to:])
			from, to = from-before, to+after
			stop := text[from:to]
			if from > 0 && from < cut && to > cut && stop == strings.TrimSpace(stop) && strings.Index(text, stop) == from {
				return stop
			}
		}
	}
	return ""
}

// stoppedAt judges an answer that has to end before a stop. The stop itself may stand there, with the rest of its
// token, which OpenAI leaves out: MAX 26.7.0 writes it in completions.
func (r *run) stoppedAt(j *judgement, of *request, a *Answer, text, stop string, cuts []int) {
	from := strings.Index(text, stop)
	to, last := from+len(stop), len(text)
	if i, _ := slices.BinarySearch(cuts, to); i < len(cuts) {
		last = cuts[i]
	}
	is, want := r.Model.unended(a.Text), plain(text[:from])
	written := strings.HasPrefix(text, is) && len(is) >= to && len(is) <= last
	switch {
	case is != want && !written && is == r.Model.unended(of.answer.Text):
		j.fail(long, 0, "the stop %s is ignored", quoted(stop))
	case is != want && !written:
		j.fail(texts, 0, "with the stop %s the text is %s, not %s", quoted(stop), quoted(a.Text), quoted(want))
	case !a.Stopped():
		j.fail(ending, 0, "the answer ends at the stop %s, and the server says by %s", quoted(stop), quoted(a.Finish))
	default:
		if is != want {
			r.note("%s: a text that ends at a stop has the stop at its end, too", of.ref.Ask.path())
		}
		right, _ := slices.BinarySearch(cuts, from+1)
		j.Right, j.Ended = right, &right
		j.also("text")
	}
}
