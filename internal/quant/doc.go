// Package quant has the arithmetic of quantised weights: how the blocks, codes, scales and zero
// points of each format become numbers. The results are those of the formats' own programs, bit for
// bit: gguf-py, mlx, and the formulas that the page of each type cites.
package quant
