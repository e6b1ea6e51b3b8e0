package judge_test

import (
	"context"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
)

// labelled makes a run of labels, each of which may be followed by = and the label whose
// values it holds. Equal labels hold equal values.
func labelled(t *testing.T, engine, labels string) *dump.Run {
	t.Helper()
	var ports []port
	for word := range strings.FieldsSeq(labels) {
		name, values, _ := strings.Cut(word, "=")
		if values == "" {
			values = name
		}
		h := fnv.New32a()
		h.Write([]byte(values))
		ports = append(ports, port{name, wave(t, 1, float64(h.Sum32()%1000), 1, 4, 8)})
	}
	return run(engine, ports...)
}

func TestCoverage(t *testing.T) {
	const blocks = "m.embed-output m.layers.0.up-output m.layers.0-output m.layers.1.up-output m.layers.1-output m.head-output "
	for _, tt := range []struct {
		golden, actual, scope string
		open                  []string
		reason                string
	}{
		{blocks, blocks, "", nil, "all of it"},
		{blocks, "m.embed-output", "", []string{"the final output m.head output was not compared",
			"no output of 2 layers, m.layers.0, m.layers.1, was compared"}, "one of six"},
		{blocks, "m.embed-output m.layers.0-output m.layers.1.up-output m.head-output", "", nil,
			"one output of a block is enough: what is inside an engine may not call as layers"},
		{blocks, "m.embed-output m.layers.0.up-output m.layers.0-output m.head-output", "",
			[]string{"no output of m.layers.1 was compared"}, "a block"},
		{blocks, "m.head-output", "", []string{"no output of 2 layers, m.layers.0, m.layers.1, was compared"},
			"the end alone"},
		{blocks + "m-output=m.head-output", blocks, "", nil, "the model returns what its head does"},
		{blocks + "m-output", blocks, "", []string{"the final output m output was not compared"},
			"the model computes something behind its head, a softcap"},
		{"embed-output middle-output end-output", "embed-output middle-output", "",
			[]string{"the final output end output was not compared"}, "no layer has a dot, and only the last is the end"},
		{"embed-output middle-output end-output", "embed-output end-output", "", nil, "the same"},
		{blocks + "m.sampler-output", blocks, "", nil, "engines do not sample in a layer"},
		{blocks + "pooler.dense-output pooler-output", blocks, "", nil, "a pooler is left out for a known reason"},
		{"n.0-output n.1-output n.2-input_0=n.1-output n.2-output", "n.0-output n.2-input_0=n.1-output n.2-output", "", nil,
			"an activation in a Sequential, seen as the next one's input"},
		{"n.0-output n.1-output n.2-output", "n.0-output n.2-output", "", []string{"no output of n.1 was compared"},
			"nothing shows it"},
		{"m.layers.0.norm-output m.layers.0.norm(2)-output m.layers.0-output m-output",
			"m.layers.0.norm-output m.layers.0-output m-output", "", nil, "a second call in a block is no block"},
		{"m.layers.0.up-output m.layers.0-output m.layers.0.up(2)-output m.layers.0(2)-output m-output",
			"m.layers.0.up-output m.layers.0-output m-output", "", []string{"no output of m.layers.0(2) was compared"},
			"each call of a shared block"},
		{"m.layers.0.experts.0-output m.layers.0.experts.1-output m.layers.0-output m-output", "m.layers.0-output m-output", "",
			nil, "experts are inside of a block"},

		{blocks, "m.embed-output", "embed", nil, "a scope without blocks"},
		{blocks, "m.embed-output m.layers.1-output", "layers.1", nil, "one block"},
		{blocks, "m.embed-output m.layers.1-output", "layers", []string{"no output of m.layers.0 was compared"},
			"all blocks of a part"},
		{blocks, "m.embed-output m.layers.0-output m.layers.1-output", "head", []string{"no output of m.head was compared"},
			"one layer"},

		{blocks + "m.layers.1.act-output", blocks + "m.layers.1.mlp.gelu-output", "",
			[]string{"m.layers.1.act of the golden and m.layers.1.mlp.gelu of the candidate stand in one place and differ"},
			"an activation under two names"},
		{blocks + "m.layers.1.act-output", blocks + "m.layers.1.mlp.gelu-output=m.layers.1.act-output", "", nil,
			"they agree: nothing is open"},
		{blocks + "m.layers.1.dropout-output", blocks + "m.layers.1.mlp.gelu-output", "", nil, "dropout is no activation"},
		{"m.layers.1.x-output m.layers.1.y-output " + blocks, "m.layers.1.z-output " + blocks, "", nil,
			"which of two is not known"},
		{blocks + "m.tail-output", blocks + "m.other-output", "", []string{"the final output m.tail output was not compared",
			"m.tail of the golden and m.other of the candidate stand in one place and differ"}, "the end"},
	} {
		k := judge.Case{Name: "short", Golden: labelled(t, "torch", tt.golden), Actual: labelled(t, "max", tt.actual)}
		var opt judge.Options
		if tt.scope != "" {
			p, err := glob.Compile(tt.scope)
			require.NoError(t, err)
			opt.Scope = []*glob.Pattern{p}
		}
		c, err := judge.Compare(context.Background(), []judge.Case{k}, opt)
		require.NoError(t, err, tt.reason)
		r := c.Report("toy", true)
		require.Len(t, r.Coverage.Open, len(tt.open), "%s: %q", tt.reason, r.Coverage.Open)
		for i, open := range tt.open {
			assert.Contains(t, r.Coverage.Open[i], open, tt.reason)
		}
		want := report.Pass
		if tt.open != nil {
			want = report.Incomplete
		}
		assert.Equal(t, want, r.Verdict, tt.reason)
	}
}
