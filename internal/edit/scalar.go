package edit

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// fixed are the arguments that are no numbers to change.
var fixed = strings.Fields(`dim dim0 dim1 start end step index size N C HxW padding_idx split_size normalized_shape momentum dims split_sizes
	repeats alpha beta ord storage_offset bins steps dtype`)

// numbers changes a number that an operator is given.
func numbers(s *site) {
	o := s.first()
	v, _ := s.result(o)
	position := o.Name == "add" && len(o.Out) == 1 && v.DType == tensor.I64 && size(v.Shape) == 1 // of the one token of a decode step
	cost := 3
	switch {
	case position:
		cost = 0
	case o.Name == "full": // zeros that something is put into
		cost = 5
	}
	for _, a := range o.Args {
		if slices.Contains(fixed, a.Name) && !(o.Name == "arange" && a.Name != "step") {
			continue
		}
		set := func(x any) {
			if x == a.Value {
				return
			}
			e := s.add("scalar", cost, text("%s of %s: %v → %s", a.Name, o.Name, a.Value, number(x)), func(w *writer, o program.Op) {
				name := a.Name
				if i := slices.IndexFunc(o.Args, func(b program.Arg) bool { return b.Value == a.Value }); o.Name != s.first().Name && i >= 0 {
					name = o.Args[i].Name
				}
				w.give(o, name, x)
			})
			e.Number, _ = x.(float64)
		}
		switch c := a.Value.(type) {
		case int:
			if isFloat(v) && !isOne(o, "native_group_norm convolution arange") {
				for _, x := range others(float64(c), s.sizes) {
					set(x)
				}
			}
			for x := 0; position && x < min(c, mostPositions); x++ {
				set(x)
			}
			for _, x := range []int{c + 1, c - 1, c + 2, c - 2, 0, 1, 2, 4, 8, -c, 2 * c, c / 2, math.MaxInt32} {
				if o.Name != "arange" || x-c < 3 && c-x < 3 { // its shape stays
					set(x)
				}
			}
		case float64:
			both := s.onBothSides(c)
			for _, x := range others(c, s.sizes) {
				if set(x); both {
					s.mirrored(c, x)
				}
			}
		}
	}
	if o.Name == "arange" {
		shifted(s)
	}
}

// shifted begins and ends a range one later or earlier.
func shifted(s *site) {
	for _, by := range []int{1, -1} {
		s.add("scalar", 3, text("arange: %+d", by), func(w *writer, o program.Op) {
			end, ok := o.Args.Get("end").(int)
			if !w.unless(ok) {
				w.run(o, o.Name, with(o.Args, "start", intOf(o, "start")+by, "end", end+by))
			}
		})
	}
}

// onBothSides reports whether operators of the group are given a number and its negative, as those between which they
// clamp; mirrored gives them another such pair.
func (s *site) onBothSides(c float64) bool {
	return c > 0 && slices.ContainsFunc(s.group, func(i int) bool {
		return slices.ContainsFunc(s.Ops[i].Args, func(a program.Arg) bool { return a.Value == -c })
	})
}

func (s *site) mirrored(c, x float64) {
	s.add("scalar", 3, text("±%g → ±%s", c, number(x)), func(w *writer, o program.Op) {
		args := slices.Clone(o.Args)
		for i, b := range args {
			switch b.Value {
			case c:
				args[i].Value = x
			case -c:
				args[i].Value = -x
			}
		}
		w.run(o, o.Name, args)
	})
}

// clamps bound what is bounded on one side on the other, too.
func clamps(s *site) {
	o := s.first()
	for _, side := range [][2]string{{"min", "max"}, {"max", "min"}} {
		bound, ok := toFloat(o.Args.Get(side[0]))
		if o.Name != "clamp" || !ok || o.Args.Get(side[1]) != nil {
			continue
		}
		for _, x := range []float64{-bound, 0} {
			s.given("scalar", 3, text("%s of clamp: none → %s", side[1], number(x)), side[1], x)
		}
	}
}

func toFloat(x any) (float64, bool) {
	switch v := x.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsInf(v, 0)
	}
	return 0, false
}

// number writes a number as people do.
func number(x any) string {
	if f, ok := x.(float64); ok {
		return text("%.6g", f)
	}
	return text("%v", x)
}

// others are what may stand in the place of a number: its multiples, powers and decades, what the sizes of
// axes make, and what people write for an eps or a base.
func others(c float64, sizes []int) []float64 {
	out := []float64{0, 1, -c, c * c, c + 1, c - 1, 2 * c, c / 2, c / 3, 3 * c, 1 - c, 1 / c, math.Sqrt(math.Abs(c)), 1 / math.Sqrt(math.Abs(c))}
	for k := -8.0; k <= 7; k++ {
		out = append(out, c*math.Pow(10, k))
	}
	for _, n := range sizes {
		d := float64(n)
		out = append(out, math.Sqrt(d), 1/math.Sqrt(d), d, 1/d)
	}
	out = append(out, 1e-2, 1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 1e4, 5e5, 1e6, quick)
	return slices.DeleteFunc(out, func(x float64) bool { return x == c || math.IsInf(x, 0) || math.IsNaN(x) })
}

// integers moves whole numbers, as of positions and of tokens, or counts in their place.
func integers(s *site) {
	o := s.first()
	v, _ := s.result(o) // the first of several, as of sort
	if v.DType.IsFloat() || v.DType.Size() < 4 || o.Name == "arange" {
		return
	}
	most := 0.0
	if a := s.Value(o.Out[0]); a != nil && a.Len() > 0 {
		most = slices.Max(a.Floats())
	}
	if n := len(v.Shape); n > 0 && v.Shape[n-1] > 1 {
		s.then("integer", 3, "0, 1, 2 and so on in place of "+o.Name, func(w *writer, id program.ID) program.ID {
			count := w.call("arange", id, v.Shape[n-1:], "start", 0, "end", v.Shape[n-1], "step", 1)
			return w.expand(count, v.Shape)
		})
	}
	for _, by := range []int{1, -1, 2} {
		for _, max := range []any{nil, int(most)} {
			what := text("the whole numbers of %s %+d", o.Name, by)
			if max != nil {
				what += text(", %d at most", max)
			}
			s.then("integer", 4, what, func(w *writer, id program.ID) program.ID {
				return w.call("clamp", id, nil, "self", w.two("add", id, by), "min", 0, "max", max)
			})
		}
	}
}
