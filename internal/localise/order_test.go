package localise_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
)

func TestUnordered(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          place
		frontier      []string
		reason        string
	}{
		{"taps", `
out tap e=0.02
probs tap e=0.03
scores tap e=0.1`, place{kind: "unordered"}, []string{"out", "probs", "scores"}, "the alphabet accuses no layer"},
		{"one of them agrees", `
out tap e=0.02
probs tap
scores tap e=0.1`, place{kind: "unordered"}, []string{"out", "scores"}, "what agrees did nothing"},
		{"only one", `
out tap
scores tap e=0.1`, place{kind: "local", layer: "scores"}, []string{"scores"}, "nothing else may have been first"},
		{"inputs tell", `
a tap
lin input_0
lin output e=0.2
z input_0 e=0.2
z output e=0.3`, place{kind: "local", layer: "lin"}, []string{"lin"}, "its input agrees, whatever ran before"},
		{"numbers tell", `
m.0.x tap e=0.2
m.1.x tap e=0.3`, place{kind: "local", layer: "m.0.x"}, []string{"m.0.x"}, "blocks run by their numbers"},
		{"wrong alone", `
out tap e=0.02 alone=0.2
scores tap e=0.1`, place{kind: "local", layer: "out"}, []string{"out"}, "it made an error of its own"},
		{"a rival got something wrong", `
out tap e=0.02
scores input_0 e=0.1
scores output e=0.1`, place{kind: "unordered"}, []string{"out", "scores"}, "the wrong input of scores may have come before out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := run(recorded(t, c.records))
			given.Unordered = map[string]bool{"a": true}
			got := localise.First(given)
			require.NotNil(t, got)
			assert.Equal(t, c.want, placeOf(got), c.reason)
			assert.Equal(t, c.frontier, got.Frontier, c.reason)
			if c.want.kind == "unordered" {
				assert.Empty(t, got.Blame("a", "0", c.frontier[1]), "an unknown order excuses no layer")
			}
		})
	}
}
