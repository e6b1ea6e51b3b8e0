package replay

import (
	"context"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// Freedom is why a piece that cannot be run may have another result than the reference's.
type Freedom int

// The reasons. Bound stands for none: what goes into the piece tells what comes out.
const (
	Bound Freedom = iota
	Drawn         // it draws random numbers
	Other         // on other numbers the reference would have run other operators, or other sizes
)

// guarded returns an error if a piece is none that the reference runs on these operands.
func guarded(ctx context.Context, p *program.Piece, load Load) error {
	for _, g := range p.Guards {
		made, err := Run(ctx, g.Piece, load, Mode{})
		if err != nil {
			return err
		}
		if !equal(made, g.Equal) {
			return &OpaqueError{Free: Other, Reason: "it hangs on numbers that are other ones here, where the reference goes another way"}
		}
	}
	return nil
}

// equal reports whether a tensor has the numbers of a guard.
func equal(a *Array, want any) bool {
	var x []float64
	switch w := want.(type) {
	case []float64:
		x = w
	case []int:
		for _, v := range w {
			x = append(x, float64(v))
		}
	case []bool:
		for _, is := range w {
			x = append(x, b2f(is))
		}
	default:
		return false
	}
	within := 0.0
	if a.isFloat() {
		within = equalFloats
	}
	return slices.EqualFunc(a.Floats(), x, func(v, w float64) bool {
		return v == w || math.Abs(v-w) <= within*math.Abs(w) || v != v && w != w
	})
}
