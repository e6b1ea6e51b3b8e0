package edit

import (
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// masks makes a result of bools another one.
func masks(s *site) {
	v, ok := s.result(s.first())
	if !ok || v.DType != tensor.Bool {
		return
	}
	s.then("mask", 1, "mask inverted", func(w *writer, id program.ID) program.ID { return w.call("bitwise_not", id, nil, "self", id) })
	for _, all := range []int{1, 0} {
		what := map[int]string{1: "mask true everywhere", 0: "mask false everywhere"}[all]
		s.add("mask", 1, what, func(w *writer, o program.Op) { w.run(o, "full", argsOf([]any{"size", v.Shape, "fill_value", all})) })
	}
	n := len(v.Shape)
	if n < 2 || v.Shape[n-1] < 2 || v.Shape[n-2] < 2 {
		return
	}
	for _, k := range []int{0, -1, 1} {
		s.then("mask", 2, text("mask → lower triangle at %d", k), func(w *writer, id program.ID) program.ID {
			all := w.call("full", id, nil, "size", v.Shape, "fill_value", 1)
			return w.call("tril", id, nil, "self", all, "diagonal", k)
		})
	}
	for width := 1; width < min(v.Shape[n-1], mostWindow); width++ {
		s.then("mask", 4, text("mask and a window of %d", width), func(w *writer, id program.ID) program.ID {
			return w.call("triu", id, nil, "self", id, "diagonal", v.Shape[n-1]-v.Shape[n-2]+1-width)
		})
	}
}
