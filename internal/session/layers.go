package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/nearest"
)

// LayerRun is one layer in one forward pass.
type LayerRun struct {
	Case, Step string
	Judged     []*Port // outputs and taps that both sides have
	Inputs     []*Port // inputs that both sides have
}

// Layers lists the golden labels of all layers that can be judged, in execution order.
func (c *Comparison) Layers() []string {
	return c.labels(func(p *Port) bool { return p.Actual != nil && p.Judged() })
}

func (c *Comparison) labels(keep func(*Port) bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range c.Ports {
		if !seen[p.Layer] && keep(p) {
			seen[p.Layer] = true
			out = append(out, p.Layer)
		}
	}
	return out
}

// Several reports whether there is more than one forward pass.
func (c *Comparison) Several() bool {
	c.indexing.Do(c.index)
	return c.several
}

// Runs lists the forward passes in which a layer can be judged.
func (c *Comparison) Runs(layer string) []LayerRun {
	c.indexing.Do(c.index)
	return c.runs[layer]
}

// index sorts the ports once: tests ask for thousands of layers.
func (c *Comparison) index() {
	c.several, c.runs = len(c.Cases) > 1, map[string][]LayerRun{}
	for _, p := range c.Ports {
		c.several = c.several || p.Step != c.Ports[0].Step
		if p.Actual == nil {
			continue
		}
		runs := c.runs[p.Layer]
		i := slices.IndexFunc(runs, func(r LayerRun) bool { return r.Case == p.Case && r.Step == p.Step })
		if i < 0 {
			runs, i = append(runs, LayerRun{Case: p.Case, Step: p.Step}), len(runs)
		}
		if p.Judged() {
			runs[i].Judged = append(runs[i].Judged, p)
		} else if p.Joined() {
			runs[i].Inputs = append(runs[i].Inputs, p)
		}
		c.runs[p.Layer] = runs
	}
	for layer, runs := range c.runs {
		c.runs[layer] = slices.DeleteFunc(runs, func(r LayerRun) bool { return len(r.Judged) == 0 })
	}
}

// FindLayer finds the one layer of the golden that a name means: its label, or the end of it at a dot.
func (c *Comparison) FindLayer(name string) (string, error) {
	all := c.labels(func(*Port) bool { return true })
	if slices.Contains(all, name) {
		return name, nil
	}
	var hits []string
	for _, l := range all {
		if strings.HasSuffix(l, "."+name) {
			hits = append(hits, l)
		}
	}
	switch len(hits) {
	case 0:
		return "", fmt.Errorf("the golden has no layer %q%s", name, didYouMean(name, all))
	case 1:
		return hits[0], nil
	}
	return "", fmt.Errorf("%q is the end of %d layers: %s: write more of the name, or use parity.Layers", name, len(hits), few(hits))
}

// GlobLayers finds the layers that match a pattern and can be judged; at least one must.
func (c *Comparison) GlobLayers(pattern string) ([]string, error) {
	g, err := glob.Compile(pattern)
	if err != nil {
		return nil, err
	}
	match := func(l []string) []string { return slices.DeleteFunc(l, func(s string) bool { return !g.Match(s) }) }
	all := c.labels(func(*Port) bool { return true })
	known := match(slices.Clone(all))
	if len(known) == 0 {
		return nil, fmt.Errorf("no layer of the golden matches%s", didYouMean(pattern, all))
	}
	hits := match(c.Layers())
	if len(hits) == 0 {
		return nil, fmt.Errorf("the candidate recorded none of the %d layers that match: %s", len(known), few(known))
	}
	return hits, nil
}

// Missing says why a layer of the golden that a test asks for cannot be judged. The report calls it missing.
func (c *Comparison) Missing(layer string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.Ports {
		if p.Layer == layer && p.Actual == nil && p.Judged() && !slices.Contains(c.absent, p) {
			c.absent = append(c.absent, p)
		}
	}
	if why := c.missing[layer]; why != "" {
		return why
	}
	return fmt.Sprintf("missing: the candidate did not record an output of %s", layer)
}

func didYouMean(name string, all []string) string {
	if n, ok := nearest.Nearest(name, all); ok {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	return fmt.Sprintf(": it has %s", few(all))
}

func few(l []string) string {
	const most = 6
	if len(l) <= most {
		return strings.Join(l, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(l[:most], ", "), len(l)-most)
}
