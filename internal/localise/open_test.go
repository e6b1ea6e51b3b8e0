package localise_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
)

// A layer is said to be wrong only where all that went into it was recorded on both sides.
func TestOpenPlaces(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          place
		text          string // of the place, "" for a closed one
		proven        bool
		reason        string
	}{
		{"outputs only", `
m.0.up input_0 lone same=1
m.0.up output same=2
m.0.act input_0 lone same=2
m.0.act output e=0.2
m.0 output e=0.2
m output e=0.2`, place{"local", "m.0.act", "m.0.up", ""}, "in m.0.act, or between m.0.up and m.0.act", false,
			"the candidate may have given act something else"},
		{"the reference recorded outputs only", `
m.0 output
m.1 output e=0.2
m output e=0.2`, place{"local", "m.1", "m.0", ""}, "in m.1, or between m.0 and m.1", false,
			"what it is given is not known at all"},
		{"the first of all", `
m.0 output e=0.2
m output e=0.2`, place{"local", "m.0", "", ""}, "in m.0, or before it", false, "nothing before it agrees"},
		{"embeddings and the whole", `
m.embed input_0
m.embed output same=1
m.0 input_0 lone same=1
m.0 output lone same=2
m.1 input_0 lone same=2
m.1 output lone same=3
m input_0
m output e=0.9 same=3`, place{"between", "m", "m.embed", ""}, "in m, or between m.embed and m", false,
			"none of the blocks was recorded"},
		{"a block that was not recorded", `
m.0 output same=1
m.1 input_0 lone same=1
m.1 output lone same=2
m.2.lin output lone same=9
m.2 input_0 lone same=2
m.2 output lone same=3
m.3 input_0 e=0.2 same=3
m.3 output e=0.2
m output e=0.2`, place{"between", "m", "m.0", "m.3"}, "between m.0 and m.3", false, "m.1 or m.2, or their inputs"},
		{"an activation that was not recorded", `
m.up input_0
m.up output same=1
m.act input_0 lone same=1
m.act output lone same=2
m.down input_0 e=0.2 same=2
m.down output e=0.2
m output e=0.2`, place{"between", "m", "m.up", "m.down"}, "", true,
			"what it takes and what it returns were recorded under other names"},
		{"what has no part in it", `
m.embed input_0
m.embed output same=1
m.rope input_0 lone same=7
m.rope output lone same=2
m.0 input_0 e=0.2
m.0 input_1 lone same=2
m.0 output e=0.2
m output e=0.2`, place{"between", "m", "m.embed", "m.0"}, "", true, "m.0 took it as another input"},
		{"a block that the candidate has not got", `
m.0 output same=1
m.1 input_0 lone same=1
m.1.lin output lone same=8
m.1 output lone same=2
m.norm input_0 e=0.2 same=2 twin=m.0
m.norm output e=0.2
m output e=0.2`, place{"between", "m", "m.0", "m.norm"}, "", true, "the norm got the very bytes of m.0"},
		{"the beginning of a container", `
m.0 input_0 lone
m.0.lin input_0 e=0.2
m.0.lin output e=0.2
m.0 output e=0.2
m output e=0.2`, place{"between", "m.0", "", "m.0.lin"}, "before m.0.lin", false, "what m.0 got was not compared"},
		{"roundings of what was not recorded", `
m.0 input_0 eps=8e-3
m.0.lin output lone
m.0 output e=0.1 eps=8e-3
m output e=0.1 eps=8e-3`, place{"local", "m.0", "", ""}, "in m.0", false, "in 16 bits they may add up to it"},
		{"more than roundings of what was not recorded", `
m.0 input_0 eps=8e-3
m.0.lin output lone
m.0 output e=0.4 eps=8e-3
m output e=0.4 eps=8e-3`, place{"local", "m.0", "", ""}, "", true, "too much for them"},
		{"wrong on golden inputs", `
m.0 input_0 lone
m.0 output e=0.2 alone=0.2
m output e=0.2`, place{"local", "m.0", "", ""}, "", true, "it is the layer, whatever it got"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := localise.First(run(recorded(t, c.records)))
			require.NotNil(t, got)
			assert.Equal(t, c.want, placeOf(got), c.reason)
			assert.Equal(t, [2]any{c.text, c.proven}, [2]any{got.Place, got.Proven}, c.reason)
			assert.Contains(t, got.Text, c.text, c.reason)
			if c.text != "" {
				assert.True(t, got.Open, c.reason)
			}
		})
	}
}
