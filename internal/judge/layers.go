package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
)

// Layers is an index of ports by layer, for tests that ask for thousands of them.
type Layers struct {
	missing     map[string]string // layer that was not joined → why
	several     bool
	layers      map[string]*indexed
	all, judged []string // labels in execution order, and those of layers that can be judged
}

// indexed is what the index has of a layer.
type indexed struct {
	runs   []LayerRun
	lacks  []*Port // outputs that the candidate did not record
	judged bool
}

// LayerRun is one layer in one forward pass.
type LayerRun struct {
	Case, Step string
	Judged     []*Port // outputs and taps that both sides have
	Inputs     []*Port // inputs that both sides have
}

func newLayers(ports []*Port, missing map[string]string) *Layers {
	l := &Layers{missing: missing, layers: map[string]*indexed{}}
	for _, p := range ports {
		l.several = l.several || p.Step != ports[0].Step || p.Case != ports[0].Case
		of := l.layers[p.Layer]
		if of == nil {
			of = &indexed{}
			l.layers[p.Layer], l.all = of, append(l.all, p.Layer)
		}
		of.add(p)
		if p.Actual != nil && p.Judged() && !of.judged {
			of.judged, l.judged = true, append(l.judged, p.Layer)
		}
	}
	for _, of := range l.layers {
		of.runs = slices.DeleteFunc(of.runs, func(r LayerRun) bool { return len(r.Judged) == 0 })
	}
	return l
}

func (l *indexed) add(p *Port) {
	if p.Actual == nil {
		if p.Judged() {
			l.lacks = append(l.lacks, p)
		}
		return
	}
	i := len(l.runs) - 1 // a port of the last pass, as most are
	for i >= 0 && (l.runs[i].Case != p.Case || l.runs[i].Step != p.Step) {
		i--
	}
	if i < 0 {
		i, l.runs = len(l.runs), append(l.runs, LayerRun{Case: p.Case, Step: p.Step})
	}
	if r := &l.runs[i]; p.Judged() {
		r.Judged = append(r.Judged, p)
	} else if p.Joined() {
		r.Inputs = append(r.Inputs, p)
	}
}

// Judged lists the golden labels of all layers that can be judged, in execution order.
func (l *Layers) Judged() []string { return slices.Clone(l.judged) }

// Continued reports whether the label of another layer that can be judged is this one, a slash and
// more: to go test, its subtest lies inside of this one's.
func (l *Layers) Continued(layer string) bool {
	return slices.ContainsFunc(l.judged, func(other string) bool { return strings.HasPrefix(other, layer+"/") })
}

// Several reports whether there is more than one forward pass.
func (l *Layers) Several() bool { return l.several }

// Runs lists the forward passes in which a layer can be judged.
func (l *Layers) Runs(layer string) []LayerRun {
	if of := l.layers[layer]; of != nil {
		return of.runs
	}
	return nil
}

// Find returns the one layer of the golden that a name means: its label, or the end of it at a dot.
func (l *Layers) Find(name string) (string, error) {
	if l.layers[name] != nil {
		return name, nil
	}
	var hits []string
	for _, layer := range l.all {
		if strings.HasSuffix(layer, "."+name) && name != "" {
			hits = append(hits, layer)
		}
	}
	switch len(hits) {
	case 0:
		return "", fmt.Errorf("the golden has no layer %q%s", name, didYouMean(name, l.all))
	case 1:
		return hits[0], nil
	}
	return "", fmt.Errorf("%q is the end of %d layers: %s: write more of the name, or use parity.Layers", name, len(hits), label.Few(hits))
}

// Glob returns the layers that match a pattern and can be judged; at least one must.
func (l *Layers) Glob(pattern string) ([]string, error) {
	g, err := label.CompilePattern(pattern)
	if err != nil {
		return nil, err
	}
	match := func(layers []string) []string {
		return slices.DeleteFunc(layers, func(s string) bool { return !g.Match(s) })
	}
	known := match(slices.Clone(l.all))
	if len(known) == 0 {
		return nil, fmt.Errorf("no layer of the golden matches%s", didYouMean(pattern, l.all))
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
	if of := l.layers[layer]; of != nil {
		for _, p := range of.lacks {
			p.lacked.Store(true)
		}
	}
	if why := l.missing[layer]; why != "" {
		return why
	}
	return fmt.Sprintf("missing: the candidate did not record an output of %s", layer)
}

func didYouMean(name string, all []string) string {
	if n, ok := label.Nearest(name, all); ok {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	return fmt.Sprintf(": it has %s", label.Few(all))
}

// Joined lists, by case, the outputs that both sides have.
func (js *joins) Joined() map[string]dump.Joined {
	all := map[string]dump.Joined{}
	for _, p := range js.Ports {
		if p.Joined() && p.Judged() {
			if all[p.Case] == nil {
				all[p.Case] = dump.Joined{}
			}
			all[p.Case][p.Step] = append(all[p.Case][p.Step], label.Join(p.Layer, p.Port))
		}
	}
	return all
}

// Require marks the outputs of a list that the candidate lacks as missing, but for those that the
// fixture ignores. It returns the layers that the candidate lacks, and those that the golden itself
// lacks.
func (c *Comparison) Require(want map[string]dump.Joined) (lost, gone []string) {
	type name struct{ of, step, label string }
	ignored, ports, seen := map[name]bool{}, map[name]*Port{}, map[string]bool{}
	for _, u := range c.Unmatched.Golden {
		ignored[name{u.Case, u.Step, u.Name}] = u.Ignored
	}
	for _, p := range c.Ports {
		ports[name{p.Case, p.Step, label.Join(p.Layer, p.Port)}] = p
	}
	for _, k := range c.Cases {
		for _, step := range slices.Sorted(maps.Keys(want[k.Name])) {
			for _, l := range want[k.Name][step] {
				layer, _ := label.Split(l)
				p, to := ports[name{k.Name, step, l}], &gone
				if p != nil {
					if p.Actual != nil || ignored[name{k.Name, step, p.Layer + " " + p.Port}] {
						continue
					}
					p.lacked.Store(true)
					layer, to = p.Layer, &lost
				}
				if !seen[layer] {
					seen[layer] = true
					*to = append(*to, layer)
				}
			}
		}
	}
	return lost, gone
}
