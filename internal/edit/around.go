package edit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// surroundings are what stands around an edit.
type surroundings struct {
	*program.Piece
	Edit
	op   program.Op   // none where what comes from outside is changed
	made []program.ID // what is changed
}

// any reports whether the piece has an operator of some kind, does whether the edit changes one.
func (c *surroundings) any(of func(o program.Op) bool) bool { return slices.ContainsFunc(c.Ops, of) }

func (c *surroundings) does(of func(o program.Op) bool) bool {
	return of(c.op) || slices.ContainsFunc(c.At, func(i int) bool { return of(c.Ops[i]) })
}

func named(names string) func(o program.Op) bool {
	return func(o program.Op) bool { return isOne(o, names) }
}

// shape is that of what the changed operator makes; nil for none.
func (c *surroundings) shape() []int {
	if len(c.op.Out) == 0 || c.op.Out[0] == program.None {
		return nil
	}
	return c.Values[c.op.Out[0]].Shape
}

// takes reports whether an operator takes a value of some kind.
func takes(o program.Op, of func(id program.ID) bool) bool {
	return slices.ContainsFunc(o.Operands(), of)
}

// into reports whether what is changed goes into an operator of some kind, within some operators.
func (c *surroundings) into(within int, of func(o program.Op) bool) bool {
	far := map[program.ID]int{}
	for _, id := range c.made {
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

// reaches is into, however far away.
func (c *surroundings) reaches(names string) bool { return c.into(len(c.Ops), named(names)) }

// makes reports whether an operator takes what another one made that is of some kind, within some operators.
func (c *surroundings) makes(o program.Op, within int, of func(o program.Op) bool) bool {
	return within > 0 && takes(o, func(id program.ID) bool {
		i := c.Maker(id)
		return i >= 0 && (of(c.Ops[i]) || c.makes(c.Ops[i], within-1, of))
	})
}

func (c *surroundings) makesNamed(o program.Op, within int, names string) bool {
	return c.makes(o, within, named(names))
}

// takesTwo reports whether the changed operator takes two values.
func (c *surroundings) takesTwo() bool { return takesTwo(c.op) }

func takesTwo(o program.Op) bool { return len(o.Operands()) > 1 }

func (c *surroundings) takesWeight() bool {
	return takes(c.op, func(id program.ID) bool { return c.Values[id].Weight != "" })
}

// viewed is what a value is a view of.
func (c *surroundings) viewed(id program.ID, by string) program.ID {
	for c.Maker(id) >= 0 && isOne(c.Ops[c.Maker(id)], by) {
		id = c.Ops[c.Maker(id)].Operands()[0]
	}
	return id
}

// learned returns how many axes a weight has that an operator takes as it stands, or by a view of it; 0 for none.
func (c *surroundings) learned(o program.Op) int {
	for _, id := range o.Operands() {
		if v := c.Values[c.viewed(id, "view expand slice unsqueeze transpose _to_copy select index")]; v.Weight != "" {
			return max(axesOf(v), 1)
		}
	}
	return 0
}

// axesOf counts the axes of several elements.
func axesOf(v program.Value) (axes int) {
	for _, n := range v.Shape {
		if n > 1 {
			axes++
		}
	}
	return axes
}

// --- norms and activations

// gatesItself reports whether a factor stands in x·sigmoid(a·x).
func (c *surroundings) gatesItself() bool {
	takesOne := func(o program.Op, ids []program.ID) bool {
		return takes(o, func(id program.ID) bool { return slices.Contains(ids, id) })
	}
	return c.any(func(o program.Op) bool {
		return o.Name == "mul" && takesOne(o, c.op.Operands()) &&
			c.makes(o, 1, func(of program.Op) bool { return of.Name == "sigmoid" && takesOne(of, c.op.Out) })
	})
}

// gains reports whether an operator makes, of a weight of one axis, the factor of what was normed; or takes that
// factor.
func (c *surroundings) gains() bool {
	ofWeight := func(o program.Op) bool {
		return takes(o, func(id program.ID) bool { v := c.Values[id]; return v.Weight != "" && len(v.Shape) == 1 })
	}
	rooted := func(o program.Op) bool { return o.Name == "mul" && c.makesNamed(o, toRoot, "rsqrt") }
	switch {
	case !isOne(c.op, "add mul"):
		return false
	case rooted(c.op): // without a weight it is the norm itself
		return c.makes(c.op, 1, func(o program.Op) bool { return o.Name == "add" && ofWeight(o) })
	}
	return ofWeight(c.op) && c.any(func(o program.Op) bool {
		return rooted(o) && takes(o, func(id program.ID) bool { return slices.Contains(c.op.Out, id) })
	})
}

// norms reports whether a layer of the program is a norm.
func (c *surroundings) norms(layer string) bool {
	return slices.ContainsFunc(c.Of.Ops, func(o program.Op) bool { return o.Layer == layer && isOne(o, "rsqrt "+norming) })
}

// caps reports whether the edited operator is one of c·tanh(x/c), with a number c.
func (c *surroundings) caps() bool {
	scales := func(o program.Op) bool { return isOne(o, "mul div") && !takesTwo(o) }
	for i, o := range c.Ops {
		if o.Name != "tanh" {
			continue
		}
		before := c.Maker(o.Operands()[0])
		behind := slices.IndexFunc(c.Ops, func(x program.Op) bool { return scales(x) && slices.Equal(x.Operands(), o.Out) })
		if before >= 0 && scales(c.Ops[before]) && behind >= 0 && (slices.Contains(c.At, before) || slices.Contains(c.At, i) || slices.Contains(c.At, behind)) {
			return true
		}
	}
	return false
}

// --- weights

// scales reports whether the weight that is changed is that of a norm, maybe as another type.
func (c *surroundings) scales() bool {
	return c.any(func(o program.Op) bool {
		return takes(o, func(id program.ID) bool { return c.Values[c.viewed(id, "_to_copy add view")].Weight == c.Weight }) &&
			(isNorm(o.Name) || c.makesNamed(o, toNorm, "rsqrt"))
	})
}

// ofSibling reports whether the weight that is read is one beside its own, in the same layer.
func (c *surroundings) ofSibling() bool {
	own, to, ok := strings.Cut(c.Text, " → ")
	return ok && role(own) != role(to) && slices.Equal(numbersIn(own), numbersIn(to))
}

func (c *surroundings) unnumbered() bool { return len(numbersIn(c.Text)) == 0 }

// numbersIn lists the numbers in a name.
func numbersIn(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsDigit(r) })
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
		return slices.ContainsFunc(o.Args, func(a program.Arg) bool {
			id, ok := a.Value.(program.ID)
			added := o.Name == "add" || a.Name == "bias" && !isNorm(o.Name) || o.Name == "addmm" && a.Name == "self"
			return ok && added && slices.Contains(c.made, id)
		})
	})
}

// takesFrom reports whether the operator takes what another one made, which the piece takes as it was recorded.
func (c *surroundings) takesFrom(name string) bool {
	return takes(c.op, func(id program.ID) bool {
		r := c.Values[id].Record
		if r == 0 || c.Of == nil {
			return false
		}
		m := c.Of.Maker(c.Of.Ports[r-1].Value)
		return m >= 0 && c.Of.Ops[m].Name == name
	})
}

func (c *surroundings) takesConvolved() bool { return c.takesFrom("convolution") }

func (c *surroundings) takesEmbedded() bool {
	return c.makesNamed(c.op, 2, "embedding") || c.takesFrom("embedding")
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

func (c *surroundings) makesOne() bool { return len(c.op.Out) == 1 }
func (c *surroundings) ofHeads() bool  { return len(c.shape()) >= 4 }

// repeats reports whether the changed operator repeats, or takes what was repeated.
func (c *surroundings) repeats() bool {
	return isOne(c.op, repeating) || c.makesNamed(c.op, toCompare, repeating)
}

// cut reports whether what is changed is cut into parts.
func (c *surroundings) cut() bool {
	return c.into(2, named("select unbind chunk "+cutting))
}

// bools reports whether the operator makes a mask.
func (c *surroundings) bools() bool {
	return len(c.op.Out) == 1 && c.op.Out[0] != program.None && c.Values[c.op.Out[0]].DType == tensor.Bool
}

// ofAllHeads reports whether what is changed has no axis of heads: of the scores of an attention it is the same for all.
func (c *surroundings) ofAllHeads() bool {
	if len(c.made) != 1 || int(c.made[0]) >= len(c.Values) {
		return false
	}
	s := c.Values[c.made[0]].Shape
	return len(s) == 2 || len(s) == 4 && s[1] == 1
}

// scored reports whether what an operator makes is added to the scores of an attention: it comes to a softmax through a
// sum and through no product.
func (c *surroundings) scored() bool {
	made, added := slices.Clone(c.made), false
	for range toScores {
		var next []program.ID
		for _, o := range c.Ops {
			of := takes(o, func(id program.ID) bool { return slices.Contains(made, id) })
			if !of || isOne(o, multiplying) && o.Name != "baddbmm" {
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

// rotates reports whether the changed operator adds what is turned by a sine to what is turned by a cosine.
func (c *surroundings) rotates() bool { return c.rotating(c.op) }

// rotating reports whether one is x·cos + (−b, a)·sin, or puts a·cos − b·sin and b·cos + a·sin together.
func (c *surroundings) rotating(o program.Op) bool {
	ofProducts := func(name string) func(o program.Op) bool {
		return func(o program.Op) bool {
			return o.Name == name && takesTwo(o) && !takes(o, func(id program.ID) bool {
				return c.Maker(id) < 0 || c.Ops[c.Maker(id)].Name != "mul"
			})
		}
	}
	if isOne(o, "cat stack") {
		return c.makes(o, 1, ofProducts("sub")) && c.makes(o, 1, ofProducts("add"))
	}
	return o.Name == "add" && takesTwo(o) && c.makesNamed(o, 1, "mul") && c.makes(o, 2, func(o program.Op) bool {
		return o.Name == "cat" && c.makesNamed(o, 1, "neg")
	})
}

func (c *surroundings) hasRotation() bool { return c.any(c.rotating) }
func (c *surroundings) doesRotate() bool  { return c.does(c.rotating) }

// rotation reports whether the changed operator makes what is rotated, or puts it together with what is not.
func (c *surroundings) rotation() bool {
	return c.rotates() || c.op.Name == "cat" && c.makes(c.op, 1, c.rotating)
}

// rotatesPart reports whether what is changed cuts rows into a part that is rotated and one that is not, which are put
// together after it.
func (c *surroundings) rotatesPart() bool {
	return isOne(c.op, cutting) && c.any(func(o program.Op) bool {
		return o.Name == "cat" && !c.rotating(o) && c.makes(o, 2, c.rotating) && c.makes(o, 2, c.isOp)
	})
}

// isOp reports whether an operator is the changed one.
func (c *surroundings) isOp(o program.Op) bool { return slices.Equal(o.Out, c.op.Out) }

// --- blocks

// doesSum reports whether the edit changes a sum of two.
func (c *surroundings) doesSum() bool {
	return c.does(func(o program.Op) bool { return o.Name == "add" && takesTwo(o) })
}

// ofBlock reports whether a numbered block is left out between what is recorded, and none of it was.
func (c *surroundings) ofBlock() bool {
	block := label.Block(c.op.Layer)
	return block != "" && c.Of != nil && !label.Within(c.Of.Ports[c.Target].Layer, block) &&
		!slices.ContainsFunc(c.At, func(i int) bool { return label.Block(c.Ops[i].Layer) != block })
}

// modulates reports whether the changed operator multiplies rows with numbers that are the same for all of them, or adds
// these, and they are no weight; cutsModulation, whether it cuts these numbers.
func (c *surroundings) modulates() bool { return c.modulating(c.op) }

func (c *surroundings) cutsModulation() bool {
	return isOne(c.op, cutting) && c.any(func(o program.Op) bool { return c.modulating(o) && c.makes(o, 1, c.isOp) })
}

func (c *surroundings) modulating(o program.Op) bool {
	if !isOne(o, "mul add") || len(o.Out) != 1 || c.reaches("_softmax") {
		return false
	}
	all := c.Values[o.Out[0]].Shape
	n := len(all)
	return n > 2 && takes(o, func(id program.ID) bool {
		v := c.Values[id]
		return v.Weight == "" && len(v.Shape) == n && v.Shape[n-1] == all[n-1] && v.Shape[n-2] == 1 && all[n-2] > 1
	})
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
	return c.any(c.oneRow) && !c.any(func(o program.Op) bool { return !isOne(o, moving) })
}

func (c *surroundings) oneRow(o program.Op) bool {
	x, ok := o.Args.Get("self").(program.ID)
	if !ok || len(o.Out) != 1 || len(c.Values[x].Shape) < 2 {
		return false
	}
	all, to := c.Values[x].Shape, c.Values[o.Out[0]].Shape
	d, _ := o.Args.Get("dim").(int)
	return d > 0 && d < len(all)-1 && all[d] > 1 && (len(to) < len(all) || to[d] == 1) && to[len(to)-1] == all[len(all)-1]
}

// ofExpert reports whether the piece is of one of several layers that the code calls in which the edit takes a value.
func (c *surroundings) ofExpert() bool {
	if c.Of == nil || c.From == "" {
		return false
	}
	layer := c.Of.Ports[c.Target].Layer
	for up := label.Name(layer); up != ""; up = label.Parent(up) {
		name := up[strings.LastIndexByte(up, '.')+1:]
		if strings.Trim(name, "0123456789") == "" {
			return label.Parent(label.Parent(up)) == label.Name(c.From) || label.Parent(up) == label.Name(c.From)
		}
	}
	return false
}

// --- scans

// besideScan reports whether the part of a block that the piece belongs to scans: what it keeps decays by exponentials.
func (c *surroundings) besideScan() bool {
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

// gates reports whether the changed operator multiplies with an activation, or takes what did.
func (c *surroundings) gates() bool {
	gate := func(o program.Op) bool { return o.Name == "mul" && c.makesNamed(o, 1, "silu") }
	return gate(c.op) || c.makes(c.op, 1, gate)
}

func (c *surroundings) cutsInTwo() bool   { return isOne(c.op, cutting) && len(c.op.Out) == 2 }
func (c *surroundings) cutsInThree() bool { return isOne(c.op, cutting) && len(c.op.Out) > 2 }

// takesWeighed reports whether the changed operator takes a product with a weight.
func (c *surroundings) takesWeighed() bool {
	return c.makes(c.op, 1, func(o program.Op) bool { return o.Name == "mul" && c.learned(o) > 0 })
}
