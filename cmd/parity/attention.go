package main

import (
	"context"
	"fmt"
	"io"
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
	"github.com/goparity/goparity/internal/store"
)

// attentionFlags are those of parity attention.
type attentionFlags struct {
	inputFlags
	layer string
}

func newAttention() *cobra.Command {
	var f attentionFlags
	c := &cobra.Command{
		Use:   "attention DUMP [CANDIDATE]",
		Short: "how far the attention of each head is spread, of one dump or of two beside each other",
		Long: "attention prints of each head how far its attention is spread: the mean of the weights, the entropy in nats\n" +
			"and as a part of ln n, n the keys that a query may look at, the key that gets most, and what key 0 gets;\n" +
			"heads that look at all keys alike are named as uniform. A second dump, the candidate's, is shown beside the\n" +
			"first. Weights that were not recorded are what the program beside the dump makes of q, k and v, where that\n" +
			"makes the recorded context.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.addLook(c)
	return c
}

// addLook adds the flags of what looks at dumps.
func (f *attentionFlags) addLook(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.Raw, "raw", "", "dtype and shape of headerless files, as `f32:4x8`")
	fl.StringVar(&f.layer, "layer", "", "only labels that contain this `text`")
	fl.StringVar(&f.Names, "names", "", "of two dumps: YAML `file` with names as in fixture.yaml")
}

// run shows the attentions of one dump, or of two that are joined.
func (f *attentionFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && f.Names != "" {
		return usage("attention: --names joins two dumps, and there is one")
	}
	shown := &attentionTable{layer: f.layer, two: len(args) == 2}
	show := f.one
	if shown.two {
		show = f.two
	}
	if err := show(ctx, args, shown, stderr); err != nil {
		return err
	}
	if len(shown.rows) == 0 {
		return &exitError{exitInfra, fmt.Errorf("no attention can be shown of %s: record its weights (torch: attn_implementation=eager), "+
			"or q, k, v, what the output projection is given, and the program beside them", strings.Join(args, " and "))}
	}
	return shown.write(stdout)
}

func (f *attentionFlags) one(ctx context.Context, args []string, shown *attentionTable, _ io.Writer) error {
	opt, err := rawOptions(f.Raw)
	if err != nil {
		return err
	}
	runs, err := store.OpenCases(args[0], opt)
	if err != nil {
		return err
	}
	defer dump.CloseAll(runs)
	shown.cases = len(runs) > 1
	programs, done := programsOf(runs, reference.Beside, nil)
	defer done()
	for _, r := range runs {
		shown.add(attention.All(ctx, runOf(r), programs), nil)
	}
	return nil
}

// programsOf are the programs of runs, by case, with what opens their weights.
func programsOf(runs []*dump.Run, of func(*dump.Run) *program.Program, evidence search.Evidence) (programs map[string]attention.Program, done func()) {
	programs = map[string]attention.Program{}
	var ends []func()
	for _, r := range runs {
		if p := of(r); p != nil {
			load, end := evidence.Outside(p)
			programs[r.Info.Case], ends = attention.Program{Program: p, Load: load}, append(ends, end)
		}
	}
	return programs, func() {
		for _, end := range ends {
			end()
		}
	}
}

// runOf is a dump as the search for causes sees a reference.
func runOf(r *dump.Run) *diagnose.Run {
	run := &diagnose.Run{}
	for _, e := range r.Entries {
		if e.Printed == nil { // a log shows corners only
			run.Ports = append(run.Ports, &diagnose.Port{Case: r.Info.Case, Step: e.Step, Layer: e.Layer, Port: e.Port, Seq: e.Seq,
				Golden: e.Tensor, Floor: compare.Floor(e.Tensor.DType())})
		}
	}
	return run
}

func (f *attentionFlags) two(ctx context.Context, args []string, shown *attentionTable, stderr io.Writer) error {
	f.Golden, f.Actual, f.diagnose = args[0], args[1], setting.DiagnoseOff
	return f.compare(ctx, stderr, func(c *judge.Comparison, evidence search.Evidence) error {
		run, err := c.Evidence()
		if shown.cases = len(c.Cases) > 1; err == nil {
			var goldens []*dump.Run
			byRun := map[*dump.Run]*program.Program{}
			for _, k := range c.Cases {
				goldens = append(goldens, k.Golden)
				byRun[k.Golden] = k.Program
			}
			programs, done := programsOf(goldens, func(r *dump.Run) *program.Program { return byRun[r] }, evidence)
			defer done()
			shown.add(attention.Beside(ctx, run, programs))
		}
		return err
	})
}

// attentionTable has a line for each head, or with two dumps two.
type attentionTable struct {
	rows    [][]string
	layer   string // only labels that contain this text
	two     bool
	cases   bool // there are several: each line has its own
	uniform []string
}

var attentionHead = []string{"case", "step", "attention", "head", "side", "mean", "entropy", "of ln n", "key", "gets", "key 0 gets", ""}

func (t *attentionTable) add(golden []attention.Weights, candidate []*attention.Weights) {
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
			t.uniform = append(t.uniform, "not shown of the candidate: "+t.of(g)+report.Clean(g.Label())+", its weights are not recorded, and no q, k and v make what its attention gives\n")
		}
	}
}

func (t *attentionTable) line(w attention.Weights, head int, side string) {
	h := w.Heads[head]
	row := []string{w.Case, w.Step, w.Label(), fmt.Sprint(head), side, "-", "-", "-", "-", "-", "-", h.Note()}
	if h.Queries > 0 {
		copy(row[5:], []string{fmt.Sprintf("%.4g", h.Mean), fmt.Sprintf("%.4g", h.Entropy), fmt.Sprintf("%.3f", h.Part), fmt.Sprint(h.Key),
			fmt.Sprintf("%.3f", h.Most), fmt.Sprintf("%.3f", h.First)})
	}
	t.rows = append(t.rows, row)
}

// write writes the lines without columns that would say the same in all.
func (t *attentionTable) write(stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{attentionHead}, t.rows...) {
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
	_, err := io.WriteString(stdout, strings.Join(t.uniform, ""))
	return err
}

// of is the case in front of a label, where there are several.
func (t *attentionTable) of(w attention.Weights) string {
	if !t.cases {
		return ""
	}
	return report.Clean(w.Case) + " "
}

// name names the heads that look at all keys alike.
func (t *attentionTable) name(w attention.Weights, side string) {
	is := make([]bool, len(w.Heads))
	for i, h := range w.Heads {
		is[i] = h.Uniform()
	}
	if p := places.Of(is); p.Count > 0 { // "all 4 heads", "heads 1–3"
		t.uniform = append(t.uniform, fmt.Sprintf("uniform in %s%s%s: %s of %d\n", t.of(w), report.Clean(w.Label()), side, p.Text("head"), p.Total))
	}
}
