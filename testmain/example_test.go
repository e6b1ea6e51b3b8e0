package testmain_test

import (
	"math"
	"strings"
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

// A package with parity tests has a TestMain that names its fixture; with several, tests choose one
// with parity.Use.
func ExampleMain() {
	TestMain := func(m testmain.TestingM) { // a *testing.M
		testmain.Main(m, testmain.Fixture("toy"))
	}
	TestToy := func(t *testing.T) {
		parity.All(t).Check()
	}
	goTest("ExampleMain", TestMain, TestToy)
	// Output:
	// parity: toy: PASS: compared 1 of 1 output, worst row rel. L2 0 at norm output, limit 1e-4
}

// A cause of your own: this candidate is known to scale the output of its norms by the square root
// of the width.
func ExampleHypotheses() {
	scaled := parity.HypothesisFunc(func(s *parity.Scene) []parity.Prediction {
		if s.Target == nil || !strings.HasSuffix(s.Target.Layer, "norm") || s.Target.Port != "output" {
			return nil
		}
		golden := s.Golden(s.Target)
		root := math.Sqrt(float64(golden.Width()))
		return []parity.Prediction{{ID: "house/norm-scale",
			Text:  "the norm is multiplied by the square root of its width",
			Value: golden.Map(func(x float64) float64 { return root * x })}}
	})
	_ = func(m *testing.M) {
		testmain.Main(m, testmain.Fixture("fixtures/minilm"), testmain.Hypotheses(scaled))
	}
}
