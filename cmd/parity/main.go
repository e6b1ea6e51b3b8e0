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
	_ "embed" // help.txt
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/setting"
)

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

// run is the whole command. Errors before a command runs are usage, all others infrastructure, if they do not say.
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
	root := group("parity", newInit(), newRun(), newCompare(), newNames(), newShow(), newWeights(), newServe(), newReport(), newExplain(),
		newGolden(), newTransformers(), newDoctor())
	root.SilenceErrors, root.SilenceUsage, root.Version, root.Args = true, true, version(), nil
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: setting.Command("parity")}
	root.Flags().Bool("version", false, "version, commit and Go of this build")
	root.SetVersionTemplate("parity {{.Version}}\n")
	return root
}

//go:embed help.txt
var helpText string

var help = template.Must(template.New("help.txt").Parse(helpText))

// command is one of which help.txt has the words, in the section of its name.
func command(name string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	var b strings.Builder
	err := help.ExecuteTemplate(&b, name, map[string]string{"formats": dump.Formats(), "key": serving.KeyVariable,
		"recorded": strings.Join(limitKeys((*compare.Criterion).Rejudges), ", "),
		"tensors":  strings.Join(limitKeys(func(c *compare.Criterion) bool { return !c.Recorded }), ", ")})
	if err != nil {
		panic(err) // the text is ours, and tests make all commands
	}
	use, rest, _ := strings.Cut(b.String(), "\n")
	short, long, _ := strings.Cut(rest, "\n")
	return &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(long), Args: args, RunE: run}
}

// group is a command that only has commands of its own: alone it says which.
func group(name string, commands ...*cobra.Command) *cobra.Command {
	c := command(name, subcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	c.AddCommand(commands...)
	return c
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

// notEmpty refuses a flag without a value, as --names="$UNSET" is: it would not be used, silently.
func notEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = usage("--%s has no value", f.Name)
		}
	})
	return err
}

// stamp is version and commit of a build of the Makefile: -buildvcs fails where git refuses the checkout.
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// writeOutput writes what a flag with a file asks for: nothing without one, and to stdout for "-".
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	return writeFile(path, write)
}

func writeJSON(path string, stdout io.Writer, v any) error {
	return writeOutput(path, stdout, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	var named *fs.PathError // it says which file
	if err != nil && !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, file.Close())
}

const reportName = "report.json"

func readReport(path string) (*report.Report, error) {
	f, err := mapfile.Reader(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func findReport(path string) (r *report.Report, file string, err error) {
	if file = path; mapfile.IsFolder(path) {
		file = filepath.Join(path, reportName)
	}
	if r, err = readReport(file); file != path && errors.Is(err, fs.ErrNotExist) {
		err = noReport(path)
	}
	return r, file, err
}

func noReport(path string) error {
	return fmt.Errorf("%s has no %s: parity compare --json, parity compare -o and go test with PARITY_OUT write one", path, reportName)
}

// foldersOf lists a folder and all below it, but for hidden ones, in the order of their paths.
func foldersOf(path string) (dirs []string, err error) {
	err = filepath.WalkDir(path, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case dir != path && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		dirs = append(dirs, dir)
		return nil
	})
	return dirs, err
}

func writeTable(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// textOptions: colour and the real width on a terminal, plain text elsewhere and with NO_COLOR.
func textOptions(w io.Writer, verbose bool, file string) report.TextOptions {
	width, ok := terminal(w)
	return report.TextOptions{Verbose: verbose, File: file, All: "all with -v", Width: width,
		Color: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// terminal reports whether w is one, and how wide it is, 0 where that is not known.
func terminal(w io.Writer) (width int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, _ = term.GetSize(int(f.Fd()))
	return width, true
}

// worthALine is how many bytes are compared before one could read how far it is.
const worthALine = 1 << 30

// progress returns what shows on a terminal how far something is, from a total of least on, and what clears its line.
func progress(w io.Writer, what string, least int64) (set func(done, total int64), end func()) {
	if _, ok := terminal(w); !ok {
		return nil, func() {}
	}
	var mu sync.Mutex
	line, shown := "", int64(0)
	show := func(text string) {
		fmt.Fprintf(w, "\r%s\r%s", strings.Repeat(" ", len(line)), text)
		line = text
	}
	set = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		switch at := 100 * done / total; {
		case total < least || at <= shown: // workers report out of order
		case done >= total:
			show("")
		default:
			shown = at
			show(fmt.Sprintf("%s: %d %%", what, at))
		}
	}
	return set, func() { set(least+1, least+1) } // all is done
}
