package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rebuilt tries, at each op between what the candidate recorded and the target, the mistakes that are made with it.
var Rebuilt = Func(func(s *Scene) []Prediction {
	g := s.graph()
	if g == nil {
		return nil
	}
	sample, marks := g.sample()
	if len(sample) == 0 {
		return nil
	}
	golden := read(s.Target.Golden, g.target.width, sample)
	actual := read(s.Target.Actual, g.target.width, sample)
	probe := worst(sample, golden, actual, g.target.width)
	goldenProbe := read(s.Target.Golden, g.target.width, probe)
	actualProbe := read(s.Target.Actual, g.target.width, probe)
	far := relative(actualProbe, goldenProbe)

	type tried struct {
		v   *value
		f   fault
		fit float64
	}
	var good []tried
	var out []Prediction
	for _, v := range g.cone() {
		all := v.op.faults(g, v)
		for i := 0; i < len(all); i++ {
			f := all[i]
			if g.work <= 0 || s.Late() {
				break
			}
			if (f.fitted || f.guess) && v != g.target {
				continue
			}
			if f.guess {
				out = append(out, Prediction{ID: f.id, Text: f.text, Rank: f.rank})
				continue
			}
			got := g.faulty(v, &f).get(g.target, probe)
			if fit := relative(actualProbe, got); fit < far*2/3 || math.IsInf(far, 1) && !math.IsInf(fit, 1) {
				good = append(good, tried{v, f, fit})
				if f.refine != nil && fit < far/3 {
					all = append(all, f.refine()...)
				}
			}
		}
	}
	if g.target.op == nil && nearEmbeddings(g.target) {
		out = append(out, g.unadded(probe, actualProbe)...)
	}
	slices.SortStableFunc(good, func(a, b tried) int { return cmp.Compare(a.fit, b.fit) })
	shown := map[string]int{}
	for _, t := range good {
		if shown[t.f.id]++; shown[t.f.id] > sameID || len(out) >= inFull {
			continue
		}
		got := g.faulty(t.v, &t.f).get(g.target, sample)
		if got == nil {
			continue
		}
		text := t.f.text
		if t.f.number != nil {
			text += fmt.Sprintf(", %.4g", *t.f.number)
		}
		p := Prediction{ID: t.f.id, Text: text, Params: t.f.params, Rank: t.f.rank - 1, // a known mechanism before a pattern of the values
			Rows: marks}
		if t.v != g.target {
			p.Layer = t.v.name()
		}
		if p.Value = (&Array{Shape: g.target.shape, Data: got}); marks != nil {
			p.Value.Shape = []int{len(sample), g.target.width}
		}
		out = append(out, p)
	}
	return out
})

// unadded guesses what is missing where the reference makes the target in an unknown way in front of the blocks, and the candidate just takes
// the output of an embedding.
func (g *graph) unadded(probe []int, actual []float64) []Prediction {
	for _, x := range g.alikes(g.target) {
		layer, _ := x.made()
		if strings.Contains(layer, "embed") && relative(actual, g.faulty(g.target, &fault{}).get(x, probe)) <= g.target.rounding() {
			return []Prediction{{ID: "embedding/position", Text: "it is " + x.text() + " itself: what the reference adds to it, positions perhaps, is missing"}}
		}
	}
	return nil
}

// sample lists the rows of the target that are predicted, and marks them; no marks for all.
func (g *graph) sample() (rows []int, marks []bool) {
	marks = g.s.Sample()
	if pad := g.s.Target.PadRows; marks == nil && pad != nil {
		marks = make([]bool, g.target.rows)
		for i := range marks {
			marks[i] = i >= len(pad) || !pad[i]
		}
	}
	for i := range g.target.rows {
		if marks == nil || marks[i] {
			rows = append(rows, i)
		}
	}
	return rows, marks
}

// worst picks the rows in which the candidate is furthest from the golden, and some of the others, in order.
func worst(rows []int, golden, actual []float64, width int) []int {
	if len(rows) <= probeRows {
		return rows
	}
	far := make([]float64, len(rows))
	for i := range rows {
		far[i] = relative(actual[i*width:(i+1)*width], golden[i*width:(i+1)*width])
	}
	byFar := seq(len(rows))
	slices.SortStableFunc(byFar, func(a, b int) int { return cmp.Compare(far[b], far[a]) })
	n := len(byFar)
	pick := append(slices.Clone(byFar[:probeRows*3/4]), byFar[n-probeRows/4:]...)
	slices.Sort(pick)
	for i, at := range pick {
		pick[i] = rows[at]
	}
	return pick
}
