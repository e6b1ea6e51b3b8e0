package export

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"github.com/goparity/goparity/internal/report"
)

// scale is an axis of decades, with a place for zeros below and one for infinite errors above.
type scale struct {
	low, high        float64 // decades of the finite errors
	gap              float64 // between them and the places below and above
	zeros, infinites bool
}

func newScale(points []report.Point) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1)}
	for i := range points {
		for mode := range modes {
			mse, ok := points[i].Error(mode)
			switch {
			case !ok:
			case mse == 0:
				s.zeros = true
			case math.IsInf(mse, 1):
				s.infinites = true
			default:
				s.low, s.high = min(s.low, math.Floor(math.Log10(mse))), max(s.high, math.Ceil(math.Log10(mse)))
			}
		}
	}
	if s.low > s.high { // no finite one
		s.low, s.high = -12, 0
	}
	s.gap = max(1, (s.high-s.low)/12)
	return s
}

// at returns where an error lies.
func (s scale) at(mse float64) float64 {
	return min(max(math.Log10(mse), s.low-s.gap), s.high+s.gap)
}

func (s scale) ticks() (ticks plot.ConstantTicks) {
	if s.zeros {
		ticks = append(ticks, plot.Tick{Value: s.at(0), Label: "0"})
	}
	every := float64(step(int(s.high-s.low)+1, 14))
	for e := math.Ceil(s.low/every) * every; e <= s.high; e += every {
		ticks = append(ticks, plot.Tick{Value: e, Label: fmt.Sprintf("1e%d", int(e))})
	}
	if s.infinites {
		ticks = append(ticks, plot.Tick{Value: s.at(math.Inf(1)), Label: "NaN, Inf"})
	}
	return ticks
}

// step returns the least of 1, 2, 5, 10, 20, 50, … of which at most most steps cover n.
func step(n, most int) int {
	for unit := 1; ; unit *= 10 {
		for _, s := range []int{unit, 2 * unit, 5 * unit} {
			if n <= s*most {
				return s
			}
		}
	}
}
