package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
)

// edit says how far down the candidate is right by the reference's program with the edits. One that is only a layer
// lists its operators.
func (f *compareFlags) edit(cmd *cobra.Command) error {
	f.diagnose = setting.DiagnoseOff
	in, err := f.open(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer in.close()
	w := cmd.OutOrStdout()
	return in.compare(cmd.Context(), func(c *judge.Comparison) error {
		var edits []string
		for _, e := range f.edits {
			if strings.Contains(e, ":") {
				edits = append(edits, e)
				continue
			}
			lines, err := c.Operators(e)
			if err != nil {
				return usage("compare: --edit %q: %v: --edit '*' lists all", e, err)
			}
			fmt.Fprintln(w, sanitize.Text(strings.Join(lines, "\n")))
		}
		if edits == nil {
			return nil
		}
		tried, err := c.Try(cmd.Context(), edits)
		if err != nil {
			return usage("compare: --edit: %v", err)
		}
		further := true
		for _, t := range tried {
			further = further && t.Further()
			if t.Case != "" {
				fmt.Fprintf(w, "case %s\n", sanitize.Text(t.Case))
			}
			fmt.Fprintf(w, "  as recorded: %s\n", sanitize.Text(t.Before.String()))
			for _, e := range t.Edits {
				fmt.Fprintf(w, "  with %s\n", sanitize.Text(e))
			}
			fmt.Fprintf(w, "  then: %s\n", sanitize.Text(t.With.String()))
		}
		if !further {
			return errMismatch
		}
		return nil
	})
}
