package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// byRule pairs the weights of the layers that a rule names. One that finds none is an error.
func (c *comparison) byRule(r *match.Rule) error {
	if err := r.Validate(); err != nil {
		return err
	}
	before, members := len(c.pairs), map[string]wholes{} // by the names of parameters
	for _, w := range c.ref.left() {
		param := ""
		golden, cand, ok := r.Expand(w.name)
		if at := strings.LastIndex(w.name, "."); !ok && at >= 0 {
			param = w.name[at:]
			golden, cand, ok = r.Expand(w.name[:at])
		}
		if !ok {
			continue
		}
		refs, cands := []*weight{w}, []*weight(nil)
		for _, name := range golden[1:] {
			refs = append(refs, c.ref.find(name+param))
		}
		for _, name := range cand {
			cands = append(cands, c.cand.find(name+param))
		}
		if len(cands) > 1 {
			members[param] = members[param].with(w, cands)
		} else {
			members[param] = members[param].with(cands[0], refs)
		}
	}
	for _, param := range slices.Sorted(maps.Keys(members)) {
		switch {
		case len(r.Candidate) > 1:
			c.apart(members[param], "split", "renamed")
		case len(r.Golden) > 1:
			c.apart(members[param], "fused", "renamed")
		default:
			for _, x := range members[param] {
				c.pair(x.parts[0], x.w, "renamed")
			}
		}
	}
	if len(c.pairs) == before {
		return fmt.Errorf("weights: rule %s joins no weights: names are those of layers, "+
			"whose weights end in .weight or .bias", r)
	}
	return nil
}

// byTiles pairs weights that one side has in one, and that the sides call otherwise, but number alike. That the
// rows of one are those of several others tells which names these are, for all numbers.
func (c *comparison) byTiles() {
	for _, from := range c.directions("fused", "split") {
		all := numbered(from.whole)
		for _, family := range slices.Sorted(maps.Keys(all)) {
			parts := numbered(from.parts)
			var members wholes
			tiles := c.tiles(all[family], parts)
			for _, number := range slices.Sorted(maps.Keys(all[family])) {
				var list []*weight
				for _, name := range tiles {
					list = append(list, parts[name][number])
				}
				members = members.with(all[family][number], list)
			}
			c.apart(members, from.by, "renamed")
		}
	}
}

// tiles returns the families whose rows, one after the other, are those of a family; none if there are no such.
func (c *comparison) tiles(family map[string]*weight, parts map[string]map[string]*weight) []string {
	for _, number := range slices.Sorted(maps.Keys(family)) {
		w := family[number]
		for _, t := range byRows(w.t) {
			at := map[int]string{} // by first row
			for _, family := range slices.Sorted(maps.Keys(parts)) {
				if p := parts[family][number]; p != nil {
					if row := c.rowOf(t, p); row >= 0 {
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
	if t.Packing() != "" || !t.DType().IsFloat() || len(t.Shape()) == 0 || len(t.Shape()) > 2 {
		return nil
	}
	out := []*tensor.Tensor{t}
	if turned, err := t.Transpose(); err == nil {
		out = append(out, turned)
	}
	return out
}

// rowOf returns from which row on a weight holds another one; −1 for nowhere.
func (c *comparison) rowOf(t *tensor.Tensor, p *weight) int {
	shape, rows := p.t.Shape(), rowsOf(p)
	if p.t.Len() == 0 || byRows(p.t) == nil || len(shape) != len(t.Shape()) ||
		rows >= firstAxis(t) || !slices.Equal(shape[1:], t.Shape()[1:]) {
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
		if c.alike(p, &weight{t: part, role: p.role, param: p.param}) {
			return row
		}
	}
	return -1
}
