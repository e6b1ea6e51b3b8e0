package supervise_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/supervise"
)

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("{\"phase\":\"import\"}\n\n{\"phase\":\"load\"}\r\nno end"), 0)
	f.Add([]byte("\nafter\n"), 64<<10)
	f.Fuzz(func(t *testing.T, text []byte, pad int) {
		if pad < 0 || pad > 200<<10 {
			t.Skip("long enough")
		}
		text = append(bytes.Repeat([]byte("x"), pad), text...)
		var got, want []string
		last := supervise.ReadLines(bytes.NewReader(text), func(line []byte) { got = append(got, string(line)) })
		for _, line := range bytes.Split(text, []byte("\n")) {
			if line = bytes.TrimRight(line[:min(len(line), 64<<10)], "\r"); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		assert.Equal(t, want, got)
		if len(want) > 0 {
			assert.Equal(t, want[len(want)-1], last)
		}
	})
}
