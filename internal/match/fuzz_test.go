package match_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// lenient reads a listing without complaint and keeps tensors small.
func lenient(text string) []match.Port {
	var ports []match.Port
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || len(ports) == 400 || seen[f[0]+f[1]] {
			continue
		}
		seen[f[0]+f[1]] = true
		d, err := tensor.ParseDType(f[2])
		if err != nil {
			d = tensor.F32
		}
		var shape []int
		elems := 1
		for s := range strings.SplitSeq(f[3], "x") {
			if n, err := strconv.Atoi(s); err == nil && n >= -1 && elems*max(n, 1) < 1<<16 && len(shape) < 8 {
				shape = append(shape, n)
				elems *= max(n, 1)
			}
		}
		layer, port := label.Split(f[1])
		ports = append(ports, match.Port{Step: f[0], Layer: layer, Port: port, Seq: len(ports), DType: d, Shape: shape})
	}
	return ports
}

// FuzzRuns: whatever the names and shapes are, nothing panics, no port is paired twice or lost,
// every view fits, and a second run says the same.
func FuzzRuns(f *testing.F) {
	for _, tt := range real {
		golden, err := os.ReadFile(filepath.Join("testdata", tt.golden+".txt"))
		require.NoError(f, err)
		actual, err := os.ReadFile(filepath.Join("testdata", tt.actual+".txt"))
		require.NoError(f, err)
		f.Add(string(golden[:min(len(golden), 1000)]), string(actual[:min(len(actual), 1000)]),
			"layer.*.x", "layers.*", 0b110101)
	}
	f.Add("0 a.q-output f32 2x6x4\n0 a.k-output f32 2x6x4\n0 a.v-output f32 2x6x4",
		"0 a.qkv-output f32 10x12", "", "", 0)
	f.Add("0 model-output_logits f32 2x6x4", "0 model-output f32 2x4", "model", "model", 1)
	f.Add("0 a.norm-output f32 1x7x4\n0 a.norm(2)-output f32 1x1x4\n0 a.lm_head-input_0 f32 1x7x4",
		"0 norm-output f32 7x4\n1 norm-output f32 1x4\n0 lm_head-input_0 f32 1x4", "a", "b", 2)
	f.Add("0 m-input_input_ids i64 2x6\n0 m-input_attention_mask i64 2x6\n0 m.x.a.0-input_0 f32 2x4x6x6",
		"0 m-input_0 i64 10\n0 m-input_1 f32 2x6\n0 m.a.layers.0-computed_0 f32 2x4x6x6", "m.*", "m.*", 48)
	f.Add("0 m.e.layers.0-output f32 3\n0 m.e.layers.1-output f32 3\n0 m.e.layers.2-output f32 3",
		"0 m.layers.0-output f32 3\n0 m.layers.1-output f32 3\n0 m.layers.2-output f32 3", "", "", 0)
	f.Add("0 c-output f32 2x6x4", "0 c.a-output f32 2x6x2\n0 c.b-output f32 2x6x2", "c", "c.a c.b", 32)
	f.Fuzz(func(t *testing.T, goldenText, actualText, from, to string, bits int) {
		golden, actual := lenient(goldenText), lenient(actualText)
		opt := match.Options{AllowReshape: bits&1 != 0, Generating: bits&2 != 0,
			GoldenByName: bits&4 != 0, ActualByName: bits&8 != 0}
		if bits&16 != 0 {
			opt.PadMask = pad
		}
		if bits&32 != 0 {
			opt.Rules = []match.Rule{{Golden: strings.Split(from, " "), Candidate: strings.Split(to, " "),
				Rows: []string{"", "last"}[bits>>6&1]}}
		}
		r, err := match.Runs(golden, actual, opt)
		if err != nil {
			return
		}
		check(t, golden, actual, r)
		checkViews(t, golden, actual, r)
		match.Order(golden, actual, r)
		again, err := match.Runs(golden, actual, opt)
		require.NoError(t, err)
		assert.Equal(t, r, again)
	})
}
