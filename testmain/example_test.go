package testmain_test

import "github.com/goparity/goparity/testmain"

// A package with parity tests has a TestMain that names its fixture; with several, tests choose one
// with parity.Use.
func ExampleMain() {
	TestMain := func(m testmain.TestingM) { // a *testing.M
		testmain.Main(m, testmain.Fixture("fixtures/toy"))
	}
	_ = TestMain
}
