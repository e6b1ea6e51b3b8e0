package edit

import (
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// fixed are the arguments that are no numbers to change.
var fixed = strings.Fields(`dim dim0 dim1 start end step index size N C HxW padding_idx split_size normalized_shape momentum dims
	split_sizes repeats alpha beta ord storage_offset bins steps dtype`)

// numbers changes a number that an operator is given.
func numbers(s *site) {
	name, cost := s.op.Name, 3
	position := name == "add" && s.single && s.result.DType == tensor.I64 && size(s.result.Shape) == 1
	switch {
	case position: // of the one token of a decode step
		cost = 0
	case name == "full": // zeros that something is put into
		cost = 5
	}
	args := s.op.Args
	if q := tensorOf(s.op, "query"); q != program.None && args.Get("scale") == nil {
		args = with(args, "scale", 1/math.Sqrt(float64(s.shape(q)[len(s.shape(q))-1])))
	}
	for _, a := range args {
		if slices.Contains(fixed, a.Name) && !(name == "arange" && a.Name != "step") && !(name == "elu" && a.Name == "alpha") {
			continue
		}
		set := func(x any) {
			if x == a.Value {
				return
			}
			e := s.add("scalar", cost, text("%s of %s: %v → %s", a.Name, name, a.Value, number(x)), func(w *writer, o program.Op) {
				arg := a.Name
				if i := argOf(o, a.Value); o.Name != name && i >= 0 {
					arg = o.Args[i].Name
				}
				w.give(o, arg, x)
			})
			e.Number, _ = x.(float64)
		}
		switch c := a.Value.(type) {
		case int:
			if isFloat(s.result) && !isOne(s.op, "native_group_norm convolution arange") {
				for _, x := range others(float64(c), s.sizes) {
					set(x)
				}
			}
			for x := 0; position && x < min(c, mostPositions); x++ {
				set(x)
			}
			for _, x := range []int{c + 1, c - 1, c + 2, c - 2, 0, 1, 2, 4, 8, -c, 2 * c, c / 2, math.MaxInt32} {
				if name != "arange" || x-c < 3 && c-x < 3 { // its shape stays
					set(x)
				}
			}
		case float64:
			// The group has its negative as well, as those between which it clamps.
			both := c > 0 && slices.ContainsFunc(s.group, func(i int) bool { return argOf(s.Ops[i], -c) >= 0 })
			for _, x := range others(c, s.sizes) {
				if set(x); both {
					s.mirrored(c, x)
				}
			}
		}
	}
	for _, by := range []int{1, -1} { // later, or earlier
		if name == "arange" {
			s.add("scalar", 3, text("arange: %+d", by), func(w *writer, o program.Op) {
				end, ok := o.Args.Get("end").(int)
				w.needs(ok)
				w.run(o, o.Name, with(o.Args, "start", intOf(o, "start")+by, "end", end+by))
			})
		}
	}
}

// argOf is the index of the argument that is a number; −1 for none.
func argOf(o program.Op, number any) int {
	return slices.IndexFunc(o.Args, func(a program.Arg) bool { return a.Value == number })
}

// mirrored gives operators another number and its negative in the place of such a pair.
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
	for _, side := range [][2]string{{"min", "max"}, {"max", "min"}} {
		bound, ok := toFloat(s.op.Args.Get(side[0]))
		if s.op.Name != "clamp" || !ok || s.op.Args.Get(side[1]) != nil {
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
	name, shape := s.op.Name, s.result.Shape // the first of several, as of sort
	if s.result.DType.IsFloat() || s.result.DType.Size() < 4 || name == "arange" {
		return
	}
	most := 0.0
	if a := s.base.Value(s.op.Out[0]); a != nil && a.Len() > 0 {
		most = slices.Max(a.Floats())
	}
	if n := len(shape); n > 0 && shape[n-1] > 1 {
		s.then("integer", 3, "0, 1, 2 and so on in place of "+name, func(w *writer, id program.ID) program.ID {
			return w.expand(w.like("arange", id, shape[n-1:], "start", 0, "end", shape[n-1], "step", 1), shape)
		})
	}
	for d, n := range shape {
		if n > 1 {
			s.then("integer", 4, text("the first of axis %d of %s everywhere", d, name), func(w *writer, id program.ID) program.ID {
				return w.expand(w.slice(id, d, 0, 1), shape)
			})
		}
	}
	for _, by := range []int{1, -1, 2} {
		add := func(limit string, most any) {
			s.then("integer", 4, text("the whole numbers of %s %+d%s", name, by, limit), func(w *writer, id program.ID) program.ID {
				return w.call("clamp", w.two("add", id, by), nil, "min", 0, "max", most)
			})
		}
		add("", nil)
		add(text(", %d at most", int(most)), int(most))
	}
}

// Family is an edit with numbers that are not known: they are found from what the candidate has. All zero change nothing.
type Family struct {
	Text    string
	Numbers int
	Cost    int                     // of the edit
	Edit    func(p []float64) *Edit // nil where it cannot be written
}

// Families lists those of a piece: a number that an operator is given, a result that is multiplied or moved by a number,
// the base of a geometric table, and each number of a short one. Numbers that stand there are the first.
func Families(b *replay.Base) []Family {
	s := newSite(b, nil)
	for _, g := range ofNumber(b.Piece) {
		s.on(g.at)
		s.family(fittedCost-1, text("%g wherever it stands", g.number), 1, percent, func(w *writer, o program.Op, p []float64) {
			i := argOf(o, g.number)
			w.needs(i >= 0)
			w.give(o, o.Args[i].Name, g.number*(1+p[0]))
		})
	}
	for _, group := range s.groups {
		s.on(group)
		s.otherArguments()
		s.otherResults()
	}
	slices.SortStableFunc(s.families, func(a, b Family) int { return a.Cost - b.Cost })
	return s.families
}

// family appends one of so many numbers, which rewrites each operator of the group.
func (s *site) family(cost int, what string, n int, said func(p []float64) string,
	rewrite func(w *writer, o program.Op, p []float64),
) {
	at := s.group
	s.families = append(s.families, Family{what, n, cost, func(p []float64) *Edit {
		s.edits = nil
		e := s.addAt("scalar", cost, text("%s: %s", what, said(p)), at, func(w *writer, o program.Op) { rewrite(w, o, p) })
		if e.Kind == "" {
			return nil
		}
		e.Fitted = true
		return e
	}})
}

// otherArguments lists other numbers and tables that operators of the group are given.
func (s *site) otherArguments() {
	for _, a := range s.op.Args {
		what := text("%s of %s", a.Name, s.op.Name)
		switch v := a.Value.(type) {
		case float64:
			if v == 0 || slices.Contains(fixed, a.Name) {
				continue
			}
			s.family(fittedCost-1, what, 1, percent, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, v*(1+p[0])) })
			s.family(fittedCost-1, "a number more than "+what, 1, more, func(w *writer, o program.Op, p []float64) { w.give(o, a.Name, v+p[0]) })
		case program.ID:
			if v != program.None && s.Maker(v) < 0 && s.Values[v].Weight == "" && s.Values[v].Record == 0 {
				s.otherTable(v, what, func(w *writer, o program.Op, table change) { w.give(o, a.Name, table(w, v)) })
			}
		}
	}
}

// otherResults lists other results of the group.
func (s *site) otherResults() {
	if !s.single || !isFloat(s.result) || isOne(s.op, moving) {
		return
	}
	then := func(op, what string, from float64, said func(p []float64) string) {
		s.family(fittedCost, what+" the result of "+s.op.Name, 1, said, func(w *writer, o program.Op, p []float64) {
			w.after(o, func(w *writer, id program.ID) program.ID { return w.two(op, id, from+p[0]) })
		})
	}
	then("mul", "a factor of", 1, percent)
	then("add", "a number more than", 0, more)
	if s.tables[s.group[0]] {
		s.otherTable(s.op.Out[0], "the result of "+s.op.Name, (*writer).after)
	}
}

// otherTable lists how the numbers of a constant may be others.
func (s *site) otherTable(id program.ID, name string, put func(w *writer, o program.Op, table change)) {
	x, v := s.base.Value(id), s.Values[id]
	if x == nil || !isFloat(v) || x.Len() < 2 {
		return
	}
	numbers := x.Floats()
	add := func(what string, n int, said func(p []float64) string, number func(i int, y float64, p []float64) float64) {
		s.family(fittedCost, what+name, n, said, func(w *writer, o program.Op, p []float64) {
			put(w, o, func(w *writer, _ program.ID) program.ID {
				return w.table(v.Shape, numbers, func(i int, y float64) float64 { return number(i, y, p) })
			})
		})
	}
	if q := sequenceOf(numbers); q.factor == 1 {
		said := func(p []float64) string { return text("%.4g → %.4g", q.base, math.Pow(q.base, 1+p[0])) }
		add("base of ", 1, said, func(i int, y float64, p []float64) float64 {
			first := numbers[i-i%q.n]
			return first * math.Pow(y/first, 1+p[0])
		})
	}
	if len(numbers) <= mostUnknown && !slices.Contains(numbers, 0) {
		add("the numbers of ", len(numbers), percent, func(i int, y float64, p []float64) float64 { return y * (1 + p[i]) })
	}
}

// percent says by how much numbers are others, and more how much is added to one.
func percent(p []float64) string {
	parts := mapped(p[:min(len(p), mostWritten)], func(x float64) string { return text("%+.3g", 100*x) })
	return strings.Join(parts, ", ") + " %"
}

func more(p []float64) string { return text("%+.4g", p[0]) }

// Ordered puts what a piece makes in another order along an axis.
func Ordered(b *replay.Base, d int, order []int) *Edit {
	what := text("axis %d in the order %v of the result", d, order[:min(len(order), mostWritten)])
	e := newSite(b, nil).last("layout", 5, what, func(w *writer, id program.ID) program.ID { return w.selected(id, d, order) })
	if e.Kind == "" {
		return nil
	}
	return e
}
