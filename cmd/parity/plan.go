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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, c battery.Cost, what string) {
		const most = 40 // of the numbers of a path
		if len(name) > most {
			name = name[:most] + "…"
		}
		fmt.Fprintf(t, "%s\t%d tokens\t%.1f MB\t%s\t%s\n", name, c.Tokens, float64(c.Bytes)/1e6, c.Time.Round(100*time.Millisecond), what)
	}
	for _, c := range plan.Cases {
		row(c.Name, c.Cost, c.For)
	}
	for _, x := range plan.Paths {
		row(x.Name, x.Cost, x.For)
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
