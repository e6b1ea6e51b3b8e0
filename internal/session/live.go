package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// sanityTokens is how many tokens the reference generates by itself before its dump becomes golden.
const sanityTokens = 32

func (f *Fixture) readYAML() (err error) {
	if f.yaml == nil {
		f.yaml, err = fixture.Load(f.dir)
	}
	return err
}

// candidate says what the fixture asks of the candidate's engine, which is forced to take the
// tokens of the goldens, unless what it computes becomes golden, with the tokens that it chooses.
func (f *Fixture) candidate() (engine.Job, error) {
	device := string(f.cfg.Run)
	encoding := f.yaml.Model.Encodings[device].Candidate
	name := cmp.Or(f.yaml.Model.Engine.Name, engine.MAX)
	if f.yaml.Model.Engine.Command != nil {
		name = engine.Command
	}
	if name == engine.MAX {
		if err := engine.Supports(device, encoding); err != nil {
			return engine.Job{}, fmt.Errorf("%s: %w: write encodings: {%s: {candidate: …}}", f.yaml.File, err, device)
		}
	}
	job := f.yaml.Job(name, device)
	job.Encoding, job.Config = encoding, f.yaml.Model.Engine.Settings
	if err := quantisedFile(&job, f.yaml); err != nil {
		return engine.Job{}, err
	}
	if f.cfg.Bless != "" {
		return job, nil
	}
	for i, y := range f.yaml.Cases {
		run, err := f.asked(device, y.Name)
		if err != nil {
			return engine.Job{}, err
		}
		job.Cases[i].Forced = run.Decoded()
		if len(y.Prompts)+len(y.Messages) > 0 {
			job.Cases[i].TokenIDs = run.Info.Asked() // what it makes of the text itself is judged apart
		}
	}
	return job, nil
}

// say shows a line that a person should read.
func (f *Fixture) say(line string) {
	fmt.Fprintf(os.Stderr, "parity: %s: %s\n", f.name, sanitize.Line(line))
}

// waits says which process writes a folder that this one is about to write.
func (f *Fixture) waits(dir string) func(holder string) {
	return func(holder string) {
		if holder == "" {
			f.say("the file system of " + filepath.ToSlash(dir) + " has no locks: let no other process write it meanwhile")
			return
		}
		f.say("waits for " + holder + ", which writes " + filepath.ToSlash(dir))
	}
}

// supervised returns the context of an engine or a server. It ends by a signal, where these end the
// process, and before the alarm of go test.
func (f *Fixture) supervised() (ctx context.Context, stop func()) {
	signalled, again := f.cfg.Context, func() {}
	if signalled == nil {
		signalled, again = supervise.Signals(context.Background())
	}
	ctx, cancel := supervise.WithDeadline(signalled, f.cfg.Timeout, f.cfg.Started)
	return ctx, func() {
		cancel()
		if f.cfg.Context == nil && signalled.Err() != nil {
			f.release() // the signal ends the process
		}
		again()
	}
}

// run runs a job under the test's own deadline, alone on its device. The dump lives until the
// session ends.
func (f *Fixture) run(job engine.Job) (*engine.Result, error) {
	ctx, stop := f.supervised()
	defer stop()
	dir, err := f.tempDir()
	if err != nil {
		return nil, err
	}
	job.Out = filepath.Join(dir, "dump")
	opt, err := f.options(job.Engine)
	if err != nil {
		return nil, err
	}
	result, err := engine.RunOnDevice(ctx, job, opt, f.say)
	if err == nil {
		f.opened = append(f.opened, result.Runs...)
	}
	return result, err
}

// options returns where an engine logs, a file that outlives the run for people and CI to read, and
// what runs the engine command.
func (f *Fixture) options(name string) (opt engine.Options, err error) {
	if f.out != "" {
		opt.LogFile = filepath.Join(f.out, name+".log")
	} else if opt.LogFile, err = engine.LogFile(f.name + "-" + name); err != nil {
		return opt, err
	}
	if name == engine.Command {
		opt.Dir, opt.Program, err = f.yaml.Program()
	}
	return opt, err
}

// observed runs a job and, where an observer check is asked for, notes whether the hooks change
// what the model returns.
func (f *Fixture) observed(job engine.Job) (*engine.Result, error) {
	if !f.cfg.Observer {
		return f.run(job)
	}
	result, note, err := engine.Observe(job, f.run)
	if err == nil {
		f.notes = append(f.notes, note)
	}
	return result, err
}

// tempDir makes a folder that is removed when the session ends, or else by the next one.
func (f *Fixture) tempDir() (string, error) {
	dir, remove, err := supervise.TempDir("", "goparity-"+f.name+"-")
	if err == nil {
		f.remove = append(f.remove, remove)
	}
	return dir, err
}

// release closes what was recorded, and removes it.
func (f *Fixture) release() error {
	errs := []error{dump.CloseAll(f.opened)}
	for _, remove := range f.remove {
		errs = append(errs, remove())
	}
	return errors.Join(errs...)
}

// modelFolder is the folder of the fixture's model.
func (f *Fixture) modelFolder() string { return f.folder(f.yaml.Model.Path, f.yaml.Model.Revision) }

// folder is where a model lies: a folder beside the fixture, or one in the hub's cache of this machine; "" where it
// is not there.
func (f *Fixture) folder(path, revision string) string {
	switch {
	case path == "":
		return ""
	case fixture.Model{Model: engine.Model{Path: path}}.Local():
		return filepath.Join(f.dir, filepath.FromSlash(path))
	}
	return checkpoint.Snapshot(path, revision)
}

// config reads the model's config.json; nil where a model of the hub is not on this machine.
func (f *Fixture) config() (checkpoint.Config, error) {
	dir := f.modelFolder()
	if dir == "" {
		return nil, nil
	}
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	if !f.yaml.Model.Local() && errors.Is(err, fs.ErrNotExist) { // a part of the model is in the cache
		return nil, nil
	}
	return config, err
}

// evidence opens the weights and the config of the fixture's model, or the quantised weights on which
// the judging reference ran, once. Of a model from the hub they are those in its cache, or none.
func (f *Fixture) evidence() (checkpoint.Weights, checkpoint.Config, error) {
	config, err := f.config()
	if config == nil || err != nil {
		return nil, nil, err
	}
	path := f.modelFolder()
	if r, _ := f.yaml.Variant(f.yaml.Reference(string(f.cfg.Run))); r.IsDequantised() {
		path = f.yaml.QuantisedWeights()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.weights == nil {
		f.weights, err = checkpoint.Open(path)
		if !f.yaml.Model.Local() && errors.Is(err, fs.ErrNotExist) {
			return nil, config, nil
		}
		if err != nil {
			return nil, config, err
		}
	}
	return f.weights.Tensors, config, nil
}

// Injection writes the golden inputs of a case into dir as the candidate lays them out, and returns
// what an injected run is told. The standard run of the case says which input of the candidate each
// golden one is. Only the first step is injected: a graph has one size for each input.
func Injection(k judge.Case, opt match.Options, dir string) (*engine.Golden, error) {
	res, err := k.Match(k.Actual, opt)
	if err != nil {
		return nil, err
	}
	g := &engine.Golden{File: filepath.Join(dir, k.Name+".safetensors"), Left: map[string]string{}}
	var named []tensor.Named
	first := k.Actual.Steps()[0]
	done := map[string]bool{}
	for _, pair := range res.Pairs {
		a := k.Actual.Entries[pair.Actual[0]]
		name := a.Label()
		if a.Step != first || !label.IsInput(a.Port) || done[name] {
			continue // the input of a fused layer belongs to several goldens, which are one
		}
		t, left := asCandidate(k, pair)
		if left != "" {
			g.Left[name] = left
			continue
		}
		done[name] = true
		delete(g.Left, name)
		named = append(named, tensor.Named{Name: name, Tensor: t})
		g.Inputs = append(g.Inputs, engine.GoldenInput{Label: name, Golden: k.Golden.Entries[pair.Golden[0]].Label()})
	}
	if len(g.Inputs) == 0 {
		return nil, fmt.Errorf("case %s: no golden input can be given to the candidate: no injected run", k.Name)
	}
	for _, u := range res.UnmatchedActual {
		if a := k.Actual.Entries[u.Index]; a.Step == first && label.IsInput(a.Port) && u.Reason != "" {
			g.Left[a.Label()] = u.Reason
		}
	}
	out, err := os.OpenFile(g.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	ranges, err := safetensors.WriteUnique(out, named, nil)
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	for i := range g.Inputs {
		g.Inputs[i].Name = ranges[i].Name
	}
	return g, nil
}

// asCandidate returns a pair's golden input as the candidate lays it out, or why it is left out.
func asCandidate(k judge.Case, pair match.Pair) (t *tensor.Tensor, left string) {
	golden, actual := k.Golden.Entries[pair.Golden[0]].Tensor, k.Actual.Entries[pair.Actual[0]].Tensor
	switch {
	case pair.Problem != "":
		return nil, pair.Problem
	case pair.Mask:
		return nil, "a mask: each engine has its own form of it"
	case !golden.DType().IsFloat():
		return nil, "integers select, they are not computed"
	case len(pair.Golden) > 1 || len(pair.Actual) > 1:
		return nil, "the golden has several tensors here"
	}
	if back, ok := pair.ActualView.Inverse(actual.Shape()); ok {
		t, err := pair.GoldenView.Apply(golden)
		if err == nil {
			t, err = back.Apply(t)
		}
		if err == nil && slices.Equal(t.Shape(), actual.Shape()) {
			return t, ""
		}
	}
	return nil, "the golden cannot be laid out like it"
}

// addInjected adds the candidate's run on golden inputs to each case: a live one if both modes are
// asked for, the recorded one with a replay.
func (f *Fixture) addInjected(cases []judge.Case) error {
	both := f.cfg.Mode == setting.ModeBoth
	if f.isLive() {
		if !both && !(f.cfg.Mode == setting.ModeCan && f.injects()) {
			return nil
		}
		return f.liveInjected(cases)
	}
	if f.replay != "" {
		if both {
			return fmt.Errorf("PARITY_REPLAY=%s is one run: -parity.mode=both needs a live run, or the fixture's recorded ones", f.replay)
		}
		return nil
	}
	if f.injected == nil && both {
		return fmt.Errorf("%s: replay: %s: there is no recorded injected run %s: record it with -parity.run=cpu -parity.mode=both -parity.record=%s",
			f.yaml.File, f.yaml.Replay, filepath.ToSlash(f.runDir(f.yaml.Replay)), f.yaml.Replay)
	}
	for i := range cases {
		for _, r := range f.injected {
			if r.Info.Case == cases[i].Name {
				cases[i].Injected = r
			}
		}
	}
	return nil
}

// injects reports whether the candidate's engine can run on golden inputs.
func (f *Fixture) injects() bool {
	e := f.yaml.Model.Engine
	return !f.yaml.Alone && e.Command == nil && cmp.Or(e.Name, engine.MAX) == engine.MAX
}

// runInputs returns what a recorded run depends on: an injected one also on the golden inputs that it was given.
func (f *Fixture) runInputs(run dump.Info) fixture.Inputs {
	base, _ := dump.CutPathCase(run.Case)
	in := f.yaml.RunInputs(base)
	if run.Mode == dump.Injected {
		if k := f.goldens.Find(f.yaml.Reference(run.Device), run.Case); k != nil {
			in["golden"] = k.Info.SHA256[k.Info.Order[0].File]
		}
	}
	return in
}

// liveInjected runs the candidate once more, each layer on golden inputs, and adds what it computed
// to the cases.
func (f *Fixture) liveInjected(cases []judge.Case) error {
	job, err := f.candidate()
	if err != nil {
		return err
	}
	if f.yaml.Alone {
		return fmt.Errorf("%s: an injected run is given golden inputs, and reference: program has none: -parity.mode=standard", f.yaml.File)
	}
	if job.Engine != engine.MAX {
		return fmt.Errorf("%s: only MAX makes injected runs, the candidate is %s: -parity.mode=standard", f.yaml.File, job.Engine)
	}
	dir, err := f.tempDir()
	if err != nil {
		return err
	}
	job.Mode = dump.Injected
	for i := range job.Cases {
		c := &job.Cases[i]
		c.Steps, c.Forced = 1, nil
		if c.Golden, err = Injection(cases[i], f.compareOptions().Match, dir); err != nil {
			return err
		}
	}
	r, err := f.run(job)
	if err != nil {
		return fmt.Errorf("injected run: %w", err)
	}
	f.injected = r.Runs
	for i := range cases {
		cases[i].Injected = r.Runs[i]
	}
	return nil
}

// quantisedFile gives MAX the .gguf file that the dequantised references stand for, unless the
// fixture names files itself.
func quantisedFile(job *engine.Job, y *fixture.Fixture) error {
	const files = "weight_path" // the setting of MAX
	path := y.QuantisedWeights()
	if job.Engine != engine.MAX || !strings.EqualFold(filepath.Ext(path), ".gguf") || job.Config[files] != nil {
		return nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	config := map[string]any{files: []string{abs}}
	maps.Copy(config, job.Config)
	job.Config = config
	return nil
}
