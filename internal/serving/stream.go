package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
)

// Stream is the way of requests whose answers come in pieces.
const Stream = "stream"

// streamed asks each text again, in pieces, which must come to the text that was answered as a whole. It is only asked
// where that is right, and holds no character that breaks off. A text that is another when it is asked as a whole
// again, too, tells nothing of the stream.
func (r *run) streamed(ctx context.Context, out *report.Serving) {
	for _, q := range r.requests {
		if q.way != Alone || q.answer.Text == "" {
			continue
		}
		if strings.ContainsRune(q.answer.Text, '\uFFFD') {
			r.note("not judged: case %s as a stream: its text breaks off in a character", q.ref.Case)
			continue
		}
		s := report.ServedRequest{Case: q.ref.Case, As: q.ask.As, Way: Stream, Status: report.StatusPass, Judged: []string{"text"},
			Tokens: q.ask.Tokens, Right: q.j.right, LogProb: report.Float(math.NaN())}
		got, err := r.client.stream(ctx, q.ask)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			s.Status, s.Text = without(err), err.Error()
		case !got.ended:
			s.Status, s.Text = report.StatusFail, fmt.Sprintf("the stream breaks off after %d pieces, without finish_reason or [DONE]", got.pieces)
		case r.model.unended(got.text) != r.model.unended(q.answer.Text):
			again, err := r.client.ask(ctx, q.ask)
			if err == nil && r.model.unended(again.Text) != r.model.unended(q.answer.Text) {
				s.Status, s.Text = report.StatusIgnored, "the text is another each time"
				break
			}
			s.Status, s.Text = report.StatusFail, fmt.Sprintf("the pieces of the stream come to %s, the answer as a whole is %s", quoted(got.text), quoted(q.answer.Text))
		}
		if s.Status == report.StatusIgnored {
			r.note("not judged: case %s as a stream: %s", q.ref.Case, s.Text)
		}
		if s.Status != report.StatusPass {
			s.Judged, s.Right = []string{}, 0
		}
		if tellMore(out, s, causeStream); out.Verdict == report.Error {
			return
		}
	}
}

// without is what comes of a request that got no answer: one that the server refuses is left out, one that may have
// ended it is an error.
func without(err error) report.Status {
	if e, ok := errors.AsType[*AnswerError](err); ok && !e.gone || errors.Is(err, errNameless) {
		return report.StatusIgnored
	}
	return report.StatusError
}

// tellMore adds what came of a request that is sent where all else is right; what is wrong with it has one cause.
func tellMore(out *report.Serving, q report.ServedRequest, cause string) {
	out.Requests = append(out.Requests, q)
	switch {
	case q.Status == report.StatusError:
		out.Verdict, out.Error = report.Error, fmt.Sprintf("no answer that can be judged: case %s as %s, %s: %s", q.Case, q.As, q.Way, q.Text)
	case q.Status == report.StatusFail && out.First == nil:
		nan := report.Float(math.NaN())
		out.Verdict = report.Fail
		out.First = &report.ServingPlace{Case: q.Case, As: q.As, Way: q.Way, Text: q.Text}
		out.Causes = []report.Cause{{ID: cause, Proven: true, Text: q.Text, Fit: nan, FitGolden: nan, NextFit: nan}}
	}
}

// pieces are an answer that came as a stream.
type pieces struct {
	text   string
	pieces int
	ended  bool
}

// stream asks for an answer in pieces: server-sent events, each with a part of the text.
func (c *client) stream(ctx context.Context, a Ask) (p pieces, err error) {
	body, err := json.Marshal(a.with("stream", true).body(c.model, form{}))
	if err != nil {
		return p, fmt.Errorf("serving: %w", err)
	}
	data, err := c.send(ctx, http.MethodPost, a.path(), body)
	if err != nil {
		return p, err
	}
	for line := range bytes.Lines(data) {
		event, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if event = bytes.TrimSpace(event); !ok || len(event) == 0 {
			continue
		}
		if string(event) == "[DONE]" {
			p.ended = true
			break
		}
		var chunk struct {
			Choices []struct {
				Index  int     `json:"index"`
				Text   string  `json:"text"`
				Finish *string `json:"finish_reason"`
				Delta  struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(event, &chunk); err != nil {
			return p, unreadable(a.path(), event, err)
		}
		if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
			return p, &AnswerError{What: fmt.Sprintf("%s: an error in the stream: %s", a.path(), message(event))}
		}
		p.pieces++
		for _, choice := range chunk.Choices {
			if choice.Index == 0 {
				p.text += choice.Text + choice.Delta.Content
				p.ended = p.ended || choice.Finish != nil && *choice.Finish != ""
			}
		}
	}
	if p.pieces == 0 {
		return p, &AnswerError{What: fmt.Sprintf("%s: stream: true is answered without one: %s", a.path(), foreign.Line(strings.TrimSpace(snippet(data))))}
	}
	return p, nil
}
