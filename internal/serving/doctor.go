package serving

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/report"
)

// Causes. docs/causes.md has a row for each.
const (
	causeBOSTwice    = "serving/bos-twice"
	causeBOSMissing  = "serving/bos-missing"
	causeTemplate    = "serving/template"
	causeStop        = "serving/stop"
	causeSampling    = "serving/sampling"
	causeConcurrency = "serving/concurrency"
	causeLogProbs    = "serving/logprobs"
	causeDetokenise  = "serving/detokenise"
	causeCache       = "serving/cache"
	causeChoice      = "serving/choice"
	causeDraws       = "serving/distribution"
	causeStream      = "serving/stream"
	causeSetting     = "serving/setting"
)

// IDs lists all causes.
func IDs() []string {
	return []string{causeBOSTwice, causeBOSMissing, causeTemplate, causeStop, causeSampling, causeConcurrency, causeLogProbs,
		causeDetokenise, causeCache, causeChoice, causeDraws, causeStream, causeSetting}
}

// finding is a cause and what shows it. One that is not proven fits, and others may.
type finding struct {
	id, text string
	proven   bool
}

func proven(id, format string, args ...any) *finding {
	return &finding{id, fmt.Sprintf(format, args...), true}
}

func guess(id, format string, args ...any) *finding {
	return &finding{id, fmt.Sprintf(format, args...), false}
}

// doctor looks for the causes of wrong answers, by asking the server further.
type doctor struct {
	*run
	ctx   context.Context
	until time.Time
	asked int
	said  []string
	again map[*request][]probe
}

// probe is the answer to a further request.
type probe struct {
	answer Answer
	right  bool // it is the reference's
}

// try sends a further request, for which ref has the right answer. ok is false if there is no answer
// that can be judged, or no time left: that shows nothing.
func (d *doctor) try(what string, ref *Reference, a Ask) (p probe, ok bool) {
	if d.asked >= maxProbes || time.Now().After(d.until) || d.ctx.Err() != nil {
		return p, false
	}
	d.asked++
	answer, err := d.client.ask(d.ctx, a)
	if err != nil {
		d.said = append(d.said, what+": no answer")
		return p, false
	}
	j := d.model.judge(ref, &answer)
	p = probe{answer, j.fault == none || j.fault == short && j.unsure && len(ref.Tokens)-j.at == 1}
	word := "wrong"
	if p.right {
		word = "right"
	}
	d.said = append(d.said, what+": "+word)
	return p, true
}

// repeated sends a request again, alone, several times. It returns nil where that failed.
func (d *doctor) repeated(q *request) []probe {
	if got, ok := d.again[q]; ok {
		return got
	}
	var got []probe
	for range repeats {
		p, ok := d.try(q.where()+", again and alone", q.ref, q.ask)
		if !ok {
			got = nil
			break
		}
		got = append(got, p)
	}
	d.again[q] = got
	return got
}

// causes looks for what is behind the wrong answers, the first ones in their order.
func (d *doctor) causes() []report.Cause {
	var all []finding
	looked := 0
	for _, q := range d.requests {
		if !q.wrong() || looked == maxFindings || d.known(q) {
			continue
		}
		looked++
		if f := d.cause(q); f != nil && !slices.ContainsFunc(all, func(o finding) bool { return o.id == f.id && (o.proven || !f.proven) }) {
			all = append(all, *f)
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return map[bool]int{true: 0, false: 1}[a.proven] - map[bool]int{true: 0, false: 1}[b.proven]
	})
	causes := []report.Cause{}
	for _, f := range all {
		nan := report.Float(math.NaN())
		causes = append(causes, report.Cause{ID: f.id, Proven: f.proven, Fit: nan, FitGolden: nan, Text: foreign.Line(f.text)})
	}
	return causes
}

// known reports whether a request that is wrong among others is wrong alone, too: that is looked at.
func (d *doctor) known(q *request) bool {
	if q.twin != nil {
		return q.twin.wrong()
	}
	if q.way != AtOnce {
		return false
	}
	return slices.ContainsFunc(d.requests, func(o *request) bool { return o.way != AtOnce && o.wrong() && o.ref.Case == q.ref.Case })
}

// cause looks for what is behind one wrong answer; nil if nothing is shown.
func (d *doctor) cause(q *request) *finding {
	looks := []func(*request) *finding{d.otherIDs}
	switch {
	case q.way == AtOnce:
		looks = []func(*request) *finding{d.crowded, d.otherIDs}
	case q.j.fault == ending:
		looks = []func(*request) *finding{d.otherEnding}
	case q.j.fault == texts:
		looks = []func(*request) *finding{d.written}
	case q.j.fault == logProbs:
		looks = []func(*request) *finding{d.figures}
	}
	if q.j.fault != logProbs && q.j.fault != texts && q.j.fault != ending {
		looks = append(looks, d.otherChoice, d.repeat, d.others, d.promptMade, d.figures, d.swapped, d.ended, d.sampled, d.cached,
			d.notItsBest, d.mapped, d.madeOtherwise)
	}
	for _, look := range looks {
		if f := look(q); f != nil {
			return f
		}
	}
	return nil
}

// harness says what shows that the model is right, and the server around it is not: the prompt and
// the right tokens so far, asked as ids, are answered with the token that was wrong.
func (d *doctor) harness() string {
	for _, q := range d.requests {
		if !q.wrong() || q.ref.Prompt == nil || q.j.fault != tokens && q.j.fault != prompt {
			continue
		}
		k := min(q.j.at, len(q.ref.Tokens)-1)
		asked := "the reference's ids of the prompt"
		if k > 0 {
			asked += fmt.Sprintf(" and the %s before it", plural(k, "token"))
		}
		rest := q.ref.from(k)
		rest.Tokens, rest.Ask.Tokens = rest.Tokens[:1], 1
		p, ok := d.try(fmt.Sprintf("%s, prompt and %d right tokens as ids, one more", q.where(), k), rest, rest.Ask)
		switch {
		case !ok:
			return ""
		case p.right:
			return fmt.Sprintf("%s: %s, alone, are answered right: the model is right, the server around it is not", foreign.Line(q.where()), asked)
		}
		return fmt.Sprintf("%s: %s, alone, are answered wrong, too: look at the model, parity run and go test judge its tensors",
			foreign.Line(q.where()), asked)
	}
	return ""
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
