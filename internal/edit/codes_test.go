package edit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/gguf"
	"github.com/goparity/goparity/tensor/safetensors"
)

// packedWeights are random blocks of all of ggml's types, and weights of checkpoints of all libraries, by folder and name.
func packedWeights(t *testing.T) (all []tensor.Named) {
	t.Helper()
	add := func(folder string, packed []tensor.Named) {
		for _, x := range packed {
			if x.Packing() != "" {
				all = append(all, tensor.Named{Name: folder + "/" + x.Name + " " + x.Packing(), Tensor: x.Tensor})
			}
		}
	}
	f, err := gguf.Open("../../tensor/gguf/testdata/types.gguf")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	add("gguf", f.Tensors)
	models, err := filepath.Glob("../checkpoint/testdata/quantised/*/model.safetensors")
	require.NoError(t, err)
	for _, model := range models {
		folder := filepath.Dir(model)
		f, err := safetensors.Open(model)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		got, _, err := checkpoint.Dequantise(folder, model, f.Tensors)
		require.NoError(t, err)
		add(filepath.Base(folder), got)
	}
	require.Greater(t, len(all), 50)
	return all
}

func numbers(t *tensor.Tensor, from, n int) []float64 {
	out := make([]float64, n)
	t.Float64s(out, from)
	return out
}

// Every element lies on its grid, and all numbers of a grid of few bits occur.
func TestEnds(t *testing.T) {
	for _, w := range packedWeights(t) {
		n := w.Len()
		low, high := make([]float32, n), make([]float32, n)
		grid := w.Grid(low, high, 0)
		if grid == nil {
			assert.Regexp(t, " iq|^gptoss", w.Name, "a code stands for several elements, or the file has columns")
			continue
		}
		first, last := float64(grid.Values[0]), float64(grid.Values[len(grid.Values)-1])
		seen, beyond := map[int]bool{}, 0
		for i, v := range numbers(w.Tensor, 0, n) {
			width := float64(high[i]) - float64(low[i])
			if width == 0 || width-width != 0 {
				continue
			}
			at := first + (v-float64(low[i]))/width*(last-first)
			rounding := math.Max(1e-6, w.DType().Epsilon()) * (math.Abs(float64(low[i])) + math.Abs(float64(high[i]))) / math.Abs(width) * (last - first)
			near := func(g float32) bool { return math.Abs(at-float64(g)) < 0.05+rounding }
			k := slices.IndexFunc(grid.Values, near)
			if seen[k] = true; k < 0 {
				beyond++
				require.True(t, at < first || at > last, "%s: element %d is at %v", w.Name, i, at)
			}
		}
		if delete(seen, -1); len(grid.Values) <= 16 && n > 500 {
			assert.Len(t, seen, len(grid.Values), w.Name)
		}
		if !strings.Contains(w.Name, "tq2_0") { // its fourth code means nothing
			assert.LessOrEqual(t, beyond, n/150, w.Name)
		}
	}
}

// remade are the elements of a grid, as it has them.
func remade(g *edit.Grid) []float64 {
	return g.Weight(func(row, group, input int) (scale, zero, q float64) {
		return g.Scale[row/g.Band][group], g.Zero[row/g.Band][group], g.Q[row][input]
	})
}

func near(t require.TestingT, want, got []float64, name string) {
	require.Len(t, got, len(want), name)
	most := math.Max(slices.Max(want), -slices.Min(want))
	for i, w := range want {
		require.InDelta(t, w, got[i], 5e-3*most, "%s: element %d", name, i)
	}
}

// A packed weight is its scales times its numbers; testdata/grids.want says how many of each there are.
func TestPackedGrid(t *testing.T) {
	var all strings.Builder
	for _, w := range packedWeights(t) {
		g := edit.PackedGrid(w.Tensor)
		if g == nil {
			fmt.Fprintf(&all, "%s: none\n", w.Name)
			continue
		}
		fmt.Fprintf(&all, "%s: %d groups of %d, bands of %d, top %g, whole %t, by %d\n", w.Name, g.Groups, g.Size, g.Band, g.Top, g.Whole, len(g.Of))
		values := numbers(w.Tensor, 0, w.Len())
		if slices.ContainsFunc(values, func(v float64) bool { return v-v != 0 }) {
			continue // a random scale that is no number
		}
		near(t, values, remade(g), w.Name)
		if g.Top > 0 && !strings.HasPrefix(w.Name, "gguf/") && w.DType() == tensor.F32 { // else few digits are left
			require.Zero(t, slices.IndexFunc(slices.Concat(g.Q...), func(q float64) bool { return q < 0 || q > g.Top || q != math.Trunc(q) })+1, w.Name)
		}
		if c := g.Centred(); c != nil {
			near(t, values, remade(c), w.Name)
			require.Equal(t, c.Zero[0][0], (g.Top+1)/2, w.Name)
		}
	}
	toy.Kept(t, "grids.want", all.String())
}

// The grid of a weight is found by its values, with whole zero points or any.
func TestGridOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for try := range 400 {
		size, top, shift := edit.GroupSizes[1+try%4], []int{3, 7, 15, 31, 255}[try%5], []float64{0, 0.37}[try/20%2]
		if top == 255 {
			size, shift = max(size, 32), 0
		}
		var w [][]float64
		for r := range 3 {
			var row []float64
			for range 2 {
				scale, zero := 0.001+rng.Float64(), float64(1+rng.IntN(top-1))+shift
				if top == 255 {
					zero = 128 // centred, as formats of 8 bits are
				}
				for i := range size {
					q := []int{0, 1, top - 1, top, rng.IntN(top + 1)}[min(i, 4)]
					row = append(row, scale*(float64(q)-zero))
				}
			}
			if r == 2 { // a group of one number, and one of zeros
				row = slices.Concat(slices.Repeat([]float64{-0.7}, size), make([]float64, size))
			}
			w = append(w, row)
		}
		name := fmt.Sprint("groups of ", size, ", top ", top, ", shift ", shift)
		g := edit.GridOf(w, size)
		require.NotNil(t, g, name)
		near(t, slices.Concat(w...), remade(g), name)
		require.Equal(t, []any{float64(top), shift == 0, 2}, []any{g.Top, g.Whole, g.Groups}, name)
		w[1][size+2] += 0.3183 * (w[1][size] - w[1][size+1])
		require.Nil(t, edit.GridOf(w, size), "%s: a number between", name)
	}
}

// Floats of 4 bits times powers of two, and what lies on no grid.
func TestFloatGridOf(t *testing.T) {
	values := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for _, c := range []struct {
		w      [][]float64
		scales [][]float64 // nil for no grid
		reason string
	}{
		{[][]float64{slices.Concat(values, []float64{0, -2, -4, 8, 16, 24, -12, 4})}, [][]float64{{1, 4}}, "each group has its own"},
		{[][]float64{{0, 0, 0, 0, 0, 0, 0, 0}}, [][]float64{{1}}, "zeros"},
		{[][]float64{{1, 2.5, 0, 0, 0, 0, 0, 0}}, nil, "a number between"},
		{[][]float64{values[:7]}, nil, "a part of a group"},
		{nil, nil, "nothing"},
		{[][]float64{{}}, nil, "no inputs"},
	} {
		g := edit.FloatGridOf(c.w, 8)
		if c.scales == nil {
			assert.Nil(t, g, c.reason)
			continue
		}
		require.NotNil(t, g, c.reason)
		assert.Equal(t, c.scales, g.Scale, c.reason)
		assert.Equal(t, slices.Concat(c.w...), remade(g), c.reason)
	}
}
