package edit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Label names an edit for people by what stands around it: "rope/layout", "norm/eps". It is never needed to
// find one. What has no name of its own is "edit/" and its kind.
func Label(p *program.Piece, e Edit) string {
	if e.ID != "" {
		return e.ID
	}
	c := &surroundings{graph: graph{p}, Edit: e}
	if len(e.At) > 0 {
		c.op = p.Ops[e.At[0]]
		c.changed = c.op.Out
	} else if o := e.Patch.Ops[replay.Outside]; len(o) > 0 {
		c.changed = o[len(o)-1].Out
	}
	if e.Kind == "source" && e.From != "" {
		return c.ofRecord()
	}
	for _, group := range labels {
		if id := group.match(c); id != "" {
			return id
		}
	}
	return "edit/" + e.Kind
}

// kindNames are the kinds that edits have, and their names where nothing around them has one.
var kindNames = strings.Fields(`drop sibling swap exchange axis slice scalar integer table mask bypass source weight order twice
	value rounding layout conjugation term quant state`)

// givenNames are those that edits have from where they are listed, beside the table of labels.
var givenNames = strings.Fields(`config/<key> dtype/overflow image/resize moe/expert-order norm/missing activation/missing
	residual/source linear/gate-up quant/group quant/missing quant/order quant/scale quant/zero-point rope/sections
	state/chunk state/position state/slot state/stale state/window`)

// IDs lists the names of edits.
func IDs() (ids []string) {
	for _, kind := range kindNames {
		ids = append(ids, "edit/"+kind)
	}
	for _, name := range activations {
		ids = append(ids, "activation/"+name)
	}
	ids = append(ids, givenNames...)
	for _, group := range labels {
		for _, r := range group.rules {
			ids = append(ids, r.id)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		return id == "" || strings.HasSuffix(id, "→") || strings.HasPrefix(id, "config/") && id != "config/<key>"
	})
}

// rule gives a name to the edits of some kinds, of some operators (that which is changed first) and with some texts, each
// one of those that are listed or anything for "", around which a condition holds, if there is one.
type rule struct {
	id, kinds, ops, text string
	around               condition
}

// group is rules for the edits of which a condition holds, nil for all. The first rule that holds decides; one without a
// name says that none of those after it does.
type group struct {
	of    condition
	rules []rule
}

func (g *group) match(c *surroundings) string {
	if g.of != nil && !g.of(c) {
		return ""
	}
	for _, r := range g.rules {
		if !r.holds(c) {
			continue
		}
		if name, ok := strings.CutSuffix(r.id, "→"); ok {
			return name + activations[c.instead()]
		}
		return r.id
	}
	return ""
}

func (r *rule) holds(c *surroundings) bool {
	return (r.kinds == "" || oneOf(c.Kind, r.kinds)) && (r.ops == "" || isOne(c.op, r.ops)) &&
		(r.text == "" || c.says(r.text)) && (r.around == nil || r.around(c))
}

// instead is what the edit puts in the place of something, as its text says it.
func (c *surroundings) instead() string {
	_, to, _ := strings.Cut(c.Text, " → ")
	return to
}

// says reports whether the text of the edit is like one of several patterns.
func (c *surroundings) says(patterns string) bool {
	for p := range strings.SplitSeq(patterns, "|") {
		if matches(c.Text, p) {
			return true
		}
	}
	return false
}

// isOne reports whether the name of an operator is like one of several, separated by spaces.
func isOne(o program.Op, names string) bool { return oneOf(o.Name, names) }

// oneOf reports whether a word is like one of several, separated by spaces.
func oneOf(word, names string) bool {
	for n := range strings.FieldsSeq(names) {
		if matches(word, n) {
			return true
		}
	}
	return false
}

// matches reports whether a text is another one, of which a * at the end, or at both, stands for anything.
func matches(text, pattern string) bool {
	p, begins := strings.CutSuffix(pattern, "*")
	p, ends := strings.CutPrefix(p, "*")
	switch {
	case begins && ends:
		return strings.Contains(text, p)
	case begins:
		return strings.HasPrefix(text, p)
	case ends:
		return strings.HasSuffix(text, p)
	}
	return text == p
}

// ofRecord names edits that take what was recorded elsewhere.
func (c *surroundings) ofRecord() string {
	was := cmp.Or(c.Was, c.layerOf(c.Values[c.Out]))
	switch {
	case c.From != was && label.Name(c.From) == label.Name(was):
		return "state/stale"
	case c.From == was && label.Block(was) != was: // what a layer was given, in the place of what it made of it
		if slices.ContainsFunc(c.Of.Ops, func(o program.Op) bool { return o.Layer == was && isOne(o, "rsqrt "+norming) }) {
			return "norm/missing"
		}
		return "activation/missing"
	}
	if c.Was == "" && c.Of != nil {
		was = c.target()
	}
	switch block := label.Block(was); {
	case was == block || label.Parent(was) == block: // what blocks pass on
	case role(c.From) == role(was) && c.From != was && label.Block(c.From) == block: // one of several beside it
		return "moe/expert-order"
	case role(c.From) == role(was) && c.From != was:
		return "state/stale"
	case was != "" && label.Beside(c.From, was):
		return "linear/gate-up"
	}
	return "residual/source"
}
