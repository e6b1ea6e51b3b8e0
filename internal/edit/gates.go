package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// gates lets a gate and what it gates lie otherwise in what both are cut from: exchanged, or each every second element
// and not one after the other.
func gates(s *site) {
	o := s.first()
	x, ok := o.Args.Get("self").(program.ID)
	d, _ := o.Args.Get("dim").(int)
	switch {
	case ok && o.Name == "glu":
		s.add("slice", 2, "halves of glu exchanged", func(w *writer, o program.Op) {
			shape := slices.Clone(w.value(x).Shape)
			d := (d + len(shape)) % len(shape)
			n := shape[d] / 2
			shape[d] = n
			first := w.call("slice", x, shape, "self", x, "dim", d, "start", 0, "end", n, "step", 1)
			second := w.call("slice", x, shape, "self", x, "dim", d, "start", n, "end", 2*n, "step", 1)
			w.run(o, o.Name, with(o.Args, "self", w.call("cat", x, nil, "tensors", []program.ID{second, first}, "dim", d)))
		})
	case ok && o.Name == "slice":
		s.cut(x, o.Args.Get("dim"))
	}
}

// cut exchanges parts one after the other and interleaved ones, where slices along an axis leave nothing of a value.
func (s *site) cut(x program.ID, dim any) {
	shape := s.shape(x)
	d, _ := dim.(int)
	d = (d + len(shape)) % len(shape)
	var at []int
	for i, o := range s.Ops {
		if of, ok := o.Args.Get("self").(program.ID); ok && o.Name == "slice" && of == x && o.Args.Get("dim") == dim {
			at = append(at, i)
		}
	}
	q := len(at)
	if q < 2 || q > mostParts || at[0] != s.group[0] || shape[d]%q != 0 {
		return
	}
	n, strided, joined := shape[d]/q, true, true
	for k, i := range at {
		start, _ := s.Ops[i].Args.Get("start").(int)
		step, _ := s.Ops[i].Args.Get("step").(int)
		v, _ := s.result(s.Ops[i])
		strided = strided && start == k && step == q
		joined = joined && start == k*n && step == 1 && v.Shape[d] == n
	}
	rewrite := func(what string, of func(k int) (start, end, step int)) {
		s.addAt("slice", 2, what, at, func(w *writer, o program.Op) {
			k := slices.IndexFunc(at, func(i int) bool { return s.Ops[i].Out[0] == o.Out[0] })
			start, end, step := of(k)
			w.slice(o, d, start, end, step, o.Out[0])
		})
	}
	switch {
	case strided:
		rewrite("parts interleaved → one after the other", func(k int) (int, int, int) { return k * n, (k + 1) * n, 1 })
	case joined:
		rewrite("parts one after the other → interleaved", func(k int) (int, int, int) { return k, shape[d], q })
	}
}
