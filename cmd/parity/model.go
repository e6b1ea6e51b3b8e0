package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/glob"
)

// settings are what --set says of a model, in the words of fixture.yaml.
type settings struct {
	job         engine.Job
	program     string // record what runs: on, lines or off; "" for what goes without saying
	activations string // how the inputs of products are rounded
	why         string // the task is what it is, in brackets
}

// keys are all settings.
func (s *settings) keys() keys {
	j := &s.job
	return keys{
		"revision": once(&j.Revision),
		"task":     once(&j.Task),
		"oracle":   once(&j.Oracle),
		"allow_missing": func(v string) error {
			j.AllowMissing = append(j.AllowMissing, v)
			_, err := glob.Compile(v)
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

// oneOf takes one of a few words.
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

// model says which model is run, a folder or a hub id; with an oracle it may be "". The task is read off the
// architectures in its config.json where none is said.
func (s *settings) model(model string) (err error) {
	j := &s.job
	switch {
	case j.Oracle == "" && model == "":
		return usage("which model? Name a folder or a hub id; or --set oracle=FILE for a model of your own")
	case j.Task == fixture.Module && j.Oracle == "":
		return usage("--set task=module needs --set oracle=FILE: a Python file with reference(spec) and candidate(spec)")
	case j.Oracle != "" && (isDir(j.Oracle) || !exists(j.Oracle)):
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
	case isDir(model):
		return true, nil
	case exists(model):
		return false, usage("the model %s is a file: name the folder with config.json and *.safetensors", model)
	case filepath.IsAbs(model) || strings.HasPrefix(model, ".") || strings.Count(model, "/") > 1 || strings.ContainsRune(model, '\\'):
		return false, usage("there is no model folder %s", model)
	}
	return false, nil
}

// device checks the value of --device.
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
	c := &cobra.Command{
		Use:   "plan MODEL",
		Short: "list the cases that cases: auto makes of a model, what each is for, and what it costs",
		Long: "plan reads the config.json of a model, a folder or a hub id in the cache, and lists the token ids and execution paths\n" +
			"that cross every length at which it begins to compute something else, with about the time and the bytes that they take,\n" +
			"and what is not tried. No weights are read. docs/fixture.md has cases: auto.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
		},
	}
	f.add(c, "revision, task, max_layers\n(by default as many blocks as the budget allows)", "revision", "task", "max_layers")
	c.Flags().DurationVar(&f.budget, "budget", battery.DefaultBudget, "about how long all of it may take")
	return c
}

// plan plans inputs for a model, and the execution paths that an engine runs.
func (s *settings) plan(paths []string, budget time.Duration) (plan battery.Plan, err error) {
	dir, task := s.dir(), s.job.Task
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	switch {
	case !fixture.Plannable(task):
		return plan, usage("only inputs of token ids are planned: of the tasks %s, %s and %s, not of %s", fixture.TextGeneration,
			fixture.Embeddings, fixture.TextClassification, task)
	case dir == "" || err != nil:
		return plan, usage("there is no config.json of the model on this machine to plan inputs from")
	}
	of := battery.Of(dir, task == fixture.TextGeneration)
	of.Paths, of.MaxLayers, of.Budget, of.Ahead = paths, s.job.MaxLayers, budget, battery.AheadOfMAX // it may follow
	return battery.New(config, of), nil
}

func printPlan(w io.Writer, plan battery.Plan) error {
	var rows [][]string
	row := func(name string, c battery.Cost, what string) {
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
