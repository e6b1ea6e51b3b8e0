package cause_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	"github.com/goparity/goparity/tensor"
)

// Where only a part was recorded, two mistakes may look the same: then none is proven.
func TestMistakesThatLookTheSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() []float64 {
		v := make([]float64, 6*64)
		for i := range v {
			v[i] = rnd.NormFloat64()
		}
		return v
	}
	sum := func(a, b []float64, f float64) []float64 {
		v := make([]float64, len(a))
		for i := range v {
			v[i] = a[i] + f*b[i]
		}
		return v
	}
	norm := func(x []float64) []float64 {
		v := make([]float64, len(x))
		for i := range v {
			row, s := x[i/64*64:][:64], 0.0
			for _, e := range row {
				s += e * e
			}
			v[i] = x[i] / math.Sqrt(s/64+1e-6)
		}
		return v
	}
	x, a, y := random(), random(), random()
	h := sum(x, a, 1)
	values := map[string][]float64{"x": x, "a": a, "y": y, "h": h, "n": norm(h), "out": sum(h, y, 1), "8x": sum(x, x, 7), "z": random(),
		"x+y": sum(x, y, 1)}
	for _, c := range []struct {
		ports  string // in the order in which they were recorded: label, golden, candidate or -
		target string
		want   string // proven; "" for nothing
		reason string
	}{
		{`m.0.attn-output a a
m.0.norm-input_0 h -
m.0.norm-output n -
m.0.mlp-input_0 z z
m.0.mlp-output y y
m.0-input_0 x x
m.0-output out x+y`, "m.0-output", "", "a was not added to x, or x was taken in place of the sum"},
		{`m.0.attn-output a a
m.0.norm-input_0 h -
m.0.norm-output n -
m.0.mlp-input_0 n n
m.0.mlp-output y y
m.0-input_0 x x
m.0-output out -
m.1-input_0 out x+y`, "m.1-input_0", "", "what the norm made of the sum is right: the sum is"},
		{`m.0.attn-output a a
m.0.norm-input_0 h h
m.0.norm-output n n
m.0.mlp-input_0 n n
m.0.mlp-output y y
m.0-input_0 x x
m.0-output out x+y`, "m.0-output", "residual/source", "all terms were recorded"},
		{`model.embed_tokens-output x x
model.layers.0.norm-input_0 8x x
model.layers.0-input_0 8x -
model.layers.0-output out -`, "model.layers.0.norm-input_0", "embedding/scale", "the factor is missing, whatever was recorded of the block"},
	} {
		r := &diagnose.Run{}
		s := &diagnose.Scene{Run: r, Kind: "between", Case: "a", Step: "0"}
		for i, line := range strings.Split(c.ports, "\n") {
			f := strings.Fields(line)
			layer, port, _ := strings.Cut(f[0], "-")
			p := &diagnose.Port{Case: "a", Step: "0", Layer: layer, Port: port, Seq: i, Floor: compare.Limits{RelL2: 3e-5, RowRelL2: 3e-5},
				Agrees: f[1] == f[2]}
			of := func(name string) *tensor.Tensor {
				v := make([]float32, 6*64)
				for i, e := range values[name] {
					v[i] = float32(e)
				}
				x, err := tensor.Of(v, 1, 6, 64)
				require.NoError(t, err)
				return x
			}
			if p.Golden = of(f[1]); f[2] != "-" {
				p.Actual = of(f[2])
			}
			if f[0] == c.target {
				s.Target, s.Layer = p, layer
			}
			r.Ports = append(r.Ports, p)
		}
		proven := ""
		causes := diagnose.Diagnose(context.Background(), s, cause.For(s.Kind))
		for _, k := range causes {
			if k.Proven {
				proven += k.ID
			}
		}
		assert.Equal(t, c.want, proven, "%s: %v", c.reason, causes)
	}
}
