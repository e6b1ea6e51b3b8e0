package judge_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// constant is a value of a program that holds numbers.
func constant(id, side int, x []float32) string {
	var data []byte
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return fmt.Sprintf(`{"id":%d,"shape":[1,1,%d,%d],"dtype":"float32","from":{"data":%q}}`, id, side, side, base64.StdEncoding.EncodeToString(data))
}

// blocks is the program x → e = 8 x → a = softmax(e + mask) → b = softmax(3 a + mask).
func blocks(t *testing.T, side int, x, mask []float32) *program.Program {
	t.Helper()
	value := func(id, op int) string {
		return fmt.Sprintf(`{"id":%d,"shape":[1,1,%d,%d],"dtype":"float32","from":{"op":%d}}`, id, side, side, op)
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
		constant(0, side, x), constant(1, side, mask), value(2, 0), value(3, 1), value(4, 2), value(5, 3), value(6, 4), value(7, 5))
	p, err := program.Parse("program.json", []byte(text), nil)
	require.NoError(t, err)
	return p
}

// bordered is a run of blocks, by what the embedding records, and by the factor of the second block.
func bordered(t *testing.T, engine string, side int, x []float32, recorded, factor float64, allowed []bool) *dump.Run {
	t.Helper()
	e, embedded := make([]float32, len(x)), make([]float32, len(x))
	for i, v := range x {
		e[i], embedded[i] = 8*v, float32(recorded)*v
	}
	softmax := func(in []float32, by float64) []float32 {
		out := make([]float32, len(in))
		for r := range side {
			sum := 0.0
			for c := range side {
				if i := r*side + c; allowed[i] {
					sum += math.Exp(by * float64(in[i]))
				}
			}
			for c := range side {
				if i := r*side + c; allowed[i] {
					out[i] = float32(math.Exp(by*float64(in[i])) / sum)
				}
			}
		}
		return out
	}
	a := softmax(e, 1)
	b := softmax(a, factor)
	made := func(v []float32) *tensor.Tensor { return toy.Of(t, v, 1, 1, side, side) }
	var mask *tensor.Tensor
	if engine == "torch" {
		mask = made(denying(allowed))
	} else {
		data := make([]byte, len(allowed))
		for i, is := range allowed {
			if is {
				data[i] = 1
			}
		}
		var err error
		mask, err = tensor.New(tensor.Bool, []int{1, 1, side, side}, data)
		require.NoError(t, err)
	}
	return run(engine, port{"m.embed_tokens-output", made(embedded)}, port{"m.layers.0-input_0", made(e)}, port{"m.layers.0-input_attention_mask", mask},
		port{"m.layers.0-output", made(a)}, port{"m.layers.1-input_0", made(a)}, port{"m.layers.1-input_attention_mask", mask}, port{"m.layers.1-output", made(b)})
}

func denying(allowed []bool) []float32 {
	out := make([]float32, len(allowed))
	for i, is := range allowed {
		if !is {
			out[i] = -math.MaxFloat32
		}
	}
	return out
}

// Where a scale is applied after a layer and not in it, and where a mask is bool and not additive, nothing
// is wrong, and what is wrong elsewhere is found.
func TestBorders(t *testing.T) {
	const side = 8
	var x []float32
	var allowed []bool
	for i := range side * side {
		x, allowed = append(x, float32(math.Sin(1.7*float64(i)))), append(allowed, i%side <= i/side)
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
		golden, actual := bordered(t, "torch", side, x, 8, 3, allowed), bordered(t, "mlx", side, x, tt.recorded, tt.factor, allowed)
		c := compareRuns(t, golden, actual, func(k *judge.Case) { k.Program = blocks(t, side, x, denying(allowed)) })
		r := c.Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		if d := r.FirstDivergence; tt.layer != "" && assert.NotNil(t, d, tt.reason) {
			assert.Equal(t, tt.layer, d.Layer, tt.reason)
			assert.Equal(t, []string{tt.layer}, r.Frontier, tt.reason)
		}
	}
}
