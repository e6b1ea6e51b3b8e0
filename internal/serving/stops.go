package serving

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

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
			list = append(list, untied(&request{ref: q.ref.with(map[string]any{"stop": []string{stop}}), way: way, stream: stream,
				extra: true, cause: causeStop, by: func(a *Answer) judgement { return r.stoppedAt(q, a, text, stop, cuts) }}))
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
func (r *run) stoppedAt(of *request, a *Answer, text, stop string, cuts []int) (j judgement) {
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
		j.Right, _ = slices.BinarySearch(cuts, from+1)
		j.Ended = &j.Right
		j.also("text")
	}
	return j
}
