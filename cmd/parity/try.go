package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/internal/setting"
)

type tryFlags struct {
	inputFlags
	layer string
	edits []string
}

func newTry() *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "try --edit 'LAYER:OPERATOR KIND [WHAT]' --golden A --actual B",
		Short: "how far down the candidate is right by the reference's program with an edit",
		Long: "try changes the program that the reference recorded, replays it on the candidate's tensors, and says how far\n" +
			"down they are what it makes: whether the candidate computes what you suspect. LAYER is a pattern, OPERATOR\n" +
			"its number among those of the layer, which --layer lists; KIND and WHAT are those of docs/causes.md:\n\n" +
			"  'layers.3.mixer:17 scalar 0.125'           a number, the first one; eps=1e-5 names the argument\n" +
			"  'layers.*.mlp:3 sibling silu → gelu'       any edit that is found, by its kind and a part of its text\n" +
			"  'layers.3.mixer:9 weight layers.2.w'       another weight\n\n" +
			"Several edits apply together.\n\n" +
			"exit codes: 0 the run is right further down with them, 1 it is not",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.Golden == "" || f.Actual == "":
				return usage("try: --golden and --actual are missing: the two dumps")
			case len(f.edits) == 0 && f.layer == "":
				return usage("try: --edit is missing: what to change; --layer lists the operators of a layer")
			}
			return f.try(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.addPair(c)
	f.addNames(c, "the layer must match this `pattern`, or be in one that does; may be repeated")
	f.addModel(c)
	fl.StringArrayVar(&f.edits, "edit", nil, "the `edit` to apply; may be repeated")
	fl.StringVar(&f.layer, "layer", "", "list the operators of the layers that match this `pattern`")
	return c
}

func (f *tryFlags) try(ctx context.Context, stdout, stderr io.Writer) error {
	f.diagnose = setting.DiagnoseOff
	return f.compare(ctx, stderr, func(c *judge.Comparison, _ search.Evidence) error {
		if f.layer != "" {
			lines, err := c.Operators(f.layer)
			if err != nil {
				return usage("try: %v", err)
			}
			for _, l := range lines {
				fmt.Fprintln(stdout, sanitize.Text(l))
			}
		}
		if len(f.edits) == 0 {
			return nil
		}
		tried, err := c.Try(ctx, f.edits)
		if err != nil {
			return usage("try: %v", err)
		}
		further := true
		for _, t := range tried {
			further = further && t.Further()
			if t.Case != "" {
				fmt.Fprintf(stdout, "case %s\n", sanitize.Text(t.Case))
			}
			fmt.Fprintf(stdout, "  as recorded: %s\n", sanitize.Text(t.Before.String()))
			for _, e := range t.Edits {
				fmt.Fprintf(stdout, "  with %s\n", sanitize.Text(e))
			}
			fmt.Fprintf(stdout, "  then: %s\n", sanitize.Text(t.With.String()))
		}
		if !further {
			return &exitError{code: exitMismatch}
		}
		return nil
	})
}
