package session_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/session"
)

// Texts, weights and problems open the runs, and judge no output.
func TestComparedIsNotJudged(t *testing.T) {
	s, _ := start(t, func(*session.Config) {})
	assert.Empty(t, s.Unjudged(), "no test used it: Unused says so")
	c, err := s.Default().Comparison()
	require.NoError(t, err)
	if assert.Len(t, s.Unjudged(), 1) {
		assert.Contains(t, s.Unjudged()[0], "tensors (cases in fixture.yaml): call parity.All(t).Check()")
	}
	for _, p := range c.Ports {
		p.Decide(nil, "")
	}
	assert.Empty(t, s.Unjudged())
}
