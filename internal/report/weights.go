package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/weights"
)

var nan = Float(math.NaN())

// KindWeights is the kind of a verdict about the weights that an engine loaded.
const KindWeights = "weights"

// Weighs adds the comparison of weights to a report. A wrong one is the verdict, unless the runs were
// given other texts or tokens; what the tensors show follows from it.
func (r *Report) Weighs(list []weights.Result) {
	r.Weights = list
	if len(r.wrongWeights()) == 0 || r.otherPrompt() || r.Verdict == Error && r.Error != NothingCompared {
		return
	}
	r.Verdict, r.Kind, r.Error = Fail, KindWeights, ""
	var causes []Cause
	for _, w := range r.wrongWeights() {
		if w.Cause != "" && len(causes) < maxCauses {
			causes = append(causes, Cause{ID: w.Cause, Layer: strings.TrimSuffix(strings.TrimSuffix(w.Reference, ".weight"), ".bias"), Proven: true,
				Fit: nan, FitGolden: nan, Text: "the loaded weight " + w.String()})
		}
	}
	r.Causes = append(causes, r.Causes...)
	if r.Causes == nil {
		r.Causes = []Cause{}
	}
}

// wrongWeights are those that are not the reference's.
func (r *Report) wrongWeights() []weights.Result {
	return slices.DeleteFunc(slices.Clone(r.Weights), func(w weights.Result) bool { return w.Good() })
}

// judgedWeights is of how many the comparison says anything.
func (r *Report) judgedWeights() (n int) {
	for _, w := range r.Weights {
		if w.Judged() {
			n++
		}
	}
	return n
}

// weightStage is what came of the stage, "" if it was not judged.
func (r *Report) weightStage() Status {
	switch {
	case r.judgedWeights() == 0:
		return ""
	case len(r.wrongWeights()) > 0:
		return StatusFail
	}
	return StatusPass
}

// weighed is what came of the weights in a line: "2 of 30 weights are not the reference's: a: all
// zeros".
func (r *Report) weighed() string {
	wrong := r.wrongWeights()
	switch n := r.judgedWeights(); {
	case n == 0:
		return fmt.Sprintf("none of %s could be judged", count(len(r.Weights), "weight"))
	case len(wrong) == 0:
		return fmt.Sprintf("%d of %s are the reference's", n, count(n, "weight"))
	}
	return fmt.Sprintf("%d of %s not the reference's, first %s", len(wrong), several(len(r.Weights), "weight", "s are"), Clean(wrong[0].String()))
}
