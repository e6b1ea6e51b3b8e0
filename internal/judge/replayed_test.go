package judge_test

import (
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
	return programOf(t, []*tensor.Tensor{x}, `"m.0.dw-output":["%1",1,1],"m.0.bn-output":["%2",2,2],"m.1.dw-output":["%3",3,3],"m.1.bn-output":["%4",4,4]`,
		`m.0.dw mul.Tensor "self":"%0","other":"%0"`, `m.0.bn mul.Tensor "self":"%1","other":3`,
		`m.1.dw mul.Tensor "self":"%2","other":"%2"`, `m.1.bn mul.Tensor "self":"%3","other":3`)
}

// traced is normed, whose operators ran a line of code.
func traced(t *testing.T, x *tensor.Tensor, line string, ops ...int) *program.Program {
	t.Helper()
	p := normed(t, x)
	p.Frames, p.Stacks = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: line}}, [][]int{{0}}
	for _, op := range ops {
		p.Ops[op].Stack = 0
	}
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
		r := compareRuns(t, normedRun(t, x, right, 0), normedRun(t, x, right, 0, tt.folded...), func(k *judge.Case) { k.Program = normed(t, x) }).Report("toy", true)
		assert.Equal(t, []any{tt.verdict, tt.kind}, []any{r.Verdict, r.Kind}, tt.reason)
		r = compareRuns(t, normedRun(t, x, right, 1), normedRun(t, x, right, 1, tt.folded...)).Report("toy", true)
		assert.Equal(t, []any{tt.verdict, tt.kind}, []any{r.Verdict, r.Kind}, "without a program, and with a bias: %s", tt.reason)
	}
}

// A place says where it is in the code of both sides, and what was replayed from which tensors.
func TestCodeOfAPlace(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	modules := map[string]dump.Module{"m.1": {Class: "make.<locals>.Block", File: "/x/conv.py", Line: 40}, "m.1.dw": {Class: "Conv", File: "layers.py", Line: 7}}
	p := traced(t, x, "x * x", 2)
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
	turn := func(by float32, v []float32) (out []float32) {
		for _, row := range []int{0, 2, 1, 3} {
			for _, v := range v[16*row : 16*row+16] {
				out = append(out, by*v)
			}
		}
		return out
	}
	p := programOf(t, []*tensor.Tensor{toy.Of(t, x, 1, 2, 2, 16)}, `"m.norm-output":["%1",1,1],"m.cache-output":["%3",3,3],"m.out-output":["%4",4,4]`,
		`m.norm neg.default "self":"%0"`, `m.cache transpose.int "self":"%1","dim0":1,"dim1":2`, `m.cache clone.default "self":"%2","memory_format":null`,
		`m.out neg.default "self":"%1"`)
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
	return programOf(t, []*tensor.Tensor{x, mask}, `
"m.embed_tokens-output":["%2",1,1],"m.layers.0-input_0":["%2",1,3],"m.layers.0-input_attention_mask":["%1",1,3],"m.layers.0-output":["%4",3,3],
"m.layers.1-input_0":["%4",3,6],"m.layers.1-input_attention_mask":["%1",3,6],"m.layers.1-output":["%7",6,6]`,
		`m.embed_tokens mul.Tensor "self":"%0","other":8`,
		`m.layers.0 add.Tensor "self":"%2","other":"%1","alpha":1`,
		`m.layers.0 _softmax.default "self":"%3","dim":-1,"half_to_float":false`,
		`m.layers.1 mul.Tensor "self":"%4","other":3`,
		`m.layers.1 add.Tensor "self":"%5","other":"%1","alpha":1`,
		`m.layers.1 _softmax.default "self":"%6","dim":-1,"half_to_float":false`)
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
		r := compareRuns(t, side("torch", additive, 8, 3), side("mlx", bools, tt.recorded, tt.factor), func(k *judge.Case) {
			k.Program = blocks(t, x, additive)
		}).Report("toy", true)
		assert.Equal(t, []any{tt.verdict, tt.layer, tt.layer}, []any{r.Verdict, placeOf(r), strings.Join(r.Frontier, " ")}, tt.reason)
	}
}
