package piece

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// ordered judges a port once more by the order of its rows. Where sort or topk may put equal numbers
// into another order, nobody knows it: a port that is wrong then is not judged. What is made of such
// rows is judged with them and, if that fails, without them.
func (j *judge) ordered(port int, l *Local) *Local {
	if l.Opaque != "" || j.Records[port].Misfit {
		return l
	}
	out := excluded{}
	for _, s := range l.Sources {
		if j.anyOrder[j.Program.Ports[s].Value] {
			out = maps.Clone(j.anyOrder)
			break
		}
	}
	value := j.Program.Ports[port].Value
	switch {
	case !l.Wrong:
		if len(out) > 0 && j.unordered(port, out) {
			j.anyOrder[value] = true
		}
		return l
	case len(out) > 0:
		if without := j.look(port, out); !without.Wrong && without.Opaque == "" {
			return without
		}
	}
	same := j.reordered(port, out) || len(out) > 0 && j.reordered(port, nil)
	seen := map[int]bool{}
	ofOthers := func(s int) bool { return j.ofOthers(s, seen) }
	if !same && !(slices.ContainsFunc(l.Sources, ofOthers) && j.unordered(port, out)) {
		return l
	}
	if same {
		j.anyOrder[value] = true
		if len(out) > 0 && !slices.ContainsFunc(j.piece(port).Ops, orders) {
			return l // it was judged in the order that its sources have
		}
	}
	return &Local{First: 1, Sources: l.Sources, Opaque: "its rows are in an order that equal numbers do not tell", Tied: true, AnyOrder: same,
		Unjudged: !j.Records[port].Golden.Agrees}
}

// ofOthers reports whether a port has the rows of another choice than the reference's, or what is made of each of them:
// their order cannot be told.
func (j *judge) ofOthers(port int, seen map[int]bool) bool {
	l, t := j.local[port], j.Records[port].Tensor
	if l == nil || l.Tied || t == nil || seen[port] {
		return l != nil && l.Tied && !l.AnyOrder
	}
	seen[port] = true
	return slices.ContainsFunc(l.Sources, func(s int) bool {
		from := j.Records[s].Tensor
		return from != nil && slices.Equal(rowsOf(from), rowsOf(t)) && j.ofOthers(s, seen)
	})
}

// rowsOf is the shape of a tensor without its last axis.
func rowsOf(a *replay.Array) []int { return a.Shape()[:max(len(a.Shape())-1, 0)] }

// unordered reports whether a piece gives something else where sort and topk put equal numbers in the
// other order, with the tied sources left out.
func (j *judge) unordered(port int, out excluded) bool {
	if !j.mayOrder(port, out) {
		return false
	}
	a, b, ok := j.bothOrders(port, &j.Records[port], out)
	f := floor(j.Encoding)
	return ok && difference(b, a, nil).exceeds(deviation{f, perRow * f})
}

// mayOrder reports whether a piece puts numbers into an order, or what it takes may, where that is replayed, too.
func (j *judge) mayOrder(port int, out excluded) bool {
	return len(out) > 0 || slices.ContainsFunc(j.piece(port).Ops, orders)
}

// bothOrders is of a record what a piece makes where equal numbers stay as they are, and where they are turned round.
func (j *judge) bothOrders(port int, r *Record, out excluded) (stay, turned numbers, ok bool) {
	exact, err := j.replay(port, out, plain, newBasis())
	if err != nil {
		return stay, turned, false
	}
	other, err := j.replay(port, out, reversed, newBasis())
	if err != nil {
		return stay, turned, false
	}
	stay, _ = r.arrange(exact)
	turned, _ = r.arrange(other)
	return stay, turned, true
}

// reordered reports whether a record may be what its piece makes with equal numbers in another order: each
// group of them, which is what is turned round by itself, must be the same rows, by their norms. Where the
// rows stay and what is in them is turned, or there is one row alone, its numbers are compared.
func (j *judge) reordered(port int, out excluded) bool {
	if !j.unordered(port, out) {
		return false
	}
	r := &j.Records[port]
	stay, turned, _ := j.bothOrders(port, r, out)
	have, _ := r.arrange(r.Tensor)
	if len(have.x) != len(stay.x) {
		return false
	}
	limit := otherOrder * floor(j.Encoding)
	if of := norms(stay); len(of) > 1 && !slices.Equal(of, norms(turned)) {
		return inGroups(of, norms(turned), norms(have), limit)
	}
	for i := range stay.rows() {
		if !inGroups(stay.row(i), turned.row(i), have.row(i), limit) {
			return false
		}
	}
	return true
}

// inGroups reports whether x has, group by group, the numbers of stay, in any order. turned has each group
// in reverse, so that one ends where both have shown the same numbers. Where they have not the same, as a choice among
// equal scores has not, nothing is in any order.
func inGroups(stay, turned, x []float64, limit float64) bool {
	if !slices.Equal(slices.Sorted(slices.Values(stay)), slices.Sorted(slices.Values(turned))) {
		return false
	}
	from := 0
	for _, to := range groups(stay, turned) {
		a, b := slices.Sorted(slices.Values(stay[from:to])), slices.Sorted(slices.Values(x[from:to]))
		for k := range a {
			if !(math.Abs(a[k]-b[k]) <= limit*math.Max(math.Abs(a[k]), math.Abs(b[k]))) {
				return false
			}
		}
		from = to
	}
	return true
}

// groups returns where the groups of numbers end of which turned has each in reverse.
func groups(stay, turned []float64) (ends []int) {
	more, open := map[float64]int{}, 0
	count := func(v float64, by int) {
		was := more[v]
		more[v] += by
		switch {
		case was == 0:
			open++
		case more[v] == 0:
			open--
		}
	}
	for i := range stay {
		count(stay[i], 1)
		count(turned[i], -1)
		if open == 0 || i == len(stay)-1 {
			ends = append(ends, i+1)
		}
	}
	return ends
}

// tied returns where the groups of rows of a record end that a piece may make in any order, as equal numbers are put; nil where it
// makes one order alone.
func (j *judge) tied(port int, r *Record, out excluded) []int {
	if !slices.ContainsFunc(j.piece(port).Ops, orders) {
		return nil
	}
	stay, turned, ok := j.bothOrders(port, r, out)
	a, b := norms(stay), norms(turned)
	if !ok || len(a) < 2 || slices.Equal(a, b) {
		return nil
	}
	return groups(a, b)
}

// nearest puts the rows of each group in the order in which they are nearest to others.
func (n numbers) nearest(to numbers, ends []int) numbers {
	if len(ends) == 0 || len(n.x) != len(to.x) || n.width != to.width {
		return n
	}
	out, from := numbers{make([]float64, 0, len(n.x)), n.width}, 0
	for _, end := range ends {
		var left []int
		for i := from; i < end; i++ {
			left = append(left, i)
		}
		for i := from; i < end; i++ {
			k, least := 0, math.Inf(1)
			for at, of := range left {
				if d := floats.Distance(n.row(of), to.row(i), 2); d < least {
					k, least = at, d
				}
			}
			out.x = append(out.x, n.row(left[k])...)
			left = slices.Delete(left, k, k+1)
		}
		from = end
	}
	return out
}

func norms(n numbers) (out []float64) {
	for i := range n.rows() {
		out = append(out, floats.Norm(n.row(i), 2))
	}
	return out
}

// orders reports whether an operator puts numbers into an order.
func orders(o program.Op) bool { return o.Name == "sort" || o.Name == "topk" }
