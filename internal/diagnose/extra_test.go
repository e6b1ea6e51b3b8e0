package diagnose_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/diagnose"
	_ "github.com/goparity/goparity/internal/updateflag"
)

// What a user wrote neither holds the report up nor takes it along.
func TestHypothesesOfUsers(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for _, c := range []struct {
		predict func()
		want    string
		reason  string
	}{
		{func() { <-end }, "did not end within the time", "one that never ends"},
		{func() { panic("mine") }, "a hypothesis failed: mine", "one that panics"},
		{runtime.Goexit, "ended its goroutine", "t.FailNow of another test"},
		{func() {}, "", "one that has nothing to say"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		said := ""
		s := &diagnose.Scene{Run: &diagnose.Run{}, Failed: func(err error) { said += err.Error() }}
		h := diagnose.Func(func(*diagnose.Scene) []diagnose.Prediction { c.predict(); return nil })
		assert.Empty(t, diagnose.Diagnose(ctx, s, nil, h), c.reason)
		assert.Contains(t, said, c.want, c.reason)
		assert.Equal(t, c.want == "", said == "", c.reason)
		cancel()
	}
}
