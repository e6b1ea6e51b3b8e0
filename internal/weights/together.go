package weights

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// together looks at steps that belong to several roles, and names those weights of which the others have
// none: the rotary order of q and k, the orientation of square matrices, the scale of an embedding in
// the head. A step that all have may be undone by the engine, one that a part has cannot be.
func (j *judge) together(pairs []*pair) {
	layers := map[[2]string][]*pair{} // by layer and parameter
	var order [][2]string
	for _, p := range pairs {
		if len(p.fits)+len(p.near) == 0 || p.result.Detail != "" {
			continue
		}
		key := [2]string{p.ref.layer, p.ref.param}
		if layers[key] == nil {
			order = append(order, key)
		}
		layers[key] = append(layers[key], p)
	}
	for _, key := range order {
		rotaryTogether(layers[key])
		groups := map[string][]*pair{}
		for _, p := range layers[key] {
			if group, _, ok := strings.Cut(p.ref.role, "."); ok && len(squeezed(p.ref.t.Shape())) == 2 {
				groups[group] = append(groups[group], p)
			}
		}
		for _, g := range groups {
			turnedTogether(g)
		}
		scaledTogether(layers[key])
		scoresTogether(layers[key])
	}
}

// scoresTogether looks at the scale of q·k, to which q, k and norms of theirs add a factor each: it is 1/√d, or
// that is in them, and the engine has none or another base of its exponentials.
func scoresTogether(pairs []*pair) {
	all, width := 1.0, 1.0
	var scaled []*pair
	for _, role := range []string{"attn.q", "attn.k", "attn.qnorm", "attn.knorm"} {
		if p := of(pairs, role); p != nil && len(p.fits) > 0 {
			if f := p.steps[p.fits[0]].factor; f.value != 0 {
				all, width, scaled = all*f.value, math.Max(width, f.width), append(scaled, p)
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
		p.result.Detail = fmt.Sprintf("%s: with the scales of what it meets q·k is %.4g times what it was, and no engine makes up for that", p.stepName(), all)
	}
}

// of returns the weight of a role; nil if there is none or several.
func of(pairs []*pair, role string) (found *pair) {
	for _, p := range pairs {
		if p.ref.role == role {
			if found != nil {
				return nil
			}
			found = p
		}
	}
	return found
}

func (p *pair) stepName() string { return p.steps[p.fit()].name() }

// rotaryTogether looks at the order of rows in which rotary positions are applied: q·k needs it of both.
func rotaryTogether(pairs []*pair) {
	q, k := of(pairs, "attn.q"), of(pairs, "attn.k")
	if q == nil || k == nil {
		return
	}
	how := func(p *pair) string {
		word, _, _ := strings.Cut(p.stepName(), " ") // interleaved in 4 heads, interleaving of 4 heads undone
		if !strings.HasPrefix(word, "interleav") {
			return ""
		}
		return word
	}
	if a, b := how(q), how(k); a != b {
		for _, x := range [][2]*pair{{q, k}, {k, q}} {
			x[0].result.Detail = fmt.Sprintf("%s, and %s of this layer is %s: rows that belong together no longer meet",
				said(x[0].steps[x[0].fit()].names), x[1].ref.name, said(x[1].steps[x[1].fit()].names))
		}
	}
}

// turnedTogether looks at matrices of one module that may be told from their transpose by their values alone.
// Those with other numbers of rows and columns show how the module is stored, or else most do.
func turnedTogether(pairs []*pair) {
	isTurned := func(p *pair) bool { return strings.Contains(p.stepName(), "transposed") }
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
	if votes[true] == 0 || votes[false] == 0 {
		return
	}
	for _, p := range square {
		if most := votes[true] > votes[false]; isTurned(p) != most {
			p.result.Detail = fmt.Sprintf("%s, and the other matrices of this module are not", said(p.steps[p.fit()].names))
		}
	}
}

// scaledTogether looks at the head: √hidden belongs to the embedding, which a model multiplies by it, and is no
// scale of logits where the embedding has none.
func scaledTogether(pairs []*pair) {
	head, embed := of(pairs, "lmhead"), of(pairs, "embed")
	if head == nil || embed == nil {
		return
	}
	isScaled := func(p *pair) bool {
		return slices.ContainsFunc(p.steps[p.fit()].names, func(n string) bool { return strings.HasPrefix(n, "scale √") })
	}
	if isScaled(head) && !isScaled(embed) {
		head.result.Detail = fmt.Sprintf("%s, and %s is %s: that is the scale of embeddings", head.stepName(), embed.ref.name, said(embed.steps[embed.fit()].names))
	}
}
