package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
)

// joiner pairs weights, by name first.
type joiner struct {
	j         *judge
	ref, cand map[string]*weight // that have no partner yet
	pairs     []*pair
	rest      []Result // of what has no partner
}

// join pairs the weights of both sides. rest is of those that have no partner.
func (j *judge) join() (pairs []*pair, rest []Result, err error) {
	n := &joiner{j: j, ref: placed(j.ref, j.cand), cand: placed(j.cand, j.ref)}
	if err := n.byRule(j.rules); err != nil {
		return nil, nil, err
	}
	n.byKey()
	n.unstack()
	n.byKey()
	n.cut()
	n.tie()
	n.byNumber()
	n.byTiles()
	n.byValue()
	n.byConstant()
	n.mergeNorms()
	n.absent()
	for _, w := range sorted(n.ref) {
		r := Result{Status: Missing, Reference: w.name}
		if unjudged.MatchString(w.name) {
			r.Status = Ignored
		} else if w.isIdentity() {
			r.Status, r.Detail = Ignored, "it changes nothing: all ones of a norm, or zeros of a bias"
		}
		n.rest = append(n.rest, r)
	}
	for _, w := range sorted(n.cand) {
		r := Result{Status: Unused, Candidate: w.name}
		if unjudged.MatchString(w.name) {
			r.Status = Ignored
		}
		n.rest = append(n.rest, r)
	}
	order := map[string]int{}
	for i, t := range j.ref.Tensors {
		order[t.Name] = i
	}
	slices.SortStableFunc(n.pairs, func(a, b *pair) int { return order[base(a.ref.name)] - order[base(b.ref.name)] })
	return n.pairs, n.rest, nil
}

// isIdentity reports whether a model computes the same without a weight: a norm's of ones, or a bias of zeros. One
// number alone says nothing.
func (w *weight) isIdentity() bool {
	neutral := 0.0
	if w.param != "bias" {
		neutral = 1
		if w.param != "weight" || !strings.Contains(w.role, "norm") {
			return false
		}
	}
	return w.t.Len() > 1 && all(w.t, func(v float64) bool { return v == neutral })
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

// filled is a tensor of one number throughout.
func filled(t *tensor.Tensor, v float32) *tensor.Tensor {
	return checkpoint.Map(t, tensor.F32, t.Shape(), func(values []float32, _ int) {
		for i := range values {
			values[i] = v
		}
	})
}

// absent pairs norms that the candidate has not with ones: they may be folded into what reads them.
func (n *joiner) absent() {
	for _, key := range slices.Sorted(maps.Keys(n.ref)) {
		w := n.ref[key]
		if consumers[w.role] == nil || w.param != "weight" || w.isIdentity() || !w.t.DType().IsFloat() {
			continue
		}
		ones := &weight{t: filled(w.t, 1), layer: w.layer, role: w.role, param: w.param}
		n.pairs = append(n.pairs, &pair{ref: w, cand: ones, absent: true})
		delete(n.ref, key)
	}
}

// base is the name of a weight without the part of it that is meant.
func base(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

// pair joins two weights, which have a partner then.
func (n *joiner) pair(ref, cand *weight, by ...string) {
	drop(n.ref, ref)
	drop(n.cand, cand)
	if padded := unpadded(ref, cand); padded != nil {
		cand, by = padded, append(slices.Clone(by), "padded")
	}
	n.pairs = append(n.pairs, &pair{ref: ref, cand: cand, by: slices.Concat(ref.by, cand.by, by)})
}

// drop takes a weight off those of a side that have no partner.
func drop(side map[string]*weight, w *weight) {
	for _, key := range []string{w.key(), w.name} {
		if side[key] == w {
			delete(side, key)
		}
	}
}

// unpadded is an embedding or a head without rows of zeros after the reference's, which no token has; nil where
// it has none.
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
func (n *joiner) byKey() {
	for _, key := range slices.Sorted(maps.Keys(n.ref)) {
		if r, c := n.ref[key], n.cand[key]; c != nil {
			n.pair(r, c)
		}
	}
}

// tie pairs an output layer that one side has not with the other's embedding.
func (n *joiner) tie() {
	find := func(side map[string]*weight, role string) *weight {
		for _, w := range sorted(side) {
			if w.role == role && w.param == "weight" && w.layer == "" {
				return w
			}
		}
		return nil
	}
	for _, x := range [][2]*weight{{find(n.ref, "lmhead"), find(placed(n.j.cand, n.j.ref), "embed")}, {find(placed(n.j.ref, n.j.cand), "embed"), find(n.cand, "lmhead")}} {
		if x[0] != nil && x[1] != nil && n.alike(x[0], x[1]) {
			n.pair(x[0], x[1], "tied")
		}
	}
}

// alike reports whether the samples of two weights could be the same, also quantised.
func (n *joiner) alike(ref, cand *weight) bool {
	if ref.t.Len() != cand.t.Len() || constantly(ref) {
		return false
	}
	isPacked := ref.t.Packing() != "" || cand.t.Packing() != ""
	return slices.ContainsFunc(trialsOf(ref, cand.t, n.j.configs()), func(t *trial) bool {
		f := t.sample()
		return f.Mismatches == 0 || isPacked && f.RelL2 < likely || f.RelL2 < alikeL2
	})
}

// byNumber pairs weights that the sides call otherwise, but number alike: "block.3.mix.weight" and
// "layers.3.mixer.w". That two of them are equal tells which names are one role; then all of that
// role are joined by their numbers, also those that differ.
func (n *joiner) byNumber() {
	refs, cands := numbered(n.ref), numbered(n.cand)
	for _, family := range slices.Sorted(maps.Keys(refs)) {
		best, most := "", 0
		for _, other := range slices.Sorted(maps.Keys(cands)) {
			if !sameNumbers(refs[family], cands[other]) {
				continue
			}
			fit := 0
			for _, r := range refs[family] {
				for _, c := range cands[other] {
					if n.alike(r, c) {
						fit++
					}
				}
				if fit >= 2 || len(refs[family]) > 8 && fit == 1 {
					break // enough to tell
				}
			}
			if fit > most {
				best, most = other, fit
			}
		}
		if best == "" {
			continue
		}
		for number, r := range refs[family] {
			n.pair(r, cands[best][number], "renamed")
		}
		delete(cands, best)
	}
}

// numbered are weights by their names without numbers, and by their numbers.
func numbered(side map[string]*weight) map[string]map[string]*weight {
	out := map[string]map[string]*weight{}
	for _, w := range side {
		family := number.ReplaceAllString(w.name, "*")
		if out[family] == nil {
			out[family] = map[string]*weight{}
		}
		out[family][strings.Join(number.FindAllString(w.name, -1), ".")] = w
	}
	return out
}

// sameNumbers reports whether two families have the same numbers, and weights of the same size for
// each.
func sameNumbers(a, b map[string]*weight) bool {
	if len(a) != len(b) || len(a) < 2 {
		return false
	}
	for number, x := range a {
		if y := b[number]; y == nil || !sameSize(x.t, y.t) {
			return false
		}
	}
	return true
}

func sameSize(a, b *tensor.Tensor) bool {
	return a.Len() == b.Len() && a.DType().Kind() == b.DType().Kind()
}

// byValue pairs weights whose names tell nothing, if each is the only one that the other can be.
func (n *joiner) byValue() {
	bySize, fits, claims := map[int][]*weight{}, map[*weight][]*weight{}, map[*weight]int{}
	for _, c := range sorted(n.cand) {
		bySize[c.t.Len()] = append(bySize[c.t.Len()], c)
	}
	refs := sorted(n.ref)
	for _, r := range refs {
		for _, c := range bySize[r.t.Len()] {
			if sameSize(r.t, c.t) && n.alike(r, c) {
				fits[r] = append(fits[r], c)
			}
		}
		if len(fits[r]) == 1 {
			claims[fits[r][0]]++
		}
	}
	for _, r := range refs {
		if len(fits[r]) == 1 && claims[fits[r][0]] == 1 {
			n.pair(r, fits[r][0], "renamed")
		}
	}
}

// byConstant pairs weights that are one number throughout, if both sides have as many of a shape and number left.
func (n *joiner) byConstant() {
	kinds := func(side map[string]*weight) map[string][]*weight {
		out := map[string][]*weight{}
		for _, w := range sorted(side) {
			if w.t.Len() < 2 {
				continue
			}
			if first := w.t.At(0); all(w.t, func(v float64) bool { return v == first }) {
				kind := fmt.Sprint(w.t.Shape(), first)
				out[kind] = append(out[kind], w)
			}
		}
		return out
	}
	refs, cands := kinds(n.ref), kinds(n.cand)
	for _, kind := range slices.Sorted(maps.Keys(refs)) {
		if len(refs[kind]) == len(cands[kind]) {
			for i, r := range refs[kind] {
				n.pair(r, cands[kind][i], "renamed")
			}
		}
	}
}
