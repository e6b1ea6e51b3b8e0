package weights

import "slices"

// consumers are the roles that read what a norm of the layer returns.
var consumers = map[string][]string{
	"norm1": {"attn.q", "attn.k", "attn.v", "attn.qkv"},
	"norm2": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm3": {"ffn.gate", "ffn.up", "ffn.gateup", "router"},
	"norm":  {"lmhead"},
}

// findFolded finds the norms of which one side has only ones: they may be in the columns of what reads them.
func (c *comparison) findFolded() {
	isOne := func(v float64) bool { return v == 1 }
	for _, p := range c.pairs {
		if consumers[p.ref.role] == nil || p.ref.param != "weight" || p.ref.t.Len() != p.cand.t.Len() {
			continue
		}
		ones := all(p.ref.t, isOne)
		if ones == all(p.cand.t, isOne) {
			continue
		}
		name, column := "norm folded", numbers(p.ref.t, p.ref.t.Len())
		if ones {
			name, column = "norm unfolded", numbers(p.cand.t, p.cand.t.Len())
			for i, v := range column {
				column[i] = 1 / v
			}
		}
		p.column = &calc{name: name, number: func(i int, v float64) float64 { return v * column[i%len(column)] }}
		for _, o := range c.pairs {
			reads := slices.Contains(consumers[p.ref.role], o.ref.role)
			if reads && o.ref.layer == p.ref.layer && o.ref.param == "weight" {
				p.readers = append(p.readers, o)
				if o.cand.t.RowLen() == len(column) {
					o.more = append(o.more, p.column)
				}
			}
		}
	}
}

// folded reports whether a norm is one of ones, and all that reads it has its numbers.
func (p *pair) folded() bool {
	lacks := func(o *pair) bool { return !o.exact() || o.may[0].calc != p.column }
	return len(p.may) == 0 && p.result.Detail == "" && len(p.readers) > 0 && !slices.ContainsFunc(p.readers, lacks)
}
