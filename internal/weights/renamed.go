package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// byRule pairs the weights of the layers that rules name. A rule that finds none is an error.
func (n *joiner) byRule(rules []match.Rule) error {
	for _, r := range rules {
		if err := r.Validate(); err != nil {
			return err
		}
		before, members := len(n.pairs), map[string][]whole{} // by the names of parameters
		inRef, inCand := endsOf(n.ref), endsOf(n.cand)
		for _, w := range sorted(n.ref) {
			layer, param := w.name, ""
			golden, cand, ok := r.Expand(layer)
			if at := strings.LastIndex(w.name, "."); !ok && at >= 0 {
				layer, param = w.name[:at], w.name[at:]
				golden, cand, ok = r.Expand(layer)
			}
			if !ok {
				continue
			}
			refs, cands := []*weight{w}, []*weight(nil)
			for _, name := range golden[1:] {
				refs = append(refs, inRef.find(n.ref, name+param))
			}
			for _, name := range cand {
				cands = append(cands, inCand.find(n.cand, name+param))
			}
			one, parts := cands[0], refs
			if len(cands) > 1 {
				one, parts = w, cands
			}
			if one == nil || slices.Contains(parts, nil) {
				continue
			}
			x := whole{w: one}
			for _, p := range parts {
				x.add(p)
			}
			members[param] = append(members[param], x)
		}
		for _, param := range slices.Sorted(maps.Keys(members)) {
			switch m := members[param]; {
			case len(r.Candidate) > 1:
				n.apart(m, "split", "renamed")
			case len(r.Golden) > 1:
				n.apart(m, "fused", "renamed")
			default:
				for _, x := range m {
					n.pair(x.parts[0], x.w, "renamed")
				}
			}
		}
		if len(n.pairs) == before {
			return fmt.Errorf("weights: rule %s joins no weights: names are those of layers, whose weights end in .weight or .bias", &r)
		}
	}
	return nil
}

// endsWith returns the weight with a name, or the only one whose name ends with it at a dot.
func endsWith(side map[string]*weight, name string) *weight { return endsOf(side).find(side, name) }

// ends are the weights of a side by their names, and by all that these end with at a dot.
type ends map[string][]*weight

func endsOf(side map[string]*weight) ends {
	out := ends{}
	for _, w := range side {
		for rest, more := w.name, true; more; _, rest, more = strings.Cut(rest, ".") {
			out[rest] = append(out[rest], w)
		}
	}
	return out
}

// find is endsWith, of a side that may have lost weights meanwhile.
func (e ends) find(side map[string]*weight, name string) (found *weight) {
	several := false
	for _, w := range e[name] {
		switch {
		case side[w.key()] != w && side[w.name] != w:
		case w.name == name:
			return w
		default:
			several, found = found != nil, w
		}
	}
	if several {
		return nil
	}
	return found
}

func sorted(side map[string]*weight) (out []*weight) {
	for _, key := range slices.Sorted(maps.Keys(side)) {
		out = append(out, side[key])
	}
	return out
}

// byTiles pairs weights that one side has in one, and that the sides call otherwise, but number alike. That the
// rows of one are those of several others tells which names these are, for all numbers.
func (n *joiner) byTiles() {
	for _, from := range n.directions("fused", "split") {
		wholes := numbered(from.whole)
		for _, family := range slices.Sorted(maps.Keys(wholes)) {
			parts := numbered(from.parts)
			tiles := n.tiles(wholes[family], parts)
			if len(tiles) == 0 {
				continue
			}
			var members []whole
			for _, number := range slices.Sorted(maps.Keys(wholes[family])) {
				x := whole{w: wholes[family][number]}
				for _, name := range tiles {
					x.add(parts[name][number])
				}
				if len(x.parts) == len(tiles) {
					members = append(members, x)
				}
			}
			n.apart(members, from.by, "renamed")
		}
	}
}

// tiles returns the families whose rows, one after the other, are those of a family; none if there are no such.
func (n *joiner) tiles(wholes map[string]*weight, parts map[string]map[string]*weight) []string {
	for _, number := range slices.Sorted(maps.Keys(wholes)) {
		w := wholes[number]
		for _, t := range byRows(w.t) {
			at := map[int]string{} // by first row
			for _, family := range slices.Sorted(maps.Keys(parts)) {
				if p := parts[family][number]; p != nil {
					if row := n.rowOf(t, p); row >= 0 {
						at[row] = family
					}
				}
			}
			var list []string
			row := 0
			for at[row] != "" {
				list = append(list, at[row])
				row += rowsOf(parts[at[row]][number])
			}
			if len(list) > 1 && row == firstAxis(t) {
				return list
			}
		}
	}
	return nil
}

// byRows are a weight and its transpose; none where rows of it cannot be looked at.
func byRows(t *tensor.Tensor) []*tensor.Tensor {
	switch {
	case t.Packing() != "" || !t.DType().IsFloat() || len(t.Shape()) == 0 || len(t.Shape()) > 2:
		return nil
	case len(t.Shape()) == 1:
		return []*tensor.Tensor{t}
	}
	turned, err := t.Transpose()
	if err != nil {
		return nil
	}
	return []*tensor.Tensor{t, turned}
}

// rowOf returns from which row on a weight holds another one; −1 for nowhere.
func (n *joiner) rowOf(t *tensor.Tensor, p *weight) int {
	shape, rows := p.t.Shape(), rowsOf(p)
	if len(byRows(p.t)) == 0 || len(shape) != len(t.Shape()) || rows >= firstAxis(t) || !slices.Equal(shape[1:], t.Shape()[1:]) {
		return -1
	}
	coarse := coarser(t.DType(), p.t.DType())
	all, first := cast(t, coarse), cast(p.t, coarse).At(0)
	width := t.Len() / firstAxis(t)
	for row := range firstAxis(t) - rows + 1 {
		if all.At(row*width) != first {
			continue
		}
		part, err := t.Slice(0, row, row+rows)
		if err != nil {
			return -1
		}
		if n.alike(p, &weight{t: part, role: p.role, param: p.param}) {
			return row
		}
	}
	return -1
}
