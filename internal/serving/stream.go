package serving

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Stream is the way of requests whose answers come in pieces.
const Stream = "stream"

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
	by := func(a *Answer) (j judgement) {
		whole := r.Model.unended(q.answer.Text)
		same := r.Model.unended(a.Text) == whole
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
		if same {
			j.also("text")
			j.Right = q.j.Right
		}
		return j
	}
	return untied(&request{ref: q.ref, way: way, stream: came, extra: true, cause: cause, by: by})
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
		by := func(a *Answer) (j judgement) {
			j.also("text")
			j.Right = k
			if right, _ := r.Model.text(begin, begin.Tokens, a.Text); !right {
				is := r.Model.quote(begin, begin.Tokens, a.Text)
				j.fail(texts, k-1, "the text breaks off in a character: %s", is)
			}
			return j
		}
		whole := untied(&request{ref: begin, way: "broken character", extra: true, cause: causeDetokenise, by: by})
		pieces := *whole
		pieces.way, pieces.cause, pieces.stream = "broken character as a stream", causeStream, func() {}
		list = append(list, whole, &pieces)
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

// pieces are what came of a stream: server-sent events, each with a part of the text.
type pieces struct {
	text, finish string
	n            int
	ended        bool   // by finish_reason or [DONE]
	last         []byte // the event that err is about
	err          error
}

// add adds a line; came is called if it has a part of the text.
func (p *pieces) add(line []byte, came func()) {
	event, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	if event = bytes.TrimSpace(event); !ok || len(event) == 0 || p.err != nil {
		return
	}
	if string(event) == "[DONE]" {
		p.ended = true
		return
	}
	part, finish, err := readPiece(event)
	if p.n, p.last, p.err = p.n+1, event, err; part != "" {
		p.text += part
		came()
	}
	if finish != "" {
		p.finish, p.ended = finish, true
	}
}

// stream asks for an answer in pieces; came is called for each as it comes. whole is false of one that breaks off.
func (c *client) stream(ctx context.Context, a Ask, came func()) (answer Answer, whole bool, err error) {
	p := pieces{}
	body := a.body(c.model, form{})
	body["stream"] = true
	data, err := c.send(ctx, a.path(), body, func(line []byte) { p.add(line, came) })
	switch {
	case err != nil:
		return answer, false, err
	case p.err != nil:
		return answer, false, unreadable(a.path(), p.last, p.err)
	case p.n == 0:
		return answer, false, &answerError{What: fmt.Sprintf("%s: stream: true is answered without one: %s", a.path(),
			snippet(bytes.TrimSpace(data)))}
	}
	return Answer{Text: p.text, Finish: p.finish, PromptCount: -1, Count: -1}, p.ended, nil
}
