package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

// planned are the cases that [battery] plans for the model of a job. The program of a large one's first
// blocks is run.
func (f *runFlags) planned(job *engine.Job) ([]engine.Case, error) {
	dir := modelDir(f.model, job.Local, f.revision)
	config, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	switch {
	case f.path != "":
		return nil, usage("run: --path: want --token-ids or --follow: a path is a way to run tokens that are known")
	case f.model == "" || dir == "" || err != nil:
		return nil, usage("run: want one of --prompt, --token-ids and --follow: there is no config.json of the model to plan cases from")
	case !fixture.Plannable(job.Task):
		return nil, usage("run: want one of --prompt, --token-ids and --follow: no cases are planned for task %s", job.Task)
	}
	of := battery.Of(dir, job.Task == fixture.TextGeneration)
	of.MaxLayers = job.MaxLayers
	plan := battery.New(config, of)
	if job.MaxLayers == 0 {
		job.MaxLayers = plan.MaxLayers
	}
	var cases []engine.Case
	for _, c := range plan.Cases {
		ec := engine.Case{Name: c.Name, Messages: c.Messages, Tools: c.Tools, Steps: c.Steps}
		if c.TokenIDs != nil {
			ec.TokenIDs = [][]int{c.TokenIDs}
		}
		if c.Prompt != "" {
			ec.Prompts = []string{c.Prompt}
		}
		if c.Images != nil {
			ec.Images = [][]string{c.Images}
		}
		if c.Images == nil || engine.TakesImages(job.Engine) {
			cases = append(cases, ec)
		}
	}
	return cases, nil
}

// followAll takes what each of the planned cases of another run was given, without those with images if
// the engine of that name takes none; nil where that is one of a single case.
func followAll(dir, name string) (cases []engine.Case, err error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, usage("run: --follow: %v", err)
	}
	for _, folder := range folders {
		if !folder.IsDir() || !strings.HasPrefix(folder.Name(), battery.Prefix) {
			continue
		}
		c := engine.Case{Name: folder.Name()}
		if _, err := os.Stat(filepath.Join(dir, c.Name, dump.RunFile)); err != nil {
			continue
		}
		if err := follow(&c, filepath.Join(dir, c.Name)); err != nil {
			return nil, err
		}
		if c.Images == nil || engine.TakesImages(name) {
			cases = append(cases, c)
		}
	}
	return cases, nil
}
