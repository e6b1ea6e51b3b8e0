package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

const (
	tokensShown = 64 // token ids of a sequence
	valuesShown = 5  // first values of a tensor
)

type showFlags struct {
	inputFlags
	by, layer string
}

func newShow() *cobra.Command {
	var f showFlags
	c := command("show", cobra.RangeArgs(1, 2), func(cmd *cobra.Command, args []string) error {
		switch {
		case f.by == "head":
			return f.heads(cmd, args)
		case f.by != "" && f.by != "row" && f.by != "column":
			return usage("show: --by %s: want row, column or head", f.by)
		case len(args) > 1:
			return usage("show: %q is one dump too many: --by head shows two", args[1])
		case f.Names != "":
			return usage("show: --names joins two dumps: --by head shows them")
		}
		return f.show(cmd.OutOrStdout(), args[0])
	})
	f.addAssume(c)
	f.addNames(c)
	c.Flags().StringVar(&f.layer, "layer", "", "only labels that contain this `text`")
	c.Flags().StringVar(&f.by, "by", "", "metrics of each `row`, column or head instead of the whole tensor")
	return c
}

func (f *showFlags) show(w io.Writer, path string) error {
	opt := dump.Options{Unjudged: true}
	if f.Encoding != "" || f.PadMask != "" {
		return usage("show: --assume encoding and pad_mask judge, and nothing is judged here")
	}
	if err := f.assume(&opt); err != nil {
		return err
	}
	runs, err := store.OpenCases(path, opt)
	if err != nil {
		return err
	}
	defer dump.CloseAll(runs)
	shown := 0
	for _, r := range runs {
		f.head(w, r)
		n, err := f.tensors(w, r)
		if err != nil {
			return err
		}
		shown += n
	}
	if shown == 0 {
		return usage("show: no label of %s contains %q", path, f.layer)
	}
	return nil
}

func (f *showFlags) head(w io.Writer, r *dump.Run) {
	what := []string{"no run.json"}
	if r.HasInfo {
		what = []string{strings.TrimSpace(r.Info.Engine + " " + r.Info.Versions[r.Info.Engine]), r.Info.Encoding.String(),
			r.Info.Mode + " run"}
	}
	what = slices.DeleteFunc(append(what, "order from "+r.OrderBy), func(s string) bool { return s == "" })
	fmt.Fprintf(w, "%s: %s\n", report.Clean(r.Path), report.Clean(strings.Join(what, ", ")))
	for _, line := range r.Info.Describe() {
		fmt.Fprintln(w, report.Clean(line))
	}
	for i, ids := range r.Info.Tokens() {
		fmt.Fprintf(w, "token ids of sequence %d: %s\n", i, tokens(ids))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", report.Clean(n))
	}
}

// tokens writes token ids, those at the beginning where there are many.
func tokens(ids []int) string {
	text := strings.Trim(fmt.Sprint(ids[:min(len(ids), tokensShown)]), "[]")
	if n := len(ids) - tokensShown; n > 0 {
		text += fmt.Sprintf(" … and %d more", n)
	}
	return text
}

// tensors prints those of a run whose label contains --layer, and returns how many these are.
func (f *showFlags) tensors(w io.Writer, r *dump.Run) (shown int, err error) {
	rows := [][]string{{"step", "label", "dtype", "shape", "min", "max", "mean", "sum", "nan", "inf", "first values"}}
	for _, e := range r.Entries {
		if !strings.Contains(e.Label(), f.layer) {
			continue
		}
		shown++
		parts, name := []*tensor.Tensor{e.Tensor}, func(int) string { return e.Label() }
		if f.by != "" && len(e.Tensor.Shape()) > 0 {
			name = func(i int) string { return fmt.Sprintf("%s %s %d", e.Label(), f.by, i) }
			if parts, err = split(e.Tensor, f.by); err != nil {
				return shown, err
			}
		}
		for i, p := range parts {
			row, err := metrics(e.Step, name(i), p)
			if err != nil {
				return shown, err
			}
			rows = append(rows, row)
		}
	}
	return shown, writeTable(w, rows)
}

func split(t *tensor.Tensor, by string) (parts []*tensor.Tensor, err error) {
	if t.Len() == 0 {
		return nil, nil
	}
	flat, err := t.Reshape(t.Len()/t.RowLen(), t.RowLen())
	axis := slices.Index([]string{"row", "column"}, by)
	for i := 0; err == nil && i < flat.Shape()[axis]; i++ {
		var part *tensor.Tensor
		part, err = flat.Slice(axis, i, i+1)
		parts = append(parts, part)
	}
	return parts, err
}

func metrics(step, label string, t *tensor.Tensor) ([]string, error) {
	stats, err := compare.StatsOf(t)
	if err != nil {
		return nil, err
	}
	// Packing is that of the blocks from which the elements are computed.
	row := []string{report.Clean(step), report.Clean(label), cmp.Or(t.Packing(), t.DType().Short()),
		tensor.FormatShape(t.Shape())}
	finite := t.Len() - stats.NaN - stats.Inf
	for _, v := range []float64{stats.Min, stats.Max, stats.Mean, stats.Mean * float64(finite)} {
		if finite > 0 {
			row = append(row, fmt.Sprintf("%.6g", v))
		} else {
			row = append(row, "-")
		}
	}
	var first []string
	values := make([]float64, min(valuesShown, t.Len()))
	for _, v := range values[:t.Float64s(values, 0)] {
		first = append(first, fmt.Sprintf("%.6g", v))
	}
	return append(row, fmt.Sprint(stats.NaN), fmt.Sprint(stats.Inf), strings.Join(first, " ")), nil
}

// heads shows the attentions of two dumps that are joined, or of one, as joined with itself.
func (f *showFlags) heads(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && f.Names != "" {
		return usage("show: --names joins two dumps, and there is one")
	}
	f.Golden, f.Actual = args[0], args[len(args)-1]
	in, c, err := f.compared(cmd)
	defer in.close()
	if err != nil {
		return err
	}
	t := &headTable{two: len(args) == 2, cases: len(c.Cases) > 1}
	if err := t.read(cmd.Context(), c, in.opt.Diagnosis.Evidence, f.layer); err != nil {
		return err
	}
	if len(t.rows) == 0 {
		return fmt.Errorf("no attention can be shown of %s: record its weights (torch: attn_implementation=eager), "+
			"or q, k, v, what the output projection is given, and the program beside them", strings.Join(args, " and "))
	}
	t.rows = slices.Insert(t.rows, 0, t.row("case", "step", "attention", "head", "side", "mean", "entropy", "of ln n",
		"key", "gets", "key 0 gets", ""))
	if err := writeTable(cmd.OutOrStdout(), t.rows); err != nil {
		return err
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), t.remark.String())
	return err
}

// headTable has a line for each head, or with two dumps two.
type headTable struct {
	rows   [][]string
	two    bool
	cases  bool // there are several: each line has its own
	remark strings.Builder
}

// read adds the attentions of a comparison whose label contains a text.
func (t *headTable) read(ctx context.Context, c *judge.Comparison, evidence piece.Evidence, layer string) error {
	run, err := c.Evidence()
	if err != nil {
		return err
	}
	programs := map[string]diagnose.Program{}
	for _, k := range c.Cases {
		if k.Program != nil {
			load, end := evidence.Outside(k.Program)
			defer end()
			programs[k.Golden.Info.Case] = diagnose.Program{Program: k.Program, Load: load}
		}
	}
	golden, candidate := diagnose.Attentions(ctx, run, programs)
	for i, g := range golden {
		if strings.Contains(g.Label(), layer) {
			t.add(g, candidate[i])
		}
	}
	return nil
}

// add adds an attention, and that of the candidate where there are two dumps, nil where it cannot be shown.
func (t *headTable) add(g diagnose.Attention, a *diagnose.Attention) {
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
		fmt.Fprintf(&t.remark, "not shown of the candidate: %s, its weights are not recorded, "+
			"and no q, k and v make what its attention gives\n", t.label(g))
	}
}

func (t *headTable) line(w diagnose.Attention, head int, side string) {
	h := w.Heads[head]
	cells := []string{w.Case, w.Step, w.Label(), fmt.Sprint(head), side, "-", "-", "-", "-", "-", "-", h.Note()}
	if h.Queries > 0 {
		metrics := fmt.Sprintf("%.4g %.4g %.3f %d %.3f %.3f", h.Mean, h.Entropy, h.Part, h.Key, h.Most, h.First)
		copy(cells[5:], strings.Fields(metrics))
	}
	t.rows = append(t.rows, t.row(cells...))
}

// row leaves out what would be the same in all lines.
func (t *headTable) row(cells ...string) (row []string) {
	for i, cell := range cells {
		if (i > 0 || t.cases) && (i != 4 || t.two) {
			row = append(row, report.Clean(cell))
		}
	}
	return row
}

// name names the heads that look at all keys alike.
func (t *headTable) name(w diagnose.Attention, side string) {
	is := make([]bool, len(w.Heads))
	for i, h := range w.Heads {
		is[i] = h.Uniform()
	}
	if p := compare.PlacesOf(is); p.Count > 0 { // "all 4 heads", "heads 1–3"
		fmt.Fprintf(&t.remark, "uniform in %s%s: %s of %d\n", t.label(w), side, p.Text("head"), p.Total)
	}
}

func (t *headTable) label(w diagnose.Attention) string {
	if t.cases {
		return report.Clean(w.Case + " " + w.Label())
	}
	return report.Clean(w.Label())
}

type namesFlags struct {
	inputFlags
	out, json string
}

func newNames() *cobra.Command {
	var f namesFlags
	c := command("names", cobra.MaximumNArgs(2), func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(f.positional("names", args), f.refuseOverwrite(f.out, f.json)); err != nil {
			return err
		}
		p, err := f.propose()
		if err != nil {
			return err
		}
		return f.write(cmd.OutOrStdout(), p)
	})
	f.addPair(c)
	f.addAssume(c)
	c.Flags().StringVarP(&f.out, "output", "o", "", "write the rules to this `file`, for parity compare --names or the names of a fixture")
	addJSON(c, &f.json, "what was found")
	return c
}

func (f *namesFlags) propose() (p *match.Proposal, err error) {
	in, err := f.open(io.Discard)
	defer in.close()
	if err != nil {
		return nil, err
	}
	cases, err := in.pair()
	if err != nil {
		return nil, err
	}
	err = mapfile.Guard(func() (err error) { p, err = cases[0].Propose(in.opt.Match); return err })
	if err == nil && p.Foreign != "" {
		err = fmt.Errorf("no rules: %s", p.Foreign)
	}
	if err == nil {
		_, err = joinAll(cases, in.opt.Match, p)
	}
	return p, err
}

func (f *namesFlags) write(stdout io.Writer, p *match.Proposal) error {
	err := writeOutput(f.out, stdout, func(w io.Writer) error { _, err := io.WriteString(w, p.YAML()); return err })
	if err != nil {
		return err
	}
	err = writeJSON(f.json, stdout, struct {
		Schema int `json:"schema"`
		*match.Proposal
	}{1, p})
	if err == nil && f.json != "-" && f.out != "-" {
		f.print(stdout, p)
	}
	return err
}

func (f *namesFlags) print(w io.Writer, p *match.Proposal) {
	if len(p.Rules) == 0 {
		fmt.Fprintf(w, "no rule is needed: the names join %d layers\n", p.Joined)
	} else {
		fmt.Fprintf(w, "the names and these rules join %d layers of the golden:\n", p.Joined)
	}
	for _, r := range p.Rules {
		fmt.Fprintf(w, "  %-8s  %s\n            %s\n", r.Sure, sanitize.Line(r.String()), r.Reason)
	}
	for _, a := range p.Ambiguous {
		fmt.Fprintf(w, "ambiguous: golden %s; candidate %s: %s\n", sanitize.Line(label.Few(a.Golden)), sanitize.Line(label.Few(a.Candidate)), sanitize.Line(a.Why))
	}
	only := func(who string, left []match.Left) {
		var list []string
		for _, l := range left {
			list = append(list, l.Layer)
		}
		if list != nil {
			fmt.Fprintf(w, "only the %s has %s\n", who, sanitize.Line(label.Few(list)))
		}
	}
	only("golden", p.Golden)
	only("candidate", p.Actual)
	if f.out == "" {
		return
	}
	fmt.Fprintf(w, "written: %s\n", sanitize.Line(f.out))
	if len(p.Rules) > 0 {
		in := f.Inputs
		in.Names = f.out
		fmt.Fprintf(w, "next: %s\n", setting.Command(append([]string{"parity", "compare"}, in.Args()...)...))
	}
}

type weightsFlags struct {
	configs              []string // of REF, then of CAND
	json, adapter, names string
}

func newWeights() *cobra.Command {
	var f weightsFlags
	c := command("weights", cobra.ExactArgs(2), f.run)
	c.Flags().StringArrayVar(&f.configs, "config", nil, "config.json `file` of REF, given twice: of CAND, too")
	c.Flags().StringVar(&f.adapter, "adapter", "", "`folder` of a LoRA adapter that CAND must have merged (default: the one in the folder REF)")
	c.Flags().StringVar(&f.names, "names", "", "YAML `file` with names as in fixture.yaml: which layers belong together, where names and values do not tell")
	addJSON(c, &f.json, "the result")
	return c
}

func (f *weightsFlags) run(cmd *cobra.Command, args []string) (err error) {
	if len(f.configs) > 2 {
		return usage("weights: --config is given %d times: want one for REF, then one for CAND", len(f.configs))
	}
	var opt weights.Options
	if f.names != "" {
		m, err := readNames(f.names)
		if err != nil {
			return err
		}
		opt.Rules = m.Names
	}
	var sides [2]*weights.Side
	for i, config := range append(f.configs, "", "")[:2] {
		if sides[i], err = weights.Open(args[i], config); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].Close()) }()
	}
	if f.adapter != "" {
		opt.Adapter, err = weights.OpenAdapter(f.adapter)
	} else {
		opt.Adapter, err = weights.FindAdapter(args[0])
	}
	if err != nil {
		return err
	}
	progress, end := progress(cmd.ErrOrStderr(), "comparing", worthALine)
	opt.Progress = progress
	report, err := weights.Compare(cmd.Context(), sides[0], sides[1], opt)
	end()
	if err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	if f.json != "-" {
		err = report.Text(stdout)
	}
	switch err = errors.Join(err, writeJSON(f.json, stdout, report)); {
	case err != nil:
		return err
	case report.Wrong():
		return errMismatch
	case !report.Pass:
		return errInfra
	}
	return nil
}
