package coverage_test

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/coverage"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// pass is a forward pass of labels, each of which may be followed by = and the label whose values it holds, and before that
// by ? where the candidate may lack it. compared are the labels of what was compared.
func pass(t *testing.T, step, labels, compared string) coverage.Pass {
	t.Helper()
	p := coverage.Pass{Case: "short", Step: step}
	var covered []string
	for word := range strings.FieldsSeq(compared) {
		name, _, _ := strings.Cut(word, "=")
		covered = append(covered, name)
	}
	var entries []localise.Entry
	for word := range strings.FieldsSeq(labels) {
		name, values, _ := strings.Cut(word, "=")
		name, lacking := strings.CutSuffix(name, "?")
		if values == "" {
			values = name
		}
		h := fnv.New32a()
		h.Write([]byte(values))
		layer, port := label.Split(name)
		entries = append(entries, localise.Entry{Key: localise.Key{Case: "short", Step: step, Layer: layer, Port: port}, Seq: len(entries)})
		p.Ports = append(p.Ports, coverage.Port{Layer: layer, Port: port, Input: label.IsInput(port), Lacking: lacking,
			Covers: slices.Contains(covered, name), Tensor: toy.Wave(t, 1, float64(h.Sum32()%1000), 1, 4, 8)})
	}
	p.Container = localise.NewFlow(entries).Pass("short", step).Container
	return p
}

func demand(t *testing.T, scope string) (d coverage.Demand) {
	t.Helper()
	d.Each = true
	if scope != "" {
		g, err := glob.Compile(scope)
		require.NoError(t, err)
		d.Within = []*glob.Pattern{g}
	}
	return d
}

const blocks = "m.embed-output m.layers.0.up-output m.layers.0-output m.layers.1.up-output m.layers.1-output m.head-output "

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		golden, compared, scope string
		open                    []string
		reason                  string
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
		{blocks + "m.sampler-output?", blocks, "", nil, "engines do not sample in a layer"},
		{blocks + "pooler.dense-output? pooler-output?", blocks, "", nil, "a pooler is left out for a known reason"},
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

		{"m.layers.0-output m.layers.1.act-output? m.head-output", "m.layers.0-output m.head-output", "", nil, "a block of which all may be lacking"},
		{"m.layers.0-output m.layers.1.act-output? m.layers.1.up-output m.head-output", "m.layers.0-output m.head-output", "",
			[]string{"no output of m.layers.1 was compared"}, "or a part of it"},
		{"m.layers.0-output m.head-output m.head-output_1", "m.layers.0-output m.head-output", "", nil, "the first output of the last layer is the model's"},
		{"m.layers.0-output m.head-output m.head-output_1", "m.layers.0-output m.head-output_1", "", []string{"the final output m.head output was not compared"}, "the second is not"},
		{blocks, "m.embed-output", "embed", nil, "a scope without blocks"},
		{blocks, "m.embed-output m.layers.1-output", "layers.1", nil, "one block"},
		{blocks, "m.embed-output m.layers.1-output", "layers", []string{"no output of m.layers.0 was compared"},
			"all blocks of a part"},
		{blocks, "m.embed-output m.layers.0-output m.layers.1-output", "head", []string{"no output of m.head was compared"},
			"one layer"},

		{blocks + "m.tail-output", blocks + "m.other-output", "", []string{"the final output m.tail output was not compared"}, "the end"},
	} {
		assert.Equal(t, tt.open, demand(t, tt.scope).Open([]coverage.Pass{pass(t, "0", tt.golden, tt.compared)}), tt.reason)
	}
}

// Where not all forward passes lack something, those that do are named.
func TestOpenInSomePasses(t *testing.T) {
	open := demand(t, "").Open([]coverage.Pass{pass(t, "0", blocks, blocks), pass(t, "1", blocks, "m.layers.0-output m.head-output"), pass(t, "2", blocks, "")})
	assert.Equal(t, []string{"no output of m.layers.1 in step 1 of case short was compared", "no output in step 2 of case short was compared"}, open)
	assert.Equal(t, []string{"no output was compared"}, demand(t, "").Open([]coverage.Pass{pass(t, "0", blocks, ""), pass(t, "1", blocks, "")}))
}

// The blocks of a pattern are asked for as a whole, and not each layer that matches.
func TestOpenInBlocks(t *testing.T) {
	d := demand(t, "up")
	p := pass(t, "0", blocks, "m.layers.0.up-output")
	assert.Equal(t, []string{"no output of 2 layers, m.layers.1, m.layers.1.up, was compared"}, d.Open([]coverage.Pass{p}))
	d.Each = false
	assert.Equal(t, []string{"no output of m.layers.1 was compared"}, d.Open([]coverage.Pass{p}))
	assert.True(t, d.Asks("m.layers.0.up"))
	assert.False(t, d.Asks("m.layers.0"))
	assert.True(t, coverage.Demand{}.Asks("m.layers.0"))
}

// The model may return what was compared under another name, in another type; and zeros say nothing.
func TestFinalOutput(t *testing.T) {
	x := toy.Of(t, slices.Repeat([]float32{1, 2.5}, 8), 1, 16)
	view := func(to tensor.DType, v ...byte) *tensor.Tensor {
		y, err := tensor.New(to, []int{1, len(v) / to.Size()}, v)
		require.NoError(t, err)
		return y
	}
	for _, tt := range []struct {
		final  *tensor.Tensor
		covers bool
		open   []string
		reason string
	}{
		{x, false, nil, "the same"},
		{view(tensor.BF16, slices.Repeat([]byte{0x80, 0x3f, 0x20, 0x40}, 8)...), false, nil, "the same numbers in another type"},
		{view(tensor.BF16, slices.Repeat([]byte{0x80, 0x3f, 0x21, 0x40}, 8)...), false, []string{"the final output m output was not compared"}, "others"},
		{toy.Of(t, slices.Repeat([]float32{1, 2.5}, 4), 1, 8), false, []string{"the final output m output was not compared"}, "a part of them"},
		{toy.Of(t, slices.Repeat([]float32{1, 2.5}, 8), 16), false, nil, "in another shape"},
		{toy.Of(t, slices.Repeat([]float64{1, 2.5}, 8), 16), false, []string{"the final output m output was not compared"}, "in another shape and type nothing is known"},
		{toy.Of(t, slices.Repeat([]int64{1, 2}, 8), 1, 16), false, []string{"the final output m output was not compared"}, "whole numbers"},
		{toy.Of(t, make([]float32, 16), 1, 16), true, []string{"the final output m output is all zero, as that of a model that does nothing"}, "zeros"},
		{toy.Of(t, make([]float32, 15), 1, 15), true, nil, "a few zeros may be what someone wants to compare"},
		{toy.Of(t, append(make([]float32, 5000), 1), 1, 5001), true, nil, "one number behind many zeros"},
		{toy.Of(t, make([]int64, 16), 1, 16), true, nil, "token 0"},
	} {
		p := coverage.Pass{Case: "short", Step: "0", Container: func(l string) string { return l }, Ports: []coverage.Port{
			{Layer: "m.head", Port: "output", Covers: true, Tensor: x}, {Layer: "m", Port: "cache", Tensor: toy.Of(t, []float32{}, 0)}, {Layer: "m", Port: "output", Covers: tt.covers, Tensor: tt.final}}}
		assert.Equal(t, tt.open, demand(t, "").Open([]coverage.Pass{p}), tt.reason)
	}
}
