package report

import (
	"fmt"
	"strings"
)

// judgedTensors are the rows of one pass: those of paths and of generations are not among them. Inputs are evidence.
func judgedTensors(r *Report) (list []Judged) {
	for _, l := range r.rows(func(l *Layer) bool { return l.Stage == "" && !l.IsInput() && (l.compared() || l.failing()) }) {
		if r.Verdict != Error || l.Status != StatusError {
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
	compared, names, l := r.compared(), namingOf(r.Layers), r.divergent()
	if worst := r.worst(); r.Verdict == Pass && len(worst) > 0 {
		w := worst[0]
		line := fmt.Sprintf("%s, worst row rel. L2 %s at %s", compared, num(w.figures().RowRelL2), names.row(w))
		if w.Limit() != "" {
			line += ", limit " + strings.TrimPrefix(w.Limit(), "row ")
		}
		return line
	}
	first := r.first()
	switch {
	case r.FirstDivergence == nil && l != nil:
		first = names.row(l) + " " + failWord[l.Status]
	case r.FirstDivergence == nil || first != "":
	case r.Kind == "unordered":
		first = "which layer is wrong first is not known"
	default:
		first = r.Kind + ": no layer by itself is wrong"
	}
	return joined("; ", first, compared)
}
