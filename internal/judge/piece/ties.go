package piece

import (
	"maps"
	"math"
	"slices"

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
	if !j.unordered(port, out) || !j.reordered(port, out) {
		return l
	}
	j.anyOrder[value] = true
	if len(out) > 0 && !slices.ContainsFunc(j.piece(port).Ops, orders) {
		return l // it was judged in the order that its sources have
	}
	return &Local{First: 1, Sources: l.Sources, Opaque: "its rows are in an order that equal numbers do not tell", Tied: true,
		Unjudged: !j.Records[port].Golden.Agrees}
}

// unordered reports whether a piece gives something else where sort and topk put equal numbers in the
// other order, with the tied sources left out.
func (j *judge) unordered(port int, out excluded) bool {
	if len(out) == 0 && !slices.ContainsFunc(j.piece(port).Ops, orders) {
		return false
	}
	exact, err := j.replay(port, out, plain, newBasis())
	if err != nil {
		return false
	}
	other, err := j.replay(port, out, mode{name: "ties", replay: replay.Mode{Ties: true}}, newBasis())
	if err != nil {
		return false
	}
	r := &j.Records[port]
	a, _ := r.arrange(exact)
	b, _ := r.arrange(other)
	f := floor(j.Encoding)
	return difference(b, a, nil).exceeds(figures{f, perRow * f})
}

// reordered reports whether a record may be what its piece makes in another order: of rows, or within
// rows. The norms of the rows are the same then.
func (j *judge) reordered(port int, out excluded) bool {
	made, err := j.replay(port, out, plain, newBasis())
	if err != nil {
		return false
	}
	r := &j.Records[port]
	have, _ := r.arrange(r.Tensor)
	want, _ := r.arrange(made)
	a, b := norms(have), norms(want)
	if len(a) != len(b) {
		return false
	}
	slices.Sort(a)
	slices.Sort(b)
	limit := otherOrder * floor(j.Encoding)
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= limit*math.Max(a[i], b[i])) {
			return false
		}
	}
	return true
}

func norms(n numbers) (out []float64) {
	for i := range n.rows() {
		sum := 0.0
		for _, x := range n.row(i) {
			sum += x * x
		}
		out = append(out, math.Sqrt(sum))
	}
	return out
}

// orders reports whether an operator puts numbers into an order.
func orders(o program.Op) bool { return o.Name == "sort" || o.Name == "topk" }
