package supervise_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
)

func TestDeadline(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now            time.Duration // since began
		timeout, grace time.Duration
		left           time.Duration
		ok             bool
		reason         string
	}{
		{0, 0, 10 * time.Second, 0, false, "with -timeout 0 there is no alarm"},
		{0, 10 * time.Minute, 10 * time.Second, 10*time.Minute - 11*time.Second, true,
			"the grace and a second for the report"},
		{7 * time.Minute, 10 * time.Minute, 10 * time.Second, 3*time.Minute - 11*time.Second, true,
			"time that has passed counts"},
		{0, 8 * time.Second, 10 * time.Second, 6 * time.Second, true, "a short timeout leaves three quarters"},
		{11 * time.Minute, 10 * time.Minute, 10 * time.Second, 0, true, "too late"},
	} {
		now := began.Add(c.now)
		d, ok := deadline(t, now, c.timeout, began, c.grace)
		require.Equal(t, c.ok, ok, c.reason)
		if ok {
			assert.Equal(t, c.left, d.Sub(now), c.reason)
		}
	}
	d, ok := deadline(t, began, time.Minute, time.Time{}, 10*time.Second)
	assert.True(t, ok)
	assert.Equal(t, 49*time.Second, d.Sub(began), "tests that have not begun have all of their time")
}

func deadline(t *testing.T, now time.Time, timeout time.Duration, began time.Time, grace time.Duration) (time.Time, bool) {
	ctx, cancel := supervise.WithDeadline(t.Context(), now, timeout, began, grace)
	defer cancel()
	return ctx.Deadline()
}
