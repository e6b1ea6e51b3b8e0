package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
)

// compares are operators that make a mask of two numbers.
var compares = []string{"lt", "le", "gt", "ge"}

// ofMask names edits of what compares positions, and of what hides scores by that.
func ofMask(c *surroundings) string {
	comparison := slices.Contains(compares, c.op.Name)
	toComparison := slices.ContainsFunc(compares, func(n string) bool { return c.near(n, toCompare) })
	hides := c.Kind == "drop" && c.op.Name == "add" && c.near("_softmax", 2) && c.compared()
	biases := c.Kind == "drop" && c.op.Name == "add" && c.near("_softmax", 2) && !c.compared() && c.takesTwo() && c.near("masked_fill", 1) // what hides comes behind
	switch {
	case biases: // by the distance
		return "attention/bias"
	case c.Kind == "mask" && c.near("bitwise_and", toCompare) && c.after("sub", toCompare): // a window: other masks stay
		return "attention/mask"
	case (hides || c.Kind == "mask" && strings.Contains(c.Text, "everywhere")) && c.oneRow(): // it sees all that is there already
		return "attention/mask"
	case c.Kind == "mask" && strings.Contains(c.Text, "lower triangle"), c.Kind == "mask" && strings.Contains(c.Text, "everywhere") && c.compared(), hides:
		return "attention/causal"
	case (comparison || toComparison) && c.reaches("_softmax"):
		direct := slices.ContainsFunc(compares, func(n string) bool { return c.near(n, 1) })
		for _, n := range []string{"sub", "add"} { // a number away: a window
			if c.after(n, 1) || c.near(n, 1) && !direct || c.op.Name == n {
				return "attention/mask"
			}
		}
		return "attention/causal"
	}
	return ""
}

// oneRow reports whether what is changed has one row, as the mask of a decode step has.
func (c *surroundings) oneRow() bool {
	if len(c.op.Out) == 0 {
		return false
	}
	s := c.Values[c.op.Out[0]].Shape
	return len(s) > 1 && s[len(s)-2] == 1
}

// cut reports whether what is changed is cut into parts.
func (c *surroundings) cut() bool {
	return slices.ContainsFunc([]string{"select", "slice", "split", "split_with_sizes", "unbind", "chunk"}, func(n string) bool { return c.near(n, 2) })
}

// compared reports whether the edited operator compares positions, or takes what comes of that.
func (c *surroundings) compared() bool {
	is := func(o program.Op) bool { return slices.Contains(compares, o.Name) && len(o.Operands()) > 1 }
	return is(c.op) || c.afterAny(toScores, is)
}

// attended reports whether what is changed goes into an attention.
func (c *surroundings) attended() bool {
	return c.reaches("_softmax") || slices.ContainsFunc(c.Ops, func(o program.Op) bool { return strings.Contains(o.Name, "scaled_dot_product") && c.reaches(o.Name) })
}

// ofHeads names edits of the order of heads and sequences in front of an attention.
func ofHeads(c *surroundings) string {
	if c.Kind != "layout" || len(c.At) == 0 || len(c.op.Out) != 1 || !c.attended() && !c.has("_softmax") && !c.hasFused() {
		return ""
	}
	spread := func(o program.Op) bool {
		return o.Name == "expand" || o.Name == "repeat_interleave" || o.Name == "repeat"
	}
	if c.op.Name == "view" && strings.HasPrefix(c.Text, "view of") {
		return map[bool]string{true: "attention/gqa", false: "attention/heads"}[c.afterAny(2, spread)]
	}
	if len(c.Values[c.op.Out[0]].Shape) < 4 {
		return ""
	}
	switch {
	case strings.HasPrefix(c.Text, "axis 0 rolled"):
		return "state/sequence"
	case spread(c.op) && c.learned() > 0 && c.near("cat", 2):
		return "attention/anchor-missing"
	case (spread(c.op) || c.afterAny(toCompare, spread)) && (strings.Contains(c.Text, "axis 1 ") || strings.HasPrefix(c.Text, "axes 1 and 2") || strings.Contains(c.Text, "spread by turns")):
		return "attention/gqa"
	case strings.HasPrefix(c.Text, "axis 1 rolled"):
		return "attention/heads"
	}
	return ""
}

// ofScan names edits of what stands beside the scan of a state: its decays are exponentials.
func ofScan(c *surroundings) string {
	if c.op.Name != "add" || !c.takesTwo() || c.Kind != "drop" && c.Kind != "twice" {
		return ""
	}
	weighed := func(o program.Op) bool { return o.Name == "mul" && c.factor(o) }
	if c.has("exp") && c.has("softplus") && c.afterAny(1, weighed) || c.learned() == 1 && c.has("maximum") && (c.near("maximum", 1) || c.near("exp", 2)) {
		return "ssm/skip"
	}
	return ""
}

// factor reports whether an operand is a weight, or a view of one.
func (c *surroundings) factor(o program.Op) bool {
	own := c.op
	defer func() { c.op = own }()
	c.op = o
	return c.learned() > 0
}

// reaches reports whether what an edit changes comes to an operator at last.
func (c *surroundings) reaches(name string) bool {
	seen := map[program.ID]bool{}
	for _, id := range c.made {
		seen[id] = true
	}
	for _, o := range c.Ops {
		if !slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return seen[id] }) {
			continue
		}
		if o.Name == name {
			return true
		}
		for _, id := range o.Out {
			seen[id] = true
		}
	}
	return false
}

// afterAny reports whether the edited operator takes what another one made that is of some kind, within some
// operators.
func (c *surroundings) afterAny(within int, is func(o program.Op) bool) bool {
	return c.makes(c.op, within, is)
}

func (c *surroundings) makes(of program.Op, within int, is func(o program.Op) bool) bool {
	taken := of.Operands()
	for range within {
		var next []program.ID
		for _, id := range taken {
			i := c.Maker(id)
			if i < 0 {
				continue
			}
			if is(c.Ops[i]) {
				return true
			}
			next = append(next, c.Ops[i].Operands()...)
		}
		taken = next
	}
	return false
}

func (c *surroundings) makesNamed(of program.Op, within int, name string) bool {
	return c.makes(of, within, func(o program.Op) bool { return o.Name == name })
}

// rotates reports whether an operator adds what is turned by a sine to what is turned by a cosine, x·cos + (−b, a)·sin, or
// puts a·cos − b·sin and b·cos + a·sin together.
func (c *surroundings) rotates(o program.Op) bool {
	ofProducts := func(name string) func(o program.Op) bool {
		return func(o program.Op) bool {
			return o.Name == name && len(o.Operands()) > 1 && !slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return c.Maker(id) < 0 || c.Ops[c.Maker(id)].Name != "mul" })
		}
	}
	if o.Name == "cat" || o.Name == "stack" {
		return c.makes(o, 1, ofProducts("sub")) && c.makes(o, 1, ofProducts("add"))
	}
	return o.Name == "add" && len(o.Operands()) > 1 && c.makesNamed(o, 1, "mul") && c.makes(o, 2, func(o program.Op) bool {
		return o.Name == "cat" && c.makesNamed(o, 1, "neg")
	})
}

// rotatesPart reports whether what is changed cuts rows into a part that is rotated and one that is not, which are put
// together behind it.
func (c *surroundings) rotatesPart() bool {
	cuts := func(o program.Op) bool { return slices.Equal(o.Out, c.op.Out) }
	return c.cuts() && slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		return o.Name == "cat" && !c.rotates(o) && c.makes(o, 2, c.rotates) && c.makes(o, 2, cuts)
	})
}

// cuts reports whether what is changed cuts a value into parts.
func (c *surroundings) cuts() bool {
	return slices.Contains([]string{"split", "split_with_sizes", "slice"}, c.op.Name)
}

// gains reports whether an operator makes, of a weight of one axis, the factor of what was normed; or takes that
// factor.
func (c *surroundings) gains() bool {
	ofWeight := func(o program.Op) bool {
		return slices.ContainsFunc(o.Operands(), func(id program.ID) bool { v := c.Values[id]; return v.Weight != "" && len(v.Shape) == 1 })
	}
	rooted := func(o program.Op) bool { return o.Name == "mul" && c.makesNamed(o, toRoot, "rsqrt") }
	switch {
	case !slices.Contains([]string{"add", "mul"}, c.op.Name):
		return false
	case rooted(c.op): // without a weight it is the norm itself
		return c.makes(c.op, 1, func(o program.Op) bool { return o.Name == "add" && ofWeight(o) })
	}
	return ofWeight(c.op) && slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		return rooted(o) && slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return slices.Contains(c.op.Out, id) })
	})
}

// isBias reports whether what is changed is added as it stands.
func (c *surroundings) isBias() bool {
	return slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		return slices.ContainsFunc(o.Args, func(a program.Arg) bool {
			id, ok := a.Value.(program.ID)
			return ok && slices.Contains(c.made, id) && (o.Name == "add" || a.Name == "bias" && !isNorm(o.Name) || o.Name == "addmm" && a.Name == "self")
		})
	})
}

// summed reports whether what is changed is added to something as it stands.
func (c *surroundings) summed() bool {
	return slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		ids := o.Operands()
		return o.Name == "add" && len(ids) > 1 && slices.ContainsFunc(ids, func(id program.ID) bool { return slices.Contains(c.made, id) })
	})
}

func (c *surroundings) hasFused() bool {
	return slices.ContainsFunc(c.Ops, func(o program.Op) bool { return strings.Contains(o.Name, "scaled_dot_product") })
}

// ofAllHeads reports whether what is changed has no axis of heads: of the scores of an attention it is the same for all.
func (c *surroundings) ofAllHeads() bool {
	if len(c.made) != 1 || int(c.made[0]) >= len(c.Values) {
		return false
	}
	s := c.Values[c.made[0]].Shape
	return len(s) == 2 || len(s) == 4 && s[1] == 1
}

// ofModulation names edits of factors, shifts and gates that are the same for all tokens.
func ofModulation(c *surroundings) string {
	switch {
	case c.modulates(c.op) && (c.Kind == "drop" || c.Kind == "bypass"):
		return "modulation/missing"
	case c.modulates(c.op) && c.Kind == "source", c.cuts() && c.Kind == "slice" && slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		return c.modulates(o) && c.makes(o, 1, func(of program.Op) bool { return slices.Equal(of.Out, c.op.Out) })
	}):
		return "modulation/order"
	}
	return ""
}

// modulates reports whether an operator multiplies rows with numbers that are the same for all of them, or adds these,
// and they are no weight.
func (c *surroundings) modulates(o program.Op) bool {
	if o.Name != "mul" && o.Name != "add" || len(o.Out) != 1 || c.reaches("_softmax") {
		return false
	}
	all := c.Values[o.Out[0]].Shape
	n := len(all)
	return n > 2 && slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
		v := c.Values[id]
		return v.Weight == "" && len(v.Shape) == n && v.Shape[n-1] == all[n-1] && v.Shape[n-2] == 1 && all[n-2] > 1
	})
}

// ofSource names edits that take what was recorded elsewhere.
func ofSource(c *surroundings) string {
	if c.Kind != "source" || c.From == "" {
		return ""
	}
	is := c.Was
	if r := c.Values[c.Out].Record; is == "" && r > 0 && c.Of != nil {
		is = c.Of.Ports[r-1].Layer
	}
	if label.Name(c.From) == label.Name(is) { // what a layer was given, in the place of what it made of it
		return map[bool]string{true: "norm/missing", false: "activation/missing"}[c.norms(is)]
	}
	if c.Was == "" && c.Of != nil {
		is = c.Of.Ports[c.Target].Layer
	}
	stream := is == label.Block(is) || label.Parent(is) == label.Block(is) // what blocks pass on
	switch {
	case !stream && role(c.From) == role(is) && c.From != is && label.Block(c.From) == label.Block(is): // one of several beside it
		return "moe/expert-order"
	case !stream && role(c.From) == role(is) && c.From != is:
		return "state/stale"
	case !stream && is != "" && label.Beside(c.From, is):
		return "linear/gate-up"
	}
	return "residual/source"
}

// norms reports whether a layer of the program is a norm.
func (c *surroundings) norms(layer string) bool {
	return slices.ContainsFunc(c.Of.Ops, func(o program.Op) bool { return o.Layer == layer && (isNorm(o.Name) || o.Name == "rsqrt") })
}

// ofRegion names edits of what is done to a value until it is one value again.
func ofRegion(c *surroundings) string {
	switch {
	case c.Kind == "rounding":
		return "dtype/downcast"
	case c.ofOtherPass():
		return "state/stale"
	case strings.HasPrefix(c.Text, "a number more than the result") && !c.near("rsqrt", 2) && !isNorm(c.op.Name):
		return "value/offset"
	case c.Kind == "twice" && strings.HasSuffix(c.Text, ", too") && slices.ContainsFunc(c.Ops, c.rotates):
		return "rope/applied"
	case c.Kind == "exchange" && isActivation(c.op.Name):
		return "linear/gate-up"
	case (c.Kind == "drop" || c.Kind == "bypass" || c.Kind == "scalar") && c.caps():
		if c.reaches("_softmax") {
			return "config/attn_logit_softcapping"
		}
		return "config/final_logit_softcapping"
	case c.op.Name == "add" && (c.Kind == "drop" || c.Kind == "bypass") && c.learned() == 1 && (c.near("topk", toCompare) || c.has("topk")):
		return "moe/bias"
	}
	return ""
}

// ofOtherPass reports whether a value of another forward pass is taken in the place of one of its own.
func (c *surroundings) ofOtherPass() bool {
	if c.Kind != "bypass" && c.Kind != "source" || c.Of == nil || len(c.At) == 0 {
		return false
	}
	pass := func(op int) int {
		return slices.IndexFunc(c.Of.Passes, func(p program.Pass) bool { return p.First <= c.Origin[op] && c.Origin[op] < p.End })
	}
	own, taken := pass(c.At[0]), c.op.Operands()
	for _, o := range c.Patch.Ops[c.At[0]] {
		if slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
			return int(id) < len(c.Values) && c.Maker(id) >= 0 && !slices.Contains(taken, id) && pass(c.Maker(id)) != own
		}) {
			return true
		}
	}
	return false
}

// ofStacked names edits of what experts get and give, where their weights lie in one.
func ofStacked(c *surroundings) string {
	if c.stacked() {
		return ofExperts(c)
	}
	return ""
}

// stacked reports whether experts run on weights that lie in one.
func (c *surroundings) stacked() bool { return c.has("_grouped_mm") || c.has("histc") }

// caps reports whether the edited operator is one of c·tanh(x/c), with a number c.
func (c *surroundings) caps() bool {
	scales := func(o program.Op) bool { return (o.Name == "mul" || o.Name == "div") && len(o.Operands()) == 1 }
	for i, o := range c.Ops {
		if o.Name != "tanh" {
			continue
		}
		before := c.Maker(o.Operands()[0])
		behind := slices.IndexFunc(c.Ops, func(x program.Op) bool { return scales(x) && slices.Equal(x.Operands(), o.Out) })
		if before >= 0 && scales(c.Ops[before]) && behind >= 0 && slices.ContainsFunc(c.At, func(at int) bool { return at == before || at == i || at == behind }) {
			return true
		}
	}
	return false
}

// ofRow names edits of which row of several a result is, where nothing else is done.
func ofRow(c *surroundings) string {
	if c.Kind != "slice" && c.Kind != "layout" || slices.ContainsFunc(c.Ops, func(o program.Op) bool { return !slices.Contains(moves, o.Name) }) {
		return ""
	}
	if slices.ContainsFunc(c.Ops, func(o program.Op) bool { return (&surroundings{Piece: c.Piece, op: o}).ofOneRow() }) {
		return "output/last-token"
	}
	return ""
}

// besideScan names edits of what goes into a scan, or comes of it, and is a piece of its own.
func (c *surroundings) besideScan() string {
	if c.Weight != "" || !c.scans() {
		return ""
	}
	left := slices.Contains([]string{"source", "bypass", "drop"}, c.Kind)
	gate := func(o program.Op) bool { return o.Name == "mul" && c.makesNamed(o, 1, "silu") }
	switch {
	case c.op.Name == "slice" && c.Kind == "slice" && (c.after("convolution", 1) || c.takesFrom("convolution")):
		return "conv/padding"
	case left && (gate(c.op) || c.afterAny(1, gate)):
		return "ssm/gate"
	case c.Kind == "exchange" && len(c.At) > 0, c.Kind == "slice" && c.cuts() && len(c.op.Out) > 2:
		return "ssm/state"
	}
	return ""
}

// scans reports whether the part of a block that the piece belongs to scans: what it keeps decays by exponentials.
func (c *surroundings) scans() bool {
	if c.Of == nil {
		return false
	}
	layer := c.Of.Ports[c.Target].Layer
	block := label.Block(layer)
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(layer, block), "."), ".")
	if block == "" || name == "" {
		return false
	}
	has := map[string]bool{}
	for _, o := range c.Of.Ops {
		if label.Within(o.Layer, block+"."+name) {
			has[o.Name] = true
		}
	}
	return has["exp"] && (has["softplus"] || has["cumsum"] || has["maximum"]) && !has["_softmax"] && !has["topk"]
}

// ofRecurrence names edits of a state that decays from row to row, as that of a state-space model.
func ofRecurrence(c *surroundings) string {
	if !c.has("exp") || !c.has("softplus") && !c.has("cumsum") || c.reaches("_softmax") || c.has("topk") {
		return c.besideScan()
	}
	does := func(name string) bool {
		return c.op.Name == name || slices.ContainsFunc(c.At, func(i int) bool { return c.Ops[i].Name == name })
	}
	switch {
	case does("softplus") || c.near("softplus", 2):
		return "ssm/step"
	case does("exp") || c.near("exp", 2):
		return "ssm/decay"
	case does("silu") || c.after("silu", 2) || c.near("silu", 1):
		return "ssm/gate"
	case c.Kind == "slice" || c.Kind == "exchange" || c.Kind == "layout" || c.Kind == "source":
		return "ssm/state"
	}
	return ""
}
