package weights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
)

// fused are the roles of weights that some engines store as one.
var fused = map[string][]string{
	"attn.qkv":       {"attn.q", "attn.k", "attn.v"},
	"ffn.gateup":     {"ffn.gate", "ffn.up"},
	"shared.gateup":  {"shared.gate", "shared.up"},
	"experts.gateup": {"experts.gate", "experts.up"},
}

// cutting is a way in which a weight holds the rows of several others.
type cutting struct {
	how        string // "per head", where there are groups
	transposed bool   // the last two axes
	groups     int    // each holds some rows of every part; 1 for one part after the other
}

// names are the steps, where by is "fused" or "split": "fused per head", "transposed".
func (c cutting) names(by string) []string {
	if c.groups > 1 {
		by += " " + c.how
	}
	if c.transposed {
		return []string{by, "transposed"}
	}
	return []string{by}
}

// cuttings lists the ways in which a weight may hold parts with so many rows, the plainest first.
func (c *comparison) cuttings(x whole) (out []cutting) {
	how, groups := "in turn", []int{rowsOf(x.parts[0])} // gate and up
	if x.w.role == "attn.qkv" {
		var rows []int
		for _, p := range x.parts {
			rows = append(rows, rowsOf(p))
		}
		how, groups = "per head", headGroups(rows, c.configs...)
	}
	for _, transposed := range []bool{false, true} {
		for _, g := range append([]int{1}, groups...) {
			out = append(out, cutting{how, transposed, g})
		}
	}
	return out
}

// headGroups are the numbers of groups in which q, k and v of heads may lie together: each group
// has a head of k and of v.
func headGroups(rows []int, configs ...checkpoint.Config) (out []int) {
	byConfig := slices.Concat(headCounts("attn.k", rows[1], configs...), headCounts("attn.q", rows[1], configs...))
	for _, g := range append(byConfig, headCounts("", rows[1])...) {
		if g > 1 && rows[0]%g == 0 && rows[2]%g == 0 && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// whole is a weight of one side that holds several of the other.
type whole struct {
	w     *weight
	parts []*weight
}

type wholes []whole

// with adds one, if it and all its parts are there.
func (x wholes) with(w *weight, parts []*weight) wholes {
	if w == nil || len(parts) == 0 || slices.Contains(parts, nil) {
		return x
	}
	return append(x, whole{w, parts})
}

// direction is one side that has in one what the other has in parts.
type direction struct {
	whole, parts shelf
	by           string
}

// directions are both, with what the step is called where the candidate has the whole, and where the reference has.
func (c *comparison) directions(cand, ref string) []direction {
	return []direction{{c.cand, c.ref, cand}, {c.ref, c.cand, ref}}
}

// cut pairs weights that one side has in one.
func (c *comparison) cut() {
	for _, from := range c.directions("fused", "split") {
		for _, family := range grouped(from.whole.left(), (*weight).family) {
			var members wholes
			for _, w := range family {
				var parts []*weight
				for _, role := range fused[w.role] {
					p := *w
					p.role = role
					one := from.parts.at[p.key()]
					if one != nil && one.taken {
						one = nil
					}
					parts = append(parts, one)
				}
				members = members.with(w, parts)
			}
			c.apart(members, from.by)
		}
	}
}

// apart pairs the parts of a family of weights that hold several of the other side. by says "fused"
// of those that the candidate has in one, "split" of the reference's.
func (c *comparison) apart(members wholes, by string, also ...string) {
	if len(members) == 0 {
		return
	}
	way, ok := c.way(members)
	if !ok {
		return
	}
	for _, x := range members {
		for i, p := range x.parts {
			v := x.part(way, i)
			if v == nil {
				continue
			}
			if names := slices.Concat(also, way.names(by)); by == "fused" {
				c.pair(p, v, names...)
			} else {
				c.pair(v, p, names...)
			}
		}
		x.w.taken = true
	}
}

// part is the i-th part of a weight; nil if it does not fit.
func (x whole) part(c cutting, i int) *weight {
	v, axis := *x.w, 0
	if isStack(x.w) {
		axis = 1
	}
	var err error
	if c.transposed {
		if v.t, err = v.t.Transpose(); err != nil || len(v.t.Shape()) != axis+2 {
			return nil
		}
	}
	from, to, all := 0, 0, 0 // in rows of each group
	for k, p := range x.parts {
		r := rowsOf(p)
		if r%c.groups != 0 {
			return nil
		}
		if k == i {
			from, to = all, all+r/c.groups
		}
		all += r / c.groups
	}
	shape := v.t.Shape()
	if len(shape) <= axis || shape[axis] != all*c.groups {
		return nil
	}
	v.role, v.name = x.parts[i].role, fmt.Sprintf("%s[%d:%d]", x.w.name, from, to)
	if c.groups > 1 {
		v.name = fmt.Sprintf("%s[%d:%d of every %d]", x.w.name, from, to, all)
		if v.t, err = v.t.Reshape(slices.Concat(shape[:axis], []int{c.groups, all}, shape[axis+1:])...); err != nil {
			return nil
		}
		axis++
	}
	if v.t, err = v.t.Slice(axis, from, to); err != nil {
		return nil
	}
	return &v
}

// way chooses how the members of a family hold their parts: as most samples say, else in the
// plainest way that fits.
func (c *comparison) way(members wholes) (best cutting, ok bool) {
	most := -1
cuttings:
	for _, way := range c.cuttings(members[0]) {
		fit := 0
		for _, x := range members[:min(len(members), mostLooked)] {
			for i, p := range x.parts {
				v := x.part(way, i)
				if v == nil {
					continue cuttings
				}
				if c.alike(p, v) {
					fit++
				}
			}
		}
		if fit > most {
			best, most = way, fit
		}
	}
	return best, most >= 0
}

// isStack reports whether the first axis of a weight counts experts.
func isStack(w *weight) bool {
	axes, isBias := len(w.t.Shape()), w.param == "bias"
	return strings.HasPrefix(w.role, "experts.") && w.index == "" && (axes == 3 && !isBias || axes == 2 && isBias)
}

// rowsOf is the number of outputs of a weight.
func rowsOf(w *weight) int {
	if isStack(w) {
		return w.t.Shape()[1]
	}
	return firstAxis(w.t)
}

// unstack takes apart the experts that one side has in a tensor of three axes and the other one by
// one.
func (c *comparison) unstack() {
	for _, from := range c.directions("stacked", "unstacked") {
		single := map[string]bool{} // layers whose experts the other side has by themselves
		for _, one := range from.parts.left() {
			single[one.layer] = single[one.layer] || one.index != ""
		}
		for _, w := range from.whole.left() {
			if !isStack(w) || !single[w.layer] {
				continue
			}
			for e := range firstAxis(w.t) {
				t, err := w.t.Slice(0, e, e+1)
				if err == nil {
					t, err = t.Reshape(w.t.Shape()[1:]...)
				}
				if err != nil {
					continue
				}
				one := *w
				one.t, one.index, one.by = t, fmt.Sprint(e), []string{from.by}
				one.name = fmt.Sprintf("%s[%d]", w.name, e)
				one.at = one.key()
				from.whole.at[one.at] = &one
			}
			w.taken = true
		}
	}
}

// qkvRows are the rows that q, k and v may have in a weight that holds them: as many heads as a
// config says, or as many each.
func qkvRows(all int, configs ...checkpoint.Config) (out [][]int) {
	for _, c := range append(slices.Clip(configs), checkpoint.Config{"num_heads": 1}) {
		q, kv := c.Heads(), c.KVHeads()
		if q > 0 && all%(q+2*kv) == 0 {
			d := all / (q + 2*kv)
			out = append(out, []int{q * d, kv * d, kv * d})
		}
	}
	return slices.CompactFunc(out, slices.Equal)
}

// regroup returns the steps between all of q, then k, then v, and the rows of each group of heads
// together, as GPT-NeoX, BLOOM and Falcon have them.
func regroup(parts []int, groups int) (into, back layout) {
	var order []int
	for g := range groups {
		before := 0
		for _, rows := range parts {
			for r := range rows / groups {
				order = append(order, before+g*rows/groups+r)
			}
			before += rows
		}
	}
	inverse := make([]int, len(order))
	for i, r := range order {
		inverse[r] = i
	}
	by := func(order []int) layout {
		return func(t *tensor.Tensor) (*tensor.Tensor, error) {
			return checkpoint.Rows(t, func(row int) int { return order[row] }), nil
		}
	}
	return by(order), by(inverse)
}
