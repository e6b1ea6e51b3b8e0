package localise_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
)

// recorded reads lines "layer port [key=value …]" in execution order: e the error (≥ 1e-4
// disagrees), alone that of the run on golden inputs, same the number of equal bytes, grid and
// along as in Record; lone is the golden's only, int holds integers.
func recorded(t *testing.T, text string) []row {
	t.Helper()
	const floor = 1e-4
	var out []row
	for line := range strings.Lines(strings.TrimSpace(text)) {
		f := strings.Fields(line)
		require.GreaterOrEqual(t, len(f), 2, line)
		r := row{entry(f[0], f[1], len(out)), localise.Record{Joined: true, Epsilon: 1e-7, Error: 1e-6}}
		for _, opt := range f[2:] {
			key, value, _ := strings.Cut(opt, "=")
			x := number(value)
			switch key {
			case "e":
				r.Error = x
			case "alone":
				r.Alone = &localise.Alone{Agrees: x <= floor, Error: x}
			case "same":
				r.Same = int(x)
			case "grid":
				r.Grid = x
			case "along":
				r.Along = x
			case "whole":
				r.Whole = x
			case "eps":
				r.Epsilon = x
			case "twin":
				r.Twin = value
			case "lone":
				r.Joined = false
			case "int":
				r.Integer = true
			default:
				t.Fatalf("unknown key in %q", line)
			}
		}
		if r.Agrees = r.Error <= floor; r.Whole == 0 {
			r.Whole = r.Error
		}
		out = append(out, r)
	}
	return out
}

func number(s string) float64 {
	switch s {
	case "":
		return 0
	case "inf":
		return math.Inf(1)
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0 // a name
	}
	return x
}

type place struct{ kind, layer, after, before string }

func placeOf(v *localise.Verdict) place {
	if v == nil {
		return place{}
	}
	return place{v.Kind, v.Layer, v.After, v.Before}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, records string
		nested        bool
		want          place
		text          string // what the verdict's sentence holds
		reason        string
	}{
		{name: "false cliff", records: `
m.0.lin output same=1
m.0 output e=0.8 same=2
m.1 input_0 same=2
m.1 output
m output`,
			want: place{kind: "capture", layer: "m.0"}, text: "input_0 of m.1",
			reason: "the next layer got what the reference recorded as the output: the recording is wrong"},
		{name: "cliff with a bug behind it", records: `
m.0 input_0
m.0 output e=0.8 same=2
m.1 input_0 same=2
m.1.lin input_0
m.1.lin output e=0.3
m.1 output e=0.3
m output e=0.3`,
			want:   place{kind: "local", layer: "m.1.lin"},
			reason: "the model's own error counts, the recording is evidence"},
		{name: "used wrongly too", records: `
m.0 input_0
m.0 output e=0.8 same=2
m.1 input_0 same=2
m.2 input_0 e=0.8 same=2
m output e=0.3`,
			want: place{kind: "local", layer: "m.0"}, reason: "one consumer got the wrong one: not only the recording"},
		{name: "two floors for one tensor", records: `
m.0 input_0
m.0.lin input_0
m.0.lin output e=1.1e-4 same=2
m.0 output e=1.1e-4
m.1 input_0 e=9.9e-5 same=2
m output e=1.1e-4`,
			want: place{kind: "local", layer: "m.0.lin"}, reason: "hardly nearer: the recording is right"},
		{name: "one file for two layers", records: `
m.0.q output
m.0.k output e=1.2 twin=m.0.q
m.0 output
m output`,
			want: place{kind: "capture", layer: "m.0.k"}, text: "same bytes as m.0.q",
			reason: "what was made of k is right"},
		{name: "a layer that does nothing", records: `
m.0.norm output
m.0.act input_0
m.0.act output e=0.5 twin=m.0.norm
m.0 output e=0.4
m output e=0.4`,
			want:   place{kind: "local", layer: "m.0.act"},
			reason: "equal bytes alone are no capture: what follows is wrong"},
		{name: "interaction", records: `
m.up input_0 alone=1e-7
m.up output e=0.2 alone=1e-7
m output e=0.2 alone=1e-7`,
			want:   place{kind: "interaction", layer: "m.up"},
			reason: "right alone, wrong in the model, its input is right"},
		{name: "interaction in a container's code", records: `
m.0.lin input_0
m.0.lin output alone=1e-7
m.0 input_0
m.0 output e=0.2 alone=1e-7
m output e=0.2`,
			want: place{kind: "interaction", layer: "m.0"}, reason: "an isolated run of the container is right"},
		{name: "no interaction with a gap", records: `
m.up input_0
m.up input_1 lone
m.up output e=0.2 alone=1e-7
m output e=0.2`,
			want: place{kind: "between", layer: "m", before: "m.up"}, text: "input_1",
			reason: "it is right on golden inputs, so the input that was not recorded is not"},
		{name: "a gap without injected run", records: `
m.up input_0
m.up input_1 lone
m.up output e=0.2
m output e=0.2`,
			want: place{kind: "local", layer: "m.up"}, text: "in m.up, or before it: m.up gives the first wrong output, and its inputs input_1 were not compared",
			reason: "a suspicion that names the gap"},
		{name: "a gap, wrong alone too", records: `
m.up input_0 lone
m.up output e=0.2 alone=0.2
m output e=0.2`,
			want: place{kind: "local", layer: "m.up"}, text: "on the golden inputs too",
			reason: "proven by the injected run"},
		{name: "nested run sees the code between", nested: true, records: `
m.0.up input_0 alone=1e-7
m.0.up output alone=1e-7
m.0.down input_0 e=0.2 alone=0.2
m.0.down output e=0.2 alone=1e-7
m.0 input_0
m.0 output e=0.2 alone=1e-7
m output e=0.2`,
			want:   place{kind: "between", layer: "m.0", after: "m.0.up", before: "m.0.down"},
			reason: "what was computed for the input is wrong; that the container's output is right on replaced inputs says nothing"},
		{name: "drift below the jump", records: `
m.0 input_0
m.0 output e=5e-6
m.1 input_0 e=5e-6
m.1 output e=3e-5
m.2 input_0 e=3e-5
m.2 output e=8e-5
m.3 input_0 e=8e-5
m.3 output e=1.5e-4
m output e=1.5e-4`,
			want: place{kind: "drift"}, text: "first beyond the noise",
			reason: "the first one above the floor doubles what came in, as clean layers do"},
		{name: "a small bug under the floor", records: `
m.0.norm input_0
m.0.norm output e=6e-5
m.0 input_0
m.0 output e=7e-5
m.1 input_0 e=7e-5
m.1 output e=1.5e-4
m output e=1.5e-4`,
			want:   place{kind: "local", layer: "m.0.norm"},
			reason: "60 times what came in: it is the source, although below the floor"},
		{name: "rounded blocks", records: `
m.0.lin output
m.0 input_0
m.0 output e=3e-4 grid=2e-4
m.1 input_0 e=3e-4
m.1 output e=5e-4 grid=2e-4
m.2 input_0 e=5e-4
m.2 output e=7e-4 grid=2e-4
m output e=7e-4`,
			want: place{kind: "drift"}, text: "each of the 3 blocks rounds",
			reason: "all blocks keep float16: none is wrong by itself"},
		{name: "rounded blocks of which only what they are given was recorded", records: `
m.0.norm input_0
m.0.norm output
m.1.norm input_0 e=3e-4 grid=2e-4
m.1.norm output e=4e-4
m.2.norm input_0 e=5e-4 grid=2e-4
m.2.norm output e=5e-4
m output e=7e-4`,
			want: place{kind: "drift"}, text: "what each of 2 blocks is given is rounded",
			reason: "it is what the blocks before returned"},
		{name: "one rounded layer", records: `
m.0.lin output
m.0 input_0
m.0 output e=3e-4 grid=2e-4
m.1 input_0 e=3e-4
m.1 output e=5e-4
m.2 input_0 e=5e-4
m.2 output e=7e-4
m output e=7e-4`,
			want: place{kind: "between", layer: "m.0", after: "m.0.lin"}, reason: "one of three: a bug of that one"},
		{name: "all in bfloat16", records: `
m.0.lin input_0
m.0.lin output e=4e-3 grid=3.9e-3
m.1.lin input_0 e=4e-3
m.1.lin output e=6e-3 grid=3.9e-3
m output e=6e-3`,
			want:   place{kind: "local", layer: "m.0.lin"},
			reason: "three digits are lost in one layer: that layer is wrong by itself"},
		{name: "noise of each block", records: `
m.0.lin output alone=1e-7
m.0 input_0
m.0 output e=2e-4 alone=2e-4
m.1.lin output alone=1e-7
m.1 input_0 e=2e-4
m.1 output e=3e-4 alone=2.2e-4
m.2.lin output alone=1e-7
m.2 input_0 e=3e-4
m.2 output e=4e-4 alone=1.9e-4
m output e=4e-4`,
			want: place{kind: "drift"}, text: "each of the 3 blocks adds about 0.0002",
			reason: "alike, small, and along nothing"},
		{name: "every block scaled a little", records: `
m.0.lin output alone=1e-7
m.0 input_0
m.0 output e=2e-4 alone=2e-4 along=1
m.1 input_0 e=2e-4
m.1 output e=3e-4 alone=2.2e-4 along=1
m.2 input_0 e=3e-4
m.2 output e=4e-4 alone=1.9e-4 along=1
m output e=4e-4`,
			want:   place{kind: "between", layer: "m.0", after: "m.0.lin"},
			reason: "the same factor everywhere is a bug, not noise"},
		{name: "every activation wrong a little", records: `
m.0.act input_0
m.0.act output e=3e-4 alone=3e-4
m.1.act input_0 e=3e-4
m.1.act output e=3e-4 alone=3e-4
m.2.act input_0 e=3e-4
m.2.act output e=3e-4 alone=3e-4
m output e=3e-4`,
			want:   place{kind: "local", layer: "m.0.act"},
			reason: "tanh GELU in all blocks: a layer without children computes one thing"},
		{name: "entered from outside", records: `
m.0.norm input_0
m.0.norm output same=1
m.0.attn.q input_0 e=0.5 same=1
m.0.attn.q output e=0.5
m.0.attn input_0 lone same=1
m.0.attn output e=0.5
m.0 input_0
m.0 output e=0.5
m output e=0.5`,
			want:   place{kind: "between", layer: "m.0", after: "m.0.norm", before: "m.0.attn.q"},
			reason: "attn takes in the tensor unchanged: it went wrong outside of it"},
		{name: "swapped gate and up", records: `
m.mlp.gate output same=1
m.mlp.up output same=2
m.mlp.act input_0 e=1.3 same=1
m.mlp.act output e=1.3
m.mlp input_0
m.mlp output e=1.3
m output e=1.3`,
			want:   place{kind: "between", layer: "m.mlp", after: "m.mlp.gate", before: "m.mlp.act"},
			reason: "the reference gives act what gate made, whatever ran last"},
		{name: "positions computed inside", records: `
m.embed.pos input_0 e=inf int same=7
m.embed.pos output e=1.2
m.embed input_0 int same=3
m.embed output e=1.2
m input_0 lone int same=3
m output e=1.2`,
			want:   place{kind: "between", layer: "m.embed", before: "m.embed.pos"},
			reason: "integers, but no input of the model"},
		{name: "ids that came from outside", records: `
m.embed.word input_0 e=inf int same=3
m.embed.word output e=1.2
m.embed input_0 lone int same=3
m.embed output e=1.2
m input_0 lone int same=3
m output e=1.2`,
			want: place{kind: "input", layer: "m.embed.word"}, reason: "they hold the same as the model's input"},
		{name: "mask", records: `
m.embed.word input_0 int
m.embed.word output
m.embed output
m.0.attn.q input_0
m.0.attn.q output
m.0.attn input_0
m.0.attn input_1 e=inf
m.0.attn.o input_0 e=0.3
m.0.attn.o output e=0.3
m.0.attn output e=0.3
m.0 input_1 e=inf
m.0 output e=0.3
m input_0 int
m input_1 e=inf int
m output e=0.3`,
			want:   place{kind: "input", layer: "m.0.attn"},
			reason: "the innermost layer that takes the mask, before anything was computed with it"},
		{name: "a stray pair", records: `
m.0.lin input_0
m.0.lin input_1 e=0.7
m.0.lin output
m.0 input_0
m.0 output
m.1.lin input_0
m.1.lin output e=0.2
m.1 output e=0.2
m output e=0.2`,
			want: place{kind: "local", layer: "m.1.lin"}, reason: "an input of which nothing wrong came is no error"},
		{name: "a scale that a norm hides", records: `
m.embed output
m.0.norm input_0 e=7 same=5
m.0.norm output
m.0.lin output
m.0 input_0 e=7 same=5
m.0 output e=0.8
m output e=0.8`,
			want:   place{kind: "between", layer: "m", after: "m.embed", before: "m.0"},
			reason: "the block's output is wrong: the input was no stray pair"},
		{name: "not a number", records: `
m.0 input_0
m.0 output e=inf
m output e=inf`,
			want: place{kind: "local", layer: "m.0"}, reason: "no finite error to reckon with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := run(recorded(t, c.records))
			given.Nested = c.nested
			got := localise.First(given)
			require.NotNil(t, got, c.reason)
			assert.Equal(t, c.want, placeOf(got), c.reason)
			assert.Contains(t, got.Text, c.text, c.reason)
		})
	}
}

func TestGrowth(t *testing.T) {
	got := localise.First(run(recorded(t, `
m.0 input_0
m.0 output e=3e-4 grid=2e-4 alone=2e-4
m.1 input_0 e=3e-4
m.1 output e=5e-4 grid=2e-4
m output e=5e-4`)))
	require.NotNil(t, got)
	require.Len(t, got.Growth, 2)
	assert.Equal(t, localise.Growth{Layer: "m.0", Error: 3e-4, Alone: 2e-4}, got.Growth[0])
	assert.Equal(t, "m.1", got.Growth[1].Layer)
	assert.True(t, math.IsNaN(got.Growth[1].Alone), "not known")
	assert.Empty(t, got.Frontier, "no layer made it")
}

// The frontier has both of two bugs, and each layer in between is blamed on what is upstream or
// inside it.
func TestFrontierAndBlame(t *testing.T) {
	const text = `
m.0.lin input_0
m.0.lin output e=0.3 alone=0.3
m.0 input_0
m.0 output e=0.3 alone=0.3
m.1.lin input_0 e=0.3
m.1.lin output e=0.4 alone=1e-7
m.1 input_0 e=0.3
m.1 output e=0.4 alone=1e-7
m.2.lin input_0 e=0.4
m.2.lin output e=0.6 alone=0.2
m.2 input_0 e=0.4
m.2 output e=0.6 alone=0.2
m output e=0.6 alone=0.5`
	both := recorded(t, text)
	standard := recorded(t, text)
	for i := range standard {
		standard[i].Alone = nil
	}
	for _, c := range []struct {
		name     string
		records  []row
		frontier []string
		blame    map[string]string
		reason   string
	}{
		{"injected", both, []string{"m.0.lin", "m.2.lin"},
			map[string]string{"m.0": "m.0.lin", "m.1.lin": "m.0.lin", "m.1": "m.0.lin", "m.2": "m.2.lin",
				"m.0.lin": "", "m.2.lin": "", "m": ""},
			"the second bug is seen on golden inputs"},
		{"standard", standard, []string{"m.0.lin"},
			map[string]string{"m.0": "m.0.lin", "m.1.lin": "m.0.lin", "m.2.lin": "m.0.lin", "m.2": "m.0.lin", "m": ""},
			"a layer that got something wrong and adds little is not accused; the model's own output is never excused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := localise.First(run(c.records))
			require.NotNil(t, got)
			assert.Equal(t, "m.0.lin", got.Layer)
			assert.Equal(t, c.frontier, got.Frontier, c.reason)
			for layer, want := range c.blame {
				assert.Equal(t, want, got.Blame("a", "0", layer), layer+": "+c.reason)
			}
		})
	}
	assert.Empty(t, (*localise.Verdict)(nil).Blame("a", "0", "m"), "no verdict blames no layer")
}

// Where large terms cancel, an output is off by far more than its input, relative to its row: what
// the layer's gain makes of the input's row is the measure.
func TestExcess(t *testing.T) {
	const cancels = `
m.0.down input_0 e=9e-5
m.0.down output e=0.03
m.0 output e=0.03
m.1.lin input_0 e=0.03
m.1.lin output e=0.05
m output e=0.05`
	for _, c := range []struct {
		name, records string
		excess        map[string]float64
		want          place
		explained     bool
		reason        string
	}{
		{"not asked", cancels, nil, place{kind: "local", layer: "m.0.down"}, false,
			"300 times what came in, and nothing else is known"},
		{"cancelling", cancels, map[string]float64{"m.0.down": 1.5, "m.1.lin": 0.9}, place{kind: "drift"}, true,
			"the rows show that rounding makes it"},
		{"wrong", cancels, map[string]float64{"m.0.down": 20, "m.1.lin": 0.9},
			place{kind: "local", layer: "m.0.down"}, false, "the rows show that it is too much"},
		{"below the floor", `
m.0.down input_0
m.0.down output e=9e-5
m.0 output e=9e-5
m.1.lin input_0 e=9e-5
m.1.lin output e=1.5e-4
m output e=1.5e-4`, map[string]float64{"m.0.down": 1.5, "m.1.lin": 0.9}, place{kind: "drift"}, true, "no source either: 90 times what came in, but no more than rounding"},
		{"alone", `m.proj output e=0.05 eps=0.0078`, nil, place{kind: "local", layer: "m.proj"}, false,
			"nothing was recorded before it that could add up"},
		{"one bad row comes in", `
m.0.up input_0 e=0.028 whole=0.012 eps=0.0078
m.0.up output e=0.13 whole=0.125 eps=0.0078
m output e=0.13 eps=0.0078`, map[string]float64{"m.0.up": 8}, place{kind: "local", layer: "m.0.up"}, false,
			"five times the worst row that came in, but ten times the tensor, and every row shows it"},
		{"one layer doubtful", cancels, map[string]float64{"m.0.down": 1.5, "m.1.lin": 5}, place{kind: "drift"},
			false, "twice what came in accuses no layer, and does not explain it"},
		{"wrong alone", strings.Replace(cancels, "e=0.03", "e=0.03 alone=0.03", 1),
			map[string]float64{"m.0.down": 1.5}, place{kind: "local", layer: "m.0.down"}, false,
			"on golden inputs nothing comes in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := recorded(t, c.records)
			given := run(rows)
			if c.excess != nil {
				given.Excess = func(in, out int) float64 {
					assert.Equal(t, rows[in].Layer, rows[out].Layer)
					if x, ok := c.excess[rows[out].Layer]; ok {
						return x
					}
					return math.NaN()
				}
			}
			got := localise.First(given)
			require.NotNil(t, got)
			assert.Equal(t, c.want, placeOf(got), c.reason)
			assert.Equal(t, c.explained, got.Explained(), c.reason)
		})
	}
}

// A layer that was recorded wrongly is not the source of what follows.
func TestWrongRecordingIsNoSource(t *testing.T) {
	given := run(recorded(t, `
m.0 output
m.1.norm input_0
m.1.norm output e=0.9 same=4 twin=m.0
m.1.attn input_0 same=4
m.1.attn output e=1.2e-4
m.1 output e=1.1e-4
m output e=1.1e-4`))
	given.Excess = func(int, int) float64 { return 1 }
	got := localise.First(given)
	require.NotNil(t, got)
	assert.Equal(t, place{kind: "capture", layer: "m.1.norm"}, placeOf(got), "what follows got the right one")
}

// Single rows fall and climb; the whole tensor tells that each block adds as much as the first.
func TestClimbing(t *testing.T) {
	got := localise.First(run(recorded(t, `
m.0.lin output
m.0 output e=2.3e-4 whole=2.0e-4
m.1 output e=5.6e-4 whole=3.6e-4
m.2 output e=7.8e-4 whole=4.9e-4
m.3 output e=5.0e-4 whole=6.0e-4
m output e=5.0e-4`)))
	require.NotNil(t, got)
	assert.Equal(t, "drift", got.Kind)
}

// A drift of the first step hides no error of a later one.
func TestErrorOfALaterStep(t *testing.T) {
	records := recorded(t, `
m.0.lin input_0
m.0.lin output e=5e-6
m.1.lin input_0 e=5e-6
m.1.lin output e=4e-5
m.2.lin input_0 e=4e-5
m.2.lin output e=1.1e-4
m output e=1.1e-4`)
	drift := localise.First(run(records))
	require.NotNil(t, drift)
	require.Equal(t, "drift", drift.Kind)
	for _, r := range recorded(t, `
m.0.lin input_0
m.0.lin output e=0.4
m output e=0.4`) {
		r.Step = "1"
		records = append(records, r)
	}
	got := localise.First(run(records))
	require.NotNil(t, got)
	assert.Equal(t, [3]string{"local", "m.0.lin", "1"}, [3]string{got.Kind, got.Layer, got.Step})
	assert.False(t, got.Explained())
}
