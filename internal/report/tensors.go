package report

import (
	"fmt"
	"strings"
)

// judgedTensors are the rows of one pass: those of paths and of generations are not among them. Inputs are evidence.
func judgedTensors(r *Report) (list []Judged) {
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Stage == "" && !l.IsInput() && (l.compared() || l.failing()) && (r.Verdict != Error || l.Status != StatusError) {
			list = append(list, Judged{Status: l.Status, row: l})
		}
	}
	for _, p := range r.Paths {
		if p.OnePass != nil {
			list = append(list, Judged{Name: "one pass of " + p.Path, Status: statusOf(true, !p.OnePass.Holds), Count: p.OnePass.Outputs})
		}
	}
	return list
}

func tensorsHeadline(r *Report) string {
	compared, names := r.compared(), namingOf(r.Layers)
	if worst := r.worst(); r.Verdict == Pass && len(worst) > 0 {
		w := worst[0]
		line := fmt.Sprintf("%s, worst row rel. L2 %s at %s", compared, num(w.figures().RowRelL2), names.row(w))
		if w.Limit() != "" {
			line += ", limit " + strings.TrimPrefix(w.Limit(), "row ")
		}
		return line
	}
	switch d, l := r.FirstDivergence, r.divergent(); {
	case d == nil && l == nil:
		return compared
	case d == nil:
		return fmt.Sprintf("%s %s; %s", names.row(l), failWord[l.Status], compared)
	case d.Layer == "" && r.Kind == "unordered":
		return "which layer is wrong first is not known; " + compared
	case d.Layer == "":
		return r.Kind + ": no layer by itself is wrong; " + compared
	}
	return r.first() + "; " + compared
}
