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
func groups(p *program.Piece) [][]int {
	type key struct {
		name, layer string
		stack, nth  int
		number      float64
	}
	all := upTo(len(p.Ops))
	out := grouped(all, func(i int) (key, bool) {
		o := p.Ops[i]
		return key{like(o), o.Layer, o.Stack, ordinal(p, i), 0}, true
	})
	out = append(out, grouped(all, func(i int) (key, bool) {
		f := Frame(p, i)
		return key{like(p.Ops[i]), "", f, ordinal(p, i), 0}, f >= 0
	})...)
	out = append(out, grouped(all, func(i int) (key, bool) {
		n, repeats := iteration(p, i)
		o := p.Ops[i]
		return key{like(o), o.Layer, o.Stack, n, 0}, repeats
	})...)
	for _, g := range byNumber(p, func(o program.Op, _ string, c float64) (key, bool) { return key{like(o), "", 0, 0, math.Abs(c)}, true }) {
		out = append(out, g.at)
	}
	for _, i := range all {
		if len(p.Ops) <= mostSingle {
			out = append(out, []int{i})
		}
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

// byNumber puts operators together that are given numbers of one key. Arguments without a key are left out.
func byNumber[K comparable](p *program.Piece, key func(o program.Op, arg string, c float64) (K, bool)) (out []shared) {
	type use struct {
		arg    string
		number float64
		at     int
	}
	var all []use
	for i, o := range p.Ops {
		for _, a := range o.Args {
			if c, ok := a.Value.(float64); ok && c != 0 && math.Abs(c) != 1 {
				all = append(all, use{a.Name, c, i})
			}
		}
	}
	for _, g := range grouped(all, func(u use) (K, bool) { return key(p.Ops[u.at], u.arg, u.number) }) {
		is := shared{number: g[0].number}
		for _, u := range g {
			is.at = append(is.at, u.at)
		}
		is.at = slices.Compact(is.at)
		out = append(out, is)
	}
	return out
}

// ofNumber are numbers that operators of several names are given, as a limit that is divided by and multiplied with.
func ofNumber(p *program.Piece) []shared {
	all := byNumber(p, func(_ program.Op, arg string, c float64) (float64, bool) { return c, !slices.Contains(fixed, arg) })
	return slices.DeleteFunc(all, func(g shared) bool {
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

// follows reports whether an operator is one of the same expression as another, so many operators away.
func follows(p *program.Piece, i, away int) bool {
	k := i + away
	return k >= 0 && k < len(p.Ops) && p.Origin[k]-p.Origin[i] == away && p.Ops[k].Stack == p.Ops[i].Stack && p.Ops[k].Layer == p.Ops[i].Layer
}

// ordinal counts the operators of one expression in a row.
func ordinal(p *program.Piece, i int) (n int) {
	for n < ordinalUpTo && follows(p, i, -n-1) {
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
	from, to := i, i+1
	for follows(p, i, from-1-i) {
		from--
	}
	for follows(p, i, to-i) {
		to++
	}
	for period := 2; 2*period <= to-from && period <= ordinalUpTo; period++ {
		same := (to-from)%period == 0
		for k := from + period; k < to && same; k++ {
			same = p.Ops[k].Name == p.Ops[k-period].Name
		}
		if same {
			return (i - from) % period, true
		}
	}
	return 0, false
}
