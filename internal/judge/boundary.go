package judge

import (
	"math"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/vec"
)

// allowBoundaries allows for the values of a rounded cache that lie at the boundary between two steps, where noise decides
// which one is kept, and for what hangs on them: that may be off by as much as the cache is. It does so where the
// reference's cache rounds, too, and no program replays that.
func (c *Comparison) allowBoundaries(k *Case) {
	steps := stepsOf[strings.ToLower(k.Golden.Info.Encoding.KVCache)]
	if steps == 0 || k.Program != nil || k.alone || k.Along != nil && len(k.Along.programs) > 0 {
		return
	}
	caches := map[localise.Key][]*Port{} // by place, of all forward passes
	for _, p := range c.Ports {
		if p.Case == k.Name && label.IsCache(p.Port) && p.Comparable() && p.printed == nil && p.byDefault {
			caches[p.place()] = append(caches[p.place()], p)
		}
	}
	moved := map[*Port]bool{}
	for _, ports := range caches {
		n, all := 0, 0
		for _, p := range ports {
			of, ok := p.onBoundary(steps)
			if !ok {
				n = math.MaxInt
				break
			}
			n, all = n+of, all+p.Golden.Len()
		}
		if float64(n) > 1+onBoundary*float64(all) {
			continue
		}
		for _, p := range ports {
			moved[p] = !p.Agrees
		}
	}
	c.behindBoundaries(k, moved)
}

// stepsOf is how many steps a type of caches has from its least to its largest number.
var stepsOf = map[string]float64{"int8": 255, "int4": 15}

// onBoundary counts the values that are a step off. It is false where others are off by more than noise, or by more than a
// step: its size is that of the row, which a group of it does not exceed.
func (p *Port) onBoundary(steps float64) (n int, ok bool) {
	if p.Agrees {
		return 0, true
	}
	golden, actual := vec.ReadAll(p.Golden), vec.ReadAll(p.Actual)
	width := p.Golden.RowLen()
	for at := 0; at < len(golden); at += width {
		most := 0.0
		for _, v := range golden[at : at+width] {
			most = math.Max(most, math.Abs(v))
		}
		step := 2 * most / (steps - 1)
		for i := at; i < at+width; i++ {
			switch d := math.Abs(actual[i] - golden[i]); {
			case d <= stepNoise*step:
			case d <= (1+stepNoise)*step:
				n++
			default:
				return n, false
			}
		}
	}
	return n, true
}

// behindBoundaries lets caches agree of which some values came the other way, and what hangs on them if it is off by no more
// than they are.
func (c *Comparison) behindBoundaries(k *Case, moved map[*Port]bool) {
	limit := 0.0
	for _, pass := range c.flow().Passes {
		if pass.Case != k.Name {
			continue
		}
		from := math.MaxInt
		if limit > 0 {
			from = 0 // a later pass takes it from the cache
		}
		for _, e := range pass.Events {
			if p := c.Ports[e.Index]; moved[p] {
				limit, from = math.Max(limit, p.WorstRow()), min(from, pass.Start(e.Layer))
				p.allow(equivalent, "values at the boundary between two steps of the rounded cache, where noise decides")
			}
		}
		for _, e := range pass.Events {
			if p := c.Ports[e.Index]; e.At >= from && p.Comparable() && !p.Agrees && p.byDefault && p.DType.IsFloat() && p.WorstRow() <= limit {
				p.allow(equivalent, "it hangs on values at the boundary between two steps of the rounded cache, and is off by no more than they are")
			}
		}
	}
}
