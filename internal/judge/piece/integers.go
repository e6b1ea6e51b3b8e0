package piece

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// integers judges whole numbers and bools: they are exact, but for rows of choices that are not
// stable: that come out otherwise where the sources are off by a rounding, or equal numbers stand in
// the other order, or that are right by the candidate's own scores.
func (j *judge) integers(port int, out excluded, l *looked, have, made numbers, keys []int) {
	wrong := map[int]bool{}
	for i := range have.rows() {
		if !slices.Equal(have.row(i), made.row(i)) {
			wrong[i] = true
		}
	}
	if len(wrong) == 0 {
		return
	}
	for k := range shakes {
		a, err := j.replay(port, out, shaken(k), l.basis)
		if err != nil {
			break
		}
		moved, _ := j.Records[port].arrange(a)
		for i := range wrong {
			if !slices.Equal(moved.row(i), made.row(i)) {
				delete(wrong, i)
			}
		}
	}
	if len(wrong) > 0 && len(out) == 0 {
		l.beside = j.chosen(port, have, wrong, l.basis)
	}
	l.Error = float64(len(wrong)) / float64(have.rows())
	l.RowError = l.Error
	l.Wrong = len(wrong) > 0
	for i := range wrong {
		if keys != nil {
			l.Rows = append(l.Rows, keys[i])
		}
	}
	slices.Sort(l.Rows)
	l.Rows = slices.Compact(l.Rows)
}

// chosen takes the rows out of wrong that are the choice which the scores make that the candidate has
// beside it, and returns the ports of these scores if there is such a row. It adds to b what it took.
func (j *judge) chosen(port int, have numbers, wrong map[int]bool, b *basis) (scores []int) {
	p := j.Program.Beside(port, func(i int) bool { return j.Records[i].Tensor != nil })
	if !slices.ContainsFunc(p.Ops, orders) {
		return nil
	}
	for _, m := range []mode{plain, {name: "ties", replay: replay.Mode{Ties: true}}} {
		a, err := replay.Run(j.ctx, p, func(v *program.Value) (*replay.Array, error) {
			return j.source(v, nil, m, b)
		}, m.replay)
		if err != nil {
			return scores
		}
		made, _ := j.Records[port].arrange(a)
		for i := range wrong {
			if slices.Equal(made.row(i), have.row(i)) {
				delete(wrong, i)
				scores = p.Sources
			}
		}
	}
	return scores
}
