// Command parity judges a model port against its reference without writing Go tests.
//
//	parity compare TORCH_DUMP MAX_DUMP
//
// Exit codes: 0 pass, 1 mismatch, 2 usage, 3 nothing or too little could be compared, or the
// infrastructure failed.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
)

// Exit codes.
const (
	exitPass     = 0
	exitMismatch = 1
	exitUsage    = 2
	exitInfra    = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends this process at once, and the watchdog the engine
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exitError carries an exit code.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// What was explained already has an exit code, and no text.
var (
	errMismatch error = &exitError{exitMismatch, errors.New("")}
	errInfra    error = &exitError{exitInfra, errors.New("")}
)

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var e *exitError
	var scope *judge.ScopeError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &scope), engine.Class(err) == engine.ClassUsage:
		return exitUsage
	}
	return exitInfra
}

// run is the whole command, for tests too. Errors before a command runs, of its flags and arguments, are usage, all
// others infrastructure, but for those that say what they are.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root, started := newRoot(), false
	root.SetArgs(today(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmp.Or(notEmpty(cmd), cmd.ValidateFlagGroups())
		started = err == nil
		return err
	}
	err := mapfile.Guard(func() error {
		if len(args) > 0 && gone[args[0]] != "" {
			return usage("%s is no command any more: %s", args[0], gone[args[0]])
		}
		return root.ExecuteContext(ctx)
	})
	code := codeOf(err)
	if err != nil && !started {
		code = exitUsage
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintf(stderr, "parity: %s\n", sanitize.Text(err.Error()))
	}
	if code == exitUsage {
		fmt.Fprintf(stderr, "run '%s' or '%s' for usage\n", setting.Command("parity", "help"),
			setting.Command("parity", "COMMAND", "--help"))
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "parity",
		Short: "which layer is the first that computes something else, and who made the error",
		Long: "parity compares what a model port computed with what the reference computed, layer by layer.\n\n" +
			"exit codes: 0 pass, 1 mismatch, 2 usage, 3 nothing or too little could be compared, or the infrastructure failed",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: setting.Command("parity")},
		RunE:          group,
	}
	root.Flags().Bool("version", false, "version, commit and Go of this build")
	root.SetVersionTemplate("parity {{.Version}}\n")
	root.AddCommand(newInit(), newRun(), newCompare(), newNames(), newShow(), newWeights(), newServe(), newReport(), newExplain(),
		newGolden(), newTransformers(), newDoctor())
	return root
}

// earlier are commands of earlier versions, by what they are called now. What follows them goes on meaning the same.
var earlier = map[string][]string{
	"attention": {"show", "--by=head"},
	"cause":     {"explain"},
	"generate":  {"compare", "--tokens=0"},
	"plan":      {"golden", "plan"},
	"program":   {"golden", "program"},
	"try":       {"compare"},
	"update":    {"golden", "update"},
}

// gone are commands of earlier versions in whose place others are.
var gone = map[string]string{
	"verify": "parity golden update FIXTURE runs the reference, parity compare FIXTURE --run cpu -o FOLDER the candidate; " +
		"parity compare judges two dumps",
}

// today returns arguments with the command as it is called now.
func today(args []string) []string {
	if len(args) > 0 && earlier[args[0]] != nil {
		return slices.Concat(earlier[args[0]], args[1:])
	}
	return args
}

// group is what a command does that only has commands of its own: help.
func group(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// subcommand refuses a word that is no command of a group, and names the nearest.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	cmd.SuggestionsMinimumDistance = 2
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		near = fmt.Sprintf(", did you mean %q?", names[0])
	}
	return usage("unknown command %q for %q%s", args[0], cmd.CommandPath(), near)
}

// notEmpty returns an error for a flag that was given without a value, as --names="$UNSET" is: it
// would not be used, silently.
func notEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = usage("--%s has no value", f.Name)
		}
	})
	return err
}

// stamp is version and commit of a build of the Makefile, which builds without -buildvcs: that fails
// where git refuses the checkout, and knows nothing in a worktree.
var stamp string

// version says which build of parity this is: version or commit, Go and platform.
func version() string {
	var built string
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version // a tag, or a pseudo-version with the commit; "+dirty" where files were changed
	}
	if built == "" || built == "(devel)" {
		built = "development version, commit not stamped (-buildvcs=false, a git worktree, or no checkout)"
	}
	return cmp.Or(stamp, built) + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
