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
}

// join pairs the weights of both sides. rest are those that have no partner.
func (j *judge) join() (pairs []*pair, rest []Result, err error) {
	n := &joiner{j: j, ref: placed(j.ref), cand: placed(j.cand)}
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
	for _, s := range [2]struct {
		left   map[string]*weight
		status string
	}{{n.ref, Missing}, {n.cand, Unused}} {
		for _, key := range slices.Sorted(maps.Keys(s.left)) {
			w, r := s.left[key], Result{Status: s.status}
			if s.status == Missing {
				r.Reference = w.name
			} else {
				r.Candidate = w.name
			}
			if unjudged.MatchString(w.name) {
				r.Status = Ignored
			} else if s.status == Missing && w.isIdentity() {
				r.Status, r.Detail = Ignored, "it changes nothing: all ones of a norm, or zeros of a bias"
			}
			rest = append(rest, r)
		}
	}
	order := map[string]int{}
	for i, t := range j.ref.Tensors {
		order[t.Name] = i
	}
	slices.SortStableFunc(n.pairs, func(a, b *pair) int { return order[base(a.ref.name)] - order[base(b.ref.name)] })
	return n.pairs, rest, nil
}

// isIdentity reports whether a model computes the same without a weight: a norm's of ones, or a bias of zeros. One
// number alone says nothing.
func (w *weight) isIdentity() bool {
	switch {
	case w.t.Len() < 2:
		return false
	case strings.Contains(w.role, "norm") && w.param == "weight":
		return all(w.t, func(v float64) bool { return v == 1 })
	}
	return w.param == "bias" && all(w.t, func(v float64) bool { return v == 0 })
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

// absent pairs norms that the candidate has not with ones: they may be folded into what reads them.
func (n *joiner) absent() {
	for _, key := range slices.Sorted(maps.Keys(n.ref)) {
		w := n.ref[key]
		if consumers[w.role] == nil || w.param != "weight" || w.isIdentity() || !w.t.DType().IsFloat() {
			continue
		}
		ones := checkpoint.Map(w.t, tensor.F32, w.t.Shape(), func(values []float32, _ int) {
			for i := range values {
				values[i] = 1
			}
		})
		n.pairs = append(n.pairs, &pair{ref: w, cand: &weight{t: ones, layer: w.layer, role: w.role, param: w.param}, absent: true})
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
	if w, e := find(n.ref, "lmhead"), find(placed(n.j.cand), "embed"); w != nil && e != nil && n.alike(w, e) {
		n.pair(w, e, "tied")
	}
	if w, e := find(n.cand, "lmhead"), find(placed(n.j.ref), "embed"); w != nil && e != nil && n.alike(e, w) {
		n.pair(e, w, "tied")
	}
}

// alike reports whether the samples of two weights could be the same, also quantised.
func (n *joiner) alike(ref, cand *weight) bool {
	if ref.t.Len() != cand.t.Len() || constantly(ref) {
		return false
	}
	isPacked := ref.t.Packing() != "" || cand.t.Packing() != ""
	for _, s := range stepsOf(ref, cand.t, n.j.ref.Config, n.j.cand.Config) {
		if t := newTrial(ref.t, cand.t, &s); t != nil {
			if f := t.sample(); f.Mismatches == 0 || isPacked && f.RelL2 < likely || f.RelL2 < alikeL2 {
				return true
			}
		}
	}
	return false
}

// byNumber pairs weights that the sides call otherwise, but number alike: "block.3.mix.weight" and
// "layers.3.mixer.w". That two of them are equal tells which names are one role; then all of that
// role are joined by their numbers, also those that differ.
func (n *joiner) byNumber() {
	refs, cands := numbered(n.ref), numbered(n.cand)
	for _, family := range slices.Sorted(maps.Keys(refs)) {
		if refs[family] == nil || !strings.Contains(family, "*") {
			continue
		}
		best, most := "", 0
		for _, other := range slices.Sorted(maps.Keys(cands)) {
			if !strings.Contains(other, "*") || !sameNumbers(refs[family], cands[other]) {
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
		y := b[number]
		if y == nil || x.t.Len() != y.t.Len() || !sameKind(x.t, y.t) {
			return false
		}
	}
	return true
}

// byValue pairs weights whose names tell nothing, if each is the only one that the other can be.
func (n *joiner) byValue() {
	size := map[int][]string{}
	for _, key := range slices.Sorted(maps.Keys(n.cand)) {
		size[n.cand[key].t.Len()] = append(size[n.cand[key].t.Len()], key)
	}
	found, claims := map[string]string{}, map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(n.ref)) {
		r := n.ref[key]
		var fit []string
		for _, c := range size[r.t.Len()] {
			if sameKind(r.t, n.cand[c].t) && n.alike(r, n.cand[c]) {
				fit = append(fit, c)
			}
		}
		if len(fit) == 1 {
			found[key] = fit[0]
			claims[fit[0]]++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if c := found[key]; claims[c] == 1 {
			n.pair(n.ref[key], n.cand[c], "renamed")
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
		if len(refs[kind]) != len(cands[kind]) {
			continue
		}
		for i, r := range refs[kind] {
			n.pair(r, cands[kind][i], "renamed")
		}
	}
}

func sameKind(a, b *tensor.Tensor) bool { return a.DType().Kind() == b.DType().Kind() }
