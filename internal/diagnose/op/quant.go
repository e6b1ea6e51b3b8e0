package op

import "math"

// GroupScales returns max|w| of each group of size elements of each row: the scale of a weight that
// was quantised symmetrically, times the largest whole number (GPTQ, arXiv 2210.17323).
func GroupScales(w [][]float64, size int) [][]float64 {
	out := make([][]float64, len(w))
	for r, row := range w {
		for at := 0; at < len(row); at += size {
			m := 0.0
			for _, x := range row[at:min(at+size, len(row))] {
				m = max(m, math.Abs(x))
			}
			out[r] = append(out[r], m)
		}
	}
	return out
}

// OnGrid reports whether the first rows of a weight are whole numbers up to top, times the scale of
// their group over top.
func OnGrid(w [][]float64, size int, top float64) bool {
	w = w[:min(gridRows, len(w))]
	for r, scales := range GroupScales(w, size) {
		for c, x := range w[r] {
			n := x / scales[c/size] * top
			if scales[c/size] > 0 && math.Abs(n-math.Round(n)) > nearWhole*max(1, top/32) {
				return false
			}
		}
	}
	return len(w) > 0
}

// Rescaled returns w with the scale of each group replaced; top is the largest whole number that w
// is rounded to first, 0 for no rounding.
func Rescaled(w [][]float64, size int, top float64, scale func(r, c int) float64) []float64 {
	var out []float64
	for r, scales := range GroupScales(w, size) {
		for c, x := range w[r] {
			if own := scales[c/size]; own > 0 {
				n := x / own
				if top > 0 {
					n = math.Round(n*top) / top
				}
				x = n * scale(r, c)
			}
			out = append(out, x)
		}
	}
	return out
}
