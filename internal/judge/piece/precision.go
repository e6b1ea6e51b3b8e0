package piece

import (
	"cmp"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// precision finds how a run of float32 rounds what its products and tables take: one scheme that
// explains most products, and most of what is wrong. Then what is wrong is judged with it.
func (j *judge) precision() {
	if j.Encoding != tensor.F32 {
		return
	}
	var wrong, products, tables []int
	all := 0
	for _, t := range j.order {
		multiplies, looksUp := j.weighted(t)
		if multiplies {
			all++
		}
		switch l := j.local[t]; {
		case !l.Wrong || l.Opaque != "" || j.Records[t].Misfit:
			continue
		case multiplies:
			products = append(products, t)
		case looksUp:
			tables = append(tables, t)
		}
		wrong = append(wrong, t)
	}
	if len(products) < leastExact {
		return
	}
	s, n := j.best(products, Products(j.gridded() >= leastExact))
	if s == nil || n < leastExact || s.Sized && n < leastSized || float64(n) < mostProducts*float64(all) {
		return
	}
	if table, _ := j.best(tables, Tables()); table != nil {
		s = s.and(table)
	}
	for _, s := range append([]*Scheme{s}, s.Also...) {
		j.schemes = append(j.schemes, j.with(s))
	}
	n = 0
	for _, t := range wrong {
		if !j.rounding(t, nil).Wrong {
			n++
		}
	}
	if float64(n) < mostProducts*float64(len(wrong)) {
		j.schemes = nil
		return
	}
	j.precise = s.Text
	clear(j.looks)
	for _, t := range wrong {
		j.local[t] = j.ordered(t, j.look(t, nil))
	}
}

// rounding judges a port by the schemes of the run: by the one that makes it right, or else by the one that
// comes nearest.
func (j *judge) rounding(port int, out excluded) (best *Local) {
	for _, k := range j.schemes {
		l := k.look(port, out)
		if best == nil || best.Wrong && (!l.Wrong || l.Error < best.Error) {
			best = l
		}
		if !best.Wrong {
			break
		}
	}
	return best
}

// weighted reports whether a piece multiplies with weights, and whether it looks rows of one up.
func (j *judge) weighted(port int) (multiplies, looksUp bool) {
	if j.Records[port].Misfit {
		return false, false
	}
	p := j.piece(port)
	if !slices.ContainsFunc(p.Values, func(v program.Value) bool { return v.Weight != "" && len(v.Shape) > 1 }) {
		return false, false
	}
	for i := range p.Ops {
		multiplies = multiplies || replay.Multiplies(p.Ops[i].Full)
		looksUp = looksUp || p.Ops[i].Name == "embedding"
	}
	return multiplies, looksUp
}

// best returns the scheme that explains most of some pieces, of those that explain one of the smallest,
// and how many it explains.
func (j *judge) best(ports []int, schemes []*Scheme) (best *Scheme, explained int) {
	ports = slices.Clone(ports)
	slices.SortStableFunc(ports, func(a, b int) int { return cmp.Compare(j.Records[a].Tensor.Len(), j.Records[b].Tensor.Len()) })
	for _, probe := range ports[:min(len(ports), mostProbes)] {
		for _, s := range schemes {
			if s == best || !j.explains(probe, s) {
				continue
			}
			n := 0
			for _, t := range ports {
				if j.explains(t, s) {
					n++
				}
			}
			if n > explained {
				best, explained = s, n
			}
		}
		if 2*explained > len(ports) {
			break
		}
	}
	return best, explained
}

// explains reports whether a scheme makes a piece right.
func (j *judge) explains(port int, s *Scheme) bool {
	if s.Sized {
		return j.sized(port, s)
	}
	k := j.with(s)
	c, err := k.compare(port, nil, &looked{basis: newBasis()})
	if err != nil || !(difference(c.near(), c.have, nil).whole <= muchBetter*j.local[port].Error) { // the rest takes longer
		return false
	}
	l := k.look(port, nil)
	return !l.Wrong && l.Opaque == ""
}

// sized reports whether the error of a piece is as large as what a scheme makes of it.
func (j *judge) sized(port int, s *Scheme) bool {
	c, err := j.compare(port, nil, &looked{basis: newBasis()})
	if err != nil {
		return false
	}
	n, e := c.moves(roundedBy(s)), difference(c.made, c.have, nil)
	return e.whole >= leastOperands*n.whole && !e.exceeds(byOperands(n, floor(j.Encoding)))
}

// byOperands is how far a piece may be off where its operands are rounded, of which only the size is
// known.
func byOperands(n deviation, floor float64) deviation {
	return deviation{perOperands*n.whole + floor, perOperands*n.row + perRow*floor}
}

// with returns a judge of the same run that replays everything with a scheme.
func (j *judge) with(s *Scheme) *judge {
	k := *j
	k.scheme, k.schemes, k.memo, k.looks = s, nil, map[replayKey][]*replayed{}, map[int][]*looked{}
	return &k
}

// roundedBy is the mode of a scheme.
func roundedBy(s *Scheme) mode {
	return mode{name: s.Text, replay: replay.Mode{Operands: s.Operands}}
}

// gridded is how many records have numbers of 8 bits.
func (j *judge) gridded() (n int) {
	for _, t := range j.order {
		if r := &j.Records[t]; r.Tensor != nil && r.Tensor.DType().IsFloat() && gridOf(r.Tensor.Floats()) != nil {
			n++
		}
	}
	return n
}
