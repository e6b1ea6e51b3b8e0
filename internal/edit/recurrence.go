package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// forgets empties the state that a loop carries before one of its runs, where a scan that works in chunks begins anew.
func forgets(s *site) {
	type step struct {
		stack int
		name  string
	}
	of := func(i int) step { return step{s.Ops[i].Stack, s.Ops[i].Name} }
	first, run := map[step]int{}, map[step]int{}
	for i := range s.Ops {
		if _, seen := first[of(i)]; !seen {
			first[of(i)] = i
		}
	}
	for i, o := range s.Ops {
		v, ok := s.result(o)
		if !s.looped[i] || !ok || !isFloat(v) {
			continue
		}
		next := slices.DeleteFunc(s.takers(o.Out[0]), func(t int) bool { return !s.looped[t] || first[of(t)] >= first[of(i)] })
		if len(next) == 0 {
			continue // nothing that the next run takes
		}
		if run[of(i)]++; run[of(i)] > mostPositions {
			return
		}
		s.instead("state", 0, text("the state is empty again behind run %d of the loop", run[of(i)]), next, o.Out,
			func(w *writer, id program.ID) program.ID { return w.call("mul", id, nil, "self", id, "other", 0.0) }).ID = "ssm/state"
	}
}
