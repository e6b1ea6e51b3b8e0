package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/supervise"
)

type programFlags struct {
	runFlags
	golden, of string // --golden, --for
}

func newProgram() *cobra.Command {
	f := programFlags{runFlags: runFlags{engine: engine.Torch, device: engine.CPU, print: engine.PrintCheckpoint, precision: 1, steps: 1, ids: []string{"0"}}}
	c := &cobra.Command{
		Use:   "program [MODEL] --golden DIR | --for DUMP",
		Short: "record what the reference runs: a golden's missing program, or one to judge a dump without a golden",
		Long: "program runs a model of torch under fake tensors, on the tokens and in the steps of another run, and keeps\n" +
			"the graph of its tensor operators as " + dump.ProgramFile + ": parity compare replays it piece by piece, which says where a\n" +
			"candidate goes wrong. No weights are read: config.json and the code of MODEL, a folder or a hub id, are enough.\n\n" +
			"--golden DIR adds it to goldens: a fixture (which names its model itself), a golden store, or a dump.\n" +
			"--for DUMP records it for a candidate's dump, next to whose run.json it is written, to be judged without a\n" +
			"golden: parity compare --program DUMP/" + dump.ProgramFile + " --weights CHECKPOINT --actual DUMP.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = strings.Join(args, "")
			return f.record(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.golden, "golden", "", "`folder` of the goldens: a fixture, a store or a dump")
	fl.StringVar(&f.of, "for", "", "a candidate's `dump`, whose tokens and steps are taken")
	fl.StringVarP(&f.out, "output", "o", "", "`file` to write, for a dump of one case (default: "+dump.ProgramFile+" beside its run.json); constants go beside it")
	f.addModel(fl)
	fl.StringVar(&f.program, "program", fixture.ProgramOn, "`on`, or lines: without the text of source lines")
	fl.BoolVar(&f.force, "force", false, "record those again that are there already")
	return c
}

// programCase is a run that a program is recorded for.
type programCase struct {
	run  *dump.Run
	has  bool   // it has a program
	file string // to write; "" in a store
}

// programRuns are the runs that programs are recorded for, and where they go.
type programRuns struct {
	cases   []programCase
	yaml    *fixture.Fixture // nil without a fixture
	store   string           // folder of the golden store; "" for dumps
	variant string           // of its goldens
	close   func() error
}

func (f *programFlags) record(ctx context.Context, stdout, stderr io.Writer) (err error) {
	runs, err := f.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runs.close()) }()
	if err := f.choose(runs); err != nil {
		return err
	}
	job, err := f.programJob(runs)
	if err != nil {
		return err
	}
	tmp, remove, err := supervise.TempDir("", "parity-program-")
	if err != nil {
		return err
	}
	defer remove()
	job.Out = filepath.Join(tmp, "dump")
	logFile, err := engine.LogFile("program")
	if err != nil {
		return err
	}
	r, err := runEngine(ctx, job, logFile, stderr)
	if err != nil {
		return err
	}
	defer r.Close()
	return f.keep(ctx, stdout, runs, r)
}

// open opens the runs that programs are recorded for.
func (f *programFlags) open() (*programRuns, error) {
	switch {
	case (f.golden == "") == (f.of == ""):
		return nil, usage("program: want one of --golden and --for")
	case f.program != fixture.ProgramOn && f.program != fixture.ProgramLines:
		return nil, usage("program: --program %q: want on or lines", f.program)
	case f.of != "":
		return openProgramDumps(f.of)
	}
	dir := f.golden
	if exists(filepath.Join(dir, fixture.FileName)) {
		return openProgramStore(filepath.Join(dir, "golden"), dir)
	}
	if store.KeepsRuns(dir) {
		above := filepath.Dir(filepath.Clean(dir))
		if filepath.Base(filepath.Clean(dir)) != "golden" || !exists(filepath.Join(above, fixture.FileName)) {
			above = ""
		}
		return openProgramStore(dir, above)
	}
	return openProgramDumps(dir)
}

// openProgramStore opens the goldens that judge; yaml is the folder of their fixture, "" for none.
func openProgramStore(dir, yaml string) (runs *programRuns, err error) {
	runs = &programRuns{store: dir, variant: "float32"}
	if yaml != "" {
		if runs.yaml, err = fixture.Load(yaml); err != nil {
			return nil, err
		}
		runs.variant = runs.yaml.Reference("")
	}
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	runs.close = s.Close
	for _, k := range s.Runs() {
		if k.Variant != runs.variant || !k.OnePass() || len(k.Info.Order) == 0 { // the program of one pass judges all paths
			continue
		}
		run, err := s.Run(k)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		runs.cases = append(runs.cases, programCase{run: run, has: s.HasProgram(k.Info.Case)})
	}
	return runs, nil
}

func openProgramDumps(dir string) (*programRuns, error) {
	opened, err := store.OpenCases(dir, dump.Options{Unjudged: true})
	if err != nil {
		return nil, err
	}
	runs := &programRuns{close: func() error { return dump.CloseAll(opened) }}
	for _, r := range opened {
		c := programCase{run: r, has: r.Program != ""}
		if st, err := os.Stat(r.Path); err == nil && st.IsDir() && !store.KeepsRuns(r.Path) {
			c.file = filepath.Join(r.Path, dump.ProgramFile)
		}
		if r.Info.Case == "" {
			r.Info.Case = dump.RunCase
		}
		runs.cases = append(runs.cases, c)
	}
	return runs, nil
}

// choose leaves the cases without a program, or with --force all, and says where theirs go.
func (f *programFlags) choose(runs *programRuns) error {
	switch {
	case len(runs.cases) == 0:
		return fmt.Errorf("%s has no goldens %s: nothing to record a program for", runs.store, runs.variant)
	case f.out != "" && (runs.store != "" || len(runs.cases) > 1):
		return usage("program: -o is for a dump of one case")
	case f.out != "":
		runs.cases[0].file, runs.cases[0].has = f.out, exists(f.out)
	}
	last := runs.cases[len(runs.cases)-1].run
	runs.cases = slices.DeleteFunc(runs.cases, func(c programCase) bool { return c.has && !f.force })
	if len(runs.cases) == 0 {
		return usage("program: case %s has a program already, as all others: --force replaces it", last.Info.Case)
	}
	for _, c := range runs.cases {
		if runs.store == "" && c.file == "" {
			return usage("program: %s is no folder with a dump: name the program's file, -o FILE", c.run.Path)
		}
	}
	return nil
}

// programJob says what torch runs.
func (f *programFlags) programJob(runs *programRuns) (job engine.Job, err error) {
	switch {
	case runs.yaml != nil:
		job = runs.yaml.Job(engine.Torch, engine.CPU)
		ref, _ := runs.yaml.Variant(runs.variant)
		job.Encoding, job.KVType = ref.DType, ref.KVType
		if ref.Activations != "" || ref.Adapter != "" {
			return job, usage("program: the goldens %s are of rounded activations or of an adapter: parity golden update records their program", ref.Variant)
		}
		if f.model != "" {
			if job.Local, err = localModel(f.model); err != nil {
				return job, err
			}
			job.Path, job.Revision = f.model, f.revision
		}
	case f.model == "" && f.oracle == "":
		return job, usage("program: no MODEL: a folder or a hub id; or --oracle for a model of your own")
	default:
		of := f.runFlags
		of.program = fixture.ProgramOff
		job, _, err = of.job()
		if wrong := (*exitError)(nil); errors.As(err, &wrong) && wrong.code == exitUsage {
			return job, usage("program: %s", strings.TrimPrefix(err.Error(), "run: "))
		} else if err != nil {
			return job, err
		}
	}
	job.Mode, job.SanityTokens, job.SkipSanity, job.Capture = engine.ProgramMode, 0, "", engine.Capture{}
	fixture.RecordProgram(&job, f.program)
	job.Cases = nil
	for _, c := range runs.cases {
		asked, err := reference.Case(c.run)
		if err != nil {
			return job, err
		}
		if len(asked.TokenIDs) == 0 && job.Task != fixture.Module {
			return job, fmt.Errorf("%s: case %s has no token_ids in run.json: nothing is known of what it was asked", c.run.Path, asked.Name)
		}
		job.Cases = append(job.Cases, asked)
	}
	return job, nil
}

// keep checks the programs that were recorded, and writes them where they belong.
func (f *programFlags) keep(ctx context.Context, stdout io.Writer, runs *programRuns, r *engine.Result) error {
	var texts []string
	files := map[string]string{}
	for i, c := range runs.cases {
		from, name := r.Runs[i].Program, c.run.Info.Case
		text, err := f.check(from, c.run)
		if err != nil {
			return fmt.Errorf("case %s: %w", name, err)
		}
		files[name] = from
		if c.file != "" {
			text += ": " + c.file
		} else {
			text += fmt.Sprintf(": %s", runs.store)
		}
		texts = append(texts, text)
	}
	if runs.store != "" {
		waiting := func(holder string) {
			fmt.Fprintf(stdout, "waits for %s, which writes %s\n", sanitize.Line(holder), runs.store)
		}
		close := runs.close
		runs.close = func() error { return nil }
		if err := errors.Join(close(), session.AddPrograms(ctx, runs.store, runs.variant, files, waiting)); err != nil {
			return err
		}
	} else {
		for _, c := range runs.cases {
			if err := writeProgram(c.file, files[c.run.Info.Case]); err != nil {
				return err
			}
		}
	}
	for i, c := range runs.cases {
		fmt.Fprintf(stdout, "case %s: %s\n", sanitize.Line(c.run.Info.Case), sanitize.Line(texts[i]))
	}
	return nil
}

// check reads a program, and refuses one that is not a golden's. It says how large it is.
func (f *programFlags) check(file string, run *dump.Run) (string, error) {
	p, err := program.Read(file)
	if err == nil && f.golden != "" {
		err = reference.Check(p, run.Entries)
	}
	if err != nil {
		return "", err
	}
	defer p.Close()
	passes := "one forward pass"
	if n := len(p.Passes); n > 1 {
		passes = fmt.Sprintf("%d forward passes", n)
	}
	return fmt.Sprintf("%d operators, %d ports, %s", len(p.Ops), len(p.Ports), passes), nil
}

// writeProgram copies a program with its constants. They are there before it is.
func writeProgram(to, from string) error {
	for _, rename := range []func(string) string{constantsOf, func(name string) string { return name }} {
		data, err := mapfile.Reader(rename(from), 1<<40)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = mapfile.Replace(rename(to), 0o644, func(w io.Writer) error { _, err := io.Copy(w, data); return err })
		if err := errors.Join(err, data.Close()); err != nil {
			return err
		}
	}
	return nil
}

// constantsOf is the file with the constants of a program.
func constantsOf(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + filepath.Ext(dump.ConstantsFile)
}
