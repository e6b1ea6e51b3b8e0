package piece

import (
	"maps"
	"slices"
)

// integers judges whole numbers and bools: they are exact, but for rows of choices that are not
// stable: that come out otherwise where the sources are off by a rounding, or equal numbers stand in
// the other order, or that are right by the candidate's own scores, or choose the best of them in any order.
func (c *comparison) integers() {
	l, wrong := c.Local, map[int]bool{}
	for i := range c.have.rows() {
		if !slices.Equal(c.have.row(i), c.made.row(i)) {
			wrong[i] = true
		}
	}
	if len(wrong) == 0 {
		return
	}
	for k := range shakes {
		a, err := c.replay(c.port, c.out, shaken(k), c.basis)
		if err != nil {
			break
		}
		moved, _ := c.Records[c.port].arrange(a)
		for i := range wrong {
			if !slices.Equal(moved.row(i), c.made.row(i)) {
				delete(wrong, i)
			}
		}
	}
	if len(wrong) > 0 && len(c.out) == 0 {
		l.beside = c.chosen(wrong)
	}
	if len(wrong) > 0 && c.inOrder[c.port] != nil {
		return
	}
	if len(wrong) > 0 && len(c.out) == 0 {
		c.best(wrong)
	}
	l.Error = float64(len(wrong)) / float64(c.have.rows())
	l.RowError = l.Error
	l.Wrong = len(wrong) > 0
	c.note(slices.Collect(maps.Keys(wrong)))
}

// chosen takes the rows out of wrong that are the choice which the scores make that the candidate has
// beside it, and returns the ports of these scores if there is such a row. It adds to the basis what it took.
func (c *comparison) chosen(wrong map[int]bool) (scores []int) {
	p := c.Program.Beside(c.port, func(i int) bool { return c.Records[i].Tensor != nil })
	if !slices.ContainsFunc(p.Ops, orders) {
		return nil
	}
	for _, m := range []mode{plain, reversed} {
		a, err := c.run(p, nil, m, c.basis)
		if err != nil {
			return scores
		}
		made, _ := c.Records[c.port].arrange(a)
		for i := range wrong {
			if slices.Equal(made.row(i), c.have.row(i)) {
				delete(wrong, i)
				scores = p.Sources
			}
		}
	}
	return scores
}
