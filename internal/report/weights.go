package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/weights"
)

var nan = Float(math.NaN())

// SetWeights adds the comparison of weights to a report. What the tensors show follows from a wrong one, and stays.
func (r *Report) SetWeights(list []weights.Result) {
	r.Weights = list
	wrong := r.wrongWeights()
	if len(wrong) == 0 {
		return
	}
	causes := []Cause{}
	for _, w := range wrong {
		if w.Cause != "" && len(causes) < maxFew {
			layer := strings.TrimSuffix(strings.TrimSuffix(w.Reference, ".weight"), ".bias")
			causes = append(causes, Cause{ID: w.Cause, Layer: layer, Proven: true, Fit: nan, FitGolden: nan,
				Text: "the loaded weight " + w.String()})
		}
	}
	r.Join(&Report{Verdict: Fail, Kind: KindWeights, FirstDivergence: r.FirstDivergence, Frontier: r.Frontier,
		Causes: append(causes, r.Causes...)})
}

// wrongWeights are those that are not the reference's.
func (r *Report) wrongWeights() []weights.Result {
	return slices.DeleteFunc(slices.Clone(r.Weights), func(w weights.Result) bool { return w.Good() })
}

// weighed is what came of the weights: "2 of 30 weights are not the reference's, first a: all zeros".
func (r *Report) weighed() string {
	n, wrong := len(r.Weights), r.wrongWeights()
	judged := len(slices.DeleteFunc(judgedWeights(r), func(j Judged) bool { return j.Status == NotJudged }))
	switch {
	case judged == 0:
		return "none of " + count(n, "weight") + " could be judged"
	case len(wrong) == 0:
		return fmt.Sprintf("%d of %s are the reference's", judged, count(judged, "weight"))
	}
	return fmt.Sprintf("%d of %s %s not the reference's, first %s", len(wrong), count(n, "weight"), are(n), Clean(wrong[0].String()))
}

func judgedWeights(r *Report) (list []Judged) {
	for _, w := range r.Weights {
		list = append(list, Judged{Name: cmp.Or(w.Reference, w.Candidate), Text: w.Detail, Status: statusOf(w.Judged(), !w.Good())})
	}
	return list
}

func weightsHeadline(r *Report) string { return joined("; ", r.weighed(), r.first(), r.compared()) }

// weights lists the weights that are wrong.
func (d *composer) weights() {
	if len(d.r.Weights) == 0 {
		return
	}
	s := Section{Heading: "Weights", Lines: lines("", d.r.weighed())}
	for _, w := range d.r.wrongWeights() {
		s.Lines = append(s.Lines, Line{Text: w.String(), Level: 1})
	}
	d.add(s, maxLines+1)
}
