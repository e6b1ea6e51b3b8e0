package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// joins is what the two sides of all cases have in common, before anything is compared.
type joins struct {
	Ports     []*Port // of all cases and steps in the golden's execution order, also those that only the golden has
	Unmatched report.Unmatched
	Order     *report.Order
	Notes     []string

	byKey   map[localise.Key]*Port
	missing map[string]string      // golden layer that was not joined → why
	gaps    map[string][]match.Gap // by case
	flow    *localise.Flow         // the golden's, entry i being that of Ports[i]; bytes are read where something fails
}

func joinAll(cases []Case, opt match.Options) (*joins, error) {
	js := &joins{byKey: map[localise.Key]*Port{}, missing: map[string]string{}, gaps: map[string][]match.Gap{}}
	for i := range cases {
		if err := js.add(&cases[i], opt); err != nil {
			return nil, err
		}
	}
	entries := make([]localise.Entry, len(js.Ports))
	for i, p := range js.Ports {
		p.at, js.byKey[p.Key], entries[i] = i, p, localise.Entry{Key: p.Key, Seq: p.Seq}
	}
	js.flow = localise.NewFlow(entries)
	for i := range cases {
		if err := js.addReferences(&cases[i]); err != nil {
			return nil, err
		}
	}
	return js, nil
}

// add joins the two runs of one case and makes a Port of each port of the golden.
func (js *joins) add(k *Case, opt match.Options) error {
	res, err := k.Match(k.Actual, opt)
	if err != nil {
		return err
	}
	opt = k.matching(k.Actual, opt)
	k.callsByValue(res.Pairs)
	js.noteRuns(k, res, opt)
	var ports []*Port
	for _, pair := range res.Pairs {
		if pair.Computed {
			continue // what an injected run had computed for an input: read with the injected run
		}
		p, err := newPort(k, pair)
		if err != nil {
			return fmt.Errorf("case %s: %w", k.Name, err)
		}
		ports = append(ports, p)
	}
	ports = append(ports, js.leftOver(k, res)...)
	if opt.GoldenByName && !opt.ActualByName {
		borrowOrder(ports, res, k)
	}
	slices.SortStableFunc(ports, func(a, b *Port) int { return a.Seq - b.Seq })
	overPasses(ports)
	js.Ports = append(js.Ports, ports...)
	switch {
	case opt.GoldenByName:
		js.noteUnordered(k.Golden)
	case opt.ActualByName:
		js.noteUnordered(k.Actual)
	case js.Order == nil || js.Order.Same:
		n := len(res.Moved)
		js.Order = &report.Order{Same: n == 0, N: n, Differences: res.Moved[:min(n, maxOrder)]}
	}
	return nil
}

// overPasses tells the ports of a case what they are in all forward passes, and the norm of the golden's rows there.
func overPasses(ports []*Port) {
	passes := map[localise.Key][]*Port{}
	for _, p := range ports {
		passes[p.place()] = append(passes[p.place()], p)
	}
	for _, all := range passes {
		var goldens []*tensor.Tensor
		for _, p := range all {
			p.passes = all
			if p.Joined() && p.Golden.DType().IsFloat() {
				goldens = append(goldens, p.Golden)
			}
		}
		if len(goldens) < 2 {
			continue
		}
		norm := sync.OnceValue(func() float64 { return rowNorm(goldens) })
		for _, p := range all {
			p.rowNorm = norm
		}
	}
}

// rowNorm is the RMS norm of the rows of tensors, as far as they are finite.
func rowNorm(tensors []*tensor.Tensor) float64 {
	squares, rows := 0.0, 0
	for _, t := range tensors {
		x := make([]float64, t.RowLen())
		for i := 0; i < t.Len(); i += len(x) {
			t.Float64s(x, i)
			if n := floats.Norm(x, 2); vec.IsFinite(n) {
				squares, rows = squares+n*n, rows+1
			}
		}
	}
	return math.Sqrt(squares / float64(max(rows, 1)))
}

func (js *joins) noteRuns(k *Case, res *match.Result, opt match.Options) {
	for _, n := range slices.Concat(k.Golden.Notes, k.Actual.Notes, res.Notes, res.Unused) {
		js.Note(n)
	}
	if opt.PadMask != nil {
		js.Note("padding rows are left out, by the mask that was given or else the reference's own")
	}
	for who, r := range k.sides() {
		if v := r.Info.EditedTransformers(); v != "" {
			js.Note(fmt.Sprintf("the run of the %s used transformers %s: see parity transformers status", who, v))
		}
	}
}

func (js *joins) noteUnordered(r *dump.Run) {
	js.Note("the order of execution was not compared: " + r.Path + " was read in the natural order of its names")
}

// Note adds a note for people; the same note only once.
func (js *joins) Note(n string) {
	if !slices.Contains(js.Notes, n) {
		js.Notes = append(js.Notes, n)
	}
}

// noteFew adds a note about some names, if there are any.
func (js *joins) noteFew(text string, names []string) {
	if len(names) > 0 {
		js.Note(text + ": " + label.Few(names))
	}
}

// leftOver lists what only one side has, and returns the golden's ports of it: a verdict may still
// name their place.
func (js *joins) leftOver(k *Case, res *match.Result) (ports []*Port) {
	add := func(golden bool, u match.Unmatched, ignored bool) {
		run, side := k.Actual, &js.Unmatched.Actual
		if golden {
			run, side = k.Golden, &js.Unmatched.Golden
		}
		e := run.Entries[u.Index]
		*side = append(*side, report.Lone{Name: e.Layer + " " + e.Port, Case: k.Name, Step: e.Step,
			Shape: e.Tensor.Shape(), Reason: u.Reason, Nearest: u.Nearest, Ignored: ignored})
		if !golden {
			return
		}
		p := &Port{Key: k.key(e.Step, e.Layer, e.Port), Seq: e.Seq, of: k, Golden: e.Tensor, entry: e.Tensor, GoldenSide: sideOf(run, u.Index)}
		if u.Usual || ignored {
			p.ExpectedMissing = u.Reason
		}
		ports = append(ports, p)
		if js.missing[e.Layer] == "" {
			js.missing[e.Layer] = missingText(e, u, ignored)
		}
	}
	for _, u := range res.UnmatchedGolden {
		add(true, u, false)
	}
	for _, u := range res.UnmatchedActual {
		add(false, u, false)
	}
	for _, i := range res.Ignored {
		add(i.Golden, match.Unmatched{Index: i.Index, Reason: i.Reason}, true)
	}
	for _, g := range res.Gaps {
		js.Note(g.String())
		js.gaps[k.Name] = append(js.gaps[k.Name], g)
	}
	return ports
}

// borrowOrder takes the order of execution from the candidate where the golden has none: a joined
// port takes the candidate's place, and one that only the golden has stays after the port that its
// name puts before it.
func borrowOrder(ports []*Port, res *match.Result, k *Case) {
	at := map[int]int{}
	for _, pair := range res.Pairs {
		if !pair.Computed {
			at[pair.Golden[0]] = k.Actual.Entries[pair.Actual[0]].Seq
		}
	}
	slices.SortStableFunc(ports, func(a, b *Port) int { return a.Seq - b.Seq })
	last := map[string]int{}
	for _, p := range ports {
		if seq, ok := at[p.Seq]; ok {
			last[p.Step] = seq
		}
		p.Seq = last[p.Step]
	}
}

// newPort applies the views of a pair.
func newPort(k *Case, pair match.Pair) (*Port, error) {
	first := k.Golden.Entries[pair.Golden[0]]
	actual := k.Actual.Entries[pair.Actual[0]].Tensor
	p := &Port{Key: k.key(first.Step, first.Layer, first.Port), Seq: first.Seq, of: k,
		Note: pair.Note, Problem: pair.Problem, Mask: pair.Mask, Golden: first.Tensor, Actual: actual, entry: first.Tensor,
		GoldenSide: sideOf(k.Golden, pair.Golden...), ActualSide: sideOf(k.Actual, pair.Actual...)}
	if why := k.unjudged[p.Key]; why != "" {
		p.allowance = allowance{unjudged, why}
	}
	if len(pair.Actual) == 1 {
		p.recorded = actual
	}
	if pair.Problem != "" {
		return p, nil
	}
	p.sides = &sides{k.Golden, k.Actual, pair}
	var err error
	if p.Golden, p.Actual, err = p.sides.views(); err != nil {
		return nil, err
	}
	if p.printed = printedOf(k, pair); p.printed != nil {
		return p, p.printed.gather(p, pair)
	}
	return p, nil
}

// addReferences adds what other runs of the reference have for the golden's ports.
func (js *joins) addReferences(k *Case) error {
	for _, r := range k.runs() {
		for _, e := range r.Entries {
			p := js.byKey[k.key(e.Step, e.Layer, e.Port)]
			if r.keep == nil || p == nil || p.sides == nil || p.printed != nil || !slices.Equal(e.Tensor.Shape(), p.entry.Shape()) {
				continue
			}
			t, err := p.sides.GoldenView.Apply(e.Tensor)
			if err == nil {
				*r.keep(p), err = masked(t, p.sides.RowMask)
			}
			if err != nil {
				return fmt.Errorf("case %s: %w", k.Name, err)
			}
		}
	}
	return nil
}

func (k Case) key(step, layer, port string) localise.Key {
	return localise.Key{Case: k.Name, Step: step, Layer: layer, Port: port}
}

func sideOf(r *dump.Run, indices ...int) *report.Side {
	first := r.Entries[indices[0]].Tensor
	var names []string
	for _, i := range indices {
		names = append(names, r.Entries[i].Label())
	}
	return &report.Side{Name: strings.Join(names, " + "), DType: first.DType().String(), Shape: first.Shape()}
}

func missingText(e dump.Entry, u match.Unmatched, ignored bool) string {
	if ignored {
		return fmt.Sprintf("missing: the fixture ignores %s (%s)", e.Layer, u.Reason)
	}
	text := "missing: the candidate did not record " + e.Layer
	if u.Reason != "" {
		text += fmt.Sprintf(" (%s)", u.Reason)
	}
	if u.Nearest != "" {
		text += fmt.Sprintf("; the nearest name that it has is %s: if it is this layer, join them in fixture.yaml: "+
			"names: [{golden: %s, candidate: %s}]", u.Nearest, e.Layer, u.Nearest)
	}
	return text
}

// callsByValue joins the calls of a layer by what they make, where the candidate made them in another order: each has
// what another call of the golden has, and not what its own has. Models that call one module for each kind of layer
// may do so in the order of a set, as transformers' Gemma 3 its rotary embedding.
func (k Case) callsByValue(pairs []match.Pair) {
	groups := map[[3]string][]int{}
	for i, p := range pairs {
		if e := k.Golden.Entries[p.Golden[0]]; len(p.Actual) == 1 && p.Problem == "" && e.Tensor.DType().IsFloat() {
			key := [3]string{e.Step, label.Name(e.Layer), e.Port}
			groups[key] = append(groups[key], i)
		}
	}
	floor := compare.Floor(k.encoding().dtype)
	for _, calls := range groups {
		if len(calls) > 1 && len(calls) <= mostCalls {
			k.exchange(pairs, calls, floor)
		}
	}
}

// exchange joins calls by value, if all that are not alike, within a noise floor, are those of one another.
func (k Case) exchange(pairs []match.Pair, calls []int, floor compare.Limits) {
	alike := func(i, j int) bool {
		g, a := k.Golden.Entries[pairs[i].Golden[0]].Tensor, k.Actual.Entries[pairs[j].Actual[0]].Tensor
		if !slices.Equal(g.Shape(), a.Shape()) || !a.DType().IsFloat() {
			return false
		}
		r, err := compare.Tensors(g, a, compare.Tolerance{EqualNaN: true})
		return err == nil && r.Agrees(floor)
	}
	off := slices.DeleteFunc(slices.Clone(calls), func(i int) bool { return alike(i, i) })
	to := make([][]int, len(off))
	var taken []int
	for n, i := range off {
		fits := slices.DeleteFunc(slices.Clone(off), func(j int) bool { return !alike(i, j) })
		if len(fits) != 1 || slices.Contains(taken, fits[0]) {
			return
		}
		taken, to[n] = append(taken, fits[0]), pairs[fits[0]].Actual
	}
	for n, i := range off {
		pairs[i].Actual = to[n]
		pairs[i].Note = "the candidate calls the layer in another order: joined by value"
	}
}

// suggest puts lines for fixture.yaml beside the first port of the golden's layers that rules would join.
func (c *Comparison) suggest() {
	i := slices.IndexFunc(c.Cases, func(k Case) bool {
		var golden, actual bool
		for _, g := range c.gaps[k.Name] {
			golden, actual = golden || len(g.Golden) > 0, actual || len(g.Actual) > 0
		}
		return golden && actual
	})
	if i < 0 {
		return
	}
	var proposal *match.Proposal
	err := mapfile.Guard(func() (err error) { proposal, err = c.Cases[i].Propose(c.match); return err })
	if err != nil {
		return
	}
	layer := func(l report.Lone) string { return l.Name[:strings.LastIndexByte(l.Name, ' ')] }
	lones := c.Unmatched.Golden
	var left []string
	for _, l := range lones {
		left = append(left, layer(l))
	}
	of, lines := proposal.Hint(left)
	if i := slices.IndexFunc(lones, func(l report.Lone) bool { return layer(l) == of }); i >= 0 && lones[i].Hint == "" {
		lones[i].Hint = lines
	}
}
