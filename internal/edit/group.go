package edit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

// groups are the operators that an edit changes alike: those of one call site (in a loop), those of one
// line (of a helper that is called for q and for k), those with one number, and each by itself.
func groups(p *program.Piece) (out [][]int) {
	type key struct {
		name, layer string
		stack, nth  int
		number      float64
	}
	index := map[key]int{}
	add := func(at int, k key) {
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k], out = i, append(out, nil)
		}
		if !slices.Contains(out[i], at) {
			out[i] = append(out[i], at)
		}
	}
	for i, o := range p.Ops {
		add(i, key{like(o), o.Layer, o.Stack, ordinal(p, i), 0})
	}
	for i, o := range p.Ops {
		if f := Frame(p, i); f >= 0 {
			add(i, key{like(o), "", -2 - f, ordinal(p, i), 0})
		}
	}
	for i, o := range p.Ops {
		if n, repeats := iteration(p, i); repeats {
			add(i, key{like(o), o.Layer, o.Stack, n, -1})
		}
	}
	for i, o := range p.Ops {
		for _, a := range o.Args {
			if c, ok := a.Value.(float64); ok && c != 0 && math.Abs(c) != 1 {
				add(i, key{like(o), "", 0, 0, math.Abs(c)})
			}
		}
	}
	for i := 0; i < len(p.Ops) && len(p.Ops) <= mostSingle; i++ {
		add(i, key{"", "", 0, i, 0})
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(g []int) bool {
		k := fmt.Sprint(g)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// like is the name of an operator with those of its operands: x·2 and x·y are not changed alike.
func like(o program.Op) string {
	names, _ := tensors(o)
	return o.Name + " " + strings.Join(names, " ")
}

// shared is a number that operators are given.
type shared struct {
	number float64
	at     []int
}

// ofNumber are numbers that operators of several names are given, as a limit that is divided by and multiplied with.
func ofNumber(p *program.Piece) (out []shared) {
	index := map[float64]int{}
	for i, o := range p.Ops {
		for _, a := range o.Args {
			c, ok := a.Value.(float64)
			if !ok || c == 0 || math.Abs(c) == 1 || slices.Contains(fixed, a.Name) {
				continue
			}
			k, seen := index[c]
			if !seen {
				k = len(out)
				index[c], out = k, append(out, shared{number: c})
			}
			if !slices.Contains(out[k].at, i) {
				out[k].at = append(out[k].at, i)
			}
		}
	}
	return slices.DeleteFunc(out, func(g shared) bool {
		return !slices.ContainsFunc(g.at, func(i int) bool { return p.Ops[i].Name != p.Ops[g.at[0]].Name })
	})
}

// Frame returns the index of the expression that made an operator of a piece, −1 if it is not known.
func Frame(p *program.Piece, op int) int {
	s := p.Ops[op].Stack
	if s < 0 || s >= len(p.Stacks) || len(p.Stacks[s]) == 0 {
		return -1
	}
	return p.Stacks[s][0]
}

// ordinal counts the operators of one expression in a row.
func ordinal(p *program.Piece, i int) (n int) {
	for n < ordinalUpTo && i-n-1 >= 0 && p.Origin[i-n-1] == p.Origin[i]-n-1 && p.Ops[i-n-1].Stack == p.Ops[i].Stack && p.Ops[i-n-1].Layer == p.Ops[i].Layer {
		n++
	}
	return n
}

// iteration returns which operator of one run of an expression it is, where that runs several times in a row, as in a
// comprehension.
func iteration(p *program.Piece, i int) (n int, repeats bool) {
	if p.Ops[i].Stack < 0 {
		return 0, false
	}
	same := func(k int) bool {
		return k >= 0 && k < len(p.Ops) && p.Origin[k]-p.Origin[i] == k-i && p.Ops[k].Stack == p.Ops[i].Stack && p.Ops[k].Layer == p.Ops[i].Layer
	}
	from, to := i, i+1
	for same(from - 1) {
		from--
	}
	for same(to) {
		to++
	}
	for period := 2; 2*period <= to-from && period <= ordinalUpTo; period++ {
		differs := (to-from)%period > 0
		for k := from + period; k < to && !differs; k++ {
			differs = p.Ops[k].Name != p.Ops[k-period].Name
		}
		if !differs {
			return (i - from) % period, true
		}
	}
	return 0, false
}
