package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// match joins the two runs of one case and makes a Port of each port of the golden.
func (c *Comparison) match(k Case, opt match.Options) error {
	golden, actual := portsOf(k.Golden), portsOf(k.Actual)
	opt = k.matching(k.Actual, opt)
	res, err := match.Runs(golden, actual, opt)
	if err != nil {
		return fmt.Errorf("case %s: %w", k.Name, err)
	}
	for _, n := range slices.Concat(k.Golden.Notes, k.Actual.Notes, res.Notes) {
		c.note(n)
	}
	if opt.PadMask != nil {
		c.note("rows of padding are left out, by the mask that was given or else the reference's own")
	}
	c.noteEdited("reference", k.Golden)
	c.noteEdited("candidate", k.Actual)
	ports := make([]*Port, 0, len(golden))
	for _, pair := range res.Pairs {
		if pair.Computed {
			continue // what an injected run had computed for an input: read with the injected run
		}
		p, err := join(k, pair)
		if err != nil {
			return fmt.Errorf("case %s: %w", k.Name, err)
		}
		ports = append(ports, p)
	}
	for _, u := range res.UnmatchedGolden {
		e := k.Golden.Entries[u.Index]
		ports = append(ports, onlyGolden(k.Name, e))
		c.Unmatched.Golden = append(c.Unmatched.Golden, lone(k, e, u))
		if c.missing[e.Layer] == "" {
			c.missing[e.Layer] = missingText(e, u)
		}
	}
	for _, u := range res.UnmatchedActual {
		c.Unmatched.Actual = append(c.Unmatched.Actual, lone(k, k.Actual.Entries[u.Index], u))
	}
	for _, i := range res.Ignored {
		side, e := &c.Unmatched.Actual, k.Actual.Entries
		if i.Golden {
			side, e = &c.Unmatched.Golden, k.Golden.Entries
			ports = append(ports, onlyGolden(k.Name, e[i.Index])) // a verdict may still name the place
			if layer := e[i.Index].Layer; c.missing[layer] == "" {
				c.missing[layer] = fmt.Sprintf("missing: the fixture ignores %s (%s)", layer, i.Reason)
			}
		}
		l := lone(k, e[i.Index], match.Unmatched{Reason: i.Reason})
		l.Ignored = true
		*side = append(*side, l)
	}
	for _, g := range res.Gaps {
		c.note(g.String())
		c.hint(g)
	}
	if opt.GoldenByName && !opt.ActualByName {
		borrowOrder(ports, res, k)
	}
	slices.SortStableFunc(ports, func(a, b *Port) int { return a.Seq - b.Seq })
	c.Ports = append(c.Ports, ports...)
	if opt.GoldenByName || opt.ActualByName {
		c.note("the order of execution was not compared: " + unordered(k, opt) + " was read in the natural order of its names")
	} else if same, n, first := match.Order(golden, actual, res); c.Order == nil || c.Order.Same {
		c.Order = &report.Order{Same: same, N: n, Differences: first}
	}
	return nil
}

// matching adds what the runs of a case themselves say to the options that hold for all.
func (k Case) matching(run *dump.Run, opt match.Options) match.Options {
	opt.GoldenByName, opt.ActualByName = k.Golden.OrderBy == dump.OrderNatural, run.OrderBy == dump.OrderNatural
	if mask := k.Golden.Info.PadMask; mask != nil {
		opt.PadMask = make([][]bool, len(mask))
		for i, sequence := range mask {
			for _, real := range sequence {
				opt.PadMask[i] = append(opt.PadMask[i], real != 0)
			}
		}
	}
	if opt.PadMask == nil {
		opt.PadMask = padding(k.Golden)
	}
	return opt
}

// borrowOrder takes the order of execution from the candidate where the golden has none: a joined port has the candidate's place, what only
// the golden has stays behind the port that its name puts before it.
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

// hint puts the lines to paste beside the first port of a gap.
func (c *Comparison) hint(g match.Gap) {
	for _, side := range []struct {
		layers []string
		lones  []report.Lone
	}{{g.Golden, c.Unmatched.Golden}, {g.Actual, c.Unmatched.Actual}} {
		if len(side.layers) == 0 {
			continue
		}
		for i := range side.lones {
			if l := &side.lones[i]; l.Hint == "" && strings.HasPrefix(l.Name, side.layers[0]+" ") {
				l.Hint = strings.TrimRight(g.YAML, "\n")
				return
			}
		}
	}
}

func (c *Comparison) note(n string) {
	if !slices.Contains(c.Notes, n) {
		c.Notes = append(c.Notes, n)
	}
}

func unordered(k Case, opt match.Options) string {
	if opt.GoldenByName {
		return k.Golden.Path
	}
	return k.Actual.Path
}

func onlyGolden(caseName string, e dump.Entry) *Port {
	return &Port{Case: caseName, Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq, Golden: e.Tensor, GoldenSide: sideOf(e)}
}

func portsOf(r *dump.Run) []match.Port {
	ports := make([]match.Port, len(r.Entries))
	for i, e := range r.Entries {
		ports[i] = match.Port{Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq, DType: e.Tensor.DType(), Shape: e.Tensor.Shape()}
	}
	return ports
}

// join applies the views of a pair.
func join(k Case, pair match.Pair) (*Port, error) {
	first := k.Golden.Entries[pair.Golden[0]]
	p := &Port{Case: k.Name, Step: first.Step, Layer: first.Layer, Port: first.Port, Seq: first.Seq,
		Note: pair.Note, Problem: pair.Problem, Mask: pair.Mask,
		GoldenSide: joinedSide(k.Golden, pair.Golden), ActualSide: joinedSide(k.Actual, pair.Actual)}
	var err error
	p.Golden = first.Tensor
	p.Actual = k.Actual.Entries[pair.Actual[0]].Tensor
	if pair.Problem != "" {
		return p, nil
	}
	p.frame = func() (frame, error) { return frameOf(k.Golden, k.Actual, pair) }
	if p.Golden, err = view(k.Golden, pair.Golden, pair.GoldenView, pair.RowMask); err != nil {
		return nil, err
	}
	if p.Actual, err = view(k.Actual, pair.Actual, pair.ActualView, pair.RowMask); err != nil {
		return nil, err
	}
	if p.printed = printedOf(k, pair); p.printed != nil {
		return p, p.printed.gather(p, pair)
	}
	if k.Golden64 != nil {
		if e, ok := k.Golden64.Find(first.Step, first.Layer, first.Port); ok && len(pair.Golden) == 1 && slices.Equal(e.Tensor.Shape(), first.Tensor.Shape()) {
			if p.Golden64, err = pair.GoldenView.Apply(e.Tensor); err != nil {
				return nil, err
			}
			if p.Golden64, err = masked(p.Golden64, pair.RowMask); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func view(r *dump.Run, indices []int, v match.View, mask []bool) (*tensor.Tensor, error) {
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

func lone(k Case, e dump.Entry, u match.Unmatched) report.Lone {
	return report.Lone{Name: e.Layer + " " + e.Port, Case: k.Name, Step: e.Step, Shape: e.Tensor.Shape(), Reason: u.Reason, Nearest: u.Nearest}
}

func missingText(e dump.Entry, u match.Unmatched) string {
	var b strings.Builder
	fmt.Fprintf(&b, "missing: the candidate did not record %s", e.Layer)
	if u.Reason != "" {
		fmt.Fprintf(&b, " (%s)", u.Reason)
	}
	if u.Nearest != "" {
		fmt.Fprintf(&b, "; the nearest name that it has is %s: if it is this layer, join them in fixture.yaml: names: [{golden: %s, candidate: %s}]", u.Nearest, e.Layer, u.Nearest)
	}
	return b.String()
}
