package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// How many of them are shown.
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
	c := &cobra.Command{
		Use:   "show FILE|DIR | show --by head DUMP [CANDIDATE]",
		Short: "what is in a tensor file or dump: shape, dtype, range, sum, first values, NaN; attention by head",
		Long: "With --by head it shows of each head how far its attention is spread: the mean of the weights, the entropy in\n" +
			"nats and as a part of ln n, n the keys that a query may look at, the key that gets most, and what key 0 gets;\n" +
			"heads that look at all keys alike are named as uniform. A second dump, the candidate's, is shown beside the\n" +
			"first. Weights that were not recorded are what the program beside the dump makes of q, k and v, where that\n" +
			"makes the recorded context.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
		},
	}
	f.addAssume(c)
	f.addNames(c)
	c.Flags().StringVar(&f.layer, "layer", "", "only labels that contain this `text`")
	c.Flags().StringVar(&f.by, "by", "", "figures of each `row`, column or head instead of the whole tensor")
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

// head prints what is known of a run besides its tensors.
func (f *showFlags) head(w io.Writer, r *dump.Run) {
	if r.HasInfo {
		what := []string{strings.TrimSpace(r.Info.Engine + " " + r.Info.Versions[r.Info.Engine]), r.Info.Encoding.String(), r.Info.Mode + " run", "order from " + r.OrderBy}
		what = slices.DeleteFunc(what, func(s string) bool { return s == "" })
		fmt.Fprintf(w, "%s: %s\n", report.Clean(r.Path), report.Clean(strings.Join(what, ", ")))
		for _, line := range r.Info.Describe() {
			fmt.Fprintln(w, report.Clean(line))
		}
		for i, ids := range r.Info.Tokens() {
			fmt.Fprintf(w, "token ids of sequence %d: %s\n", i, tokens(ids))
		}
	} else {
		fmt.Fprintf(w, "%s: no run.json, order from %s\n", report.Clean(r.Path), r.OrderBy)
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
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "step\tlabel\tdtype\tshape\tmin\tmax\tmean\tsum\tnan\tinf\tfirst values")
	for _, e := range r.Entries {
		if !strings.Contains(e.Label(), f.layer) {
			continue
		}
		shown++
		if f.by == "" || len(e.Tensor.Shape()) == 0 {
			if err := line(tw, e.Step, e.Label(), e.Tensor); err != nil {
				return shown, err
			}
			continue
		}
		parts, err := split(e.Tensor, f.by)
		if err != nil {
			return shown, err
		}
		for i, p := range parts {
			if err := line(tw, e.Step, fmt.Sprintf("%s %s %d", e.Label(), f.by, i), p); err != nil {
				return shown, err
			}
		}
	}
	return shown, tw.Flush()
}

// split returns the rows or columns of a tensor as views.
func split(t *tensor.Tensor, by string) ([]*tensor.Tensor, error) {
	n := t.RowLen()
	if n == 0 || t.Len() == 0 {
		return nil, nil
	}
	flat, err := t.Reshape(t.Len()/n, n)
	if err != nil {
		return nil, err
	}
	axis := 0
	if by == "column" {
		axis = 1
	}
	parts := make([]*tensor.Tensor, flat.Shape()[axis])
	for i := range parts {
		if parts[i], err = flat.Slice(axis, i, i+1); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func line(w io.Writer, step, label string, t *tensor.Tensor) error {
	stats, err := compare.StatsOf(t)
	if err != nil {
		return err
	}
	stored := t.Packing() // of the blocks from which the elements are computed
	if stored == "" {
		stored = t.DType().Short()
	}
	var first []string
	values := make([]float64, min(valuesShown, t.Len()))
	for _, v := range values[:t.Float64s(values, 0)] {
		first = append(first, fmt.Sprintf("%.6g", v))
	}
	figures := []string{"-", "-", "-", "-"}
	if finite := t.Len() - stats.NaN - stats.Inf; finite > 0 {
		for i, v := range []float64{stats.Min, stats.Max, stats.Mean, stats.Mean * float64(finite)} {
			figures[i] = fmt.Sprintf("%.6g", v)
		}
	}
	cells := slices.Concat([]string{report.Clean(step), report.Clean(label), stored, tensor.FormatShape(t.Shape())}, figures,
		[]string{fmt.Sprint(stats.NaN), fmt.Sprint(stats.Inf), strings.Join(first, " ")})
	_, err = fmt.Fprintln(w, strings.Join(cells, "\t"))
	return err
}
