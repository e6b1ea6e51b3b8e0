package edit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// Label names an edit for people by what stands around it: "rope/layout", "norm/eps". It is never needed to
// find one. What has no name of its own is "edit/" and its kind.
func Label(p *program.Piece, e Edit) string {
	if e.ID != "" {
		return e.ID
	}
	c := &surroundings{Piece: p, Edit: e}
	if len(e.At) > 0 {
		c.op = p.Ops[e.At[0]]
		c.made = c.op.Out
	} else if o := e.Patch.Ops[replay.Outside]; len(o) > 0 {
		c.made = o[len(o)-1].Out
	}
	for _, l := range labels {
		if id := l(c); id != "" {
			return id
		}
	}
	return "edit/" + e.Kind
}

// kindNames are the kinds that edits have, and their names where nothing around them has one.
var kindNames = []string{"drop", "sibling", "swap", "exchange", "flag", "axis", "slice", "scalar", "integer", "table", "mask", "bypass", "source",
	"weight", "order", "twice", "value", "rounding", "layout", "conjugation", "term", "quant", "state"}

// names are those that edits have by what stands around them, by family; activations have theirs, too.
var names = map[string][]string{
	"activation": {"missing"},
	"attention":  {"anchor-missing", "bias", "causal", "gqa", "heads", "mask", "scale", "softmax-axis"},
	"config":     {"<key>"},
	"conv":       {"flipped", "layout", "padding"},
	"dtype":      {"downcast", "overflow"},
	"embedding":  {"index", "position", "scale"},
	"image":      {"channels", "class-token", "resize"},
	"layout":     {"permuted", "shifted", "transposed"},
	"linear":     {"bias-missing", "bias-twice", "gate-up", "other-layer", "qkv-order", "transposed", "weight-scale", "weight-zero"},
	"mask":       {"padding"},
	"modulation": {"missing", "order"},
	"moe":        {"bias", "expert-order", "groups", "k", "renorm", "scaling", "scores", "shares"},
	"norm":       {"eps", "kind", "missing", "order", "weight"},
	"output":     {"last-token", "tied"},
	"quant":      {"group", "missing", "order", "scale", "zero-point"},
	"residual":   {"missing", "scale", "source"},
	"rope":       {"applied", "layout", "offset", "scaling", "sections", "theta"},
	"ssm":        {"decay", "gate", "skip", "state", "step"},
	"state":      {"chunk", "position", "sequence", "slot", "stale", "window"},
	"value":      {"clipped", "constant", "offset", "scale", "sign"},
}

// IDs lists the names of edits.
func IDs() (ids []string) {
	for _, kind := range kindNames {
		ids = append(ids, "edit/"+kind)
	}
	for family, own := range names {
		for _, name := range own {
			ids = append(ids, family+"/"+name)
		}
	}
	for _, name := range activations {
		ids = append(ids, "activation/"+name)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// surroundings are what stands around an edit.
type surroundings struct {
	*program.Piece
	Edit
	op   program.Op   // none where what comes from outside is changed
	made []program.ID // what is changed
}

// labels are the rules by which edits are named; the first that has a name decides.
var labels = []func(c *surroundings) string{ofSource, ofRegion, ofRow, ofRecurrence, ofStacked, ofActivation, ofNorm, ofConvolution, ofWeight, ofMask, ofHeads, ofScan, ofModulation, ofRotation, ofApproximate, ofAttention, ofExperts, ofSum, ofProduct, ofEmbedding, ofOrder, ofValue}

var activations = map[string]string{"silu": "silu", "gelu (none)": "gelu", "gelu (tanh)": "gelu-tanh", "gelu": "gelu", "relu": "relu", "relu²": "relu2",
	"x·sigmoid(1.702·x)": "quick-gelu", "sigmoid": "sigmoid", "tanh": "tanh", "leaky_relu": "leaky-relu", "elu": "elu", "mish": "mish", "softplus": "softplus"}

func isActivation(name string) bool {
	return slices.Contains([]string{"silu", "gelu", "relu", "mish", "hardswish", "leaky_relu", "elu"}, name)
}

func ofActivation(c *surroundings) string {
	if c.op.Name == "pow" && c.Kind == "drop" && c.after("relu", 1) {
		return "activation/relu"
	}
	if c.op.Name == "mul" && (c.Kind == "drop" || c.Kind == "scalar") && c.gatesItself() {
		return "activation/silu"
	}
	if c.Frame > 0 {
		return c.ofCall()
	}
	if _, to, _ := strings.Cut(c.Text, " → "); c.Kind == "sibling" && activations[to] != "" && slices.Contains([]string{"sigmoid", "tanh", "softplus", "mul"}, c.op.Name) {
		return "activation/" + activations[to]
	}
	if !isActivation(c.op.Name) {
		return ""
	}
	switch c.Kind {
	case "drop", "bypass":
		return "activation/missing"
	case "sibling":
		_, to, _ := strings.Cut(c.Text, " → ")
		if name := activations[to]; name != "" {
			return "activation/" + name
		}
		return "edit/sibling"
	case "order":
		return "norm/order"
	}
	return ""
}

// ofCall names a call that is left out by what it does.
func (c *surroundings) ofCall() string {
	does := func(is func(o program.Op) bool) bool {
		return slices.ContainsFunc(c.At, func(i int) bool { return is(c.Ops[i]) })
	}
	if c.Kind == "drop" && c.ofBlock() {
		return "config/num_hidden_layers"
	}
	switch {
	case c.Kind == "rounding":
		return "dtype/downcast"
	case does(func(o program.Op) bool {
		return strings.HasSuffix(o.Name, "mm") || o.Name == "convolution" || o.Name == "_softmax"
	}):
		return ""
	case does(c.rotates):
		return "rope/applied"
	case c.Kind == "drop" && does(func(o program.Op) bool { return o.Name == "add" && (&surroundings{Piece: c.Piece, op: o}).takesTwo() }):
		return "residual/missing"
	case does(func(o program.Op) bool { return o.Name == "rsqrt" || isNorm(o.Name) || o.Name == "linalg_vector_norm" }):
		return "norm/missing"
	case does(func(o program.Op) bool { return isActivation(o.Name) }):
		return "activation/missing"
	}
	return ""
}

// ofBlock reports whether a numbered block is left out between what is recorded, and none of it was.
func (c *surroundings) ofBlock() bool {
	block := label.Block(c.Ops[c.At[0]].Layer)
	return block != "" && c.Of != nil && !label.Within(c.Of.Ports[c.Target].Layer, block) &&
		!slices.ContainsFunc(c.At, func(i int) bool { return label.Block(c.Ops[i].Layer) != block })
}

// gatesItself reports whether a factor stands in x·sigmoid(a·x).
func (c *surroundings) gatesItself() bool {
	for _, o := range c.Ops {
		if o.Name != "mul" {
			continue
		}
		m := &surroundings{Piece: c.Piece, op: o}
		if m.takesOne(c.op.Operands()) && slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
			i := c.Maker(id)
			return i >= 0 && c.Ops[i].Name == "sigmoid" && (&surroundings{Piece: c.Piece, op: c.Ops[i]}).takesOne(c.op.Out)
		}) {
			return true
		}
	}
	return false
}

// takesOne reports whether the operator takes one of some values.
func (c *surroundings) takesOne(ids []program.ID) bool {
	return slices.ContainsFunc(c.op.Operands(), func(id program.ID) bool { return slices.Contains(ids, id) })
}

func isNorm(name string) bool { return strings.Contains(name, "_norm") }

func ofNorm(c *surroundings) string {
	near := c.op.Name == "rsqrt" || c.op.Name == "mean" || c.op.Name == "pow" || c.near("rsqrt", 2)
	switch {
	case c.gains() && (c.Kind == "drop" || c.Kind == "scalar" || c.Kind == "sibling" || c.Kind == "source" || c.Kind == "bypass"):
		return "norm/weight"
	case len(c.At) == 0 && c.Kind == "value" && strings.HasPrefix(c.Text, "without its mean") && c.near("rsqrt", toRoot):
		return "norm/kind"
	case isNorm(c.op.Name) && c.Kind == "scalar" && strings.HasPrefix(c.Text, "eps"), c.op.Name == "add" && c.Kind == "scalar" && c.near("rsqrt", 1),
		c.op.Name == "add" && c.Kind == "drop" && c.near("rsqrt", 1), near && c.Kind == "scalar" && strings.HasPrefix(c.Text, "a number more"),
		isNorm(c.op.Name) && strings.HasPrefix(c.Text, "a number more than eps"):
		return "norm/eps"
	case isNorm(c.op.Name) && (c.Kind == "sibling" || c.Kind == "scalar"):
		return "norm/kind"
	case isNorm(c.op.Name) && strings.HasPrefix(c.Text, "weight"), isNorm(c.op.Name) && strings.HasPrefix(c.Text, "bias"):
		return "norm/weight"
	case isNorm(c.op.Name) && c.Kind == "drop", c.Kind == "bypass" && (near || c.after("rsqrt", 3)), c.op.Name == "mul" && c.Kind == "drop" && c.after("rsqrt", 1):
		return "norm/missing"
	case near && (c.Kind == "axis" || c.Kind == "value" || c.Kind == "sibling"):
		return "norm/kind"
	case c.op.Name == "mul" && c.Kind == "drop" && c.after("rsqrt", 3) && c.takesWeight():
		return "norm/weight"
	}
	return ""
}

// ofConvolution names edits of the order in which the weight of a convolution lies, and of the channels that it takes.
func ofConvolution(c *surroundings) string {
	if c.Kind != "layout" || !slices.ContainsFunc(c.Takers, func(i int) bool { return c.Ops[i].Name == "convolution" }) {
		return ""
	}
	var axis int
	_, err := fmt.Sscanf(c.Text, "axis %d flipped", &axis)
	switch flipped := err == nil; {
	case flipped && axis == 1:
		return "image/channels"
	case c.Weight == "":
		return ""
	case flipped && axis > 1:
		return "conv/flipped"
	}
	return "conv/layout"
}

// projected reports whether what is changed goes into a product with a weight.
func (c *surroundings) projected() bool {
	return c.nearAny(toCompare, func(o program.Op) bool {
		return strings.HasSuffix(o.Name, "mm") && (&surroundings{Piece: c.Piece, op: o}).learned() > 1
	})
}

// ofSibling reports whether the weight that is read is one beside its own, in the same layer.
func (c *surroundings) ofSibling() bool {
	from, to, ok := strings.Cut(c.Text, " → ")
	return ok && role(from) != role(to) && slices.Equal(numbersIn(from), numbersIn(to))
}

// widens reports whether the piece makes more of each row than it takes, as gates do and queries do not.
func (c *surroundings) widens() bool {
	out := c.Values[c.Out].Shape
	return len(out) > 0 && slices.ContainsFunc(c.Values, func(v program.Value) bool {
		return v.Record > 0 && len(v.Shape) == len(out) && v.Shape[len(v.Shape)-1] < out[len(out)-1]
	})
}

// ofRows reports whether the weight that is changed has several rows.
func (c *surroundings) ofRows() bool {
	return slices.ContainsFunc(c.Values, func(v program.Value) bool {
		many := 0
		for _, n := range v.Shape {
			if n > 1 {
				many++
			}
		}
		return v.Weight == c.Weight && many > 1
	})
}

// numbersIn lists the numbers in a name.
func numbersIn(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsDigit(r) })
}

func ofWeight(c *surroundings) string {
	if c.Weight == "" {
		return ""
	}
	switch {
	case c.Kind == "layout" && c.near("embedding", 1):
		return "embedding/index"
	case c.Kind == "weight" && c.scales():
		return "norm/weight"
	case c.Kind == "weight" && len(numbersIn(c.Text)) == 0: // outside of all blocks: the head, and the embedding
		return "output/tied"
	case c.Kind == "weight" && c.ofSibling() && c.widens():
		return "linear/gate-up"
	case c.Kind == "weight" && c.ofSibling():
		return "linear/qkv-order"
	case c.Kind == "weight":
		return "linear/other-layer"
	case c.Kind == "layout" && c.ofRows() && c.summed(): // a table that is added as it stands
		return "embedding/position"
	case c.Kind == "layout" && strings.Contains(c.Text, "exchanged"):
		return "linear/transposed"
	case c.Kind == "value" && c.near("cat", 2) && !c.near("_softmax", toScores):
		return "image/class-token"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "0 times"):
		return "linear/weight-zero"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "1 +"):
		return "norm/weight"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "2 times") && c.isBias():
		return "linear/bias-twice"
	case c.Kind == "value":
		return "linear/weight-scale"
	case c.Kind == "layout":
		return "layout/permuted"
	}
	return ""
}

// ofRotation names edits of sines and cosines, and of what is multiplied with them.
func ofRotation(c *surroundings) string {
	if c.Kind == "state" { // other positions
		return map[bool]string{true: "attention/bias", false: "rope/offset"}[c.attended() && c.projected()]
	}
	turns := c.has("cos") && c.has("sin")
	if c.op.Name == "pow" && (c.Kind == "scalar" || c.Kind == "table") && c.after("arange", toAngles) {
		return "rope/theta" // a geometric sequence
	}
	if c.Kind == "slice" && c.rotatesPart() {
		return "rope/applied"
	}
	if c.Kind == "drop" || c.Kind == "bypass" || c.Kind == "source" {
		if c.rotates(c.op) || c.op.Name == "cat" && c.afterAny(1, c.rotates) {
			return "rope/applied"
		}
	}
	angle := c.near("cos", toAngles)
	switch {
	case angle && (c.op.Name == "add" || c.op.Name == "sub"):
		return "rope/offset"
	case angle && (c.op.Name == "mul" || c.op.Name == "div") && (c.Kind == "scalar" || c.Kind == "drop"), (c.after("cos", 1) || c.after("sin", 1)) && c.op.Name == "mul" && !c.takesTwo():
		return "rope/scaling"
	case (strings.HasPrefix(c.Text, "the numbers of") || strings.HasPrefix(c.Text, "the ratio of")) && c.reaches("cos"):
		return "rope/scaling"
	case c.Kind == "table" && strings.HasPrefix(c.Text, "base"):
		return "rope/theta"
	case c.Kind == "table":
		return "rope/scaling"
	case c.Kind == "conjugation":
		return "rope/layout"
	case turns && (c.Kind == "integer" || c.op.Name == "arange"):
		return "rope/offset"
	case c.op.Name == "neg" || c.op.Name == "cat" && c.Kind == "swap" && c.after("neg", 1):
		return "rope/layout"
	}
	return ""
}

func ofAttention(c *surroundings) string {
	fused := strings.Contains(c.op.Name, "scaled_dot_product")
	softmax := c.near("_softmax", 4)
	switch {
	case c.reaches("embedding") && c.attended(): // the numbers of a table of biases
		return "attention/bias"
	case c.op.Name == "masked_fill" && (c.has("topk") || !softmax && !c.near("_softmax", 8)):
		return ""
	case fused && strings.HasPrefix(c.Text, "scale"), c.Kind == "order" && softmax, (c.op.Name == "mul" || c.op.Name == "div") && softmax && (c.Kind == "scalar" || c.Kind == "drop" || c.Kind == "twice"):
		return "attention/scale"
	case fused && strings.HasPrefix(c.Text, "is_causal"), c.op.Name == "tril" || c.op.Name == "triu":
		return "attention/causal"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "divided by its sum") && c.after("_softmax", 1) && c.op.Name != "topk":
		return "attention/anchor-missing" // what was beside them in the sum takes no part
	case c.Kind == "exchange" && (c.has("_softmax") || c.hasFused()) && c.op.Name != "_softmax":
		return "linear/qkv-order"
	case c.masks() && c.near("_softmax", toScores):
		return "attention/mask"
	case strings.Contains(c.Text, "spread by turns") && (c.has("_softmax") || c.hasFused()):
		return "attention/gqa"
	case c.op.Name == "_softmax" && c.Kind == "axis":
		return "attention/softmax-axis"
	case len(c.At) == 0 && c.Weight == "" && c.scores() && c.ofAllHeads():
		return "attention/mask"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "0 times") && c.near("cat", 2) && c.near("_softmax", toScores):
		return "attention/anchor-missing"
	case c.Kind == "layout" && c.scores() && c.cut():
		return "linear/qkv-order"
	case (c.Kind == "value" || c.Kind == "layout" || c.Kind == "scalar") && c.scores():
		return "attention/bias"
	case c.Kind == "mask" && !c.attended() && (c.near("sum", toCompare) || c.near("mean", toCompare)): // what is summed up
		return "mask/padding"
	case c.Kind == "mask" || c.op.Name == "masked_fill" || fused && strings.HasPrefix(c.Text, "attn_mask") || c.op.Name == "add" && c.Kind == "drop" && c.near("_softmax", 2):
		return "attention/mask"
	}
	return ""
}

func ofExperts(c *surroundings) string {
	if c.Kind == "slice" && c.op.Name == "select" && c.learned() > 2 { // the weights of one of several
		return "moe/expert-order"
	}
	if c.Kind == "sibling" && c.op.Name == "sum" && strings.Contains(c.Text, "the element") && c.after("mul", 3) {
		return "moe/k"
	}
	stacked := c.stacked()
	if !c.has("topk") && !stacked {
		return ""
	}
	switch {
	case stacked && c.op.Name == "add" && c.Kind == "drop" && c.learned() > 0:
		return "linear/bias-missing"
	case stacked && c.Weight == "" && (c.Kind == "layout" && len(c.At) == 0 || c.op.Name == "mul" && (c.Kind == "drop" || c.Kind == "bypass" || c.Kind == "order") || c.Kind == "order"):
		return "moe/shares"
	case stacked && c.Kind == "layout" && c.Weight == "" && len(c.At) > 0 && c.cut():
		return "linear/gate-up"
	case c.op.Name == "topk" && strings.HasPrefix(c.Text, "k of"), c.Kind == "sibling" && c.op.Name == "sum" && strings.Contains(c.Text, "the element"):
		return "moe/k"
	case c.op.Name == "gather" && (c.Kind == "bypass" || c.Kind == "source"):
		return "moe/bias"
	case c.Kind == "order" && c.op.Name == "mul":
		return "moe/shares"
	case c.Kind == "order" && (c.op.Name == "topk" || c.after("topk", 1)):
		return "moe/scores"
	case c.Kind == "layout" && c.near("slice", 1) && (c.near("sigmoid", toCompare) || c.near("silu", toCompare)):
		return "linear/gate-up"
	case c.op.Name == "masked_fill":
		return "moe/groups"
	case c.op.Name == "div" && (c.Kind == "drop" || c.Kind == "bypass"), c.Kind == "value" && strings.HasPrefix(c.Text, "divided by its sum"):
		return "moe/renorm"
	case (c.op.Name == "_softmax" || c.op.Name == "sigmoid") && c.Kind == "sibling":
		return "moe/scores"
	case c.op.Name == "mul" && c.Kind == "scalar", c.op.Name == "mul" && c.Kind == "drop" && !c.takesTwo():
		return "moe/scaling"
	}
	return ""
}

func ofSum(c *surroundings) string {
	if c.op.Name == "mul" && c.Kind == "drop" && (c.after("sigmoid", 1) || c.after("silu", 1) || c.after("tanh", 1)) ||
		c.op.Name == "add" && c.Kind == "drop" && !c.takesTwo() && c.near("mul", 1) {
		return "modulation/missing"
	}
	if c.Weight == "" && (c.Kind == "value" || c.op.Name == "mul" && !c.takesTwo() && (c.Kind == "scalar" || c.Kind == "drop")) && c.summed() {
		return "residual/scale"
	}
	if c.op.Name == "mul" && c.Kind == "drop" && c.learned() == 1 {
		return "residual/scale"
	}
	if c.op.Name != "add" || !c.takesTwo() || c.rotates(c.op) {
		return ""
	}
	if axes := c.learned(); c.Kind == "drop" && axes > 0 { // what is added is a weight: a bias, or a table
		return map[bool]string{true: "linear/bias-missing", false: "embedding/position"}[axes == 1]
	}
	if c.Kind == "twice" && c.learned() == 1 {
		return "linear/bias-twice"
	}
	switch c.Kind {
	case "drop", "bypass":
		return "residual/missing"
	case "source":
		return "residual/source"
	case "sibling", "scalar", "value":
		return "residual/scale"
	}
	return ""
}

func ofProduct(c *surroundings) string {
	switch {
	case c.op.Name == "transpose" && c.Kind == "drop" && c.takesWeight() && (c.near("mm", 2) || c.near("addmm", 2) || c.near("bmm", 2)):
		return "linear/transposed"
	case c.op.Name == "addmm" && (strings.HasPrefix(c.Text, "bias") || strings.HasPrefix(c.Text, "self")):
		return "linear/bias-missing"
	case slices.Contains([]string{"mm", "bmm", "addmm"}, c.op.Name) && c.Kind == "swap":
		return "linear/transposed"
	case c.Kind == "layout" && strings.Contains(c.Text, "rolled") && c.has("glu"),
		c.Kind == "slice" && strings.HasPrefix(c.Text, "parts") && (c.near("silu", 1) || c.near("gelu", 1) || c.near("sigmoid", 1)):
		return "linear/gate-up"
	case c.cuts() && c.Kind == "slice" && strings.HasPrefix(c.Text, "parts"):
		return map[bool]string{true: "linear/gate-up", false: "linear/qkv-order"}[len(c.op.Out) == 2 && !c.attended()]
	case c.op.Name == "convolution" && strings.HasPrefix(c.Text, "bias"):
		return "linear/bias-missing"
	case c.op.Name == "convolution" && strings.HasPrefix(c.Text, "padding"):
		return "conv/padding"
	}
	return ""
}

// ofOneRow reports whether an operator takes one row of several.
func (c *surroundings) ofOneRow() bool {
	x, ok := c.op.Args.Get("self").(program.ID)
	if !ok || len(c.op.Out) != 1 || len(c.Values[x].Shape) < 2 {
		return false
	}
	from, to := c.Values[x].Shape, c.Values[c.op.Out[0]].Shape
	d, _ := c.op.Args.Get("dim").(int)
	return d > 0 && d < len(from)-1 && from[d] > 1 && (len(to) < len(from) || to[d] == 1) && to[len(to)-1] == from[len(from)-1]
}

// takesFrom reports whether the operator takes what another one made, which the piece takes as it was recorded.
func (c *surroundings) takesFrom(name string) bool {
	return slices.ContainsFunc(c.op.Operands(), func(id program.ID) bool {
		r := c.Values[id].Record
		if r == 0 || c.Of == nil {
			return false
		}
		m := c.Of.Maker(c.Of.Ports[r-1].Value)
		return m >= 0 && c.Of.Ops[m].Name == name
	})
}

func ofEmbedding(c *surroundings) string {
	switch {
	case (c.Kind == "integer" || c.op.Name == "arange") && c.has("embedding"):
		return "embedding/index"
	case c.Kind == "integer" || c.op.Name == "arange":
		return "rope/offset"
	case c.op.Name == "mul" && (c.after("embedding", 2) || c.takesFrom("embedding")) && (c.Kind == "scalar" || c.Kind == "drop"):
		return "embedding/scale"
	}
	return ""
}

func ofOrder(c *surroundings) string {
	switch {
	case c.Kind == "layout" && strings.Contains(c.Text, "exchanged"), c.Kind == "axis" && (c.op.Name == "transpose" || c.op.Name == "permute"):
		return "layout/transposed"
	case c.Kind == "layout" && (strings.Contains(c.Text, "rolled") || strings.Contains(c.Text, "shifted")):
		return "layout/shifted"
	case c.Kind == "layout", c.op.Name == "cat" && c.Kind == "swap":
		return "layout/permuted"
	case c.op.Name == "slice" && c.Kind == "slice":
		return "layout/shifted"
	case c.Kind == "rounding":
		return "dtype/downcast"
	}
	return ""
}

func ofValue(c *surroundings) string {
	switch {
	case strings.HasPrefix(c.Text, "a factor of the result"):
		return "value/scale"
	case c.Kind == "term" && strings.HasSuffix(c.Text, "is added to the result"):
		return "residual/source"
	case c.Kind == "value" && (strings.HasPrefix(c.Text, "0 times") || strings.HasPrefix(c.Text, "1 in place")):
		return "value/constant"
	case c.Kind == "value" && strings.HasPrefix(c.Text, "-1 times"), c.op.Name == "neg" && c.Kind == "drop":
		return "value/sign"
	case strings.HasPrefix(c.op.Name, "clamp"):
		return "value/clipped"
	case c.op.Name == "div" && c.Kind == "drop" && c.after("linalg_vector_norm", 3):
		return "norm/missing"
	case c.op.Name == "add" && !c.takesTwo() && (c.Kind == "drop" || c.Kind == "scalar"):
		return "value/offset"
	case c.Kind == "value" && strings.Contains(c.Text, "times"), (c.Kind == "scalar" || c.Kind == "drop" && !c.takesTwo() || c.Kind == "sibling" && strings.Contains(c.Text, "mul")) && (c.op.Name == "mul" || c.op.Name == "div"):
		return "value/scale"
	}
	return ""
}

// has reports whether the piece has an operator.
func (c *surroundings) has(name string) bool {
	return slices.ContainsFunc(c.Ops, func(o program.Op) bool { return o.Name == name })
}

// near reports whether the result of the edited operator goes into another one, within some operators.
func (c *surroundings) near(name string, within int) bool {
	return c.nearAny(within, func(o program.Op) bool { return o.Name == name })
}

// nearAny reports the same of an operator of some kind.
func (c *surroundings) nearAny(within int, is func(o program.Op) bool) bool {
	made := slices.Clone(c.made)
	for range within {
		var next []program.ID
		for _, o := range c.Ops {
			if slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return slices.Contains(made, id) }) {
				if is(o) {
					return true
				}
				next = append(next, o.Out...)
			}
		}
		made = next
	}
	return false
}

// after reports whether the edited operator takes what another one made, within some operators.
func (c *surroundings) after(name string, within int) bool {
	return c.afterAny(within, func(o program.Op) bool { return o.Name == name })
}

// scales reports whether the weight that is changed is that of a norm.
func (c *surroundings) scales() bool {
	return slices.ContainsFunc(c.Ops, func(o program.Op) bool {
		n := &surroundings{Piece: c.Piece, op: o}
		return n.takes(c.Weight) && (isNorm(o.Name) || n.after("rsqrt", toNorm))
	})
}

// takes reports whether the operator takes a weight, maybe as another type.
func (c *surroundings) takes(weight string) bool {
	return slices.ContainsFunc(c.op.Operands(), func(id program.ID) bool {
		for c.Maker(id) >= 0 && slices.Contains([]string{"_to_copy", "add", "view"}, c.Ops[c.Maker(id)].Name) {
			id = c.Ops[c.Maker(id)].Operands()[0]
		}
		return c.Values[id].Weight == weight
	})
}

func (c *surroundings) takesWeight() bool {
	return slices.ContainsFunc(c.op.Operands(), func(id program.ID) bool { return c.Values[id].Weight != "" })
}

// learned returns how many axes a weight has that an operator takes as it stands, or by a view of it; 0 for none.
func (c *surroundings) learned() (axes int) {
	for _, id := range c.op.Operands() {
		for c.Maker(id) >= 0 && slices.Contains([]string{"view", "expand", "slice", "unsqueeze", "transpose", "_to_copy", "select", "index"}, c.Ops[c.Maker(id)].Name) {
			id = c.Ops[c.Maker(id)].Operands()[0]
		}
		if v := c.Values[id]; v.Weight != "" {
			for _, n := range v.Shape {
				if n > 1 {
					axes++
				}
			}
			return max(axes, 1)
		}
	}
	return 0
}

// masks reports whether the operator makes a mask.
func (c *surroundings) masks() bool {
	return len(c.op.Out) == 1 && c.op.Out[0] != program.None && c.Values[c.op.Out[0]].DType == tensor.Bool
}

// scores reports whether what an operator makes is added to the scores of an attention: it comes to a softmax through a
// sum and through no product.
func (c *surroundings) scores() bool {
	made, added := slices.Clone(c.made), false
	for range toScores {
		var next []program.ID
		for _, o := range c.Ops {
			if !slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return slices.Contains(made, id) }) || strings.HasSuffix(o.Name, "mm") && o.Name != "baddbmm" {
				continue
			}
			if o.Name == "_softmax" {
				return added
			}
			added = added || o.Name == "add" || o.Name == "baddbmm"
			next = append(next, o.Out...)
		}
		made = next
	}
	return false
}

func (c *surroundings) takesTwo() bool { return len(c.op.Operands()) > 1 }
