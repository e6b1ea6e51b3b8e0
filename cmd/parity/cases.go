package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/picture"
)

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

// given is the one case of prompts or token ids.
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

// followed takes what another run was given, or each of the planned cases of one, but for those with images where the
// engine is given none.
func (f *runFlags) followed() (cases []engine.Case, err error) {
	planned, _ := filepath.Glob(filepath.Join(f.follow, battery.Prefix+"*", dump.RunFile))
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
		if _, drawn := picture.Parse(image); !drawn {
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

// along plans the forward passes of an execution path.
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
