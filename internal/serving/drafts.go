package serving

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Ways of requests that count anew what a draft model proposes.
const (
	again       = "again"          // after all else, alone
	againAtOnce = "again, at once" // and with others
)

// drafting is what a draft model proposed, and what of that was accepted.
type drafting struct{ proposed, accepted float64 }

func (d drafting) minus(o drafting) drafting {
	return drafting{d.proposed - o.proposed, d.accepted - o.accepted}
}

func (d drafting) rate() float64 { return d.accepted / d.proposed }

func (d drafting) String() string {
	return fmt.Sprintf("%.0f of %.0f (%.0f %%)", d.accepted, d.proposed, 100*d.rate())
}

// drafted is what was proposed up to a moment, by the answers and by the server's page of metrics.
type drafted struct {
	answers, page drafting
	rate          float64 // of the last moment, by a page that has no more
}

// since is what was proposed between two moments, by the answers if they tell it.
func (d drafted) since(before drafted) drafting {
	if said := d.answers.minus(before.answers); said.proposed > 0 {
		return said
	}
	return d.page.minus(before.page)
}

// drafts reads what was proposed so far.
func (r *run) drafts(ctx context.Context) (d drafted) {
	r.mu.Lock()
	d.answers = r.said
	r.mu.Unlock()
	for _, address := range r.pages {
		if data, ok := r.page(ctx, address); ok {
			r.pages = []string{address}
			d.page, d.rate = readMetrics(data)
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
	for _, way := range []string{again, againAtOnce} {
		var asked []*request
		for _, a := range r.alone() {
			q := &request{ref: a.ref, ask: a.ask, way: way, twin: a}
			r.jostled(q)
			asked = append(asked, q)
		}
		n := r.parallel
		if way == again {
			n = 1
		}
		r.sendAll(ctx, asked, n)
		now := r.drafts(ctx)
		if then, is := r.draftedAlone, now.since(before); falls(then, is) {
			r.note("suspect: of what the draft model proposed, %s was accepted the first time, and of the same texts asked %s %s: what it keeps "+
				"of a text may be spoilt", then, way, is)
		}
		list, before = append(list, asked...), now
	}
	return list
}

// falls reports whether less is accepted than before, and not by chance: the difference of two shares is normal, nearly.
func falls(from, to drafting) bool {
	n := from.proposed + to.proposed
	p := (from.accepted + to.accepted) / n
	if enough := min(from.proposed, to.proposed)*min(p, 1-p) >= leastExpected; !enough {
		return false
	}
	off := (from.rate() - to.rate()) / math.Sqrt(p*(1-p)*(1/from.proposed+1/to.proposed))
	return distuv.UnitNormal.Survival(off) < perhapsOther
}

// tellDrafts says how much of what a draft model proposed was accepted, and how much where tokens were drawn. A wrong one
// only costs time: it shows nowhere else.
func (r *run) tellDrafts(now drafted) {
	all, drawn := now.since(r.begun), r.draftedDrawn
	switch {
	case all.proposed > 0 && now.answers.proposed > 0:
		r.note("a draft model: %s of the tokens that it proposed were accepted", all)
	case all.proposed > 0:
		r.note("a draft model: by the server's metrics, which count other requests, too, %s of the tokens that it proposed were accepted", all)
	case now.rate > 0:
		r.note("a draft model: by the server's metrics, %.0f %% of what it proposed last was accepted", 100*now.rate)
	}
	if all.proposed >= leastDrafted && all.accepted == 0 {
		r.note("suspect: no token of the draft model was accepted: it may have other weights, or another tokenizer")
	}
	if drawn.proposed >= leastDrafted && drawn.accepted >= drawn.proposed {
		r.note("suspect: where tokens are drawn, all of %.0f that the draft model proposed were accepted: it is the model itself, or "+
			"nothing is rejected", drawn.proposed)
	}
}
