package piece_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// sparse is the two best of four scores → the sum of what stands there in x, times w.
const sparse = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"float32","from":{"input":"scores","step":"0"}},{"id":1,"shape":[2,4],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[2,2],"dtype":"float32","from":{"input":"w","step":"0"}},{"id":3,"shape":[2,2],"dtype":"float32","from":{"op":0}},{"id":4,"shape":[2,2],"dtype":"int64","from":{"op":0}},
{"id":5,"shape":[2,2],"dtype":"int32","from":{"op":1}},{"id":6,"shape":[2,2],"dtype":"int64","from":{"op":2}},{"id":7,"shape":[2,2],"dtype":"float32","from":{"op":3}},
{"id":8,"shape":[2,2],"dtype":"float32","from":{"op":4}},{"id":9,"shape":[2],"dtype":"float32","from":{"op":5}}],
"ops":[{"op":"aten.topk.default","args":{"self":"%0","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%4","dtype":"int32"},"out":["%5"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%5","dtype":"int64"},"out":["%6"],"layer":"moe","call":1},
{"op":"aten.gather.default","args":{"self":"%1","dim":-1,"index":"%6","sparse_grad":false},"out":["%7"],"layer":"moe","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%7","other":"%2"},"out":["%8"],"layer":"moe","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%8","dim":[-1],"keepdim":false,"dtype":null},"out":["%9"],"layer":"moe","call":1}],
"passes":[{"step":"0","ops":[0,6],"ports":{"model-input_scores":["%0",0,6],"model-input_x":["%1",0,6],"model-input_w":["%2",0,6],"router-output":["%5",2,2],"moe-output":["%9",6,6]}}]}`

// A choice is a set: its order, and which of equal scores it took, is the candidate's own affair, and no excuse for what
// is made of it.
func TestBestChoice(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, tt := range []struct {
		first, second []float64 // the choices of the rows; nil where they were not recorded
		taken         []float64 // what stands at them, in the order of w
		wrong         []string
		reason        string
	}{
		{[]float64{0, 1}, []float64{1, 2}, []float64{1, 2, 6, 7}, nil, "as recorded"},
		{[]float64{1, 0}, []float64{2, 1}, []float64{1, 2, 6, 7}, nil, "in another order, which the sum does not hang on"},
		{[]float64{0, 2}, []float64{2, 1}, []float64{1, 3, 6, 7}, nil, "the other one of two equal scores"},
		{[]float64{0, 1}, []float64{2, 1}, []float64{1, 2, 7, 6}, []string{"router-output"}, "in another order, and not what it is weighed by"},
		{[]float64{0, 1}, []float64{1, 3}, []float64{1, 2, 6, 8}, []string{"router-output"}, "the third best"},
		{[]float64{0, 3}, []float64{1, 2}, []float64{1, 4, 6, 7}, []string{"router-output"}, "below the equal ones"},
		{[]float64{0, 1}, []float64{1, 1}, []float64{1, 2, 6, 6}, []string{"router-output"}, "one of them twice"},
		{[]float64{0, 1}, []float64{1, 4}, []float64{1, 2, 6, 8}, []string{"router-output"}, "out of range"},
		{nil, nil, []float64{1, 2, 6, 7}, nil, "what was chosen was not recorded"},
		{nil, nil, []float64{1, 3, 6, 7}, nil, "not recorded, the other one of two equal scores"},
		{nil, nil, []float64{1, 2, 6, 8}, []string{"moe-output"}, "not recorded, the third best"},
		{nil, nil, []float64{1, 3, 6, 8}, []string{"moe-output"}, "not recorded, both"},
		{nil, nil, []float64{1, 8, 6, 7}, []string{"moe-output"}, "not recorded, further off than equal scores make"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p, err := program.Parse("p", []byte(sparse), nil)
			require.NoError(t, err)
			w := []float64{3, 2, 4, 1}
			have := map[string][]float64{"input_scores": {0.5, 0, 0, -1, 0.1, 0.9, 0.3, 0.2}, "input_x": x, "input_w": w, "router-output": append(tt.first, tt.second...),
				"moe-output": {w[0]*tt.taken[0] + w[1]*tt.taken[1], w[2]*tt.taken[2] + w[3]*tt.taken[3]}}
			run := &piece.Run{Program: p, Encoding: tensor.F32}
			for _, at := range p.Ports {
				v := p.Values[at.Value]
				x, is := have[at.Name]
				if !is {
					x = have[at.Layer+"-"+at.Name]
				}
				if len(x) == 0 {
					run.Records = append(run.Records, piece.Record{})
					continue
				}
				run.Records = append(run.Records, piece.Record{Tensor: array(t, v.DType, v.Shape, x)})
			}
			r, err := piece.Judge(context.Background(), run)
			require.NoError(t, err)
			var wrong []string
			for _, f := range r.Faults {
				wrong = append(wrong, p.Ports[f].Layer+"-"+p.Ports[f].Name)
			}
			assert.Equal(t, tt.wrong, wrong)
		})
	}
}

// indexed is the two best of five scores, the positive part of x.
const indexed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[3,5],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[3,5],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[3,2],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[3,2],"dtype":"int64","from":{"op":1}}],
"ops":[{"op":"aten.relu.default","args":{"self":"%0"},"out":["%1"],"layer":"indexer","call":1},
{"op":"aten.topk.default","args":{"self":"%1","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%2","%3"],"layer":"indexer","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"indexer-input_0":["%0",0,2],"indexer-output":["%3",2,2]}}]}`

// Of a choice that is wrong the scores are looked for of which it is the best, in whatever order.
func TestOfScores(t *testing.T) {
	x := []float64{5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 3, 1, 5, 2, 4}
	r, run, _ := judge(t, indexed, tensor.F32, func(*program.Value) (*replay.Array, error) { return nil, nil }, nameOf, func(at program.Port, v *program.Value) (r piece.Record) {
		if at.Name == "input_0" {
			r.Tensor = array(t, v.DType, v.Shape, x)
		} else {
			r.Tensor = array(t, v.DType, v.Shape, []float64{3, 4, 1, 0, 1, 3})
			r.Rows = &piece.Rows{Axis: 0, Batch: 1, Length: 3, Own: []bool{true, true, true}}
		}
		return r
	})
	require.Equal(t, []int{1}, r.Faults, "the two least are chosen")
	assert.Nil(t, r.Site(1, run.Load, nil, false).OfScores().Want, "what the scores should be is not known")
	negative := func(by ...float64) *replay.Array {
		for i, v := range x[len(by):] {
			by = append(by, -v-float64(i)/100)
		}
		return array(t, tensor.F32, []int{3, 5}, by)
	}
	inf, nan := math.Inf(-1), math.NaN()
	for _, tt := range []struct {
		scores *replay.Array
		rows   []bool
		right  bool
		reason string
	}{
		{negative(), nil, true, "the least first"},
		{negative(inf, inf, inf, -2, -1), nil, true, "all others are hidden"},
		{negative(inf, inf, inf, inf, -1), nil, true, "there are no two to choose from"},
		{negative(-2, -3, -4, -5, -1), nil, false, "one was left that is better"},
		{negative(-2, -3, -4, -5, -1), []bool{false, true, true}, true, "in a row that is not asked for"},
		{negative(-2, inf, inf, inf, -1), nil, false, "one that is hidden was chosen"},
		{negative(0, 0, 0, 0, nan), nil, false, "no number"},
		{array(t, tensor.F32, []int{3, 5}, make([]float64, 15)), nil, false, "of equal scores all are the best"},
		{array(t, tensor.F32, []int{2, 5}, x[:10]), nil, false, "another shape"},
	} {
		off, relative := r.Site(1, run.Load, tt.rows, false).OfScores().Off(tt.scores)
		assert.Equal(t, tt.right, off <= 1, "%s: %g", tt.reason, relative)
	}
}
