package serving

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/goparity/goparity/internal/vec"
)

// drafting is what a draft model proposed, and what of that was accepted.
type drafting struct{ proposed, accepted float64 }

func (d drafting) rate() float64 { return d.accepted / d.proposed }

func (d drafting) String() string {
	return fmt.Sprintf("%.0f of %.0f (%.0f %%)", d.accepted, d.proposed, 100*d.rate())
}

// drafted is what was proposed up to a moment, by the answers and by the server's page of metrics.
type drafted [2]drafting

// since is what was proposed between two moments, by the answers if they tell it.
func (d drafted) since(before drafted) (of drafting) {
	for i, now := range d {
		of = drafting{now.proposed - before[i].proposed, now.accepted - before[i].accepted}
		if of.proposed > 0 {
			break
		}
	}
	return of
}

// drafts reads what was proposed so far, by the first page of metrics that answers.
func (r *run) drafts(ctx context.Context) (d drafted) {
	r.mu.Lock()
	d[0] = r.client.drafted
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, metricsTime)
	defer cancel()
	for i, address := range r.pages {
		if page, err := r.client.send(ctx, address, nil, nil); err == nil {
			r.pages = r.pages[i : i+1]
			d[1], r.lastRate = readMetrics(page)
			return d
		}
	}
	r.pages = nil
	return d
}

// redraft asks each text again, alone and then at once, where there is a draft model: it proposes as well as before,
// unless what it keeps of a text is spoilt.
func (r *run) redraft(ctx context.Context) (list []*request) {
	before := r.drafts(ctx)
	if before.since(r.begun).proposed <= 0 {
		return nil
	}
	for i, way := range []string{again, againAtOnce} {
		var asked []*request
		for _, a := range r.alone() {
			asked = append(asked, r.jostled(sameAgain(a, way)))
		}
		r.sendAll(ctx, asked, []int{1, r.Parallel}[i])
		now := r.drafts(ctx)
		if then, is := r.draftedAlone, now.since(before); falls(then, is) {
			r.note("suspect: of what the draft model proposed, %s was accepted the first time, and of the same texts asked %s "+
				"%s: what it keeps of a text may be spoilt", then, way, is)
		}
		list, before = append(list, asked...), now
	}
	return list
}

// falls reports whether less is accepted than before, and not by chance: the difference of two shares is normal, nearly.
func falls(from, to drafting) bool {
	p := (from.accepted + to.accepted) / (from.proposed + to.proposed)
	if enough := min(from.proposed, to.proposed)*min(p, 1-p) >= leastExpected; !enough {
		return false
	}
	off := (from.rate() - to.rate()) / math.Sqrt(p*(1-p)*(1/from.proposed+1/to.proposed))
	return distuv.UnitNormal.Survival(off) < perhapsOther
}

// tellDrafts says how much of what a draft model proposed was accepted, and how much where tokens were drawn. A wrong one
// only costs time: it shows nowhere else. No server says with which probability it proposed a token, so that a rate is
// never more than suspect; that what is accepted has the model's distribution is judged by the draws.
func (r *run) tellDrafts(now drafted) {
	all, drawn := now.since(r.begun), r.draftedDrawn
	switch {
	case all.proposed > 0 && now[0].proposed > 0:
		r.note("a draft model: %s of the tokens that it proposed were accepted", all)
	case all.proposed > 0:
		r.note("a draft model: by the server's metrics, which count other requests, too, %s of the tokens that it proposed "+
			"were accepted", all)
	case r.lastRate > 0:
		r.note("a draft model: by the server's metrics, %.0f %% of what it proposed last was accepted", 100*r.lastRate)
	}
	if all.proposed >= leastDrafted && all.accepted == 0 {
		r.note("suspect: no token of the draft model was accepted: it may have other weights, or another tokenizer")
	}
	if drawn.proposed >= leastDrafted && drawn.accepted >= drawn.proposed {
		r.note("suspect: where tokens are drawn, all of %.0f that the draft model proposed were accepted: it is the model "+
			"itself, or nothing is rejected", drawn.proposed)
	}
}

// What pages call the tokens that a draft model proposed and those of them that were accepted: vLLM, llama.cpp and
// mistral.rs. MAX has a histogram of rates in percent, SGLang the rate of the last moment alone.
var (
	proposedTokens = regexp.MustCompile(`(draft_tokens(_proposed)?_total|acceptance_rate_per_position(_percent)?_count)$`)
	acceptedTokens = regexp.MustCompile(`(spec_decode_num_accepted_tokens|draft_tokens_accepted)_total$`)
	percentSum     = regexp.MustCompile(`acceptance_rate_per_position(_percent)?_sum$`)
	momentary      = regexp.MustCompile(`spec_accept_rate$`)
)

// metric is a line such as vllm:spec_decode_num_draft_tokens_total{engine="0"} 120.0.
var metric = regexp.MustCompile(`(?m)^[ \t]*([^#{\s]+)(?:\{.*\})?[ \t]+(\S+)`)

// readMetrics reads what a page of metrics, as Prometheus has it, says of a draft model.
func readMetrics(page []byte) (d drafting, rate float64) {
	for _, words := range metric.FindAllStringSubmatch(string(page), -1) {
		value, err := strconv.ParseFloat(words[2], 64)
		switch name := words[1]; {
		case err != nil || !vec.IsFinite(value):
		case proposedTokens.MatchString(name):
			d.proposed += value
		case acceptedTokens.MatchString(name):
			d.accepted += value
		case percentSum.MatchString(name):
			d.accepted += value / 100
		case momentary.MatchString(name):
			rate = value
		}
	}
	return d, rate
}
