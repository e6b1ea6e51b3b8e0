package testmain_test

import (
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
