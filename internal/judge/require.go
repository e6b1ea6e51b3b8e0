package judge

import (
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
)

// Outputs lists, by case, the outputs that the two runs have in common, without comparing them.
func Outputs(cases []Case, opt match.Options) (map[string]dump.Joined, error) {
	var js *joins
	err := mapfile.Guard(func() (err error) {
		js, err = joinAll(cases, opt)
		return err
	})
	if err != nil {
		return nil, err
	}
	return js.Joined(), nil
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
					c.Layers.lack(p)
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
