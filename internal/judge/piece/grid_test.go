package piece_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

func TestSchemes(t *testing.T) {
	all := map[string]*piece.Scheme{}
	for _, s := range append(piece.Products(true), piece.Tables()...) {
		if !s.Sized {
			assert.NotContains(t, all, s.Text, "a text is one of a kind")
			all[s.Text] = s
		}
	}
	const whole, lines = "asymmetric 8 bits of the whole tensor (255 steps)", "symmetric 8 bits of each line (254 steps)"
	weight, product := replay.Operand{Weight: true, Weighted: true}, replay.Operand{Weighted: true, Sum: 1}
	const acts, weights = "products with weights take %s times float32", "products with weights take float32 times %s"
	for _, r := range []struct {
		scheme, reason string
		of             replay.Operand
		in, want       []float64 // [2, 2]
	}{
		{"products round their operands to bfloat16", "to nearest, ties to even", replay.Operand{},
			[]float64{1 + 1./256, 1 + 3./256, 3, -1. / 3}, []float64{1, 1 + 4./256, 3, -0.333984375}},
		{"products round their operands to float16", "to nearest, ties to even", replay.Operand{},
			[]float64{1 + 1./2048, 1 + 3./2048, 3, 1e5}, []float64{1, 1 + 4./2048, 3, math.Inf(1)}},
		{"products round their operands to 10 bits of mantissa, to nearest (TF32)", "ties to even", replay.Operand{},
			[]float64{1 + 1./2048, 1 + 3./2048, 3, 1e5 + 10}, []float64{1, 1 + 4./2048, 3, 100032}},
		{"products round their operands to 10 bits of mantissa, ties away (TF32)", "as NVIDIA's instruction", replay.Operand{},
			[]float64{1 + 1./2048, 1 + 3./2048, 3, 1e5 + 10}, []float64{1 + 2./2048, 1 + 4./2048, 3, 100032}},
		{"products round their operands to 10 bits of mantissa (TF32)", "cut", replay.Operand{},
			[]float64{1 + 1./2048, 1 + 3./2048, 3, 0}, []float64{1, 1 + 2./2048, 3, 0}},
		{"products round their operands to bfloat16", "tables are no operands", replay.Operand{Table: true},
			[]float64{1 + 1./256, 1, 1, 1}, []float64{1 + 1./256, 1, 1, 1}},
		{"products with weights take " + whole + " times float32", "from −51 to 204 in steps of 1", replay.Operand{Weighted: true, Sum: 1},
			[]float64{-51, 204, 1.4, -1.6}, []float64{-51, 204, 1, -2}},
		{"products with weights take " + whole + " times float32", "no weight is in the product", replay.Operand{Sum: 1},
			[]float64{-51, 204, 1.4, -1.6}, []float64{-51, 204, 1.4, -1.6}},
		{"products with weights take " + whole + " times float32", "zero is in the range", replay.Operand{Weighted: true, Sum: 1},
			[]float64{100, 255, 101.4, 101.6}, []float64{100, 255, 101, 102}},
		{"products with weights take float32 times " + lines, "a step for each column, which is summed over", weight,
			[]float64{127, 254, 1.4, 3.2}, []float64{127, 254, 1, 4}},
		{"products with weights take float32 times " + lines, "a line of zeros has no step", weight,
			[]float64{0, 254, 0, 3.2}, []float64{0, 254, 0, 4}},
		{fmt.Sprintf(acts, "asymmetric 8 bits of the whole tensor (127 steps)"), "torch's 7 bits, from −27 to 100", product,
			[]float64{-27, 100, 1.4, -1.6}, []float64{-27, 100, 1, -2}},
		{fmt.Sprintf(acts, "asymmetric 8 bits of the whole tensor (127 steps)"), "which multiplies with the inverse of a step", product,
			[]float64{-27. / 7, 100. / 7, 1.9285715, 0}, []float64{-27. / 7, 100. / 7, 13. / 7, 0}},
		{fmt.Sprintf(acts, "symmetric 8 bits of the whole tensor (254 steps)"), "from −127 to 127", product, []float64{-127, 126.4, 1.4, -1.6}, []float64{-127, 126, 1, -2}},
		{fmt.Sprintf(acts, "asymmetric 8 bits of each line (255 steps)"), "a step for each row", product, []float64{-51, 204, 0, 510}, []float64{-51, 204, 0, 510}},
		{fmt.Sprintf(acts, "symmetric 8 bits of each line (254 steps)"), "a step for each row", product, []float64{-127, 1.4, 254, 3.2}, []float64{-127, 1, 254, 4}},
		{fmt.Sprintf(weights, "symmetric 8 bits of the whole tensor (255 steps)"), "−128 to 127: what is as large as the least is cut", weight,
			[]float64{-127.5, 127.5, 1.4, -1.6}, []float64{-128, 127, 1, -2}},
		{fmt.Sprintf(weights, "symmetric 8 bits of the whole tensor (128 steps)"), "ONNX Runtime's 7 bits, from −64 to 64", weight,
			[]float64{-64, 63.4, 1.4, -1.6}, []float64{-64, 63, 1, -2}},
		{fmt.Sprintf(weights, "symmetric 8 bits of each line (128 steps)"), "and for each column", weight, []float64{-64, 128, 1.4, 3.2}, []float64{-64, 128, 1, 4}},
		{fmt.Sprintf(weights, "shifted 8 bits of each line (255 steps)"), "a column need not hold 0", weight, []float64{100.25, 1, 355.25, 256}, []float64{100.25, 1, 355.25, 256}},
		{fmt.Sprintf(weights, whole), "an infinity has no steps", weight, []float64{math.Inf(1), 1.4, 2, 3}, []float64{math.Inf(1), 1.4, 2, 3}},
		{"embeddings are " + lines, "a step for each row", replay.Operand{Weight: true, Table: true, Sum: 1},
			[]float64{127, 1.4, 254, 3.2}, []float64{127, 1, 254, 4}},
		{"embeddings are shifted 8 bits of each line (255 steps)", "from the least number of a row on", replay.Operand{Weight: true, Table: true, Sum: 1},
			[]float64{100.25, 355.25, 1, 1.5}, []float64{100.25, 355.25, 1, 1.5}},
	} {
		s := all[r.scheme]
		require.NotNil(t, s, r.scheme)
		a := array(t, tensor.F32, []int{2, 2}, r.in)
		assert.InDeltaSlice(t, r.want, s.Operands(a, r.of).Floats(), 1e-6, "%s: %s", r.scheme, r.reason)
	}
}

func TestSnapped(t *testing.T) {
	grid := []float64{-4, -3, -2, -1, 0, 1, 2, 5, 5}
	for _, r := range []struct {
		reason             string
		made, record, want []float64
	}{
		{"what rounds to the record's number, and beyond its ends", []float64{-9, -3.4, -1.6, -1, 0, 1, 2, 5.4, 7}, grid, grid},
		{"what rounds to another one stays", []float64{-4, -3.6, -2, -1, 0, 1, 2, 5, 5}, grid, []float64{-4, -3.6, -2, -1, 0, 1, 2, 5, 5}},
		{"numbers that are no steps apart", []float64{1, 2, 3, 4, 5, 6, 7, 8.1}, []float64{1, 2.1, 3, 4, 5, 6, 7, 8}, []float64{1, 2, 3, 4, 5, 6, 7, 8.1}},
		{"too few numbers", []float64{1.1, 2}, []float64{1, 2}, []float64{1.1, 2}},
	} {
		assert.Equal(t, r.want, piece.Snapped(r.made, r.record), r.reason)
	}
}
