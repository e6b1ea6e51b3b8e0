package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/subtest"
	"github.com/goparity/goparity/tensor"
)

// recorded is the name of the run that init records.
const recorded = "candidate"

type initFlags struct {
	golden, candidate, dir string
	engine, prompt         string
}

func newInit() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init [GOLDEN] DUMP|MODEL",
		Short: "write a Go test of two dumps, or of a model in two engines, and print its first verdict",
		Long: "init makes a folder with fixture.yaml, the goldens, the candidate's run and a Go test that judges it, and a\n" +
			"go.mod where there is none. GOLDEN is the reference's dump; without one torch runs the model. The candidate\n" +
			"is a dump, or the folder of a model, which --engine then runs on the golden's tokens. Layers with names of\n" +
			"their own get rules, where equal values speak for them. Nothing is overwritten.\n\n" +
			"Without GOLDEN and --prompt, cases: auto plans inputs and execution paths that cross the model's boundaries.\n\n" +
			"The verdict needs no Go: that is for go test.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.candidate = args[len(args)-1]
			if len(args) == 2 {
				f.golden = args[0]
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return f.init(cmd.Context(), cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.engine, "engine", engine.MAX, "what runs a model: `max`, mlx, torch, or a file: docs/your-engine.md")
	c.Flags().StringVar(&f.prompt, "prompt", "", "without GOLDEN: the `text` that is run, in place of the inputs that golden plan lists")
	c.Flags().StringVarP(&f.dir, "output", "o", "port", "the `folder` of the test, a package")
	return c
}

// check refuses flags that would have no effect, and a reference that cannot be run.
func (f *initFlags) check(changed func(string) bool) error {
	switch model := isModel(f.candidate); {
	case f.golden == "" && !model:
		return usage("init: %s is no model folder (config.json, *.safetensors): a dump goes with a golden, %s",
			f.candidate, subtest.Command("parity", "init", "GOLDEN", f.candidate))
	case !new(engine.Job).Use(f.engine):
		return usage("init: --engine %s: want %s, or a file", f.engine, engine.Names())
	case changed("engine") && !model:
		return usage("init: --engine runs a model, and %s is a dump", f.candidate)
	case changed("prompt") && f.golden != "":
		return usage("init: --prompt and %s: the golden has the tokens", f.golden)
	}
	return mayUpdate()
}

func (f *initFlags) init(ctx context.Context, stdout io.Writer) error {
	files, err := f.files()
	if err != nil {
		return err
	}
	if err := f.writeNew(files); err != nil {
		return err
	}
	r, problems, err := f.judge(ctx, stdout)
	if err != nil {
		return fmt.Errorf("%s is written, but could not be judged: %w", f.dir, err)
	}
	if err := report.Text(stdout, r, textOptions(stdout, false, "")); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	for _, file := range files {
		fmt.Fprintf(stdout, "written: %s\n", sanitize.Line(file.path))
	}
	fmt.Fprintf(stdout, "next: %s\n", f.next(len(files) == 3))
	if problems && r.Verdict == report.Pass {
		return errMismatch
	}
	return exitOf(r)
}

// next is the command that runs the test, in a module that needs goparity or has it.
func (f *initFlags) next(newModule bool) string {
	pkg := "./" + filepath.ToSlash(f.dir)
	if filepath.IsAbs(f.dir) || strings.HasPrefix(f.dir, "..") {
		pkg = f.dir
	}
	test := subtest.Command("go", "test", pkg)
	if newModule {
		return "go get github.com/goparity/goparity@latest && " + test + " (Go 1.26 or later)"
	}
	return test + " (go get github.com/goparity/goparity@latest, if go.mod does not have it)"
}

// newFile is a file that init writes.
type newFile struct{ path, text string }

// files are the fixture, its test and, where there is none, the module.
func (f *initFlags) files() (files []newFile, err error) {
	y, err := f.fixture()
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(f.dir)
	if err != nil {
		return nil, err
	}
	test := testText
	if strings.Contains(y, plannedPaths) {
		test += pathsText
	}
	files = []newFile{
		{filepath.Join(f.dir, fixture.FileName), y},
		{filepath.Join(f.dir, "port_test.go"), strings.ReplaceAll(test, "PACKAGE", packageName(filepath.Base(abs)))},
	}
	if inModule(abs) {
		return files, nil
	}
	root := "."
	if !filepath.IsLocal(f.dir) {
		root = f.dir
	}
	at, err := filepath.Abs(root)
	module := "module " + packageName(filepath.Base(at)) + "\n\ngo 1.26.0\n"
	return append(files, newFile{filepath.Join(root, "go.mod"), module}), err
}

const testText = `package PACKAGE

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture(".")) }

// TestPort judges each layer that both runs recorded, by the tolerances of fixture.yaml or the defaults.
func TestPort(t *testing.T) { parity.All(t).Check() }
`

const pathsText = `
// TestPaths judges the same tokens in chunks, a batch, after a cache and so on.
func TestPaths(t *testing.T) { parity.Paths(t).Check() }
`

// writeNew writes files where none of them, nor anything else of a fixture, is.
func (f *initFlags) writeNew(files []newFile) error {
	for _, path := range []string{filepath.Join(f.dir, "golden"), filepath.Join(f.dir, "runs"), files[0].path, files[1].path} {
		if exists(path) {
			return usage("init: %s is there already: choose another folder with -o DIR", path)
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		w, err := os.OpenFile(file.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, file.text)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
	}
	return nil
}

// judge imports the goldens, judges the candidate, and keeps its run. problems says that something is
// wrong with the fixture or the runs besides, which is printed.
func (f *initFlags) judge(ctx context.Context, stdout io.Writer) (r *report.Report, problems bool, err error) {
	cfg := session.Config{Fixtures: []string{f.dir}, Update: setting.UpdateAll, GoldenDump: f.golden, Context: ctx}
	if err := renew(cfg, stdout); err != nil {
		return nil, false, err
	}
	cfg = session.Config{Fixtures: []string{f.dir}, Run: setting.RunCPU, Record: recorded, Diagnose: setting.DiagnoseFull,
		Context: ctx}
	if !isModel(f.candidate) {
		cfg.Run, cfg.Replay = "", f.candidate
	}
	s, err := session.Start(cfg)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fx := s.Default()
	c, err := fx.Comparison()
	if err != nil {
		return nil, false, err
	}
	problems = printProblems(stdout, fx, c)
	if r, err = fx.Report(); err != nil {
		return nil, false, err
	}
	return r, problems, s.Finish(io.Discard)
}

// isModel reports whether a path is a folder of Hugging Face's form.
func isModel(path string) bool {
	return exists(filepath.Join(path, "config.json")) && !exists(filepath.Join(path, dump.RunFile))
}

// inModule reports whether a folder that need not be there yet is in a Go module.
func inModule(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

var notName = regexp.MustCompile(`[^a-z0-9_]+`)

// packageName makes a name of Go of a folder's.
func packageName(folder string) string {
	name := notName.ReplaceAllString(strings.ToLower(folder), "")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p" + name
	}
	return name
}

// What fixture.yaml says of planned cases. An engine of one's own may have no paths.
const (
	plannedPaths = "cases: auto   # parity golden plan lists them, and the execution paths\n"
	plannedCases = "cases: auto   # parity golden plan lists them\n" +
		"paths: []     # the execution paths that the engine can run: docs/paths.md\n"
)

// fixture is the text of fixture.yaml. What makes no goldens is refused.
func (f *initFlags) fixture() (string, error) {
	var golden []*dump.Run
	variant := tensor.F32.String() // the type in which the reference ran
	if f.golden != "" {
		var err error
		if golden, err = store.OpenCases(f.golden, dump.Options{}); err != nil {
			return "", err
		}
		defer dump.CloseAll(golden)
		variant = cmp.Or(golden[0].Info.Encoding.Compute, variant)
	}
	var b strings.Builder
	b.WriteString("# Made by parity init. All keys: https://github.com/goparity/goparity/blob/main/docs/fixture.md\n\n")
	rules := ""
	if isModel(f.candidate) {
		if err := f.writeModel(&b, golden, variant); err != nil {
			return "", err
		}
	} else {
		var err error
		if rules, err = f.rules(golden[0]); err != nil {
			return "", err
		}
	}
	if variant != tensor.F32.String() {
		fmt.Fprintf(&b, "references: [%s]\n", variant)
	}
	switch {
	case golden != nil:
		if err := writeCases(&b, golden); err != nil {
			return "", err
		}
	case f.prompt != "":
		fmt.Fprintf(&b, "cases:\n  short: {prompt: %s}\n", quote(f.prompt))
	case strings.HasSuffix(f.engine, ".py"):
		b.WriteString(plannedCases)
	default:
		b.WriteString(plannedPaths)
	}
	b.WriteString(rules + "\nreplay: " + recorded + "   # runs/" + recorded + ", which go test judges\n")
	return b.String(), nil
}

// writeModel lets an engine run a model on the golden's tokens.
func (f *initFlags) writeModel(b *strings.Builder, golden []*dump.Run, variant string) error {
	for _, g := range golden {
		if len(g.Info.Asked()) == 0 {
			return usage("init: the run.json of %s has no token_ids, which %s would be run on", g.Path, f.candidate)
		}
	}
	task, _, err := guessTask(f.candidate, f.candidate)
	if err != nil {
		return err
	}
	beside := func(path string) string { // as a fixture in the folder writes it
		from, e1 := filepath.Abs(f.dir)
		to, e2 := filepath.Abs(path)
		rel, e3 := filepath.Rel(from, to)
		err = errors.Join(err, e1, e2, e3)
		return quote(filepath.ToSlash(rel))
	}
	fmt.Fprintf(b, "model:\n  path: %s\n  task: %s\n", beside(f.candidate), task)
	switch {
	case strings.HasSuffix(f.engine, ".py"):
		fmt.Fprintf(b, "  engine: %s\n", beside(f.engine))
	case f.engine != engine.MAX:
		fmt.Fprintf(b, "  engine: %s\n", quote(f.engine))
	}
	fmt.Fprintf(b, "  encodings:\n    cpu: {reference: %s, candidate: float32}\n", variant)
	return err
}

// writeCases writes those of the golden.
func writeCases(b *strings.Builder, golden []*dump.Run) error {
	b.WriteString("cases:\n")
	for _, g := range golden {
		if err := session.MakesGoldens(g); err != nil {
			return err
		}
		var keys []string
		if ids := g.Info.Asked(); len(ids) > 0 {
			text, err := json.Marshal(ids)
			if err != nil {
				return err
			}
			keys = append(keys, "token_ids: "+strings.ReplaceAll(string(text), ",", ", "))
		}
		if n := len(g.Steps()); n > 1 {
			keys = append(keys, fmt.Sprintf("steps: %d", n))
		}
		fmt.Fprintf(b, "  %s: {%s}\n", cmp.Or(g.Info.Case, "run"), strings.Join(keys, ", "))
	}
	return nil
}

// rules join what the names of the dump leave open.
func (f *initFlags) rules(golden *dump.Run) (string, error) {
	actual, err := store.OpenCases(f.candidate, dump.Options{})
	if err != nil {
		return "", err
	}
	defer dump.CloseAll(actual)
	k := judge.Case{Golden: golden, Actual: actual[0]}
	if !bothLeft(k, match.Options{}) {
		return "", nil
	}
	p, err := k.Propose(match.Options{})
	if err != nil || p.Foreign != "" {
		return "", err // of two models: the verdict says so
	}
	rules := proven(p.Rules)
	if len(rules) == 0 {
		return "", nil
	}
	return "\n" + (&match.Proposal{Rules: rules}).YAML(), nil
}

func quote(s string) string {
	text, _ := json.Marshal(s) // of a string it does not fail
	return string(text)
}
