// Package decode is an engine that is right as long as it gets a whole prompt at once: with tokens in
// its cache, its positions are off by one.
package decode

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/tiny")) }

// TestEngine passes in one pass and along batch and repeat, and fails along decode and chunked.
func TestEngine(t *testing.T) {
	e, err := load("fixtures/tiny/model/model.safetensors", true)
	if err != nil {
		t.Fatal(err)
	}
	parity.Func(t, e.run)
	parity.All(t).Check()
	parity.Paths(t).Check()
}
