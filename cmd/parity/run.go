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
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
)

// runSanity is how many tokens the reference goes on with, so that a person sees whether it makes sense.
const runSanity = 32

type runFlags struct {
	settings
	engine, model, follow, path, out, dequantised string
	prompts, ids                                  []string
	steps                                         int
	force                                         bool
}

func newRun() *cobra.Command {
	var f runFlags
	c := command("run", cobra.NoArgs, f.run)
	f.add(c)
	return c
}

func (f *runFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.engine, "engine", "", "`torch`, max, mlx, or a file: docs/your-engine.md")
	fl.StringVar(&f.model, "model", "", "model `folder` or hub id")
	f.settings.add(c, "revision, task, oracle (a Python file with\n"+
		"reference(spec), and candidate(spec)), max_layers, hf_config_overrides (a JSON object), allow_missing,\n"+
		"trust_remote_code, engine.KEY (a setting of MAX; of torch engine.attn_implementation=sdpa); program=lines or off\n"+
		"(by default torch's is recorded in float32); weights=bytes or hashes keeps the weights that were loaded;\n"+
		"activations, with --dequantised: the input of each product is rounded as engines do, int8/256 (K-quants),\n"+
		"int8/32 or float8_e4m3fn")
	fl.StringArrayVar(&f.prompts, "prompt", nil, "`text` to run; several are a batch")
	fl.StringArrayVar(&f.ids, "token-ids", nil, "token ids to run in place of a prompt, as `1,2,3`; several are a batch")
	fl.StringVar(&f.follow, "follow", "", "run the token ids, steps and decoded tokens of another `dump` of parity run")
	fl.StringVar(&f.path, "path", "", "run the tokens along an execution `path`: decode:8, chunked:4, batch, repeat:3, …; docs/paths.md")
	fl.IntVar(&f.steps, "num-steps", 1, "forward passes: 1 is the prefill, each further one decodes a token")
	fl.StringVar(&f.job.Encoding, "encoding", "",
		"dtype of torch (default float32), encoding of MAX (default float32 on the CPU, its own choice on the GPU)")
	fl.StringVar(&f.dequantised, "dequantised", "",
		"run torch on what quantised weights stand for: a .gguf `file`, or a folder of Hugging Face")
	fl.StringVar(&f.job.Device, "device", engine.CPU, "cpu or gpu")
	fl.StringArrayVar(&f.job.Capture.Layers, "filter", nil, "record only layers that match this `glob`; may be repeated")
	fl.StringVarP(&f.out, "output", "o", "", "`folder` to write (default torch_dump or max_dump)")
	fl.BoolVar(&f.force, "force", false, "replace a dump that is there already")
	for _, other := range [][]string{{"prompt", "token-ids", "follow"}, {"num-steps", "path"}, {"num-steps", "follow"}} {
		c.MarkFlagsMutuallyExclusive(other...)
	}
}

func (f *runFlags) run(cmd *cobra.Command, _ []string) error {
	stdout := cmd.OutOrStdout()
	if err := f.prepare(); err != nil {
		return err
	}
	out, err := f.output()
	if err != nil {
		return err
	}
	f.head(stdout)
	tmp, remove, err := supervise.TempDir(filepath.Dir(out), ".parity-run-")
	if err != nil {
		return err
	}
	defer remove()
	job := f.job
	job.Out = filepath.Join(tmp, "dump")
	if f.dequantised != "" {
		if err := f.dequantise(&job, filepath.Join(tmp, "model")); err != nil {
			return err
		}
	}
	logFile := out + ".log" // stays where the run fails
	r, err := runEngine(cmd.Context(), job, logFile, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	tail(stdout, job, r)
	from := job.Out
	if len(job.Cases) == 1 {
		from = filepath.Join(job.Out, job.Cases[0].Name)
	}
	if err := errors.Join(r.Close(), mapfile.Swap(from, out, filepath.Join(tmp, "old"))); err != nil {
		return err
	}
	os.Remove(logFile)
	fmt.Fprintf(stdout, "dump      %s\n", f.out)
	if next := f.next(); next != "" {
		fmt.Fprintf(stdout, "next      %s\n", next)
	}
	return nil
}

func (f *runFlags) next() string {
	switch {
	case f.path != "":
		return setting.Command("parity", "compare", cmp.Or(f.follow, "GOLDEN"), f.out)
	case f.job.Engine != engine.Torch:
		return ""
	case f.follow != "" && f.job.Encoding != "float32":
		return setting.Command("parity", "compare", f.follow, "DUMP", "--also", "noise="+f.out) + ", with a run of another engine in " + f.job.Encoding
	}
	return setting.Command("parity", "run", "--engine") + " max … --follow " + setting.Command(f.out) + ", then " +
		setting.Command("parity", "compare", f.out, "max_dump")
}

func runEngine(ctx context.Context, job engine.Job, logFile string, stderr io.Writer) (*engine.Result, error) {
	say := func(line string) { fmt.Fprintf(stderr, "parity: %s\n", sanitize.Line(line)) }
	return engine.RunOnDevice(ctx, job, engine.Options{LogFile: logFile}, say)
}

// dequantise gives a job a folder with the numbers that quantised weights stand for, in dir.
func (f *runFlags) dequantise(job *engine.Job, dir string) error {
	model := f.dir()
	if model == "" {
		return usage("run: --dequantised: %s is not in the hub's cache of this machine, and its config.json is needed", f.model)
	}
	quantised, err := checkpoint.WriteDequantised(f.dequantised, dir, model)
	if err != nil {
		return fmt.Errorf("--dequantised: %w", err)
	}
	job.Path, job.Local, job.Revision = dir, true, ""
	if f.activations != "" {
		job.Activations = &engine.Activations{Rule: f.activations, Weights: quantised}
	}
	return nil
}

// prepare completes the job, and refuses flags that would have no effect.
func (f *runFlags) prepare() (err error) {
	j := &f.job
	known := j.Use(f.engine)
	torch := j.Engine == engine.Torch
	switch {
	case !known:
		return usage("run: --engine %q: want %s, or a file of yours, ./engine.py", f.engine, engine.Names())
	case f.dequantised != "" && (!torch || j.Oracle != ""):
		return usage("run: --dequantised is for the reference: --engine torch, without an oracle")
	case f.activations != "" && f.dequantised == "":
		return usage("run: --set activations goes with --dequantised")
	}
	if err := cmp.Or(device(j.Device), f.settings.model(f.model), f.records()); err != nil {
		return err
	}
	for _, g := range j.Capture.Layers {
		if _, err := label.CompilePattern(g); err != nil {
			return usage("run: --filter: %v", err)
		}
	}
	for key, value := range j.Config {
		name, isText := value.(string)
		switch {
		case !torch:
		case key != engine.AttnImplementation || !isText || name == "":
			return usage("run: --set engine.%s=%v: torch has one setting, %s=eager (the default) or sdpa", key, value, engine.AttnImplementation)
		case j.Oracle != "":
			return usage("run: --set engine.%s: the oracle file makes the model, and chooses", key)
		}
	}
	if j.Encoding == "" && (torch || j.Device == engine.CPU) {
		j.Encoding = "float32"
	}
	if j.Engine == engine.MAX {
		if err := engine.Supports(j.Device, j.Encoding); err != nil {
			return usage("run: --encoding: %v", err)
		}
	}
	if torch && j.Task == fixture.TextGeneration {
		j.SanityTokens, j.SkipSanity = runSanity, "this dump is no golden"
	}
	j.Cases, err = f.cases()
	return err
}

// records says whether the program that runs is recorded, and how: by default that of a reference in float32.
func (f *runFlags) records() error {
	how := cmp.Or(f.program, fixture.ProgramOff)
	if f.program == "" && f.job.Engine == engine.Torch && f.path == "" && slices.Contains([]string{"", "float32"}, f.job.Encoding) {
		how = fixture.ProgramOn
	}
	switch {
	case how == fixture.ProgramOff:
		return nil
	case f.job.Engine != engine.Torch:
		return usage("run: --set program is for --engine torch: the reference's program judges")
	case f.path != "":
		return usage("run: --set program and --path: the program of one pass judges all paths")
	}
	fixture.RecordProgram(&f.job, how)
	return nil
}

// output is the absolute folder to write, which must be free; with --force it may be a dump.
func (f *runFlags) output() (string, error) {
	f.out = cmp.Or(f.out, strings.TrimSuffix(filepath.Base(f.engine), ".py")+"_dump")
	out, err := filepath.Abs(f.out)
	if err != nil {
		return "", err
	}
	dumps, _ := filepath.Glob(filepath.Join(out, fixture.BatteryPrefix+"*", dump.RunFile))
	switch _, err := os.Lstat(out); {
	case err != nil:
	case !f.force:
		return "", usage("run: %s exists: --force replaces a dump, -o writes another one", f.out)
	case len(dumps) == 0 && !exists(filepath.Join(out, dump.RunFile)):
		return "", usage("run: %s is not replaced: it has no %s, so it is no dump of parity run", f.out, dump.RunFile)
	}
	return out, os.MkdirAll(filepath.Dir(out), 0o755)
}

func (f *runFlags) head(w io.Writer) {
	j := f.job
	fmt.Fprintf(w, "engine    %s on the %s, %s\n", j.Engine, j.Device, cmp.Or(j.Encoding, "its own encoding"))
	for _, of := range [][2]string{{"model", f.model}, {"oracle", j.Oracle}, {"task", j.Task + f.why}} {
		if of[1] != "" {
			fmt.Fprintf(w, "%-9s %s\n", of[0], of[1])
		}
	}
	for _, p := range f.prompts {
		fmt.Fprintf(w, "prompt    %q\n", p)
	}
}

func tail(w io.Writer, job engine.Job, r *engine.Result) {
	say := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, sanitize.Line(fmt.Sprintf(format, args...)))
	}
	say("class", "%s", r.About[0].ModelClass)
	if file := r.About[0].ModelFile; file != "" {
		say("source", "%s", file)
	}
	for i, run := range r.Runs {
		if len(r.Runs) > 1 {
			say("case", "%s", run.Info.Case)
		}
		for _, s := range run.Info.Tokens() {
			say("tokens", "%s", tokens(s))
		}
		if run.Info.ReferenceText != "" {
			say("goes on", "%q", run.Info.ReferenceText)
		}
		if made, err := r.Generated(i); err == nil && job.Task == fixture.TextGeneration {
			for _, s := range made {
				say("decoded", "%s", tokens(s))
			}
		}
		if none := r.About[i].NoProgram; none != "" {
			say("program", "none: %s", none)
		} else if run.Program != "" {
			say("program", "%s", dump.ProgramFile)
		}
		layers, bytes := map[string]bool{}, 0
		for _, e := range run.Entries {
			layers[e.Layer] = true
			if e.Tensor != nil {
				bytes += e.Tensor.Len() * e.Tensor.DType().Size()
			}
		}
		say("recorded", "%d tensors of %d layers in %d steps, %.1f MB; peak memory %d MiB", len(run.Entries), len(layers),
			len(run.Steps()), float64(bytes)/1e6, run.Info.PeakRSS>>20)
	}
}

// cases are what is run: a prompt, token ids, what another run was given, or what is planned from the model.
func (f *runFlags) cases() (cases []engine.Case, err error) {
	switch {
	case f.follow != "":
		cases, err = f.followed()
	case len(f.prompts)+len(f.ids) > 0 || f.job.Task == fixture.Module:
		cases, err = f.given()
	default:
		return f.planned()
	}
	if err != nil || f.path == "" {
		return cases, err
	}
	if len(cases) > 1 {
		return nil, usage("run: --path runs the tokens of one case, and %s has %d", f.follow, len(cases))
	}
	c, err := f.along(cases[0])
	if err != nil {
		return nil, usage("run: --path %s: %v", f.path, err)
	}
	return []engine.Case{c}, nil
}

func (f *runFlags) given() ([]engine.Case, error) {
	c := engine.Case{Name: dump.RunCase, Prompts: f.prompts, Steps: f.steps}
	if f.steps < 1 || f.steps > 1 && f.job.Task != fixture.TextGeneration {
		return nil, usage("run: --num-steps %d: a task %s has one step, only text-generation has more", f.steps, f.job.Task)
	}
	for _, text := range f.ids {
		var ids []int
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			var id int
			if err := json.Unmarshal([]byte(word), &id); err != nil {
				return nil, usage("run: --token-ids: %q is no token id", word)
			}
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return nil, usage("run: --token-ids: %q has no token ids: write 72,101,108", text)
		}
		c.TokenIDs = append(c.TokenIDs, ids)
	}
	return []engine.Case{c}, nil
}

// planned are the cases that [battery] plans for the model. The program of a large one's first blocks is run.
func (f *runFlags) planned() (cases []engine.Case, err error) {
	if f.path != "" {
		return nil, usage("run: --path: want --token-ids or --follow: a path is a way to run tokens that are known")
	}
	plan, err := f.plan(nil, 0)
	if err != nil {
		return nil, usage("run: want one of --prompt, --token-ids and --follow: %w", err)
	}
	if f.job.MaxLayers == 0 {
		f.job.MaxLayers = plan.MaxLayers
	}
	for _, c := range plan.Cases {
		if c.Images == nil || engine.TakesImages(f.job.Engine) {
			cases = append(cases, c.Case)
		}
	}
	return cases, nil
}

// followed takes what another run was given, or its planned cases; those with images only where the engine takes any.
func (f *runFlags) followed() (cases []engine.Case, err error) {
	planned, _ := filepath.Glob(filepath.Join(f.follow, fixture.BatteryPrefix+"*", dump.RunFile))
	if planned == nil {
		c, err := follow(filepath.Join(f.follow, dump.RunFile), dump.RunCase)
		return []engine.Case{c}, err
	}
	for _, file := range planned {
		c, err := follow(file, filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		if c.Images == nil || engine.TakesImages(f.job.Engine) {
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// follow takes token ids, steps and decoded tokens from the run.json of another run.
func follow(file, name string) (c engine.Case, err error) {
	wrong := func(format string, args ...any) (engine.Case, error) {
		return c, usage("run: --follow: %s: %s", file, fmt.Sprintf(format, args...))
	}
	var run struct{ Sequence [][]int }
	info, err := dump.ReadInfo(filepath.Dir(file))
	data, unread := mapfile.Read(file, mapfile.MaxListing)
	c = engine.Case{Name: name, TokenIDs: info.Tokens(), Images: info.Images}
	if err = cmp.Or(err, unread, json.Unmarshal(data, &run)); err != nil || len(c.TokenIDs) == 0 {
		return wrong("want a dump that parity run wrote, with token ids: %v", err)
	}
	for _, image := range slices.Concat(c.Images...) {
		if _, drawn := engine.ParsePicture(image); !drawn {
			return wrong("it was given the image %s, which is not in the dump: compare the two engines in a fixture", image)
		}
	}
	steps := map[string]bool{}
	for _, e := range info.Order {
		steps[e.Step] = true
	}
	if c.Steps = max(len(steps), 1); c.Steps == 1 {
		return c, nil
	}
	for i, ids := range c.TokenIDs {
		if i >= len(run.Sequence) || len(run.Sequence[i]) < len(ids)+c.Steps-1 {
			return wrong("it has %d steps, but not the tokens that they were given", c.Steps)
		}
		c.Forced = append(c.Forced, run.Sequence[i][len(ids):len(ids)+c.Steps-1])
	}
	return c, nil
}

func (f *runFlags) along(c engine.Case) (engine.Case, error) {
	p, err := dump.ParsePath(f.path)
	switch {
	case err != nil:
		return c, err
	case p.Kind == dump.OnePass:
		return c, errors.New("one-pass is what runs without --path")
	case c.TokenIDs == nil:
		return c, errors.New("want --token-ids or --follow: a path is a way to run tokens that are known")
	}
	if err := fixture.Takes(f.job.Task, f.path, false); err != nil {
		return c, err
	}
	var about path.About
	if config, err := checkpoint.ReadConfig(filepath.Join(f.dir(), "config.json")); err == nil {
		about.Window, _ = config.Int("sliding_window")
	}
	about.Page, _ = checkpoint.Config(f.job.Config).Int("kv_cache_page_size")
	plans, _, err := path.Plans(f.path, []path.Input{{Case: c.Name, Tokens: c.TokenIDs}}, about)
	if err != nil {
		return c, err
	}
	return engine.Case{Name: dump.RunCase, TokenIDs: plans[0].Tokens, Path: plans[0].Path, Passes: plans[0].Passes}, nil
}
