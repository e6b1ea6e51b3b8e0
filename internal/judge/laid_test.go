package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// weighed is x → x · w, inside m.conv between what in puts out and out takes, which changes its sign.
const weighed = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4],"dtype":"int64","from":{"input":"ids","step":"0"}},{"id":1,"shape":[5,2],"dtype":"float32","from":{"weight":"table"}},
{"id":2,"shape":[1,4,2],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[2],"dtype":"float32","from":{"weight":"w"}},
{"id":4,"shape":[1,4,2],"dtype":"float32","from":{"op":1}},
{"id":5,"shape":[1,4,2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.embedding.default","args":{"weight":"%1","indices":"%0"},"out":["%2"],"layer":"m.conv.in","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%2","other":"%3"},"out":["%4"],"layer":"m.conv","call":1},
{"op":"aten.neg.default","args":{"self":"%4"},"out":["%5"],"layer":"m.conv.out","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"m.conv.in-input_0":["%0",0,1],"m.conv.in-output":["%2",1,1],"m.conv.out-input_0":["%4",2,3],"m.conv.out-output":["%5",3,3]}}]}`

// Where the weights of a piece are not at hand, the golden tells in which forward pass it is wrong.
func TestPassByTheGolden(t *testing.T) {
	tokens := []int{4, 1, 3, 2}
	run := func(info dump.Info, wrongFrom int, spans ...[2]int) *dump.Run {
		info.Engine, info.Case, info.Mode, info.TokenIDs = "torch", "short", dump.Standard, []byte("[[4,1,3,2]]")
		var entries []dump.Entry
		for step, s := range spans {
			var in, out, last []float32
			var ids []int64
			for at := s[0]; at < s[1]; at++ {
				x := []float32{float32(tokens[at]), float32(tokens[at] * tokens[at])}
				ids, in = append(ids, int64(tokens[at])), append(in, x...)
				w := []float32{3, 5}
				if at >= wrongFrom {
					w[0] = 4
				}
				out, last = append(out, x[0]*w[0], x[1]*w[1]), append(last, -x[0]*w[0], -x[1]*w[1])
			}
			x, err := tensor.Of(ids, 1, len(ids))
			require.NoError(t, err)
			name := []string{"0", "1"}[step]
			entries = append(entries, dump.Entry{Step: name, Layer: "m.conv.in", Port: "input_0", Tensor: x},
				dump.Entry{Step: name, Layer: "m.conv.in", Port: "output", Tensor: toy.Of(t, in, 1, len(ids), 2)},
				dump.Entry{Step: name, Layer: "m.conv.out", Port: "input_0", Tensor: toy.Of(t, out, 1, len(ids), 2)},
				dump.Entry{Step: name, Layer: "m.conv.out", Port: "output", Tensor: toy.Of(t, last, 1, len(ids), 2)})
		}
		return dump.New("torch", info, dump.OrderRunFile, entries)
	}
	p, err := program.Parse("program.json", []byte(weighed), nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		wrongFrom int
		pass      int
		position  int
		reason    string
	}{
		{2, 1, 2, "the first pass agrees"},
		{3, 1, 3, "and the first row of the second"},
		{0, 0, 0, "both are wrong"},
	} {
		passes := [][]dump.PassItem{{{Sequence: 0, From: 0, To: 2}}, {{Sequence: 0, From: 2, To: 4}}}
		actual, err := path.New(run(dump.Info{Path: "chunked:2", Passes: passes}, tt.wrongFrom, [2]int{0, 2}, [2]int{2, 4}), nil)
		require.NoError(t, err)
		golden, err := path.New(run(dump.Info{}, 9, [2]int{0, 4}), actual)
		require.NoError(t, err)
		k, _, err := judge.Goldens{Standard: []*path.Sheet{golden}, Programs: map[*path.Sheet]*program.Program{golden: p}}.Case(t.Context(), "short", actual, nil)
		require.NoError(t, err)
		c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		require.NoError(t, err)
		d := c.Report("toy", true).FirstDivergence
		require.NotNil(t, d, tt.reason)
		assert.Equal(t, "m.conv", d.Layer, tt.reason)
		assert.Equal(t, []int{tt.pass, tt.position}, []int{d.Pass, d.Position}, tt.reason)
	}
}
