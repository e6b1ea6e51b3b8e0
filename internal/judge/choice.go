package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/tie"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// choice is where the reference chooses by scores: a router, an argmax, a top-k.
type choice struct {
	flow      *trace.Pass
	at        int          // event of the scores, or else of what was chosen
	container string       // the layer around what chose
	scores    *Port        // nil where they were not recorded
	index     *Port        // what was chosen; nil where that was not recorded as [rows, k]
	dtype     tensor.DType // in which the runs were asked to compute
	unseen    tie.Ties     // tokens that may have chosen otherwise, where nothing of the choice was recorded
	unknown   bool         // the golden's choice is not that of the largest scores: a bias or groups decided, too
}

// another are the tokens that took another way: their choice was a tie.
type another struct {
	*choice
	tie.Ties
	each   int  // tokens of a sequence
	rounds bool // what the layer was given was rounded: the choice is its own
}

// settleTies leaves out what cannot be judged because a choice before it was a tie that the candidate
// decided in another way: those rows, and later ones of their sequence, in what follows. Only ports
// that do not agree lose rows; what is left of them is judged like any other.
func (c *Comparison) settleTies() error {
	before, beforeEncoded, beforeRounded := map[string]*earlier{}, map[string]*earlier{}, map[string]*earlier{} // by case
	for _, k := range c.Cases {
		before[k.Name], beforeEncoded[k.Name], beforeRounded[k.Name] = &earlier{}, &earlier{}, &earlier{}
	}
	for _, flow := range c.flow().Passes {
		var here, encoded ways
		took, tookEncoded, tookRounded, rows := before[flow.Case], beforeEncoded[flow.Case], beforeRounded[flow.Case], c.fed(flow)
		if rows != nil {
			pass := c.caseOf(flow.Case).Along.Pass(flow.Step)
			took.begin(pass)
			tookEncoded.begin(pass)
			tookRounded.begin(pass)
		}
		for _, k := range c.choices(flow) {
			r, a := k.ties(encodedOf, encoded, tookEncoded, rows), k.ties(actualOf, here, took, rows)
			if r.Any() || a.Any() {
				r.each = c.sequence(flow, max(r.Of, a.Of))
				a.each = r.each
			}
			encoded.add(r)
			switch {
			case k.scores != nil && k.scores.Encoded != nil && float64(len(a.Rows)) > tie.Most(len(r.Rows)):
				c.Note(fmt.Sprintf("%d of %d tokens took another way at %s, in case %s, step %s, where the reference in %s has %d: too many to be ties",
					len(a.Rows), a.Of, k.scores.Layer, flow.Case, flow.Step, k.dtype, len(r.Rows)))
			default:
				if here.add(a); len(a.Rows) > 0 {
					c.Note(a.text())
				}
			}
		}
		rounded := c.rounded(flow, tookRounded)
		for _, a := range rounded {
			c.Note(a.roundedText())
		}
		for at := range flow.Events {
			p := c.Ports[flow.Events[at].Index]
			if !p.differs() {
				continue
			}
			if err := c.leaveOutRounded(flow, p, either(rounded.lost(flow, at, p, rows), tookRounded.lost(flow, at, p, rows))); err != nil {
				return err
			}
			if p.Agrees {
				continue
			}
			if err := p.withoutRows(either(encoded.lost(flow, at, p, rows), tookEncoded.lost(flow, at, p, rows))); err != nil {
				return err
			}
			if err := p.leaveOut(either(here.lost(flow, at, p, rows), took.lost(flow, at, p, rows)), "took another way behind a tie"); err != nil {
				return err
			}
		}
		took.add(here, rows)
		tookEncoded.add(encoded, rows)
		tookRounded.add(rounded, rows)
	}
	return nil
}

// fed returns which token each row of a forward pass is; nil where the runs are of one pass.
func (c *Comparison) fed(flow *trace.Pass) []path.Row {
	if k := c.caseOf(flow.Case); k.Along != nil {
		return k.Along.Pass(flow.Step).Rows
	}
	return nil
}

// ways are the rows of one run of a forward pass that took another way than the golden's.
type ways []another

func (w *ways) add(a another) {
	if a.Any() {
		*w = append(*w, a)
	}
}

func (w ways) any() bool {
	return slices.ContainsFunc(w, func(a another) bool { return len(a.Rows) > 0 })
}

// actualOf and encodedOf return the tensor of one of the runs that may choose otherwise; nil where
// it has none that fits.
func actualOf(p *Port) *tensor.Tensor {
	if !p.comparable() || p.misfit() || p.Actual.Len() != p.Golden.Len() {
		return nil
	}
	return p.Actual
}

func encodedOf(p *Port) *tensor.Tensor {
	if p.Encoded == nil || p.Encoded.Len() != p.Golden.Len() {
		return nil
	}
	return p.Encoded
}

func (a *another) text() string {
	n := len(a.Rows)
	why := fmt.Sprintf("the scores that decided are at most %.2g apart, which is a tie within the noise", a.Gap)
	if a.unknown {
		why = "all that was recorded of what decides there agrees, so this may be a tie"
	}
	return fmt.Sprintf("%d of %d tokens took another way at %s, in case %s, step %s: %s, so these rows and what attends to them are not judged behind it",
		n, a.Of, a.layer(), a.flow.Case, a.flow.Step, why)
}

// surroundings say, in one forward pass, what lies around a choice. A pass is gone through once,
// however many layers choose.
type surroundings struct {
	beside  map[string][]int // outputs of floats as events, by the container of their layer
	experts map[string]bool  // containers with a layer of experts inside
}

func (c *Comparison) surroundings(flow *trace.Pass) surroundings {
	s := surroundings{beside: map[string][]int{}, experts: map[string]bool{}}
	for at := range flow.Events {
		e := &flow.Events[at]
		if !e.Input && c.Ports[e.Index].Golden.DType().IsFloat() {
			container := flow.Container(e.Layer)
			s.beside[container] = append(s.beside[container], at)
		}
		if strings.Contains(e.Layer, "expert") {
			for _, around := range flow.Around(e.Layer) {
				s.experts[around] = true
			}
		}
	}
	return s
}

func (s *surroundings) hasExperts(container string) bool {
	return strings.Contains(container, "moe") || s.experts[container]
}

// choices lists those of a forward pass in their order.
func (c *Comparison) choices(flow *trace.Pass) (out []*choice) {
	known := map[string]bool{} // containers whose choice was recorded
	indices := map[string]*Port{}
	dtype := c.encodings[flow.Case].dtype
	around := c.surroundings(flow)
	for at := range flow.Events {
		e := &flow.Events[at]
		index := c.Ports[e.Index]
		container := flow.Container(e.Layer)
		if index.Golden.DType().IsFloat() || index.Golden.Len() == 0 || index.Golden.RowLen() == 0 || known[container] ||
			e.Input && !strings.Contains(e.Layer, "expert") {
			continue
		}
		if scores := c.decided(flow, at, around.beside[container]); scores >= 0 {
			known[container] = true
			out = append(out, &choice{flow: flow, dtype: dtype, at: scores, container: container, scores: c.Ports[flow.Events[scores].Index], index: index})
		} else if indices[container] == nil && rounds(dtype) && around.hasExperts(container) { // in 16 bits ties are common
			indices[container] = index
		}
	}
	for at := range flow.Events {
		e := &flow.Events[at]
		p := c.Ports[e.Index]
		if container := router(e.Layer); container != "" && !e.Input && p.comparable() && p.Golden.DType().IsFloat() && isScores(p.Golden) {
			if container = flow.Listed(container); !known[container] && around.hasExperts(container) {
				known[container] = true
				k := &choice{flow: flow, dtype: dtype, at: at, container: container, scores: p}
				if index := indices[container]; index != nil && index.Golden.Len()/index.Golden.RowLen() == p.Golden.Len()/p.Golden.RowLen() {
					k.index, k.unknown = index, true
				}
				out = append(out, k)
			}
		}
	}
	for at := range flow.Events {
		container := flow.Container(flow.Events[at].Layer)
		if index := indices[container]; index != nil && !known[container] && index.Golden.Len() < index.Golden.RowLen()*mostExperts {
			known[container] = true
			k := &choice{flow: flow, dtype: dtype, at: at, container: container, index: index, unknown: true}
			k.unseen = c.unlike(k)
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *choice) int { return a.at - b.at })
	return out
}

// unlike returns the few tokens of which the layer around a choice makes something else altogether.
func (c *Comparison) unlike(k *choice) (t tie.Ties) {
	t.Of = k.index.Golden.Len() / k.index.Golden.RowLen()
	for _, p := range c.Layers.run(k.container, k.flow.Case, k.flow.Step).Judged {
		if !p.comparable() || p.Base.Result.Rows != t.Of {
			continue
		}
		size, off, err := norms(p)
		if err != nil {
			return t
		}
		for row := range size {
			if off[row] > otherWay*size[row] {
				t.Rows = append(t.Rows, row)
			}
		}
		break
	}
	t.Few()
	return t
}

// layer is the one whose scores decided, or that was given what was chosen.
func (k *choice) layer() string {
	if k.scores == nil {
		return k.index.Layer
	}
	return k.scores.Layer
}

func isScores(t *tensor.Tensor) bool {
	return len(t.Shape()) >= 2 && t.RowLen() >= 2 && t.RowLen() <= mostExperts
}

// router returns the layer around one that is a router by its name; "" if it is none.
func router(layer string) string {
	name := label.Name(layer)
	for l := name; l != ""; l = label.Parent(l) {
		last := l[strings.LastIndexByte(l, '.')+1:]
		if strings.Contains(last, "router") || l == name && (last == "gate" || last == "wg") {
			return label.Parent(l)
		}
	}
	return ""
}

// decided returns the event of the scores whose largest k are what the golden chose, in every row;
// −1 if none was recorded in that layer, or beside it and before.
func (c *Comparison) decided(flow *trace.Pass, at int, beside []int) int {
	layer, index := flow.Events[at].Layer, c.Ports[flow.Events[at].Index].Golden
	k := index.RowLen()
	rows := index.Len() / k
	best := -1
	for _, i := range beside {
		e := &flow.Events[i]
		s := c.Ports[e.Index].Golden
		if e.Layer != layer && i > at || s.RowLen() <= k || s.RowLen() > mostExperts || s.Len()/s.RowLen() != rows {
			continue
		}
		sure := index.Len() >= leastChosen || router(e.Layer) != ""
		if sure && (best < 0 || e.Layer == layer) && tie.Decides(s, index) {
			best = i
		}
	}
	return best
}

// ties compares the choice of one of the runs. Tokens that were on another way before are none.
func (k *choice) ties(of func(*Port) *tensor.Tensor, before ways, passes *earlier, rows []path.Row) another {
	out := another{choice: k}
	what := tie.Choice{DType: k.dtype, Unknown: k.unknown}
	var scores, chosen *tensor.Tensor
	if k.scores != nil {
		what.Scores, scores = k.scores.Golden, of(k.scores)
	}
	if k.index != nil {
		what.Index, chosen = k.index.Golden, of(k.index)
	}
	if passes.any && rows == nil || k.scores != nil && scores == nil && k.scores.Actual != nil { // these do not fit the golden's
		return out
	}
	if k.scores == nil && chosen == nil {
		if k.index.Actual == nil && k.index.Encoded == nil {
			out.Ties = k.unseen
		}
		return out
	}
	skip := map[int]bool{}
	for _, a := range before {
		for _, r := range a.Rows {
			skip[r] = true
		}
	}
	for i, row := range rows {
		skip[i] = skip[i] || passes.behind(k.flow, k.at, row)
	}
	out.Ties = what.Of(scores, chosen, skip)
	return out
}

// sequence returns how many of the tokens of a pass are in one sequence: what ran on
// [batch, tokens, …] tells.
func (c *Comparison) sequence(flow *trace.Pass, tokens int) int {
	for _, e := range flow.Events {
		if s := c.Ports[e.Index].Golden.Shape(); len(s) == 3 && s[0]*s[1] == tokens {
			return s[1]
		}
	}
	return tokens
}

// lost marks the rows of a port that follow from another way: of what ran in the container of the
// choice those tokens, behind it the later tokens of their sequences, too. Where rows are no tokens, all of them are.
func (w ways) lost(flow *trace.Pass, at int, p *Port, rows []path.Row) []bool {
	if len(w) == 0 {
		return nil
	}
	out := make([]bool, p.Golden.Len()/max(p.Golden.RowLen(), 1))
	for _, a := range w {
		e := &flow.Events[at]
		inside := e.Layer != a.container && flow.Inside(e.Layer, a.container) || a.rounds && e.Layer == a.container && !e.Input
		if e.At < flow.Events[a.at].At || inside && e.Input && at < a.at {
			continue
		}
		position := tie.Positions(p.Golden.Shape(), a.Of, a.each)
		if inside && position != nil && !p.misfit() {
			for _, r := range a.Swapped {
				out[r%len(out)] = out[r%len(out)] || len(out) == a.Of && (a.scores == nil || p.Golden.RowLen() < a.scores.Golden.RowLen())
			}
		}
		for row := range out {
			batch, token := 0, 0
			if position != nil {
				batch, token = position(row)
			}
			for _, r := range a.Rows {
				switch {
				case position == nil || p.misfit():
					out[row] = true
				case inside:
					out[row] = out[row] || batch*a.each+token == r
				case len(rows) == a.Of && a.each == a.Of:
					out[row] = out[row] || rows[token].Sequence == rows[r].Sequence && rows[token].Position >= rows[r].Position
				default:
					out[row] = out[row] || batch == r/a.each && token >= r%a.each
				}
			}
		}
	}
	return out
}

// leaveOut judges a port without some of its rows. Without any row left it is not judged. why says
// what became of them.
func (p *Port) leaveOut(lost []bool, why string) error {
	n := 0
	keep := make([]bool, len(lost))
	for i, l := range lost {
		if keep[i] = !l; l {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	p.lost = lost
	if n == len(lost) || p.misfit() || p.printed != nil {
		p.Problem, p.Agrees, p.Elsewhere = "", true, "all rows "+why
		return nil
	}
	for _, t := range []**tensor.Tensor{&p.Golden, &p.Actual, &p.Golden64, &p.Encoded} {
		if *t == nil {
			continue
		}
		var err error
		if *t, err = (*t).SelectRows(keep); err != nil {
			return err
		}
	}
	p.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d rows %s, and are left out", p.Note, n, len(lost), why), "; ")
	p.asRow()
	p.judgeBase()
	return nil
}

// withoutRows judges a port again by what the encoding costs the reference in the rows in which that
// run took no other way; where it took one in all of them, by the defaults.
func (p *Port) withoutRows(lost []bool) error {
	if !p.measured || !slices.Contains(lost, true) {
		return nil
	}
	v := make([]float64, p.Encoded.Len())
	p.Encoded.Float64s(v, 0)
	for i := range v {
		if lost[i/p.Encoded.RowLen()] {
			v[i] = math.NaN()
		}
	}
	var err error
	if p.Encoded, err = tensor.Of(v, p.Encoded.Shape()...); err != nil {
		return err
	}
	if !slices.Contains(lost, false) {
		p.measured, p.Criteria, p.Source = false, compare.Default(p.DType), "default for "+p.DType.String()
	}
	p.asRow()
	p.judgeBase()
	return nil
}
