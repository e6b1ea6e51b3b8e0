package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/nearest"
)

func newCause() *cobra.Command {
	return &cobra.Command{
		Use:   "cause [NAME]",
		Short: "what a cause looks like, how it gets into a port, and the fix; without a name, all ids",
		Long: "cause prints what docs/causes.md says about a cause, by the id that a report names, as \"norm/eps\".\n" +
			"Without a name it lists all ids.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			if len(args) == 0 {
				for _, id := range docs.Causes() {
					fmt.Fprintln(w, id)
				}
				return nil
			}
			return printCause(w, args[0])
		},
	}
}

func printCause(w io.Writer, id string) error {
	parts := docs.Cause(id)
	if parts == nil {
		meant := "parity cause lists them"
		if near, ok := nearest.Nearest(id, docs.Causes()); ok {
			meant = fmt.Sprintf("did you mean %q?", near)
		}
		return usage("there is no cause %q: %s", id, meant)
	}
	fmt.Fprintln(w, id)
	for _, p := range parts[1:] {
		fmt.Fprintf(w, "  %s: %s\n", p.Name, p.Text)
	}
	return nil
}
