package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/engine"
)

func newTransformers() *cobra.Command {
	c := &cobra.Command{
		Use:   "transformers",
		Short: "edit a copy of the installed transformers: edit, status, restore",
		Long: "transformers makes an editable copy of the installed Python package in .parity/transformers next to\n" +
			"go.mod. Live runs and parity run use it while it is there, and say so; goldens are not renewed from\n" +
			"it. The installation stays as it is.",
		Args: subcommand,
		RunE: group,
	}
	var force bool
	edit := &cobra.Command{Use: "edit [MODULE]", Args: cobra.MaximumNArgs(1), RunE: editCopy,
		Short: "make the copy if there is none, and print where to edit: llama, modeling_llama, …"}
	status := &cobra.Command{Use: "status", Args: cobra.NoArgs, RunE: copyStatus,
		Short: "whether runs use an edited copy, and which of its files were changed"}
	restore := &cobra.Command{Use: "restore", Args: cobra.NoArgs,
		Short: "remove the copy, so that runs use the installed package again",
		RunE:  func(cmd *cobra.Command, _ []string) error { return removeCopy(cmd.OutOrStdout(), force) }}
	restore.Flags().BoolVar(&force, "force", false, "remove edited files too")
	c.AddCommand(edit, status, restore)
	return c
}

func editCopy(cmd *cobra.Command, args []string) error {
	o, err := engine.FindOverlay(".")
	if err == nil && o == nil {
		o, err = makeCopy(cmd)
	}
	if err != nil {
		return err
	}
	files := []string{""}
	if len(args) > 0 {
		files = o.Lookup(args[0])
	}
	if len(files) == 0 {
		return usage("transformers edit: no file of transformers %s is called %q", o.Version, args[0])
	}
	for _, f := range files {
		fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(o.Package(), filepath.FromSlash(f)))
	}
	return nil
}

func makeCopy(cmd *cobra.Command) (*engine.Overlay, error) {
	python, err := engine.Interpreter(os.Getenv, ".")
	if err != nil {
		return nil, err
	}
	source, version, err := engine.InstalledTransformers(cmd.Context(), python)
	dir, wrong := engine.OverlayFolder(".")
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	o, err := engine.MakeOverlay(dir, source, version)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "parity: copied transformers %s, %d files; live runs use the copy until parity transformers restore\n", version, len(o.Files))
	}
	return o, err
}

func copyStatus(cmd *cobra.Command, _ []string) error {
	o, err := engine.FindOverlay(".")
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if o == nil {
		_, err := fmt.Fprintln(w, "runs use the installed transformers")
		return err
	}
	fmt.Fprintf(w, "runs use the copy of transformers %s in %s\n", o.Version, o.Package())
	_, err = listChanges(w, o)
	return err
}

// listChanges prints the edits and says how many there are.
func listChanges(w io.Writer, o *engine.Overlay) (int, error) {
	changes, err := o.Changes()
	for _, line := range changes {
		fmt.Fprintln(w, line)
	}
	if err == nil && len(changes) == 0 {
		fmt.Fprintln(w, "nothing in it is changed")
	}
	return len(changes), err
}

// removeCopy removes one whose edits would be lost, or whose list is damaged, only by force.
func removeCopy(w io.Writer, force bool) error {
	o, err := engine.FindOverlay(".")
	switch {
	case err != nil && !force:
		return err
	case err == nil && o == nil:
		_, err := fmt.Fprintln(w, "there is no copy: runs use the installed transformers")
		return err
	case err == nil:
		if n, err := listChanges(w, o); !force && err != nil {
			return err
		} else if !force && n > 0 {
			return usage("transformers restore: %d edited files would be lost: --force removes them", n)
		}
	}
	dir, err := engine.OverlayFolder(".")
	if err == nil {
		err = engine.RemoveOverlay(dir)
	}
	if err == nil {
		_, err = fmt.Fprintln(w, "removed: runs use the installed transformers again")
	}
	return err
}
