package testmain_test

import (
	"testing"

	"github.com/goparity/goparity/testmain"
)

// TestMain of a package with two fixtures; tests choose one with parity.Use.
func ExampleMain() {
	_ = func(m *testing.M) {
		testmain.Main(m, testmain.Fixture("fixtures/minilm"), testmain.Fixture("fixtures/tinyllama"))
	}
}
