package op

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Norm normalises rows, and scales and shifts their columns:
//
//	RMS norm (arXiv 1910.07467)     x / √(mean x² + Eps) · Weight
//	layer norm (arXiv 1607.06450)   (x − mean x) / √(var x + Eps) · Weight + Bias
//
// mean and var are over a row; var divides by its width.
type Norm struct {
	Width        int
	Weight, Bias []float64 // of Width elements each, nil for none
	Center       bool      // a layer norm
	OnePlus      bool      // the factor is 1 + Weight, as in Gemma
	Eps          float64
	Unbiased     bool // var and mean x² divide by Width − 1
	Outside      bool // Eps is added to the root, and not below it
}

// Of returns the norm of each row.
func (n Norm) Of(x []float64) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, len(x))
	for r := 0; r < len(x); r += n.Width {
		n.row(out[r:r+n.Width], x[r:r+n.Width])
	}
	return out
}

func (n Norm) row(out, x []float64) {
	mean, square := 0.0, 0.0
	if n.Center {
		for _, v := range x {
			mean += v / float64(n.Width)
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	over := float64(n.Width)
	if n.Unbiased {
		over--
	}
	f := 1 / math.Sqrt(square/over+n.Eps)
	if n.Outside {
		f = 1 / (math.Sqrt(square/over) + n.Eps)
	}
	for c, v := range x {
		y := (v - mean) * f
		switch {
		case n.Weight != nil && n.OnePlus:
			y *= 1 + n.Weight[c]
		case n.Weight != nil:
			y *= n.Weight[c]
		}
		if n.Bias != nil {
			y += n.Bias[c]
		}
		out[c] = y
	}
}

// Fitted returns the norm with the weight, and for a layer norm the bias, that bring it of x
// nearest to y in each column.
func (n Norm) Fitted(x, y []float64) Norm {
	x = n.Of(x)
	rows := float64(len(x) / n.Width)
	n.Weight = make([]float64, n.Width)
	if n.Center {
		n.Bias = make([]float64, n.Width)
	}
	for c := range n.Width {
		var sx, sy, sxx, sxy float64
		for i := c; i < len(x); i += n.Width {
			sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
		}
		if !n.Center {
			n.Weight[c] = sxy / sxx
			continue
		}
		n.Weight[c] = (rows*sxy - sx*sy) / (rows*sxx - sx*sx)
		n.Bias[c] = (sy - n.Weight[c]*sx) / rows
	}
	return n
}

// WithoutOne returns the norm with Weight − 1: a weight that is kept so, with the 1 forgotten.
func (n Norm) WithoutOne() Norm {
	n.Weight = append([]float64(nil), n.Weight...)
	floats.AddConst(-1, n.Weight)
	return n
}
