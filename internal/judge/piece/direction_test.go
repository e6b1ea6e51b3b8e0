package piece_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// twice is x → y = 2x → z = 0.5 y, 16 rows of 16.
const twice = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[16,16],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":1,"shape":[16,16],"dtype":"float32","from":{"op":0}},{"id":2,"shape":[16,16],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"y","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":0.5},"out":["%2"],"layer":"z","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model-input_x":["%0",0,2],"y-output":["%1",1,1],"z-output":["%2",2,2]}}]}`

// Numbers that are as good as infinite, and what masks deny, are compared by what they mean.
func TestMeaning(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		x, y   []float64 // y beside 2x
		wrong  bool
		reason string
	}{
		{[]float64{1, inf, -inf, nan}, []float64{2, inf, -inf, nan}, false, "the same"},
		{[]float64{1, 1e31, -inf, 3}, []float64{2, inf, -1e38, 6}, false, "an infinity, or nearly"},
		{[]float64{1, inf, 2, 3}, []float64{2, -inf, 4, 6}, true, "the other infinity"},
		{[]float64{1, inf, 2, 3}, []float64{2, 7, 4, 6}, true, "finite"},
		{[]float64{1, 2, 3, 4}, []float64{2, 4, inf, 8}, true, "infinite"},
		{[]float64{1, 2, 3, 4}, []float64{2, 4, nan, 8}, true, "no number"},
		{[]float64{1, nan, 3, 4}, []float64{2, 4, 6, 8}, true, "a number where there is none"},
		{[]float64{0, -1e4, -1e4, 0}, []float64{0, -inf, -3e38, 0}, false, "a mask that denies the same"},
		{[]float64{0, -1e4, -1e4, 0}, []float64{0, -1e4, 0, 0}, true, "and one that allows more"},
		{[]float64{0, 0, 0, 0}, []float64{0, -1e4, 0, 0}, true, "less"},
		{[]float64{1, -1e4, -1e4, 0}, []float64{2, -1e5, -1e5, 0}, true, "a bias and a mask have numbers"},
		{[]float64{0, 0, 5e-8, 0}, []float64{0, 0, 0, 0}, false, "of zeros an error counts as it is"},
		{[]float64{0, 0, 1e-3, 0}, []float64{0, 0, 0, 0}, true, "and may be too large"},
		{[]float64{1000, 2000, 1e-3, 2e-3}, []float64{2000, 4000, 2.1e-3, 4e-3}, false, "a row of nearly nothing"},
		{[]float64{1000, 2000, 900, 900}, []float64{2000, 4000, 1800, 1800.1}, true, "a row beside a larger one"},
	} {
		_, _, faults := judge(t, strings.ReplaceAll(twice, "[16,16]", "[2,2]"), tensor.F32, nil, layerOf, func(at program.Port, v *program.Value) piece.Record {
			have := slices.Clone(map[string][]float64{"model": tt.x, "y": tt.y, "z": tt.y}[at.Layer])
			for i := range have {
				if at.Layer == "z" {
					have[i] /= 2
				}
			}
			return piece.Record{Tensor: array(t, v.DType, v.Shape, have)}
		})
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
	}
}

// An error counts by what rounding makes there: where sums cancel, that is much.
func TestNoise(t *testing.T) {
	cancelled := func(by string) string {
		s := strings.Replace(twice, `"aten.mul.Tensor","args":{"self":"%0","other":2}`, `"aten.add.Tensor","args":{"self":"%0","other":`+by+`,"alpha":1}`, 1)
		s = strings.Replace(s, `"aten.mul.Tensor","args":{"self":"%1","other":0.5}`, `"aten.add.Tensor","args":{"self":"%1","other":-`+by+`,"alpha":1}`, 1)
		return strings.ReplaceAll(strings.Replace(s, `"y-output":["%1",1,1],`, "", 1), "[16,16]", "[2,2]")
	}
	for _, tt := range []struct {
		encoding tensor.DType
		by       string
		off      float64 // of one number, which is about 1
		wrong    bool
		reason   string
	}{
		{tensor.F32, "0", 1e-4, true, "nothing cancels"},
		{tensor.F32, "1e4", 3e-4, false, "half of the last place of 1e4"},
		{tensor.F32, "1e4", 2e-2, true, "many of them"},
		{tensor.BF16, "0", 0.1, true, "nothing cancels"},
		{tensor.BF16, "100", 0.25, false, "half of the last place of 100"},
		{tensor.BF16, "100", 4, true, "many of them"},
	} {
		_, _, faults := judge(t, cancelled(tt.by), tt.encoding, nil, layerOf, func(at program.Port, v *program.Value) piece.Record {
			x := []float64{1.1015625, -0.90625, 0.8046875, 1.203125}
			if at.Layer == "z" {
				x[0] += tt.off
			}
			return piece.Record{Tensor: array(t, tensor.F32, v.Shape, x)}
		})
		assert.Equal(t, tt.wrong, len(faults) > 0, "%s %s: %s", tt.encoding, tt.by, tt.reason)
	}
}

// A tensor that is larger throughout is wrong in 16 bits, although its error is within that of rounding.
func TestLarger(t *testing.T) {
	x := make([]float64, 256)
	for i := range x {
		x[i] = math.Sin(float64(i)*1.7) * (1 + float64(i%7))
	}
	x = array(t, tensor.BF16, []int{16, 16}, x).Floats()
	for _, r := range []struct {
		encoding tensor.DType
		y        func(i int, y float64) float64
		larger   float64
		reason   string
	}{
		{tensor.BF16, func(_ int, y float64) float64 { return y }, 0, "right"},
		{tensor.BF16, func(_ int, y float64) float64 { return y * 1.003 }, 0, "a constant may be a rounding off"},
		{tensor.BF16, func(_ int, y float64) float64 { return y * 1.01 }, 0.01, "1 % is less than twice the floor, and throughout"},
		{tensor.BF16, func(_ int, y float64) float64 { return y * 0.985 }, -0.015, "smaller"},
		{tensor.BF16, func(i int, y float64) float64 { return y * (1 + 0.01*float64(1-i%2*2)) }, 0, "as often too large as too small"},
		{tensor.BF16, func(i int, y float64) float64 { return y * (1 + 0.01*float64(1-i/16%2*2)) }, 0, "by rows"},
		{tensor.F16, func(_ int, y float64) float64 { return y * 1.001 }, 0.001, "float16 is finer"},
	} {
		got, _, _ := judge(t, twice, r.encoding, nil, layerOf, func(at program.Port, v *program.Value) piece.Record {
			have := slices.Clone(x)
			for i, v := range x {
				switch at.Layer {
				case "y":
					have[i] = r.y(i, 2*v)
				case "z":
					have[i] = r.y(i, 2*v) / 2
				}
			}
			return piece.Record{Tensor: array(t, r.encoding, v.Shape, have)}
		})
		assert.InDelta(t, r.larger, got.Local[1].Larger, 5e-4, r.reason)
		if r.larger != 0 {
			assert.Equal(t, []int{1}, got.Faults, "%s: what follows is right, and does not excuse it", r.reason)
		}
	}
}
