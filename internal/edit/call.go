package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// call is what ran while one expression of the model's source, which is no innermost one, was evaluated: a function's or
// a module's call.
type call struct {
	frame   int
	at      []int        // operators
	in, out []program.ID // what it takes of others, and others of it
}

// called lists the calls of a piece.
func (s *site) called() (out []call) {
	type within struct{ frame, op int }
	var all []within
	for i, o := range s.Ops {
		if o.Stack < 0 || o.Stack >= len(s.Stacks) || len(s.Stacks[o.Stack]) == 0 {
			continue
		}
		for _, frame := range s.Stacks[o.Stack][1:] {
			all = append(all, within{frame, i})
		}
	}
	for _, g := range grouped(all, func(x within) (int, bool) { return x.frame, true }) {
		c := call{frame: g[0].frame}
		for _, x := range g {
			c.at = append(c.at, x.op)
		}
		if c.in, c.out = s.border(c.at); len(c.at) > 1 {
			out = append(out, c)
		}
	}
	return out
}

// calls leaves out what a call does, or rounds all of it.
func calls(s *site) {
	for _, c := range s.calls {
		if pass := s.passed(c); pass != nil {
			s.ofCall(c, "drop", 0, "left out", func(w *writer, o program.Op) {
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
			s.ofCall(c, "rounding", 6, "in "+d.String(), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		}
	}
}

// all rounds everything in a piece, and puts another function of one variable in the place of one that is written in
// several operators.
func all(s *site) {
	if len(s.Ops) < 2 {
		return
	}
	for _, d := range narrow {
		s.addAt("rounding", 6, text("all of it in %s", d), upTo(len(s.Ops)), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
	}
	var tables []int
	for i, o := range s.Ops {
		if o.Name == "cos" || o.Name == "sin" {
			tables = append(tables, i)
		}
	}
	for _, d := range narrow {
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
	last := s.Ops[len(s.Ops)-1]
	for _, f := range unary {
		s.addAt("sibling", 2, text("%s → %s", last.Name, f.name), []int{len(s.Ops) - 1}, func(w *writer, o program.Op) {
			w.run(o, f.op, argsOf(append([]any{"self", x}, f.args...)))
		})
	}
}

// unary are functions of one variable.
var unary = []struct {
	name, op string
	args     []any
}{{"silu", "silu", nil}, {"gelu (none)", "gelu", []any{"approximate", "none"}}, {"gelu (tanh)", "gelu", []any{"approximate", "tanh"}}, {"relu", "relu", nil},
	{"sigmoid", "sigmoid", nil}, {"tanh", "tanh", nil}}

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
		if n := s.Ops[i].Name; !slices.Contains(elementwise, n) && !isActivation(n) && !slices.Contains([]string{"sigmoid", "pow", "exp", "erf"}, n) {
			return x, false
		}
	}
	return x, x != program.None && slices.Equal(s.shape(x), s.shape(s.Out)) && s.Maker(s.Out) == len(s.Ops)-1
}

func (s *site) ofCall(c call, kind string, cost int, what string, rewrite func(w *writer, o program.Op)) {
	name := strings.TrimSpace(s.Frames[c.frame].Text)
	if e := s.addAt(kind, cost, text("%s %s", name, what), c.at, rewrite); e.Kind != "" {
		e.Frame = c.frame + 1
	}
}

// passed says what each result of a call is made of that has its shape; nil if that is not plain.
func (s *site) passed(c call) map[program.ID]program.ID {
	pass, used := map[program.ID]program.ID{}, map[program.ID]bool{}
	for _, out := range c.out {
		i := slices.IndexFunc(c.in, func(in program.ID) bool {
			a, b := s.Values[in], s.Values[out]
			return !used[in] && a.Weight == "" && isFloat(a) && isFloat(b) && slices.Equal(a.Shape, b.Shape)
		})
		if i < 0 {
			return nil
		}
		used[c.in[i]], pass[out] = true, c.in[i]
	}
	return pass
}

// narrow are the types to which a calculation may be rounded.
var narrow = []tensor.DType{tensor.BF16, tensor.F16}

// narrowed runs an operator on rounded operands, and rounds what it makes. A product may add its bias as it is.
func (w *writer) narrowed(o program.Op, d tensor.DType, bias bool) {
	o.Args = slices.Clone(o.Args)
	for i, a := range o.Args {
		id, ok := a.Value.(program.ID)
		if ok && id != program.None && isFloat(*w.value(id)) && !(bias && isBias(o, a.Name)) {
			o.Args[i].Value = w.rounded(id, d)
		}
	}
	if len(o.Out) == 0 || o.Out[0] == program.None || !isFloat(w.s.Values[o.Out[0]]) {
		w.ops = append(w.ops, o)
		return
	}
	w.after(o, func(w *writer, id program.ID) program.ID { return w.rounded(id, d) })
}

// isBias reports whether an operand of a product is what is added to it.
func isBias(o program.Op, arg string) bool {
	return arg == "bias" || o.Name == "addmm" && arg == "self"
}

// rounded is a value that went through another type.
func (w *writer) rounded(id program.ID, d tensor.DType) program.ID {
	w.e.To = d
	v := *w.value(id)
	x := w.make(v.Shape, d)
	w.ops = append(w.ops, program.Op{Name: "_to_copy", Full: full("_to_copy"), Args: argsOf([]any{"self", id, "dtype", d.String()}), Out: []program.ID{x}, Stack: -1})
	return w.call("_to_copy", id, nil, "self", x, "dtype", v.DType.String())
}
