package judge

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// joins is what the two sides of all cases have in common, before anything is compared.
type joins struct {
	Ports     []*Port // of all cases and steps in the golden's execution order, also those that only the golden has
	Unmatched report.Unmatched
	Order     *report.Order
	Notes     []string

	missing map[string]string      // golden layer that was not joined → why
	gaps    map[string][]match.Gap // by case
}

func joinAll(cases []Case, opt match.Options) (*joins, error) {
	js := &joins{missing: map[string]string{}, gaps: map[string][]match.Gap{}}
	for _, k := range cases {
		if err := js.add(k, opt); err != nil {
			return nil, err
		}
	}
	return js, nil
}

// add joins the two runs of one case and makes a Port of each port of the golden.
func (js *joins) add(k Case, opt match.Options) error {
	opt = k.matching(k.Actual, opt)
	golden, actual := portsOf(k.Golden), portsOf(k.Actual)
	res, err := match.Runs(golden, actual, opt)
	if err != nil {
		return fmt.Errorf("case %s: %w", k.Name, err)
	}
	k.callsByValue(res.Pairs)
	js.noteRuns(k, res, opt)
	ports := make([]*Port, 0, len(golden))
	variants := k.variants()
	for _, pair := range res.Pairs {
		if pair.Computed {
			continue // what an injected run had computed for an input: read with the injected run
		}
		p, err := newPort(k, pair, variants)
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

// overPasses gives the ports of a case the norm of the golden's rows in all forward passes.
func overPasses(ports []*Port) {
	passes := map[localise.Key][]*Port{}
	for _, p := range ports {
		key := p.Key
		key.Step = ""
		passes[key] = append(passes[key], p)
	}
	for _, all := range passes {
		var goldens []*tensor.Tensor
		for _, p := range all {
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
			if n := floats.Norm(x, 2); !math.IsNaN(n) && !math.IsInf(n, 0) {
				squares, rows = squares+n*n, rows+1
			}
		}
	}
	return math.Sqrt(squares / float64(max(rows, 1)))
}

func (js *joins) noteRuns(k Case, res *match.Result, opt match.Options) {
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

// leftOver lists what only one side has, and returns the golden's ports of it: a verdict may still
// name their place.
func (js *joins) leftOver(k Case, res *match.Result) (ports []*Port) {
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
		p := &Port{Key: k.key(e), Seq: e.Seq, Golden: e.Tensor, entry: e.Tensor, GoldenSide: sideOf(e)}
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
func borrowOrder(ports []*Port, res *match.Result, k Case) {
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
func newPort(k Case, pair match.Pair, variants []variant) (*Port, error) {
	first := k.Golden.Entries[pair.Golden[0]]
	actual := k.Actual.Entries[pair.Actual[0]].Tensor
	p := &Port{Key: k.key(first), Seq: first.Seq,
		Note: pair.Note, Problem: pair.Problem, Mask: pair.Mask, Golden: first.Tensor, Actual: actual, entry: first.Tensor,
		GoldenSide: joinedSide(k.Golden, pair.Golden), ActualSide: joinedSide(k.Actual, pair.Actual)}
	if k.Encoded != nil {
		p.encodedBy = madeBy(k.Encoded)
	}
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
	if p.Golden, err = view(k.Golden, pair.Golden, pair.GoldenView, pair.RowMask); err != nil {
		return nil, err
	}
	if p.Actual, err = view(k.Actual, pair.Actual, pair.ActualView, pair.RowMask); err != nil {
		return nil, err
	}
	if p.printed = printedOf(k, pair); p.printed != nil {
		return p, p.printed.gather(p, pair)
	}
	for _, v := range variants {
		if t := v.tensors[p.Key]; t != nil && slices.Equal(t.Shape(), first.Tensor.Shape()) {
			if t, err = pair.GoldenView.Apply(t); err == nil {
				*v.keep(p), err = masked(t, pair.RowMask)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// variant is what another run of the reference has for the golden's ports.
type variant struct {
	tensors map[localise.Key]*tensor.Tensor
	keep    func(p *Port) **tensor.Tensor
}

func (k Case) variants() (list []variant) {
	for _, r := range k.runs() {
		if r.keep == nil {
			continue
		}
		v := variant{map[localise.Key]*tensor.Tensor{}, r.keep}
		for _, e := range r.Entries {
			v.tensors[k.key(e)] = e.Tensor
		}
		list = append(list, v)
	}
	return list
}

func (k Case) key(e dump.Entry) localise.Key {
	return localise.Key{Case: k.Name, Step: e.Step, Layer: e.Layer, Port: e.Port}
}

// keyOf is the key of a port of the case's program.
func (k Case) keyOf(at program.Port) localise.Key {
	return localise.Key{Case: k.Name, Step: at.Step, Layer: at.Layer, Port: at.Name}
}

func view(r *dump.Run, indices []int, v layout.View, mask []bool) (*tensor.Tensor, error) {
	parts := make([]*tensor.Tensor, len(indices))
	for i, at := range indices {
		parts[i] = r.Entries[at].Tensor
	}
	t, err := v.Apply(parts...)
	if err != nil {
		return nil, err
	}
	return masked(t, mask)
}

func masked(t *tensor.Tensor, mask []bool) (*tensor.Tensor, error) {
	if mask == nil {
		return t, nil
	}
	return t.SelectRows(mask)
}

func sideOf(e dump.Entry) *report.Side {
	return &report.Side{Name: e.Label(), DType: e.Tensor.DType().String(), Shape: e.Tensor.Shape()}
}

func joinedSide(r *dump.Run, indices []int) *report.Side {
	s := sideOf(r.Entries[indices[0]])
	for _, i := range indices[1:] {
		s.Name += " + " + r.Entries[i].Label()
	}
	return s
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
