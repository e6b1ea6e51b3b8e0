package judge

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// tied is a choice that came out otherwise in some rows, and may.
type tied struct {
	*Port
	rows []bool // of the tokens of its forward pass
}

// leaveOutTies leaves out the rows of a run of 16 bits that hang on a choice which may come either way, as
// that of an expert between two scores that are nearer to each other than the noise. It looks at
// choices of which nothing but the golden is known, and reports whether it found one.
func (c *Comparison) leaveOutTies(k *Case) (found bool, err error) {
	d := k.judged.dtype
	if !compare.Has16Bits(d) {
		return false, nil
	}
	var ports []*Port
	var ties []tied
	order := map[localise.Key]int{} // in a forward pass
	for _, p := range c.Ports {
		if p.Case != k.Name {
			continue
		}
		ports = append(ports, p)
		if _, known := order[p.place()]; !known {
			order[p.place()] = len(ports)
		}
		if rows := c.tiedRows(p, d, len(ties) > 0); rows != nil {
			ties = append(ties, tied{p, rows})
		}
	}
	for _, p := range ports {
		var lost []bool
		for _, t := range ties {
			switch before := order[p.place()] < order[t.place()]; {
			case before && !(p.Layer == t.Layer && p.Judged()): // what weighs it was recorded before it
			case p.Step != t.Step:
				p.tied = p.tied || k.reaches(t, p.Step)
			case len(lost) == len(t.rows):
				for i, is := range t.rows {
					lost[i] = lost[i] || is
				}
			default:
				lost = slices.Clone(t.rows)
			}
		}
		if lost != nil {
			if err := p.behindTie(lost); err != nil {
				return true, err
			}
		}
	}
	return len(ties) > 0, nil
}

// place is where a port is in each forward pass.
func (p *Port) place() localise.Key { return localise.Key{Layer: p.Layer, Port: p.Port} }

// reaches reports whether a forward pass goes on with a token that was chosen otherwise.
func (k *Case) reaches(t tied, step string) bool {
	if k.Along == nil {
		steps := k.Golden.Steps()
		return slices.Index(steps, step) > slices.Index(steps, t.Step)
	}
	from, to := k.Along.Pass(t.Step), k.Along.Pass(step)
	for i, row := range from.Rows {
		if (len(t.rows) != len(from.Rows) || t.rows[i]) && slices.ContainsFunc(to.Items, func(item dump.PassItem) bool {
			return item.Sequence == row.Sequence && item.From > row.Position
		}) {
			return true
		}
	}
	return false
}

// behindTie leaves out the rows of tokens that hang on a choice. Where these are all, or the port has other
// rows, its error is that of the choice.
func (p *Port) behindTie(lost []bool) error {
	p.tied = true
	n := len(lost)
	if !p.Comparable() || p.printed != nil || p.skipped != nil || n == 0 {
		return nil
	}
	if !slices.Contains(lost, false) {
		if !p.Golden.DType().IsFloat() {
			p.allow(equivalent, "a choice that may come either way")
		}
		return nil
	}
	shape := p.Golden.Shape()
	all := p.Golden.Len() / max(p.Golden.RowLen(), 1)
	inner := 1 // rows of one token that lie beside each other
	if all != n {
		axis := slices.Index(shape[:max(len(shape)-1, 0)], n)
		if axis < 0 {
			return nil
		}
		for _, d := range shape[axis+1 : len(shape)-1] {
			inner *= d
		}
	}
	rows := make([]bool, all)
	for i := range rows {
		rows[i] = lost[i/inner%n]
	}
	return p.leaveOut(rows, "hang on a choice that may come either way")
}

// tiedRows lists the rows in which a choice came out otherwise, if the scores beside it say of each that it may
// come either way, or after such a choice, that it is right by the candidate's own; else nil.
func (c *Comparison) tiedRows(p *Port, d tensor.DType, after bool) (lost []bool) {
	if !p.Judged() || !p.Comparable() || p.Agrees || p.printed != nil || p.Golden.DType().IsFloat() || p.Golden.RowLen() == 0 {
		return nil
	}
	n := p.Golden.Len() / p.Golden.RowLen()
	i := slices.IndexFunc(c.Ports, func(q *Port) bool {
		return q.Case == p.Case && q.Step == p.Step && q.Layer == p.Layer && q.Judged() && q.Comparable() && q.printed == nil &&
			q.Golden.DType().IsFloat() && q.Golden.RowLen() > p.Golden.RowLen() && q.Golden.Len() == n*q.Golden.RowLen()
	})
	if i < 0 {
		return nil
	}
	row := func(t *tensor.Tensor, i int) []float64 { return vec.Read(t, t.RowLen(), []int{i}) }
	lost = make([]bool, n)
	for r := range lost {
		golden, actual := row(p.Golden, r), row(p.Actual, r)
		if slices.Equal(golden, actual) {
			continue
		}
		lost[r] = true
		scores, own := row(c.Ports[i].Golden, r), row(c.Ports[i].Actual, r)
		of := func(chosen float64) bool { return chosen < 0 || int(chosen) >= len(scores) }
		if slices.ContainsFunc(golden, of) || slices.ContainsFunc(actual, of) ||
			!mayTie(golden, actual, scores, own, d) && !(after && isBest(actual, own)) {
			return nil
		}
	}
	return lost
}

// mayTie reports whether two choices are of scores that may come either way: the i-th best of one against the
// i-th best of the other.
func mayTie(golden, actual, scores, own []float64, d tensor.DType) bool {
	byScore := func(chosen []float64) []float64 {
		return slices.SortedStableFunc(slices.Values(chosen), func(i, j float64) int { return cmp.Compare(scores[int(j)], scores[int(i)]) })
	}
	noise := generation.Noise(d, stat.PopStdDev(scores, nil), vec.MaxAbs(scores))
	golden, actual = byScore(golden), byScore(actual)
	for k := range golden {
		g, a := int(golden[k]), int(actual[k])
		if g != a && !generation.WithinNoise(scores[g]-scores[a], own[g]-own[a], noise) {
			return false
		}
	}
	return true
}

// isBest reports whether a choice is of the best scores.
func isBest(chosen, scores []float64) bool {
	least := math.Inf(1)
	for _, i := range chosen {
		least = math.Min(least, scores[int(i)])
	}
	for i, s := range scores {
		if s > least && !slices.Contains(chosen, float64(i)) {
			return false
		}
	}
	return true
}

// allowBoundaries allows for the values of a rounded cache that lie at the boundary between two steps, where noise decides
// which one is kept, and for what hangs on them: that may be off by as much as the cache is. It does so where the
// reference's cache rounds, too, and no program replays that.
func (c *Comparison) allowBoundaries(k *Case) {
	steps := stepsOf[strings.ToLower(k.Golden.Info.Encoding.KVCache)]
	if steps == 0 || k.Program != nil || k.alone || k.Along != nil && len(k.Along.programs) > 0 {
		return
	}
	moved := map[*Port]bool{}
	for _, p := range c.Ports {
		if p.of != k || p != p.passes[0] || !label.IsCache(p.Port) {
			continue
		}
		ports := slices.DeleteFunc(slices.Clone(p.passes), func(p *Port) bool { return !p.Comparable() || p.printed != nil || !p.byDefault })
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
		step := 2 * vec.MaxAbs(golden[at:at+width]) / (steps - 1)
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
	for _, pass := range c.flow.Passes {
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
