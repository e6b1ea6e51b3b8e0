package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// calls leaves out what ran while one expression of the model's source, which is no innermost one, was evaluated (a
// function's or a module's call), or rounds all of it.
func calls(s *site) {
	type within struct{ frame, op int }
	var all []within
	for i, o := range s.Ops {
		if o.Stack >= 0 && o.Stack < len(s.Stacks) && len(s.Stacks[o.Stack]) > 0 {
			for _, frame := range s.Stacks[o.Stack][1:] {
				all = append(all, within{frame, i})
			}
		}
	}
	for _, g := range grouped(all, func(x within) (int, bool) { return x.frame, true }) {
		var at []int
		for _, x := range g {
			at = append(at, x.op)
		}
		if len(at) > 1 {
			s.called(g[0].frame, at)
		}
	}
}

// called lists edits of a call.
func (s *site) called(frame int, at []int) {
	add := func(kind string, cost int, what string, rewrite func(w *writer, o program.Op)) {
		if e := s.addAt(kind, cost, text("%s %s", strings.TrimSpace(s.Frames[frame].Text), what), at, rewrite); e.Kind != "" {
			e.Frame = frame + 1
		}
	}
	if pass := s.passed(s.border(at)); pass != nil {
		add("drop", 0, "left out", func(w *writer, o program.Op) {
			if len(o.Out) == 1 {
				if id, ok := pass[o.Out[0]]; ok {
					w.pass(o, id)
					return
				}
			}
			w.ops = append(w.ops, o)
		})
	}
	for _, d := range narrow {
		add("rounding", 6, "in "+d.String(), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
	}
}

// border lists what operators take from elsewhere, and what others take of them.
func (s *site) border(at []int) (in, out []program.ID) {
	inside := func(i int) bool { return slices.Contains(at, i) }
	take := func(id program.ID, within bool) {
		switch m := s.Maker(id); {
		case within && !inside(m) && !slices.Contains(in, id):
			in = append(in, id)
		case !within && inside(m) && !slices.Contains(out, id):
			out = append(out, id)
		}
	}
	for i := range s.Ops {
		for _, id := range s.Operands(i) {
			take(id, inside(i))
		}
	}
	take(s.Out, false)
	return in, out
}

// passed says what each result of a call is made of that has its shape; nil if that is not plain.
func (s *site) passed(in, out []program.ID) map[program.ID]program.ID {
	pass, used := map[program.ID]program.ID{}, map[program.ID]bool{}
	for _, out := range out {
		i := slices.IndexFunc(in, func(in program.ID) bool {
			a, b := s.Values[in], s.Values[out]
			return !used[in] && a.Weight == "" && isFloat(a) && isFloat(b) && slices.Equal(a.Shape, b.Shape)
		})
		if i < 0 {
			return nil
		}
		used[in[i]], pass[out] = true, in[i]
	}
	return pass
}

// all rounds everything in a piece, and puts another function of one variable in the place of one that is written in
// several operators.
func all(s *site) {
	if len(s.Ops) < 2 {
		return
	}
	var tables []int
	for i, o := range s.Ops {
		if isOne(o, "cos sin") {
			tables = append(tables, i)
		}
	}
	for _, d := range narrow {
		s.addAt("rounding", 6, text("all of it in %s", d), upTo(len(s.Ops)), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		if len(tables) > 1 {
			s.addAt("rounding", 6, text("%s: cosines and sines", d), tables, func(w *writer, o program.Op) {
				w.after(o, func(w *writer, id program.ID) program.ID { return w.rounded(id, d) })
			})
		}
	}
	x, ok := s.variable()
	if !ok {
		return
	}
	last := len(s.Ops) - 1
	as := func(name string, f change) {
		s.addAt("sibling", 2, s.Ops[last].Name+" → "+name, []int{last}, func(w *writer, o program.Op) { w.pass(o, f(w, x)) })
	}
	for _, name := range []string{"silu", "relu", "sigmoid", "tanh"} {
		as(name, func(w *writer, x program.ID) program.ID { return w.one(name, x) })
	}
	for _, f := range functions[:2] {
		as(f.name, f.write)
	}
}

// variable is what a piece of elementwise operators is a function of; ok is false where it is of several, or no such one.
func (s *site) variable() (x program.ID, ok bool) {
	x = program.None
	for i := range s.Ops {
		for _, id := range s.Operands(i) {
			if s.Maker(id) >= 0 || len(s.shape(id)) == 0 {
				continue
			}
			if x != program.None && x != id {
				return x, false
			}
			x = id
		}
		if !isOne(s.Ops[i], elementwise+" "+activating+" sigmoid pow exp erf") {
			return x, false
		}
	}
	return x, x != program.None && slices.Equal(s.shape(x), s.shape(s.Out)) && s.Maker(s.Out) == len(s.Ops)-1
}

// narrow are the types to which a calculation may be rounded.
var narrow = []tensor.DType{tensor.BF16, tensor.F16}

// narrowed runs an operator on rounded operands, and rounds what it makes. A product may add its bias as it is.
func (w *writer) narrowed(o program.Op, d tensor.DType, bias bool) {
	o.Args = slices.Clone(o.Args)
	for i, a := range o.Args {
		id, ok := a.Value.(program.ID)
		if ok && id != program.None && isFloat(*w.value(id)) && !(bias && isBias(o, a)) {
			o.Args[i].Value = w.rounded(id, d)
		}
	}
	if len(o.Out) == 0 || o.Out[0] == program.None || !isFloat(w.s.Values[o.Out[0]]) {
		w.ops = append(w.ops, o)
		return
	}
	w.after(o, func(w *writer, id program.ID) program.ID { return w.rounded(id, d) })
}

// isBias reports whether an argument is what is added to a product.
func isBias(o program.Op, a program.Arg) bool {
	_, ok := a.Value.(program.ID)
	return ok && (a.Name == "bias" || o.Name == "addmm" && a.Name == "self")
}
