package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

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
	"github.com/goparity/goparity/tensor"
)

type initFlags struct {
	golden, candidate, dir string
	engine, prompt         string
}

func newInit() *cobra.Command {
	var f initFlags
	c := command("init", cobra.RangeArgs(1, 2), f.init)
	c.PreRunE = f.check
	c.Flags().StringVar(&f.engine, "engine", engine.MAX, "what runs a model: `max`, mlx, torch, or a file: docs/your-engine.md")
	c.Flags().StringVar(&f.prompt, "prompt", "", "without GOLDEN: the `text` that is run, in place of the inputs that golden plan lists")
	c.Flags().StringVarP(&f.dir, "output", "o", "port", "the `folder` of the test, a package")
	return c
}

// check reads the arguments, and refuses flags that would have no effect, and a reference that cannot be run.
func (f *initFlags) check(cmd *cobra.Command, args []string) error {
	if f.candidate = args[len(args)-1]; len(args) == 2 {
		f.golden = args[0]
	}
	changed := cmd.Flags().Changed
	switch model := isModel(f.candidate); {
	case f.golden == "" && !model:
		return usage("init: %s is no model folder (config.json, *.safetensors): a dump goes with a golden, %s",
			f.candidate, setting.Command("parity", "init", "GOLDEN", f.candidate))
	case !new(engine.Job).Use(f.engine):
		return usage("init: --engine %s: want %s, or a file", f.engine, engine.Names())
	case changed("engine") && !model:
		return usage("init: --engine runs a model, and %s is a dump", f.candidate)
	case changed("prompt") && f.golden != "":
		return usage("init: --prompt and %s: the golden has the tokens", f.golden)
	}
	return mayUpdate()
}

func (f *initFlags) init(cmd *cobra.Command, _ []string) error {
	stdout := cmd.OutOrStdout()
	p, err := f.port()
	if err != nil {
		return err
	}
	written, err := f.write(p)
	if err != nil {
		return err
	}
	r, err := f.judge(cmd.Context(), stdout)
	if err != nil {
		return fmt.Errorf("%s is written, but could not be judged: %w", f.dir, err)
	}
	if err := report.Text(stdout, r, textOptions(stdout, false, "")); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	for _, file := range written {
		fmt.Fprintf(stdout, "written: %s\n", sanitize.Line(file))
	}
	fmt.Fprintf(stdout, "next: %s\n", f.next(p))
	return exitOf(r)
}

// next is the command that runs the test, in a module that needs goparity or has it.
func (f *initFlags) next(p *port) string {
	pkg := "./" + filepath.ToSlash(f.dir)
	if filepath.IsAbs(f.dir) || strings.HasPrefix(f.dir, "..") {
		pkg = f.dir
	}
	test := setting.Command("go", "test", pkg)
	if p.Module != "" {
		return "go get github.com/goparity/goparity@latest && " + test + " (Go 1.26 or later)"
	}
	return test + " (go get github.com/goparity/goparity@latest, if go.mod does not have it)"
}

// port is what fills the templates of a new test, quoted where YAML wants it.
type port struct {
	Path, Task, Engine string // of a model that is run
	Variant            string // the type in which the reference ran
	Cases              []string
	Paths              bool // execution paths are planned
	Rules              string
	Recorded           string // name of the candidate's run
	Package            string
	Module             string // "" in a module that is there
}

//go:embed port
var portFiles embed.FS

func (f *initFlags) write(p *port) (written []string, err error) {
	texts, err := template.ParseFS(portFiles, "port/*")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{fixture.FileName, "port_test.go", "golden", "runs"} {
		if path := filepath.Join(f.dir, name); exists(path) {
			return nil, usage("init: %s is there already: choose another folder with -o DIR", path)
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{fixture.FileName, "port_test.go", "go.mod"} {
		path := filepath.Join(f.dir, name)
		if name == "go.mod" && p.Module == "" {
			continue
		} else if name == "go.mod" && filepath.IsLocal(f.dir) {
			path = name
		}
		err := writeFile(path, func(w io.Writer) error { return texts.ExecuteTemplate(w, name+".tmpl", p) })
		if err != nil {
			return nil, err
		}
		written = append(written, path)
	}
	return written, nil
}

func (f *initFlags) judge(ctx context.Context, stdout io.Writer) (r *report.Report, err error) {
	cfg := session.Config{Fixtures: []string{f.dir}, Update: setting.UpdateAll, GoldenDump: f.golden, Context: ctx}
	if err := renew(cfg, stdout); err != nil {
		return nil, err
	}
	cfg = session.Config{Fixtures: []string{f.dir}, Run: setting.RunCPU, Record: recorded, Diagnose: setting.DiagnoseFull,
		Context: ctx}
	if !isModel(f.candidate) {
		cfg.Run, cfg.Replay = "", f.candidate
	}
	err = inSession(cfg, func(s *session.Session, fx *session.Fixture) error {
		if r, err = fx.Report(); err != nil {
			return err
		}
		return s.Finish(io.Discard)
	})
	return r, err
}

// isModel reports whether a path is a folder of Hugging Face's form.
func isModel(path string) bool {
	return exists(filepath.Join(path, "config.json")) && !exists(filepath.Join(path, dump.RunFile))
}

// inModule reports whether a folder that need not be there yet is in a Go module.
func inModule(dir string) bool {
	return exists(filepath.Join(dir, "go.mod")) || dir != filepath.Dir(dir) && inModule(filepath.Dir(dir))
}

var notName = regexp.MustCompile(`[^a-z0-9_]+`)

// packageName makes a name of Go of a folder's.
func packageName(folder string) string {
	name := notName.ReplaceAllString(strings.ToLower(filepath.Base(folder)), "")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p" + name
	}
	return name
}

const recorded = "candidate"

// port reads what is written of the golden, the candidate and the folder. What makes no goldens is refused.
func (f *initFlags) port() (*port, error) {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return nil, err
	}
	p := &port{Variant: tensor.F32.String(), Recorded: recorded, Package: packageName(dir)}
	if !inModule(dir) {
		p.Module = p.Package
		if wd, err := os.Getwd(); err == nil && filepath.IsLocal(f.dir) {
			p.Module = packageName(wd)
		}
	}
	var golden []*dump.Run
	if f.golden != "" {
		if golden, err = store.OpenCases(f.golden, dump.Options{}); err != nil {
			return nil, err
		}
		defer dump.CloseAll(golden)
		p.Variant = cmp.Or(golden[0].Info.Encoding.Compute, p.Variant)
	}
	switch {
	case golden != nil:
		p.Cases, err = casesOf(golden)
	case f.prompt != "":
		p.Cases = []string{"short: {prompt: " + quote(f.prompt) + "}"}
	default:
		p.Paths = !strings.HasSuffix(f.engine, ".py") // an engine of one's own may have none
	}
	if err != nil {
		return nil, err
	}
	if isModel(f.candidate) {
		return p, f.model(p, golden)
	}
	actual, err := store.OpenCases(f.candidate, dump.Options{})
	if err != nil {
		return nil, err
	}
	defer dump.CloseAll(actual)
	if rules := byValue(judge.Case{Golden: golden[0], Actual: actual[0]}, match.Options{}); len(rules) > 0 {
		p.Rules = (&match.Proposal{Rules: rules}).YAML()
	}
	return p, nil
}

// model lets an engine run a model on the golden's tokens.
func (f *initFlags) model(p *port, golden []*dump.Run) (err error) {
	for _, g := range golden {
		if len(g.Info.Asked()) == 0 {
			return usage("init: the run.json of %s has no token_ids, which %s would be run on", g.Path, f.candidate)
		}
	}
	if p.Path, err = f.beside(f.candidate); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(f.engine, ".py"):
		if p.Engine, err = f.beside(f.engine); err != nil {
			return err
		}
	case f.engine != engine.MAX:
		p.Engine = quote(f.engine)
	}
	p.Task, _, err = guessTask(f.candidate, f.candidate)
	return err
}

func (f *initFlags) beside(path string) (string, error) {
	from, e1 := filepath.Abs(f.dir)
	to, e2 := filepath.Abs(path)
	rel, e3 := filepath.Rel(from, to)
	return quote(filepath.ToSlash(rel)), errors.Join(e1, e2, e3)
}

func casesOf(golden []*dump.Run) (cases []string, err error) {
	for _, g := range golden {
		if err := session.MakesGoldens(g); err != nil {
			return nil, err
		}
		var keys []string
		if ids := g.Info.Asked(); len(ids) > 0 {
			keys = append(keys, "token_ids: "+strings.ReplaceAll(quote(ids), ",", ", "))
		}
		if n := len(g.Steps()); n > 1 {
			keys = append(keys, fmt.Sprintf("steps: %d", n))
		}
		cases = append(cases, fmt.Sprintf("%s: {%s}", cmp.Or(g.Info.Case, "run"), strings.Join(keys, ", ")))
	}
	return cases, nil
}

// quote writes a text, or numbers, as JSON, which is YAML, too.
func quote(v any) string {
	text, _ := json.Marshal(v) // of these it does not fail
	return string(text)
}
