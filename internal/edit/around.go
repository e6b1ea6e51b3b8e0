package edit

import (
	"math"
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

// condition is what may hold around an edit.
type condition func(c is) bool

type is = *surroundings

func both(all ...condition) condition {
	return func(c is) bool { return !slices.ContainsFunc(all, func(of condition) bool { return !of(c) }) }
}

func either(any ...condition) condition {
	return func(c is) bool { return slices.ContainsFunc(any, func(of condition) bool { return of(c) }) }
}

func not(of condition) condition { return func(c is) bool { return !of(c) } }

// kind is a kind of operators. What takes one takes names as well.
type kind func(c is, o program.Op) bool

type kindOrNames interface {
	string | kind | func(c is, o program.Op) bool
}

func kindOf[K kindOrNames](of K) kind {
	switch of := any(of).(type) {
	case string:
		return func(_ is, o program.Op) bool { return isOne(o, of) }
	case func(c is, o program.Op) bool:
		return of
	default:
		return of.(kind)
	}
}

// and are operators of some names that are of several kinds, too; or, of one of several.
func and(names string, all ...kind) kind {
	return func(c is, o program.Op) bool {
		return isOne(o, names) && !slices.ContainsFunc(all, func(of kind) bool { return !of(c, o) })
	}
}

func or(any ...kind) kind {
	return func(c is, o program.Op) bool { return slices.ContainsFunc(any, func(of kind) bool { return of(c, o) }) }
}

// takes are operators that take a value of some kind, and takesMade those that take what one of a kind made, within some
// operators.
func takes(of func(c is, id program.ID) bool) kind {
	return func(c is, o program.Op) bool {
		return slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return of(c, id) })
	}
}

func takesMade[K kindOrNames](within int, of K) kind {
	k := kindOf(of)
	return takes(func(c is, id program.ID) bool {
		o := c.made(id)
		return o.Name != "" && (k(c, o) || within > 1 && takesMade(within-1, k)(c, o))
	})
}

// op holds where the operator that is changed first is of a kind, and from, where it takes what such an operator made.
func op[K kindOrNames](of K) condition {
	k := kindOf(of)
	return func(c is) bool { return k(c, c.op) }
}

func from[K kindOrNames](within int, of K) condition { return op(takesMade(within, of)) }

// has holds where the piece has an operator of a kind, and does where the edit changes one.
func has[K kindOrNames](of K) condition {
	k := kindOf(of)
	return func(c is) bool {
		return slices.ContainsFunc(c.Ops, func(o program.Op) bool { return k(c, o) })
	}
}

func does[K kindOrNames](of K) condition {
	k := kindOf(of)
	return func(c is) bool {
		return k(c, c.op) || slices.ContainsFunc(c.At, func(i int) bool { return k(c, c.Ops[i]) })
	}
}

// into holds where what is changed goes into an operator of a kind, within some operators, and reaches, however far away.
func into[K kindOrNames](within int, of K) condition {
	k := kindOf(of)
	return func(c is) bool {
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
			if k(c, o) {
				return true
			}
			for _, id := range o.Out {
				far[id] = at + 1
			}
		}
		return false
	}
}

func reaches(names string) condition { return into(math.MaxInt32, names) }

// outs holds where the changed operator makes so many results, and learned where it takes a weight of so many axes.
func outs(from, to int) condition {
	return func(c is) bool { return from <= len(c.op.Out) && len(c.op.Out) <= to }
}

func learned(from, to int) condition { return op(ofLearned(from, to)) }

// ofLearned are operators that take a weight of so many axes as it stands, or by a view of it.
func ofLearned(from, to int) kind {
	return func(c is, o program.Op) bool {
		for _, id := range o.Operands() {
			if v := c.Values[c.origin(id, "view expand slice squeeze unsqueeze transpose _to_copy select index")]; v.Weight != "" {
				n := max(axesOf(v), 1)
				return from <= n && n <= to
			}
		}
		return false
	}
}

// axesOf counts the axes of several elements.
func axesOf(v program.Value) (axes int) {
	for _, n := range v.Shape {
		axes += min(n-1, 1)
	}
	return axes
}

// resultShape is that of what the changed operator makes; nil for none.
func (c *surroundings) resultShape() []int {
	v, _ := c.resultOf(c.op)
	return v.Shape
}

// target is the layer whose record the piece makes; "" where that is not known.
func (c *surroundings) target() string {
	if c.Of == nil {
		return ""
	}
	return c.Of.Ports[c.Target].Layer
}

// What the conditions below and the table ask for again and again.
var (
	takesTwo     kind = func(_ is, o program.Op) bool { return len(o.Operands()) > 1 }
	takesChanged kind = func(c is, o program.Op) bool { return takesOf(o, c.op.Out) }
	isChanged    kind = func(c is, o program.Op) bool { return slices.Equal(o.Out, c.op.Out) }
	takesVector       = takes(func(c is, id program.ID) bool { v := c.Values[id]; return v.Weight != "" && len(v.Shape) == 1 })
	sum               = and("add", takesTwo)
	compares          = and(comparing, takesTwo) // positions
	normed            = and("mul", takesMade(toRoot, "rsqrt"))
	gate              = and("mul", takesMade(1, "silu"))
	ofTwo             = op(takesTwo)
	summed            = into(1, sum)                                       // as it stands
	projected         = into(toCompare, and(multiplying, ofLearned(2, 9))) // by a weight
	compared          = either(op(compares), from(toScores, compares))
	gates             = either(op(gate), from(1, gate))
	takesWeighed      = from(1, and("mul", ofLearned(1, 9)))
)

func takesOf(o program.Op, ids []program.ID) bool {
	return slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return slices.Contains(ids, id) })
}

// --- norms and activations

// gatesItself holds where a factor stands in x·sigmoid(a·x).
var gatesItself = has(and("mul", takesMade(1, and("sigmoid", takesChanged)),
	func(c is, o program.Op) bool { return takesOf(o, c.op.Operands()) }))

// gains holds where the operator makes, of a weight of one axis, the factor of what was normed; or takes that factor.
var gains = either(
	op(and("add mul", normed, takesMade(1, and("add", takesVector)))), // without a weight it is the norm itself
	both(op(and("add mul", takesVector)), not(op(normed)), has(and("mul", normed, takesChanged))))

// caps holds where the edit changes one operator of c·tanh(x/c), with a number c.
func (c *surroundings) caps() bool {
	scales := func(i int) bool { return i >= 0 && isOne(c.Ops[i], "mul div") && len(c.Operands(i)) < 2 }
	for i, o := range c.Ops {
		if o.Name != "tanh" {
			continue
		}
		before, after := c.Maker(o.Operands()[0]), slices.DeleteFunc(c.takers(o.Out...), func(t int) bool { return !scales(t) })
		if scales(before) && len(after) > 0 &&
			slices.ContainsFunc([]int{before, i, after[0]}, func(at int) bool { return slices.Contains(c.At, at) }) {
			return true
		}
	}
	return false
}

// --- weights

// scales holds where the weight that is changed is that of a norm, maybe as another type.
var scales = has(and("*", or(kindOf(norming), takesMade(toNorm, "rsqrt")),
	takes(func(c is, id program.ID) bool { return c.Values[c.origin(id, "_to_copy add view")].Weight == c.Weight })))

// ofSibling reports whether the weight that is read is one beside its own, in the same layer.
func (c *surroundings) ofSibling() bool {
	own, to, ok := strings.Cut(c.Text, " → ")
	return ok && role(own) != role(to) && slices.Equal(numbersIn(own), numbersIn(to))
}

// widens reports whether the piece makes more of each row than it takes, as gates do and queries do not.
func (c *surroundings) widens() bool {
	out := c.shape(c.Out)
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

// added holds where what is changed is added to something as it stands, or in a product.
var added = has(func(c is, o program.Op) bool {
	return slices.ContainsFunc(tensors(o), func(x operand) bool {
		return slices.Contains(c.changed, x.id) && (o.Name == "add" || isBias(o, x.name) && !isOne(o, norming))
	})
})

// recordedFrom holds where the operator takes what another one made, which the piece takes as it was recorded.
func recordedFrom(name string) condition {
	return op(takes(func(c is, id program.ID) bool {
		r := c.Values[id].Record
		if r == 0 || c.Of == nil {
			return false
		}
		m := c.Of.Maker(c.Of.Ports[r-1].Value)
		return m >= 0 && c.Of.Ops[m].Name == name
	}))
}

// --- attention

// bools reports whether the operator makes a mask.
func (c *surroundings) bools() bool {
	v, single := c.resultOf(c.op)
	return single && v.DType == tensor.Bool
}

// ofAllHeads reports whether what is changed has no axis of heads: of the scores of an attention it is the same for all.
func (c *surroundings) ofAllHeads() bool {
	if len(c.changed) != 1 || int(c.changed[0]) >= len(c.Values) {
		return false
	}
	s := c.shape(c.changed[0])
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

// rotates are operators that add what is turned by a sine to what is turned by a cosine: x·cos + (−b, a)·sin; or put
// a·cos − b·sin and b·cos + a·sin together.
var rotates = or(and("cat stack", takesMade(1, ofProducts("sub")), takesMade(1, ofProducts("add"))),
	and("add", takesTwo, takesMade(1, "mul"), takesMade(2, and("cat", takesMade(1, "neg")))))

func ofProducts(name string) kind {
	return and(name, takesTwo, func(c is, o program.Op) bool {
		return !slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return c.made(id).Name != "mul" })
	})
}

// makesRotated holds where the changed operator makes what is rotated, or puts it together with what is not; rotatesPart,
// where it cuts rows into a part that is rotated and one that is not, which are put together after it.
var (
	makesRotated = op(or(rotates, and("cat", takesMade(1, rotates))))
	rotatesPart  = both(op(cutting), has(and("cat", takesMade(2, rotates), takesMade(2, isChanged),
		func(c is, o program.Op) bool { return !rotates(c, o) })), either(outs(1, 1), has(and("cat stack add", rotates, takesMade(6, isChanged)))))
)

// --- blocks

// ofBlock reports whether a numbered block is left out between what is recorded, and none of it was.
func (c *surroundings) ofBlock() bool {
	block := label.Block(c.op.Layer)
	return block != "" && c.Of != nil && !label.Within(c.target(), block) &&
		!slices.ContainsFunc(c.At, func(i int) bool { return label.Block(c.Ops[i].Layer) != block })
}

// isBlock reports whether all of a numbered block is left out, whose result is recorded.
func (c *surroundings) isBlock() bool {
	return len(c.At) == len(c.Ops) && c.target() != "" && label.Name(c.target()) == label.Name(label.Block(c.target()))
}

// modulates are operators that multiply rows with numbers that are the same for all of them, or add these, and they are no
// weight; cutsModulation holds where the changed one cuts these numbers.
func modulates(c is, o program.Op) bool {
	if !isOne(o, "mul add") || len(o.Out) != 1 || reaches("_softmax")(c) {
		return false
	}
	all := c.shape(o.Out[0])
	n := len(all)
	return n > 2 && slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
		v := c.Values[id]
		return v.Weight == "" && len(v.Shape) == n && v.Shape[n-1] == all[n-1] && v.Shape[n-2] == 1 && all[n-2] > 1
	})
}

var cutsModulation = both(op(cutting), has(and("mul add", modulates, takes(func(c is, id program.ID) bool {
	s := c.shape(id)
	return len(s) > 1 && s[len(s)-2] == 1 && isChanged(c, c.made(id))
}))))

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
		return slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
			return int(id) < len(c.Values) && c.Maker(id) >= 0 && !slices.Contains(taken, id) && pass(c.Maker(id)) != own
		})
	})
}

// ofOneRow holds where the piece only moves numbers, and takes one row of several.
var ofOneRow = both(not(has(func(_ is, o program.Op) bool { return !isOne(o, moving) })), has(func(c is, o program.Op) bool {
	x := self(o)
	if x == program.None || len(o.Out) != 1 {
		return false
	}
	all, to, d := c.shape(x), c.shape(o.Out[0]), intOf(o, "dim")
	return d > 0 && d < len(all)-1 && all[d] > 1 && (len(to) < len(all) || to[d] == 1) && to[len(to)-1] == all[len(all)-1]
}))

// ofExpert reports whether the piece is of one of several layers that the code calls in which the edit takes a value.
func (c *surroundings) ofExpert() bool {
	from := label.Name(c.From)
	for up := label.Name(c.target()); up != "" && from != ""; up = label.Parent(up) {
		if strings.Trim(label.Last(up), "0123456789") == "" {
			return label.Parent(label.Parent(up)) == from || label.Parent(up) == from
		}
	}
	return false
}

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

// --- what is approximate by intent

// madeBy holds where an operand is what an operator of some kind made, maybe times a number, cut off, in another shape or
// type: standsFor, of whole numbers that stand for others, code · step + zero.
func madeBy[K kindOrNames](of K) condition {
	made := kindOf(of)
	return both(either(ofTwo, func(c is) bool { return c.Kind == "scalar" }),
		op(takes(func(c is, id program.ID) bool { return made(c, c.made(c.origin(id, "mul clamp view _to_copy"))) })))
}

var standsFor = madeBy("round")

// addsLowRank holds where the edit is of what adds an adapter of low rank, or scales it: it multiplies what a product
// made that has less than half as many columns as goes into the one and comes out of the other.
var addsLowRank = madeBy(and("mm", func(c is, o program.Op) bool {
	columns := func(id program.ID) int { s := c.shape(id); return s[len(s)-1] }
	last := c.made(c.origin(o.Operands()[0], "view _to_copy"))
	return last.Name == "mm" && 2*columns(last.Out[0]) < min(columns(last.Operands()[0]), columns(o.Out[0]))
}))
