package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// fused are the roles of weights that some engines store as one, the rows of the parts one after
// the other.
var fused = map[string][]string{
	"attn.qkv":   {"attn.q", "attn.k", "attn.v"},
	"mlp.gateup": {"mlp.gate", "mlp.up"},
}

// joiner pairs weights, by name first.
type joiner struct {
	j         *judge
	ref, cand map[string]*weight // that have no partner yet
	pairs     []*pair
}

// join pairs the weights of both sides. rest are those that have no partner.
func (j *judge) join() (pairs []*pair, rest []Result) {
	n := &joiner{j: j, ref: placed(j.ref), cand: placed(j.cand)}
	refs := n.ref
	for _, key := range slices.Sorted(maps.Keys(n.ref)) {
		if r, c := n.ref[key], n.cand[key]; c != nil {
			n.pair(r, c)
			delete(n.cand, key)
		}
	}
	for _, p := range n.pairs {
		delete(refs, p.ref.key())
		delete(refs, p.ref.name)
	}
	n.fuse()
	n.stack()
	n.tie(j)
	n.byValue()
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
			}
			rest = append(rest, r)
		}
	}
	order := map[string]int{}
	for i, t := range j.ref.Tensors {
		order[t.Name] = i
	}
	slices.SortStableFunc(n.pairs, func(a, b *pair) int { return order[base(a.ref.name)] - order[base(b.ref.name)] })
	return n.pairs, rest
}

// base is the name of a weight without the part of it that is meant.
func base(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

func (n *joiner) pair(ref, cand *weight, by ...string) {
	n.pairs = append(n.pairs, &pair{ref: ref, cand: cand, by: by})
}

// part is rows from … to−1 of the first axis of a weight.
func (w *weight) part(role string, from, to int) (*weight, bool) {
	x, err := w.t.Slice(0, from, to)
	if err != nil {
		return nil, false
	}
	p := *w
	p.t, p.role = x, role
	p.name = fmt.Sprintf("%s[%d:%d]", w.name, from, to)
	return &p, true
}

// fuse pairs weights that one side has in one.
func (n *joiner) fuse() {
	for _, from := range []struct {
		whole, parts map[string]*weight
		by           string
	}{{n.cand, n.ref, "fused"}, {n.ref, n.cand, "split"}} {
		for _, key := range slices.Sorted(maps.Keys(from.whole)) {
			w := from.whole[key]
			roles := fused[w.role]
			var parts []*weight
			rows := 0
			for _, role := range roles {
				p := *w
				p.role = role
				if x := from.parts[p.key()]; x != nil {
					parts = append(parts, x)
					rows += firstAxis(x.t)
				}
			}
			if len(parts) == 0 || len(parts) != len(roles) {
				continue
			}
			whole := w
			by := []string{from.by}
			if firstAxis(w.t) != rows && len(w.t.Shape()) == 2 && w.t.Shape()[1] == rows {
				// [in, out], as GPT-2 has it.
				turned, err := w.t.Transpose()
				if err != nil {
					continue
				}
				v := *w
				v.t = turned
				whole, by = &v, append(by, "transposed")
			}
			if firstAxis(whole.t) != rows {
				continue
			}
			at := 0
			for i, p := range parts {
				to := at + firstAxis(p.t)
				x, ok := whole.part(roles[i], at, to)
				if !ok {
					continue
				}
				if from.by == "fused" {
					n.pair(p, x, by...)
				} else {
					n.pair(x, p, by...)
				}
				delete(from.parts, p.key())
				at = to
			}
			delete(from.whole, key)
		}
	}
}

// stack pairs the experts that one side has one by one and the other in a tensor of three axes.
func (n *joiner) stack() {
	for _, from := range []struct {
		whole, parts map[string]*weight
		by           string
	}{{n.cand, n.ref, "stacked"}, {n.ref, n.cand, "unstacked"}} {
		for _, key := range slices.Sorted(maps.Keys(from.whole)) {
			w := from.whole[key]
			if w.index != "" || len(w.t.Shape()) < 2 {
				continue
			}
			for e := range firstAxis(w.t) {
				one := *w
				one.index = fmt.Sprint(e)
				p := from.parts[one.key()]
				if p == nil {
					if e == 0 {
						break
					}
					continue
				}
				x, ok := w.part(w.role, e, e+1)
				if !ok {
					continue
				}
				if from.by == "stacked" {
					n.pair(p, x, from.by)
				} else {
					n.pair(x, p, from.by)
				}
				delete(from.parts, one.key())
				delete(from.whole, key)
			}
		}
	}
}

// tie pairs an output layer that one side has not with the other's embedding.
func (n *joiner) tie(j *judge) {
	embedding := func(s *Side) *weight {
		for _, w := range placed(s) {
			if w.role == "embed" && w.param == "weight" && w.layer == "" {
				return w
			}
		}
		return nil
	}
	head := func(left map[string]*weight) (string, *weight) {
		for key, w := range left {
			if w.role == "lmhead" && w.param == "weight" {
				return key, w
			}
		}
		return "", nil
	}
	if key, w := head(n.ref); w != nil {
		if e := embedding(j.cand); e != nil && n.alike(w, e) {
			n.pair(w, e, "tied")
			delete(n.ref, key)
		}
	}
	if key, w := head(n.cand); w != nil {
		if e := embedding(j.ref); e != nil && n.alike(e, w) {
			n.pair(e, w, "tied")
			delete(n.cand, key)
		}
	}
}

// alike reports whether the samples of two weights could be the same, also quantised.
func (n *joiner) alike(ref, cand *weight) bool {
	if ref.t.Len() != cand.t.Len() || constantly(&pair{ref: ref}) {
		return false
	}
	for _, s := range stepsOf(ref.role, ref.param, ref.t, cand.t, n.j.ref.Config, n.j.cand.Config) {
		if c := newComparer(ref.t, cand.t, &s); c != nil {
			f := c.sample()
			quantised := ref.t.Packing() != "" || cand.t.Packing() != ""
			if f.Mismatches == 0 || quantised && f.RelL2 < likely || f.RelL2 < 1e-2 {
				return true
			}
		}
	}
	return false
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
			delete(n.ref, key)
			delete(n.cand, c)
		}
	}
}

func sameKind(a, b *tensor.Tensor) bool { return a.DType().Kind() == b.DType().Kind() }
