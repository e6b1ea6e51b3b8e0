package replay_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// sums are the operators that add many numbers in an order of their own: what they make is right to
// 1e-6 of the largest number in float32, others' to two units in the last place.
var sums = strings.Fields(`
	mm bmm addmm baddbmm mv dot _grouped_mm scaled_dot_product_attention convolution _cdist_forward
	scatter_add scatter_reduce index_add cumsum cumprod logcumsumexp
	avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
	upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
	_fft_r2c _fft_c2r _fft_c2c
	sum mean prod var std var_mean std_mean logsumexp linalg_vector_norm
	_softmax _log_softmax native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit_no_training
	gelu lerp digamma view_as_complex`)

// samples are the tables that testdata/generate.py wrote.
func samples(t *testing.T) map[string]*program.Program {
	all := map[string]*program.Program{}
	files, err := filepath.Glob("testdata/*/program.json")
	require.NoError(t, err)
	for _, f := range files {
		p, err := program.Read(f)
		require.NoError(t, err)
		all[filepath.Dir(f)] = p
	}
	return all
}

// constants loads what comes from outside of a piece, if that is constants alone.
func constants(p *program.Program) replay.Load {
	return func(v *program.Value) (*replay.Array, error) {
		if v.Constant == "" {
			x, err := tensor.New(v.DType, v.Shape, v.Data)
			if err != nil {
				return nil, err
			}
			return replay.FromTensor(x)
		}
		x, err := p.Constant(v.Constant)
		if err != nil {
			return nil, err
		}
		return replay.FromTensor(x)
	}
}

// TestSamples replays what torch ran, in single operators and short chains of them.
func TestSamples(t *testing.T) {
	for folder, p := range samples(t) {
		results, err := safetensors.Open(filepath.Join(folder, "results.safetensors"))
		require.NoError(t, err)
		t.Cleanup(func() { results.Close() })
		for i, port := range p.Ports {
			if port.Layer == "model" || !strings.HasPrefix(port.Name, "output") {
				continue
			}
			t.Run(filepath.Base(folder)+"/"+strings.TrimPrefix(port.Layer, "model.")+"/"+port.Name, func(t *testing.T) {
				want, ok := results.Lookup(port.Layer + "-" + port.Name)
				require.True(t, ok, "no result of that name")
				piece := p.Piece(i, func(int) bool { return false })
				got, err := replay.Run(t.Context(), piece, constants(p), replay.Mode{})
				require.NoError(t, err)
				near(t, want, got, piece)
			})
		}
	}
}

// near compares a replayed result with torch's.
func near(t *testing.T, want *tensor.Tensor, got *replay.Array, p *program.Piece) {
	assert.Equal(t, want.DType(), got.DType())
	w, g := make([]float64, want.Len()), got.Floats()
	want.Float64s(w, 0)
	require.Len(t, g, len(w))
	sum := isLong(p) || slices.ContainsFunc(p.Ops, func(o program.Op) bool { return slices.Contains(sums, name(o.Full)) })
	factor := 1.0
	if isLong(p) {
		factor = 2
	}
	most := 0.0
	for _, v := range w {
		if math.Abs(v) <= math.MaxFloat64 {
			most = max(most, math.Abs(v))
		}
	}
	for i := range w {
		assert.LessOrEqual(t, distance(w[i], g[i]), factor*allowed(want.DType(), w[i], most, sum), "element %d of %v is %v, not %v", i, want.Shape(), g[i], w[i])
	}
}

// isLong reports whether an operator was recorded as a chain of many others, each of which rounds.
func isLong(p *program.Piece) bool { return len(p.Ops) > 8 }

// name is that of an operator without namespace and overload.
func name(full string) string {
	_, full, _ = strings.Cut(full, ".")
	full, _, _ = strings.Cut(full, ".")
	return full
}

// distance is 0 for equal numbers, of which NaN is one.
func distance(a, b float64) float64 {
	if a == b || a != a && b != b {
		return 0
	}
	if d := math.Abs(a - b); d == d {
		return d
	}
	return math.Inf(1)
}

// allowed is the largest difference from a number of a tensor.
func allowed(d tensor.DType, x, most float64, sum bool) float64 {
	unit := 2 * d.Epsilon() * max(math.Abs(x), map[tensor.DType]float64{tensor.F16: 0x1p-14}[d])
	switch {
	case !d.IsFloat() || x-x != 0:
		return 0
	case d == tensor.BF16 || d == tensor.F16:
		if sum {
			return max(unit, d.Epsilon()*most) // torch rounds on the way, too
		}
		return unit
	case d == tensor.F64 && sum:
		return 1e-14 * most
	case sum:
		return 1e-6 * most
	}
	return 2 * unit
}

// TestSampled finds a sample of every operator.
func TestSampled(t *testing.T) {
	found := map[string]bool{}
	for _, p := range samples(t) {
		for _, o := range p.Ops {
			found[name(o.Full)] = true
		}
	}
	for _, n := range replay.Operators() {
		assert.True(t, found[n], "no sample of %s: add a row to a table in testdata, and run testdata/generate.py", n)
	}
}

// TestModes runs every sample in every mode: its floats move as far as the rounding says, and no farther.
func TestModes(t *testing.T) {
	for _, r := range []struct {
		mode   replay.Mode
		limit  float64 // of the largest number; chains have up to a few roundings
		reason string
	}{
		{replay.Mode{Wide: true}, 2e-6, "float64"},
		{replay.Mode{Round: replay.Shake}, 1e-6, "half a unit each"},
		{replay.Mode{Round: replay.Nearest, To: tensor.BF16}, 3e-2, "eight digits"},
		{replay.Mode{Round: replay.Zero, To: tensor.F16}, 4e-3, "eleven digits"},
	} {
		for _, p := range samples(t) {
			for i, port := range p.Ports {
				if port.Layer == "model" || !strings.HasPrefix(port.Name, "output") || !p.Values[port.Value].DType.IsFloat() {
					continue
				}
				piece := p.Piece(i, func(int) bool { return false })
				want, err := replay.Run(t.Context(), piece, constants(p), replay.Mode{})
				require.NoError(t, err)
				got, err := replay.Run(t.Context(), piece, constants(p), r.mode)
				require.NoError(t, err, port.Layer, r.reason)
				w, most, moved := want.Floats(), 0.0, 0.0
				for j, v := range got.Floats() {
					moved = max(moved, distance(w[j], v))
					if math.Abs(v) < 1e300 {
						most = max(most, math.Abs(v))
					}
				}
				limit := max(r.limit, map[tensor.DType]float64{tensor.BF16: 1e-2, tensor.F16: 2e-3}[want.DType()])
				if isLong(piece) {
					limit *= 4
				}
				assert.LessOrEqual(t, moved, limit*most, "%s: %s", port.Layer, r.reason)
			}
		}
	}
}
