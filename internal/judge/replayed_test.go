package judge_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
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

// normed is the program of two blocks of x → dw = x · x → bn = 3 dw.
func normed(t *testing.T, x *tensor.Tensor) *program.Program {
	t.Helper()
	data, _ := x.Bytes()
	values := []string{fmt.Sprintf(`{"id":0,"shape":[1,16],"dtype":"float32","from":{"data":%q}}`, base64.StdEncoding.EncodeToString(data))}
	var ops, ports []string
	for b := range 2 {
		for i, layer := range []string{"dw", "bn"} {
			n, other := 2*b+i, fmt.Sprintf(`"%%%d"`, 2*b)
			if layer == "bn" {
				other = "3"
			}
			ops = append(ops, fmt.Sprintf(`{"op":"aten.mul.Tensor","args":{"self":"%%%d","other":%s},"out":["%%%d"],"layer":"m.%d.%s","call":1}`, n, other, n+1, b, layer))
			values = append(values, fmt.Sprintf(`{"id":%d,"shape":[1,16],"dtype":"float32","from":{"op":%d}}`, n+1, n))
			ports = append(ports, fmt.Sprintf(`"m.%d.%s-output":["%%%d",%d,%d]`, b, layer, n+1, n+1, n+1))
		}
	}
	p, err := program.Parse("program.json", fmt.Appendf(nil, `{"schema":1,"engine":"torch","case":"short","values":[%s],"ops":[%s],"passes":[{"step":"0","ops":[0,4],"ports":{%s}}]}`,
		strings.Join(values, ","), strings.Join(ops, ","), strings.Join(ports, ",")), nil)
	require.NoError(t, err)
	return p
}

// normedRun is a run of that program in which the four layers multiply by factors of their own, and add a number to what bn
// makes. Of a folded block, dw holds what bn puts out.
func normedRun(t *testing.T, x *tensor.Tensor, factors [4]float64, shift float64, folded ...int) *dump.Run {
	t.Helper()
	var ports []port
	in := x
	for b := range 2 {
		dw := change(t, in, func(_, c int) float64 { return factors[2*b] * in.At(c) * in.At(c) })
		bn := change(t, dw, func(_, c int) float64 { return factors[2*b+1]*dw.At(c) + shift })
		if in = bn; slices.Contains(folded, b) {
			dw = bn
		}
		ports = append(ports, port{fmt.Sprintf("m.%d.dw-output", b), dw}, port{fmt.Sprintf("m.%d.bn-output", b), bn})
	}
	return run("max", ports...)
}

// A layer that holds the next one's tensor was recorded wrongly, or is folded into it if that is so in every
// block.
func TestFolded(t *testing.T) {
	for _, tt := range []struct {
		folded  []int
		verdict report.Verdict
		kind    string
		reason  string
	}{
		{nil, report.Pass, "", "as recorded"},
		{[]int{0}, report.Fail, "capture", "in one block"},
		{[]int{0, 1}, report.Pass, "", "in both: bn is folded into dw"},
	} {
		x, right := wave(t, 1, 0.3, 1, 16), [4]float64{1, 3, 1, 3}
		c := compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, right, 0, tt.folded...), func(k *judge.Case) { k.Program = normed(t, x) })
		r := c.Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		assert.Equal(t, tt.kind, string(r.Kind), tt.reason)
		r = compareRuns(t, normedRun(t, x, right, 1), normedRun(t, x, right, 1, tt.folded...)).Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, "without a program, and with a bias: %s", tt.reason)
		assert.Equal(t, tt.kind, string(r.Kind), tt.reason)
	}
}

// A place says where it is in the code of both sides, and what was replayed from which tensors.
func TestCodeOfAPlace(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	modules := map[string]dump.Module{"m.1": {Class: "make.<locals>.Block", File: "/x/conv.py", Line: 40}, "m.1.dw": {Class: "Conv", File: "layers.py", Line: 7}}
	p := normed(t, x)
	p.Frames = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: "x * x"}}
	p.Stacks = [][]int{{0}}
	p.Ops[2].Stack = 0
	golden, wrong := normedRun(t, x, [4]float64{1, 3, 1, 3}, 0), normedRun(t, x, [4]float64{1, 3, 1.5, 3}, 0)
	wrong.Info.Modules = modules
	c := compareRuns(t, golden, wrong, func(k *judge.Case) { k.Program = p })
	d := c.Report("toy", true).FirstDivergence
	require.NotNil(t, d)
	assert.Equal(t, "m.1.dw", d.Layer)
	assert.Equal(t, "modeling_x.py:12 x * x", d.Reference)
	assert.Equal(t, "layers.py:7 Conv in conv.py:40 Block", d.Candidate, "a layer of a library, and what it stands in")
	assert.Equal(t, []string{"m.0.bn-output"}, d.Piece.From)
	assert.InDelta(t, 1.0/3, float64(d.Piece.Error), 1e-6)

	// Without a program the reference's class stands for its lines.
	golden.Info.Modules = map[string]dump.Module{"m.1.dw": {Class: "Conv1d", File: "conv1d.py", Line: 3}}
	d = compareRuns(t, golden, wrong).Report("toy", true).FirstDivergence
	require.NotNil(t, d)
	assert.Equal(t, "conv1d.py:3 Conv1d", d.Reference)
	assert.Nil(t, d.Piece)
}

// Tokens and heads that are as many may stand the other way round in a record, which is no other tensor, although another
// one holds the same bytes then, as a cache of keys does.
func TestHeadsBeforeTokens(t *testing.T) {
	x := make([]float32, 4*16)
	wave(t, 1, 0.3, 4, 16).Float32s(x, 0)
	data, _ := toy.Of(t, x, 1, 2, 2, 16).Bytes()
	turn := func(by float32, v []float32) (out []float32) {
		for _, row := range []int{0, 2, 1, 3} {
			for _, v := range v[16*row : 16*row+16] {
				out = append(out, by*v)
			}
		}
		return out
	}
	value := func(id int, from string) string {
		return fmt.Sprintf(`{"id":%d,"shape":[1,2,2,16],"dtype":"float32","from":{%s}}`, id, from)
	}
	values := []string{value(0, fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(data))), value(1, `"op":0`), value(2, `"op":1`), value(3, `"op":2`), value(4, `"op":3`)}
	text := fmt.Sprintf(`{"schema":1,"engine":"torch","case":"short","values":[%s],"ops":[
{"op":"aten.neg.default","args":{"self":"%%0"},"out":["%%1"],"layer":"m.norm","call":1},
{"op":"aten.transpose.int","args":{"self":"%%1","dim0":1,"dim1":2},"out":["%%2"],"layer":"m.cache","call":1},
{"op":"aten.clone.default","args":{"self":"%%2","memory_format":null},"out":["%%3"],"layer":"m.cache","call":1},
{"op":"aten.neg.default","args":{"self":"%%1"},"out":["%%4"],"layer":"m.out","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"m.norm-output":["%%1",1,1],"m.cache-output":["%%3",3,3],"m.out-output":["%%4",4,4]}}]}`, strings.Join(values, ","))
	p, err := program.Parse("program.json", []byte(text), nil)
	require.NoError(t, err)
	minus := make([]float32, len(x))
	for i, v := range x {
		minus[i] = -v
	}
	of := func(engine string, norm []float32) *dump.Run {
		return run(engine, port{"m.norm-output", toy.Of(t, norm, 1, 2, 2, 16)}, port{"m.cache-output", toy.Of(t, turn(-1, x), 1, 2, 2, 16)}, port{"m.out-output", toy.Of(t, x, 1, 2, 2, 16)})
	}
	for _, tt := range []struct {
		norm    []float32
		verdict report.Verdict
		reason  string
	}{
		{minus, report.Pass, "as recorded"},
		{turn(-1, x), report.Pass, "the bytes of the cache: the same rows"},
	} {
		r := compareRuns(t, of("torch", minus), of("max", tt.norm), func(k *judge.Case) { k.Program = p }).Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, "%s: %+v", tt.reason, r.FirstDivergence)
	}
}

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
