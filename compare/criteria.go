package compare

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Criteria is what a pair must fulfil: all of its limits, by criterion.
//
//	compare.Criteria{compare.RelL2: 1e-4, compare.Cosine: 0.9999}
type Criteria map[*Criterion]float64

// All ranges over the criteria with their limits, in the order of [Table]; those that are not in it
// come last.
func (c Criteria) All() iter.Seq2[*Criterion, float64] {
	place := func(x *Criterion) int {
		if i := slices.Index(table, x); i >= 0 {
			return i
		}
		return len(table)
	}
	keys := slices.SortedFunc(maps.Keys(c), func(x, y *Criterion) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x.Key, y.Key))
	})
	return func(yield func(*Criterion, float64) bool) {
		for _, k := range keys {
			if !yield(k, c[k]) {
				return
			}
		}
	}
}

// Tolerance is the elementwise tolerance, and whether [Atol] or [Rtol] asks for it; if neither
// does, elements must be equal to be no mismatch.
func (c Criteria) Tolerance() (t Tolerance, asked bool) {
	_, atol := c[Atol]
	_, rtol := c[Rtol]
	return Tolerance{Atol: c[Atol], Rtol: c[Rtol], EqualNaN: c[EqualNaN] != 0}, atol || rtol
}

// Measures reports whether the criteria ask for anything that can fail.
func (c Criteria) Measures() bool {
	for k := range c {
		if !k.Switch() {
			return true
		}
	}
	return false
}

// Validate refuses, with a [*MisuseError], criteria without any demand and limits that have no
// meaning or accept everything.
func (c Criteria) Validate() error {
	for k, limit := range c.All() {
		if err := k.Check(limit); err != nil {
			return misuse("%s = %v: %v", k.Key, limit, err)
		}
	}
	if !c.Measures() {
		return misuse("no criterion is given: nothing would be judged")
	}
	return nil
}

// complete adds what is judged along with what was asked for: both parts of an elementwise
// tolerance, and the worst row where only the tensor is limited.
func (c Criteria) complete() Criteria {
	out := maps.Clone(c)
	if t, asked := c.Tolerance(); asked {
		out[Atol], out[Rtol] = t.Atol, t.Rtol
	}
	if l, asked := c[RelL2]; asked {
		if _, own := c[RowRelL2]; !own {
			out[RowRelL2] = l
		}
	}
	return out
}
