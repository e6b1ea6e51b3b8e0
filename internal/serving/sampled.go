package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/goparity/goparity/internal/report"
)

// Sampled is the way of requests that draw tokens.
const Sampled = "sampled"

// share is what a token has of the probability, among those that may be drawn.
type share struct {
	id int
	p  float64
}

// sampling is a setting of sampling, and what it makes of a distribution.
type sampling struct {
	name   string
	keys   map[string]any
	shares []share // of the tokens that may be drawn, the largest first
	rest   float64 // of all others; 0: no other one may be drawn
}

// sampled draws the first token of one text many times for each setting, and judges how often each came. The
// text is the one whose first token is the least certain. It is only asked where everything else is right.
func (r *run) sampled(ctx context.Context, draws int, out *report.Serving) {
	ref := r.uncertain()
	if ref == nil {
		r.note("not judged: sampling: no case has logits and a token that is not all but certain")
		return
	}
	for _, s := range samplings(ref.Rows[0]) {
		q := report.ServedRequest{Case: ref.Case, As: ref.Ask.As, Way: Sampled + ", " + s.name, Status: report.StatusPass,
			Judged: []string{}, Tokens: draws, LogProb: report.Float(math.NaN())}
		drawn, err := r.draw(ctx, ref, s, draws)
		switch e := (*AnswerError)(nil); {
		case ctx.Err() != nil:
			return
		case errors.As(err, &e) && !e.gone, errors.Is(err, errNameless):
			q.Status, q.Text = report.StatusIgnored, err.Error()
			r.note("not judged: %s: %s", q.Way, q.Text)
		case err != nil:
			q.Status, q.Text = report.StatusError, err.Error()
			out.Verdict, out.Error = report.Error, fmt.Sprintf("no answer that can be judged: case %s, %s: %s", q.Case, q.Way, q.Text)
		default:
			r.judgeDraws(&q, ref, s, drawn)
		}
		out.Requests = append(out.Requests, q)
		switch {
		case out.Verdict == report.Error:
			return
		case q.Status == report.StatusFail && out.First == nil:
			out.Verdict = report.Fail
			out.First = &report.ServingPlace{Case: q.Case, As: q.As, Way: q.Way, Text: q.Text}
			out.Causes = []report.Cause{{ID: causeDraws, Proven: true, Text: q.Text, Fit: report.Float(math.NaN()), FitGolden: report.Float(math.NaN()),
				NextFit: report.Float(math.NaN())}}
		}
	}
}

// uncertain returns the reference whose first token is the least certain; nil where all are all but certain.
func (r *run) uncertain() (best *Reference) {
	most := leastEntropy
	for _, ref := range r.refs {
		if len(ref.Rows) == 0 {
			continue
		}
		if h := entropy(sharesOf(ref.Rows[0], 1)); h > most {
			best, most = ref, h
		}
	}
	return best
}

func entropy(s sampling) (h float64) {
	for _, x := range s.shares {
		if x.p > 0 {
			h -= x.p * math.Log(x.p)
		}
	}
	return h
}

// sharesOf is the distribution of a row at a temperature, of the tokens that are known.
func sharesOf(row Row, temperature float64) (s sampling) {
	var logits []float64
	add := func(id int, x float64) {
		s.shares, logits = append(s.shares, share{id: id}), append(logits, x/temperature)
	}
	if row.Whole() {
		for id := 0; ; id++ {
			x, ok := row.Logit(id)
			if !ok {
				break
			}
			add(id, x)
		}
	} else {
		for _, l := range row.Top {
			add(l.Token, l.Value)
		}
	}
	all := row.LSE
	if row.Whole() {
		all = floats.LogSumExp(logits)
	}
	s.rest = 1
	for i, x := range logits {
		s.shares[i].p = math.Exp(x - all)
		s.rest -= s.shares[i].p
	}
	if s.rest = max(s.rest, 0); row.Whole() {
		s.rest = 0
	}
	slices.SortStableFunc(s.shares, func(a, b share) int { return cmp.Compare(b.p, a.p) })
	return s
}

// samplings are the settings that are asked. Each that leaves tokens out does so where the gap between the last
// that stays and the next is widest, so that no noise decides it.
func samplings(row Row) (list []sampling) {
	plain := sharesOf(row, 1)
	plain.name, plain.keys = "temperature 1", map[string]any{"temperature": 1}
	list = append(list, plain)
	if row.Whole() {
		cold := sharesOf(row, coldest)
		cold.name, cold.keys = fmt.Sprintf("temperature %g", coldest), map[string]any{"temperature": coldest}
		list = append(list, cold)
	}
	n, widest := 0, 4*row.noise
	for k := 2; k <= mostKept && k < len(plain.shares); k++ {
		if gap := math.Log(plain.shares[k-1].p / plain.shares[k].p); gap > widest {
			n, widest = k, gap
		}
	}
	if n == 0 {
		return list
	}
	kept, mass := slices.Clone(plain.shares[:n]), 0.0
	for _, x := range kept {
		mass += x.p
	}
	last := kept[n-1].p
	for i := range kept {
		kept[i].p /= mass
	}
	for _, s := range []sampling{
		{name: fmt.Sprintf("top_k %d", n), keys: map[string]any{"top_k": n}},
		{name: fmt.Sprintf("top_p %.3g", mass-last/2), keys: map[string]any{"top_p": mass - last/2}},
		{name: fmt.Sprintf("min_p %.3g", math.Sqrt(last*plain.shares[n].p)/plain.shares[0].p),
			keys: map[string]any{"min_p": math.Sqrt(last*plain.shares[n].p) / plain.shares[0].p}},
	} {
		s.keys["temperature"], s.shares = 1, kept
		list = append(list, s)
	}
	return list
}

// errNameless says why draws cannot be judged.
var errNameless = errors.New("the server does not say which token it drew, and no vocabulary does")

// draw asks for one token so many times, each with a seed of its own, and counts what came by name.
func (r *run) draw(ctx context.Context, ref *Reference, s sampling, draws int) (map[string]int, error) {
	ask := ref.Ask
	ask.Tokens = 1
	for key, value := range s.keys {
		ask = ask.with(key, value)
	}
	one := *ref
	one.Tokens, one.Rows = ref.Tokens[:1], ref.Rows[:1]
	var requests []*request
	for i := range draws {
		requests = append(requests, &request{ref: &one, ask: ask.with("seed", i+1), way: Sampled})
	}
	r.atOnce(ctx, requests)
	drawn := map[string]int{}
	for _, q := range requests {
		if q.err != nil {
			return nil, q.err
		}
		name, ok := r.drawnBy(&q.answer)
		if !ok {
			return nil, errNameless
		}
		drawn[name]++
	}
	return drawn, nil
}

// drawnBy names the token of an answer: by its id, or by its text where that is all that is said.
func (r *run) drawnBy(a *Answer) (string, bool) {
	switch {
	case len(a.Tokens) > 0:
		return fmt.Sprint(a.Tokens[0]), true
	case r.model.Vocab != nil && !strings.ContainsRune(a.Text, '\uFFFD'):
		return "text " + plain(a.Text), true
	}
	return "", false
}

// expected are the shares by the names that draws have: tokens of one text are one.
func (r *run) expected(s sampling, drawn map[string]int) map[string]float64 {
	byText := false
	for name := range drawn {
		byText = byText || strings.HasPrefix(name, "text ")
	}
	out := map[string]float64{}
	for _, x := range s.shares {
		name := fmt.Sprint(x.id)
		if byText {
			text, _ := r.model.Vocab.Text([]int{x.id}, true)
			name = "text " + plain(text)
		}
		out[name] += x.p
	}
	return out
}

// judgeDraws judges counts by the reference's distribution: a token that may not come, or a G-test,
//
//	G = 2 Σ O ln(O/E)
//
// over the tokens that are expected fivefold, all others together being one, which is χ² with a degree of freedom for
// each but one. The noise of the logits moves √G by √n · noise at most; that is allowed.
func (r *run) judgeDraws(q *report.ServedRequest, ref *Reference, s sampling, drawn map[string]int) {
	expected := r.expected(s, drawn)
	n := 0
	for name, o := range drawn {
		n += o
		if expected[name] == 0 && s.rest == 0 {
			q.Status, q.Text = report.StatusFail, fmt.Sprintf("%s: %d of %d draws are %s, which cannot come", s.name, o, q.Tokens, strings.TrimPrefix(name, "text "))
		}
	}
	if q.Status == report.StatusFail {
		return
	}
	var g, rest, seen float64
	bins := 1
	for name, p := range expected {
		e, o := p*float64(n), float64(drawn[name])
		if e < leastExpected {
			continue
		}
		bins++
		rest, seen = rest+e, seen+o
		if o > 0 {
			g += 2 * o * math.Log(o/e)
		}
	}
	if e, o := float64(n)-rest, float64(n)-seen; o > 0 {
		g += 2 * o * math.Log(o/max(e, smallestRest))
	}
	if bins < 3 {
		q.Status, q.Text = report.StatusIgnored, fmt.Sprintf("%d draws are too few for its distribution", n)
		r.note("not judged: %s: %s", q.Way, q.Text)
		return
	}
	chi := distuv.ChiSquared{K: float64(bins - 1)}
	allowed := math.Sqrt(float64(n)) * ref.Rows[0].shift
	tail := chi.Survival(sq(max(math.Sqrt(max(g, 0))-allowed, 0)))
	q.Right = n
	q.Judged = append(q.Judged, fmt.Sprintf("distribution of %d draws, by which %.2g nats would show", n, shows(chi, n)))
	switch text := fmt.Sprintf("%s: the %d draws are not of the reference's distribution: G = %.3g with %d degrees of freedom, which happens once in %.2g times",
		s.name, n, g, bins-1, 1/max(tail, 1e-300)); {
	case tail < surelyOther:
		q.Status, q.Right, q.Text = report.StatusFail, 0, text
	case tail < perhapsOther:
		r.note("suspect: %s; draw more to tell", text)
	}
}

// shows is the Kullback-Leibler divergence, in nats, of a distribution that n draws tell from the reference's in 8 of
// 10 cases: G is then normal, nearly, around df + 2n·KL with variance 2·(df + 4n·KL).
func shows(chi distuv.ChiSquared, n int) float64 {
	critical, z := chi.Quantile(1-surelyOther), 0.8416
	lambda := 0.0
	for chi.K+lambda-z*math.Sqrt(2*(chi.K+2*lambda)) < critical {
		lambda += 0.1
	}
	return lambda / (2 * float64(n))
}

func sq(x float64) float64 { return x * x }
