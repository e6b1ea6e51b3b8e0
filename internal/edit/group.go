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

// ordinal counts the operators of the same expression that come right before one.
func ordinal(p *program.Piece, i int) (n int) {
	for k := i - 1; k >= 0 && n < ordinalUpTo && p.Origin[i]-p.Origin[k] == i-k &&
		p.Ops[k].Stack == p.Ops[i].Stack && p.Ops[k].Layer == p.Ops[i].Layer; k-- {
		n++
	}
	return n
}
