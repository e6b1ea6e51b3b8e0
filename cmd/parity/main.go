// Command parity judges a model port against its reference without writing Go tests.
//
//	parity compare --golden TORCH_DUMP --actual MAX_DUMP
//
// Exit codes: 0 pass, 1 mismatch, 2 usage, 3 nothing or too little could be compared, or the
// infrastructure failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/mapfile"
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

// exitError carries an exit code; an empty text was printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run is the whole command, for tests too. Errors of flags and arguments are usage, all others
// infrastructure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := mapfile.Guard(func() error { return root.ExecuteContext(ctx) })
	if err == nil {
		return exitPass
	}
	code := exitInfra
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintf(stderr, "parity: %s\n", printable(msg))
	}
	if code == exitUsage {
		fmt.Fprintln(stderr, "run 'parity help' or 'parity COMMAND --help' for usage")
	}
	return code
}

// printable quotes what a file may have brought into a message and a terminal would obey.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Flags().Bool("version", false, "version, commit and Go of this build")
	root.SetVersionTemplate("parity {{.Version}}\n")
	root.AddCommand(newRun(), newCompare(), newVerify(), newReport(), newUpdate(), newTransformers(), newShow(),
		newGolden(), newDoctor(), newJUnit(), newTry())
	for _, c := range root.Commands() {
		strict(c)
	}
	return root
}

// strict makes wrong flags and arguments usage errors.
func strict(c *cobra.Command) {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	if args := c.Args; args != nil {
		c.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return &exitError{exitUsage, fmt.Errorf("%s: %w", cmd.CommandPath(), err)}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}
