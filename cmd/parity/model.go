package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/supervise"
)

// settings are what --set says of a model, in the words of fixture.yaml.
type settings struct {
	job         engine.Job
	program     string // record what runs: on, lines or off; "" for what goes without saying
	activations string // how the inputs of products are rounded
	why         string // the task is what it is, in brackets
}

func (s *settings) keys() keys {
	j := &s.job
	return keys{
		"revision": once(&j.Revision),
		"task":     once(&j.Task),
		"oracle":   once(&j.Oracle),
		"allow_missing": func(v string) error {
			j.AllowMissing = append(j.AllowMissing, v)
			_, err := label.CompilePattern(v)
			return err
		},
		"trust_remote_code": func(v string) (err error) {
			j.TrustRemoteCode, err = strconv.ParseBool(v)
			return err
		},
		"max_layers": func(v string) (err error) {
			if j.MaxLayers, err = strconv.Atoi(v); err != nil || j.MaxLayers < 1 {
				err = fmt.Errorf("%q: want how many blocks run, from 1", v)
			}
			return err
		},
		"hf_config_overrides": func(v string) error {
			if err := json.Unmarshal([]byte(v), &j.Overrides); err != nil {
				return fmt.Errorf(`%w: want a JSON object, '{"rope_theta": 10000}'`, err)
			}
			return nil
		},
		"engine.": func(v string) error {
			key, text, _ := strings.Cut(v, "=")
			var value any
			if json.Unmarshal([]byte(text), &value) != nil {
				value = text
			}
			if j.Config == nil {
				j.Config = map[string]any{}
			}
			j.Config[key] = value
			return nil
		},
		"program": oneOf(&s.program, fixture.ProgramOn, fixture.ProgramLines, fixture.ProgramOff),
		"weights": func(v string) error {
			if v == "bytes" {
				j.Weights = -1
			}
			j.WeightHashes = j.WeightHashes || v == "hashes"
			return oneOf(new(string), "bytes", "hashes")(v)
		},
		"activations": oneOf(&s.activations, engine.Roundings...),
	}
}

func oneOf(to *string, words ...string) func(string) error {
	return func(v string) error {
		if *to = v; !slices.Contains(words, v) {
			return fmt.Errorf("%q: want %s", v, strings.Join(words, " or "))
		}
		return nil
	}
}

// add adds --set with the keys that a command has.
func (s *settings) add(c *cobra.Command, usage string, names ...string) {
	all := s.keys()
	maps.DeleteFunc(all, func(name string, _ func(string) error) bool { return len(names) > 0 && !slices.Contains(names, name) })
	addKeys(c, "set", "a key of fixture.yaml, as `KEY=VALUE`; may be repeated: "+usage, all)
}

// tasks by the end of an architecture's name. The order decides: every name of a model may end with Model.
var tasks = []struct{ ending, task string }{
	{"ForCausalLM", fixture.TextGeneration},
	{"LMHeadModel", fixture.TextGeneration},
	{"ForConditionalGeneration", fixture.TextGeneration},
	{"ForSequenceClassification", fixture.TextClassification},
	{"ForMaskedLM", fixture.Embeddings},
	{"Model", fixture.Embeddings},
}

// model says which model is run: a folder, a hub id, or "" with an oracle. config.json tells the task if --set does not.
func (s *settings) model(model string) (err error) {
	j := &s.job
	switch {
	case j.Oracle == "" && model == "":
		return usage("which model? Name a folder or a hub id; or --set oracle=FILE for a model of your own")
	case j.Task == fixture.Module && j.Oracle == "":
		return usage("--set task=module needs --set oracle=FILE: a Python file with reference(spec) and candidate(spec)")
	case j.Oracle != "" && (mapfile.IsFolder(j.Oracle) || !exists(j.Oracle)):
		return usage("there is no oracle file %s", j.Oracle)
	}
	if j.Path = model; model != "" {
		if j.Local, err = localModel(model); err != nil {
			return err
		}
		if j.Local && j.Revision != "" {
			return usage("--set revision is of a hub id, but the model %s is a folder", model)
		}
	}
	switch {
	case j.Task != "":
	case j.Oracle != "":
		j.Task, s.why = fixture.Module, " (for there is an oracle file)"
	default:
		var of string
		if j.Task, of, err = guessTask(s.dir(), model); err == nil {
			s.why = " (guessed from " + of + " in config.json)"
		}
	}
	return err
}

// dir is the folder of the model: itself, or where the hub's cache has it, "" where it has not.
func (s *settings) dir() string {
	if s.job.Local {
		return s.job.Path
	}
	return checkpoint.Snapshot(s.job.Path, s.job.Revision)
}

// guessTask reads the task off the architectures in config.json, and returns the one that tells.
func guessTask(dir, model string) (task, of string, err error) {
	if dir == "" {
		return "", "", usage("the task of %s is not known, for it is not in the hub's cache: give --set task=text-generation or embeddings", model)
	}
	path := filepath.Join(dir, "config.json")
	config, err := checkpoint.ReadConfig(path)
	if err != nil {
		return "", "", usage("%v: a model folder holds config.json, *.safetensors and the tokenizer's files", err)
	}
	architectures, _ := config["architectures"].([]any)
	for _, a := range architectures {
		name, _ := a.(string)
		for _, t := range tasks {
			if strings.HasSuffix(name, t.ending) {
				return t.task, name, nil
			}
		}
	}
	return "", "", usage("the architectures %q in %s do not tell the task: give --set task=TASK", architectures, path)
}

// localModel reports whether a model is a folder and not a hub id. What looks like a folder must be one.
func localModel(model string) (bool, error) {
	switch {
	case mapfile.IsFolder(model):
		return true, nil
	case exists(model):
		return false, usage("the model %s is a file: name the folder with config.json and *.safetensors", model)
	case filepath.IsAbs(model) || strings.HasPrefix(model, ".") || strings.Count(model, "/") > 1 || strings.ContainsRune(model, '\\'):
		return false, usage("there is no model folder %s", model)
	}
	return false, nil
}

func device(name string) error {
	if name != engine.CPU && name != engine.GPU {
		return usage("--device %q: want cpu or gpu", name)
	}
	return nil
}

type planFlags struct {
	settings
	budget time.Duration
}

func newPlan() *cobra.Command {
	var f planFlags
	c := command("plan", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		if f.budget <= 0 {
			return usage("plan: --budget %s: want a time, 5m", f.budget)
		}
		if err := f.model(args[0]); err != nil {
			return err
		}
		plan, err := f.plan(fixture.AutoPaths(f.job.Task, engine.MAX), f.budget)
		if err != nil {
			return err
		}
		return printPlan(cmd.OutOrStdout(), plan)
	})
	f.add(c, "revision, task, max_layers\n(by default as many blocks as the budget allows)", "revision", "task", "max_layers")
	c.Flags().DurationVar(&f.budget, "budget", fixture.DefaultBudget, "about how long all of it may take")
	return c
}

func (s *settings) plan(paths []string, budget time.Duration) (plan fixture.Battery, err error) {
	dir, task := s.dir(), s.job.Task
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	switch {
	case !fixture.Plannable(task):
		return plan, usage("only inputs of token ids are planned: of the tasks %s, %s and %s, not of %s", fixture.TextGeneration,
			fixture.Embeddings, fixture.TextClassification, task)
	case dir == "" || err != nil:
		return plan, usage("there is no config.json of the model on this machine to plan inputs from")
	}
	of := fixture.BatteryOptionsOf(dir, task == fixture.TextGeneration)
	of.Paths, of.MaxLayers, of.Budget, of.Ahead = paths, s.job.MaxLayers, budget, fixture.AheadOfMAX // it may follow
	return fixture.NewBattery(config, of), nil
}

func printPlan(w io.Writer, plan fixture.Battery) error {
	var rows [][]string
	row := func(name string, c fixture.Cost, what string) {
		const most = 40 // of the numbers of a path
		if len(name) > most {
			name = name[:most] + "…"
		}
		rows = append(rows, []string{name, fmt.Sprint(c.Tokens, " tokens"), fmt.Sprintf("%.1f MB", float64(c.Bytes)/1e6),
			c.Time.Round(100 * time.Millisecond).String(), what})
	}
	for _, c := range plan.Cases {
		row(c.Name, c.Cost, c.For)
	}
	for _, x := range plan.Paths {
		row(x.Name, x.Cost, x.For)
	}
	row("together", plan.Cost, "with the start of both engines")
	if err := writeTable(w, rows); err != nil {
		return err
	}
	if plan.MaxLayers > 0 {
		fmt.Fprintf(w, "max_layers: %d\n", plan.MaxLayers)
	}
	for _, text := range plan.NotTried {
		fmt.Fprintf(w, "not tried: %s\n", text)
	}
	return nil
}

type programFlags struct {
	settings
	model, golden, of string // MODEL, --golden, --for
}

func newProgram() *cobra.Command {
	var f programFlags
	c := command("program", cobra.MaximumNArgs(1), f.record)
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
		if !mapfile.IsFolder(run.Path) || store.KeepsRuns(run.Path) {
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
		asked, err := session.CaseOf(r)
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
		if err := session.CheckProgram(p, run.Entries); err != nil {
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
