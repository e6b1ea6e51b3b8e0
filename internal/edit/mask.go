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
	filled := func(w *writer, id program.ID, all int) program.ID {
		return w.call("full", id, nil, "size", v.Shape, "fill_value", all)
	}
	s.then("mask", 1, "mask inverted", func(w *writer, id program.ID) program.ID { return w.one("bitwise_not", id) })
	s.then("mask", 1, "mask true everywhere", func(w *writer, id program.ID) program.ID { return filled(w, id, 1) })
	s.then("mask", 1, "mask false everywhere", func(w *writer, id program.ID) program.ID { return filled(w, id, 0) })
	n := len(v.Shape)
	if n < 2 || v.Shape[n-1] < 2 || v.Shape[n-2] < 2 {
		return
	}
	for _, k := range []int{0, -1, 1} {
		s.then("mask", 2, text("mask → lower triangle at %d", k), func(w *writer, id program.ID) program.ID {
			return w.call("tril", id, nil, "self", filled(w, id, 1), "diagonal", k)
		})
	}
	for width := 1; width < min(v.Shape[n-1], mostWindow); width++ {
		s.then("mask", 4, text("mask and a window of %d", width), func(w *writer, id program.ID) program.ID {
			return w.call("triu", id, nil, "self", id, "diagonal", v.Shape[n-1]-v.Shape[n-2]+1-width)
		})
	}
}
