//go:build !amd64

package quant

import "github.com/goparity/goparity/tensor"

func vectorQ4_0([]float32, []byte) bool { return false }

func vectorQ8_0([]float32, []byte) bool { return false }

func vectorAffine4(*[64]float32, *[32]byte, *[4]float32) bool { return false }

func vectorAffine(bits, group int, d tensor.DType) func(dst []float32, codes []byte, scales, biases []float32) {
	return nil
}

func vectorChosen([]float32, []byte, *[16]float32) int { return 0 }
