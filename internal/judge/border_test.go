package judge_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// blocks is the program x → e = 8 x → a = softmax(e + mask) → b = softmax(3 a + mask), of 8 × 8 numbers.
func blocks(t *testing.T, x, mask *tensor.Tensor) *program.Program {
	t.Helper()
	constant := func(id int, x *tensor.Tensor) string {
		data, _ := x.Bytes()
		return fmt.Sprintf(`{"id":%d,"shape":[1,1,8,8],"dtype":"float32","from":{"data":%q}}`, id, base64.StdEncoding.EncodeToString(data))
	}
	value := func(id, op int) string {
		return fmt.Sprintf(`{"id":%d,"shape":[1,1,8,8],"dtype":"float32","from":{"op":%d}}`, id, op)
	}
	text := fmt.Sprintf(`{"schema":1,"engine":"torch","case":"short","values":[%s,%s,%s,%s,%s,%s,%s,%s],"ops":[
{"op":"aten.mul.Tensor","args":{"self":"%%0","other":8},"out":["%%2"],"layer":"m.embed_tokens","call":1},
{"op":"aten.add.Tensor","args":{"self":"%%2","other":"%%1","alpha":1},"out":["%%3"],"layer":"m.layers.0","call":1},
{"op":"aten._softmax.default","args":{"self":"%%3","dim":-1,"half_to_float":false},"out":["%%4"],"layer":"m.layers.0","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%%4","other":3},"out":["%%5"],"layer":"m.layers.1","call":1},
{"op":"aten.add.Tensor","args":{"self":"%%5","other":"%%1","alpha":1},"out":["%%6"],"layer":"m.layers.1","call":1},
{"op":"aten._softmax.default","args":{"self":"%%6","dim":-1,"half_to_float":false},"out":["%%7"],"layer":"m.layers.1","call":1}],
"passes":[{"step":"0","ops":[0,6],"ports":{
"m.embed_tokens-output":["%%2",1,1],"m.layers.0-input_0":["%%2",1,3],"m.layers.0-input_attention_mask":["%%1",1,3],"m.layers.0-output":["%%4",3,3],
"m.layers.1-input_0":["%%4",3,6],"m.layers.1-input_attention_mask":["%%1",3,6],"m.layers.1-output":["%%7",6,6]}}]}`,
		constant(0, x), constant(1, mask), value(2, 0), value(3, 1), value(4, 2), value(5, 3), value(6, 4), value(7, 5))
	p, err := program.Parse("program.json", []byte(text), nil)
	require.NoError(t, err)
	return p
}

// Where a scale is applied after a layer and not in it, and where a mask is bool and not additive, nothing
// is wrong, and what is wrong elsewhere is found.
func TestBorders(t *testing.T) {
	grid := wave(t, 1, 0, 1, 1, 8, 8)
	x := change(t, grid, func(r, c int) float64 { return math.Sin(1.7 * float64(8*r+c)) })
	additive := change(t, grid, func(r, c int) float64 {
		if c > r {
			return -math.MaxFloat32
		}
		return 0
	})
	allowed := make([]byte, 64)
	for i := range allowed {
		if i%8 <= i/8 {
			allowed[i] = 1
		}
	}
	bools, err := tensor.New(tensor.Bool, x.Shape(), allowed)
	require.NoError(t, err)
	softmax := func(in *tensor.Tensor, by float64) *tensor.Tensor {
		return change(t, in, func(r, c int) float64 {
			if c > r {
				return 0
			}
			sum := 0.0
			for k := range r + 1 {
				sum += math.Exp(by * in.At(8*r+k))
			}
			return math.Exp(by*in.At(8*r+c)) / sum
		})
	}
	// A run, by what the embedding records, and by the factor of the second block.
	side := func(engine string, mask *tensor.Tensor, recorded, factor float64) *dump.Run {
		e := scaled(t, x, 8)
		a := softmax(e, 1)
		return run(engine, port{"m.embed_tokens-output", scaled(t, x, recorded)}, port{"m.layers.0-input_0", e},
			port{"m.layers.0-input_attention_mask", mask}, port{"m.layers.0-output", a}, port{"m.layers.1-input_0", a},
			port{"m.layers.1-input_attention_mask", mask}, port{"m.layers.1-output", softmax(a, factor)})
	}
	for _, tt := range []struct {
		recorded, factor float64
		verdict          report.Verdict
		layer            string
		reason           string
	}{
		{8, 3, report.Pass, "", "a bool mask alone"},
		{1, 3, report.Pass, "", "the caller scales"},
		{8, 4, report.Fail, "m.layers.1", "a wrong factor, from a bool mask"},
		{1, 4, report.Fail, "m.layers.1", "a wrong factor, and the caller scales"},
	} {
		c := compareRuns(t, side("torch", additive, 8, 3), side("mlx", bools, tt.recorded, tt.factor), func(k *judge.Case) {
			k.Program = blocks(t, x, additive)
		})
		r := c.Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		if d := r.FirstDivergence; tt.layer != "" && assert.NotNil(t, d, tt.reason) {
			assert.Equal(t, tt.layer, d.Layer, tt.reason)
			assert.Equal(t, []string{tt.layer}, r.Frontier, tt.reason)
		}
	}
}
