package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/attention"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/places"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/setting"
)

// heads shows the attentions of one dump, or of two that are joined.
func (f *showFlags) heads(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && f.Names != "" {
		return usage("show: --names joins two dumps, and there is one")
	}
	shown := &headTable{layer: f.layer, two: len(args) == 2}
	var err error
	if ctx := cmd.Context(); shown.two {
		f.Golden, f.Actual, f.diagnose = args[0], args[1], setting.DiagnoseOff
		var in *inputs
		if in, err = f.open(cmd.ErrOrStderr()); err == nil {
			defer in.close()
			err = in.compare(ctx, func(c *judge.Comparison) error { return shown.compare(ctx, c, in.opt.Diagnosis.Evidence) })
		}
	} else {
		err = f.headsOf(ctx, args[0], shown)
	}
	if err != nil {
		return err
	}
	if len(shown.rows) == 0 {
		return fmt.Errorf("no attention can be shown of %s: record its weights (torch: attn_implementation=eager), "+
			"or q, k, v, what the output projection is given, and the program beside them", strings.Join(args, " and "))
	}
	return shown.write(cmd)
}

// headsOf adds the attentions of one dump.
func (f *showFlags) headsOf(ctx context.Context, path string, shown *headTable) error {
	runs, err := f.openAny(path)
	if err != nil {
		return err
	}
	defer dump.CloseAll(runs)
	shown.cases = len(runs) > 1
	for _, r := range runs {
		run := &diagnose.Run{} // as the search for causes sees a reference
		for _, e := range r.Entries {
			if e.Printed == nil { // a log shows corners only
				run.Ports = append(run.Ports, &diagnose.Port{Case: r.Info.Case, Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq,
					Golden: e.Tensor, Floor: compare.Floor(e.Tensor.DType())})
			}
		}
		programs := map[string]attention.Program{}
		end := addProgram(programs, r, reference.Beside(r), nil)
		shown.add(attention.All(ctx, run, programs), nil)
		end()
	}
	return nil
}

// compare adds the attentions of two dumps.
func (t *headTable) compare(ctx context.Context, c *judge.Comparison, evidence search.Evidence) error {
	run, err := c.Evidence()
	if err != nil {
		return err
	}
	t.cases = len(c.Cases) > 1
	programs := map[string]attention.Program{}
	for _, k := range c.Cases {
		defer addProgram(programs, k.Golden, k.Program, evidence)()
	}
	t.add(attention.Beside(ctx, run, programs))
	return nil
}

// addProgram adds the program of a run, if there is one, with what opens its weights.
func addProgram(to map[string]attention.Program, r *dump.Run, p *program.Program, evidence search.Evidence) (end func()) {
	if p == nil {
		return func() {}
	}
	load, end := evidence.Outside(p)
	to[r.Info.Case] = attention.Program{Program: p, Load: load}
	return end
}

// headTable has a line for each head, or with two dumps two.
type headTable struct {
	rows   [][]string
	layer  string // only labels that contain this text
	two    bool
	cases  bool // there are several: each line has its own
	remark strings.Builder
}

var headColumns = []string{"case", "step", "attention", "head", "side", "mean", "entropy", "of ln n", "key", "gets", "key 0 gets", ""}

func (t *headTable) add(golden []attention.Weights, candidate []*attention.Weights) {
	for i, g := range golden {
		var a *attention.Weights
		if t.two {
			a = candidate[i]
		}
		if !strings.Contains(g.Label(), t.layer) {
			continue
		}
		for h := range g.Heads {
			t.line(g, h, "golden")
			if a != nil && h < len(a.Heads) {
				t.line(*a, h, "candidate")
			}
		}
		t.name(g, "")
		switch {
		case a != nil:
			t.name(*a, " of the candidate")
		case t.two:
			fmt.Fprintf(&t.remark, "not shown of the candidate: %s, its weights are not recorded, and no q, k and v make what its attention gives\n", t.label(g))
		}
	}
}

func (t *headTable) line(w attention.Weights, head int, side string) {
	h := w.Heads[head]
	row := []string{w.Case, w.Step, w.Label(), fmt.Sprint(head), side, "-", "-", "-", "-", "-", "-", h.Note()}
	if h.Queries > 0 {
		copy(row[5:], []string{fmt.Sprintf("%.4g", h.Mean), fmt.Sprintf("%.4g", h.Entropy), fmt.Sprintf("%.3f", h.Part), fmt.Sprint(h.Key),
			fmt.Sprintf("%.3f", h.Most), fmt.Sprintf("%.3f", h.First)})
	}
	t.rows = append(t.rows, row)
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

// write writes the lines without columns that would say the same in all.
func (t *headTable) write(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{headColumns}, t.rows...) {
		var cells []string
		for i, cell := range row {
			if (i > 0 || t.cases) && (i != 4 || t.two) {
				cells = append(cells, report.Clean(cell))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), t.remark.String())
	return err
}
