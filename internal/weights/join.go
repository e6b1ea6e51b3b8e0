package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// join pairs the weights of both sides, by name first. c.rest is of those that have no partner.
func (c *comparison) join() error {
	for _, r := range c.Rules {
		if err := c.byRule(&r); err != nil {
			return err
		}
	}
	c.byKey()
	c.unstack()
	c.byKey()
	c.cut()
	c.tie()
	c.byNumber()
	c.byTiles()
	c.byValue()
	c.byConstant()
	c.mergeNorms()
	c.absent()
	for _, w := range c.ref.left() {
		r := Result{Status: Missing, Reference: w.name}
		if w.isIdentity() {
			r.Status, r.Detail = Ignored, "it changes nothing: all ones of a norm, or zeros of a bias"
		}
		c.rest = append(c.rest, r)
	}
	for _, w := range c.cand.left() {
		c.rest = append(c.rest, Result{Status: Unused, Candidate: w.name})
	}
	for i, r := range c.rest {
		if unjudged.MatchString(r.Reference+r.Candidate) && r.Status != Step {
			c.rest[i].Status, c.rest[i].Detail = Ignored, ""
		}
	}
	slices.SortStableFunc(c.pairs, func(a, b *pair) int { return a.ref.number - b.ref.number })
	return nil
}

// isIdentity reports whether a model computes the same without a weight: a norm's of ones, or a
// bias of zeros. One number alone says nothing.
func (w *weight) isIdentity() bool {
	neutral := 0.0
	if w.isNorm() {
		neutral = 1
	}
	return (w.isNorm() || w.param == "bias") && w.t.Len() > 1 && all(w.t, func(v float64) bool { return v == neutral })
}

// all reports whether something is true of all elements.
func all(t *tensor.Tensor, is func(v float64) bool) bool {
	v := make([]float64, min(t.Len(), chunk))
	for at := 0; at < t.Len(); at += len(v) {
		if slices.ContainsFunc(v[:t.Float64s(v, at)], func(x float64) bool { return !is(x) }) {
			return false
		}
	}
	return true
}

// numbers are the first of the elements, at most n.
func numbers(t *tensor.Tensor, n int) []float64 {
	v := make([]float64, min(t.Len(), n))
	t.Float64s(v, 0)
	return v
}

// filled is a tensor of one number throughout.
func filled(t *tensor.Tensor, v float32) *tensor.Tensor {
	return checkpoint.Map(t, tensor.F32, t.Shape(), func(values []float32, _ int) {
		for i := range values {
			values[i] = v
		}
	})
}

// absent pairs norms that the candidate has not with ones: they may be folded into what reads them.
func (c *comparison) absent() {
	for _, w := range c.ref.left() {
		if consumers[w.role] == nil || w.param != "weight" || w.isIdentity() || !w.t.DType().IsFloat() {
			continue
		}
		ones := &weight{t: filled(w.t, 1), layer: w.layer, role: w.role, param: w.param}
		c.pairs = append(c.pairs, &pair{ref: w, cand: ones, absent: true})
		w.taken = true
	}
}

// pair joins two weights, which have a partner then.
func (c *comparison) pair(ref, cand *weight, by ...string) {
	ref.taken, cand.taken = true, true
	if padded := unpadded(ref, cand); padded != nil {
		cand, by = padded, append(slices.Clone(by), "padded")
	}
	c.pairs = append(c.pairs, &pair{ref: ref, cand: cand, by: slices.Concat(ref.by, cand.by, by)})
}

// unpadded is an embedding or a head without rows of zeros after the reference's, which no token
// has; nil where it has none.
func unpadded(ref, cand *weight) *weight {
	r, c := ref.t.Shape(), cand.t.Shape()
	if ref.role != "embed" && ref.role != "lmhead" || len(r) == 0 || len(r) != len(c) || c[0] <= r[0] || !slices.Equal(r[1:], c[1:]) {
		return nil
	}
	more, err := cand.t.Slice(0, r[0], c[0])
	if err != nil || !all(more, func(v float64) bool { return v == 0 }) {
		return nil
	}
	cut := *cand
	if cut.t, err = cand.t.Slice(0, 0, r[0]); err != nil {
		return nil
	}
	return &cut
}

// byKey pairs weights with the same place in the model.
func (c *comparison) byKey() {
	for _, r := range c.ref.left() {
		if w := c.cand.at[r.at]; w != nil && !w.taken {
			c.pair(r, w)
		}
	}
}

// tie pairs an output layer that one side has not with the other's embedding.
func (c *comparison) tie() {
	find := func(list []*weight, role string) *weight {
		for _, w := range list {
			if w.role == role && w.param == "weight" && w.layer == "" {
				return w
			}
		}
		return nil
	}
	for _, x := range [][2]*weight{
		{find(c.ref.left(), "lmhead"), find(c.cand.all(), "embed")},
		{find(c.ref.all(), "embed"), find(c.cand.left(), "lmhead")},
	} {
		if x[0] != nil && x[1] != nil && c.alike(x[0], x[1]) {
			c.pair(x[0], x[1], "tied")
		}
	}
}

// alike reports whether the samples of two weights could be the same, also quantised.
func (c *comparison) alike(ref, cand *weight) bool {
	if ref.t.Len() != cand.t.Len() || constantly(ref) {
		return false
	}
	isPacked := ref.t.Packing() != "" || cand.t.Packing() != ""
	return slices.ContainsFunc(trialsOf(ref, cand.t, c.configs), func(t *trial) bool {
		f := t.sample()
		return f.Mismatches == 0 || isPacked && f.RelL2 < likely || f.RelL2 < alikeL2
	})
}

// byNumber pairs weights that the sides call otherwise, but number alike: "block.3.mix.weight" and
// "layers.3.mixer.w". That two of them are equal tells which names are one role; then all of that
// role are joined by their numbers, also those that differ.
func (c *comparison) byNumber() {
	refs, cands := numbered(c.ref), numbered(c.cand)
	for _, family := range slices.Sorted(maps.Keys(refs)) {
		best, most := "", 0
		for _, other := range slices.Sorted(maps.Keys(cands)) {
			if fit := c.fits(refs[family], cands[other]); fit > most {
				best, most = other, fit
			}
		}
		for number, r := range refs[family] {
			if best != "" {
				c.pair(r, cands[best][number], "renamed")
			}
		}
		delete(cands, best)
	}
}

// fits counts which weights of two families are alike, as far as it takes to tell; 0 if they have
// not the same numbers, and weights of the same size for each.
func (c *comparison) fits(refs, cands map[string]*weight) (fit int) {
	for number, r := range refs {
		if w := cands[number]; w == nil || !sameSize(r.t, w.t) || len(refs) != len(cands) || len(refs) < 2 {
			return 0
		}
	}
	for _, r := range refs {
		for _, w := range cands {
			if c.alike(r, w) {
				fit++
			}
		}
		if fit >= 2 || len(refs) > 8 && fit == 1 {
			break
		}
	}
	return fit
}

// numbered are the weights left by their names without numbers, and by their numbers.
func numbered(s shelf) map[string]map[string]*weight {
	out := map[string]map[string]*weight{}
	for _, w := range s.left() {
		family := number.ReplaceAllString(w.name, "*")
		if out[family] == nil {
			out[family] = map[string]*weight{}
		}
		out[family][strings.Join(number.FindAllString(w.name, -1), ".")] = w
	}
	return out
}

func sameSize(a, b *tensor.Tensor) bool {
	return a.Len() == b.Len() && a.DType().Kind() == b.DType().Kind()
}

// byValue pairs weights whose names tell nothing, if each is the only one that the other can be.
func (c *comparison) byValue() {
	fits, claims := map[*weight][]*weight{}, map[*weight]int{}
	cands := grouped(c.cand.left(), func(w *weight) int { return w.t.Len() })
	refs := c.ref.left()
	for _, r := range refs {
		for _, w := range cands[r.t.Len()] {
			if sameSize(r.t, w.t) && c.alike(r, w) {
				fits[r] = append(fits[r], w)
			}
		}
		if len(fits[r]) == 1 {
			claims[fits[r][0]]++
		}
	}
	for _, r := range refs {
		if len(fits[r]) == 1 && claims[fits[r][0]] == 1 {
			c.pair(r, fits[r][0], "renamed")
		}
	}
}

// byConstant pairs weights that are one number throughout, if both sides have as many of a shape and number left.
func (c *comparison) byConstant() {
	kind := func(w *weight) string { // "" for others
		if first := numbers(w.t, 1); w.t.Len() > 1 && all(w.t, func(v float64) bool { return v == first[0] }) {
			return fmt.Sprint(w.t.Shape(), first[0])
		}
		return ""
	}
	cands := grouped(c.cand.left(), kind)
	for k, refs := range grouped(c.ref.left(), kind) {
		for i, r := range refs {
			if k != "" && len(refs) == len(cands[k]) {
				c.pair(r, cands[k][i], "renamed")
			}
		}
	}
}

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
