// Package port is what a user's repository looks like: a fixture, TestMain, and one line a test.
package port

import (
	"testing"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/blocks")) }

// TestBlocks fails: the recorded port has a wrong activation in block 1.
func TestBlocks(t *testing.T) {
	parity.Layer(t, "embed_tokens").Within(0, 0)
	parity.Layers(t, "layers.*.norm").With("rel_l2", 1e-5).Within(1e-5, 1e-4)
	parity.All(t).Check()
}
