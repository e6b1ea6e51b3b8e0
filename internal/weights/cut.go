package weights

import (
	"fmt"
	"maps"
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
	how        string // "per head"; "" for one part after the other
	transposed bool   // the last two axes
	groups     int    // each holds some rows of every part; 1 for one part after the other
}

// names are the steps, where by is "fused" or "split": "fused per head", "transposed".
func (c cutting) names(by string) []string {
	if c.how != "" {
		by += " " + c.how
	}
	if c.transposed {
		return []string{by, "transposed"}
	}
	return []string{by}
}

// cuttings lists the ways in which a weight may hold parts with so many rows, the plainest first.
func (n *joiner) cuttings(w *weight, rows []int) (out []cutting) {
	how, groups := "in turn", []int{rows[0]} // gate and up
	if w.role == "attn.qkv" {
		how, groups = "per head", headGroups(rows, n.j.configs()...)
	}
	for _, transposed := range []bool{false, true} {
		out = append(out, cutting{transposed: transposed, groups: 1})
		for _, g := range groups {
			if g > 1 {
				out = append(out, cutting{how, transposed, g})
			}
		}
	}
	return out
}

// headGroups are the numbers of groups in which q, k and v of heads may lie together: each group
// has a head of k and of v.
func headGroups(rows []int, configs ...checkpoint.Config) (out []int) {
	for _, configs := range [][]checkpoint.Config{configs, nil} {
		for _, role := range []string{"attn.k", "attn.q"} {
			for _, g := range headCounts(role, rows[1], configs...) {
				if g > 1 && rows[0]%g == 0 && rows[2]%g == 0 && !slices.Contains(out, g) {
					out = append(out, g)
				}
			}
		}
	}
	return out
}

// whole is a weight of one side that holds several of the other.
type whole struct {
	w     *weight
	parts []*weight
	rows  []int
}

// direction is one side that has in one what the other has in parts.
type direction struct {
	whole, parts map[string]*weight
	by           string
}

// directions are both, with what the step is called where the candidate has the whole, and where the reference has.
func (n *joiner) directions(cand, ref string) []direction {
	return []direction{{n.cand, n.ref, cand}, {n.ref, n.cand, ref}}
}

// cut pairs weights that one side has in one.
func (n *joiner) cut() {
	for _, from := range n.directions("fused", "split") {
		families := map[string][]whole{}
		for _, w := range sorted(from.whole) {
			x := whole{w: w}
			for _, role := range fused[w.role] {
				p := *w
				p.role = role
				x.add(from.parts[p.key()])
			}
			if fused[w.role] != nil && len(x.parts) == len(fused[w.role]) {
				families[w.family()] = append(families[w.family()], x)
			}
		}
		for _, family := range slices.Sorted(maps.Keys(families)) {
			n.apart(families[family], from.by)
		}
	}
}

// add adds a part; nil is none.
func (x *whole) add(p *weight) {
	if p != nil {
		x.parts, x.rows = append(x.parts, p), append(x.rows, rowsOf(p))
	}
}

// apart pairs the parts of a family of weights that hold several of the other side. by says "fused" of those
// that the candidate has in one, "split" of the reference's.
func (n *joiner) apart(members []whole, by string, also ...string) {
	way, ok := n.way(members)
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
				n.pair(p, v, names...)
			} else {
				n.pair(v, p, names...)
			}
		}
		drop(n.ref, x.w)
		drop(n.cand, x.w)
	}
}

// part is the i-th part of a weight; nil if it does not fit.
func (x *whole) part(c cutting, i int) *weight {
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
	for k, r := range x.rows {
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
func (n *joiner) way(members []whole) (best cutting, ok bool) {
	most := -1
cuttings:
	for _, c := range n.cuttings(members[0].w, members[0].rows) {
		fit := 0
		for _, x := range members[:min(len(members), mostLooked)] {
			for i, p := range x.parts {
				v := x.part(c, i)
				if v == nil {
					continue cuttings
				}
				if n.alike(p, v) {
					fit++
				}
			}
		}
		if fit > most {
			best, most = c, fit
		}
	}
	return best, most >= 0
}

// isStack reports whether the first axis of a weight counts experts.
func isStack(w *weight) bool {
	axes := 3
	if w.param == "bias" {
		axes = 2
	}
	return strings.HasPrefix(w.role, "experts.") && w.index == "" && len(w.t.Shape()) == axes
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
func (n *joiner) unstack() {
	for _, from := range n.directions("stacked", "unstacked") {
		single := map[string]bool{} // layers whose experts the other side has by themselves
		for _, one := range from.parts {
			single[one.layer] = single[one.layer] || one.index != ""
		}
		for _, w := range sorted(from.whole) {
			if !isStack(w) || !single[w.layer] {
				continue
			}
			drop(from.whole, w)
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
				from.whole[one.key()] = &one
			}
		}
	}
}

// qkvRows are the rows that q, k and v may have in a weight that holds them: as many heads as a config says, or as many
// each.
func qkvRows(all int, configs ...checkpoint.Config) (out [][]int) {
	add := func(q, kv int) {
		if q > 0 && all%(q+2*kv) == 0 {
			d := all / (q + 2*kv)
			if parts := []int{q * d, kv * d, kv * d}; !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, parts) }) {
				out = append(out, parts)
			}
		}
	}
	for _, c := range configs {
		add(c.Heads(), c.KVHeads())
	}
	add(1, 1)
	return out
}

// regroup returns the steps between all of q, then k, then v, and the rows of each group of heads together, as
// GPT-NeoX, BLOOM and Falcon have them.
func regroup(parts []int, groups int) (into, back func(t *tensor.Tensor) (*tensor.Tensor, bool)) {
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
	by := func(order []int) func(t *tensor.Tensor) (*tensor.Tensor, bool) {
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			return checkpoint.Rows(t, func(row int) int { return order[row] }), true
		}
	}
	return by(order), by(inverse)
}
