package piece_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// counted is x → a = 2x, of which Python is given the sum while b runs, b = a + 1, which no guard covers.
const counted = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":2}},
{"id":4,"shape":[2],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.sum.default","args":{"self":"%1","dtype":null},"out":["%2"],"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%1","other":1,"alpha":1},"out":["%3"],"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%3","other":1,"alpha":1},"out":["%4"],"layer":"c","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"model-input_x":["%0",0,4],"a-output":["%1",1,1],"b-output":["%3",3,3],"c-output":["%4",4,4]}}],
"guards":[{"value":"%2","equal":[6.0],"ops":[2,3]}]}`

// What a piece makes is not bound to what goes into it where the reference draws random numbers, or
// would have gone another way. What is made of that is.
func TestFree(t *testing.T) {
	random := strings.Replace(counted, `"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%3"`, `"layer":"b","call":1,"random":true},
{"op":"aten.add.Tensor","args":{"self":"%3"`, 1)
	require.NotEqual(t, counted, random)
	drawnFirst := strings.Replace(counted, `"layer":"a","call":1`, `"layer":"a","call":1,"random":true`, 1)
	for _, tt := range []struct {
		program        string
		a, b, c        []float64
		agrees, misfit bool // b with the golden; in shape
		faults         []string
		tied, drawn    bool
		unjudged       bool
		reason         string
	}{
		{counted, []float64{2, 4}, []float64{3, 5}, []float64{4, 6}, true, false, nil, false, false, false, "as recorded"},
		{counted, []float64{2, 4}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"b"}, false, false, false, "wrong, and the guard holds"},
		{counted, []float64{2, 4.000001}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"b"}, false, false, false, "the same float but for rounding"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"a"}, true, false, true, "another way: a alone is wrong"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 99}, false, false, []string{"a", "c"}, true, false, true, "and what is made of b is judged"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 10}, false, true, []string{"a"}, true, false, true, "of another shape, which another way may have"},
		{counted, []float64{2, 4}, []float64{3, 9}, []float64{4, 10}, false, true, []string{"b"}, false, false, false, "of another shape, which it may not"},
		{random, []float64{2, 4}, []float64{7, 8}, []float64{8, 9}, false, false, nil, false, true, true, "random numbers"},
		{random, []float64{2, 4}, []float64{3, 5}, []float64{4, 6}, true, false, nil, false, true, false, "the same random numbers"},
		{random, []float64{2, 4}, []float64{7, 8}, []float64{8, 8}, false, false, []string{"c"}, false, true, true, "what is made of them is judged"},
		{drawnFirst, []float64{3, 5}, []float64{3, 9}, []float64{4, 10}, false, false, nil, false, true, true, "another way by random numbers"},
	} {
		local, faults, _ := judged(t, tt.program, map[string][]float64{"model": {1, 2}, "a": tt.a, "b": tt.b, "c": tt.c}, func(at program.Port, r *piece.Record) {
			r.Golden = piece.Golden{Known: true, Agrees: at.Layer != "b" || tt.agrees, Error: 9}
			if at.Layer == "b" && tt.misfit {
				r.Misfit, r.Tensor = true, nil
			}
			if at.Layer == "c" && tt.misfit {
				*r = piece.Record{}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
		if l := local["b"]; l != nil {
			assert.Equal(t, []bool{tt.tied, tt.drawn, tt.unjudged}, []bool{l.Tied, l.Drawn, l.Unjudged}, tt.reason)
		}
	}
}

// routed is x → logits = x + w → the two largest, whose rows of a table are added.
const routed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[4],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[4],"dtype":"float32","from":{"weight":"w"}},
{"id":2,"shape":[4],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":1}},
{"id":4,"shape":[2],"dtype":"int64","from":{"op":1}},{"id":5,"shape":[4,2],"dtype":"float32","from":{"weight":"table"}},
{"id":6,"shape":[2,2],"dtype":"float32","from":{"op":2}},{"id":7,"shape":[2],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.add.Tensor","args":{"self":"%0","other":"%1","alpha":1},"out":["%2"],"layer":"gate","call":1},
{"op":"aten.topk.default","args":{"self":"%2","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"gate","call":1},
{"op":"aten.index_select.default","args":{"self":"%5","dim":0,"index":"%4"},"out":["%6"],"layer":"experts","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%6","dim":[0],"keepdim":false,"dtype":null},"out":["%7"],"layer":"experts","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"model-input_x":["%0",0,4],"gate-output.0":["%2",2,2],"gate-output.1":["%4",2,2],"experts-output":["%7",4,4]}}]}`

// Experts that are numbered otherwise are another way to write the same: the choice, which is right by its
// own scores, is made anew with them.
func TestExpertsNumberedOtherwise(t *testing.T) {
	for _, tt := range []struct {
		logits, choice, y []float64
		faults            []string
		stretch           bool
		reason            string
	}{
		{[]float64{1, 4, 3, 2}, []float64{1, 2}, []float64{14, 18}, nil, false, "as recorded"},
		{[]float64{4, 3, 2, 1}, []float64{0, 1}, []float64{14, 18}, nil, true, "experts 1, 2, 3, 0"},
		{[]float64{4, 3, 2, 1}, []float64{0, 1}, []float64{12, 14}, []string{"gate"}, false, "other experts"},
		{[]float64{4, 3, 2, 1}, []float64{2, 3}, []float64{14, 18}, []string{"gate"}, true, "a choice that is none of these scores: they have nothing behind them"},
	} {
		load := func(v *program.Value) (*replay.Array, error) {
			return replay.Of(tensor.F32, v.Shape, map[string][]float64{"": {1, 2, 3, 4}, "w": {0, 2, 0, -2}, "table": {1, 3, 6, 8, 8, 10, 9, 9}}[v.Weight])
		}
		r, _, faults := judge(t, routed, tensor.F32, load, layerOf, func(at program.Port, v *program.Value) piece.Record {
			x := map[string][]float64{"input_x": {1, 2, 3, 4}, "output.0": tt.logits, "output.1": tt.choice, "output": tt.y}[at.Name]
			return piece.Record{Tensor: array(t, v.DType, v.Shape, x)}
		})
		assert.Len(t, r.Stretches, map[bool]int{true: 1}[tt.stretch], tt.reason)
		if len(tt.faults) == 0 {
			assert.Empty(t, faults, tt.reason)
		} else {
			assert.Equal(t, tt.faults[0], faults[0], tt.reason)
		}
	}
}

// handed is x → a = 2x, which b is given and adds 1 to.
const handed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.add.Tensor","args":{"self":"%1","other":1,"alpha":1},"out":["%2"],"layer":"b","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model-input_x":["%0",0,2],"a-output":["%1",1,1],"b-input_0":["%1",1,2],"b-output":["%2",2,2]}}]}`

// An output is recorded otherwise where the next layer was given what it should be; where it was given the
// same wrong tensor, the output is wrong, whatever the golden says of its input.
func TestAside(t *testing.T) {
	for _, tt := range []struct {
		a, in, b []float64
		golden   piece.Golden // of b's input
		faults   []string
		reason   string
	}{
		{[]float64{2, 4}, []float64{2, 4}, []float64{3, 5}, piece.Golden{}, nil, "as recorded"},
		{[]float64{1, 2}, []float64{2, 4}, []float64{3, 5}, piece.Golden{}, nil, "what b was given is right"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{2, 3}, piece.Golden{}, []string{"a"}, "b was given what is wrong"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{2, 3}, piece.Golden{Known: true, Agrees: true}, []string{"a"}, "and its golden is made of that"},
	} {
		_, faults, _ := judged(t, handed, map[string][]float64{"model": {1, 2}, "a": tt.a, "b-input_0": tt.in, "b": tt.b}, func(at program.Port, r *piece.Record) {
			switch {
			case at.Layer == "b" && at.Input:
				r.Golden = tt.golden
			case at.Layer == "a":
				r.Golden = piece.Golden{Known: tt.golden.Known, Error: 9}
			default:
				r.Golden = piece.Golden{}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
	}
}
