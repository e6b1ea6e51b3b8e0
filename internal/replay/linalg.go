package replay

import "math"

// solved are the operators of square matrices that take them apart into triangular ones.
var solved = family{
	"_linalg_slogdet": func(c *Call) []*Array {
		_, sign, log := c.eliminated(c.tensor("A"))
		return []*Array{c.result(0, nil, sign), c.result(1, nil, log)}
	},
	"_linalg_det": func(c *Call) []*Array {
		_, sign, log := c.eliminated(c.tensor("A"))
		for i := range sign {
			sign[i] *= math.Exp(log[i])
		}
		return []*Array{c.result(0, nil, sign)}
	},
	"linalg_inv_ex": func(c *Call) []*Array {
		inverse, _, _ := c.eliminated(c.tensor("A"))
		return []*Array{c.result(0, nil, inverse)}
	},
}

// eliminated returns the inverses of matrices, the signs of their determinants and the logarithms of their sizes. Numbers
// are rounded on the way as those of the reference: what that costs is seen beside float64.
func (c *Call) eliminated(a *Array) (inverse, sign, log []float64) {
	d := len(a.shape) - 2
	if d < 0 || a.shape[d] != a.shape[d+1] {
		fail("a matrix of %v", a.shape)
	}
	rounded := func(v float64) float64 { return v }
	if a.d == nil && !c.mode.Wide {
		rounded = func(v float64) float64 { return float64(float32(v)) }
	}
	n := a.shape[d]
	x := a.Floats()
	for from := 0; from < len(x); from += n * n {
		of, own, s, l := x[from:from+n*n], make([]float64, n*n), 1.0, 0.0
		for i := range n {
			own[i*n+i] = 1
		}
		for k := range n {
			p := k
			for i := k + 1; i < n; i++ {
				if math.Abs(of[i*n+k]) > math.Abs(of[p*n+k]) {
					p = i
				}
			}
			if p != k {
				s = -s
				for j := range n {
					of[k*n+j], of[p*n+j] = of[p*n+j], of[k*n+j]
					own[k*n+j], own[p*n+j] = own[p*n+j], own[k*n+j]
				}
			}
			pivot := of[k*n+k]
			s, l = s*b2f(pivot != 0)*math.Copysign(1, pivot), l+math.Log(math.Abs(pivot))
			for j := range n {
				of[k*n+j], own[k*n+j] = rounded(of[k*n+j]/pivot), rounded(own[k*n+j]/pivot)
			}
			for i := range n {
				by := of[i*n+k]
				for j := 0; i != k && j < n; j++ {
					of[i*n+j] = rounded(of[i*n+j] - float64(by*of[k*n+j]))
					own[i*n+j] = rounded(own[i*n+j] - float64(by*own[k*n+j]))
				}
			}
		}
		inverse, sign, log = append(inverse, own...), append(sign, s), append(log, l)
	}
	return inverse, sign, log
}
