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
			return f.init(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
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
	return nil
}

func (f *initFlags) init(ctx context.Context, stdout, stderr io.Writer) error {
	if err := setting.MayUpdate(os.Getenv); err != nil {
		return &exitError{exitUsage, err}
	}
	files, run, err := f.files()
	if err != nil {
		return err
	}
	if err := writeNew(files); err != nil {
		return err
	}
	r, problems, err := f.judge(ctx, run, stdout, stderr)
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
		return &exitError{code: exitMismatch}
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

// files are the fixture, its test and, where there is none, the module; and how the candidate is run.
func (f *initFlags) files() (files []newFile, run setting.Run, err error) {
	y := initYAML{prompt: f.prompt}
	if f.golden != "" {
		if y.golden, err = store.OpenCases(f.golden, dump.Options{}); err != nil {
			return nil, "", err
		}
		defer dump.CloseAll(y.golden)
		for _, run := range y.golden { // what makes no goldens is refused before anything is written
			if err := session.MakesGoldens(run); err != nil {
				return nil, "", err
			}
		}
	}
	if isModel(f.candidate) {
		run = setting.RunCPU
		err = y.ofModel(f.candidate, f.dir, f.engine)
	} else {
		err = y.ofDump(f.candidate)
	}
	if err != nil {
		return nil, "", err
	}
	text, err := y.text()
	if err != nil {
		return nil, "", err
	}
	abs, err := filepath.Abs(f.dir)
	if err != nil {
		return nil, "", err
	}
	test := testText
	if y.paths {
		test += pathsText
	}
	files = []newFile{
		{filepath.Join(f.dir, fixture.FileName), text},
		{filepath.Join(f.dir, "port_test.go"), strings.ReplaceAll(test, "PACKAGE", packageName(filepath.Base(abs)))},
	}
	if !inModule(abs) {
		root := "."
		if !filepath.IsLocal(f.dir) {
			root = f.dir
		}
		at, err := filepath.Abs(root)
		if err != nil {
			return nil, "", err
		}
		files = append(files, newFile{filepath.Join(root, "go.mod"), "module " + packageName(filepath.Base(at)) + "\n\ngo 1.26.0\n"})
	}
	return files, run, nil
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

// writeNew writes files of which none may be there yet, nor goldens or runs beside them.
func writeNew(files []newFile) error {
	dir := filepath.Dir(files[0].path)
	for _, path := range []string{filepath.Join(dir, "golden"), filepath.Join(dir, "runs"), files[0].path, files[1].path} {
		if exists(path) {
			return usage("init: %s is there already: choose another folder with -o DIR", path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		w, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, f.text)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
	}
	return nil
}

// judge imports the goldens, judges the candidate, and keeps its run. problems says that something is
// wrong with the fixture or the runs besides, which is printed.
func (f *initFlags) judge(ctx context.Context, run setting.Run, stdout, stderr io.Writer) (r *report.Report, problems bool, err error) {
	err = renew(session.Config{Fixtures: []string{f.dir}, Update: setting.UpdateAll, GoldenDump: f.golden, Console: consoles(stderr), Context: ctx}, stdout)
	if err != nil {
		return nil, false, err
	}
	cfg := session.Config{Fixtures: []string{f.dir}, Run: run, Record: recorded, Diagnose: setting.DiagnoseFull,
		Console: consoles(stderr), Context: ctx}
	if run == "" {
		cfg.Replay = f.candidate
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

// initYAML is what becomes fixture.yaml.
type initYAML struct {
	golden []*dump.Run
	prompt string // of torch, where there is no golden; "" for what is planned
	paths  bool   // execution paths are planned, too: an engine of one's own may have none
	model  string // the lines of model
	rules  []match.Proposed
}

// ofModel lets an engine run a model on the golden's tokens. dir is the fixture's folder.
func (y *initYAML) ofModel(model, dir, by string) error {
	task, _, err := guessTask(model, true, "")
	if err != nil {
		return err
	}
	path, err := relative(dir, model)
	if err != nil {
		return err
	}
	if strings.HasSuffix(by, ".py") {
		if by, err = relative(dir, by); err != nil {
			return err
		}
	}
	for _, g := range y.golden {
		if len(g.Info.Asked()) == 0 {
			return usage("init: the run.json of %s has no token_ids, which %s would be run on", g.Path, model)
		}
	}
	y.paths = len(y.golden) == 0 && y.prompt == "" && !strings.HasSuffix(by, ".py")
	y.model = fmt.Sprintf("model:\n  path: %s\n  task: %s\n", quote(path), task)
	if by != engine.MAX {
		y.model += "  engine: " + quote(by) + "\n"
	}
	y.model += fmt.Sprintf("  encodings:\n    cpu: {reference: %s, candidate: float32}\n", y.variant())
	return nil
}

// relative is a path as a fixture in dir writes it.
func relative(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

// ofDump joins what the names of the dump leave open.
func (y *initYAML) ofDump(path string) error {
	actual, err := store.OpenCases(path, dump.Options{})
	if err != nil {
		return err
	}
	defer dump.CloseAll(actual)
	k := judge.Case{Golden: y.golden[0], Actual: actual[0]}
	if !bothLeft(k, match.Options{}) {
		return nil
	}
	p, err := k.Propose(match.Options{})
	if err != nil || p.Foreign != "" {
		return err // of two models: the verdict says so
	}
	y.rules = proven(p.Rules)
	return nil
}

// variant is the type in which the reference ran.
func (y *initYAML) variant() string {
	if len(y.golden) == 0 {
		return tensor.F32.String()
	}
	return cmp.Or(y.golden[0].Info.Encoding.Compute, tensor.F32.String())
}

func (y *initYAML) text() (string, error) {
	var b strings.Builder
	b.WriteString("# Made by parity init. All keys: https://github.com/goparity/goparity/blob/main/docs/fixture.md\n\n" + y.model)
	if v := y.variant(); v != tensor.F32.String() {
		fmt.Fprintf(&b, "references: [%s]\n", v)
	}
	switch {
	case len(y.golden) > 0:
		b.WriteString("cases:\n")
	case y.prompt != "":
		fmt.Fprintf(&b, "cases:\n  short: {prompt: %s}\n", quote(y.prompt))
	case y.paths:
		b.WriteString("cases: auto   # parity golden plan lists them\n")
	default:
		b.WriteString("cases: auto   # parity golden plan lists them\npaths: []     # the execution paths that the engine can run: docs/paths.md\n")
	}
	for _, g := range y.golden {
		var keys []string
		if ids := g.Info.Asked(); len(ids) > 0 {
			text, err := json.Marshal(ids)
			if err != nil {
				return "", err
			}
			keys = append(keys, "token_ids: "+strings.ReplaceAll(string(text), ",", ", "))
		}
		if n := len(g.Steps()); n > 1 {
			keys = append(keys, fmt.Sprintf("steps: %d", n))
		}
		fmt.Fprintf(&b, "  %s: {%s}\n", cmp.Or(g.Info.Case, "run"), strings.Join(keys, ", "))
	}
	if len(y.rules) > 0 {
		b.WriteString("\n" + (&match.Proposal{Rules: y.rules}).YAML())
	}
	b.WriteString("\nreplay: " + recorded + "   # runs/" + recorded + ", which go test judges\n")
	return b.String(), nil
}

func quote(s string) string {
	text, _ := json.Marshal(s) // of a string it does not fail
	return string(text)
}
