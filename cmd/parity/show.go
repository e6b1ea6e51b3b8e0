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
	"github.com/goparity/goparity/tensor/raw"
)

func newShow() *cobra.Command {
	var by string
	var first int
	var heads bool
	var f attentionFlags
	c := &cobra.Command{
		Use:   "show FILE|DIR",
		Short: "what is in a tensor file or dump: shape, dtype, range, sum, first values, NaN",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case heads:
				return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			case len(args) > 1:
				return usage("show: %q is one dump too many: parity attention shows two", args[1])
			case f.Names != "":
				return usage("show: --names goes with parity attention")
			case by != "" && by != "row" && by != "column":
				return usage("show: --by %s: want row or column", by)
			}
			opt, err := rawOptions(f.Raw)
			if err != nil {
				return err
			}
			runs, err := store.OpenCases(args[0], opt)
			if err != nil {
				return err
			}
			defer dump.CloseAll(runs)
			shown := 0
			for _, r := range runs {
				n, err := show(cmd.OutOrStdout(), r, f.layer, by, first)
				if err != nil {
					return err
				}
				shown += n
			}
			if shown == 0 {
				return usage("show: no label of %s contains %q", args[0], f.layer)
			}
			return nil
		},
	}
	f.addLook(c)
	c.Flags().StringVar(&by, "by", "", "figures of each row or column instead of the whole tensor: row or column")
	c.Flags().IntVar(&first, "first", 5, "how many first values to print")
	c.Flags().BoolVar(&heads, "attention", false, "parity attention")
	hide(c.Flags(), "attention", "names")
	c.MarkFlagsMutuallyExclusive("attention", "by")
	c.MarkFlagsMutuallyExclusive("attention", "first")
	return c
}

// rawOptions open a dump to look at it. spec says what headerless files hold, "" for none.
func rawOptions(spec string) (opt dump.Options, err error) {
	opt.Unjudged = true
	if spec == "" {
		return opt, nil
	}
	parsed, err := raw.Parse(spec)
	if err != nil {
		return opt, usage("show: --raw: %v", err)
	}
	opt.Raw = func(string, int64) (raw.Spec, error) { return parsed, nil }
	return opt, nil
}

// tokensShown is how many token ids of a sequence are shown.
const tokensShown = 64

// show prints a run, and returns how many tensors it has whose label contains layer.
func show(w io.Writer, r *dump.Run, layer, by string, first int) (shown int, err error) {
	if r.HasInfo {
		what := []string{strings.TrimSpace(r.Info.Engine + " " + r.Info.Versions[r.Info.Engine]), r.Info.Encoding.String(), r.Info.Mode + " run", "order from " + r.OrderBy}
		what = slices.DeleteFunc(what, func(s string) bool { return s == "" })
		fmt.Fprintf(w, "%s: %s\n", report.Clean(r.Path), report.Clean(strings.Join(what, ", ")))
		for _, line := range r.Info.Describe() {
			fmt.Fprintln(w, report.Clean(line))
		}
		for i, ids := range r.Info.Tokens() {
			text := strings.Trim(fmt.Sprint(ids[:min(len(ids), tokensShown)]), "[]")
			if n := len(ids) - tokensShown; n > 0 {
				text += fmt.Sprintf(" … and %d more", n)
			}
			fmt.Fprintf(w, "token ids of sequence %d: %s\n", i, text)
		}
	} else {
		fmt.Fprintf(w, "%s: no run.json, order from %s\n", report.Clean(r.Path), r.OrderBy)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", report.Clean(n))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "step\tlabel\tdtype\tshape\tmin\tmax\tmean\tsum\tnan\tinf\tfirst values")
	for _, e := range r.Entries {
		if !strings.Contains(e.Label(), layer) {
			continue
		}
		shown++
		if by == "" || len(e.Tensor.Shape()) == 0 {
			if err := line(tw, e.Step, e.Label(), e.Tensor, first); err != nil {
				return shown, err
			}
			continue
		}
		parts, err := split(e.Tensor, by)
		if err != nil {
			return shown, err
		}
		for i, p := range parts {
			if err := line(tw, e.Step, fmt.Sprintf("%s %s %d", e.Label(), by, i), p, first); err != nil {
				return shown, err
			}
		}
	}
	return shown, tw.Flush()
}

// split gives the rows or columns of a tensor as views.
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

// storedAs is the type of the elements, or of the blocks from which they are computed.
func storedAs(t *tensor.Tensor) string {
	if packing := t.Packing(); packing != "" {
		return packing
	}
	return t.DType().Short()
}

func line(w io.Writer, step, label string, t *tensor.Tensor, first int) error {
	stats, err := compare.StatsOf(t)
	if err != nil {
		return err
	}
	var head []string
	values := make([]float64, max(min(first, t.Len()), 0))
	for _, v := range values[:t.Float64s(values, 0)] {
		head = append(head, fmt.Sprintf("%.6g", v))
	}
	figures := []string{"-", "-", "-", "-"}
	if finite := t.Len() - stats.NaN - stats.Inf; finite > 0 {
		for i, v := range []float64{stats.Min, stats.Max, stats.Mean, stats.Mean * float64(finite)} {
			figures[i] = fmt.Sprintf("%.6g", v)
		}
	}
	cells := slices.Concat([]string{report.Clean(step), report.Clean(label), storedAs(t), tensor.FormatShape(t.Shape())}, figures,
		[]string{fmt.Sprint(stats.NaN), fmt.Sprint(stats.Inf), strings.Join(head, " ")})
	_, err = fmt.Fprintln(w, strings.Join(cells, "\t"))
	return err
}
