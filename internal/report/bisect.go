package report

import (
	"fmt"
	"slices"
)

// Bisect says in which way of running the same tokens a wrong one begins: the table that ends the search.
type Bisect struct {
	Case  string `json:"case"`
	Token int    `json:"token"` // the first wrong one, from 0

	// Whether the token is right by one pass over the prompt and the reference's text before it, by one
	// run with the cache, and as the server returned it: pass, fail or not judged.
	Forced      Status `json:"teacher_forced"`
	Incremental Status `json:"incremental"`
	Served      Status `json:"served"`

	Fault string `json:"fault"` // "graph", "decode state", "harness", or empty where it cannot be told
	Next  string `json:"next"`  // what to look at or to run
}

// bisect returns the table of the first wrong token; nil if none is wrong.
func (r *Report) bisect() *Bisect {
	b := r.wrongToken()
	if b == nil {
		return nil
	}
	b.Forced, b.Incremental, b.Served = r.right(b, false), r.right(b, true), r.served(b)
	switch {
	case b.Forced == StatusFail:
		b.Fault, b.Next = "graph", "one pass is wrong: look at the first divergence of the layers"
	case b.Incremental == StatusFail && b.Forced == StatusPass:
		b.Fault, b.Next = "decode state", "one pass is right, the run with the cache is not: paths: [decode] finds the layer and the pass, parity run --path decode"
	case b.Incremental == StatusFail:
		b.Next = "one pass was not judged: run the same tokens in one, parity run --token-ids, and parity compare judges it"
	case b.Served == StatusFail && b.Incremental == StatusPass:
		b.Fault, b.Next = "harness", "the model is right, its server is not: tokenizer, template, sampling, stop tokens, concurrency; do not edit the graph"
	case b.Served == StatusFail:
		b.Next = "the model's own run was not judged: parity compare of dumps with generation, or a live run with steps"
	}
	return b
}

// wrongToken is the first token that a generation, or else a server, has wrong.
func (r *Report) wrongToken() (first *Bisect) {
	for i := range r.Generations {
		if g := &r.Generations[i]; g.wrong() && (first == nil || *g.At < first.Token) {
			first = &Bisect{Case: g.Case, Token: *g.At}
		}
	}
	if s := r.Serving; first == nil && s != nil && s.Verdict == Fail && s.First != nil {
		first = &Bisect{Case: s.First.Case, Token: s.First.Token}
	}
	return first
}

// right says whether a token is right in one pass, or with the cache: by a generation, else by the rows of its pass.
func (r *Report) right(b *Bisect, incremental bool) Status {
	for _, g := range r.Generations {
		if g.Case == b.Case && g.Incremental == incremental && g.Tokens > b.Token {
			return statusOf(true, g.wrong() && *g.At <= b.Token)
		}
	}
	judged := slices.ContainsFunc(r.Layers, func(l Layer) bool {
		return l.Case == b.Case && l.Stage == "" && l.compared() && !l.IsInput() && l.Step == fmt.Sprint(b.Token)
	})
	if !judged || b.Token > 0 && !incremental {
		return NotJudged
	}
	return stageNamed(StageTensors).status(r)
}

func (r *Report) served(b *Bisect) Status {
	s := r.Serving
	return statusOf(s != nil && s.Verdict != Error, s != nil && s.First != nil && s.First.Case == b.Case && s.First.Token <= b.Token)
}

// wrong reports whether a token or its logits are wrong.
func (g *Generation) wrong() bool {
	return g.At != nil && (g.Verdict == "diverged" || g.Verdict == "logits")
}

// bisected says in which way of running the same tokens the first wrong one begins.
func (d *composer) bisected() {
	b := d.r.bisect()
	if b == nil {
		return
	}
	next := b.Next
	if b.Fault != "" {
		next = "the " + b.Fault + " is at fault: " + next
	}
	d.add(Section{Heading: fmt.Sprintf("Token %d of %s", b.Token, Clean(b.Case))}, unlimited,
		Line{Lead: "teacher-forced, in one pass", Text: string(b.Forced)},
		Line{Lead: "incremental, with the cache", Text: string(b.Incremental)},
		Line{Lead: "served", Text: string(b.Served)}, Line{Text: next})
}
