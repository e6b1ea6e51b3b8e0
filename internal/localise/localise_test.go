package localise_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/trace"
	_ "github.com/goparity/goparity/internal/updateflag"
)

// block is one transformer-like block as hooks record it: children before their container, inputs
// together with the outputs.
const block = `
model.embed input_0 int
model.embed output
model.layers.0.norm input_0
model.layers.0.norm output
model.layers.0.up input_0
model.layers.0.up output
model.layers.0.act input_0
model.layers.0.act output
model.layers.0.down input_0
model.layers.0.down output
model.layers.0 input_0
model.layers.0 output
model.head input_0
model.head output
model input_0 int
model output
`

// records reads lines "layer port [int]". Lines that begin with an entry of bad differ, those with
// an entry of lone are the golden's only.
func records(text string, bad, lone []string) []row {
	var out []row
	has := func(list []string, line string) bool {
		for _, l := range list {
			if line == l || strings.HasPrefix(line, l+" ") {
				return true
			}
		}
		return false
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		out = append(out,
			row{entry(f[0], f[1], len(out)),
				localise.Record{Joined: !has(lone, line), Agrees: !has(bad, line), Integer: len(f) > 2, Epsilon: 1e-7,
					Error: 1e-7}})
		if r := &out[len(out)-1]; !r.Agrees {
			r.Error = 1
		}
	}
	return out
}

func first(rows []row) *localise.Verdict { return localise.First(run(rows)) }

// row is an entry of a trace with what was found of it.
type row struct {
	trace.Entry
	localise.Record
}

func entry(layer, port string, seq int) trace.Entry {
	return trace.Entry{Key: trace.Key{Case: "a", Step: "0", Layer: layer, Port: port}, Seq: seq}
}

func run(rows []row) localise.Run {
	var entries []trace.Entry
	var r localise.Run
	for _, x := range rows {
		entries, r.Records = append(entries, x.Entry), append(r.Records, x.Record)
	}
	r.Trace = trace.New(entries)
	return r
}

func TestFirst(t *testing.T) {
	downstream := []string{"model.head", "model output"}
	for _, tt := range []struct {
		name      string
		bad, lone []string
		want      *localise.Verdict // Text, Gaps and Frontier are checked where given
		reason    string
	}{
		{name: "clean", reason: "nothing differs: no layer is accused"},
		{
			name: "leaf", bad: append([]string{"model.layers.0.up output", "model.layers.0.act",
				"model.layers.0.down", "model.layers.0 output"}, downstream...),
			want: &localise.Verdict{Kind: "local", Layer: "model.layers.0.up", Port: "output", Proven: true,
				Frontier: []string{"model.layers.0.up"}},
			reason: "right input, wrong output",
		},
		{
			name: "leaf without recorded input", lone: []string{"model.layers.0.up input_0"},
			bad: append([]string{"model.layers.0.up output", "model.layers.0.act", "model.layers.0.down",
				"model.layers.0 output"}, downstream...),
			want: &localise.Verdict{Kind: "local", Layer: "model.layers.0.up", Port: "output", After: "model.layers.0.norm",
				Place: "in model.layers.0.up, or between model.layers.0.norm and model.layers.0.up", Open: true,
				Gaps: []string{"input_0"}, Frontier: []string{"model.layers.0.up"}},
			reason: "an input that was not compared makes it a suspicion, and is named",
		},
		{
			name: "code between two layers", lone: []string{"model.layers.0.act"},
			bad: append([]string{"model.layers.0.down", "model.layers.0 output"}, downstream...),
			want: &localise.Verdict{Kind: "between", Layer: "model.layers.0", Port: "input_0",
				After: "model.layers.0.up", Before: "model.layers.0.down",
				Gaps: []string{"model.layers.0.act"}, Frontier: []string{"model.layers.0"},
				Place: "between model.layers.0.up and model.layers.0.down", Open: true},
			reason: "no disagreeing output made down's input; what act was given is not known",
		},
		{
			name: "residual", bad: append([]string{"model.layers.0 output"}, downstream...),
			want: &localise.Verdict{Kind: "between", Layer: "model.layers.0", Port: "output",
				After: "model.layers.0.down", Proven: true,
				Frontier: []string{"model.layers.0"}},
			reason: "all children agree, the container does not: the code after the last child",
		},
		{
			name: "before the first layer of a container",
			bad:  []string{"model.layers.0", "model.head", "model output"},
			want: &localise.Verdict{Kind: "between", Layer: "model", Port: "input_0", After: "model.embed",
				Before: "model.layers.0", Proven: true,
				Frontier: []string{"model"}},
			reason: "a missing embedding scale: the block's own input is the first wrong tensor, before anything inside it",
		},
		{
			name: "prompt", bad: []string{"model"},
			want:   &localise.Verdict{Kind: "input", Layer: "model.embed", Port: "input_0", Proven: true},
			reason: "other token ids: the first layer that consumes them is named",
		},
		{
			name: "prompt without root", bad: []string{"model.embed", "model.layers.0", "model.head", "model output"},
			lone:   []string{"model input_0"},
			want:   &localise.Verdict{Kind: "input", Layer: "model.embed", Port: "input_0", Proven: true},
			reason: "ids of the first layer come from outside where the root's were not recorded",
		},
		{
			name: "head", bad: downstream,
			want: &localise.Verdict{Kind: "between", Layer: "model", Port: "input_0", After: "model.layers.0",
				Before: "model.head", Proven: true,
				Frontier: []string{"model"}},
			reason: "the layer before agrees, the head's input does not",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "prompt" {
				tt.bad = []string{"model input_0", "model.embed", "model.layers.0", "model.layers.0.norm",
					"model.layers.0.up", "model.layers.0.act",
					"model.layers.0.down", "model.head", "model output"}
			}
			got := first(records(block, tt.bad, tt.lone))
			if tt.want == nil {
				require.Nil(t, got, tt.reason)
				return
			}
			require.NotNil(t, got, tt.reason)
			assert.NotEmpty(t, got.Text)
			for _, name := range []string{got.After, got.Before} {
				assert.Contains(t, got.Text, name)
			}
			assert.Equal(t,
				[7]any{tt.want.Kind, tt.want.Layer, tt.want.Port, tt.want.After, tt.want.Before, tt.want.Proven, "a"},
				[7]any{got.Kind, got.Layer, got.Port, got.After, got.Before, got.Proven, got.Case}, tt.reason)
			assert.Equal(t, tt.want.Gaps, got.Gaps, tt.reason)
			assert.Equal(t, [2]any{tt.want.Place, tt.want.Open}, [2]any{got.Place, got.Open}, tt.reason)
			if tt.want.Frontier != nil {
				assert.Equal(t, tt.want.Frontier, got.Frontier, tt.reason)
			}
		})
	}
}

func TestFirstOverCasesAndSteps(t *testing.T) {
	late := records(block, []string{"model.head output", "model output"}, nil)
	early := records(block, []string{"model.layers.0.up output", "model.head output", "model output"}, nil)
	decode := records(block, []string{"model.embed output"}, nil)
	set := func(rs []row, c, s string) []row {
		for i := range rs {
			rs[i].Case, rs[i].Step = c, s
		}
		return rs
	}
	all := append(append(set(late, "short", "0"), set(early, "long", "0")...), set(decode, "short", "1")...)
	got := localise.First(run(all))
	require.NotNil(t, got)
	assert.Equal(t, "long", got.Case, "a fault that one case hides shows in the other: the earliest place counts")
	assert.Equal(t, "model.layers.0.up", got.Layer)
	assert.Equal(t, "0", got.Step, "a later step never goes before an earlier one")
}

// Torch hooks without keyword inputs: a layer of which no input was compared is not in the frontier
// if something inside it got a wrong one.
func TestFrontierWithoutInputs(t *testing.T) {
	rs := records(`
m.0.attn.q input_0
m.0.attn.q output
m.0.attn output
m.1.attn.q input_0
m.1.attn.q output
m.1.attn output
`, []string{"m.0.attn.q output", "m.0.attn output", "m.1"}, nil)
	got := first(rs)
	require.NotNil(t, got)
	assert.Equal(t, []string{"m.0.attn.q"}, got.Frontier)
}

func TestRepeatedCalls(t *testing.T) {
	rs := records(`
model.norm input_0
model.norm output
model.mid.lin input_0
model.mid.lin output
model.mid input_0
model.mid output
model.norm(2) input_0
model.norm(2) output
model.mid.lin(2) input_0
model.mid.lin(2) output
model.mid(2) input_0
model.mid(2) output
model output
`, []string{"model.mid.lin(2) output", "model.mid(2) output", "model output"}, nil)
	got := first(rs)
	require.NotNil(t, got)
	assert.Equal(t, "model.mid.lin(2)", got.Layer, "the second call is a layer of its own")
	assert.Equal(t, []string{"model.mid.lin(2)"}, got.Frontier)
}
