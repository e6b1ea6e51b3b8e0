package judge

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// unfolding lays sequences of a run along an execution path out as in one pass: each row comes from
// the forward pass that fed it. So the reference's operations are found where they are known, in one
// pass, and attention has the keys and values of all tokens, as the candidate recorded them.
type unfolding struct {
	c     *Comparison
	k     *Case
	ports map[trace.Key]*Port
}

func (c *Comparison) unfolding(k *Case) *unfolding {
	u := &unfolding{c, k, map[trace.Key]*Port{}}
	for _, p := range c.Ports {
		if p.Case == k.Name {
			u.ports[p.Key] = p
		}
	}
	return u
}

// unfolded is the scene of the verdict, laid out as in one pass, of a run along a path or in steps, each of
// which feeds the next tokens; nil for other runs, and where that is not known.
func (c *Comparison) unfolded(v *localise.Verdict, target *Port, run *diagnose.Run) *diagnose.Scene {
	k := c.caseOf(v.Case)
	switch {
	case target == nil || k == nil:
		return nil
	case k.Along != nil:
		return c.unfolding(k).scene(v, target, run)
	case v.Kind != localise.KindBetween && v.Kind != localise.KindLocal || v.Step == k.Golden.Steps()[0]:
		return nil
	}
	along, err := c.asPath(k)
	if err != nil { // the steps do not tell their tokens
		return nil
	}
	port := along.byKey()[target.Key]
	if port == nil { // its rows are not those of the path
		return nil
	}
	s := along.unfolding(&along.Cases[0]).scene(v, port, run)
	if s != nil {
		s.Fed.Steps, s.Fed.Others = true, nil
	}
	return s
}

// asPath joins the steps of a case as those of an execution path.
func (c *Comparison) asPath(k *Case) (*Comparison, error) {
	golden, err := path.New(c.told(k.Golden, k.Name), nil)
	if err != nil {
		return nil, err
	}
	actual, err := path.New(c.told(k.Actual, k.Name), golden)
	if err != nil {
		return nil, err
	}
	one, _, err := Goldens{Standard: []*path.Sheet{golden}}.Case(c.ctx, k.Name, actual, nil)
	if err != nil {
		return nil, err
	}
	cases := []Case{one}
	opt := Options{Match: c.match}
	opt.Match.Cut = true
	joined, err := joinAll(cases, opt.Match)
	if err != nil {
		return nil, err
	}
	along := &Comparison{Cases: cases, joins: *joined, ctx: c.ctx, encodings: c.encodings}
	return along, along.measure(opt)
}

// told is a run that says the tokens of its prompt, as its embedding was given them.
func (c *Comparison) told(r *dump.Run, caseName string) *dump.Run {
	info := r.Info
	if len(info.TokenIDs) == 0 {
		info.TokenIDs, _ = json.Marshal(c.tokenIDs(caseName)) // of numbers
	}
	info.Case = caseName
	return dump.New(r.Path, info, r.OrderBy, r.Entries)
}

// scene is the verdict's place in its sequence, unfolded; nil where that is not known, or where the
// forward pass stands alone: then it is one pass itself.
func (u *unfolding) scene(v *localise.Verdict, target *Port, run *diagnose.Run) *diagnose.Scene {
	a := u.k.Along
	row := a.row(target, v.Step)
	pass := a.Passes[row.Pass]
	history := a.History(row.Sequence, row.Pass)
	if target == nil || history == nil {
		return nil
	}
	last := history[len(history)-1]
	out := &diagnose.Run{Weights: run.Weights, Config: run.Config}
	tokens := a.Tokens[row.Sequence][:last.To]
	out.TokenIDs = func(string) [][]int { return [][]int{tokens} }
	var found *diagnose.Port
	for _, p := range u.c.Ports {
		if p.Case != v.Case || p.Step != v.Step {
			continue
		}
		golden, actual := u.gather(p, history)
		if golden == nil {
			if p == target {
				return nil
			}
			continue
		}
		d := &diagnose.Port{Case: p.Case, Step: p.Step, Layer: p.Layer, Port: p.Port, Seq: p.Seq, Golden: golden, Actual: actual, Floor: p.Floor}
		if actual != nil && slices.Equal(golden.Shape(), actual.Shape()) {
			r, err := compare.Tensors(golden, actual, compare.Tolerance{EqualNaN: true})
			d.Agrees = err == nil && r.Agrees(p.Floor)
		}
		if p == target {
			found = d
			d.Agrees = false
			d.PadRows = earlierRows(golden.Shape(), d.Rows(), last)
		}
		out.Ports = append(out.Ports, d)
	}
	if found == nil || found.Actual == nil {
		return nil
	}
	s := &diagnose.Scene{Run: out, Kind: v.Kind, Case: v.Case, Step: v.Step, Layer: v.Layer, After: v.After, Before: v.Before, Target: found,
		Fed: &diagnose.Fed{From: last.From}}
	u.others(s.Fed, row.Sequence, row.Pass, pass)
	return s
}

// earlierRows marks the rows of an unfolded tensor that are in front of a segment; nil where a row
// is no token, as of ids.
func earlierRows(shape []int, rows int, last path.Segment) []bool {
	each := rows / last.To
	if each == 0 {
		return nil
	}
	out := make([]bool, rows)
	for i := range out {
		token := i / each
		if len(shape) == 4 && shape[2] == last.To && shape[1] != last.To {
			token = i % last.To // [1, heads, tokens, width]
		}
		out[i] = token < last.From
	}
	return out
}

// gather joins the rows of a port; golden is nil where the port has no row for each token, and actual
// where the candidate did not record all of them.
func (u *unfolding) gather(p *Port, history []path.Segment) (golden, actual *tensor.Tensor) {
	var goldens, actuals []*tensor.Tensor
	axis, whole := -1, true
	for _, seg := range history {
		key := p.Key
		key.Step = seg.Pass.Step
		q := u.ports[key]
		if q == nil || q.Golden == nil {
			return nil, nil
		}
		if axis = u.axis(q, seg.Pass); axis < 0 {
			return nil, nil
		}
		g, err := q.Golden.Slice(axis, seg.At, seg.At+seg.To-seg.From)
		if err != nil {
			return nil, nil
		}
		goldens = append(goldens, g)
		if !q.Joined() || len(q.lost) > 0 || !slices.Equal(q.Golden.Shape(), q.Actual.Shape()) {
			whole = false
		}
		if whole {
			a, err := q.Actual.Slice(axis, seg.At, seg.At+seg.To-seg.From)
			if err != nil {
				return nil, nil
			}
			actuals = append(actuals, a)
		}
	}
	join := func(parts []*tensor.Tensor) *tensor.Tensor {
		if len(parts) == 1 {
			return parts[0].Copy()
		}
		t, err := tensor.Concat(axis, parts...)
		if err != nil {
			return nil
		}
		return t
	}
	golden = join(goldens)
	if whole {
		actual = join(actuals)
	}
	return golden, actual
}

// axis is the axis of a port's tensors that counts the rows of a forward pass; −1 for none.
func (u *unfolding) axis(p *Port, pass *path.Pass) int {
	shape, n := p.Golden.Shape(), len(pass.Rows)
	if a := u.k.Along.golden.Axis(p.Layer, p.Port); a >= 0 && a < len(shape) && shape[a] == n {
		return a
	}
	return -1
}

// others are the rows that those of a sequence may be taken for.
func (u *unfolding) others(fed *diagnose.Fed, sequence, pass int, in *path.Pass) {
	a := u.k.Along
	add := func(text string, kind diagnose.OtherKind, history []path.Segment, same bool, cached int) {
		tensorOf := func(golden bool) func(layer, port string) *tensor.Tensor {
			return func(layer, port string) *tensor.Tensor {
				p := u.ports[trace.Key{Case: u.k.Name, Step: in.Step, Layer: layer, Port: port}]
				if p == nil {
					return nil
				}
				g, c := u.gather(p, history)
				if golden {
					return g
				}
				return c
			}
		}
		fed.Others = append(fed.Others, diagnose.Other{Text: text, Kind: kind, Same: same, Cached: cached, Tensor: tensorOf(false), Golden: tensorOf(true)})
	}
	seen := map[int]bool{sequence: true}
	ended := false // this sequence's own run: what is further back is of the run before
	for k := pass; k >= 0; k-- {
		p := a.Passes[k]
		if i := p.Index(sequence); i >= 0 {
			if ended {
				add("the run before of the same tokens", diagnose.Before, a.History(sequence, k), true, p.Items[i].To)
				break
			}
			ended = p.Items[i].From == 0
		}
	}
	for k := pass; k >= 0; k-- {
		for _, item := range a.Passes[k].Items {
			s := item.Sequence
			if seen[s] {
				continue
			}
			seen[s] = true
			kind := diagnose.Before
			if k == pass || u.goesOn(s, pass) {
				kind = diagnose.Beside
			}
			if h := a.History(s, k); h != nil {
				same := slices.Equal(a.Tokens[s], a.Tokens[sequence])
				cached := item.To
				if k == pass {
					cached = item.From
				}
				add(fmt.Sprintf("sequence %d", s), kind, h, same, cached)
			}
		}
	}
	u.padding(fed, in, sequence)
}

// goesOn reports whether a later forward pass feeds a sequence again without an empty cache.
func (u *unfolding) goesOn(sequence, pass int) bool {
	for _, p := range u.k.Along.Passes[pass:] {
		if i := p.Index(sequence); i >= 0 {
			return p.Items[i].From > 0
		}
	}
	return false
}

// padding adds the rows of padding that stand beside the tokens of a forward pass.
func (u *unfolding) padding(fed *diagnose.Fed, pass *path.Pass, sequence int) {
	a, item := u.k.Along, pass.Index(sequence)
	rows := func(layer, port string) (*tensor.Tensor, bool) {
		p := u.ports[trace.Key{Case: u.k.Name, Step: pass.Step, Layer: layer, Port: port}]
		if p == nil || p.ActualSide == nil {
			return nil, false
		}
		name, own := label.Split(p.ActualSide.Name)
		return a.Padding(pass, item, name, own)
	}
	for _, p := range u.c.Ports {
		if p.Case != u.k.Name || p.Step != pass.Step {
			continue
		}
		if t, left := rows(p.Layer, p.Port); t != nil {
			kind := diagnose.Right
			if left {
				kind = diagnose.Left
			}
			axis := u.axis(p, pass)
			if axis >= 0 && axis < len(t.Shape()) {
				fed.Padding = t.Shape()[axis]
			}
			fed.Others = append(fed.Others, diagnose.Other{Text: "padding", Kind: kind,
				Golden: func(string, string) *tensor.Tensor { return nil },
				Tensor: func(layer, port string) *tensor.Tensor { t, _ := rows(layer, port); return t }})
			return
		}
	}
}
