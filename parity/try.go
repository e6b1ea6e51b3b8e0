package parity

import (
	"testing"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/tensor"
)

// TryInput is what a calculation is made of: the tensors of one side in one forward pass.
type TryInput struct {
	Inputs map[string]*tensor.Tensor // of the layer, by port: "input_0"
	Run    map[string]*tensor.Tensor // of the layer, its inside and its siblings, by label: "model.norm-output"
	Golden bool                      // the golden side; false for the candidate's
}

// Try reports how well a calculation of your own fits a layer: it checks a fix, or a guess at what
// the candidate does, before anything is compiled again. It is called with the candidate's inputs,
// to see whether it explains what the candidate has, and with the golden ones, to see whether it is
// right. The test fails if it does neither in some forward pass. Both numbers are logged and
// returned, one Fits for each pass.
func Try(t *testing.T, layer string, calculate func(TryInput) (*tensor.Tensor, error)) []Fits {
	t.Helper()
	c := scopeOf(t).open()
	trials, err := c.Trials(layer, "")
	if err != nil {
		t.Fatalf("parity.Try: %v", err)
	}
	var out []Fits
	for _, trial := range trials {
		f, err := try(trial, calculate)
		if err != nil {
			t.Fatalf("parity.Try of %s, case %s, step %s: %v", trial.Layer, trial.Case, trial.Step, err)
		}
		t.Logf("%s %s, case %s, step %s: the candidate is off the golden by %.2e; the calculation is off the "+
			"candidate by %.2e, and from the golden inputs off the golden by %.2e",
			trial.Layer, trial.Port.Port, trial.Case, trial.Step, f.Between, f.Candidate, f.Golden)
		if !f.Proven && !f.Right {
			t.Errorf("parity.Try: the calculation of %s neither explains the candidate nor does what the reference "+
				"does", trial.Layer)
		}
		out = append(out, f)
	}
	return out
}

func try(trial *judge.Trial, calculate func(TryInput) (*tensor.Tensor, error)) (f Fits, err error) {
	var made [2]*tensor.Tensor
	for i, run := range []map[string]*tensor.Tensor{trial.ActualRun, trial.GoldenRun} {
		if made[i], err = calculate(TryInput{Inputs: trial.Inputs(run), Run: run, Golden: i == 1}); err != nil {
			return f, err
		}
	}
	fits, err := trial.Judge(made[0], made[1])
	return Fits(fits), err
}
