package weights

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// grouped has a list by a key.
func grouped[K comparable, T any](list []T, key func(x T) K) map[K][]T {
	groups := map[K][]T{}
	for _, x := range list {
		groups[key(x)] = append(groups[key(x)], x)
	}
	return groups
}

// with returns the step of a name with which a weight may be the reference's; nil for none.
func (p *pair) with(name string) *trial {
	for _, t := range p.trials {
		if t.name() == name && (slices.Contains(p.may, t) || t.sample().Mismatches == 0 && t.holds()) {
			return t
		}
	}
	return nil
}

// agree makes the weights of a role have the same step where they can, and names those that have others.
func agree(pairs []*pair) {
	for _, family := range grouped(pairs, func(p *pair) string { return p.ref.family() + strings.Join(p.by, ",") }) {
		members := slices.DeleteFunc(slices.Clone(family), func(p *pair) bool { return len(p.may) == 0 })
		if len(members) == 0 {
			continue
		}
		name, holding := mostHave(members)
		for _, p := range members {
			if t := p.with(name); t != nil {
				p.may, p.best = []*trial{t}, t
			} else {
				p.result.Detail = fmt.Sprintf("%s in this layer only: of %d weights of this role, %d are %s", p.may[0].said(),
					len(members), holding, cmp.Or(name, "equal"))
			}
		}
		for _, p := range family { // what another weight in the place of one is told by the role's step, too
			i := slices.IndexFunc(p.trials, func(t *trial) bool { return t.name() == name && t.sampled != nil })
			if len(p.may) == 0 && i >= 0 {
				p.best = p.trials[i]
			}
		}
	}
}

// mostHave is the step that most members may have, and how many; of equally many the one that does less.
func mostHave(members []*pair) (name string, holding int) {
	names := map[string]int{} // how much each does
	for _, p := range members {
		for _, t := range p.trials {
			if slices.Contains(p.may, t) || t.sampled != nil && t.sampled.Mismatches == 0 {
				names[t.name()] = len(t.steps)
			}
		}
	}
	votes := map[string]int{}
	for name := range names {
		for _, p := range members {
			if p.with(name) != nil {
				votes[name]++
			}
		}
	}
	name = slices.MinFunc(slices.Collect(maps.Keys(names)), func(a, b string) int {
		return cmp.Or(votes[b]-votes[a], names[a]-names[b], strings.Compare(a, b))
	})
	return name, votes[name]
}

// alone looks at roles with a single weight, that have a step which can be told from none: such as
// the last norm. There must be another role with it.
func alone(pairs []*pair) {
	type class struct { // of norms: Qwen3-Next's gated norm of a head's width has no + 1 where all others do
		width int
		step  string
	}
	members, turned, norms := map[string]int{}, map[string]bool{}, map[class]int{} // by family
	for _, p := range pairs {
		members[p.ref.family()]++
		if !p.exact() {
			continue
		}
		if p.may[0].name() == "transposed" {
			turned[p.ref.family()] = true
		}
		if p.ref.isNorm() && !constantly(p.ref) {
			norms[class{p.ref.t.Len(), p.may[0].name()}]++
		}
	}
	for _, p := range pairs {
		if members[p.ref.family()] > 1 || !p.exact() || p.result.Detail != "" {
			continue
		}
		t, shape := p.may[0], p.cand.t.Shape()
		have := func(step string) int { return norms[class{p.ref.t.Len(), step}] }
		switch name := t.name(); {
		case p.ref.isNorm() && t.calc != nil && have("") > 0 && have(name) == 1:
			p.result.Detail = name + " in this norm only"
		case p.ref.isNorm() && t.calc == nil && have("norm + 1") > 1 && have("") == 1:
			p.result.Detail = "norm + 1 everywhere but in this norm"
		case name == "transposed" && len(shape) == 2 && shape[0] == shape[1] && len(turned) == 1:
			p.result.Detail = "transposed, and no other weight is"
		}
	}
}

// together looks at steps that belong to several roles, and names those weights of which the others have
// none: the rotary order of q and k, the orientation of square matrices, the scale of an embedding in
// the head. A step that all have may be undone by the engine, one that a part has cannot be.
func together(pairs []*pair) {
	known := slices.DeleteFunc(slices.Clone(pairs), func(p *pair) bool { return len(p.may) == 0 || p.result.Detail != "" })
	for _, layer := range grouped(known, func(p *pair) [2]string { return [2]string{p.ref.layer, p.ref.param} }) {
		byRole := grouped(layer, func(p *pair) string { return p.ref.role })
		of := func(role string) *pair { // nil if there is none or several
			if len(byRole[role]) != 1 {
				return nil
			}
			return byRole[role][0]
		}
		rotaryTogether(of("attn.q"), of("attn.k"))
		matrices := slices.DeleteFunc(layer, func(p *pair) bool {
			return !strings.Contains(p.ref.role, ".") || len(squeezed(p.ref.t.Shape())) != 2
		})
		for _, module := range grouped(matrices, func(p *pair) string { return strings.Split(p.ref.role, ".")[0] }) {
			turnedTogether(module)
		}
		scaledTogether(of("lmhead"), of("embed"))
		scoresTogether(of("attn.q"), of("attn.k"), of("attn.qnorm"), of("attn.knorm"))
	}
}

// rotaryTogether looks at the order of rows in which rotary positions are applied: q·k needs it of both.
func rotaryTogether(q, k *pair) {
	if q == nil || k == nil {
		return
	}
	how := func(p *pair) string {
		word, _, _ := strings.Cut(p.may[0].move.name, " ") // interleaved in 4 heads, interleaving of 4 heads undone
		if !strings.HasPrefix(word, "interleav") {
			return ""
		}
		return word
	}
	if how(q) != how(k) {
		for _, x := range [][2]*pair{{q, k}, {k, q}} {
			x[0].result.Detail = fmt.Sprintf("%s, and %s of this layer is %s: rows that belong together no longer meet",
				x[0].may[0].said(), x[1].ref.name, x[1].may[0].said())
		}
	}
}

// turnedTogether looks at matrices of one module that may be told from their transpose by their values alone.
// Those with other numbers of rows and columns show how the module is stored, or else most do.
func turnedTogether(pairs []*pair) {
	isTurned := func(p *pair) bool { return p.may[0].move.name == "transposed" }
	var square []*pair
	votes := map[bool]int{}
	for _, p := range pairs {
		if s := squeezed(p.ref.t.Shape()); s[0] == s[1] {
			square = append(square, p)
			votes[isTurned(p)]++
		} else {
			votes[isTurned(p)] += len(pairs) + 1
		}
	}
	for _, p := range square {
		if most := votes[true] > votes[false]; isTurned(p) != most {
			p.result.Detail = p.may[0].said() + ", and the other matrices of this module are not"
		}
	}
}

// scaledTogether looks at the head: √hidden belongs to the embedding, which a model multiplies by
// it, and is no scale of logits where the embedding has none.
func scaledTogether(head, embed *pair) {
	if head == nil || embed == nil {
		return
	}
	isScaled := func(p *pair) bool { return strings.Contains(p.may[0].name(), "scale √") }
	if isScaled(head) && !isScaled(embed) {
		head.result.Detail = fmt.Sprintf("%s, and %s is %s: that is the scale of embeddings", head.may[0].name(), embed.ref.name, embed.may[0].said())
	}
}

// scoresTogether looks at the scale of q·k, to which q, k and norms of theirs add a factor each: it
// is 1/√d, or that is in them, and the engine has none or another base of its exponentials.
func scoresTogether(factors ...*pair) {
	all, width := 1.0, 1.0
	var scaled []*pair
	for _, p := range factors {
		if p != nil && p.exact() {
			if c := p.may[0].calc; c != nil && c.factor != 0 {
				all, width, scaled = all*c.factor, math.Max(width, c.width), append(scaled, p)
			}
		}
	}
	for _, power := range []float64{-0.5, 0, 0.5} {
		for _, base := range []float64{1, math.Log2E, math.Ln2} {
			if want := math.Pow(width, power) * base; math.Abs(all-want) < 1e-9*want {
				return
			}
		}
	}
	for _, p := range scaled {
		p.result.Detail = fmt.Sprintf("%s: with the scales of what it meets q·k is %.4g times what it was, and no engine makes up for that", p.may[0].name(), all)
	}
}
