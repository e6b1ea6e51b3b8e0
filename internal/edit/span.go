package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// calls leaves out what ran while one expression of the model's source, which is no innermost one, was evaluated (a
// function's or a module's call), or rounds all of it.
func calls(s *site) {
	type within struct{ frame, op int }
	var all []within
	for i, o := range s.Ops {
		if Frame(s.Piece, i) >= 0 {
			for _, frame := range s.Stacks[o.Stack][1:] {
				all = append(all, within{frame, i})
			}
		}
	}
	for _, g := range grouped(all, func(x within) (int, bool) { return x.frame, true }) {
		if len(g) > 1 && !s.inPart(g[0].frame, label.Block(s.Ops[g[0].op].Layer)) {
			s.called(g[0].frame, mapped(g, func(x within) int { return x.op }))
		}
	}
}

// inPart reports whether a call began before the piece or goes on after it: what makes its sources, or takes its result,
// is of the same call, in the same block.
func (s *site) inPart(frame int, block string) bool {
	if s.Of == nil {
		return false
	}
	inside := func(o program.Op) bool {
		return o.Stack >= 0 && slices.Contains(s.Stacks[o.Stack], frame) && label.Block(o.Layer) == block
	}
	for id, whole := range s.Whole {
		if m := s.Of.Maker(whole); s.Maker(program.ID(id)) < 0 && m >= 0 && inside(s.Of.Ops[m]) {
			return true
		}
	}
	out := s.Whole[s.Out]
	return s.Of.Maker(out) >= 0 && slices.ContainsFunc(s.Of.Ops[s.Of.Maker(out):], func(o program.Op) bool {
		return slices.Contains(o.Operands(), out) && inside(o)
	})
}

// called lists edits of a call.
func (s *site) called(frame int, at []int) {
	add := func(kind string, cost int, what string, rewrite func(w *writer, o program.Op)) {
		if e := s.addAt(kind, cost, text("%s %s", strings.TrimSpace(s.Frames[frame].Text), what), at, rewrite); e.Kind != "" {
			e.Frame = frame + 1
		}
	}
	if pass := s.passed(at); pass != nil {
		add("drop", 0, "left out", func(w *writer, o program.Op) {
			if id, ok := pass[o.Out[0]]; ok && len(o.Out) == 1 {
				w.pass(o, id)
			} else {
				w.ops = append(w.ops, o)
			}
		})
	}
	for _, d := range narrow {
		add("rounding", 6, "in "+d.String(), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
	}
}

// passed says what each result of some operators is made of that has its shape; nil if that is not plain.
func (s *site) passed(at []int) map[program.ID]program.ID {
	inside := func(i int) bool { return slices.Contains(at, i) }
	var in, out []program.ID // what they take from elsewhere, and what others take of them
	for i := range s.Ops {
		for _, id := range s.Operands(i) {
			switch made := inside(s.Maker(id)); {
			case !made && inside(i) && !slices.Contains(in, id):
				in = append(in, id)
			case made && !inside(i) && !slices.Contains(out, id):
				out = append(out, id)
			}
		}
	}
	if inside(s.Maker(s.Out)) && !slices.Contains(out, s.Out) {
		out = append(out, s.Out)
	}
	pass := map[program.ID]program.ID{}
	for _, out := range out {
		i := slices.IndexFunc(in, func(in program.ID) bool {
			a, b := s.Values[in], s.Values[out]
			return a.Weight == "" && isFloat(a) && isFloat(b) && slices.Equal(a.Shape, b.Shape)
		})
		if i < 0 {
			return nil
		}
		pass[out] = in[i]
		in = slices.Delete(in, i, i+1)
	}
	return pass
}

// all rounds everything in a piece, and puts another function of one variable in the place of one that is written in
// several operators.
func all(s *site) {
	if len(s.Ops) < 2 {
		return
	}
	tables := slices.DeleteFunc(upTo(len(s.Ops)), func(i int) bool { return !isOne(s.Ops[i], "cos sin") })
	for _, d := range narrow {
		s.addAt("rounding", 6, text("all of it in %s", d), upTo(len(s.Ops)), func(w *writer, o program.Op) { w.narrowed(o, d, false) })
		if len(tables) > 1 {
			s.addAt("rounding", 6, text("%s: cosines and sines", d), tables, func(w *writer, o program.Op) { w.after(o, rounded(d)) })
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
		as(name, by(name))
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
			switch {
			case s.Maker(id) >= 0 || len(s.shape(id)) == 0:
			case x != program.None && x != id:
				return x, false
			default:
				x = id
			}
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
	for _, x := range tensors(o) {
		if isFloat(*w.value(x.id)) && !(bias && isBias(o, x.name)) {
			o.Args = with(o.Args, x.name, rounded(d)(w, x.id))
		}
	}
	if v, _ := w.s.resultOf(o); isFloat(v) {
		w.after(o, rounded(d))
		return
	}
	w.ops = append(w.ops, o)
}

// isBias reports whether an operand is what is added to a product.
func isBias(o program.Op, arg string) bool {
	return arg == "bias" || o.Name == "addmm" && arg == "self"
}

// region is what is done to a value until it is one value again, of the same shape: a rotation, say.
type region struct {
	at      []int
	in, out program.ID
}

// around leaves regions out, does them in another order of the last axis, or does one to another value, too: each with
// those that do the same after it, as of keys after that of queries.
func around(s *site) {
	var all []region
	for id := range s.values() {
		if r, ok := s.region(id); ok {
			all = append(all, r)
		}
	}
	for _, same := range grouped(all, func(r region) (string, bool) {
		return strings.Join(mapped(r.at, func(k int) string { return s.Ops[k].Name }), " "), true
	}) {
		for _, set := range andEach(same) {
			s.regions(set)
		}
		s.alsoTo(same)
	}
}

// region is the one that begins at a value which is taken more than once.
func (s *site) region(in program.ID) (r region, ok bool) {
	v, takers := s.Values[in], s.takers(in)
	if v.Weight != "" || !isFloat(v) || len(v.Shape) < 3 || len(takers) < 2 || s.constant(in) {
		return r, false
	}
	r.in = in
	last := takers[len(takers)-1] // by then all that is open has to be one value
	open := []program.ID{in}
	for i := takers[0]; i < len(s.Ops) && len(r.at) < mostRegion; i++ {
		o := s.Ops[i]
		if !s.takes(i, open...) {
			continue
		}
		r.at = append(r.at, i)
		for _, id := range o.Out {
			if id != program.None {
				open = append(open, id)
			}
			if t := s.takers(id); id != s.Out && len(t) > 0 {
				last = max(last, t[len(t)-1])
			}
		}
		later := slices.DeleteFunc(slices.Clone(open), func(id program.ID) bool { t := s.takers(id); return len(t) == 0 || t[len(t)-1] <= i })
		if len(o.Out) != 1 || i < last && !slices.Equal(o.Out, later) {
			continue
		}
		r.out = o.Out[0]
		if same := slices.Equal(s.shape(r.out), v.Shape); same || size(s.shape(r.out)) != size(v.Shape) {
			return r, same && len(r.at) > 2
		} // else its numbers are there, and wait for the view that puts them as they were
	}
	return r, false
}

// title is the code of a region's last operator.
func (s *site) title(r region) string {
	last := r.at[len(r.at)-1]
	if f := Frame(s.Piece, last); f >= 0 {
		return strings.TrimSpace(s.Frames[f].Text)
	}
	return s.Ops[last].Name
}

// regions leaves some out, and puts what goes into them in another order of its last axis.
func (s *site) regions(set []region) {
	var at, last []int
	var ins, outs []program.ID
	for _, r := range set {
		at, last = append(at, r.at...), append(last, r.at[len(r.at)-1])
		ins, outs = append(ins, r.in), append(outs, r.out)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	title, shape := s.title(set[0]), s.shape(ins[0])
	s.addAt("drop", 1, title+" left out", last, func(w *writer, o program.Op) { w.pass(o, ins[slices.Index(outs, o.Out[0])]) })
	n := shape[len(shape)-1]
	for _, a := range []int{2, n / 2} {
		if a > 1 && a < n && n%a == 0 {
			s.conjugate(at, ins, outs, a, text("what goes into %s, as %d×%d → %d×%d, and back after it", title, a, n/a, n/a, a))
		}
	}
}

// conjugate puts what goes into operators in another order of its last axis, and what comes out of them back: what
// the candidate has works on neighbours, say, where the reference works on halves.
func (s *site) conjugate(at []int, in, out []program.ID, a int, what string) {
	turned := map[program.ID]program.ID{}
	s.addAt("conjugation", 5, what, at, func(w *writer, o program.Op) {
		for _, id := range o.Operands() {
			if _, ok := turned[id]; !ok && slices.Contains(in, id) {
				turned[id] = w.turn(id, len(w.shape(id))-1, a, 0)
			}
		}
		if o.Args = renamed(o.Args, turned); len(o.Out) == 1 && slices.Contains(out, o.Out[0]) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				n := w.shape(id)
				return w.turn(id, len(n)-1, n[len(n)-1]/a, 0)
			})
			return
		}
		w.ops = append(w.ops, o)
	})
}

// alsoTo does a region to a value that lies as one of those to which it is done.
func (s *site) alsoTo(all []region) {
	for id, v := range s.values() {
		m := s.made(id).Name
		k := slices.IndexFunc(all, func(r region) bool { return slices.Equal(v.Shape, s.shape(r.in)) && m != "" && m == s.made(r.in).Name })
		if k < 0 || !isFloat(v) || slices.ContainsFunc(all, func(r region) bool { return r.in == id || r.out == id }) {
			continue
		}
		r, takers := all[k], s.takers(id)
		if len(takers) == 0 || takers[0] <= r.at[0] {
			continue
		}
		s.instead("twice", 3, s.title(r)+", to the "+m+" after it, too", takers, []program.ID{id}, func(w *writer, id program.ID) program.ID {
			now := map[program.ID]program.ID{r.in: id}
			for _, i := range r.at {
				w.again(s.Ops[i], now, func(_ int, id program.ID) []int { return s.shape(id) })
			}
			return now[r.out]
		})
	}
}
