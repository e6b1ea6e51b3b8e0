package diagnose_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/diagnose"
)

// Where not all was recorded nothing is proven, and only what fits as well as a proof is said.
func TestOpenScene(t *testing.T) {
	w := newLeafWorld()
	noise := leafRandom(29, len(w.out))
	twice := w.out.each(func(x float64) float64 { return 2 * x })
	near := twice.where(func(int, int) bool { return true }, func(i int, x float64) float64 { return x + 0.05*noise[i] })
	for _, c := range []struct {
		open          bool
		actual        values
		shown, proven bool
		reason        string
	}{
		{false, leafNoisy(twice), true, true, "all was recorded, and it fits"},
		{false, near, true, false, "it fits to some per cent"},
		{true, leafNoisy(twice), true, false, "it fits, but the error may be before it"},
		{true, near, false, false, "some per cent say nothing of what was not recorded"},
	} {
		s := w.scene(t, c.actual)
		s.Open = c.open
		causes := diagnose.Diagnose(context.Background(), s)
		assert.Equal(t, c.shown, len(causes) > 0, c.reason)
		if c.shown {
			assert.Equal(t, "value/scale", causes[0].ID, c.reason)
			assert.Equal(t, c.proven, causes[0].Proven, c.reason)
		}
	}
}
