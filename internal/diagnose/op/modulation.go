package op

// Modulation is what an adaLN projection does to a stream (DiT, arXiv 2212.09748). Both forms are
//
//	out = x·(X + XM·m) + z·(Z + ZM·m)
//
//	scale and shift   x·(1 + scale) + shift   m is the scale, z the shift: X = XM = Z = 1
//	gate              x + gate·y              m is the gate, z is y: X = ZM = 1
type Modulation struct{ X, XM, Z, ZM float64 }

// The right forms.
var (
	ScaleShift = Modulation{X: 1, XM: 1, Z: 1}
	Gate       = Modulation{X: 1, ZM: 1}
)

// Of returns one element.
func (f Modulation) Of(x, z, m float64) float64 { return x*(f.X+f.XM*m) + z*(f.Z+f.ZM*m) }
