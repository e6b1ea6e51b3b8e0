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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/picture"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/subtest"
	"github.com/goparity/goparity/internal/supervise"
)

// runSanity is how many tokens the reference goes on with by itself, so that a person sees whether
// it makes sense.
const runSanity = 32

type runFlags struct {
	engine, model, revision, task, oracle string
	device, encoding, overrides           string
	layers, print, follow, path, out      string
	dequantised, activations              string
	prompts, ids, filter, allow, config   []string
	steps, precision                      int
	remoteCode, online, force             bool
	weights, program                      string
}

// What --weights keeps.
const (
	weightBytes  = "bytes"
	weightHashes = "hashes"
)

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run --engine torch|max --model MODEL [--prompt TEXT] -o DIR",
		Short: "run a model in one engine and dump what every layer gets and gives",
		Long: "run loads a model, a folder or a hub id, in torch (the reference), Modular MAX or mlx-lm, runs a prompt\n" +
			"through it, and writes every layer's inputs and outputs as a dump. parity compare judges two dumps.\n" +
			"Without a prompt it runs the cases that parity golden plan lists, a folder for each.\n" +
			"PARITY_PYTHON is the interpreter that has the engines, else that of .venv next to go.mod, of the active\n" +
			"environment, of the one that the wheel was installed into, or python3.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.engine, "engine", "", "`torch`, max, mlx, or a file: docs/your-engine.md")
	fl.StringVar(&f.model, "model", "", "model `folder` or hub id")
	f.addModel(fl)
	fl.StringArrayVar(&f.prompts, "prompt", nil, "`text` to run; several are a batch")
	fl.StringArrayVar(&f.ids, "token-ids", nil,
		"token ids to run in place of a prompt, as `1,2,3`; several are a batch")
	fl.StringVar(&f.follow, "follow", "", "run the token ids, steps and decoded tokens of another `dump` of parity run")
	fl.StringVar(&f.path, "path", "", "run the tokens along an execution `path`: decode:8, chunked:4, batch, repeat:3, …; docs/paths.md")
	fl.IntVar(&f.steps, "num-steps", 1, "forward passes: 1 is the prefill, each further one decodes a token")
	fl.StringVar(&f.encoding, "encoding", "",
		"dtype of torch (default float32), encoding of MAX (default float32 on the CPU, its own choice on the GPU)")
	fl.StringVar(&f.dequantised, "dequantised", "",
		"run torch on what quantised weights stand for: a .gguf `file`, or a folder of Hugging Face")
	fl.StringVar(&f.activations, "activations", "",
		"with --dequantised: round the input of each product as engines do, `int8/256` (K-quants), int8/32 or float8_e4m3fn")
	fl.StringVar(&f.device, "device", engine.CPU, "cpu or gpu")
	fl.StringArrayVar(&f.filter, "filter", nil, "record only layers that match this `glob`; may be repeated")
	fl.StringVar(&f.print, "print", engine.PrintCheckpoint,
		"how MAX writes tensors: compact, full, binary or max-checkpoint")
	fl.IntVar(&f.precision, "precision", 6, "digits of --print full")
	fl.BoolVar(&f.online, "online", false, "let the engine download from the hub; else only its cache is used")
	fl.StringVarP(&f.out, "output", "o", "", "`folder` to write (default torch_dump or max_dump)")
	fl.StringVar(&f.weights, "weights", "", "keep the weights that the engine loaded, too, or with `=hashes` what tells whether they are the checkpoint's:\n"+
		"weights in run.json")
	fl.Lookup("weights").NoOptDefVal = weightBytes
	fl.StringVar(&f.program, "program", "",
		"record what torch runs, too, which says where a candidate goes wrong: `on` (the default in float32), lines (without\n"+
			"the text of source lines) or off")
	fl.BoolVar(&f.force, "force", false, "replace a dump that is there already")
	hide(fl, "print", "precision") // of MAX's own hooks
	for _, other := range [][]string{{"prompt", "token-ids", "follow"}, {"num-steps", "path"}, {"num-steps", "follow"}} {
		c.MarkFlagsMutuallyExclusive(other...)
	}
	return c
}

// settings are the keys of model in fixture.yaml that --set takes, by the flags of earlier versions that go on working.
var settings = map[string]string{"revision": "revision", "max_layers": "num-hidden-layers", "hf_config_overrides": "hf-config-overrides",
	"engine": "engine-config", "trust_remote_code": "trust-remote-code", "allow_missing": "allow-missing"}

// addModel adds the flags of how a model is loaded.
func (f *runFlags) addModel(fl *pflag.FlagSet) {
	fl.Func("set", "a key of model in fixture.yaml, as `KEY=VALUE`: revision, max_layers, hf_config_overrides (a JSON object), allow_missing,\n"+
		"trust_remote_code, engine.KEY (a setting of MAX; of torch engine.attn_implementation=sdpa); may be repeated",
		func(given string) error {
			key, value, ok := strings.Cut(given, "=")
			key, setting, of := strings.Cut(key, ".")
			if flag := settings[key]; ok && flag != "" && of == (key == "engine") {
				return fl.Set(flag, strings.TrimPrefix(setting+"="+value, "="))
			}
			return fmt.Errorf("want KEY=VALUE, of the keys %s", strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		})
	fl.StringVar(&f.revision, "revision", "", "`revision` of a hub id")
	fl.StringVar(&f.task, "task", "",
		"text-generation, embeddings, text-classification (torch only) or module (default: by config.json)")
	fl.StringVar(&f.oracle, "oracle", "", "Python `file` with reference(spec), and candidate(spec) for parity run")
	fl.StringVar(&f.layers, "num-hidden-layers", "all", "run the first `N` blocks only")
	fl.StringVar(&f.overrides, "hf-config-overrides", "", "changes to config.json, a `JSON` object by key or dotted path")
	fl.StringArrayVar(&f.config, "engine-config", nil, "setting of MAX, `KEY=VALUE`; may be repeated; of torch attn_implementation=sdpa")
	fl.BoolVar(&f.remoteCode, "trust-remote-code", false, "let the model's folder bring its own Python code")
	fl.StringArrayVar(&f.allow, "allow-missing", nil, "`glob` of weights that may be absent or left over; may be repeated")
	for _, flag := range settings {
		hide(fl, flag)
	}
}

// check refuses flags that would have no effect.
func (f *runFlags) check(changed func(string) bool) error {
	switch {
	case changed("precision") && f.print != engine.PrintFull:
		return usage("run: --precision is for --print full")
	case f.dequantised != "" && (f.engine != engine.Torch || f.oracle != ""):
		return usage("run: --dequantised is for the reference: --engine torch, without --oracle")
	case f.activations != "" && f.dequantised == "":
		return usage("run: --activations goes with --dequantised")
	case f.precision < 1:
		return usage("run: --precision %d: want a number of digits", f.precision)
	}
	return nil
}

func (f *runFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	job, why, err := f.job()
	if err != nil {
		return err
	}
	out, err := f.output()
	if err != nil {
		return err
	}
	head(stdout, job, f.model, why)
	tmp, remove, err := supervise.TempDir(filepath.Dir(out), ".parity-run-")
	if err != nil {
		return err
	}
	defer remove()
	job.Out = filepath.Join(tmp, "dump")
	if f.dequantised != "" {
		if err := f.dequantise(&job, filepath.Join(tmp, "model")); err != nil {
			return err
		}
	}
	logFile := out + ".log" // stays where the run fails

	var model engine.EventModel
	r, err := runEngine(ctx, job, logFile, stderr, func(e engine.Event) {
		if e.Model != nil {
			model = *e.Model
		}
	})
	if err != nil {
		return err
	}
	tail(stdout, job, r, model)
	from := job.Out
	if len(job.Cases) == 1 {
		from = filepath.Join(job.Out, job.Cases[0].Name)
	}
	if err := errors.Join(r.Close(), mapfile.Swap(from, out, filepath.Join(tmp, "old"))); err != nil {
		return err
	}
	os.Remove(logFile)
	fmt.Fprintf(stdout, "dump      %s\n", f.out)
	next := ""
	switch {
	case f.path != "":
		next = subtest.Command("parity", "compare", "--golden", cmp.Or(f.follow, "GOLDEN"), "--actual", f.out)
	case job.Engine != engine.Torch:
	case f.follow != "" && f.encoding != "":
		next = subtest.Command("parity", "compare", "--golden", f.follow, "--also", "noise="+f.out, "--actual", "DUMP") + ", a run of another engine in " + f.encoding
	default:
		next = subtest.Command("parity", "run", "--engine") + " max … --follow " + subtest.Command(f.out) + ", then " +
			subtest.Command("parity", "compare", "--golden", f.out, "--actual", "max_dump")
	}
	if next != "" {
		fmt.Fprintf(stdout, "next      %s\n", next)
	}
	return nil
}

// runEngine runs a job, and shows on stderr what the engine does. What no engine can do is usage.
func runEngine(ctx context.Context, job engine.Job, logFile string, stderr io.Writer, seen ...func(engine.Event)) (*engine.Result, error) {
	con := newConsole(stderr, job.Engine)
	opt := engine.Options{LogFile: logFile, Progress: func(e engine.Event) {
		con.Event(e)
		for _, see := range seen {
			see(e)
		}
	}}
	r, err := engine.RunOnDevice(ctx, job, opt, con.say)
	con.Stop(err == nil)
	if err != nil && engine.Class(err) == engine.ClassUsage {
		return nil, &exitError{exitUsage, err}
	}
	return r, err
}

// dequantise gives the job a folder with the numbers that quantised weights stand for, in dir.
func (f *runFlags) dequantise(job *engine.Job, dir string) error {
	model := modelDir(f.model, job.Local, f.revision)
	if model == "" {
		return usage("run: --dequantised: %s is not in the hub's cache of this machine, and its config.json is needed", f.model)
	}
	if f.activations != "" && !slices.Contains(engine.Roundings, f.activations) {
		return usage("run: --activations %q: want %s", f.activations, strings.Join(engine.Roundings, " or "))
	}
	c, err := checkpoint.OpenQuantised(f.dequantised)
	if err != nil {
		return fmt.Errorf("--dequantised: %w", err)
	}
	defer c.Close()
	if err := c.Write(dir, model); err != nil {
		return fmt.Errorf("--dequantised: %w", err)
	}
	job.Path, job.Local, job.Revision = dir, true, ""
	if f.activations != "" {
		job.Activations = &engine.Activations{Rule: f.activations, Weights: c.Quantised()}
	}
	return nil
}

// job says what the flags ask of the engine, and how the task was found.
func (f *runFlags) job() (job engine.Job, why string, err error) {
	if !job.Use(f.engine) {
		return job, "", usage("run: --engine %q: want %s, or a file of yours, ./engine.py", f.engine, engine.Names())
	}
	if f.device != engine.CPU && f.device != engine.GPU {
		return job, "", usage("run: --device %q: want cpu or gpu", f.device)
	}
	job = engine.Job{Engine: job.Engine, EngineFile: job.EngineFile, Model: engine.Model{Path: f.model, Revision: f.revision, Task: f.task, TrustRemoteCode: f.remoteCode, Oracle: f.oracle},
		Device: f.device, Encoding: f.encoding, AllowMissing: f.allow, Online: f.online,
		Capture: engine.Capture{Layers: f.filter}}
	switch f.weights {
	case "":
	case weightBytes:
		job.Weights = -1
	case weightHashes:
		job.WeightHashes = true
	default:
		return job, "", usage("run: --weights=%s: want --weights, or --weights=%s", f.weights, weightHashes)
	}
	if err := f.checkModel(); err != nil {
		return job, "", err
	}
	if err := f.records(&job); err != nil {
		return job, "", err
	}
	if f.model != "" {
		if job.Local, err = localModel(f.model); err != nil {
			return job, "", err
		}
		if job.Local && f.revision != "" {
			return job, "", usage("run: --revision is of a hub id, but --model %s is a folder", f.model)
		}
	}
	switch {
	case f.task != "":
	case f.oracle != "":
		job.Task, why = fixture.Module, "for there is an oracle file"
	default:
		if job.Task, why, err = guessTask(f.model, job.Local, f.revision); err != nil {
			return job, "", err
		}
	}
	if job.Encoding == "" && (f.engine == engine.Torch || f.device == engine.CPU) {
		job.Encoding = "float32"
	}
	if f.engine == engine.MAX {
		if err := engine.Supports(f.device, job.Encoding); err != nil {
			return job, "", usage("run: --encoding: %v", err)
		}
		if !slices.Contains([]string{engine.PrintCompact, engine.PrintFull, engine.PrintBinary,
			engine.PrintCheckpoint}, f.print) {
			return job, "", usage("run: --print %q: want compact, full, binary or max-checkpoint", f.print)
		}
		job.Print, job.Precision = f.print, f.precision
	} else if f.print != engine.PrintCheckpoint {
		return job, "", usage("run: --print is a setting of MAX")
	}
	if job.Engine == engine.Torch && job.Task == fixture.TextGeneration {
		job.SanityTokens, job.SkipSanity = runSanity, "this dump is no golden"
	}
	if err := f.values(&job); err != nil {
		return job, "", err
	}
	job.Cases, err = f.cases(&job)
	return job, why, err
}

// records says whether the program that runs is recorded, and how.
func (f *runFlags) records(job *engine.Job) error {
	switch on := f.program == fixture.ProgramOn || f.program == fixture.ProgramLines; {
	case f.program == "" && f.engine == engine.Torch && f.path == "" && (f.encoding == "" || f.encoding == "float32"):
		fixture.RecordProgram(job, fixture.ProgramOn)
	case f.program == "" || f.program == fixture.ProgramOff:
	case !on:
		return usage("run: --program %q: want on, lines or off", f.program)
	case f.engine != engine.Torch:
		return usage("run: --program is for --engine torch: the reference's program judges")
	case f.path != "":
		return usage("run: --program and --path: the program of one pass judges all paths")
	default:
		fixture.RecordProgram(job, f.program)
	}
	return nil
}

// along plans the forward passes of an execution path.
func (f *runFlags) along(job engine.Job, c engine.Case) (engine.Case, error) {
	p, err := dump.ParsePath(f.path)
	if err == nil && p.Kind == dump.OnePass {
		err = errors.New("one-pass is what runs without --path")
	}
	if err == nil {
		err = fixture.Takes(job.Task, f.path, false)
	}
	if err == nil && c.TokenIDs == nil {
		err = errors.New("want --token-ids or --follow: a path is a way to run tokens that are known")
	}
	if err != nil {
		return c, usage("run: --path %s: %v", f.path, err)
	}
	var about path.About
	if config, err := checkpoint.ReadConfig(f.model); err == nil {
		about.Window, _ = config.Int("sliding_window")
	}
	about.Page, _ = checkpoint.Config(job.Config).Int("kv_cache_page_size")
	plans, _, err := path.Plans(f.path, []path.Input{{Case: c.Name, Tokens: c.TokenIDs}}, about)
	if err != nil {
		return c, usage("run: --path: %v", err)
	}
	return engine.Case{Name: dump.RunCase, TokenIDs: plans[0].Tokens, Path: plans[0].Path, Passes: plans[0].Passes}, nil
}

func (f *runFlags) checkModel() error {
	switch {
	case f.oracle == "" && f.model == "":
		return usage("run: --model is missing: a folder or a hub id; or --oracle for a model of your own")
	case f.task == fixture.Module && f.oracle == "":
		return usage("run: --task module needs --oracle: a Python file with reference(spec) and candidate(spec)")
	case f.oracle != "":
		if st, err := os.Stat(f.oracle); err != nil || st.IsDir() {
			return usage("run: there is no oracle file %s", f.oracle)
		}
	}
	return nil
}

// values reads the flags whose text has a form of its own.
func (f *runFlags) values(job *engine.Job) error {
	if f.layers != "all" {
		n, err := strconv.Atoi(f.layers)
		if err != nil || n < 1 {
			return usage("run: --num-hidden-layers %q: want a number from 1, or all", f.layers)
		}
		job.MaxLayers = n
	}
	if f.overrides != "" {
		if err := json.Unmarshal([]byte(f.overrides), &job.Overrides); err != nil {
			return usage(`run: --hf-config-overrides: %v: want a JSON object, '{"rope_theta": 10000}'`, err)
		}
	}
	for _, kv := range f.config {
		key, text, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return usage("run: --engine-config %q: want KEY=VALUE", kv)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		if job.Config == nil {
			job.Config = map[string]any{}
		}
		job.Config[key] = value
	}
	for key, value := range job.Config {
		name, isText := value.(string)
		switch {
		case job.Engine != engine.Torch:
		case key != engine.AttnImplementation || !isText || name == "":
			return usage("run: --engine-config %s=%v: torch has one setting, %s=eager (the default) or sdpa", key, value, engine.AttnImplementation)
		case job.Oracle != "":
			return usage("run: --engine-config %s: the oracle file makes the model, and chooses", key)
		}
	}
	for _, g := range slices.Concat(f.filter, f.allow) {
		if _, err := glob.Compile(g); err != nil {
			return usage("run: %v", err)
		}
	}
	return nil
}

// cases are what is run: a prompt, token ids, what another run was given, or what is planned from the model.
func (f *runFlags) cases(job *engine.Job) ([]engine.Case, error) {
	switch {
	case len(f.prompts)+len(f.ids) == 0 && f.follow == "" && job.Task != fixture.Module:
		return f.planned(job)
	case f.follow != "":
		if cases, err := followAll(f.follow, job.Engine); cases != nil || err != nil {
			return cases, err
		}
	}
	c, err := f.input(job.Task)
	if err == nil && f.path != "" {
		c, err = f.along(*job, c)
	}
	return []engine.Case{c}, err
}

// input is the one case: a prompt, token ids, or what another run was given.
func (f *runFlags) input(task string) (c engine.Case, err error) {
	c = engine.Case{Name: dump.RunCase, Prompts: f.prompts, Steps: f.steps}
	if f.steps < 1 || f.steps > 1 && task != fixture.TextGeneration {
		return c, usage("run: --num-steps %d: a task %s has one step, only text-generation has more", f.steps, task)
	}
	for _, text := range f.ids {
		ids, err := parseIDs(text)
		if err != nil {
			return c, usage("run: --token-ids: %v", err)
		}
		c.TokenIDs = append(c.TokenIDs, ids)
	}
	if f.follow == "" {
		return c, nil
	}
	return c, follow(&c, f.follow)
}

// follow takes token ids, steps and decoded tokens from the run.json of another run.
func follow(c *engine.Case, dir string) error {
	file := filepath.Join(dir, dump.RunFile)
	data, err := mapfile.Read(file, mapfile.MaxListing)
	if err != nil {
		return usage("run: --follow: %v: it wants a dump that parity run wrote", err)
	}
	var run struct {
		TokenIDs [][]int           `json:"token_ids"`
		Images   [][]string        `json:"images"`
		Sequence [][]int           `json:"sequence"`
		Order    []dump.OrderEntry `json:"order"`
	}
	if err := json.Unmarshal(data, &run); err != nil || len(run.TokenIDs) == 0 {
		return usage("run: --follow: %s names no token ids (%v): it wants a dump that parity run wrote", file, err)
	}
	if _, err := dump.ReadInfo(dir); err != nil {
		return usage("run: --follow: %v", err)
	}
	steps := map[string]bool{}
	for _, e := range run.Order {
		steps[e.Step] = true
	}
	for _, image := range slices.Concat(run.Images...) {
		if _, drawn := picture.Parse(image); !drawn {
			return usage("run: --follow: %s was given the image %s, which is not in the dump: compare the two engines in a fixture", file, image)
		}
	}
	c.TokenIDs, c.Images, c.Steps = run.TokenIDs, run.Images, max(len(steps), 1)
	if c.Steps == 1 {
		return nil
	}
	for i, ids := range run.TokenIDs {
		if i >= len(run.Sequence) || len(run.Sequence[i]) < len(ids)+c.Steps-1 {
			return usage("run: --follow: %s has %d steps, but not the tokens that they were given", file, c.Steps)
		}
		c.Forced = append(c.Forced, run.Sequence[i][len(ids):len(ids)+c.Steps-1])
	}
	return nil
}

// output is the absolute folder to write, which must be free; with --force it may be a dump.
func (f *runFlags) output() (string, error) {
	f.out = cmp.Or(f.out, strings.TrimSuffix(filepath.Base(f.engine), ".py")+"_dump")
	out, err := filepath.Abs(f.out)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(out); err == nil {
		if !f.force {
			return "", usage("run: %s exists: --force replaces a dump, -o writes another one", f.out)
		}
		if names, _ := filepath.Glob(filepath.Join(out, battery.Prefix+"*", dump.RunFile)); len(names) > 0 {
			return out, nil
		}
		if _, err := os.Stat(filepath.Join(out, dump.RunFile)); err != nil {
			return "", usage("run: %s is not replaced: it has no %s, so it is no dump of parity run", f.out,
				dump.RunFile)
		}
	}
	return out, os.MkdirAll(filepath.Dir(out), 0o755)
}

// head says what is run, before it is.
func head(w io.Writer, job engine.Job, model, why string) {
	fmt.Fprintf(w, "engine    %s on the %s, %s\n", job.Engine, job.Device, cmp.Or(job.Encoding, "its own encoding"))
	if why != "" {
		why = " (" + why + ")"
	}
	if model != "" {
		fmt.Fprintf(w, "model     %s\n", model)
	}
	if job.Oracle != "" {
		fmt.Fprintf(w, "oracle    %s\n", job.Oracle)
	}
	fmt.Fprintf(w, "task      %s%s\n", job.Task, why)
	for _, c := range job.Cases {
		for _, p := range c.Prompts {
			fmt.Fprintf(w, "prompt    %q\n", p)
		}
	}
}

// tail says what came of it.
func tail(w io.Writer, job engine.Job, r *engine.Result, model engine.EventModel) {
	about := r.About[0]
	fmt.Fprintf(w, "class     %s\n", sanitize.Line(cmp.Or(model.Class, about.ModelClass)))
	if file := cmp.Or(model.File, about.ModelFile); file != "" {
		fmt.Fprintf(w, "source    %s\n", sanitize.Line(file))
	}
	for i := range r.Runs {
		tailOfCase(w, job, r, i)
	}
}

// tailOfCase says what came of one case.
func tailOfCase(w io.Writer, job engine.Job, r *engine.Result, i int) {
	run, about := r.Runs[i], r.About[i]
	if len(r.Runs) > 1 {
		fmt.Fprintf(w, "case      %s\n", run.Info.Case)
	}
	for _, s := range run.Info.Tokens() {
		fmt.Fprintf(w, "tokens    %s\n", numbers(s))
	}
	if run.Info.ReferenceText != "" {
		fmt.Fprintf(w, "goes on   %q\n", run.Info.ReferenceText)
	}
	if made, err := r.Generated(i); err == nil && job.Task == fixture.TextGeneration {
		for _, s := range made {
			fmt.Fprintf(w, "decoded   %s\n", numbers(s))
		}
	}
	var phases []string
	for _, p := range []string{"import", "load", "compile", "sanity", "forward", "write"} {
		if s, ok := run.Info.Seconds[p]; ok {
			phases = append(phases, fmt.Sprintf("%s %.1f", p, s))
		}
	}
	fmt.Fprintf(w, "seconds   %s; peak memory %d MiB\n", strings.Join(phases, ", "), run.Info.PeakRSS>>20)
	layers, bytes := map[string]bool{}, 0
	for _, e := range run.Entries {
		layers[e.Layer] = true
		if e.Tensor != nil {
			bytes += e.Tensor.Len() * e.Tensor.DType().Size()
		}
	}
	if about.NoProgram != "" {
		fmt.Fprintf(w, "program   none: %s\n", sanitize.Line(about.NoProgram))
	} else if run.Program != "" {
		fmt.Fprintf(w, "program   %s\n", dump.ProgramFile)
	}
	fmt.Fprintf(w, "recorded  %d tensors of %d layers in %d steps, %.1f MB\n", len(run.Entries), len(layers),
		len(run.Steps()), float64(bytes)/1e6)
}

// numbers writes token ids, with the middle left out where there are many.
func numbers(ids []int) string {
	const most = 24
	text := strings.Trim(fmt.Sprint(ids), "[]")
	if len(ids) > most {
		text = strings.Trim(fmt.Sprint(ids[:most/2]), "[]") + " … " +
			strings.Trim(fmt.Sprint(ids[len(ids)-most/2:]), "[]")
	}
	return fmt.Sprintf("%s (%d)", text, len(ids))
}
