package weights_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of no bytes

// hashOf is the hash that a runner writes of a tensor.
func hashOf(t *testing.T, name string, x *tensor.Tensor) weights.Hash {
	t.Helper()
	var data bytes.Buffer
	_, err := x.WriteTo(&data)
	require.NoError(t, err)
	sum := sha256.Sum256(data.Bytes())
	return weights.Hash{Name: name, DType: x.DType(), Shape: x.Shape(), SHA256: hex.EncodeToString(sum[:])}
}

func TestCompareHashes(t *testing.T) {
	of := func(first float32) *tensor.Tensor {
		values := make([]float32, 24)
		for i := range values {
			values[i] = first + float32(i)/7
		}
		x, err := tensor.Of(values, 4, 6)
		require.NoError(t, err)
		return x
	}
	zeros, err := tensor.Of(make([]float32, 24), 4, 6)
	require.NoError(t, err)
	const q, k, own = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight", "extra"
	doubles := make([]float64, 24)
	for i := range doubles {
		doubles[i] = of(4).At(i)
	}
	double, err := tensor.Of(doubles, 4, 6)
	require.NoError(t, err)
	ref := weights.Of("ref", []tensor.Named{{Name: "double", Tensor: double}, {Name: q, Tensor: of(1)}, {Name: k, Tensor: of(2)}, {Name: "zero", Tensor: zeros}}, nil)
	huge := hashOf(t, q, of(1))
	huge.Shape = []int{1 << 28}
	for _, tt := range []struct {
		hash                          weights.Hash
		status, step, cause, ref, why string
	}{
		{hashOf(t, q, of(1)), weights.Equal, "", "", q, "the same bytes"},
		{hashOf(t, "blk.0.attn_q.weight", of(1)), weights.Equal, "", "", q, "the words of GGUF"},
		{hashOf(t, q, rounded(t, of(1), tensor.F16)), weights.Step, "cast", "", q, "rounded to float16"},
		{hashOf(t, "double", of(4)), weights.Step, "cast", "", "double", "a reference in float64"},
		{hashOf(t, q, zeros), weights.Differs, "", "weights/zero", q, "not loaded"},
		{hashOf(t, q, of(2)), weights.Differs, "", "weights/other", q, "that of k"},
		{hashOf(t, q, rounded(t, of(2), tensor.F16)), weights.Differs, "", "weights/other", q, "that of k, rounded"},
		{hashOf(t, q, of(3)), weights.Ignored, "", "", q, "a step or a fault"},
		{hashOf(t, own, of(2)), weights.Step, "renamed", "", k, "another name"},
		{hashOf(t, own, of(3)), weights.Ignored, "", "", "", "the engine's own"},
		{hashOf(t, own, zeros), weights.Ignored, "", "", "", "zeros are no one's"},
		{huge, weights.Ignored, "", "", q, "a shape that no one has"},
	} {
		list, err := weights.CompareHashes(t.Context(), ref, []weights.Hash{tt.hash})
		require.NoError(t, err)
		require.Len(t, list, 1)
		w := list[0]
		assert.Equal(t, tt.status, w.Status, "%s: %+v", tt.why, w)
		assert.Equal(t, tt.cause, w.Cause, tt.why)
		assert.Equal(t, tt.ref, w.Reference, tt.why)
		if tt.step != "" {
			assert.Equal(t, []string{tt.step}, w.Steps, tt.why)
		}
	}
	codes, err := tensor.Of([]int64{1, 2}, 2)
	require.NoError(t, err)
	list, err := weights.CompareHashes(t.Context(), ref, []weights.Hash{hashOf(t, q, codes)})
	require.NoError(t, err)
	assert.Empty(t, list, "codes say nothing")
}

func TestReadHashes(t *testing.T) {
	const sum = emptySum
	for _, tt := range []struct{ text, want, reason string }{
		{`{"weights": [{"name": "a", "dtype": "bfloat16", "shape": [2, 3], "sha256": "` + sum + `"}]}`, "", "as runners write it"},
		{`{"weights": []}`, "no weights", "empty"},
		{`[]`, "cannot unmarshal", "another form"},
		{`{"weights": [{"name": "a", "dtype": "float7", "shape": [2], "sha256": "` + sum + `"}]}`, "float7", "an unknown type"},
		{`{"weights": [{"name": "a", "dtype": "float32", "shape": [-2], "sha256": "` + sum + `"}]}`, `weights[0] "a": want`, "no shape"},
		{`{"weights": [{"name": "a", "dtype": "i8", "shape": [9223372036854775807, 2], "sha256": "` + sum + `"}]}`, `weights[0] "a": want`, "no memory has it"},
		{`{"weights": [{"name": "a", "dtype": "float32", "shape": [2], "sha256": "12"}]}`, `weights[0] "a": want`, "a short hash"},
		{`{"weights": [{"dtype": "float32", "shape": [2], "sha256": "` + sum + `"}]}`, `weights[0] "": want`, "no name"},
	} {
		path := filepath.Join(t.TempDir(), "weights.json")
		require.NoError(t, os.WriteFile(path, []byte(tt.text), 0o644))
		list, err := weights.ReadHashes(path)
		if tt.want == "" {
			require.NoError(t, err, tt.reason)
			assert.Len(t, list, 1)
			continue
		}
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}
