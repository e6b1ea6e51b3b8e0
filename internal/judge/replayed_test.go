package judge_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
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
	data := make([]byte, 4*x.Len())
	for i := range x.Len() {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(x.At(i))))
	}
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
		x := wave(t, 1, 0.3, 1, 16)
		one := func(fold []int, shift float32) *dump.Run {
			var ports []port
			in := make([]float64, x.Len())
			for i := range in {
				in[i] = x.At(i)
			}
			for b := range 2 {
				var dw, bn []float32
				for _, v := range in {
					dw, bn = append(dw, float32(v*v)), append(bn, 3*float32(v*v)+shift)
				}
				for i, v := range bn {
					in[i] = float64(v)
				}
				for _, f := range fold {
					if f == b {
						dw = bn
					}
				}
				ports = append(ports, port{fmt.Sprintf("m.%d.dw-output", b), toy.Of(t, dw, 1, 16)}, port{fmt.Sprintf("m.%d.bn-output", b), toy.Of(t, bn, 1, 16)})
			}
			return run("torch", ports...)
		}
		c := compareRuns(t, one(nil, 0), one(tt.folded, 0), func(k *judge.Case) { k.Program = normed(t, x) })
		r := c.Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		assert.Equal(t, tt.kind, string(r.Kind), tt.reason)
		r = compareRuns(t, one(nil, 1), one(tt.folded, 1)).Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, "without a program, and with a bias: %s", tt.reason)
		assert.Equal(t, tt.kind, string(r.Kind), tt.reason)
	}
}

// A place says where it is in the code of both sides, and what was replayed from which tensors.
func TestCodeOfAPlace(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 16)
	chain := func(by float64, modules map[string]dump.Module, prefix string) *dump.Run {
		var ports []port
		for i, v := range []float64{1, 3, 9, 27} {
			label := fmt.Sprintf("%s%d.%s-output", prefix, i/2, []string{"dw", "bn"}[i%2])
			value := change(t, x, func(_, c int) float64 {
				y := []float64{x.At(c) * x.At(c), 3 * x.At(c) * x.At(c)}[i%2]
				if i > 1 {
					y = []float64{9 * math.Pow(x.At(c), 4), 27 * math.Pow(x.At(c), 4)}[i%2]
				}
				if v >= 9 {
					y *= by
				}
				return y
			})
			ports = append(ports, port{label, value})
		}
		r := run("max", ports...)
		r.Info.Modules = modules
		return r
	}
	modules := map[string]dump.Module{"m.1": {Class: "make.<locals>.Block", File: "/x/conv.py", Line: 40}, "m.1.dw": {Class: "Conv", File: "layers.py", Line: 7}}
	p := normed(t, x)
	p.Frames = []program.Frame{{File: "/ref/modeling_x.py", Line: 12, Text: "x * x"}}
	p.Stacks = [][]int{{0}}
	p.Ops[2].Stack = 0
	c := compareRuns(t, chain(1, nil, "m."), chain(1.5, modules, "m."), func(k *judge.Case) { k.Program = p })
	d := c.Report("toy", true).FirstDivergence
	require.NotNil(t, d)
	assert.Equal(t, "m.1.dw", d.Layer)
	assert.Equal(t, "modeling_x.py:12 x * x", d.Reference)
	assert.Equal(t, "layers.py:7 Conv in conv.py:40 Block", d.Candidate, "a layer of a library, and what it stands in")
	assert.Equal(t, []string{"m.0.bn-output"}, d.Piece.From)
	assert.InDelta(t, 1.0/3, float64(d.Piece.Error), 1e-6)
	assert.Equal(t, []string{"reference: modeling_x.py:12 x * x", "candidate: layers.py:7 Conv in conv.py:40 Block",
		"replayed from the candidate's m.0.bn-output"}, d.Code())

	// Without a program the reference's class stands for its lines.
	golden := chain(1, map[string]dump.Module{"m.1.dw": {Class: "Conv1d", File: "conv1d.py", Line: 3}}, "m.")
	d = compareRuns(t, golden, chain(1.5, modules, "m.")).Report("toy", true).FirstDivergence
	require.NotNil(t, d)
	assert.Equal(t, "conv1d.py:3 Conv1d", d.Reference)
	assert.Nil(t, d.Piece)
}
