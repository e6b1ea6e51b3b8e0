package report

import (
	"fmt"
	"strings"
)

// judgedTensors looks at the rows of one pass: those of paths and of generations are not among them.
func judgedTensors(r *Report) []Judged {
	judged, fails := false, false
	for i := range r.Layers {
		if l := &r.Layers[i]; l.Stage == "" && !l.IsInput() && (r.Verdict != Error || l.Status != StatusError) {
			judged, fails = judged || l.compared() || l.failing(), fails || l.failing()
		}
	}
	for _, p := range r.Paths {
		if p.OnePass != nil {
			judged, fails = true, fails || !p.OnePass.Holds
		}
	}
	// A verdict about a later stage says that these hold. Rows of older versions do not tell whose they are.
	later := r.Verdict == Fail && placeOf(r.stage()) > placeOf(StageTensors)
	return []Judged{{Name: "all", Status: statusOf(judged, fails && !later)}}
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
