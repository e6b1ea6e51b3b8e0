package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// surroundings are what stands around an edit.
type surroundings struct {
	graph
	Edit
	op      program.Op   // none where what comes from outside is changed
	changed []program.ID // what is
}

// kind is a kind of operators.
type kind func(o program.Op) bool

func named(names string) kind { return func(o program.Op) bool { return isOne(o, names) } }

// any reports whether the piece has an operator of some kind, does whether the edit changes one.
func (c *surroundings) any(of kind) bool { return slices.ContainsFunc(c.Ops, of) }

func (c *surroundings) does(of kind) bool {
	return of(c.op) || slices.ContainsFunc(c.At, func(i int) bool { return of(c.Ops[i]) })
}

// shapeOut is that of what the changed operator makes; nil for none.
func (c *surroundings) shapeOut() []int {
	v, _ := c.resultOf(c.op)
	return v.Shape
}

// takes reports whether an operator takes a value of some kind, takesOf whether it takes one of some.
func takes(o program.Op, of func(id program.ID) bool) bool {
	return slices.ContainsFunc(o.Operands(), of)
}

func takesOf(o program.Op, ids []program.ID) bool {
	return takes(o, func(id program.ID) bool { return slices.Contains(ids, id) })
}

func takesTwo(o program.Op) bool { return len(o.Operands()) > 1 }

func (c *surroundings) takesTwo() bool { return takesTwo(c.op) }

// into reports whether what is changed goes into an operator of some kind, within some operators.
func (c *surroundings) into(within int, of kind) bool {
	far := map[program.ID]int{}
	for _, id := range c.changed {
		far[id] = 1
	}
	for _, o := range c.Ops {
		at := within + 1
		for _, id := range o.Operands() {
			if d := far[id]; d > 0 {
				at = min(at, d)
			}
		}
		if at > within {
			continue
		}
		if of(o) {
			return true
		}
		for _, id := range o.Out {
			far[id] = at + 1
		}
	}
	return false
}

// makes reports whether an operator takes what another one made that is of some kind, within some operators.
func (c *surroundings) makes(o program.Op, within int, of kind) bool {
	return within > 0 && takes(o, func(id program.ID) bool {
		o := c.made(id)
		return o.Name != "" && (of(o) || c.makes(o, within-1, of))
	})
}

// learned returns how many axes a weight has that an operator takes as it stands, or by a view of it; 0 for none.
func (c *surroundings) learned(o program.Op) int {
	for _, id := range o.Operands() {
		if v := c.Values[c.behind(id, "view expand slice unsqueeze transpose _to_copy select index")]; v.Weight != "" {
			return max(axesOf(v), 1)
		}
	}
	return 0
}

// axesOf counts the axes of several elements.
func axesOf(v program.Value) (axes int) {
	for _, n := range v.Shape {
		axes += min(n-1, 1)
	}
	return axes
}

// target is the layer whose record the piece makes; "" where that is not known.
func (c *surroundings) target() string {
	if c.Of == nil {
		return ""
	}
	return c.Of.Ports[c.Target].Layer
}

// --- norms and activations

// gatesItself reports whether a factor stands in x·sigmoid(a·x).
func (c *surroundings) gatesItself() bool {
	return c.any(func(o program.Op) bool {
		return o.Name == "mul" && takesOf(o, c.op.Operands()) &&
			c.makes(o, 1, func(of program.Op) bool { return of.Name == "sigmoid" && takesOf(of, c.op.Out) })
	})
}

// gains reports whether an operator makes, of a weight of one axis, the factor of what was normed; or takes that
// factor.
func (c *surroundings) gains() bool {
	ofWeight := func(o program.Op) bool {
		return takes(o, func(id program.ID) bool { v := c.Values[id]; return v.Weight != "" && len(v.Shape) == 1 })
	}
	rooted := func(o program.Op) bool { return o.Name == "mul" && c.makes(o, toRoot, named("rsqrt")) }
	switch {
	case !isOne(c.op, "add mul"):
		return false
	case rooted(c.op): // without a weight it is the norm itself
		return c.makes(c.op, 1, func(o program.Op) bool { return o.Name == "add" && ofWeight(o) })
	}
	return ofWeight(c.op) && c.any(func(o program.Op) bool { return rooted(o) && takesOf(o, c.op.Out) })
}

// caps reports whether the edited operator is one of c·tanh(x/c), with a number c.
func (c *surroundings) caps() bool {
	scales := func(o program.Op) bool { return isOne(o, "mul div") && !takesTwo(o) }
	for i, o := range c.Ops {
		if o.Name != "tanh" {
			continue
		}
		before := c.Maker(o.Operands()[0])
		behind := slices.IndexFunc(c.Ops, func(x program.Op) bool { return scales(x) && takesOf(x, o.Out) })
		if before >= 0 && scales(c.Ops[before]) && behind >= 0 && slices.ContainsFunc(c.At, func(at int) bool { return at == before || at == i || at == behind }) {
			return true
		}
	}
	return false
}

// --- weights

// scales reports whether the weight that is changed is that of a norm, maybe as another type.
func (c *surroundings) scales() bool {
	return c.any(func(o program.Op) bool {
		return takes(o, func(id program.ID) bool { return c.Values[c.behind(id, "_to_copy add view")].Weight == c.Weight }) &&
			(isOne(o, norming) || c.makes(o, toNorm, named("rsqrt")))
	})
}

// ofSibling reports whether the weight that is read is one beside its own, in the same layer.
func (c *surroundings) ofSibling() bool {
	own, to, ok := strings.Cut(c.Text, " → ")
	return ok && role(own) != role(to) && slices.Equal(numbersIn(own), numbersIn(to))
}

func (c *surroundings) unnumbered() bool { return len(numbersIn(c.Text)) == 0 }

// widens reports whether the piece makes more of each row than it takes, as gates do and queries do not.
func (c *surroundings) widens() bool {
	out := c.Values[c.Out].Shape
	n := len(out)
	return n > 0 && slices.ContainsFunc(c.Values, func(v program.Value) bool {
		return v.Record > 0 && len(v.Shape) == n && v.Shape[n-1] < out[n-1]
	})
}

// ofRows reports whether the weight that is changed has several rows.
func (c *surroundings) ofRows() bool {
	return slices.ContainsFunc(c.Values, func(v program.Value) bool { return v.Weight == c.Weight && axesOf(v) > 1 })
}

// convolved reports whether what is changed goes into a convolution.
func (c *surroundings) convolved() bool {
	return slices.ContainsFunc(c.Takers, func(i int) bool { return c.Ops[i].Name == "convolution" })
}

// summed reports whether what is changed is added to something as it stands; isBias, in a product, too.
func (c *surroundings) summed() bool {
	return c.into(1, func(o program.Op) bool { return o.Name == "add" && takesTwo(o) })
}

func (c *surroundings) isBias() bool {
	return c.any(func(o program.Op) bool {
		return slices.ContainsFunc(tensors(o), func(x operand) bool {
			return slices.Contains(c.changed, x.id) && (o.Name == "add" || isBias(o, x.name) && !isOne(o, norming))
		})
	})
}

// recordedFrom holds where the operator takes what another one made, which the piece takes as it was recorded.
func recordedFrom(name string) condition {
	return func(c *surroundings) bool {
		return takes(c.op, func(id program.ID) bool {
			r := c.Values[id].Record
			if r == 0 || c.Of == nil {
				return false
			}
			m := c.Of.Maker(c.Of.Ports[r-1].Value)
			return m >= 0 && c.Of.Ops[m].Name == name
		})
	}
}

// --- attention

// projected reports whether what is changed goes into a product with a weight.
func (c *surroundings) projected() bool {
	return c.into(toCompare, func(o program.Op) bool { return isOne(o, multiplying) && c.learned(o) > 1 })
}

// compared reports whether the edited operator compares positions, or takes what comes of that.
func (c *surroundings) compared() bool {
	of := func(o program.Op) bool { return isOne(o, comparing) && takesTwo(o) }
	return of(c.op) || c.makes(c.op, toScores, of)
}

// bools reports whether the operator makes a mask.
func (c *surroundings) bools() bool {
	return len(c.op.Out) == 1 && c.shapeOut() != nil && c.Values[c.op.Out[0]].DType == tensor.Bool
}

// ofAllHeads reports whether what is changed has no axis of heads: of the scores of an attention it is the same for all.
func (c *surroundings) ofAllHeads() bool {
	if len(c.changed) != 1 || int(c.changed[0]) >= len(c.Values) {
		return false
	}
	s := c.Values[c.changed[0]].Shape
	return len(s) == 2 || len(s) == 4 && s[1] == 1
}

// scored reports whether what an operator makes is added to the scores of an attention: it comes to a softmax through a
// sum and through no product.
func (c *surroundings) scored() bool {
	made, added := c.changed, false
	for range toScores {
		var next []program.ID
		for _, o := range c.Ops {
			if !takesOf(o, made) || isOne(o, multiplying) && o.Name != "baddbmm" {
				continue
			}
			if o.Name == "_softmax" {
				return added
			}
			added = added || isOne(o, "add baddbmm")
			next = append(next, o.Out...)
		}
		made = next
	}
	return false
}

// --- rotations

// rotates reports whether an operator adds what is turned by a sine to what is turned by a cosine: x·cos + (−b, a)·sin; or
// puts a·cos − b·sin and b·cos + a·sin together.
func (c *surroundings) rotates(o program.Op) bool {
	ofProducts := func(name string) kind {
		return func(o program.Op) bool {
			return o.Name == name && takesTwo(o) && !takes(o, func(id program.ID) bool { return c.made(id).Name != "mul" })
		}
	}
	if isOne(o, "cat stack") {
		return c.makes(o, 1, ofProducts("sub")) && c.makes(o, 1, ofProducts("add"))
	}
	return o.Name == "add" && takesTwo(o) && c.makes(o, 1, named("mul")) &&
		c.makes(o, 2, func(o program.Op) bool { return o.Name == "cat" && c.makes(o, 1, named("neg")) })
}

// rotation reports whether the changed operator makes what is rotated, or puts it together with what is not.
func (c *surroundings) rotation() bool {
	return c.rotates(c.op) || c.op.Name == "cat" && c.makes(c.op, 1, c.rotates)
}

// rotatesPart reports whether what is changed cuts rows into a part that is rotated and one that is not, which are put
// together after it.
func (c *surroundings) rotatesPart() bool {
	return isOne(c.op, cutting) && c.any(func(o program.Op) bool {
		return o.Name == "cat" && !c.rotates(o) && c.makes(o, 2, c.rotates) && c.makes(o, 2, c.isOp)
	})
}

// isOp reports whether an operator is the changed one.
func (c *surroundings) isOp(o program.Op) bool { return slices.Equal(o.Out, c.op.Out) }

// --- blocks

// ofBlock reports whether a numbered block is left out between what is recorded, and none of it was.
func (c *surroundings) ofBlock() bool {
	block := label.Block(c.op.Layer)
	return block != "" && c.Of != nil && !label.Within(c.target(), block) &&
		!slices.ContainsFunc(c.At, func(i int) bool { return label.Block(c.Ops[i].Layer) != block })
}

// modulates reports whether an operator multiplies rows with numbers that are the same for all of them, or adds these, and
// they are no weight; cutsModulation, whether the changed one cuts these numbers.
func (c *surroundings) modulates(o program.Op) bool {
	if !isOne(o, "mul add") || len(o.Out) != 1 || c.into(len(c.Ops), named("_softmax")) {
		return false
	}
	all := c.Values[o.Out[0]].Shape
	n := len(all)
	return n > 2 && takes(o, func(id program.ID) bool {
		v := c.Values[id]
		return v.Weight == "" && len(v.Shape) == n && v.Shape[n-1] == all[n-1] && v.Shape[n-2] == 1 && all[n-2] > 1
	})
}

func (c *surroundings) cutsModulation() bool {
	return isOne(c.op, cutting) && c.any(func(o program.Op) bool { return c.modulates(o) && c.makes(o, 1, c.isOp) })
}

// ofOtherPass reports whether a value of another forward pass is taken in the place of one of its own.
func (c *surroundings) ofOtherPass() bool {
	if c.Of == nil || len(c.At) == 0 {
		return false
	}
	pass := func(op int) int {
		return slices.IndexFunc(c.Of.Passes, func(p program.Pass) bool { return p.First <= c.Origin[op] && c.Origin[op] < p.End })
	}
	own, taken := pass(c.At[0]), c.op.Operands()
	return slices.ContainsFunc(c.Patch.Ops[c.At[0]], func(o program.Op) bool {
		return takes(o, func(id program.ID) bool {
			return int(id) < len(c.Values) && c.Maker(id) >= 0 && !slices.Contains(taken, id) && pass(c.Maker(id)) != own
		})
	})
}

// ofOneRow reports whether the piece only moves numbers, and takes one row of several.
func (c *surroundings) ofOneRow() bool {
	return !c.any(func(o program.Op) bool { return !isOne(o, moving) }) && c.any(func(o program.Op) bool {
		x := self(o)
		if x == program.None || len(o.Out) != 1 {
			return false
		}
		all, to, d := c.Values[x].Shape, c.Values[o.Out[0]].Shape, intOf(o, "dim")
		return d > 0 && d < len(all)-1 && all[d] > 1 && (len(to) < len(all) || to[d] == 1) && to[len(to)-1] == all[len(all)-1]
	})
}

// ofExpert reports whether the piece is of one of several layers that the code calls in which the edit takes a value.
func (c *surroundings) ofExpert() bool {
	from := label.Name(c.From)
	for up := label.Name(c.target()); up != "" && from != ""; up = label.Parent(up) {
		if name := up[strings.LastIndexByte(up, '.')+1:]; strings.Trim(name, "0123456789") == "" {
			return label.Parent(label.Parent(up)) == from || label.Parent(up) == from
		}
	}
	return false
}

// --- scans

// besideScan reports whether the part of a block that the piece belongs to scans: what it keeps decays by exponentials.
func (c *surroundings) besideScan() bool {
	block := label.Block(c.target())
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.target(), block), "."), ".")
	if block == "" || name == "" {
		return false
	}
	has := func(names string) bool {
		return slices.ContainsFunc(c.Of.Ops, func(o program.Op) bool { return isOne(o, names) && label.Within(o.Layer, block+"."+name) })
	}
	return has("exp") && has("softplus cumsum maximum") && !has("_softmax topk")
}

// gates reports whether the changed operator multiplies with an activation, or takes what did.
func (c *surroundings) gates() bool {
	gate := func(o program.Op) bool { return o.Name == "mul" && c.makes(o, 1, named("silu")) }
	return gate(c.op) || c.makes(c.op, 1, gate)
}

// takesWeighed reports whether the changed operator takes a product with a weight.
func (c *surroundings) takesWeighed() bool {
	return c.makes(c.op, 1, func(o program.Op) bool { return o.Name == "mul" && c.learned(o) > 0 })
}

// --- what is approximate by intent

// standsFor reports whether the edit is of a sum or product with whole numbers that stand for others, code · step + zero.
func (c *surroundings) standsFor() bool { return c.madeBy(named("round")) }

// addsLowRank reports whether the edit is of what adds an adapter of low rank, or scales it: it multiplies what a product
// made that has less than half as many columns as goes into the one and comes out of the other.
func (c *surroundings) addsLowRank() bool {
	columns := func(id program.ID) int { s := c.Values[id].Shape; return s[len(s)-1] }
	return c.madeBy(func(o program.Op) bool {
		if o.Name != "mm" {
			return false
		}
		last := c.made(c.behind(o.Operands()[0], "view _to_copy"))
		return last.Name == "mm" && 2*columns(last.Out[0]) < min(columns(last.Operands()[0]), columns(o.Out[0]))
	})
}

// madeBy reports whether an operand is what an operator of some kind made, maybe times a number, cut off, in
// another shape or type.
func (c *surroundings) madeBy(is kind) bool {
	return (takesTwo(c.op) || c.Kind == "scalar") &&
		takes(c.op, func(id program.ID) bool { return is(c.made(c.behind(id, "mul clamp view _to_copy"))) })
}
