package main

import (
	"cmp"
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
	settings
	model, golden, of string // MODEL, --golden, --for
}

func newProgram() *cobra.Command {
	var f programFlags
	c := &cobra.Command{
		Use:   "program [MODEL] --golden DIR | --for DUMP",
		Short: "record what the reference runs: a golden's missing program, or one to judge a dump without a golden",
		Long: "program runs a model of torch under fake tensors, on the tokens and in the steps of another run, and keeps\n" +
			"the graph of its tensor operators as " + dump.ProgramFile + ": parity compare replays it piece by piece, which says where a\n" +
			"candidate goes wrong. No weights are read: config.json and the code of MODEL, a folder or a hub id, are enough.\n\n" +
			"--golden DIR adds it to goldens: a fixture (which names its model itself), a golden store, or a dump.\n" +
			"--for DUMP records it for a candidate's dump, next to whose run.json it is written, to be judged without a\n" +
			"golden: parity compare --program DUMP/" + dump.ProgramFile + " --weights CHECKPOINT DUMP.",
		Args: cobra.MaximumNArgs(1),
		RunE: f.record,
	}
	fl := c.Flags()
	fl.StringVar(&f.golden, "golden", "", "`folder` of the goldens: a fixture, a store or a dump")
	fl.StringVar(&f.of, "for", "", "a candidate's `dump`, whose tokens and steps are taken")
	f.add(c, "revision, task, oracle,\nmax_layers, hf_config_overrides (a JSON object), trust_remote_code, engine.attn_implementation=sdpa,\n"+
		"program=lines (without the text of source lines)",
		"revision", "task", "oracle", "max_layers", "hf_config_overrides", "trust_remote_code", "engine.", "program")
	return c
}

// programRuns are the runs that programs are recorded for, and where they go.
type programRuns struct {
	cases   []*dump.Run      // without a program
	yaml    *fixture.Fixture // nil without a fixture
	store   string           // folder of the golden store; "" for dumps, whose folders get them
	variant string           // of its goldens
	close   func() error
}

func (f *programFlags) record(cmd *cobra.Command, args []string) (err error) {
	f.model = strings.Join(args, "")
	switch {
	case (f.golden == "") == (f.of == ""):
		return usage("program: want one of --golden and --for")
	case f.program == fixture.ProgramOff:
		return usage("program: --set program=off: want on or lines")
	}
	runs := programRuns{variant: "float32", close: func() error { return nil }}
	defer func() { err = errors.Join(err, runs.close()) }()
	if err := runs.open(f.golden, f.of); err != nil {
		return err
	}
	if len(runs.cases) == 0 {
		return usage("program: all cases of %s have a program already", cmp.Or(f.golden, f.of))
	}
	if err := f.prepare(&runs); err != nil {
		return err
	}
	tmp, remove, err := supervise.TempDir("", "parity-program-")
	if err != nil {
		return err
	}
	defer remove()
	f.job.Out = filepath.Join(tmp, "dump")
	logFile, err := engine.LogFile("program")
	if err != nil {
		return err
	}
	r, err := runEngine(cmd.Context(), f.job, logFile, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer r.Close()
	return f.keep(cmd.Context(), cmd.OutOrStdout(), &runs, r)
}

// open opens the runs that programs are recorded for: those of a store, which may be a fixture's, or else of dumps.
func (r *programRuns) open(golden, of string) error {
	if of == "" {
		s, err := openStore(golden)
		if err == nil {
			return r.openStore(s)
		} else if isFixture(golden) || !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	opened, err := store.OpenCases(cmp.Or(of, golden), dump.Options{Unjudged: true})
	r.close = func() error { return dump.CloseAll(opened) }
	for _, run := range opened {
		if !isDir(run.Path) || store.KeepsRuns(run.Path) {
			err = usage("program: %s is no folder with a dump, beside whose run.json a program lies", run.Path)
		}
		run.Info.Case = cmp.Or(run.Info.Case, dump.RunCase)
		if run.Program == "" {
			r.cases = append(r.cases, run)
		}
	}
	return err
}

// openStore opens the goldens that judge.
func (r *programRuns) openStore(s *store.Store) (err error) {
	r.store, r.close = s.Dir(), s.Close
	if dir := filepath.Dir(filepath.Clean(s.Dir())); filepath.Base(s.Dir()) == "golden" && isFixture(dir) {
		if r.yaml, err = fixture.Load(dir); err != nil {
			return err
		}
		r.variant = r.yaml.Reference("")
	}
	goldens := slices.DeleteFunc(slices.Clone(s.Runs()), func(k *store.Kept) bool {
		return k.Variant != r.variant || !k.OnePass() || len(k.Info.Order) == 0 // the program of one pass judges all paths
	})
	if len(goldens) == 0 {
		return fmt.Errorf("%s has no goldens %s: nothing to record a program for", s.Dir(), r.variant)
	}
	for _, k := range goldens {
		if s.HasProgram(k.Info.Case) {
			continue
		}
		run, err := s.Run(k)
		if err != nil {
			return err
		}
		r.cases = append(r.cases, run)
	}
	return nil
}

// prepare says what torch runs.
func (f *programFlags) prepare(runs *programRuns) (err error) {
	job := &f.job
	if runs.yaml != nil {
		ref, _ := runs.yaml.Variant(runs.variant)
		if ref.Activations != "" || ref.Adapter != "" {
			return usage("program: the goldens %s are of rounded activations or of an adapter: parity golden update records their program", ref.Variant)
		}
		revision := job.Revision
		*job = runs.yaml.Job(engine.Torch, engine.CPU)
		job.Encoding, job.KVType = ref.DType, ref.KVType
		if f.model != "" {
			job.Path, job.Revision = f.model, revision
			if job.Local, err = localModel(f.model); err != nil {
				return err
			}
		}
	} else {
		job.Engine, job.Device, job.Encoding = engine.Torch, engine.CPU, "float32"
		if err := f.settings.model(f.model); err != nil {
			return err
		}
	}
	job.Mode, job.Capture, job.Cases = engine.ProgramMode, engine.Capture{}, nil
	fixture.RecordProgram(job, f.program)
	for _, r := range runs.cases {
		asked, err := reference.Case(r)
		if err != nil {
			return err
		}
		if len(asked.TokenIDs) == 0 && job.Task != fixture.Module {
			return fmt.Errorf("%s: case %s has no token_ids in run.json: nothing is known of what it was asked", r.Path, asked.Name)
		}
		job.Cases = append(job.Cases, asked)
	}
	return nil
}

// keep checks the programs that were recorded, and writes them where they belong.
func (f *programFlags) keep(ctx context.Context, stdout io.Writer, runs *programRuns, r *engine.Result) (err error) {
	var texts []string
	files := map[string]string{}
	for i, run := range runs.cases {
		name, to := run.Info.Case, cmp.Or(runs.store, filepath.Join(run.Path, dump.ProgramFile))
		files[name] = r.Runs[i].Program
		text, err := f.check(files[name], run)
		if err != nil {
			return fmt.Errorf("case %s: %w", name, err)
		}
		texts = append(texts, fmt.Sprintf("case %s: %s: %s", name, text, to))
	}
	if runs.store != "" {
		err = session.AddPrograms(ctx, runs.store, runs.variant, files, func(holder string) {
			fmt.Fprintf(stdout, "waits for %s, which writes %s\n", sanitize.Line(holder), runs.store)
		})
	} else {
		for _, run := range runs.cases {
			err = cmp.Or(err, copyProgram(run.Path, files[run.Info.Case]))
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, sanitize.Text(strings.Join(texts, "\n")))
	return err
}

// check reads a program, and refuses one that is not a golden's. It says how large it is.
func (f *programFlags) check(file string, run *dump.Run) (string, error) {
	p, err := program.Read(file)
	if err != nil {
		return "", err
	}
	defer p.Close()
	if f.golden != "" {
		if err := reference.Check(p, run.Entries); err != nil {
			return "", err
		}
	}
	passes := "one forward pass"
	if n := len(p.Passes); n > 1 {
		passes = fmt.Sprintf("%d forward passes", n)
	}
	return fmt.Sprintf("%d operators, %d ports, %s", len(p.Ops), len(p.Ports), passes), nil
}

// copyProgram copies a program with its constants to the folder of a dump. They are there before it is.
func copyProgram(dir, file string) error {
	err := mapfile.Copy(filepath.Join(dir, dump.ConstantsFile), filepath.Join(filepath.Dir(file), dump.ConstantsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to := filepath.Join(dir, dump.ProgramFile)
	return errors.Join(mapfile.Copy(to+".new", file), os.Rename(to+".new", to))
}
