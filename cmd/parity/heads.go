package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/attention"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/places"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/setting"
)

// heads shows the attentions of two dumps that are joined, or of one, as joined with itself.
func (f *showFlags) heads(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && f.Names != "" {
		return usage("show: --names joins two dumps, and there is one")
	}
	f.Golden, f.Actual, f.diagnose = args[0], args[len(args)-1], setting.DiagnoseOff
	in, err := f.open(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer in.close()
	shown := &headTable{layer: f.layer, two: len(args) == 2}
	err = in.compare(cmd.Context(), func(c *judge.Comparison) error {
		return shown.read(cmd.Context(), c, in.opt.Diagnosis.Evidence)
	})
	if err != nil {
		return err
	}
	if len(shown.rows) == 0 {
		return fmt.Errorf("no attention can be shown of %s: record its weights (torch: attn_implementation=eager), "+
			"or q, k, v, what the output projection is given, and the program beside them", strings.Join(args, " and "))
	}
	return shown.write(cmd)
}

// headTable has a line for each head, or with two dumps two.
type headTable struct {
	rows   [][]string
	layer  string // only labels that contain this text
	two    bool
	cases  bool // there are several: each line has its own
	remark strings.Builder
}

// read adds the attentions of a comparison.
func (t *headTable) read(ctx context.Context, c *judge.Comparison, evidence search.Evidence) error {
	run, err := c.Evidence()
	if err != nil {
		return err
	}
	t.cases = len(c.Cases) > 1
	programs := map[string]attention.Program{}
	for _, k := range c.Cases {
		if k.Program != nil {
			load, end := evidence.Outside(k.Program)
			defer end()
			programs[k.Golden.Info.Case] = attention.Program{Program: k.Program, Load: load}
		}
	}
	golden, candidate := attention.Beside(ctx, run, programs)
	for i, g := range golden {
		if strings.Contains(g.Label(), t.layer) {
			t.add(g, candidate[i])
		}
	}
	return nil
}

// add adds an attention, and that of the candidate where there are two dumps, nil where it cannot be shown.
func (t *headTable) add(g attention.Weights, a *attention.Weights) {
	for h := range g.Heads {
		t.line(g, h, "golden")
		if t.two && a != nil && h < len(a.Heads) {
			t.line(*a, h, "candidate")
		}
	}
	t.name(g, "")
	switch {
	case t.two && a != nil:
		t.name(*a, " of the candidate")
	case t.two:
		fmt.Fprintf(&t.remark, "not shown of the candidate: %s, its weights are not recorded, and no q, k and v make what its attention gives\n", t.label(g))
	}
}

// line adds a head. What would be the same in all lines is left out.
func (t *headTable) line(w attention.Weights, head int, side string) {
	h := w.Heads[head]
	figures := []string{"-", "-", "-", "-", "-", "-"}
	if h.Queries > 0 {
		figures = []string{fmt.Sprintf("%.4g", h.Mean), fmt.Sprintf("%.4g", h.Entropy), fmt.Sprintf("%.3f", h.Part), fmt.Sprint(h.Key),
			fmt.Sprintf("%.3f", h.Most), fmt.Sprintf("%.3f", h.First)}
	}
	row := t.row(w.Case, w.Step, w.Label(), fmt.Sprint(head), side)
	t.rows = append(t.rows, append(append(row, figures...), h.Note()))
}

func (t *headTable) row(caseName, step, label, head, side string) (row []string) {
	if t.cases {
		row = append(row, report.Clean(caseName))
	}
	row = append(row, report.Clean(step), report.Clean(label), head)
	if t.two {
		row = append(row, side)
	}
	return row
}

// name names the heads that look at all keys alike.
func (t *headTable) name(w attention.Weights, side string) {
	is := make([]bool, len(w.Heads))
	for i, h := range w.Heads {
		is[i] = h.Uniform()
	}
	if p := places.Of(is); p.Count > 0 { // "all 4 heads", "heads 1–3"
		fmt.Fprintf(&t.remark, "uniform in %s%s: %s of %d\n", t.label(w), side, p.Text("head"), p.Total)
	}
}

// label is that of an attention, with its case in front where there are several.
func (t *headTable) label(w attention.Weights) string {
	if t.cases {
		return report.Clean(w.Case + " " + w.Label())
	}
	return report.Clean(w.Label())
}

func (t *headTable) write(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	head := append(t.row("case", "step", "attention", "head", "side"), "mean", "entropy", "of ln n", "key", "gets", "key 0 gets", "")
	for _, row := range append([][]string{head}, t.rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), t.remark.String())
	return err
}
