package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

type planFlags struct {
	task, revision string
	budget         time.Duration
	layers         int
	yaml           bool
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
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.OutOrStdout(), args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.task, "task", "", "text-generation, embeddings or text-classification (default: by config.json)")
	fl.StringVar(&f.revision, "revision", "", "`revision` of a hub id")
	fl.DurationVar(&f.budget, "budget", battery.DefaultBudget, "about how long all of it may take")
	fl.IntVar(&f.layers, "num-hidden-layers", 0, "the first `N` blocks run (default: as many as the budget allows)")
	fl.BoolVar(&f.yaml, "yaml", false, "print "+fixture.AutoFile+" instead")
	return c
}

func (f *planFlags) run(w io.Writer, model string) error {
	if f.budget <= 0 || f.layers < 0 {
		return usage("plan: --budget and --num-hidden-layers are positive")
	}
	local, err := localModel(model)
	if err != nil {
		return err
	}
	task := f.task
	if task == "" {
		if task, _, err = guessTask(model, local, f.revision); err != nil {
			return err
		}
	}
	if !fixture.Plannable(task) {
		return usage("plan: --task %q: want %s, %s or %s: only inputs of token ids are planned", task, fixture.TextGeneration,
			fixture.Embeddings, fixture.TextClassification)
	}
	dir := modelDir(model, local, f.revision)
	if dir == "" {
		return usage("plan: %s is not in the hub's cache of this machine", model)
	}
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return usage("plan: %v", err)
	}
	of := battery.Of(dir, task == fixture.TextGeneration)
	of.Paths, of.MaxLayers, of.Budget = fixture.AutoPaths(task, engine.MAX), f.layers, f.budget
	plan := battery.New(config, of)
	if f.yaml {
		budget := f.budget
		if budget == battery.DefaultBudget {
			budget = 0
		}
		_, err := w.Write(fixture.AutoYAML(plan, budget))
		return err
	}
	return printPlan(w, plan)
}

func printPlan(w io.Writer, plan battery.Plan) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, c battery.Cost, what string) {
		fmt.Fprintf(t, "%s\t%d tokens\t%.1f MB\t%s\t%s\n", name, c.Tokens, float64(c.Bytes)/1e6, c.Time.Round(100*time.Millisecond), what)
	}
	for _, c := range plan.Cases {
		row(c.Name, c.Cost, c.For)
	}
	for _, x := range plan.Paths {
		row(shorten(x.Name), x.Cost, x.For)
	}
	row("together", plan.Cost, "with the start of both engines")
	if err := t.Flush(); err != nil {
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

// shorten cuts the numbers of a path.
func shorten(name string) string {
	const most = 40
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}
