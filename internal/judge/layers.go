package judge

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/nearest"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/trace"
)

// Layers is an index of ports by layer, for tests that ask for thousands of them.
type Layers struct {
	ports   []*Port
	missing map[string]string // layer that was not joined → why

	indexing sync.Once
	several  bool
	runs     map[string][]LayerRun

	mu     sync.Mutex
	absent []*Port // ports that must be there and are not
}

// LayerRun is one layer in one forward pass.
type LayerRun struct {
	Case, Step string
	Judged     []*Port // outputs and taps that both sides have
	Inputs     []*Port // inputs that both sides have
}

// Judged lists the golden labels of all layers that can be judged, in execution order.
func (l *Layers) Judged() []string {
	return l.labels(func(p *Port) bool { return p.Actual != nil && p.Judged() })
}

func (l *Layers) labels(keep func(*Port) bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range l.ports {
		if !seen[p.Layer] && keep(p) {
			seen[p.Layer] = true
			out = append(out, p.Layer)
		}
	}
	return out
}

func (l *Layers) all() []string { return l.labels(func(*Port) bool { return true }) }

// Several reports whether there is more than one forward pass.
func (l *Layers) Several() bool {
	l.indexing.Do(l.index)
	return l.several
}

// Runs lists the forward passes in which a layer can be judged.
func (l *Layers) Runs(layer string) []LayerRun {
	l.indexing.Do(l.index)
	return l.runs[layer]
}

// run returns a layer in one forward pass; it has no ports if the layer cannot be judged there.
func (l *Layers) run(layer, caseName, step string) LayerRun {
	for _, r := range l.Runs(layer) {
		if r.Case == caseName && r.Step == step {
			return r
		}
	}
	return LayerRun{}
}

func (l *Layers) index() {
	l.runs = map[string][]LayerRun{}
	for _, p := range l.ports {
		l.several = l.several || p.Step != l.ports[0].Step || p.Case != l.ports[0].Case
		if p.Actual == nil {
			continue
		}
		runs := l.runs[p.Layer]
		i := slices.IndexFunc(runs, func(r LayerRun) bool { return r.Case == p.Case && r.Step == p.Step })
		if i < 0 {
			runs, i = append(runs, LayerRun{Case: p.Case, Step: p.Step}), len(runs)
		}
		if p.Judged() {
			runs[i].Judged = append(runs[i].Judged, p)
		} else if p.Joined() {
			runs[i].Inputs = append(runs[i].Inputs, p)
		}
		l.runs[p.Layer] = runs
	}
	for layer, runs := range l.runs {
		l.runs[layer] = slices.DeleteFunc(runs, func(r LayerRun) bool { return len(r.Judged) == 0 })
	}
}

// Find returns the one layer of the golden that a name means: its label, or the end of it at a dot.
func (l *Layers) Find(name string) (string, error) {
	all := l.all()
	if slices.Contains(all, name) {
		return name, nil
	}
	var hits []string
	for _, layer := range all {
		if strings.HasSuffix(layer, "."+name) {
			hits = append(hits, layer)
		}
	}
	switch len(hits) {
	case 0:
		return "", fmt.Errorf("the golden has no layer %q%s", name, didYouMean(name, all))
	case 1:
		return hits[0], nil
	}
	return "", fmt.Errorf("%q is the end of %d layers: %s: write more of the name, or use parity.Layers", name, len(hits), label.Few(hits))
}

// Glob returns the layers that match a pattern and can be judged; at least one must.
func (l *Layers) Glob(pattern string) ([]string, error) {
	g, err := glob.Compile(pattern)
	if err != nil {
		return nil, err
	}
	match := func(layers []string) []string {
		return slices.DeleteFunc(layers, func(s string) bool { return !g.Match(s) })
	}
	all := l.all()
	known := match(slices.Clone(all))
	if len(known) == 0 {
		return nil, fmt.Errorf("no layer of the golden matches%s", didYouMean(pattern, all))
	}
	hits := match(l.Judged())
	if len(hits) == 0 {
		return nil, fmt.Errorf("the candidate recorded none of the %d layers that match: %s", len(known), label.Few(known))
	}
	return hits, nil
}

// Missing says why a layer of the golden that a test asks for cannot be judged. The report calls it
// missing.
func (l *Layers) Missing(layer string) string {
	for _, p := range l.ports {
		if p.Layer == layer && p.Actual == nil && p.Judged() {
			l.lack(p)
		}
	}
	if why := l.missing[layer]; why != "" {
		return why
	}
	return fmt.Sprintf("missing: the candidate did not record an output of %s", layer)
}

// Require marks the ports of a set that are not there as missing, and returns their layers.
func (l *Layers) Require(set map[trace.Key]bool) (lost []string) {
	for _, p := range l.ports {
		if p.Actual == nil && set[p.Key] {
			l.lack(p)
			if !slices.Contains(lost, p.Layer) {
				lost = append(lost, p.Layer)
			}
		}
	}
	return lost
}

func (l *Layers) lack(p *Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.absent, p) {
		l.absent = append(l.absent, p)
	}
}

// lacking returns the ports that must be there and are not.
func (l *Layers) lacking() map[*Port]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := map[*Port]bool{}
	for _, p := range l.absent {
		set[p] = true
	}
	return set
}

// missingRow returns the report's row of a port that must be there and is not.
func (l *Layers) missingRow(p *Port) report.Layer {
	return report.Layer{Layer: p.Layer, Port: p.Port, Kind: label.RoleOf(p.Port).String(), Case: p.Case, Step: p.Step,
		Order: p.Seq, Golden: p.GoldenSide, Status: report.StatusMissing, Note: l.missing[p.Layer]}
}

func didYouMean(name string, all []string) string {
	if n, ok := nearest.Nearest(name, all); ok {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	return fmt.Sprintf(": it has %s", label.Few(all))
}
