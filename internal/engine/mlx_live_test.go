package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// item is a part of a forward pass of sequence s.
func item(s, from, to int) dump.PassItem { return dump.PassItem{Sequence: s, From: from, To: to} }

func TestLiveMLX(t *testing.T) {
	interpreter := live(t)
	j := generation(tinyLlama(t, interpreter))
	batch := [][]int{{72, 101, 108, 108, 111, 44, 32}, {84, 104, 101}}
	one := batch[:1]
	j.Cases = append(j.Cases, []engine.Case{
		{Name: "decode", Path: "decode:4", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 4)}, {item(0, 4, 5)}, {item(0, 5, 6)}}},
		{Name: "chunked", Path: "chunked:3", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 6)}, {item(0, 6, 7)}}},
		{Name: "turns", Path: "turns:1", TokenIDs: one, Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}, {item(0, 3, 5)}, {item(0, 5, 6)}, {item(0, 6, 7)}}},
		{Name: "padding", Path: "padding:left", TokenIDs: batch, Passes: [][]dump.PassItem{{item(0, 0, 7), item(1, 0, 3)}}},
		{Name: "prefix", Path: "prefix", TokenIDs: [][]int{{72, 101, 108, 108}, {72, 101, 108, 108, 44}}, Passes: [][]dump.PassItem{{item(0, 0, 4)}, {item(1, 0, 5)}}},
	}...)
	j.Engine, j.KVCache = engine.Torch, true
	golden := run(t, interpreter, j)
	forced, err := golden.Generated(0)
	require.NoError(t, err)
	j.Engine, j.Cases[0].Forced, j.Weights = engine.MLX, forced, -1
	actual := run(t, interpreter, j)
	assert.Contains(t, actual.About[0].ModelClass, "mlx_lm.models.llama.Model")
	assert.Equal(t, "MLP", actual.Runs[0].Info.Modules["model.model.layers.0.mlp"].Class)
	assert.Equal(t, golden.About[0].Sequence, actual.About[0].Sequence)
	assert.Equal(t, golden.Runs[1].Info.Text[0].TokenIDs, actual.Runs[1].Info.Text[0].TokenIDs)
	assert.Equal(t, []string{"weights.safetensors"}, actual.Runs[0].Info.Weights)
	for _, label := range [][2]string{{"model.model.layers.3.self_attn", "output_1"}, {"model.model.layers.3.self_attn", "key_cache"}} {
		_, found := actual.Runs[0].Find("2", label[0], label[1])
		assert.True(t, found, label)
	}
	c, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 500)
	assert.Empty(t, failed)
	assert.Nil(t, c.Verdict)

	// One weight 2 % too large, in the candidate alone.
	const guilty = "model.layers.1.mlp.down_proj"
	j.Path = tinyLlama(t, interpreter, "scale", guilty+".weight", "1.02")
	c, _, failed = judgeRuns(t, golden, run(t, interpreter, j))
	assert.NotEmpty(t, failed)
	require.NotNil(t, c.Verdict)
	assert.Equal(t, "model."+guilty, c.Verdict.Layer)
}
